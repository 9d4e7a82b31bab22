//! What A2A 0.3 cannot carry, in one place: each function turns a value into what comes back.

use nuncio_protocol::*;

/// Which 0.3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// `v03::json`.
    Json,
    /// `v03::rest`.
    Rest,
}

/// A value, and what is left of it after a trip through 0.3.
pub trait Carried {
    /// Takes away what 0.3 has no place for.
    fn lose(&mut self, dialect: Dialect);
}

impl Carried for Part {
    fn lose(&mut self, _: Dialect) {
        // Only files have a name and a type.
        if matches!(self.content, Content::Text(_) | Content::Data(_)) {
            self.filename.clear();
            self.media_type.clear();
        }
        // The mark of a wrapped value is taken off with the wrapper.
        if let Content::Data(value) = &self.content
            && (!value.is_object() || self.metadata.get("data_part_compat") == Some(&Value::Bool(true)))
        {
            self.metadata.shift_remove("data_part_compat");
        }
    }
}

impl Carried for Message {
    fn lose(&mut self, dialect: Dialect) {
        match dialect {
            Dialect::Json if self.role == Role::Unspecified => self.role = Role::User,
            Dialect::Json => {}
            Dialect::Rest => self.reference_task_ids.clear(),
        }
        self.parts.lose(dialect);
    }
}

impl Carried for TaskStatus {
    fn lose(&mut self, dialect: Dialect) {
        self.message.lose(dialect);
    }
}

impl Carried for Artifact {
    fn lose(&mut self, dialect: Dialect) {
        self.parts.lose(dialect);
    }
}

impl Carried for Task {
    fn lose(&mut self, dialect: Dialect) {
        self.status.lose(dialect);
        self.artifacts.lose(dialect);
        self.history.lose(dialect);
    }
}

impl Carried for StreamResponse {
    fn lose(&mut self, dialect: Dialect) {
        match self {
            Self::Task(task) => task.lose(dialect),
            Self::Message(message) => message.lose(dialect),
            Self::StatusUpdate(event) => event.status.lose(dialect),
            Self::ArtifactUpdate(event) => event.artifact.lose(dialect),
        }
    }
}

impl Carried for SendMessageResponse {
    fn lose(&mut self, dialect: Dialect) {
        match self {
            Self::Task(task) => task.lose(dialect),
            Self::Message(message) => message.lose(dialect),
        }
    }
}

impl Carried for TaskPushNotificationConfig {
    fn lose(&mut self, _: Dialect) {
        self.tenant.clear();
    }
}

impl Carried for SendMessageRequest {
    fn lose(&mut self, dialect: Dialect) {
        self.tenant.clear();
        self.message.lose(dialect);
        if let Some(configuration) = &mut self.configuration {
            history_length(&mut configuration.history_length, dialect);
            if let Some(push) = &mut configuration.task_push_notification_config {
                push.lose(dialect);
                push.task_id = TaskId::default();
            }
        }
    }
}

/// Zero and absent are the same in the REST dialect.
fn history_length(length: &mut Option<i32>, dialect: Dialect) {
    if dialect == Dialect::Rest && *length == Some(0) {
        *length = None;
    }
}

impl Carried for GetTaskRequest {
    fn lose(&mut self, dialect: Dialect) {
        self.tenant.clear();
        history_length(&mut self.history_length, dialect);
    }
}

impl Carried for CancelTaskRequest {
    fn lose(&mut self, dialect: Dialect) {
        self.tenant.clear();
        if dialect == Dialect::Rest {
            self.metadata.clear();
        }
    }
}

impl Carried for SubscribeToTaskRequest {
    fn lose(&mut self, _: Dialect) {
        self.tenant.clear();
    }
}

impl Carried for TaskPushNotificationConfigRequest {
    fn lose(&mut self, _: Dialect) {
        self.tenant.clear();
    }
}

impl Carried for ListTaskPushNotificationConfigsRequest {
    fn lose(&mut self, dialect: Dialect) {
        self.tenant.clear();
        if dialect == Dialect::Json {
            self.page_size = 0;
            self.page_token.clear();
        }
    }
}

impl Carried for AgentCard {
    fn lose(&mut self, _: Dialect) {
        // A signature covers the 1.0 form.
        self.signatures.clear();
        self.security_schemes.retain(|_, scheme| match scheme {
            SecurityScheme::Oauth2(scheme) => match &mut scheme.flows {
                OAuthFlows::DeviceCode(_) => false,
                OAuthFlows::AuthorizationCode(flow) => {
                    flow.pkce_required = false;
                    true
                }
                _ => true,
            },
            _ => true,
        });
        let mut left: Vec<AgentInterface> = Vec::new();
        for mut interface in std::mem::take(&mut self.supported_interfaces) {
            if interface.protocol_version != "0.3" && !interface.protocol_version.starts_with("0.3.") {
                continue;
            }
            interface.protocol_version = "0.3".into();
            interface.tenant.clear();
            if interface.protocol_binding == "GRPC" && !interface.url.contains("://") {
                let scheme = if interface.url.ends_with(":443") { "https://" } else { "http://" };
                interface.url.insert_str(0, scheme);
            }
            if interface.protocol_binding.is_empty() {
                interface.protocol_binding = "JSONRPC".into();
            }
            if !left.contains(&interface) {
                left.push(interface);
            }
        }
        // The first is the card's own address, and an empty one is none.
        if left.first().is_some_and(|first| first.url.is_empty()) {
            left.remove(0);
        }
        self.supported_interfaces = left;
    }
}

impl<T: Carried> Carried for Vec<T> {
    fn lose(&mut self, dialect: Dialect) {
        self.iter_mut().for_each(|item| item.lose(dialect));
    }
}

impl<T: Carried> Carried for Option<T> {
    fn lose(&mut self, dialect: Dialect) {
        self.iter_mut().for_each(|item| item.lose(dialect));
    }
}
