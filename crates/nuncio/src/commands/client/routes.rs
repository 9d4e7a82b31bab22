//! Routes: agents by name, skill or the words of a prompt.
//!
//! * here: what a route is, and the ways to write one down;
//! * [`choose`]: which route a call takes, and why;
//! * [`saved`]: routes that were saved for later calls.

pub(super) mod choose;
pub(super) mod saved;
#[cfg(test)]
mod tests;

use std::fmt;

use nuncio_protocol::Value as Json;
use serde::Serialize;

/// An agent and what it is good for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Route {
    pub(crate) name: String,
    pub(crate) skills: Vec<String>,
    pub(crate) tags: Vec<String>,
    pub(crate) url: String,
}

/// The form that [`parse`] reads.
impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.name, self.url)?;
        for (key, words) in [("skills", &self.skills), ("tags", &self.tags)] {
            if !words.is_empty() {
                write!(f, ";{key}={}", words.join(","))?;
            }
        }
        Ok(())
    }
}

/// Reads `name=url;skills=a,b;tags=x,y`, or the older `name=url;skill;tag1,tag2`.
pub(crate) fn parse(text: &str) -> Result<Route, String> {
    let mut segments = text.split(';');
    let first = segments.next().unwrap_or_default();
    let (name, url) = first.split_once('=').ok_or("A2A route must start with name=url.")?;
    let mut route = Route { name: name.trim().into(), url: url.trim().into(), ..Route::default() };
    let mut unnamed = 0;
    for segment in segments {
        if segment.trim().is_empty() {
            // An empty place still counts in the older form: `name=url;;tag`.
            unnamed += 1;
            continue;
        }
        match segment.split_once('=').map(|(key, value)| (key.trim(), value)) {
            Some(("skills", value)) => route.skills.extend(words(value)),
            Some(("tags", value)) => route.tags.extend(words(value)),
            Some((key, _)) => return Err(format!("Unknown A2A route segment '{key}'. Expected skills or tags.")),
            None => {
                match unnamed {
                    0 => route.skills.extend(words(segment)),
                    1 => route.tags.extend(words(segment)),
                    _ => return Err("An A2A route has a name and URL, skills and tags, and nothing else.".into()),
                }
                unnamed += 1;
            }
        }
    }
    check(route)
}

/// Reads `{name, url, skills, tags}`; skills and tags are lists or texts with commas.
pub(crate) fn from_json(value: &Json) -> Result<Route, String> {
    let Json::Object(fields) = value else {
        return Err("A2A client route config entries require name and url.".into());
    };
    let mut route = Route::default();
    for (key, value) in fields {
        let text = || value.as_str().map(|text| text.trim().to_owned()).ok_or(format!("`{key}` is not text"));
        match key.as_str() {
            "name" => route.name = text()?,
            "url" => route.url = text()?,
            "skills" => route.skills = word_list(key, value)?,
            "tags" => route.tags = word_list(key, value)?,
            _ => return Err(format!("unknown key `{key}`: known are `name`, `url`, `skills`, `tags`")),
        }
    }
    if route.name.is_empty() || route.url.is_empty() {
        return Err("A2A client route config entries require name and url.".into());
    }
    check(route)
}

fn word_list(key: &str, value: &Json) -> Result<Vec<String>, String> {
    let wrong = || format!("`{key}` is neither a list of texts nor one text with commas");
    match value {
        Json::Null => Ok(Vec::new()),
        Json::String(text) => Ok(words(text)),
        Json::Array(items) => items
            .iter()
            .map(|item| item.as_str().map(|text| text.trim().to_owned()).ok_or_else(wrong))
            .filter(|word| word.as_ref().is_ok_and(|word| !word.is_empty()) || word.is_err())
            .collect(),
        _ => Err(wrong()),
    }
}

/// The words of a text with commas.
pub(crate) fn words(text: &str) -> Vec<String> {
    text.split(',').map(|word| word.trim().to_owned()).filter(|word| !word.is_empty()).collect()
}

fn check(route: Route) -> Result<Route, String> {
    if route.name.is_empty() || route.url.is_empty() {
        return Err("A2A route name and URL are required.".into());
    }
    let uri: Option<http::Uri> = route.url.parse().ok();
    let is_http = uri.is_some_and(|uri| matches!(uri.scheme_str(), Some("http" | "https")) && uri.host().is_some());
    // Not repeated: an address may hold a password.
    if !is_http {
        return Err(format!("the URL of route `{}` is not an http or https address", route.name));
    }
    Ok(route)
}
