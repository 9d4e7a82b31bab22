//! `nuncio client`: talks to an agent. The answer goes to stdout, everything else to stderr.
//!
//! * `args`, `settings`, `kinds`: what was asked for, by flag, variable or file;
//! * `connect`, `routes`, `verification`: which agent, and whether it is the right one;
//! * `call`, `subscribe`: conversations; `answer` finds the text in events, `notes` the rest, `ask` the questions,
//!   `parts` and `save` the files;
//! * `tasks`, `push`, `card`, `route_preview`: single questions; `show` prints the answers;
//! * `again`: command lines to go on with.

mod again;
mod answer;
pub(crate) mod args;
mod ask;
mod call;
mod card;
pub(crate) mod connect;
mod kinds;
mod notes;
mod parts;
mod push;
mod route_preview;
mod routes;
mod save;
mod settings;
mod show;
mod subscribe;
mod tasks;
mod verification;

use std::io::{IsTerminal, stdout};

use nuncio_protocol::codec;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::print;
use crate::terminal::clean;
use args::{ClientArgs, ClientCommand, Gives, RoutePreviewArgs};
use settings::Settings;

/// Runs the command.
pub(crate) async fn run(args: &ClientArgs) -> Result<(), Failure> {
    let given = args.connection.given().into_iter().chain(args.command.given()).collect();
    let settings = Settings::load(args.config.as_deref(), given)?;
    let settings = &settings;
    match &args.command {
        ClientCommand::Call(args) => Box::pin(call::run(settings, args)).await,
        ClientCommand::Discover(_) => card::discover(settings).await,
        ClientCommand::TaskGet(_) => tasks::get(settings).await,
        ClientCommand::TaskList(_) => tasks::list(settings).await,
        ClientCommand::TaskCancel(_) => tasks::cancel(settings).await,
        ClientCommand::TaskSubscribe(args) => subscribe::run(settings, args.after).await,
        ClientCommand::PushConfigCreate(_) => push::create(settings).await,
        ClientCommand::PushConfigGet(_) => push::get(settings).await,
        ClientCommand::PushConfigList(_) => push::list(settings).await,
        ClientCommand::PushConfigDelete(_) => push::delete(settings).await,
        ClientCommand::ExtendedCard(_) => card::extended(settings).await,
        ClientCommand::RoutePreview(args) => route_preview::run(settings, args.save_routes),
    }
}

/// `nuncio a2a-route-preview`, which has no group around it.
pub(crate) fn route_preview(args: &RoutePreviewArgs) -> Result<(), Failure> {
    let settings = Settings::load(None, args.given())?;
    route_preview::run(&settings, args.save_routes)
}

/// Writes a value as JSON. On a terminal, what would drive it is taken out.
fn print_json<T: Serialize + ?Sized>(value: &T) -> Result<(), Failure> {
    let text = format!("{}\n", codec::encode_pretty(value));
    if stdout().is_terminal() { print(&clean(&text)) } else { print(&text) }
}
