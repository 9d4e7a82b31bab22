//! The served agents, and which of them gets a message.

use std::sync::Arc;

use nuncio_protocol::{Message, Metadata, Value};

use crate::agent::Agent;
use crate::agent::process::classify::{Profile, classify};
use crate::store::Scope;

/// One of the served agents.
#[derive(Clone)]
pub struct Served {
    /// Its name in the store.
    pub name: Arc<str>,
    /// The agent itself.
    pub agent: Arc<dyn Agent>,
    /// The tenant that it serves; without one, all that no other agent serves.
    pub tenant: Option<Arc<str>>,
    /// The kind of work that it is meant for.
    pub profile: Option<Profile>,
}

/// The served agents. There is always one.
#[derive(Clone)]
pub struct Roster {
    first: Served,
    others: Vec<Served>,
}

impl Roster {
    /// One agent for everything.
    pub fn one(name: impl Into<Arc<str>>, agent: Arc<dyn Agent>) -> Self {
        Self { first: Served { name: name.into(), agent, tenant: None, profile: None }, others: Vec::new() }
    }

    /// These agents; `None` if there are none.
    pub fn new(agents: impl IntoIterator<Item = Served>) -> Option<Self> {
        let mut agents = agents.into_iter();
        Some(Self { first: agents.next()?, others: agents.collect() })
    }

    /// The one for whoever asks for none in particular.
    pub fn first(&self) -> &Served {
        &self.first
    }

    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &Served> {
        std::iter::once(&self.first).chain(&self.others)
    }

    /// The agent of that name.
    pub(crate) fn get(&self, name: &str) -> Option<&Served> {
        self.all().find(|served| *served.name == *name)
    }

    /// Whether an extension is one that an agent declares by itself.
    pub(crate) fn is_for_an_agent(&self, uri: &str) -> bool {
        let declares = |served: &Served| served.agent.card().capabilities.extensions.iter().any(|e| e.uri == uri);
        self.all().any(declares)
    }

    /// Whether a message could go to more than one of them.
    pub(crate) fn is_several(&self) -> bool {
        !self.others.is_empty()
    }

    /// Those that serve a tenant.
    pub(crate) fn of_tenant(&self, tenant: &str) -> Vec<&Served> {
        let own: Vec<&Served> = self.all().filter(|served| served.tenant.as_deref() == Some(tenant)).collect();
        if own.is_empty() { self.all().filter(|served| served.tenant.is_none()).collect() } else { own }
    }

    /// Those that serve any of these tenants.
    pub(crate) fn of_any<'a>(&self, tenants: impl Iterator<Item = &'a str>) -> Vec<&Served> {
        let able: Vec<&Served> = tenants.flat_map(|tenant| self.of_tenant(tenant)).collect();
        self.all().filter(|served| able.iter().any(|able| std::ptr::eq(*able, *served))).collect()
    }

    /// The agent for a new task: by tenant, then by the skill or profile that the request names, then the
    /// one that the conversation is with, then by what the words sound like, then the first.
    pub(crate) fn choose(
        &self,
        scope: &Scope,
        request: &Metadata,
        message: &Message,
        talking_to: Option<&str>,
    ) -> Option<&Served> {
        let able = self.of_tenant(&scope.tenant);
        let (first, several) = (able.first().copied()?, able.len() > 1);
        if !several {
            return Some(first);
        }
        let by_skill = || {
            let skill = named(request, message, "skill").or_else(|| named(request, message, "skillHint"))?;
            able.iter().find(|served| served.agent.card().skills.iter().any(|known| known.id == skill)).copied()
        };
        let with_profile = |profile: Profile| able.iter().find(|served| served.profile == Some(profile)).copied();
        let by_profile = || with_profile(named(request, message, "profile")?.parse().ok()?);
        let by_talk = || able.iter().find(|served| Some(&*served.name) == talking_to).copied();
        let by_words = || with_profile(classify(&message.text()));
        by_skill().or_else(by_profile).or_else(by_talk).or_else(by_words).or(Some(first))
    }
}

fn named<'a>(request: &'a Metadata, message: &'a Message, key: &str) -> Option<&'a str> {
    request.get(key).or_else(|| message.metadata.get(key)).and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Part, json};

    use super::*;
    use crate::agent::demo::Demo;

    fn served(name: &str, tenant: Option<&str>, profile: Option<Profile>) -> Served {
        Served { name: name.into(), agent: Arc::new(Demo), tenant: tenant.map(Into::into), profile }
    }

    fn chosen(roster: &Roster, tenant: &str, text: &str, metadata: &Metadata, talking_to: Option<&str>) -> String {
        let scope = Scope { tenant: tenant.into(), owner: "".into() };
        let message = Message::from_agent(vec![Part::text(text)]);
        let chosen = roster.choose(&scope, metadata, &message, talking_to);
        chosen.map_or_else(String::new, |served| served.name.to_string())
    }

    fn roster() -> Roster {
        Roster::new([
            served("mid", None, Some(Profile::Mid)),
            served("deep", None, Some(Profile::Complex)),
            served("quick", None, Some(Profile::Routine)),
            served("private", Some("acme"), None),
        ])
        .unwrap()
    }

    #[test]
    fn the_tenant_comes_first() {
        assert_eq!(chosen(&roster(), "acme", "refactor this", &Metadata::new(), None), "private");
        assert_eq!(chosen(&roster(), "other", "add endpoint", &Metadata::new(), None), "mid");
    }

    #[test]
    fn the_words_decide_unless_the_request_or_the_conversation_does() {
        let none = Metadata::new();
        assert_eq!(chosen(&roster(), "", "refactor and fix typo", &none, None), "deep");
        assert_eq!(chosen(&roster(), "", "fix typo", &none, None), "quick");
        assert_eq!(chosen(&roster(), "", "fix typo", &none, Some("deep")), "deep");
        let routine = Metadata::from_iter([("profile".to_owned(), json!("routine"))]);
        assert_eq!(chosen(&roster(), "", "refactor everything", &routine, Some("deep")), "quick");
        let nonsense = Metadata::from_iter([("profile".to_owned(), json!("huge"))]);
        assert_eq!(chosen(&roster(), "", "add endpoint", &nonsense, None), "mid");
    }
}
