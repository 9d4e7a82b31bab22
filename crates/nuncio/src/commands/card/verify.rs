//! `nuncio card verify`.

use nuncio_client::{CardKeys, Options};
use nuncio_protocol::json;
use nuncio_protocol::sign::Verdict;

use super::args::{CardOutput, VerifyArgs};
use super::{print_json, source};
use crate::commands::client::connect::failure;
use crate::failure::{Failure, Kind};
use crate::output::{print, tell};
use crate::terminal::one_line;

/// Prints what the signatures are worth. Anything but a verified card is a failure.
pub(super) async fn run(args: &VerifyArgs) -> Result<(), Failure> {
    let mut keys = CardKeys::default();
    if let Some(secret) = &args.secret {
        keys = keys.and(CardKeys::secret(secret.expose()).map_err(failure)?);
    }
    if let Some(path) = &args.jwks {
        keys = keys.and(CardKeys::jwks_file(path).map_err(failure)?);
    }
    if let Some(url) = &args.jwks_url {
        keys = keys.and(CardKeys::jwks_url(url).map_err(failure)?);
    }
    if keys.is_empty() {
        let text = "nothing to check with: give --jwks FILE, --jwks-url URL or a secret; an address that the card \
                    itself names proves nothing";
        return Err(Failure::new(Kind::Usage, text));
    }
    let json = source::read(&args.card).await?;
    let verdict = keys.judge(&json, &Options::default()).await;
    let text = one_line(&verdict.to_string());
    match args.output {
        CardOutput::Text => print(&format!("{text}\n"))?,
        CardOutput::Json => print_json(&describe(&verdict))?,
    }
    if let Verdict::Verified { uncovered, .. } = &verdict {
        if !uncovered.is_empty() {
            let names: Vec<String> = uncovered.iter().map(|name| one_line(name)).collect();
            tell(&format!("Nobody vouches for these members: {}.\n", names.join(", ")));
        }
        return Ok(());
    }
    Err(Failure::failed(format!("the card is not verified: {text}")))
}

fn describe(verdict: &Verdict) -> nuncio_protocol::Value {
    match verdict {
        Verdict::Verified { kid, alg, form, uncovered } => json!({
            "verdict": "verified", "kid": kid, "alg": alg.name(), "form": form.name(), "uncovered": uncovered,
        }),
        Verdict::Unverifiable(reason) => json!({ "verdict": "unverifiable", "reason": reason.to_string() }),
        Verdict::Wrong(reason) => json!({ "verdict": "wrong", "reason": reason.to_string() }),
        Verdict::Absent => json!({ "verdict": "absent" }),
    }
}
