//! Whether the server can be called: what orchestrators ask over gRPC.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body::Frame;
use nuncio_protocol::Error;
use nuncio_protocol::proto::health::health_check_response::ServingStatus;
use nuncio_protocol::proto::health::{HealthCheckRequest, HealthCheckResponse, HealthListResponse};
use nuncio_protocol::proto::{Code, decode};
use prost::Message as _;

use super::{SERVICES, framed, no_method, reply};
use crate::bind::App;
use crate::bind::body::Body;

pub(super) async fn answer(app: &App, method: &str, body: Bytes) -> Result<Response<Body>, Error> {
    match method {
        "Check" => {
            let asked: HealthCheckRequest = decode(body)?;
            if !is_known(&asked.service) {
                return Ok(reply::status(Code::NotFound, "This server has no service of that name"));
            }
            Ok(reply::message(&said(status(app).await)))
        }
        "List" => {
            let status = HealthCheckResponse { status: status(app).await.into() };
            let names = SERVICES.iter().map(|(name, _)| *name).chain([""]);
            let statuses = names.map(|name| (name.to_owned(), status)).collect();
            Ok(reply::message(&HealthListResponse { statuses }.encode_to_vec()))
        }
        "Watch" => watch(app, &decode::<HealthCheckRequest>(body)?.service).await,
        _ => Err(no_method()),
    }
}

/// What it is now, and that it is over when the server goes down.
async fn watch(app: &App, service: &str) -> Result<Response<Body>, Error> {
    let place = app.stream_place(&Arc::default())?;
    let now = if is_known(service) { status(app).await } else { ServingStatus::ServiceUnknown };
    let closing = app.closing.clone();
    let steps = stream::unfold((0, place), move |(step, place)| {
        let closing = closing.clone();
        async move {
            let frame = match step {
                0 => Frame::data(framed(&said(now))),
                1 => {
                    closing.cancelled().await;
                    Frame::data(framed(&said(ServingStatus::NotServing)))
                }
                2 => Frame::trailers(reply::ok()),
                _ => return None,
            };
            Some((frame, (step + 1, place)))
        }
    });
    Ok(reply::stream(Body::Frames(Box::pin(steps))))
}

fn said(status: ServingStatus) -> Vec<u8> {
    HealthCheckResponse { status: status.into() }.encode_to_vec()
}

fn is_known(service: &str) -> bool {
    service.is_empty() || SERVICES.iter().any(|(name, _)| *name == service)
}

async fn status(app: &App) -> ServingStatus {
    if app.engine.is_draining() || app.engine.store().check().await.is_err() {
        return ServingStatus::NotServing;
    }
    ServingStatus::Serving
}
