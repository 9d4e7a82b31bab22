//! Where values come from, highest first: flags, environment, file, profile, defaults.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde_json::Value as Json;

use super::expand::expand;
use super::keys::{KEYS, Key};
use super::kind::Kind;
use super::nearest::distance;
use super::node::{self, Node, Value};
use super::problem::{Origin, Problem, Source, Spot};
use super::record::{Named, check_fields};

/// Names of environment variables begin with this.
const PREFIX: &str = "NUNCIO_";

/// A key, the name of the environment variable that other programs use for the same, and how its values read here.
type OldVariable = (&'static str, &'static str, fn(&str) -> String);

const OLD_VARIABLES: [OldVariable; 24] = [
    ("push-allowed-hosts", "PUSH_NOTIFICATION_ALLOWED_HOSTS", same),
    ("push-allowed-cidrs", "PUSH_NOTIFICATION_ALLOWED_CIDRS", same),
    ("token", "IACCODE_A2A_HTTP_TOKEN", same),
    ("basic-username", "IACCODE_A2A_BASIC_USERNAME", same),
    ("basic-password", "IACCODE_A2A_BASIC_PASSWORD", same),
    ("api-key", "IACCODE_A2A_API_KEY", same),
    ("api-key-header", "IACCODE_A2A_API_KEY_HEADER", same),
    ("workspace-roots", "IACCODE_A2A_ALLOWED_CWDS", paths),
    ("safe-mode", "IAC_CODE_A2A_SAFE_MODE", truth),
    ("text-types", "IACCODE_A2A_TEXT_MIME_TYPES", same),
    ("binary-types", "IACCODE_A2A_MULTIMODAL_MIME_TYPES", same),
    ("agent", "AGENT_ADAPTER", same),
    ("model", "AGENT_MODEL", same),
    ("workspace", "AGENT_REPO_PATH", same),
    ("workspace-roots", "AGENT_ALLOWED_REPO_ROOTS", same),
    ("approval-pattern", "AGENT_APPROVAL_PATTERN", same),
    ("approval-response", "AGENT_APPROVAL_RESPONSE", same),
    ("turn-timeout", "AGENT_TIMEOUT_MS", milliseconds),
    ("silence-timeout", "AGENT_IDLE_EXIT_MS", milliseconds),
    ("auto-approve-permissions", "AGENT_FORCE", truth),
    ("context-pack", "WORKSPACE_ENABLED", truth),
    ("token", "A2A_AUTH_TOKEN", same),
    ("public-url", "A2A_PUBLIC_URL", same),
    ("allow-open", "PROTOAGENT_ALLOW_OPEN", truth),
];

fn same(text: &str) -> String {
    text.to_owned()
}

/// Paths are separated as in `PATH`.
fn paths(text: &str) -> String {
    text.replace(':', ",")
}

fn milliseconds(text: &str) -> String {
    if text.trim() == "0" { "0".to_owned() } else { format!("{}ms", text.trim()) }
}

/// `true`, `1`, `yes` and `on` in any case; everything else is not.
fn truth(text: &str) -> String {
    let yes = ["true", "1", "yes", "on"].iter().any(|word| word.eq_ignore_ascii_case(text.trim()));
    yes.to_string()
}

/// The variables and the home directory of the process.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    pub(crate) variables: BTreeMap<String, OsString>,
    pub(crate) home: Option<PathBuf>,
}

impl Environment {
    /// Those of this process.
    pub(crate) fn of_process() -> Self {
        Self {
            variables: std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .collect(),
            home: std::env::home_dir().filter(|home| !home.as_os_str().is_empty()),
        }
    }

    pub(crate) fn text(&self, name: &str) -> Option<String> {
        self.variables.get(name)?.clone().into_string().ok()
    }
}

/// Where each effective value came from. A key whose value is wrong is not in it.
pub(crate) type Sources = BTreeMap<&'static str, Source>;

/// The values of one origin.
pub(crate) type Layer = BTreeMap<&'static str, Entry>;

/// One value of one origin.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    node: Node,
    origin: Origin,
    line: Option<u64>,
}

/// All values of all origins, highest first.
#[derive(Debug)]
pub(crate) struct Layers<'a> {
    pub(crate) layers: Vec<Layer>,
    pub(crate) home: Option<&'a Path>,
}

impl Layers<'_> {
    /// Reads a key. Values that are overruled are checked as well: a mistake in the file stays a
    /// mistake while a flag hides it. If the value that counts is wrong, the next one stands in for
    /// it, so that the rules about several keys can still be checked, and no source is noted.
    pub(crate) fn resolve<K: Kind>(
        &self,
        key: &'static str,
        kind: &K,
        sources: &mut Sources,
        problems: &mut Vec<Problem>,
    ) -> Option<K::Value> {
        let mut result = None;
        let mut source = None;
        for entry in self.layers.iter().filter_map(|layer| layer.get(key)) {
            // A default that nobody needs may not fail, for want of a home directory.
            if result.is_some() && entry.origin == Origin::Default {
                break;
            }
            let spot = Spot { key: key.to_owned(), origin: &entry.origin, line: entry.line, home: self.home };
            let value = match entry.node.value {
                Value::Unreadable => None,
                _ => kind.read(&entry.node, &spot, problems),
            };
            source.get_or_insert_with(|| value.is_some().then(|| entry.source()));
            result = result.or(value);
        }
        let source = source.unwrap_or(Some(Source::DEFAULT));
        sources.extend(source.map(|source| (key, source)));
        result.or_else(|| kind.absent())
    }
}

impl Entry {
    /// A value that is no part of a file.
    pub(crate) fn loose(text: impl Into<String>, origin: Origin) -> Self {
        Self { node: Node::loose(text), origin, line: None }
    }

    /// Reads a value that belongs to one layer alone.
    pub(crate) fn read<K: Kind>(
        &self,
        key: &str,
        kind: &K,
        home: Option<&Path>,
        problems: &mut Vec<Problem>,
    ) -> Option<K::Value> {
        let spot = Spot { key: key.to_owned(), origin: &self.origin, line: self.line, home };
        kind.read(&self.node, &spot, problems)
    }

    fn source(&self) -> Source {
        Source { origin: self.origin.clone(), line: self.line }
    }
}

/// The default of a key as JSON. `~` stays `~`.
pub(crate) fn default_of<K: Kind>(kind: &K, default: Option<&'static str>) -> Option<Json> {
    let spot = Spot { key: String::new(), origin: &Origin::Default, line: None, home: Some(Path::new("~")) };
    let value = kind.read(&Node::loose(default?), &spot, &mut Vec::new())?;
    Some(kind.show(&value))
}

/// The variable that sets a key.
pub(crate) fn variable(key: &str) -> String {
    format!("{PREFIX}{}", key.replace('-', "_").to_uppercase())
}

/// The layer of the flags.
pub(crate) fn flags(settings: Vec<(&'static str, Vec<String>)>) -> Layer {
    let one = |mut values: Vec<String>| match (values.len(), values.pop()) {
        (1, Some(value)) => Node::loose(value),
        (_, last) => Node { value: Value::List(values.into_iter().chain(last).map(Node::loose).collect()), line: None },
    };
    let entry = |values| Entry { node: one(values), origin: Origin::Flag, line: None };
    let settings = settings.into_iter();
    settings.map(|(key, values)| (key, entry(values))).collect()
}

/// The layer of the environment. A variable without content is one that is not set.
pub(crate) fn environment(environment: &Environment, problems: &mut Vec<Problem>, warnings: &mut Vec<String>) -> Layer {
    let mut layer = Layer::new();
    for key in KEYS.iter().filter(|key| key.in_environment) {
        let old = OLD_VARIABLES.iter().filter(|(name, ..)| *name == key.name());
        let ours: (String, fn(&str) -> String) = (variable(key.name()), same);
        let names = std::iter::once(ours).chain(old.map(|(_, old, read)| ((*old).to_owned(), *read)));
        for (name, read) in names {
            let Some(value) = environment.variables.get(&name).filter(|value| !value.is_empty()) else {
                continue;
            };
            let Some(text) = value.to_str() else {
                let text = format!("`{name}`: the value is not UTF-8 text");
                problems.push(Problem { line: None, text });
                continue;
            };
            layer.entry(key.name()).or_insert(Entry {
                node: Node::loose(read(text)),
                origin: Origin::Environment(name),
                line: None,
            });
        }
    }
    warnings.extend(environment.variables.keys().filter_map(|name| misspelled(name)));
    layer
}

/// A warning, if a variable looks like a misspelled one of ours.
fn misspelled(name: &str) -> Option<String> {
    if !name.starts_with(PREFIX) {
        return None;
    }
    let known = KEYS.iter().filter(|key| key.in_environment).map(|key| variable(key.name()));
    // Two slips change the length by two at most.
    let near: Vec<_> = known.filter(|meant| meant.len().abs_diff(name.chars().count()) <= 2).collect();
    if near.iter().any(|known| known == name) {
        return None;
    }
    let (slips, meant) = near.into_iter().map(|meant| (distance(name, &meant), meant)).min()?;
    (slips <= 2).then(|| format!("the environment variable `{name}` is not used: did you mean `{meant}`?"))
}

/// The layer of a YAML document: the file, or a profile.
pub(crate) fn document(text: &str, origin: &Origin, environment: &Environment, problems: &mut Vec<Problem>) -> Layer {
    document_of(&spellings(), text, origin, environment, problems)
}

/// The layer of a YAML document with keys of its own.
pub(crate) fn document_of(
    names: &[Named],
    text: &str,
    origin: &Origin,
    environment: &Environment,
    problems: &mut Vec<Problem>,
) -> Layer {
    let whole = Spot { key: String::new(), origin, line: None, home: environment.home.as_deref() };
    let mut fields = match node::parse(text) {
        Ok(Node { value: Value::Map(fields), .. }) => fields,
        Ok(Node { value: Value::Null, .. }) => Vec::new(),
        Ok(node) => {
            let (place, found) = (whole.at(node.line).place(), node.found_secret());
            let text = format!("expected a mapping of keys to values{place}, found {found}");
            problems.push(Problem { line: node.line, text });
            return Layer::new();
        }
        Err(error) => {
            let place = whole.at(error.line).place();
            let text = format!("not valid YAML{place}: {}", error.message);
            problems.push(Problem { line: error.line, text });
            return Layer::new();
        }
    };
    let lookup = |name: &str| environment.text(name);
    for field in &mut fields {
        let spot = whole.child(&field.key, field.line);
        let before = problems.len();
        expand(&mut field.node, &spot, &lookup, problems);
        if problems.len() > before {
            field.node.value = Value::Unreadable;
        }
    }
    check_fields(&fields, names, &whole, problems)
        .into_iter()
        .map(|(key, field)| {
            let entry = Entry { node: field.node.clone(), origin: origin.clone(), line: field.line };
            (key, entry)
        })
        .collect()
}

/// Every spelling of every key.
pub(crate) fn spellings() -> Vec<Named> {
    let names = |key: &Key| {
        let name = key.name();
        key.names.iter().map(move |spelling| (*spelling, name))
    };
    KEYS.iter().flat_map(names).collect()
}

/// The layer of the defaults.
pub(crate) fn defaults() -> Layer {
    let entry = |default| Entry { node: Node::loose(default), origin: Origin::Default, line: None };
    KEYS.iter().filter_map(|key| Some((key.name(), entry(key.default?)))).collect()
}
