//! One entry, from its fields to its last reply.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use http::request::Parts;
use nuncio_protocol::jsonrpc::{self, Id};
use nuncio_protocol::{Error, ErrorKind};
use redis::RedisError;

use super::entry::{Entry, ReplyTo};
use super::worker::Hand;
use super::{Begun, PASSING, Replied, Streams};
use crate::auth::Shown;
use crate::bind::rpc::{self, Envelope, Reply, ReplyBody};
use crate::bind::{App, StreamPlace, params};
use crate::call::Way;
use crate::engine::Subscription;
use crate::group::category;

/// An entry that was taken so often without outliving it is not tried again.
const MOST_TIMES: u64 = 5;
/// For so many leases a worker that began an entry may be away, if no other can go on with it.
const LATEST: u32 = 4;
/// The way by which all entries come.
const WAY: Way = Way { binding: Some("redis-streams"), local: None, peer: None, client: None };
/// How long to wait before Redis is asked again, at first and at most.
const PAUSES: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));

/// One entry in the hands of this worker.
pub(super) struct Job {
    pub(super) app: Arc<App>,
    pub(super) streams: Arc<Streams>,
    pub(super) hand: Hand,
}

/// What is left to do for an entry.
enum End {
    /// These are its last replies.
    Answered(Vec<Vec<u8>>),
    /// Others shall go on with it; so often it was taken.
    GiveBack(u64),
    /// Others have it, or nobody can have it now.
    Leave,
}

impl Job {
    /// Answers the entry, unless it is another worker's to do so.
    pub(super) async fn run(self, fields: HashMap<String, Vec<u8>>) {
        let (to, request) = match Entry::read(fields, self.streams.rules(&self.app)) {
            Entry::Request(to, parts, payload) => (to, Ok((parts, payload))),
            Entry::Refused(to, error) => (to, Err(error)),
            Entry::Hopeless(why) => return self.drop_entry(why).await,
        };
        let end = match request {
            Ok((parts, payload)) => self.begin(&to, &parts, &payload).await,
            Err(error) => {
                self.app.metrics.redis.malformed.inc();
                tracing::warn!(entry = self.hand.id, %error, "an entry is no request, and was refused");
                End::Answered(vec![refusal(&empty(), b"", &error)])
            }
        };
        match end {
            End::Answered(payloads) => {
                if let Some(Replied::Nowhere) = self.patiently(|| self.finish(&to, &payloads)).await {
                    self.nowhere(&to);
                }
            }
            End::GiveBack(times) => {
                // Redis may be gone as well; then the others wait for as long as the lease goes.
                let _ = self.streams.give_back(&self.hand.id, times).await;
            }
            End::Leave => {}
        }
    }

    async fn finish(&self, to: &ReplyTo, payloads: &[Vec<u8>]) -> Result<Replied, RedisError> {
        self.streams.finish(&self.hand.id, to, payloads).await
    }

    /// Removes an entry that nobody can be told about.
    async fn drop_entry(&self, why: &'static str) {
        self.app.metrics.redis.malformed.inc();
        tracing::warn!(entry = self.hand.id, why, "an entry is no request, and nobody can be told");
        let nobody = ReplyTo { stream: self.streams.options.responses.clone(), correlation: String::new() };
        self.patiently(|| self.finish(&nobody, &[])).await;
    }

    fn nowhere(&self, to: &ReplyTo) {
        self.app.metrics.redis.malformed.inc();
        tracing::warn!(entry = self.hand.id, stream = to.stream, "replies cannot go to a key of another type");
    }

    /// Answers a request, if it may be done here.
    async fn begin(&self, to: &ReplyTo, parts: &Parts, payload: &[u8]) -> End {
        let Some(begun) = self.patiently(|| self.streams.begin(&self.hand.id)).await else { return End::Leave };
        let Begun { times, ref home, late, .. } = begun;
        let own = *home == self.streams.options.home;
        if times == 0 {
            return End::Leave;
        }
        let hopeless = home.starts_with(PASSING) || late > LATEST * self.streams.group.lease;
        if times > MOST_TIMES || (!own && hopeless) {
            self.app.metrics.redis.given_up.inc();
            tracing::warn!(entry = self.hand.id, times, "an entry was given up");
            let text = "The worker that began this request is gone, and no other can go on with it: look at the tasks \
                        of the agent before sending it again";
            return End::Answered(vec![refusal(parts, payload, &Error::new(ErrorKind::Internal, text))]);
        }
        if !own {
            // A worker on that log may come back.
            return End::GiveBack(times);
        }
        tokio::select! {
            end = self.answer(to, parts, payload, &begun) => end,
            () = self.hand.lost.cancelled() => End::Leave,
        }
    }

    async fn answer(&self, to: &ReplyTo, parts: &Parts, payload: &[u8], begun: &Begun) -> End {
        let shown = Shown { headers: &parts.headers, query: None, from: None, proven: None };
        let caller = match self.app.gate.admit(shown).await {
            Ok(caller) => caller.by(WAY),
            Err(denied) => {
                self.app.audit_denied(WAY, denied);
                let how =
                    "Credentials are needed: put them into the field headers, as {\"Authorization\":\"Bearer …\"}";
                return End::Answered(vec![refusal(parts, payload, &denied.error(how))]);
            }
        };
        if let Err(error) = self.app.keep_pace(&caller).await {
            return End::Answered(vec![refusal(parts, payload, &error)]);
        }
        self.app.metrics.redis.requests.inc();
        let reply = rpc::answer(&self.app, parts, &caller, payload).await;
        if let ReplyBody::Error(_, ErrorKind::Parse | ErrorKind::InvalidRequest) = reply.body {
            self.app.metrics.redis.malformed.inc();
            tracing::warn!(entry = self.hand.id, "an entry is no request, and was refused");
        }
        match reply.body {
            ReplyBody::Error(_, ErrorKind::Unavailable) if self.is_closing() => End::GiveBack(begun.times),
            ReplyBody::Result(body) | ReplyBody::Error(body, _) => End::Answered(vec![body]),
            ReplyBody::StreamOfOne(event, envelope) => {
                End::Answered(vec![result(&envelope, &event), last_of(&envelope)])
            }
            ReplyBody::FailedStream(error, envelope) => End::Answered(vec![failure(&envelope, &error)]),
            ReplyBody::Stream(subscription, place, envelope) => {
                self.follow(to, subscription, place, &envelope, begun).await
            }
        }
    }

    /// Sends events until there are no more.
    async fn follow(
        &self,
        to: &ReplyTo,
        mut subscription: Subscription,
        _place: StreamPlace,
        envelope: &Envelope,
        begun: &Begun,
    ) -> End {
        if begun.event > 0 {
            subscription.go_on_after(begun.event);
        }
        let mut batch = Vec::new();
        loop {
            let next = tokio::select! {
                biased;
                next = subscription.next(&mut batch) => next,
                () = self.app.closing.cancelled() => return End::GiveBack(begun.times),
            };
            match next {
                Ok(true) => {}
                Ok(false) => return End::Answered(vec![last_of(envelope)]),
                Err(error) => return End::Answered(vec![failure(envelope, &error)]),
            }
            let events: Vec<_> =
                batch.drain(..).map(|event| (event.seq, result(envelope, &envelope.form(&event)))).collect();
            match self.patiently(|| self.streams.emit(&self.hand.id, to, &events)).await {
                Some(Replied::Yes) => {}
                Some(Replied::NotOurs) | None => return End::Leave,
                // The last reply has nowhere to go either, and says so.
                Some(Replied::Nowhere) => return End::Answered(vec![last_of(envelope)]),
            }
        }
    }

    fn is_closing(&self) -> bool {
        self.app.engine.is_draining() || self.app.closing.is_cancelled()
    }

    /// Asks Redis until it answers. Nothing when the entry is another worker's by then, or the server goes down.
    async fn patiently<T, F>(&self, ask: impl Fn() -> F) -> Option<T>
    where
        F: Future<Output = Result<T, RedisError>>,
    {
        let mut pause = PAUSES.0;
        loop {
            match ask().await {
                Ok(answer) => return Some(answer),
                Err(error) => tracing::debug!(error = %category(&error), "a request waits for Redis"),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => pause = (pause * 2).min(PAUSES.1),
                () = self.hand.lost.cancelled() => return None,
                () = self.app.closing.cancelled() => return None,
            }
        }
    }
}

fn empty() -> Parts {
    http::Request::new(()).into_parts().0
}

fn result(envelope: &Envelope, json: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(json.len() + 64);
    envelope.result(json, &mut out);
    out
}

fn failure(envelope: &Envelope, error: &Error) -> Vec<u8> {
    let mut out = Vec::with_capacity(256);
    envelope.error(error, &mut out);
    out
}

/// What ends a stream: a response that holds nothing.
fn last_of(envelope: &Envelope) -> Vec<u8> {
    format!(r#"{{"jsonrpc":"2.0","id":{}}}"#, envelope.id()).into_bytes()
}

/// An error that answers a request of which nothing was done.
fn refusal(parts: &Parts, payload: &[u8], error: &Error) -> Vec<u8> {
    let request = jsonrpc::Request::decode(payload);
    let id = request.as_ref().map_or(Id::NULL, |request| request.id);
    match Reply::failure(rpc::early_dialect(&params::version(parts)), id, error).body {
        ReplyBody::Error(body, _) => body,
        _ => Vec::new(),
    }
}
