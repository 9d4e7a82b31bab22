//! The configuration: one YAML file, environment variables and flags, made into one [`Config`].
//!
//! ```text
//! flags, environment, file, profile, defaults -> layers -> keys and kinds -> check -> Config
//! ```

mod address;
mod agents;
mod bus;
mod card;
mod check;
pub(crate) mod choice;
mod coding_agent;
pub(crate) mod door;
mod entry;
mod expand;
mod keys;
pub(crate) mod kind;
mod kind_of_agent;
pub(crate) mod layers;
pub(crate) mod list;
mod nearest;
pub(crate) mod node;
pub(crate) mod problem;
mod profile;
pub(crate) mod record;
mod schema;
mod secret;
pub(crate) mod signing;
#[cfg(test)]
mod tests;
mod transport;
mod types;
mod units;

use std::path::{Path, PathBuf};

use crate::cli::ServeArgs;
use crate::failure::Failure;

pub(crate) use keys::Config;
pub(crate) use layers::Sources;
pub(crate) use schema::schema;
pub(crate) use secret::{Secret, masked};
#[allow(unused_imports, reason = "the types of public fields")]
pub(crate) use types::{
    AgentEntry, AgentKind, Bus, Caller, CardFormat, Durability, ExtendedCard, Extension, IdempotentSend, LogFormat,
    NamedToken, PromptBy, PushBackend, PushEvents, Skill, Store, Thinking, TokenSource, Transport, Variable,
};

pub(crate) use problem::Source;

use layers::{Environment, Layers};
use problem::{Origin, Problem};

/// No configuration that a person writes is larger.
const LARGEST_FILE: u64 = 1024 * 1024;

/// A configuration, and what is to be said about it.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) config: Config,
    /// Where each value came from.
    pub(crate) sources: Sources,
    /// What looks like a mistake but stops nothing.
    pub(crate) warnings: Vec<String>,
}

/// Loads the configuration that these arguments and the environment ask for.
pub(crate) fn load(args: &ServeArgs) -> Result<Loaded, Failure> {
    let file = match &args.config {
        Some(path) => Some((path.clone(), read_file(path)?)),
        None => None,
    };
    let inputs = Inputs {
        settings: args.settings(),
        command: &args.command,
        file: file.as_ref().map(|(path, text)| (path.clone(), text.as_str())),
        environment: Environment::of_process(),
    };
    let loaded = resolve(inputs).map(|mut loaded| {
        loaded.config.file.clone_from(&args.config);
        loaded
    });
    loaded.map_err(|problems| Failure::usage(problems.into_iter().map(|problem| problem.text).collect()))
}

pub(crate) fn read_file(path: &Path) -> Result<String, Failure> {
    use std::io::Read;

    let shown = path.display();
    let refuse = |message: String| Failure::usage(vec![message]);
    let mut bytes = Vec::new();
    std::fs::File::open(path)
        .and_then(|file| file.take(LARGEST_FILE + 1).read_to_end(&mut bytes))
        .map_err(|error| refuse(format!("cannot read the configuration file `{shown}`: {error}")))?;
    if bytes.len() as u64 > LARGEST_FILE {
        return Err(refuse(format!("the configuration file `{shown}` is larger than 1 MiB")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let valid = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = 1 + valid.iter().filter(|byte| **byte == b'\n').count();
        refuse(format!("the configuration file `{shown}` is not UTF-8 text, see line {line}"))
    })
}

/// What is wrong with the value of a key, and where that is.
pub(crate) fn problem_at(sources: &Sources, key: &'static str, message: &str) -> String {
    check::spot(sources, key).problem(message).text
}

/// Everything that has a say.
struct Inputs<'a> {
    settings: Vec<(&'static str, Vec<String>)>,
    command: &'a [String],
    file: Option<(PathBuf, &'a str)>,
    environment: Environment,
}

/// Puts the layers together and reads the configuration out of them, or says all that is wrong,
/// in the order of the file.
fn resolve(inputs: Inputs<'_>) -> Result<Loaded, Vec<Problem>> {
    let Inputs { mut settings, command, file, environment } = inputs;
    let (mut problems, mut warnings, mut sources) = (Vec::new(), Vec::new(), Sources::new());
    if !command.is_empty() {
        settings.push(("command", command.to_vec()));
    }
    let mut stack = vec![layers::flags(settings), layers::environment(&environment, &mut problems, &mut warnings)];
    if let Some((path, text)) = file {
        let origin = Origin::File(path);
        stack.push(layers::document(text, &origin, &environment, &mut problems));
    }
    stack.push(layers::defaults());
    let mut layers = Layers { layers: stack, home: environment.home.as_deref() };
    profile::add(&mut layers, &environment, &mut problems);
    let config = Config::read(&layers, &mut sources, &mut problems);
    let config = config.map(|mut config| {
        kind_of_agent::choose(&mut config, &mut sources);
        kind_of_agent::inherit(&mut config);
        coding_agent::apply(&mut config, &sources, &environment, &mut problems);
        check::check(&mut config, &sources, &mut problems);
        config
    });
    match config {
        Some(config) if problems.is_empty() => Ok(Loaded { config, sources, warnings }),
        _ => {
            problems.sort_by_key(|problem| problem.line);
            Err(problems)
        }
    }
}
