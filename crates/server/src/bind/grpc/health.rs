//! Whether the server can be called: what orchestrators ask over gRPC.

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::Response;
use http_body::Frame;
use nuncio_protocol::proto::health::health_check_response::ServingStatus;
use nuncio_protocol::proto::health::{HealthCheckRequest, HealthCheckResponse, HealthListResponse};
use nuncio_protocol::proto::{Code, decode};
use nuncio_protocol::{Error, ErrorKind};
use prost::Message as _;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::{SERVICES, framed, no_method, reply};
use crate::bind::App;
use crate::bind::body::Body;
use crate::bind::limit::{StreamShare, StreamShares, network};

/// The largest question: names are short.
pub(super) const LARGEST: usize = 4 << 10;
/// Who watches at the same time, and how many of them from one address.
const MOST: usize = 1000;
const MOST_OF_ONE: usize = 100;

/// Places for those who watch. Everybody may, so that they take none of the places for streams of tasks.
pub(crate) struct Watches {
    all: Arc<Semaphore>,
    shares: Arc<StreamShares>,
}

impl Default for Watches {
    fn default() -> Self {
        Self { all: Arc::new(Semaphore::new(MOST)), shares: StreamShares::new(MOST_OF_ONE) }
    }
}

impl Watches {
    fn take(&self, from: IpAddr) -> Result<(OwnedSemaphorePermit, StreamShare), Error> {
        let share = self.shares.take(&network(from).to_string().into());
        let share = share.map_err(|_| full(ErrorKind::TooMany, "Too many watch from your address"))?;
        let place = self.all.clone().try_acquire_owned();
        let place = place.map_err(|_| full(ErrorKind::Unavailable, "Too many watch"))?;
        Ok((place, share))
    }
}

fn full(kind: ErrorKind, what: &str) -> Error {
    Error::new(kind, format!("{what}: call `Check` now and then instead"))
}

pub(super) async fn answer(app: &App, method: &str, body: Bytes, from: IpAddr) -> Result<Response<Body>, Error> {
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
        "Watch" => watch(app, &decode::<HealthCheckRequest>(body)?.service, from).await,
        _ => Err(no_method()),
    }
}

/// What it is now, and that it is over when the server goes down.
async fn watch(app: &App, service: &str, from: IpAddr) -> Result<Response<Body>, Error> {
    let place = app.watches.take(from)?;
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
    if app.engine.is_draining() || app.check_store().await.is_err() {
        return ServingStatus::NotServing;
    }
    ServingStatus::Serving
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_address_has_a_part_of_the_places_and_all_have_no_more_than_there_are() {
        let watches = Watches::default();
        let address = |n: usize| IpAddr::from([10, 0, 0, u8::try_from(n).unwrap()]);
        let mut taken: Vec<_> = (0..MOST_OF_ONE).map(|_| watches.take(address(0)).unwrap()).collect();
        let refused = |n| watches.take(address(n)).map(drop).unwrap_err().kind;
        assert_eq!(refused(0), ErrorKind::TooMany);
        for n in 1..MOST / MOST_OF_ONE {
            taken.extend((0..MOST_OF_ONE).map(|_| watches.take(address(n)).unwrap()));
        }
        assert_eq!(refused(100), ErrorKind::Unavailable);
        taken.clear();
        assert!(watches.take(address(0)).is_ok());
    }
}
