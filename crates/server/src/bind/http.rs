//! One HTTP request: which binding it is for, who sends it, and what all answers have in common.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode, header};
use nuncio_protocol::{Error, ErrorKind, json};

use super::body::{self, Body};
use super::{App, artifact, browser, grpc, jsonrpc, mcp, params, rest, ws};
use crate::auth::{Denied, Shown, proven};
use crate::boxed::boxed;
use crate::call::Version;
use crate::card::CardSigning;
use crate::push::sign::Signer;

/// Answers one request.
pub(crate) async fn handle<B>(
    app: &Arc<App>,
    local: SocketAddr,
    remote: SocketAddr,
    request: Request<B>,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display,
{
    let (parts, incoming) = request.into_parts();
    let asked = browser::Headers::of(&parts);
    let mut response = match app.browser.stop(&parts, local) {
        Some(response) => response,
        None if head_size(&parts) > app.http.max_header => head_too_large(app),
        None => answer(app, local, remote, parts, incoming).await,
    };
    app.browser.dress(&asked, &mut response);
    response
}

/// About what the head took on the wire.
fn head_size(parts: &Parts) -> usize {
    let target = parts.uri.path().len() + parts.uri.query().map_or(0, str::len);
    parts.headers.iter().fold(target, |size, (name, value)| size + name.as_str().len() + value.len() + 4)
}

/// hyper says the same of a head that has not arrived as a whole when it has taken that much.
fn head_too_large(app: &App) -> Response<Body> {
    let text =
        format!("The head of the request is larger than the {} bytes that this server takes", app.http.max_header);
    let body = nuncio_protocol::codec::encode(&json!({ "error": text }));
    let mut response = bytes_response(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, JSON, body);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn answer<B>(
    app: &Arc<App>,
    local: SocketAddr,
    remote: SocketAddr,
    mut parts: Parts,
    incoming: B,
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display,
{
    set_tenant_apart(app, &mut parts);
    if let Some(service) = grpc::service(parts.uri.path()) {
        // Boxed, as other rare ways below: its state is large, and every call would carry it along.
        return boxed(|| grpc::handle(app, service, parts, incoming, (local, remote))).await;
    }
    if app.is_grpc_alone(local) {
        return grpc::nothing_else();
    }
    if let Some(response) = public(app, &parts, local, remote).await {
        return response;
    }
    let way = app.way(&parts, local, remote);
    // The root of JSON-RPC may be the same path: only the request tells them apart.
    if ws::is_for(app, &parts) {
        return Box::pin(ws::upgrade(app, parts, way)).await;
    }
    let shown = Shown { headers: &parts.headers, query: parts.uri.query(), from: way.client, proven: proven(&parts) };
    let caller = match app.gate.admit(shown).await {
        Ok(caller) => caller.by(way),
        Err(denied) => {
            app.audit_denied(way, denied);
            return refuse(app, &parts, denied);
        }
    };
    if is_card(app, parts.uri.path()) {
        let mut response = card(app, &parts, local, remote);
        // Not everybody may see it, so no cache on the way may keep it.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
        return response;
    }
    if let Err(error) = app.keep_pace(&caller).await {
        return Box::pin(too_many(app, &parts, incoming, &error)).await;
    }
    if parts.uri.path() == "/metrics" {
        if !caller.grants.allow_metrics() {
            return refuse(app, &parts, Denied::Forbidden);
        }
        return metrics(app, &parts);
    }
    if let Some(wanted) = artifact::wanted(&parts) {
        if parts.method != Method::GET && parts.method != Method::HEAD {
            return method_not_allowed("GET, HEAD");
        }
        return Box::pin(artifact::handle(app, &parts, &caller, wanted)).await;
    }
    if app.profile.is_rpc_path(parts.uri.path()) {
        if parts.method != Method::POST {
            return method_not_allowed("POST");
        }
        let body = body::read(incoming, app.http.max_body, app.http.body_timeout).await;
        return close_if_unread(&body, jsonrpc::handle(app, &parts, &caller, body.clone()).await);
    }
    if app.profile.has_mcp() && parts.uri.path() == mcp::PATH {
        if parts.method != Method::POST {
            return method_not_allowed("POST");
        }
        let body = body::read(incoming, app.http.max_body, app.http.body_timeout).await;
        return close_if_unread(&body, Box::pin(mcp::handle(app, &parts, &caller, body.clone())).await);
    }
    let body = match rest::takes_body(&parts.method) {
        true => body::read(incoming, app.http.max_body, app.http.body_timeout).await,
        false => Ok(Bytes::new()),
    };
    close_if_unread(&body, rest::handle(app, &parts, &caller, body.clone()).await)
}

/// How much is read of a request that is refused for the pace of its caller: enough to answer under its id.
const READ_OF_TOO_MANY: usize = 64 << 10;

/// What a caller gets who calls more often than he may, whatever he asks for.
async fn too_many<B>(app: &App, parts: &Parts, incoming: B, error: &Error) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let body = body::read(incoming, app.http.max_body.min(READ_OF_TOO_MANY), app.http.body_timeout).await;
    let read = body.as_deref().unwrap_or_default();
    let response = match parts.uri.path() {
        path if app.profile.is_rpc_path(path) => jsonrpc::refuse(app, parts, read, error),
        mcp::PATH if app.profile.has_mcp() => mcp::refuse(app, read, error),
        _ => rest::refuse(app, parts, error),
    };
    close_if_unread(&body, response)
}

/// A path below the name of a tenant with a card of its own is that tenant's: the rest of it means the same
/// as at the root.
fn set_tenant_apart(app: &App, parts: &mut Parts) {
    let cards = app.cards.cards();
    if cards.tenants.is_empty() {
        return;
    }
    let path = parts.uri.path();
    let (first, rest) = path[1.min(path.len())..].split_once('/').unwrap_or((path.trim_start_matches('/'), ""));
    let Some(tenant) = params::segment(first).and_then(|name| cards.tenant(&name)) else { return };
    let query = parts.uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    if let Ok(uri) = format!("/{rest}{query}").parse() {
        parts.uri = uri;
        parts.extensions.insert(params::PathTenant(tenant));
    }
}

const JWKS: &str = "/.well-known/jwks.json";

/// What everyone may see.
async fn public(app: &App, parts: &Parts, local: SocketAddr, remote: SocketAddr) -> Option<Response<Body>> {
    let readable = parts.method == Method::GET || parts.method == Method::HEAD;
    match parts.uri.path() {
        path if is_card(app, path) => (!app.gate.protects_card()).then(|| card(app, parts, local, remote)),
        "/health" if readable && let Some(own) = app.profile.health(&app.engine.roster().first().name) => {
            Some(bytes_response(StatusCode::OK, JSON, nuncio_protocol::codec::encode(&own)))
        }
        "/health" if readable => Some(bytes_response(StatusCode::OK, JSON, br#"{"status":"healthy"}"#.as_slice())),
        "/ready" if readable => Some(ready(app).await),
        JWKS if !app.has_keys() => None,
        JWKS if readable => Some(key_set(app)),
        JWKS | "/health" | "/ready" => Some(method_not_allowed("GET, HEAD")),
        _ => None,
    }
}

fn is_card(app: &App, path: &str) -> bool {
    path == "/.well-known/agent-card.json" || path == "/.well-known/agent.json" && app.profile.has_old_card()
}

fn card(app: &App, parts: &Parts, local: SocketAddr, remote: SocketAddr) -> Response<Body> {
    if parts.method != Method::GET && parts.method != Method::HEAD {
        return method_not_allowed("GET, HEAD");
    }
    let mut response = app.card(params::path_tenant(parts)).response(parts, local, remote);
    if app.gate.protects_card() {
        // Nobody between may show it to others.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("private, max-age=60"));
    }
    response
}

/// The keys that notifications and cards are checked with. A new key is looked for when one is unknown, so an old
/// copy does no harm.
fn key_set(app: &App) -> Response<Body> {
    let kind = HeaderValue::from_static("application/jwk-set+json");
    let mut keys = app.signer.as_deref().map(Signer::public_keys).unwrap_or_default();
    keys.extend(app.cards.signing().into_iter().flat_map(CardSigning::public_keys));
    let body = nuncio_protocol::codec::encode(&json!({ "keys": keys }));
    let mut response = bytes_response(StatusCode::OK, kind, body);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}

async fn ready(app: &App) -> Response<Body> {
    let store = app.check_store().await;
    if let Err(error) = &store {
        tracing::warn!(%error, "the store is not ready");
    }
    let (status, word) = match (&store, app.engine.is_draining()) {
        (_, true) => (StatusCode::SERVICE_UNAVAILABLE, "draining"),
        (Err(_), false) => (StatusCode::SERVICE_UNAVAILABLE, "unready"),
        (Ok(()), false) => (StatusCode::OK, "ready"),
    };
    let mut all = json!({ "status": word });
    if word != "draining" {
        all["store"] = if store.is_ok() { "ok" } else { "failing" }.into();
    }
    if let Some(cluster) = &app.engine.cluster {
        // A bus that is down makes a server slower, and nothing else.
        let trouble = cluster.bus.trouble();
        all["bus"] = json!({ "kind": cluster.bus.kind(), "status": trouble.unwrap_or("ok") });
        all["node"] = json!({ "id": &*cluster.node(), "alive": cluster.is_alive(), "nodes": cluster.nodes() });
    }
    bytes_response(status, JSON, nuncio_protocol::codec::encode(&all))
}

fn metrics(app: &App, parts: &Parts) -> Response<Body> {
    if parts.method != Method::GET {
        return method_not_allowed("GET");
    }
    if let Some(cluster) = &app.engine.cluster {
        cluster.measure(app.engine.turns());
    }
    let text = app.metrics.render(app.engine.load(), app.engine.paused(), app.engine.tasks_in_memory());
    let kind = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    bytes_response(StatusCode::OK, kind, text)
}

const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// An answer of known length.
pub(crate) fn bytes_response(status: StatusCode, kind: HeaderValue, body: impl Into<Bytes>) -> Response<Body> {
    let mut response = Response::new(Body::Full(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

pub(crate) fn refuse(app: &App, parts: &Parts, denied: Denied) -> Response<Body> {
    app.metrics.errors.inc();
    let (status, text) = match denied {
        Denied::Unauthorized => (StatusCode::UNAUTHORIZED, r#"{"error":"Unauthorized"}"#),
        Denied::Forbidden => (StatusCode::FORBIDDEN, r#"{"error":"Forbidden"}"#),
        Denied::TooMany { .. } => (StatusCode::TOO_MANY_REQUESTS, r#"{"error":"Too many wrong credentials"}"#),
        Denied::Unavailable => (StatusCode::SERVICE_UNAVAILABLE, r#"{"error":"Credentials cannot be checked now"}"#),
    };
    let mut response = match app.profile.refusal(status) {
        Some(own) => bytes_response(status, JSON, nuncio_protocol::codec::encode(&own)),
        None => bytes_response(status, JSON, text.as_bytes()),
    };
    let headers = response.headers_mut();
    match denied {
        Denied::Unauthorized => {
            for challenge in app.gate.challenges(&parts.headers) {
                headers.append(header::WWW_AUTHENTICATE, challenge.clone());
            }
        }
        Denied::TooMany { retry_after } => _ = headers.insert(header::RETRY_AFTER, retry_after.into()),
        Denied::Unavailable => _ = headers.insert(header::RETRY_AFTER, HeaderValue::from_static("5")),
        Denied::Forbidden => {}
    }
    response
}

fn method_not_allowed(allow: &'static str) -> Response<Body> {
    let error = Error::new(ErrorKind::MethodNotFound, format!("This path takes {allow}"));
    let status = StatusCode::METHOD_NOT_ALLOWED;
    let body = nuncio_protocol::codec::encode(&error.rest_as(status.as_u16()));
    let mut response = bytes_response(status, JSON, body);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    response
}

/// The status of errors that belong to HTTP itself, for bindings that otherwise always say 200.
pub(crate) fn refusal_status(kind: ErrorKind) -> Option<StatusCode> {
    match kind {
        ErrorKind::PermissionDenied
        | ErrorKind::TooSlow
        | ErrorKind::TooLarge
        | ErrorKind::TooMany
        | ErrorKind::Unavailable => StatusCode::from_u16(kind.http_status()).ok(),
        _ => None,
    }
}

/// Tells a caller who was turned away for lack of room when to come back.
pub(crate) fn retry_after(response: &mut Response<Body>, kind: ErrorKind) {
    if matches!(kind, ErrorKind::TooMany | ErrorKind::Unavailable) {
        response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
    }
}

/// What is left of a body that nobody read is not worth receiving.
fn close_if_unread(body: &Result<Bytes, Error>, mut response: Response<Body>) -> Response<Body> {
    if body.is_err() {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}

/// Names the extensions that are in force, in the spelling of the caller's version.
pub(crate) fn echo_extensions(response: &mut Response<Body>, version: Version, extensions: &[Arc<str>]) {
    if extensions.is_empty() {
        return;
    }
    let name = match version {
        Version::V1 => HeaderName::from_static("a2a-extensions"),
        Version::V03 => HeaderName::from_static("x-a2a-extensions"),
    };
    if let Ok(value) = HeaderValue::from_str(&extensions.join(", ")) {
        response.headers_mut().insert(name, value);
    }
}
#[cfg(test)]
mod tests {
    use super::*;

    fn size<A, F>(_: impl FnOnce(A) -> F) -> usize {
        size_of::<F>()
    }

    /// Every connection holds room for the future of a call, and every call moves it about.
    #[test]
    fn a_call_is_light() {
        type Asked = (&'static Arc<App>, SocketAddr, Request<hyper::body::Incoming>);
        let call = size(|(app, at, request): Asked| handle(app, at, at, request));
        assert!(call <= 4096, "{call} bytes: box what is rare and large");
    }
}
