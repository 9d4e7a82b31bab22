//! `nuncio config check | show | schema`.

use serde_json::{Map, Value as Json};

use crate::cli::{ConfigArgs, ConfigCommand, ServeArgs, ShowOutput};
use crate::commands::serve;
use crate::config::{self, Loaded};
use crate::failure::Failure;
use crate::output;

/// Runs the command.
pub(crate) async fn run(args: &ConfigArgs) -> Result<(), Failure> {
    match &args.command {
        ConfigCommand::Check(args) => check(args),
        ConfigCommand::Show(args) => {
            let loaded = config::load(&args.serve)?;
            output::warn(&loaded.warnings);
            let text = match args.output {
                ShowOutput::Table => table(&loaded),
                ShowOutput::Json => json(&loaded)?,
                ShowOutput::Yaml => yaml(&loaded)?,
            };
            output::print(&text)
        }
        ConfigCommand::Schema => output::print(&pretty(&config::schema())?),
    }
}

fn check(args: &ServeArgs) -> Result<(), Failure> {
    let Loaded { config, sources, warnings } = config::load(args)?;
    output::warn(&warnings);
    let refusals = serve::check::refusals(&config);
    if !refusals.is_empty() {
        let told = refusals.into_iter().map(|(key, text)| config::problem_at(&sources, key, &text));
        return Err(Failure::usage(told.collect()));
    }
    let who = match config.callers.len() {
        0 => "everybody may call".to_owned(),
        1 => "1 caller".to_owned(),
        many => format!("{many} callers"),
    };
    let (host, port) = (&config.host, config.port);
    let address = if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") };
    output::print(&format!("The configuration is valid: {address}, {who}.\n"))
}

/// One line per key: key, value, where it comes from.
fn table(loaded: &Loaded) -> String {
    let mut rows = vec![["KEY", "VALUE", "SOURCE"].map(str::to_owned)];
    for (key, value) in loaded.config.values() {
        let value = match value {
            Json::Null => "-".to_owned(),
            Json::String(text) => text,
            other => other.to_string(),
        };
        rows.push([key.to_owned(), value, source(loaded, key)]);
    }
    let width = |column: usize| {
        let widths = rows.iter().map(|row| row[column].chars().count());
        // One long value does not push the sources of all others off the screen.
        widths.filter(|width| *width <= 40).max().unwrap_or_default()
    };
    let (first, second) = (width(0), width(1));
    rows.iter().map(|[key, value, source]| format!("{key:first$}  {value:second$}  {source}\n")).collect()
}

/// An object per key.
fn json(loaded: &Loaded) -> Result<String, Failure> {
    let mut all = Map::new();
    for (key, value) in loaded.config.values() {
        let mut entry = Map::from_iter([("value".to_owned(), value)]);
        if let Some(Json::Object(source)) = loaded.sources.get(key).map(config::Source::to_json) {
            entry.extend(source);
        }
        all.insert(key.to_owned(), entry.into());
    }
    pretty(&Json::Object(all))
}

/// A file that says the same, with the origin of each value as a comment.
fn yaml(loaded: &Loaded) -> Result<String, Failure> {
    let mut text = String::new();
    for (key, value) in loaded.config.values() {
        let source = source(loaded, key).replace(char::is_control, " ");
        if value.is_null() {
            text.push_str(&format!("# {source}\n# {key}: not set\n"));
            continue;
        }
        let entry = Json::Object(Map::from_iter([(key.to_owned(), value)]));
        let entry = serde_saphyr::to_string(&entry)
            .map_err(|error| Failure::failed(format!("cannot write `{key}` as YAML: {error}")))?;
        text.push_str(&format!("# {source}\n{}\n", entry.trim_end()));
    }
    Ok(text)
}

fn source(loaded: &Loaded, key: &str) -> String {
    let source = loaded.sources.get(key);
    source.map_or_else(|| "default".to_owned(), ToString::to_string)
}

fn pretty(value: &Json) -> Result<String, Failure> {
    let text = serde_json::to_string_pretty(value).map_err(anyhow::Error::from)?;
    Ok(text + "\n")
}
