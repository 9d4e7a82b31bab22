//! Any value of the model, for property tests.

#![allow(dead_code)] // not every test needs every type

use nuncio_protocol::*;
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use proptest::sample::select;

/// Text with what JSON has to escape, and with what looks like something else.
pub fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        3 => "[a-z]{1,6}",
        1 => Just(String::new()),
        1 => "\\PC{0,6}",
        1 => "[\\x00-\\x1f\"\\\\/\u{2028}é😀]{0,5}",
        1 => select(vec!["null", "0", "2026-01-02T03:04:05+02:00", "tasks/x", "kind", "ROLE_USER", "AQID"]).prop_map(String::from),
    ]
}

fn word() -> impl Strategy<Value = String> {
    "[a-z]{1,8}"
}

fn words() -> impl Strategy<Value = Vec<String>> {
    vec(text(), 0..3)
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-z_]{1,6}",
        1 => text(),
        1 => select(vec!["data", "value", "kind", "file", "data_part_compat", "timestamp", "final"]).prop_map(String::from),
    ]
}

/// Any JSON value, with the numbers that do not fit into a double.
pub fn value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<u64>().prop_map(Value::from),
        (-1e300..1e300f64).prop_map(Value::from),
        text().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3).prop_map(Value::from),
            vec((key(), inner), 0..3).prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
    .boxed()
}

pub fn metadata() -> impl Strategy<Value = Metadata> {
    prop_oneof![2 => Just(Metadata::new()), 1 => vec((key(), value()), 0..3).prop_map(|all| all.into_iter().collect())]
}

pub fn timestamp() -> impl Strategy<Value = Timestamp> {
    (0..253_000_000_000_000_000_i64).prop_map(|micros| Timestamp::from_micros(micros).unwrap())
}

fn number() -> impl Strategy<Value = i32> {
    prop_oneof![Just(0), any::<i32>()]
}

pub fn state() -> impl Strategy<Value = TaskState> {
    select(TaskState::ALL)
}

pub fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        text().prop_map(Content::Text),
        vec(any::<u8>(), 0..9).prop_map(|bytes| Content::Raw(bytes.into())),
        text().prop_map(Content::Url),
        value().prop_map(Content::Data),
    ];
    (content, metadata(), text(), text()).prop_map(|(content, metadata, filename, media_type)| Part {
        content,
        metadata,
        filename,
        media_type,
    })
}

fn parts() -> impl Strategy<Value = Vec<Part>> {
    vec(part(), 0..3)
}

pub fn message() -> BoxedStrategy<Message> {
    let ids = (text(), text(), text(), vec(text(), 0..2));
    (ids, select(Role::ALL), parts(), metadata(), words())
        .prop_map(|(ids, role, parts, metadata, extensions)| Message {
            message_id: ids.0.into(),
            context_id: ids.1.into(),
            task_id: ids.2.into(),
            role,
            parts,
            metadata,
            extensions,
            reference_task_ids: ids.3.into_iter().map(TaskId::from).collect(),
        })
        .boxed()
}

pub fn status() -> BoxedStrategy<TaskStatus> {
    (state(), of(message()), of(timestamp()))
        .prop_map(|(state, message, timestamp)| TaskStatus { state, message, timestamp })
        .boxed()
}

pub fn artifact() -> BoxedStrategy<Artifact> {
    (text(), text(), text(), parts(), metadata(), words())
        .prop_map(|(id, name, description, parts, metadata, extensions)| Artifact {
            artifact_id: id.into(),
            name,
            description,
            parts,
            metadata,
            extensions,
        })
        .boxed()
}

pub fn task() -> BoxedStrategy<Task> {
    (text(), text(), status(), vec(artifact(), 0..2), vec(message(), 0..2), metadata())
        .prop_map(|(id, context_id, status, artifacts, history, metadata)| Task {
            id: id.into(),
            context_id: context_id.into(),
            status,
            artifacts,
            history,
            metadata,
        })
        .boxed()
}

fn status_update() -> impl Strategy<Value = TaskStatusUpdateEvent> {
    (text(), text(), status(), metadata()).prop_map(|(task_id, context_id, status, metadata)| TaskStatusUpdateEvent {
        task_id: task_id.into(),
        context_id: context_id.into(),
        status,
        metadata,
    })
}

fn artifact_update() -> impl Strategy<Value = TaskArtifactUpdateEvent> {
    (text(), text(), artifact(), any::<bool>(), any::<bool>(), metadata()).prop_map(
        |(task_id, context_id, artifact, append, last_chunk, metadata)| TaskArtifactUpdateEvent {
            task_id: task_id.into(),
            context_id: context_id.into(),
            artifact,
            append,
            last_chunk,
            metadata,
        },
    )
}

pub fn event() -> BoxedStrategy<StreamResponse> {
    prop_oneof![
        task().prop_map(StreamResponse::Task),
        message().prop_map(StreamResponse::Message),
        status_update().prop_map(StreamResponse::StatusUpdate),
        artifact_update().prop_map(StreamResponse::ArtifactUpdate),
    ]
    .boxed()
}

pub fn send_response() -> impl Strategy<Value = SendMessageResponse> {
    prop_oneof![task().prop_map(SendMessageResponse::Task), message().prop_map(SendMessageResponse::Message),]
}

pub fn push_config() -> impl Strategy<Value = TaskPushNotificationConfig> {
    let authentication = (text(), text()).prop_map(|(scheme, credentials)| AuthenticationInfo { scheme, credentials });
    (text(), text(), text(), text(), text(), of(authentication)).prop_map(
        |(tenant, id, task_id, url, token, authentication)| TaskPushNotificationConfig {
            tenant,
            id: id.into(),
            task_id: task_id.into(),
            url,
            token,
            authentication,
        },
    )
}

fn configuration() -> impl Strategy<Value = SendMessageConfiguration> {
    (words(), of(push_config()), of(number()), any::<bool>()).prop_map(|(modes, push, length, immediately)| {
        SendMessageConfiguration {
            accepted_output_modes: modes,
            task_push_notification_config: push,
            history_length: length,
            return_immediately: immediately,
        }
    })
}

pub fn send_request() -> BoxedStrategy<SendMessageRequest> {
    (text(), of(message()), of(configuration()), metadata())
        .prop_map(|(tenant, message, configuration, metadata)| SendMessageRequest {
            tenant,
            message,
            configuration,
            metadata,
        })
        .boxed()
}

pub fn get_request() -> impl Strategy<Value = GetTaskRequest> {
    (text(), text(), of(number())).prop_map(|(tenant, id, history_length)| GetTaskRequest {
        tenant,
        id: id.into(),
        history_length,
    })
}

pub fn list_request() -> impl Strategy<Value = ListTasksRequest> {
    let numbers = (of(number()), of(number()));
    (text(), text(), state(), numbers, text(), of(timestamp()), of(any::<bool>())).prop_map(
        |(tenant, context_id, status, numbers, page_token, after, include_artifacts)| ListTasksRequest {
            tenant,
            context_id: context_id.into(),
            status,
            page_size: numbers.0,
            page_token,
            history_length: numbers.1,
            status_timestamp_after: after,
            include_artifacts,
        },
    )
}

pub fn list_response() -> impl Strategy<Value = ListTasksResponse> {
    (vec(task(), 0..2), text(), number(), number()).prop_map(|(tasks, next_page_token, page_size, total_size)| {
        ListTasksResponse { tasks, next_page_token, page_size, total_size }
    })
}

pub fn cancel_request() -> impl Strategy<Value = CancelTaskRequest> {
    (text(), text(), metadata()).prop_map(|(tenant, id, metadata)| CancelTaskRequest {
        tenant,
        id: id.into(),
        metadata,
    })
}

pub fn subscribe_request() -> impl Strategy<Value = SubscribeToTaskRequest> {
    (text(), text()).prop_map(|(tenant, id)| SubscribeToTaskRequest { tenant, id: id.into() })
}

pub fn card_request() -> impl Strategy<Value = GetExtendedAgentCardRequest> {
    text().prop_map(|tenant| GetExtendedAgentCardRequest { tenant })
}

pub fn push_request() -> impl Strategy<Value = TaskPushNotificationConfigRequest> {
    (text(), text(), text()).prop_map(|(tenant, task_id, id)| TaskPushNotificationConfigRequest {
        tenant,
        task_id: task_id.into(),
        id: id.into(),
    })
}

pub fn push_list_request() -> impl Strategy<Value = ListTaskPushNotificationConfigsRequest> {
    (text(), text(), number(), text()).prop_map(|(tenant, task_id, page_size, page_token)| {
        ListTaskPushNotificationConfigsRequest { tenant, task_id: task_id.into(), page_size, page_token }
    })
}

pub fn push_list_response() -> impl Strategy<Value = ListTaskPushNotificationConfigsResponse> {
    (vec(push_config(), 0..3), text())
        .prop_map(|(configs, next_page_token)| ListTaskPushNotificationConfigsResponse { configs, next_page_token })
}

fn scopes() -> impl Strategy<Value = Scopes> {
    btree_map(text(), text(), 0..3)
}

fn flows() -> impl Strategy<Value = OAuthFlows> {
    (select(vec![0, 1, 2, 3, 4]), text(), text(), text(), scopes(), any::<bool>()).prop_map(
        |(kind, url, token_url, refresh_url, scopes, pkce_required)| match kind {
            0 => OAuthFlows::AuthorizationCode(AuthorizationCodeFlow {
                authorization_url: url,
                token_url,
                refresh_url,
                scopes,
                pkce_required,
            }),
            1 => OAuthFlows::ClientCredentials(ClientCredentialsFlow { token_url, refresh_url, scopes }),
            2 => OAuthFlows::Implicit(ImplicitFlow { authorization_url: url, refresh_url, scopes }),
            3 => OAuthFlows::Password(PasswordFlow { token_url, refresh_url, scopes }),
            _ => {
                OAuthFlows::DeviceCode(DeviceCodeFlow { device_authorization_url: url, token_url, refresh_url, scopes })
            }
        },
    )
}

fn scheme() -> impl Strategy<Value = SecurityScheme> {
    prop_oneof![
        (text(), select(vec!["query", "header", "cookie"]), text()).prop_map(|(description, location, name)| {
            SecurityScheme::ApiKey(ApiKeySecurityScheme { description, location: location.into(), name })
        }),
        (text(), text(), text()).prop_map(|(description, scheme, bearer_format)| {
            SecurityScheme::HttpAuth(HttpAuthSecurityScheme { description, scheme, bearer_format })
        }),
        (text(), flows(), text()).prop_map(|(description, flows, oauth2_metadata_url)| {
            SecurityScheme::Oauth2(Oauth2SecurityScheme { description, flows, oauth2_metadata_url })
        }),
        (text(), text()).prop_map(|(description, open_id_connect_url)| {
            SecurityScheme::OpenIdConnect(OpenIdConnectSecurityScheme { description, open_id_connect_url })
        }),
        text().prop_map(|description| SecurityScheme::Mtls(MutualTlsSecurityScheme { description })),
    ]
}

fn requirements() -> impl Strategy<Value = Vec<SecurityRequirement>> {
    let one = btree_map(word(), words().prop_map(|list| StringList { list }), 0..3);
    vec(one.prop_map(|schemes| SecurityRequirement { schemes }), 0..3)
}

fn interface() -> impl Strategy<Value = AgentInterface> {
    let url =
        select(vec!["https://h.test/rpc", "https://h.test/rest", "h.test:443", "h.test:50051", "http://h.test:1"]);
    let binding = select(vec!["JSONRPC", "HTTP+JSON", "GRPC", "https://example.com/custom"]);
    let version = select(vec!["1.0", "0.3", "0.3.0"]);
    (url, binding, text(), version).prop_map(|(url, binding, tenant, version)| AgentInterface {
        url: url.into(),
        protocol_binding: binding.into(),
        tenant,
        protocol_version: version.into(),
    })
}

fn capabilities() -> impl Strategy<Value = AgentCapabilities> {
    let extension = (text(), text(), any::<bool>(), metadata())
        .prop_map(|(uri, description, required, params)| AgentExtension { uri, description, required, params });
    (of(any::<bool>()), of(any::<bool>()), vec(extension, 0..2), of(any::<bool>())).prop_map(
        |(streaming, push_notifications, extensions, extended_agent_card)| AgentCapabilities {
            streaming,
            push_notifications,
            extensions,
            extended_agent_card,
        },
    )
}

fn skill() -> impl Strategy<Value = AgentSkill> {
    (text(), text(), text(), (words(), words(), words(), words()), requirements()).prop_map(
        |(id, name, description, lists, security_requirements)| AgentSkill {
            id,
            name,
            description,
            tags: lists.0,
            examples: lists.1,
            input_modes: lists.2,
            output_modes: lists.3,
            security_requirements,
        },
    )
}

fn signature() -> impl Strategy<Value = AgentCardSignature> {
    (text(), text(), metadata()).prop_map(|(protected, signature, header)| AgentCardSignature {
        protected,
        signature,
        header,
    })
}

pub fn card() -> BoxedStrategy<AgentCard> {
    let provider = (text(), text()).prop_map(|(url, organization)| AgentProvider { url, organization });
    let texts = (text(), text(), text(), of(text()), of(text()));
    let security = (btree_map(word(), scheme(), 0..3), requirements());
    let lists = (words(), words(), vec(skill(), 0..2), vec(signature(), 0..2));
    (texts, vec(interface(), 0..4), of(provider), capabilities(), security, lists)
        .prop_map(|(texts, supported_interfaces, provider, capabilities, security, lists)| AgentCard {
            name: texts.0,
            description: texts.1,
            supported_interfaces,
            provider,
            version: texts.2,
            documentation_url: texts.3,
            capabilities,
            security_schemes: security.0,
            security_requirements: security.1,
            default_input_modes: lists.0,
            default_output_modes: lists.1,
            skills: lists.2,
            signatures: lists.3,
            icon_url: texts.4,
        })
        .boxed()
}
