//! Command lines to go on with, as a person would type them. They hold no credentials.

use super::settings::Settings;

/// The beginning of such lines.
#[derive(Clone, Debug)]
pub(crate) struct Again {
    config: Option<String>,
    options: Vec<(&'static str, String)>,
}

impl Again {
    /// For the agent at `address`.
    pub(crate) fn new(settings: &Settings, address: &str) -> Self {
        let config = settings.config.as_ref().map(|path| path.display().to_string());
        let mut options = Vec::new();
        // What the file says need not be repeated.
        if settings.url.as_deref() != Some(address) || settings.rank("url") < 2 {
            options.push(("--url", address.to_owned()));
        }
        if let (0, Some(tenant)) = (settings.rank("tenant"), &settings.tenant) {
            options.push(("--tenant", tenant.clone()));
        }
        Self { config, options }
    }

    /// A line with this command and these options.
    pub(crate) fn line(&self, command: &str, more: &[(&str, &str)]) -> String {
        let mut line = String::from("nuncio client");
        let config = self.config.iter().map(|path| ("--config", path.as_str()));
        for (option, value) in config {
            line.push_str(&format!(" {option} {}", quote(value)));
        }
        line.push_str(&format!(" {command}"));
        let options = self.options.iter().map(|(option, value)| (*option, value.as_str()));
        for (option, value) in options.chain(more.iter().copied()) {
            line.push_str(&format!(" {option} {}", quote(value)));
        }
        line
    }
}

/// A word as a shell reads it.
pub(crate) fn quote(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_quoted_where_a_shell_needs_it() {
        assert_eq!(quote("http://127.0.0.1:1/"), "http://127.0.0.1:1/");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(quote(""), "''");
    }
}
