//! JSON-RPC in the draft of 1.0 that LiquidCrypto speaks.

use http::request::Parts;
use nuncio_protocol::{Error, ErrorKind, jsonrpc};

use super::dialect::{Accent, Dialect};
use super::dispatch::{Outcome, dispatch};
use super::rpc::{Envelope, Reply, ReplyBody, extended_card};
use super::{App, params};
use crate::auth::Caller;
use crate::call::Version;
use crate::profile::liquid_crypto as rules;
use crate::push::Tone;

const DRAFT: Dialect =
    Dialect { binding: crate::metrics::Binding::JsonRpc, version: Version::V1, accent: Accent::Draft };

/// Answers one request.
pub(super) async fn answer(
    app: &App,
    parts: &Parts,
    caller: &Caller,
    version: Result<Option<Version>, Error>,
    request: &jsonrpc::Request<'_>,
) -> Reply {
    match carry_out(app, parts, caller, version, request).await {
        Ok(reply) => reply,
        Err(error) => {
            app.metrics.errors.inc();
            let body = jsonrpc::failure(request.id, &rules::error(app, parts, &error));
            Reply { version: Version::V1, extensions: Vec::new(), body: ReplyBody::Error(body, error.kind) }
        }
    }
}

async fn carry_out(
    app: &App,
    parts: &Parts,
    caller: &Caller,
    version: Result<Option<Version>, Error>,
    request: &jsonrpc::Request<'_>,
) -> Result<Reply, Error> {
    if version? == Some(Version::V03) {
        let text = "This is a request of A2A 1.0: leave the header A2A-Version out, or say 1.0";
        return Err(Error::new(ErrorKind::VersionNotSupported, text));
    }
    let (read, listing) = match &*request.method {
        "GetExtendedAgentCard" => (extended_card(app, parts, caller, request)?, None),
        _ => rules::read(app, parts.uri.path(), request)?,
    };
    let mut call = params::call(app, parts, caller, Version::V1, params::path_tenant(parts), Some(&read));
    call.tone = Some(Tone::Draft);
    app.metrics.call(read.operation(), DRAFT.binding, DRAFT.version);
    rules::check_references(app, &call, &read).await?;
    let extensions = call.extensions.clone();
    let envelope = || Envelope::new(DRAFT, Some(request.id));
    let outcome = match listing {
        None => dispatch(app, call, read).await?,
        Some(listing) => {
            let first = dispatch(app, call.clone(), read).await?;
            let page = rules::listed(app, &call, &listing, first).await?;
            let body = ReplyBody::Result(jsonrpc::result(request.id, &page));
            return Ok(Reply { version: Version::V1, extensions, body });
        }
    };
    let body = match outcome {
        Outcome::Answer(answer) => ReplyBody::Result(jsonrpc::result(request.id, &DRAFT.answer(answer)?)),
        Outcome::Stream(subscription, place) => ReplyBody::Stream(subscription, place, envelope()),
        Outcome::StreamOfOne(message) => ReplyBody::StreamOfOne(DRAFT.message_event(message), envelope()),
    };
    Ok(Reply { version: Version::V1, extensions, body })
}
