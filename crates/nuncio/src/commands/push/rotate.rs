//! `nuncio push rotate-key`: new keys, for the secrets of webhooks and for signatures.

use std::time::Duration;

use nuncio_server::push::keyring::{KeyError, Keyring};
use nuncio_server::push::sign::Signer;
use nuncio_server::store::operator::{KeyKind, Operator};

use super::{failed, open_in};
use crate::cli::{PushKey, PushRotateArgs};
use crate::failure::{Failure, Kind};
use crate::output::print;

/// A server that runs may be about to store what it has sealed a moment ago.
const SETTLE: Duration = Duration::from_secs(2);
/// How often to look for such secrets.
const PASSES: usize = 10;

pub(super) async fn run(args: &PushRotateArgs) -> Result<(), Failure> {
    let (operator, config) = open_in(&args.serve).await?;
    let folder = config.keyring_dir.as_ref().unwrap_or(&config.data_dir);
    let environment = |name: &str| std::env::var(name).ok();
    let unusable = |error: KeyError| Failure::new(Kind::Usage, error.to_string());
    if args.only != Some(PushKey::Signing) {
        let keyring = Keyring::open_in(folder, environment).map_err(unusable)?;
        secrets(&operator, &keyring).await?;
    }
    if args.only != Some(PushKey::Secrets) {
        // Whose signatures they are, the server says.
        let signer = Signer::open_in(folder, environment, "").map_err(unusable)?;
        let id = signer.rotate().map_err(unusable)?;
        operator.agree(KeyKind::Signing, &signer.fingerprints()).await.map_err(|error| failed(&error))?;
        print(&format!("Notifications are signed with the key {id}. The public half of the old one is shown on.\n"))?;
    }
    Ok(())
}

/// A new key first, then every secret under it, and only then no old key any more: whenever this ends early, nothing
/// is lost, and it can be called again.
async fn secrets(operator: &Operator, keyring: &Keyring) -> Result<(), Failure> {
    let unusable = |error: KeyError| Failure::new(Kind::Usage, error.to_string());
    let managed = match keyring.rotate() {
        Ok(_) => false,
        // New keys are the operator's to bring; the secrets are ours.
        Err(KeyError::Managed { .. }) => true,
        Err(error) => return Err(unusable(error)),
    };
    operator.agree(KeyKind::Keyring, &keyring.fingerprints()).await.map_err(|error| failed(&error))?;
    let mut done = operator.reseal(keyring).await.map_err(|error| failed(&error))?;
    let mut changed = done.changed;
    for _ in 0..PASSES {
        tokio::time::sleep(SETTLE).await;
        done = operator.reseal(keyring).await.map_err(|error| failed(&error))?;
        changed += done.changed;
        if done.changed == 0 {
            break;
        }
    }
    let active = keyring.ids().into_iter().next().unwrap_or_default();
    let mut text = format!("Secrets are encrypted with the key {active}: {changed} webhook(s) changed.\n");
    if done.unreadable > 0 {
        text +=
            &format!("{} webhook(s) cannot be decrypted and stay as they are: register them again.\n", done.unreadable);
    }
    if managed {
        let in_use: Vec<&str> = done.in_use.iter().map(String::as_str).collect();
        text += &format!("The keys come from the environment. Those still needed: {}.\n", in_use.join(", "));
    } else if done.changed == 0 {
        let in_use: Vec<&str> = done.in_use.iter().map(String::as_str).collect();
        keyring.forget_all_but(&in_use).map_err(unusable)?;
        operator.agree(KeyKind::Keyring, &keyring.fingerprints()).await.map_err(|error| failed(&error))?;
    } else {
        text += "Webhooks change all the time: the old keys stay. Run this again to forget them.\n";
    }
    print(&text)
}
