//! The data model of A2A 1.0 as its schema has it, from which the tests of the JSON form derive their cases.

use nuncio_protocol::codec::{DecodeError, decode, to_value};
use nuncio_protocol::*;

/// One message per line: `field type`, with `[]` for a list, `{}` for a map by string, `*` for required,
/// `?` for optional with presence, and `|` between the members of a oneof.
const SCHEMA: &str = "
Task: id string*, context_id string, status TaskStatus*, artifacts Artifact[], history Message[], metadata Struct
TaskStatus: state TaskState*, message Message, timestamp Timestamp
Message: message_id string*, context_id string, task_id string, role Role*, parts Part[]*, metadata Struct, extensions string[], reference_task_ids string[]
Part: text string| raw bytes| url string| data Value|, metadata Struct, filename string, media_type string
Artifact: artifact_id string*, name string, description string, parts Part[]*, metadata Struct, extensions string[]
TaskStatusUpdateEvent: task_id string*, context_id string*, status TaskStatus*, metadata Struct
TaskArtifactUpdateEvent: task_id string*, context_id string*, artifact Artifact*, append bool, last_chunk bool, metadata Struct
StreamResponse: task Task| message Message| status_update TaskStatusUpdateEvent| artifact_update TaskArtifactUpdateEvent|
SendMessageResponse: task Task| message Message|
SendMessageRequest: tenant string, message Message*, configuration SendMessageConfiguration, metadata Struct
SendMessageConfiguration: accepted_output_modes string[], task_push_notification_config TaskPushNotificationConfig, history_length int32?, return_immediately bool
GetTaskRequest: tenant string, id string*, history_length int32?
ListTasksRequest: tenant string, context_id string, status TaskState, page_size int32?, page_token string, history_length int32?, status_timestamp_after Timestamp, include_artifacts bool?
ListTasksResponse: tasks Task[]*, next_page_token string*, page_size int32*, total_size int32*
CancelTaskRequest: tenant string, id string*, metadata Struct
SubscribeToTaskRequest: tenant string, id string*
GetExtendedAgentCardRequest: tenant string
TaskPushNotificationConfig: tenant string, id string, task_id string, url string*, token string, authentication AuthenticationInfo
AuthenticationInfo: scheme string*, credentials string
TaskPushNotificationConfigRequest: tenant string, task_id string*, id string*
ListTaskPushNotificationConfigsRequest: task_id string*, page_size int32, page_token string, tenant string
ListTaskPushNotificationConfigsResponse: configs TaskPushNotificationConfig[]*, next_page_token string
AgentCard: name string*, description string*, supported_interfaces AgentInterface[]*, provider AgentProvider, version string*, documentation_url string?, capabilities AgentCapabilities*, security_schemes SecurityScheme{}, security_requirements SecurityRequirement[], default_input_modes string[]*, default_output_modes string[]*, skills AgentSkill[]*, signatures AgentCardSignature[], icon_url string?
AgentInterface: url string*, protocol_binding string*, tenant string, protocol_version string*
AgentProvider: url string*, organization string*
AgentCapabilities: streaming bool?, push_notifications bool?, extensions AgentExtension[], extended_agent_card bool?
AgentExtension: uri string, description string, required bool, params Struct
AgentSkill: id string*, name string*, description string*, tags string[]*, examples string[], input_modes string[], output_modes string[], security_requirements SecurityRequirement[]
AgentCardSignature: protected string*, signature string*, header Struct
SecurityRequirement: schemes StringList{}*
StringList: list string[]
SecurityScheme: api_key_security_scheme ApiKeySecurityScheme| http_auth_security_scheme HttpAuthSecurityScheme| oauth2_security_scheme Oauth2SecurityScheme| open_id_connect_security_scheme OpenIdConnectSecurityScheme| mtls_security_scheme MutualTlsSecurityScheme|
ApiKeySecurityScheme: description string, location string*, name string*
HttpAuthSecurityScheme: description string, scheme string*, bearer_format string
Oauth2SecurityScheme: description string, flows OAuthFlows*, oauth2_metadata_url string
OpenIdConnectSecurityScheme: description string, open_id_connect_url string*
MutualTlsSecurityScheme: description string
OAuthFlows: authorization_code AuthorizationCodeFlow| client_credentials ClientCredentialsFlow| implicit ImplicitFlow| password PasswordFlow| device_code DeviceCodeFlow|
AuthorizationCodeFlow: authorization_url string*, token_url string*, refresh_url string, scopes string{}*, pkce_required bool
ClientCredentialsFlow: token_url string*, refresh_url string, scopes string{}*
ImplicitFlow: authorization_url string*, refresh_url string, scopes string{}*
PasswordFlow: token_url string*, refresh_url string, scopes string{}*
DeviceCodeFlow: device_authorization_url string*, token_url string*, refresh_url string, scopes string{}*
";

/// A field of a message.
#[derive(Clone, Debug)]
pub struct Field {
    pub message: &'static str,
    pub snake: &'static str,
    pub camel: String,
    pub kind: &'static str,
    pub shape: Shape,
    pub presence: Presence,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Shape {
    One,
    List,
    Map,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Presence {
    /// Left out when it has its default.
    Implicit,
    /// Written when set, whatever to.
    Explicit,
    /// Always written.
    Required,
    /// One of several, written when set.
    OneOf,
}

/// All fields of a message.
pub fn fields_of(message: &str) -> Vec<Field> {
    fields().into_iter().filter(|field| field.message == message).collect()
}

/// All fields of all messages.
pub fn fields() -> Vec<Field> {
    let lines = SCHEMA.lines().filter(|line| !line.is_empty());
    lines
        .flat_map(|line| {
            let (message, fields) = line.split_once(": ").unwrap();
            fields.split([',', '|']).map(str::trim).filter(|field| !field.is_empty()).map(move |field| {
                let oneof = line.contains(&format!("{field}|"));
                parse(message, field, oneof)
            })
        })
        .collect()
}

fn parse(message: &'static str, field: &'static str, oneof: bool) -> Field {
    let (snake, kind) = field.split_once(' ').unwrap();
    let bare = kind.trim_end_matches(['*', '?']);
    let (bare, shape) = match bare {
        list if list.ends_with("[]") => (&list[..list.len() - 2], Shape::List),
        map if map.ends_with("{}") => (&map[..map.len() - 2], Shape::Map),
        one => (one, Shape::One),
    };
    let scalar = matches!(bare, "string" | "bytes" | "bool" | "int32" | "TaskState" | "Role" | "Struct");
    let presence = match kind.chars().last() {
        _ if oneof => Presence::OneOf,
        Some('*') => Presence::Required,
        Some('?') => Presence::Explicit,
        // An empty Struct says as little as none, so the model does not tell them apart.
        _ if shape != Shape::One || scalar => Presence::Implicit,
        _ => Presence::Explicit,
    };
    Field { message, snake, camel: camel(snake), kind: bare, shape, presence }
}

fn camel(snake: &str) -> String {
    let mut words = snake.split('_');
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |all, word| all + &word[..1].to_uppercase() + &word[1..])
}

/// A value of a field that is not its default, in the form in which it is written.
pub fn sample(field: &Field) -> Value {
    let one = sample_of(field.kind);
    match field.shape {
        Shape::One => one,
        Shape::List => json!([one]),
        Shape::Map => json!({"k": one}),
    }
}

fn sample_of(kind: &str) -> Value {
    match kind {
        "string" => json!("s"),
        "bytes" => json!("AQI="),
        "bool" => json!(true),
        "int32" => json!(7),
        "Timestamp" => json!("2026-01-02T03:04:05.678Z"),
        "Struct" => json!({"k": 1}),
        "Value" => json!([1, null]),
        "TaskState" => json!("TASK_STATE_WORKING"),
        "Role" => json!("ROLE_AGENT"),
        message => {
            let mut oneof = false;
            let fields = fields_of(message).into_iter().filter(|field| {
                let first = field.presence != Presence::OneOf || !oneof;
                oneof |= field.presence == Presence::OneOf;
                first
            });
            Value::Object(fields.map(|field| (field.camel.clone(), sample(&field))).collect())
        }
    }
}

/// The default of a field, as it would be written.
pub fn default(field: &Field) -> Value {
    match (field.shape, field.kind) {
        (Shape::List, _) => json!([]),
        (Shape::Map, _) | (_, "Struct") => json!({}),
        (_, "string" | "bytes") => json!(""),
        (_, "bool") => json!(false),
        (_, "int32") => json!(0),
        (_, "TaskState") => json!("TASK_STATE_UNSPECIFIED"),
        (_, "Role") => json!("ROLE_UNSPECIFIED"),
        (_, "Timestamp") => json!("1970-01-01T00:00:00.000Z"),
        (_, "Value") => Value::Null,
        (_, message) => {
            let required = fields_of(message).into_iter().filter(|field| field.presence == Presence::Required);
            Value::Object(required.map(|field| (field.camel.clone(), default(&field))).collect())
        }
    }
}

/// The least that can be read as a message without a field: a oneof needs another member.
pub fn least(field: &Field) -> Object {
    match field.message {
        "Part" if field.presence != Presence::OneOf => Object::from_iter([("text".to_owned(), json!("x"))]),
        "Oauth2SecurityScheme" if field.snake != "flows" => {
            Object::from_iter([("flows".to_owned(), json!({"implicit": default_of("ImplicitFlow")}))])
        }
        _ => Object::new(),
    }
}

fn default_of(message: &str) -> Value {
    let required = fields_of(message).into_iter().filter(|field| field.presence == Presence::Required);
    Value::Object(required.map(|field| (field.camel.clone(), default(&field))).collect())
}

/// Reads JSON as a message and writes it again.
macro_rules! messages {
    ($($name:ident)*) => {
        pub fn reread(message: &str, json: &str) -> Result<Value, DecodeError> {
            match message {
                $(stringify!($name) => decode::<$name>(json.as_bytes()).map(|value| to_value(&value)),)*
                other => unreachable!("the schema has no {other}"),
            }
        }

        pub const MESSAGES: &[&str] = &[$(stringify!($name)),*];
    };
}

messages! {
    Task TaskStatus Message Part Artifact TaskStatusUpdateEvent TaskArtifactUpdateEvent StreamResponse
    SendMessageResponse SendMessageRequest SendMessageConfiguration GetTaskRequest ListTasksRequest ListTasksResponse
    CancelTaskRequest SubscribeToTaskRequest GetExtendedAgentCardRequest TaskPushNotificationConfig AuthenticationInfo
    TaskPushNotificationConfigRequest ListTaskPushNotificationConfigsRequest ListTaskPushNotificationConfigsResponse
    AgentCard AgentInterface AgentProvider AgentCapabilities AgentExtension AgentSkill AgentCardSignature
    SecurityRequirement StringList SecurityScheme ApiKeySecurityScheme HttpAuthSecurityScheme Oauth2SecurityScheme
    OpenIdConnectSecurityScheme MutualTlsSecurityScheme OAuthFlows AuthorizationCodeFlow ClientCredentialsFlow
    ImplicitFlow PasswordFlow DeviceCodeFlow
}
