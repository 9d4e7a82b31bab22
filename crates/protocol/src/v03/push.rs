//! Webhooks: nested in 0.3, with a list of schemes of which 1.0 keeps the first.

use serde::de::Error;
use serde::ser::SerializeStruct;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Dialect, Members, Out, Seq, Up};
use crate::codec::{self, DecodeError, Value, or_default};
use crate::{AuthenticationInfo, PushId, TaskId, TaskPushNotificationConfig};

/// What stands between the ids in the name of a webhook.
const COLLECTION: &str = "/pushNotificationConfigs/";

/// A webhook in every shape that 0.3 peers send: nested, flat, or as the `config` of a create request.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Config {
    #[serde(alias = "task_id")]
    task_id: TaskId,
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    parent: String,
    #[serde(alias = "config_id")]
    config_id: PushId,
    config: Option<Box<Config>>,
    #[serde(alias = "push_notification_config")]
    push_notification_config: Option<Hook>,
    id: PushId,
    #[serde(deserialize_with = "or_default")]
    url: String,
    #[serde(deserialize_with = "or_default")]
    token: String,
    authentication: Option<Authentication>,
}

/// The inner webhook, without its task.
#[derive(Default, Deserialize)]
#[serde(default)]
pub(super) struct Hook {
    id: PushId,
    #[serde(deserialize_with = "or_default")]
    url: String,
    #[serde(deserialize_with = "or_default")]
    token: String,
    authentication: Option<Authentication>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Authentication {
    #[serde(deserialize_with = "or_default")]
    schemes: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    credentials: String,
}

impl Authentication {
    fn model(self) -> AuthenticationInfo {
        let scheme = self.schemes.into_iter().next().unwrap_or_default();
        AuthenticationInfo { scheme, credentials: self.credentials }
    }
}

impl Hook {
    pub(super) fn model(self) -> TaskPushNotificationConfig {
        TaskPushNotificationConfig {
            id: self.id,
            url: self.url,
            token: self.token,
            authentication: self.authentication.map(Authentication::model),
            ..TaskPushNotificationConfig::default()
        }
    }
}

impl Config {
    fn model(self) -> TaskPushNotificationConfig {
        let flat = Hook { id: self.id, url: self.url, token: self.token, authentication: self.authentication };
        let mut config = match self.config {
            Some(inner) => inner.model(),
            None => self.push_notification_config.unwrap_or(flat).model(),
        };
        if config.id.is_empty() {
            config.id = self.config_id;
        }
        let (task_id, id) = ids(&self.name, config.id.as_str());
        let found = [self.task_id, task_id.into(), task_name(&self.parent).into()];
        if let Some(task_id) = found.into_iter().find(|id| !id.is_empty()) {
            config.task_id = task_id;
        }
        if config.id.is_empty() {
            config.id = id.into();
        }
        config
    }
}

/// The ids in `tasks/{task}/pushNotificationConfigs/{id}`; what is known of the second settles where it
/// begins.
pub(crate) fn ids<'a>(name: &'a str, id: &str) -> (&'a str, &'a str) {
    let name = task_name(name);
    if !id.is_empty()
        && let Some((at, _)) = name.rmatch_indices(COLLECTION).find(|(at, _)| &name[at + COLLECTION.len()..] == id)
    {
        return (&name[..at], &name[at + COLLECTION.len()..]);
    }
    name.split_once(COLLECTION).unwrap_or((name, ""))
}

/// The id in `tasks/{task}`.
pub(crate) fn task_name(name: &str) -> &str {
    name.strip_prefix("tasks/").unwrap_or(name)
}

/// Webhooks as JSON-RPC lists them, or as REST does.
pub(super) struct Configs(Vec<Config>);

impl<'de> Deserialize<'de> for Configs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default)]
        struct Wrapped {
            #[serde(deserialize_with = "or_default")]
            configs: Vec<Config>,
        }
        let configs = match Value::deserialize(from)? {
            list @ Value::Array(_) => codec::from_value(list),
            page => codec::from_value::<Wrapped>(page).map(|page| page.configs),
        };
        configs.map(Self).map_err(D::Error::custom)
    }
}

impl Up<TaskPushNotificationConfig> for Config {
    fn up(self, _: Dialect) -> Result<TaskPushNotificationConfig, DecodeError> {
        Ok(self.model())
    }
}

impl Up<Vec<TaskPushNotificationConfig>> for Configs {
    fn up(self, _: Dialect) -> Result<Vec<TaskPushNotificationConfig>, DecodeError> {
        Ok(self.0.into_iter().map(Config::model).collect())
    }
}

impl Serialize for Out<'_, TaskPushNotificationConfig> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(config, dialect) = self;
        let mut map = to.serialize_struct("", 2)?;
        match dialect {
            Dialect::Json => map.serialize_field("taskId", &config.task_id)?,
            Dialect::Rest => map.serialize_field("name", &name(&config.task_id, &config.id))?,
        }
        map.serialize_field("pushNotificationConfig", &Inner(config))?;
        map.end()
    }
}

/// The name of a webhook in the REST dialect.
pub(crate) fn name(task_id: &TaskId, id: &PushId) -> String {
    format!("tasks/{task_id}{COLLECTION}{id}")
}

impl Serialize for Out<'_, [TaskPushNotificationConfig]> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(configs, dialect) = self;
        let list = Seq(configs, dialect);
        if dialect == Dialect::Json {
            return list.serialize(to);
        }
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field("configs", &list)?;
        map.end()
    }
}

/// What registers a webhook: in REST, a request around it.
pub(super) struct Set<'a>(pub(super) &'a TaskPushNotificationConfig, pub(super) Dialect);

impl Serialize for Set<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let &Self(config, dialect) = self;
        if dialect == Dialect::Json {
            return Out(config, dialect).serialize(to);
        }
        let mut map = to.serialize_struct("", 1)?;
        map.serialize_field("parent", &format!("tasks/{}", config.task_id))?;
        map.text("configId", config.id.as_str())?;
        map.serialize_field("config", &Out(config, dialect))?;
        map.end()
    }
}

/// The inner webhook.
pub(super) struct Inner<'a>(pub(super) &'a TaskPushNotificationConfig);

impl Serialize for Inner<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        struct Schemes<'a>(&'a AuthenticationInfo);
        impl Serialize for Schemes<'_> {
            fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
                let mut map = to.serialize_struct("", 1)?;
                map.serialize_field("schemes", &[&self.0.scheme])?;
                map.text("credentials", &self.0.credentials)?;
                map.end()
            }
        }
        let config = self.0;
        let mut map = to.serialize_struct("", 1)?;
        map.text("id", config.id.as_str())?;
        map.serialize_field("url", &config.url)?;
        map.text("token", &config.token)?;
        map.some("authentication", config.authentication.as_ref().map(Schemes).as_ref())?;
        map.end()
    }
}
