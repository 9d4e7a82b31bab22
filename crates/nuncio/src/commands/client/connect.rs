//! From settings to an agent.

use std::path::PathBuf;
use std::time::Duration;

use nuncio_client::{Client, ClientError, Credential, KeyPlace, Options};
use nuncio_protocol::ErrorKind;

use super::routes::choose::{Wish, choose};
use super::routes::{Route, saved};
use super::settings::Settings;
use super::verification::verification;
use crate::config::Secret;
use crate::failure::{Failure, Kind};
use crate::terminal::clean;

/// Connections take no longer than this, however patient the caller is otherwise.
const CONNECT: Duration = Duration::from_secs(10);

/// What a command needs of the agent's card.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Card {
    /// The agent must have one.
    Needed,
    /// Without one, the address is that of a JSON-RPC interface.
    Useful,
}

/// An agent, and the address that led to it.
pub(crate) struct Agent {
    pub(crate) client: Client,
    pub(crate) address: String,
}

/// Finds the agent that the settings name.
pub(crate) async fn connect(settings: &Settings, card: Card) -> Result<Agent, Failure> {
    let address = address(settings)?;
    let options = verification(settings, options(settings)?)?;
    // Without a card there is nothing to verify.
    let card = if options.require_signature { Card::Needed } else { card };
    let client = match Client::discover(&address, options.clone()).await {
        Err(ClientError::Http { status: 404 | 405, .. }) if card == Card::Useful => {
            Client::direct(&address, options).map_err(failure)?
        }
        Err(error @ ClientError::Http { status: 404 | 405 | 410, .. }) => {
            return Err(Failure::new(Kind::Unreachable, error.to_string()));
        }
        other => other.map_err(failure)?,
    };
    Ok(Agent { client, address })
}

/// The address, or that of the route which fits. Whichever of the two was set nearer to the person counts.
fn address(settings: &Settings) -> Result<String, Failure> {
    let by_route = ["route-name", "skill", "routes"].iter().map(|key| settings.rank(key)).min();
    if let Some(url) = &settings.url
        && by_route.is_none_or(|rank| settings.rank("url") <= rank)
    {
        return Ok(url.clone());
    }
    let routes = routes(settings)?;
    if routes.is_empty() && settings.route_name.is_none() && settings.skill.is_none() {
        let text = "url is required. Provide --url or url in --config, or configure --route/--route-name.";
        return Err(Failure::usage(vec![text.into()]));
    }
    let chosen = choose(&routes, &wish(settings)).map_err(|message| Failure::usage(vec![message]))?;
    Ok(chosen.route.url.clone())
}

/// What a route is looked for by.
pub(crate) fn wish(settings: &Settings) -> Wish<'_> {
    Wish { name: settings.route_name.as_deref(), skill: settings.skill.as_deref(), prompt: settings.prompt.as_deref() }
}

/// All routes: of the command line, of the file, and those that were saved. Names of the former hide the latter.
pub(crate) fn routes(settings: &Settings) -> Result<Vec<Route>, Failure> {
    let mut routes = settings.routes.clone();
    if let Some(folder) = state_dir(settings) {
        let saved = saved::load(&folder)?;
        let new = saved.into_iter().filter(|route| !settings.routes.iter().any(|known| known.name == route.name));
        routes.extend(new);
    }
    Ok(routes)
}

/// Where routes are saved.
pub(crate) fn state_dir(settings: &Settings) -> Option<PathBuf> {
    let home = || std::env::home_dir().filter(|home| !home.as_os_str().is_empty());
    settings.route_state_dir.clone().or_else(|| Some(home()?.join(".nuncio")))
}

fn options(settings: &Settings) -> Result<Options, Failure> {
    Ok(Options {
        credentials: credentials(settings)?,
        allow_cross_origin: settings.allow_cross_origin,
        version: settings.a2a_version,
        binding: settings.transport,
        tenant: settings.tenant.clone(),
        extensions: settings.extensions.clone(),
        timeout: settings.timeout,
        connect_timeout: CONNECT.min(settings.timeout),
        ..Options::default()
    })
}

/// Who calls. A token and a password share a header: the one that was set nearer to the person counts, else the
/// token.
fn credentials(settings: &Settings) -> Result<Vec<Credential>, Failure> {
    let secret = |secret: &Secret| nuncio_client::Secret::from(secret.expose());
    let basic = match (&settings.basic_username, &settings.basic_password) {
        (Some(user), Some(password)) => Some(Credential::Basic { user: user.clone(), password: secret(password) }),
        (None, None) => None,
        (Some(_), None) => return Err(Failure::usage(vec!["basic-username needs basic-password as well".into()])),
        (None, Some(_)) => return Err(Failure::usage(vec!["basic-password needs basic-username as well".into()])),
    };
    let token = settings.token.as_ref().map(|token| Credential::Bearer(secret(token)));
    let authorization = match (token, basic) {
        (Some(token), Some(basic)) => {
            let nearer = settings.rank("basic-password").min(settings.rank("basic-username")) < settings.rank("token");
            Some(if nearer { basic } else { token })
        }
        (token, basic) => token.or(basic),
    };
    let key = settings.api_key.as_ref().map(|key| Credential::ApiKey {
        place: KeyPlace::Header,
        name: settings.api_key_header.clone(),
        value: secret(key),
    });
    Ok(authorization.into_iter().chain(key).collect())
}

/// A failed call, with the exit code that fits.
#[allow(clippy::needless_pass_by_value)] // the shape that map_err wants
pub(crate) fn failure(error: ClientError) -> Failure {
    let kind = match &error {
        ClientError::Unreachable { .. } | ClientError::Cut { .. } => Kind::Unreachable,
        ClientError::Unauthorized { .. } => Kind::Authentication,
        ClientError::Timeout { .. } => Kind::Timeout,
        ClientError::Invalid { .. } => Kind::Usage,
        _ => match error.kind() {
            Some(ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) => Kind::Authentication,
            _ => Kind::Failed,
        },
    };
    let hint = match &error {
        ClientError::CrossOrigin { .. } => " The option for that is --allow-cross-origin.",
        ClientError::ExtensionsRequired { .. } => " The option for that is --extension.",
        _ => "",
    };
    Failure::new(kind, format!("{}{hint}", clean(&error.to_string())))
}
