//! What a program sees of the server's environment: a list of what it needs, never all of it, because
//! the server's own secrets are there too.

use std::ffi::{OsStr, OsString};

/// What every program may see. A name that ends in `*` is a prefix.
const COMMON: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "TZ",
    "TMPDIR",
    "XDG_*",
    "SSH_AUTH_SOCK",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "all_proxy",
    "GIT_AUTHOR_*",
    "GIT_COMMITTER_*",
];

/// What no program may see, whatever a list says.
const NEVER: &[&str] =
    &["NUNCIO_*", "IACCODE_A2A_*", "IAC_CODE_A2A_*", "A2A_*", "CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT"];

/// The part of `all` that a program with these `variables` may see, then what is `set` for it.
pub(crate) fn environment(
    all: impl Iterator<Item = (OsString, OsString)>,
    variables: &[&str],
    allowed: &[String],
    set: &[(String, String)],
) -> Vec<(OsString, OsString)> {
    let listed = |name: &OsStr| {
        let Some(name) = name.to_str() else { return false };
        let named = COMMON.iter().chain(variables).any(|pattern| matches(pattern, name));
        (named || allowed.iter().any(|pattern| matches(pattern, name)))
            && !NEVER.iter().any(|pattern| matches(pattern, name))
    };
    let mut seen: Vec<(OsString, OsString)> = all.filter(|(name, _)| listed(name)).collect();
    for (name, value) in set {
        seen.retain(|(known, _)| known.to_str() != Some(name));
        seen.push((name.into(), value.into()));
    }
    seen
}

/// The values that must not appear in what others read.
pub(crate) fn secrets(environment: &[(OsString, OsString)]) -> Vec<String> {
    let is_secret = |name: &str| {
        let name = name.to_ascii_uppercase();
        ["KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS", "AUTH"].iter().any(|word| name.contains(word))
    };
    let long_enough = |value: &&OsString| value.len() >= 8;
    environment
        .iter()
        .filter(|(name, _)| name.to_str().is_some_and(|name| is_secret(name) && name != "SSH_AUTH_SOCK"))
        .map(|(_, value)| value)
        .filter(long_enough)
        .filter_map(|value| value.to_str().map(str::to_owned))
        .collect()
}

/// The home folder, whose name is nobody's business.
pub(crate) fn home(environment: &[(OsString, OsString)]) -> Option<String> {
    let (_, home) = environment.iter().find(|(name, _)| name == "HOME")?;
    home.to_str().map(|home| home.trim_end_matches('/').to_owned()).filter(|home| home.len() > 1)
}

fn matches(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(variables: &[&str], allowed: &[&str], set: &[(&str, &str)]) -> Vec<String> {
        let all = ["PATH", "LC_ALL", "NUNCIO_TOKEN", "ANTHROPIC_API_KEY", "AWS_SECRET", "CLAUDECODE"];
        let all = all.map(|name| (OsString::from(name), OsString::from("x")));
        let allowed: Vec<String> = allowed.iter().map(|&name| name.into()).collect();
        let set: Vec<(String, String)> = set.iter().map(|&(name, value)| (name.into(), value.into())).collect();
        let seen = environment(all.into_iter(), variables, &allowed, &set);
        seen.into_iter().map(|(name, value)| format!("{}={}", name.display(), value.display())).collect()
    }

    #[test]
    fn only_what_is_listed_is_seen() {
        assert_eq!(seen(&[], &[], &[]), ["PATH=x", "LC_ALL=x"]);
        assert_eq!(seen(&["ANTHROPIC_*"], &[], &[]), ["PATH=x", "LC_ALL=x", "ANTHROPIC_API_KEY=x"]);
        assert_eq!(seen(&[], &["AWS_SECRET"], &[("PATH", "/bin")]), ["LC_ALL=x", "AWS_SECRET=x", "PATH=/bin"]);
    }

    #[test]
    fn the_servers_own_secrets_are_never_seen() {
        assert_eq!(seen(&["*"], &["NUNCIO_TOKEN", "CLAUDECODE"], &[]).len(), 4);
    }
}
