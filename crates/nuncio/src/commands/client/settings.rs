//! The settings of a client: flags, environment, file and defaults, made into one [`Settings`].

use std::path::{Path as FilePath, PathBuf};
use std::time::Duration;

use nuncio_client::{Binding, Version};
use nuncio_protocol::{Metadata, TaskState};

use super::args::Given;
use super::kinds::{JsonObject, Number, Password, RouteList, Seconds, State, Words};
use super::routes::Route;
use crate::config::choice::Choice;
use crate::config::kind::{Flag, Maybe, Path, SecretText, Text};
use crate::config::layers::{self, Entry, Environment, Layer, Layers, Sources};
use crate::config::problem::{Origin, Problem, Source};
use crate::config::record::Named;
use crate::config::{Secret, read_file};
use crate::failure::Failure;

/// The form of what goes to stdout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Table,
    Json,
}

const OUTPUTS: Choice<Output> =
    Choice { what: "form of output", names: &[("table", Output::Table), ("json", Output::Json)] };

const BINDINGS: Choice<Binding> = Choice {
    what: "transport",
    names: &[
        ("jsonrpc", Binding::JsonRpc),
        ("rest", Binding::Rest),
        ("JSONRPC", Binding::JsonRpc),
        ("HTTP+JSON", Binding::Rest),
        ("grpc", Binding::Grpc),
        ("GRPC", Binding::Grpc),
        ("grpc-jsonrpc", Binding::GrpcJsonRpc),
        ("redis-streams", Binding::RedisStreams),
        ("websocket", Binding::WebSocket),
        ("unix", Binding::Unix),
    ],
};

const VERSIONS: Choice<Version> = Choice { what: "version", names: &[("1.0", Version::V1_0), ("0.3", Version::V0_3)] };

/// Variables of iac-code that mean the same, by key.
const OLD_VARIABLES: [(&str, &str); 5] = [
    ("token", "IACCODE_A2A_HTTP_TOKEN"),
    ("basic-username", "IACCODE_A2A_BASIC_USERNAME"),
    ("basic-password", "IACCODE_A2A_BASIC_PASSWORD"),
    ("api-key", "IACCODE_A2A_API_KEY"),
    ("api-key-header", "IACCODE_A2A_API_KEY_HEADER"),
];

macro_rules! settings {
    ($( [$($name:literal),+] $field:ident: $type:ty, $kind:expr $(, $default:literal)?; )*) => {
        /// What a client is to do, and how.
        #[derive(Clone, Debug)]
        pub(crate) struct Settings {
            $( pub(crate) $field: $type, )*
            /// Where each value came from.
            pub(crate) sources: Sources,
            /// The file.
            pub(crate) config: Option<PathBuf>,
        }

        /// Every spelling of every key.
        const NAMES: &[&[&str]] = &[$(&[$($name),+]),*];

        /// The defaults, by key.
        const DEFAULTS: &[(&str, Option<&str>)] = &[$(([$($name),+][0], settings!(@default $($default)?))),*];

        impl Settings {
            fn read(layers: &Layers<'_>, config: Option<PathBuf>, problems: &mut Vec<Problem>) -> Option<Self> {
                let mut sources = Sources::new();
                $( let $field = layers.resolve([$($name),+][0], &$kind, &mut sources, problems); )*
                Some(Self { $( $field: $field?, )* sources, config })
            }
        }
    };
    (@default) => { None };
    (@default $default:literal) => { Some($default) };
}

settings! {
    ["url"] url: Option<String>, Maybe(Text);
    ["token"] token: Option<Secret>, Maybe(SecretText);
    ["basic-username"] basic_username: Option<String>, Maybe(Text);
    ["basic-password"] basic_password: Option<Secret>, Maybe(Password);
    ["api-key"] api_key: Option<Secret>, Maybe(SecretText);
    ["api-key-header"] api_key_header: String, Text, "X-API-Key";
    ["verify-card-secret", "signing-secret"] verify_card_secret: Option<Secret>, Maybe(Password);
    ["verify-card-jwks-url"] verify_card_jwks_url: Option<String>, Maybe(Text);
    ["verify-card-jwks"] verify_card_jwks: Option<PathBuf>, Maybe(Path);
    ["require-card-signature", "require-signature"] require_card_signature: bool, Flag, "false";
    ["timeout"] timeout: Duration, Seconds, "30";
    ["transport"] transport: Option<Binding>, Maybe(BINDINGS);
    ["a2a-version"] a2a_version: Option<Version>, Maybe(VERSIONS);
    ["tenant"] tenant: Option<String>, Maybe(Text);
    ["extensions", "extension"] extensions: Vec<String>, Words;
    ["allow-cross-origin"] allow_cross_origin: bool, Flag, "false";
    ["output"] output: Output, OUTPUTS, "table";
    ["prompt"] prompt: Option<String>, Maybe(Text);
    ["metadata"] metadata: Metadata, JsonObject;
    ["cwd"] cwd: Option<PathBuf>, Maybe(Path);
    ["context-id"] context_id: Option<String>, Maybe(Text);
    ["task-id"] task_id: Option<String>, Maybe(Text);
    ["stream"] stream: bool, Flag, "false";
    ["save"] save: Option<PathBuf>, Maybe(Path);
    ["history-length"] history_length: Option<i32>, Maybe(Number { min: 0, max: i32::MAX });
    ["status"] status: Option<TaskState>, Maybe(State);
    ["page-size"] page_size: Option<i32>, Maybe(Number { min: 1, max: 100 });
    ["page-token"] page_token: Option<String>, Maybe(Text);
    ["include-artifacts"] include_artifacts: bool, Flag, "false";
    ["config-id"] config_id: Option<String>, Maybe(Text);
    ["callback-url"] callback_url: Option<String>, Maybe(Text);
    ["notification-token"] notification_token: Option<Secret>, Maybe(Password);
    ["auth-scheme"] auth_scheme: Option<String>, Maybe(Text);
    ["auth-credentials"] auth_credentials: Option<Secret>, Maybe(Password);
    ["routes", "route"] routes: Vec<Route>, RouteList;
    ["route-name"] route_name: Option<String>, Maybe(Text);
    ["skill"] skill: Option<String>, Maybe(Text);
    ["route-state-dir", "persistence-dir"] route_state_dir: Option<PathBuf>, Maybe(Path);
}

/// Keys that make no sense outside of one command line or file.
const NOT_IN_ENVIRONMENT: [&str; 10] = [
    "prompt",
    "metadata",
    "context-id",
    "task-id",
    "config-id",
    "status",
    "page-token",
    "include-artifacts",
    "routes",
    "stream",
];

impl Settings {
    /// Loads what these flags, this file and the environment of the process say.
    pub(crate) fn load(config: Option<&FilePath>, given: Given) -> Result<Self, Failure> {
        let file = match config {
            Some(path) => Some((path.to_owned(), read_file(path)?)),
            None => None,
        };
        Self::from(given, file, &Environment::of_process()).map_err(Failure::usage)
    }

    fn from(given: Given, file: Option<(PathBuf, String)>, environment: &Environment) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        // Routes of the command line come before those of the file instead of replacing them.
        let mut stack = vec![layers::flags(given), variables(environment, &mut problems)];
        let config = file.as_ref().map(|(path, _)| path.clone());
        if let Some((path, text)) = file {
            let names: Vec<Named> = NAMES.iter().flat_map(|names| names.iter().map(|name| (*name, names[0]))).collect();
            stack.push(layers::document_of(&names, &text, &Origin::File(path), environment, &mut problems));
        }
        let default = |text: &'static str| Entry::loose(text, Origin::Default);
        stack.push(DEFAULTS.iter().filter_map(|(key, text)| Some((*key, default((*text)?)))).collect());
        let layers = Layers { layers: stack, home: environment.home.as_deref() };
        let settings = Self::read(&layers, config, &mut problems);
        match settings {
            Some(mut settings) if problems.is_empty() => {
                settings.add_routes_of_file(&layers);
                Ok(settings)
            }
            _ => {
                problems.sort_by_key(|problem| problem.line);
                Err(problems.into_iter().map(|problem| problem.text).collect())
            }
        }
    }

    fn add_routes_of_file(&mut self, layers: &Layers<'_>) {
        for layer in &layers.layers {
            let alone = Layers { layers: vec![layer_with(layer, "routes")], home: layers.home };
            // Read before, so nothing is wrong with them.
            let routes = alone.resolve("routes", &RouteList, &mut Sources::new(), &mut Vec::new());
            for route in routes.into_iter().flatten() {
                if !self.routes.iter().any(|known| known.name == route.name) {
                    self.routes.push(route);
                }
            }
        }
    }

    /// Whether somebody set this key.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        self.rank(key) < DEFAULT_RANK
    }

    /// How near to the person the value of a key was set: 0 on the command line.
    pub(crate) fn rank(&self, key: &str) -> u8 {
        match self.sources.get(key).map(|source: &Source| &source.origin) {
            Some(Origin::Flag) => 0,
            Some(Origin::Environment(_)) => 1,
            Some(Origin::File(_)) => 2,
            _ => DEFAULT_RANK,
        }
    }

    /// A value that this command cannot do without.
    pub(crate) fn need<'a>(value: Option<&'a String>, key: &str) -> Result<&'a str, Failure> {
        let missing = || Failure::usage(vec![format!("{key} is required. Provide --{key} or {key} in --config.")]);
        value.map(String::as_str).ok_or_else(missing)
    }

    pub(crate) fn is_json(&self) -> bool {
        self.output == Output::Json
    }
}

const DEFAULT_RANK: u8 = 3;

fn layer_with(layer: &Layer, key: &'static str) -> Layer {
    layer.get(key).map(|entry| (key, entry.clone())).into_iter().collect()
}

/// The layer of the environment. A variable without content is one that is not set.
fn variables(environment: &Environment, problems: &mut Vec<Problem>) -> Layer {
    let mut layer = Layer::new();
    for key in NAMES.iter().map(|names| names[0]).filter(|key| !NOT_IN_ENVIRONMENT.contains(key)) {
        let old = OLD_VARIABLES.iter().filter(|(name, _)| *name == key).map(|(_, old)| (*old).to_owned());
        for name in std::iter::once(layers::variable(key)).chain(old) {
            match environment.variables.get(&name).filter(|value| !value.is_empty()).map(|value| value.to_str()) {
                None => {}
                Some(Some(text)) if key == "transport" && is_of_server(text) => {}
                Some(Some(text)) => {
                    layer.entry(key).or_insert_with(|| Entry::loose(text, Origin::Environment(name)));
                }
                Some(None) => {
                    problems.push(Problem { line: None, text: format!("`{name}`: the value is not UTF-8 text") });
                }
            }
        }
    }
    layer
}

/// A server next door may be configured by the same variable; what only a server can be told is not meant here.
fn is_of_server(transport: &str) -> bool {
    transport.contains([',', ';']) || transport.trim().eq_ignore_ascii_case("http")
}

#[cfg(test)]
mod tests;
