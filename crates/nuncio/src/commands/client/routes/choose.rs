//! Which route a call takes, and why.

use super::Route;

/// What a route is looked for by. The first that is given decides; the prompt also decides between several
/// routes with the same skill.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Wish<'a> {
    pub(crate) name: Option<&'a str>,
    pub(crate) skill: Option<&'a str>,
    pub(crate) prompt: Option<&'a str>,
}

/// A route, and why it was taken.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Chosen<'r> {
    pub(crate) route: &'r Route,
    pub(crate) why: String,
}

/// The one route that fits, or why there is not exactly one.
pub(crate) fn choose<'r>(routes: &'r [Route], wish: &Wish<'_>) -> Result<Chosen<'r>, String> {
    if let Some(name) = wish.name {
        let named = routes.iter().find(|route| route.name == name);
        let why = "it has that name".to_owned();
        return named
            .map(|route| Chosen { route, why })
            .ok_or_else(|| format!("Unknown A2A route '{name}'. Known routes: {}", names(routes)));
    }
    if let Some(skill) = wish.skill {
        let able: Vec<_> = routes.iter().filter(|route| route.skills.iter().any(|own| own == skill)).collect();
        let why = |_: &Route| format!("it has the skill `{skill}`");
        // Between several, the prompt may decide.
        let told = wish.prompt.map(|prompt| matching(able.iter().copied(), prompt)).unwrap_or_default();
        return match (able.as_slice(), told.as_slice()) {
            ([], _) => {
                Err(format!("No A2A route matched: none has the skill '{skill}'. Known routes: {}", known(routes)))
            }
            ([route], _) => Ok(Chosen { route, why: why(route) }),
            (_, [(route, word)]) => Ok(Chosen { route, why: format!("{}, and the prompt says `{word}`", why(route)) }),
            _ => {
                let which = able.iter().map(|route| format!("{} (skill {skill})", route.name)).collect::<Vec<_>>();
                Err(tie(&which))
            }
        };
    }
    let Some(prompt) = wish.prompt else {
        return Err(format!("Say which A2A route: by name, skill or prompt. Known routes: {}", known(routes)));
    };
    let found = matching(routes.iter(), prompt);
    match found.as_slice() {
        [] => Err(format!(
            "No A2A route matched: no word of the prompt is the name or a tag of one. Known routes: {}. Name one with --route-name.",
            known(routes)
        )),
        [(route, word)] => Ok(Chosen { route, why: format!("the prompt says `{word}`") }),
        several => {
            let which = several.iter().map(|(route, word)| format!("{} (`{word}`)", route.name)).collect::<Vec<_>>();
            Err(tie(&which))
        }
    }
}

/// The routes whose name or tag is a word of the prompt, each with the first such word.
fn matching<'r>(routes: impl Iterator<Item = &'r Route>, prompt: &str) -> Vec<(&'r Route, String)> {
    let words = prompt_words(prompt);
    let said = |route: &Route| {
        let mut own: Vec<String> = route.tags.iter().map(|tag| tag.to_lowercase()).collect();
        own.push(route.name.to_lowercase());
        words.iter().find(|word| own.contains(word)).cloned()
    };
    routes.filter_map(|route| Some((route, said(route)?))).collect()
}

/// The words of a prompt in small letters, without the punctuation around them.
fn prompt_words(prompt: &str) -> Vec<String> {
    let split = prompt.split(|c: char| c.is_whitespace() || matches!(c, ',' | '.'));
    let bare = |word: &str| word.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
    // Both forms count: a tag may hold such characters itself, like `c++`.
    split.flat_map(|word| [word.to_lowercase(), bare(word)]).filter(|word| !word.is_empty()).collect()
}

fn tie(which: &[String]) -> String {
    format!("Ambiguous A2A route. Candidates: {}. Name one with --route-name.", which.join(", "))
}

fn names(routes: &[Route]) -> String {
    if routes.is_empty() {
        return "none".into();
    }
    routes.iter().map(|route| route.name.as_str()).collect::<Vec<_>>().join(", ")
}

/// The names with what each would be taken for.
fn known(routes: &[Route]) -> String {
    if routes.is_empty() {
        return "none".into();
    }
    let describe = |route: &Route| {
        let mut about = Vec::new();
        for (what, words) in [("skills", &route.skills), ("tags", &route.tags)] {
            if !words.is_empty() {
                about.push(format!("{what} {}", words.join(" ")));
            }
        }
        if about.is_empty() { route.name.clone() } else { format!("{} ({})", route.name, about.join("; ")) }
    };
    routes.iter().map(describe).collect::<Vec<_>>().join(", ")
}
