# Sourced: installs the packages of a Python client once, below $cache.

# fresh FOLDER FILE...: are the packages that these files name installed there?
stamp_of() { cat "$@" | cksum; }
fresh() { [[ -f $1/stamp && $(<"$1/stamp") == "$(stamp_of "${@:2}")" ]]; }

# python_for NAME: the interpreter with the packages of that client.
python_for() {
  local folder=$cache/$1 wanted=$here/$1/requirements.txt
  if ! fresh "$folder" "$wanted"; then
    rm -rf "$folder"
    python3 -m venv "$folder"
    "$folder/bin/python" -m pip install --quiet --disable-pip-version-check -r "$wanted"
    stamp_of "$wanted" >"$folder/stamp"
  fi
  echo "$folder/bin/python"
}
