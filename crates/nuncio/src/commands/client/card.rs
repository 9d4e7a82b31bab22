//! `nuncio client discover | extended-card`.

use nuncio_protocol::AgentCard;

use super::connect::{Agent, Card, connect, failure};
use super::settings::Settings;
use super::{print_json, show};
use crate::failure::Failure;
use crate::output::{print, tell};
use crate::terminal::one_line;

/// Prints the card of an agent.
pub(crate) async fn discover(settings: &Settings) -> Result<(), Failure> {
    let Agent { client, .. } = connect(settings, Card::Needed).await?;
    let card = client.card().ok_or_else(|| Failure::failed("the agent has no card"))?;
    print_card(settings, card)?;
    if let Some(verdict) = client.signature() {
        tell(&format!("Signature: {}.\n", one_line(&verdict.to_string())));
    }
    Ok(())
}

/// Prints the card that only known callers see.
pub(crate) async fn extended(settings: &Settings) -> Result<(), Failure> {
    let Agent { client, .. } = connect(settings, Card::Useful).await?;
    print_card(settings, &client.extended_card().await.map_err(failure)?)
}

fn print_card(settings: &Settings, card: &AgentCard) -> Result<(), Failure> {
    if settings.is_json() { print_json(card) } else { print(&show::card(card)) }
}
