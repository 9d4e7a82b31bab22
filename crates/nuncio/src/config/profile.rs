//! Profiles: files of defaults. Some ship inside the binary; anybody can write another.
//!
//! A profile has the keys of a configuration, and `extends` with the profile whose values hold where it has none.

use serde_json::{Value as Json, json};

use super::Problem;
use super::expand::expand_home;
use super::kind::{Kind, Text, fail};
use super::layers::{self, Environment, Layer, Layers, Sources};
use super::node::Node;
use super::problem::{Origin, Spot};

/// The profiles that everybody has, by name.
const SHIPPED: [(&str, &str); 5] = [
    ("nuncio", include_str!("../../profiles/nuncio.yaml")),
    ("iac-code", include_str!("../../profiles/iac-code.yaml")),
    ("proto-agent", include_str!("../../profiles/proto-agent.yaml")),
    ("liquid-crypto", include_str!("../../profiles/liquid-crypto.yaml")),
    ("coding-agent", include_str!("../../profiles/coding-agent.yaml")),
];

/// So many profiles may extend one another.
const LONGEST_CHAIN: usize = 8;

/// The name of a profile that ships, or the path of a file.
pub(crate) struct ProfileName;

fn names() -> Vec<&'static str> {
    SHIPPED.iter().map(|(name, _)| *name).collect()
}

fn is_path(name: &str) -> bool {
    name.contains('/') || name.ends_with(".yaml") || name.ends_with(".yml")
}

impl Kind for ProfileName {
    type Value = String;

    fn read(&self, node: &Node, spot: &Spot<'_>, problems: &mut Vec<Problem>) -> Option<String> {
        let name = Text.read(node, spot, problems)?;
        if is_path(&name) || names().contains(&name.as_str()) {
            return Some(name);
        }
        let known = names().join(", ");
        let message = format!("unknown profile `{name}`; supported values: {known}, or the path of a file");
        fail(problems, spot.problem(message))
    }

    fn show(&self, value: &String) -> Json {
        value.as_str().into()
    }

    fn schema(&self) -> Json {
        json!({"type": "string", "minLength": 1, "examples": names()})
    }
}

/// Puts the layers of the chosen profile, and of those that it extends, below the file and above the defaults.
pub(super) fn add(layers: &mut Layers<'_>, environment: &Environment, problems: &mut Vec<Problem>) {
    // A wrong name is reported when the key is read with all others.
    let mut wanted = layers.resolve("profile", &ProfileName, &mut Sources::new(), &mut Vec::new());
    let mut beside = std::path::PathBuf::new();
    let mut chain: Vec<Layer> = Vec::new();
    while let Some(name) = wanted.take() {
        if chain.len() == LONGEST_CHAIN {
            let text = format!("profile {name}: too many profiles extend one another, or they do so in a circle");
            problems.push(Problem { line: None, text });
            break;
        }
        let mut layer = match SHIPPED.iter().find(|(known, _)| *known == name) {
            Some((_, text)) => read(text, &name, environment, problems),
            None => {
                let path = match expand_home(&name, environment.home.as_deref()) {
                    Ok(path) => beside.join(path),
                    Err(message) => {
                        problems.push(Problem { line: None, text: format!("profile {name}: {message}") });
                        break;
                    }
                };
                let text = match super::read_file(&path) {
                    Ok(text) => text,
                    Err(failure) => {
                        let text = format!("profile {name}: {failure}");
                        problems.push(Problem { line: None, text });
                        break;
                    }
                };
                beside = path.parent().unwrap_or(&path).to_owned();
                read(&text, &path.to_string_lossy(), environment, problems)
            }
        };
        if let Some(entry) = layer.remove("extends") {
            wanted = entry.read("extends", &ProfileName, layers.home, problems);
        }
        chain.push(layer);
    }
    let above_defaults = layers.layers.len().saturating_sub(1);
    layers.layers.splice(above_defaults..above_defaults, chain);
}

fn read(text: &str, name: &str, environment: &Environment, problems: &mut Vec<Problem>) -> Layer {
    let mut keys = layers::spellings();
    // It would be read too late.
    keys.retain(|(_, key)| *key != "profile");
    keys.push(("extends", "extends"));
    layers::document_of(&keys, text, &Origin::Profile(name.to_owned()), environment, problems)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::problem::Source;
    use super::super::{Inputs, Loaded, resolve};
    use super::*;

    fn load(profile: &str) -> Result<Loaded, Vec<String>> {
        let loaded = resolve(Inputs {
            settings: vec![("profile", vec![profile.to_owned()])],
            command: &[],
            file: None,
            environment: Environment { home: Some("/home/me".into()), ..Environment::default() },
        });
        loaded.map_err(|problems| problems.into_iter().map(|problem| problem.text).collect())
    }

    fn write(folder: &Path, name: &str, text: &str) -> String {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        path.to_string_lossy().into_owned()
    }

    #[test]
    fn everything_that_ships_is_valid() {
        for name in names() {
            let loaded = load(name).unwrap();
            assert_eq!(loaded.config.profile, name);
        }
        assert_eq!(load("iac-code").unwrap().config.data_dir, Path::new("/home/me/.iac-code/a2a"));
    }

    #[test]
    fn a_profile_of_ones_own_extends_another_and_overrules_it() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "base.yaml", "extends: iac-code\nretention: 1d\nport: 7000\n");
        let mine = write(folder.path(), "mine.yaml", "extends: base.yaml\nport: 7001\n");
        let loaded = load(&mine).unwrap();
        assert_eq!((loaded.config.port, loaded.config.name.as_deref()), (7001, Some("iac-code")));
        assert_eq!(loaded.config.retention.as_secs(), 86_400);
        let source = |key| loaded.sources[key].clone();
        assert_eq!(source("port"), Source { origin: Origin::Profile(mine), line: Some(2) });
        assert_eq!(source("name").origin, Origin::Profile("iac-code".into()));
    }

    #[test]
    fn mistakes_are_told() {
        let folder = tempfile::tempdir().unwrap();
        let circle = write(folder.path(), "circle.yaml", "extends: ./circle.yaml");
        assert!(load(&circle).unwrap_err()[0].contains("circle"));
        let nested = write(folder.path(), "nested.yaml", "profile: iac-code");
        assert!(load(&nested).unwrap_err()[0].contains("unknown key `profile`"));
        let wrong = write(folder.path(), "wrong.yaml", "extends: nobody");
        assert!(load(&wrong).unwrap_err()[0].contains("unknown profile `nobody`"));
        assert!(load("./missing.yaml").unwrap_err()[0].contains("missing.yaml"));
        assert!(load("iac").unwrap_err()[0].contains("iac-code"));
    }
}
