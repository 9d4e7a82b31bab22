//! gRPC, on the HTTP port beside everything else or on a port of its own.
//!
//! The framing is ours: five bytes before each message, and trailers. What a call costs is then what HTTP/2 costs,
//! and limits, authentication and shutdown are those of every other binding.

mod a2a;
mod envelope;
mod frame;
mod health;
mod reflection;
mod reply;
mod stream;

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, header};
use nuncio_protocol::{Error, ErrorKind};

use super::body::{self, Body};
use super::http::bytes_response;
use super::{App, params};
use crate::auth::{Caller, Shown, proven};
use crate::boxed::boxed;
use crate::call::Version;
pub(crate) use frame::framed;
pub(crate) use health::Watches;

/// The services, by the first segment of the path.
const SERVICES: [(&str, Service); 6] = [
    ("lf.a2a.v1.A2AService", Service::A2a(Version::V1)),
    ("a2a.v1.A2AService", Service::A2a(Version::V03)),
    ("iac_code.a2a.transports.proto.A2AJsonRpc", Service::Envelope),
    ("grpc.health.v1.Health", Service::Health),
    ("grpc.reflection.v1.ServerReflection", Service::Reflection),
    ("grpc.reflection.v1alpha.ServerReflection", Service::Reflection),
];

/// What a path leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Service {
    A2a(Version),
    Envelope,
    Health,
    Reflection,
}

/// The service that a path names.
pub(crate) fn service(path: &str) -> Option<Service> {
    let (name, _) = path.strip_prefix('/')?.split_once('/')?;
    SERVICES.iter().find(|(known, _)| *known == name).map(|(_, service)| *service)
}

/// Answers one call.
pub(crate) async fn handle<B>(
    app: &App,
    service: Service,
    parts: Parts,
    incoming: B,
    (local, remote): (SocketAddr, SocketAddr),
) -> Response<Body>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display,
{
    if let Some(response) = refuse(&parts) {
        return response;
    }
    let version = match service {
        Service::A2a(version) => version,
        _ => Version::V1,
    };
    match answer(app, service, parts, incoming, (local, remote)).await {
        Ok(response) => response,
        Err(error) => {
            app.metrics.errors.inc();
            reply::failure(version, &error)
        }
    }
}

async fn answer<B>(
    app: &App,
    service: Service,
    parts: Parts,
    incoming: B,
    (local, remote): (SocketAddr, SocketAddr),
) -> Result<Response<Body>, Error>
where
    B: http_body::Body<Data = Bytes> + Unpin + Send + 'static,
    B::Error: std::fmt::Display,
{
    let method = parts.uri.path().rsplit_once('/').map_or("", |(_, method)| method);
    // Whoever looks whether the server lives has no credentials.
    let mut way = app.way(&parts, local, remote);
    if service == Service::Health {
        let asked = message(app, &parts.headers, incoming, health::LARGEST).await?;
        return health::answer(app, method, asked, way.client.unwrap_or(remote.ip())).await;
    }
    way.binding = Some(if service == Service::Envelope { "grpc-jsonrpc" } else { "grpc" });
    let shown = Shown { headers: &parts.headers, query: None, from: way.client, proven: proven(&parts) };
    let caller = match app.gate.admit(shown).await {
        Ok(caller) => caller.by(way),
        Err(denied) => {
            app.audit_denied(way, denied);
            return Err(denied.error(HOW));
        }
    };
    app.keep_pace(&caller).await?;
    if service == Service::Reflection {
        return reflection::answer(app, method, &caller, incoming);
    }
    let deadline = deadline(&parts.headers)?;
    // Awaited where it is made: a future that is kept in between is moved.
    let work = || carry_out(app, service, method, &parts, &caller, incoming, deadline);
    match deadline {
        None => work().await,
        Some(deadline) => match tokio::time::timeout_at(deadline, boxed(work)).await {
            Ok(done) => done,
            Err(_) => Ok(reply::too_late()),
        },
    }
}

async fn carry_out<B>(
    app: &App,
    service: Service,
    method: &str,
    parts: &Parts,
    caller: &Caller,
    incoming: B,
    deadline: Option<tokio::time::Instant>,
) -> Result<Response<Body>, Error>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let body = message(app, &parts.headers, incoming, app.http.max_body).await?;
    match service {
        Service::A2a(version) => a2a::answer(app, version, method, parts, caller, body, deadline).await,
        _ => envelope::answer(app, method, parts, caller, body, deadline).await,
    }
}

/// The one message of a call.
async fn message<B>(app: &App, headers: &HeaderMap, incoming: B, most: usize) -> Result<Bytes, Error>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::fmt::Display,
{
    let body = body::read(incoming, most.saturating_add(frame::PREFIX), app.http.body_timeout).await?;
    frame::only(body, frame::encoding(headers)?, most)
}

/// What is not gRPC gets an answer that other clients understand.
fn refuse(parts: &Parts) -> Option<Response<Body>> {
    let kind = parts.headers.get(header::CONTENT_TYPE).map(HeaderValue::as_bytes).unwrap_or_default();
    let is_grpc =
        kind == b"application/grpc" || kind == b"application/grpc+proto" || kind.starts_with(b"application/grpc;");
    let (status, text) = match () {
        () if parts.method != Method::POST => (StatusCode::METHOD_NOT_ALLOWED, "gRPC calls are POST requests\n"),
        () if !is_grpc => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "gRPC calls have the type application/grpc\n"),
        () if parts.version < http::Version::HTTP_2 => (StatusCode::HTTP_VERSION_NOT_SUPPORTED, "gRPC needs HTTP/2\n"),
        () => return None,
    };
    Some(bytes_response(status, HeaderValue::from_static("text/plain; charset=utf-8"), text.as_bytes()))
}

/// What other requests get at a port for gRPC.
pub(crate) fn nothing_else() -> Response<Body> {
    let text = "This port is for gRPC, and there is no such service\n";
    bytes_response(StatusCode::NOT_FOUND, HeaderValue::from_static("text/plain; charset=utf-8"), text.as_bytes())
}

const TIMEOUT: HeaderName = HeaderName::from_static("grpc-timeout");
const HOW: &str = "Credentials are missing, or they are not valid here: send them in the metadata `authorization`";

/// There is no such method.
fn no_method() -> Error {
    Error::new(ErrorKind::MethodNotFound, "This service has no such method: ask it by reflection which ones it has")
}

/// The moment after which the caller no longer waits.
fn deadline(headers: &HeaderMap) -> Result<Option<tokio::time::Instant>, Error> {
    let Some(value) = headers.get(TIMEOUT) else { return Ok(None) };
    let time = value.to_str().ok().and_then(timeout);
    let time = time.ok_or_else(|| Error::new(ErrorKind::InvalidRequest, "grpc-timeout is no time such as 10S"))?;
    // So far away that it makes no difference.
    Ok(tokio::time::Instant::now().checked_add(time))
}

/// At most eight digits and a unit.
fn timeout(text: &str) -> Option<Duration> {
    let (digits, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    if digits.is_empty() || digits.len() > 8 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let number: u64 = digits.parse().ok()?;
    Some(match unit {
        "H" => Duration::from_secs(number * 3600),
        "M" => Duration::from_secs(number * 60),
        "S" => Duration::from_secs(number),
        "m" => Duration::from_millis(number),
        "u" => Duration::from_micros(number),
        "n" => Duration::from_nanos(number),
        _ => return None,
    })
}

/// The version that the caller speaks: that of the service, which it may also name.
fn check_version(parts: &Parts, version: Version) -> Result<(), Error> {
    match params::version(parts)? {
        Some(other) if other != version => {
            let text = format!("This service speaks A2A {}: call the service of the other version", version.as_str());
            Err(Error::new(ErrorKind::VersionNotSupported, text).fact("supportedVersions", version.as_str()))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn timeouts_have_units() {
        assert_eq!(timeout("10S"), Some(Duration::from_secs(10)));
        assert_eq!(timeout("5m"), Some(Duration::from_millis(5)));
        assert_eq!(timeout("99999999H"), Some(Duration::from_secs(99_999_999 * 3600)));
        for wrong in ["", "S", "10", "10s", "123456789S", "-1S", "1.5S", "١S"] {
            assert_eq!(timeout(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn services_are_found_by_their_paths() {
        assert_eq!(service("/lf.a2a.v1.A2AService/SendMessage"), Some(Service::A2a(Version::V1)));
        assert_eq!(service("/a2a.v1.A2AService/SendMessage"), Some(Service::A2a(Version::V03)));
        assert_eq!(service("/grpc.health.v1.Health/Check"), Some(Service::Health));
        for other in ["/", "/message:send", "/a2a.v1.A2AService", "/a2a/jsonrpc", ""] {
            assert_eq!(service(other), None, "{other}");
        }
    }
}
