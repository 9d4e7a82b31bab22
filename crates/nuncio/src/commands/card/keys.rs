//! `nuncio card keygen | jwks`.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;

use nuncio_protocol::json;
use nuncio_protocol::sign::{Algorithm, SignError, SigningKey};

use super::args::{JwksArgs, KeyAlgorithm, KeyArgs, KeygenArgs};
use super::print_json;
use crate::cli::ServeArgs;
use crate::config::{self, signing::read_key};
use crate::failure::{Failure, Kind};
use crate::output::tell;

/// The keys of the command line.
pub(super) fn read(args: &KeyArgs) -> Result<Vec<SigningKey>, Failure> {
    let keys = args.keys.iter().map(|(id, path)| read_key(id, path));
    keys.collect::<Result<_, _>>().map_err(|message| Failure::new(Kind::Usage, message))
}

/// Writes a new private key to a file that only its owner may read, and prints the public half.
pub(super) fn generate(args: &KeygenArgs) -> Result<(), Failure> {
    let failed = |error: SignError| Failure::failed(error.to_string());
    let algorithm = match args.algorithm {
        KeyAlgorithm::Es256 => Algorithm::Es256,
        KeyAlgorithm::Rs256 => Algorithm::Rs256,
        KeyAlgorithm::EdDsa => Algorithm::EdDsa,
    };
    let key = SigningKey::generate("", algorithm).map_err(failed)?;
    let id = args.id.clone().or_else(|| key.thumbprint()).unwrap_or_default();
    let key = key.named(id);
    let pem = key.to_pem().ok_or_else(|| Failure::failed("the key cannot be written"))?;
    let path = args.out.display();
    let unwritable = |error| Failure::new(Kind::Usage, format!("cannot write `{path}`: {error}"));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.out).map_err(unwritable)?;
    file.write_all(pem.as_bytes()).map_err(unwritable)?;
    tell(&format!(
        "The private key is in {path}. Sign with it: --key {}={path}, or `signing-keys` in the file.\n",
        key.kid()
    ));
    print_json(&key.public_jwk())
}

/// Prints a set of public keys.
pub(super) fn jwks(args: &JwksArgs) -> Result<(), Failure> {
    let mut keys = read(&args.keys)?;
    if let Some(path) = &args.config {
        let mut serve = ServeArgs::default();
        serve.config = Some(path.clone());
        let loaded = config::load(&serve)?;
        keys.extend(loaded.config.signing_keys().map_err(|message| Failure::new(Kind::Usage, message))?);
    }
    let public: Vec<_> = keys.iter().filter_map(SigningKey::public_jwk).collect();
    if public.is_empty() {
        let text = "no key with a public half: give --key ID=FILE, or --config FILE with `signing-keys`";
        return Err(Failure::new(Kind::Usage, text));
    }
    print_json(&json!({ "keys": public }))
}
