//! One connection: its requests, how many of them at once, and who sends them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::poll_immediate;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use nuncio_protocol::jsonrpc::{self, Id, Request};
use nuncio_protocol::{Error, ErrorKind, GetExtendedAgentCardRequest};
use parking_lot::{Mutex, RwLock};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::form::{About, Form};
use super::{Beside, MOST_HEADERS, beside, too_many};
use crate::auth::{Caller, Shown, proven};
use crate::bind::dialect::Dialect;
use crate::bind::rpc::{self, Envelope, Reply, ReplyBody};
use crate::bind::{App, StreamPlace, params};
use crate::boxed::boxed;
use crate::call::{Version, Way};
use crate::engine::Subscription;

/// Requests of one connection that are not answered yet. Further ones are not read until there is room.
const IN_FLIGHT: usize = 64;
/// Streams of one connection. They may last, so that further ones are refused.
const STREAMS: usize = 1024;
/// Frames that wait for a slow reader; whoever makes more waits as well.
const OUTBOX: usize = 32;

/// Who is at the other end, apart from what it says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Peer {
    /// By which way it came.
    pub(crate) way: Way,
    /// Its user, by the word of the system.
    pub(crate) user: Option<Arc<str>>,
    /// Whether that is enough where others have to authenticate.
    pub(crate) trusted: bool,
}

/// A connection. Clones share it.
#[derive(Clone)]
pub(crate) struct Session(Arc<Inner>);

struct Inner {
    app: Arc<App>,
    form: Form,
    peer: Peer,
    defaults: RwLock<Arc<Defaults>>,
    out: Sender<Vec<u8>>,
    room: Arc<Semaphore>,
    streams: Arc<Semaphore>,
    running: Mutex<Running>,
    requests: TaskTracker,
    /// The peer is gone: nobody waits for answers any more.
    gone: CancellationToken,
}

/// What holds for every request that does not say otherwise.
struct Defaults {
    said: Parts,
    /// The same for requests whose method says that they are of 1.0, where nothing else does.
    v1: Option<Parts>,
}

impl Defaults {
    fn new(said: Parts) -> Self {
        let v1 = matches!(params::version(&said), Ok(None)).then(|| {
            let mut parts = said.clone();
            parts.headers.insert("a2a-version", HeaderValue::from_static("1.0"));
            parts
        });
        Self { said, v1 }
    }

    /// The same with these headers, unless they are more than a connection has.
    fn with(&self, headers: HeaderMap) -> Result<Self, Error> {
        let mut said = self.said.clone();
        said.headers.extend(headers);
        if said.headers.len() > MOST_HEADERS {
            return Err(too_many());
        }
        Ok(Self::new(said))
    }

    fn parts(&self, is_old: bool) -> &Parts {
        self.v1.as_ref().filter(|_| !is_old).unwrap_or(&self.said)
    }
}

/// The streams that run. Ids are the caller's, who may give two of them the same.
#[derive(Default)]
struct Running {
    count: u64,
    streams: HashMap<u64, (String, CancellationToken)>,
}

/// A stream that runs, until this is dropped.
struct Run<'a> {
    running: &'a Mutex<Running>,
    number: u64,
    /// The caller wants no more of it.
    ended: CancellationToken,
}

impl<'a> Run<'a> {
    fn begin(running: &'a Mutex<Running>, id: &str) -> Self {
        let ended = CancellationToken::new();
        let mut all = running.lock();
        all.count += 1;
        let number = all.count;
        all.streams.insert(number, (id.to_owned(), ended.clone()));
        Self { running, number, ended }
    }
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.running.lock().streams.remove(&self.number);
    }
}

impl Session {
    /// A connection, and the frames to be written to it.
    pub(crate) fn new(app: Arc<App>, form: Form, peer: Peer, defaults: Parts) -> (Self, Receiver<Vec<u8>>) {
        let (out, outbox) = channel(OUTBOX);
        let inner = Inner {
            app,
            form,
            peer,
            defaults: RwLock::new(Arc::new(Defaults::new(defaults))),
            out,
            room: Arc::new(Semaphore::new(IN_FLIGHT)),
            streams: Arc::new(Semaphore::new(STREAMS)),
            running: Mutex::default(),
            requests: TaskTracker::new(),
            gone: CancellationToken::new(),
        };
        (Self(Arc::new(inner)), outbox)
    }

    /// Takes one frame, as soon as there is room for what it asks.
    pub(crate) async fn take(&self, frame: Bytes) {
        let headers = match beside(&frame) {
            Ok(Beside { ends: Some(id), .. }) => return self.0.end(&id),
            Ok(beside) if beside.alone => match self.0.remember(beside.headers) {
                Ok(()) => return,
                Err(error) => return self.refuse(&error).await,
            },
            Ok(beside) => beside.headers,
            Err(error) => return self.refuse(&error).await,
        };
        let room = tokio::select! {
            room = self.0.room.clone().acquire_owned() => room,
            () = self.0.gone.cancelled() => return,
        };
        let Ok(room) = room else { return };
        let mut defaults = self.0.defaults.read().clone();
        if !headers.is_empty() {
            defaults = match defaults.with(headers) {
                Ok(defaults) => Arc::new(defaults),
                Err(error) => return self.refuse(&error).await,
            };
        }
        let inner = self.0.clone();
        let mut work = boxed(|| async move { inner.answer(&defaults, &frame, room).await });
        // What is answered at once needs no task of its own.
        if poll_immediate(work.as_mut()).await.is_none() {
            let gone = self.gone();
            self.0.requests.spawn(async move {
                tokio::select! {
                    () = work => {}
                    () = gone.cancelled() => {}
                }
            });
        }
    }

    /// Whether the headers so far, and those of this first frame, let the caller in. They stay.
    pub(crate) async fn introduce(&self, frame: &[u8]) -> bool {
        let headers = beside(frame).map(|beside| beside.headers);
        if headers.and_then(|headers| self.0.remember(headers)).is_err() {
            return false;
        }
        let defaults = self.0.defaults.read().clone();
        self.0.admit(&defaults.said).await.is_ok()
    }

    /// Answers something of which not even the id is known.
    pub(crate) async fn refuse(&self, error: &Error) {
        self.0.app.metrics.errors.inc();
        let response = jsonrpc::failure(Id::NULL, &error.jsonrpc());
        let about = About { last: true, ..About::default() };
        self.0.send(self.0.form.frame("null", &response, about)).await;
    }

    /// Waits until all requests are answered; nothing more comes.
    pub(crate) async fn answered(&self) {
        self.0.requests.close();
        self.0.requests.wait().await;
    }

    /// The same, but no longer than this.
    pub(crate) async fn answered_within(&self, time: Duration) {
        let _ = tokio::time::timeout(time, self.answered()).await;
    }

    /// Ends everything that was for this peer alone: its streams and its waiting, never its tasks.
    pub(crate) fn leave(&self) {
        self.0.gone.cancel();
    }

    /// Cancelled when the peer is gone.
    pub(crate) fn gone(&self) -> CancellationToken {
        self.0.gone.clone()
    }
}

impl Inner {
    fn remember(&self, headers: HeaderMap) -> Result<(), Error> {
        let mut defaults = self.defaults.write();
        *defaults = Arc::new(defaults.with(headers)?);
        Ok(())
    }

    /// Ends the streams with this id. Their task goes on; a stream that is not there has nothing to end.
    fn end(&self, id: &str) {
        for (of, ended) in self.running.lock().streams.values() {
            if of == id {
                ended.cancel();
            }
        }
    }

    /// Who calls. It is asked for every request: credentials may run out while a connection lasts.
    async fn admit(&self, parts: &Parts) -> Result<Caller, Error> {
        let Peer { way, user, trusted } = &self.peer;
        let user = user.as_ref().filter(|_| *trusted || !self.app.gate.is_closed());
        let proven = user.or_else(|| proven(parts));
        let shown = Shown { headers: &parts.headers, query: parts.uri.query(), from: way.client, proven };
        match self.app.gate.admit(shown).await {
            Ok(caller) => Ok(caller.by(*way)),
            Err(denied) => {
                self.app.audit_denied(*way, denied);
                Err(denied.error(HOW))
            }
        }
    }

    async fn answer(&self, defaults: &Defaults, frame: &[u8], room: OwnedSemaphorePermit) {
        let request = match Request::decode(frame) {
            Ok(request) => request,
            Err((error, id)) => {
                self.app.metrics.errors.inc();
                // Who cannot be read is a caller too, and counts.
                let paced = match self.admit(defaults.parts(false)).await {
                    Ok(caller) => self.app.keep_pace(&caller).await,
                    Err(_) => Ok(()),
                };
                let error = paced.err().unwrap_or(error);
                let reply = Reply::failure(Dialect::rpc(Version::V1), Id::from(id.as_str()), &error);
                return self.reply(&id, false, reply, room).await;
            }
        };
        let streams = rpc::is_streaming(&request.method);
        // The name of a method says which version it is of.
        let is_old = request.method.contains('/');
        let parts = defaults.parts(is_old);
        let admitted = match self.admit(parts).await {
            Ok(caller) if request.method != CARD => self.app.keep_pace(&caller).await.map(|()| caller),
            admitted => admitted,
        };
        let reply = match admitted {
            Ok(_) if request.method == CARD => card(&self.app, parts, &request),
            Ok(caller) => rpc::carry(&self.app, parts, &caller, &request).await,
            Err(error) => {
                self.app.metrics.errors.inc();
                let version = if is_old { Version::V03 } else { Version::V1 };
                Reply::failure(Dialect::rpc(version), request.id, &error)
            }
        };
        self.reply(request.id.get(), streams, reply, room).await;
    }

    async fn reply(&self, id: &str, streams: bool, reply: Reply, room: OwnedSemaphorePermit) {
        let extensions = &*reply.extensions;
        let about = About { streams, last: true, event: None, extensions };
        match reply.body {
            ReplyBody::Result(response) | ReplyBody::Error(response, _) => {
                self.send(self.form.frame(id, &response, about)).await;
            }
            ReplyBody::FailedStream(error, envelope) => {
                let mut response = Vec::new();
                envelope.error(&error, &mut response);
                self.send(self.form.frame(id, &response, about)).await;
            }
            ReplyBody::StreamOfOne(event, envelope) => {
                let mut response = Vec::new();
                envelope.result(&event, &mut response);
                self.send(self.form.frame(id, &response, About { last: false, ..about })).await;
                self.send(self.form.end(id)).await;
            }
            ReplyBody::Stream(subscription, place, envelope) => {
                // A stream may last: it must not keep others from being answered.
                drop(room);
                self.stream(subscription, place, &envelope, extensions).await;
            }
        }
    }

    async fn stream(
        &self,
        mut subscription: Subscription,
        _place: StreamPlace,
        envelope: &Envelope,
        extensions: &[Arc<str>],
    ) {
        let id = envelope.id();
        let mut about = About { streams: true, last: false, event: None, extensions };
        let fail = |error: &Error| {
            let mut response = Vec::new();
            envelope.error(error, &mut response);
            self.form.frame(id, &response, About { streams: true, last: true, ..About::default() })
        };
        let Ok(_stream) = self.streams.clone().try_acquire_owned() else {
            let text = "This connection has all the streams it can hold: end some, or open another connection";
            return self.send(fail(&Error::new(ErrorKind::Unavailable, text))).await;
        };
        let run = Run::begin(&self.running, id);
        let mut batch = Vec::new();
        loop {
            let next = tokio::select! {
                biased;
                () = run.ended.cancelled() => return self.send(self.form.end(id)).await,
                next = subscription.next(&mut batch) => next,
                // Without a last frame: whoever reads knows that the stream is not complete.
                () = self.app.closing.cancelled() => return,
            };
            match next {
                Ok(true) => {}
                Ok(false) => return self.send(self.form.end(id)).await,
                Err(error) => return self.send(fail(&error)).await,
            }
            for event in batch.drain(..).take_while(|_| !run.ended.is_cancelled()) {
                let form = envelope.form(&event);
                let mut response = Vec::with_capacity(form.len() + 64);
                envelope.result(&form, &mut response);
                about.event = Some(event.seq);
                self.send(self.form.frame(id, &response, about)).await;
                about.extensions = &[];
            }
        }
    }

    /// Waits for a slow reader. Once nobody reads any more, it is as good as sent.
    async fn send(&self, frame: Vec<u8>) {
        if self.out.send(frame).await.is_err() {
            self.gone.cancel();
        }
    }
}

/// Asks for the card.
pub(crate) const CARD: &str = "GetAgentCard";

/// The card, for connections that have no well-known address.
pub(crate) fn card(app: &App, parts: &Parts, request: &Request<'_>) -> Reply {
    let named = request.params::<GetExtendedAgentCardRequest>().map(|params| params.tenant).unwrap_or_default();
    let tenant = if named.is_empty() { params::path_tenant(parts) } else { &named };
    let card = app.card(tenant).json();
    let body = ReplyBody::Result(jsonrpc::result(request.id, &card));
    Reply { version: Version::V1, extensions: Vec::new(), body }
}

const HOW: &str = "Unauthorized: send `\"headers\":{\"authorization\":\"Bearer …\"}` beside the request";
