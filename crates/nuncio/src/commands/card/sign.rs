//! `nuncio card sign`.

use nuncio_protocol::sign::{Form, SignError, SigningKey, sign};
use nuncio_protocol::{AgentCard, codec};

use super::args::SignArgs;
use super::{keys, print_json, source};
use crate::failure::{Failure, Kind};

/// Prints the card with its signatures. What A2A 1.0 does not know is not in it: a signature would not cover it.
pub(super) async fn run(args: &SignArgs) -> Result<(), Failure> {
    let usage = |error: SignError| Failure::new(Kind::Usage, error.to_string());
    if let Some(jku) = args.jku.as_deref().filter(|jku| !jku.starts_with("https://")) {
        return Err(Failure::new(Kind::Usage, format!("--jku {jku}: keys must be published by https")));
    }
    let mut signing = keys::read(&args.keys)?;
    if let Some(secret) = &args.secret {
        signing.push(SigningKey::secret("default", secret.expose().as_bytes()).map_err(usage)?);
    }
    if signing.is_empty() {
        return Err(Failure::new(Kind::Usage, "nothing to sign with: give --key ID=FILE, or a secret"));
    }
    let json = source::read(&args.card).await?;
    let mut card: AgentCard = codec::decode(&json)
        .map_err(|error| Failure::new(Kind::Usage, format!("`{}` is no card of A2A 1.0: {error}", args.card)))?;
    if card.supported_interfaces.is_empty() {
        let text = format!("`{}` has no supportedInterfaces: only cards of A2A 1.0 can be signed", args.card);
        return Err(Failure::new(Kind::Usage, text));
    }
    let mut signatures = if args.keep { std::mem::take(&mut card.signatures) } else { Vec::new() };
    card.signatures.clear();
    let forms: &[Form] = if args.sdk_form { &[Form::Spec, Form::Sdk] } else { &[Form::Spec] };
    for key in &signing {
        let jku = args.jku.as_deref().filter(|_| key.public_jwk().is_some());
        for form in forms {
            signatures.push(sign(&card, key, *form, jku).map_err(usage)?);
        }
    }
    print_json(&AgentCard { signatures, ..card })
}
