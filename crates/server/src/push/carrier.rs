//! Carries the events of one task to one webhook, from its cursor on.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::HeaderMap;
use nuncio_protocol::{Task, codec};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::desk::{Desk, Place, Slot, now};
use super::hook::{Hook, headers_of};
use super::pick::{Form, Glance, whole};
use super::retry::{Verdict, verdict};
use super::sign::Notice;
use super::tone::Tone;
use crate::bind::form;
use crate::call::Version;
use crate::engine::Event;
use crate::store::{Dead, Micros, PushConfig, Seq, State, StoreError, TaskKey, WAITING};

/// How many events are read at once; between them, others get a place.
const PAGE: usize = 32;
const PAGE_BYTES: usize = 1 << 20;

/// How much time of deliveries a crash may repeat.
const SAVE_EVERY: Duration = Duration::from_millis(100);

/// One webhook in hand.
pub(super) struct Carrier<'a> {
    desk: &'a Desk,
    task: TaskKey,
    /// The webhook with its cursor, ahead of the store until it is saved.
    config: PushConfig,
    saved: Instant,
    /// Whether the task has no more events.
    over: bool,
    /// A place among the posts.
    place: Option<Place>,
    /// When the last status was told.
    told_at: Option<Instant>,
}

/// Whether an event on the way is told.
enum Chance {
    Now,
    /// A later one is told instead.
    Passed,
    Stopped,
}

/// How long to wait for news of a task that is written elsewhere.
const LOOK_AGAIN: Duration = Duration::from_millis(200);

/// What comes after an event.
enum Step {
    Next,
    /// The webhook waits, is stopped or was replaced; the cursor is saved.
    End,
}

/// What is the same for all events of a webhook.
struct Route {
    hook: Hook,
    host: String,
    headers: HeaderMap,
    version: Version,
    tone: Option<Tone>,
}

impl<'a> Carrier<'a> {
    pub(super) fn new(desk: &'a Desk, task: TaskKey, config: PushConfig) -> Self {
        Self { desk, task, config, saved: Instant::now(), over: false, place: None, told_at: None }
    }

    /// Delivers until nothing is left, the receiver fails, or `stop`.
    pub(super) async fn run(mut self, stop: &CancellationToken) -> Result<(), StoreError> {
        let route = match self.route() {
            Ok(route) => route,
            Err(why) => {
                tracing::error!(webhook = self.config.id.as_str(), why, "a stored webhook cannot be used");
                return self.fail(why).await;
            }
        };
        loop {
            // Given back first, so that others come between.
            self.place = None;
            if !self.enter(&route, stop).await {
                return self.save().await.map(drop);
            }
            let mut events = self.read().await?;
            if events.is_empty() {
                // Armed first, so that what is written from here on rings.
                if let Some(live) = self.desk.hub.get(self.task) {
                    live.ringer.arm();
                }
                if let Some(cluster) = &self.desk.cluster {
                    cluster.ring_after(self.task, self.config.acked);
                }
                events = self.read().await?;
            }
            if events.is_empty() && route.tone.is_some() && !self.distance().is_zero() {
                // Whoever comes next would not know when the last one was told.
                self.place = None;
                if self.news_or_distance(self.config.acked, stop).await {
                    continue;
                }
            }
            if events.is_empty() {
                self.config.due = Some(WAITING);
                return self.save().await.map(drop);
            }
            for event in events {
                if let Step::End = self.step(&route, &event, stop).await? {
                    return Ok(());
                }
            }
            if self.over {
                self.config.due = None;
                return self.save().await.map(drop);
            }
        }
    }

    fn route(&self) -> Result<Route, String> {
        let hook = Hook::read(&self.config)?;
        let tone = Tone::parse(&self.config.version);
        let usual = if tone.is_some() { Version::V03 } else { Version::V1 };
        let version = Version::parse(&self.config.version).unwrap_or(usual);
        let headers = hook.headers(&self.config.id, version, tone, self.desk.options.keyring.as_deref())?;
        Ok(Route { host: hook.host(), hook, headers, version, tone })
    }

    /// Takes a place among the posts. False when the server stops.
    async fn enter(&mut self, route: &Route, stop: &CancellationToken) -> bool {
        if self.place.is_none() {
            self.place = tokio::select! {
                place = self.desk.rooms.enter(&route.host) => place,
                () = stop.cancelled() => None,
            };
        }
        self.place.is_some()
    }

    /// How long until the next status on the way may be told.
    fn distance(&self) -> Duration {
        self.told_at.map_or(Duration::ZERO, |at| self.desk.options.interval.saturating_sub(at.elapsed()))
    }

    /// Waits for an event after `seen`, or until the next status may be told. False when the server stops.
    async fn news_or_distance(&self, seen: Seq, stop: &CancellationToken) -> bool {
        let news = async {
            match self.desk.hub.get(self.task).filter(|live| live.loaded.initialized()) {
                Some(live) => drop(live.wait(|committed, _| committed > seen).await),
                None => tokio::time::sleep(LOOK_AGAIN).await,
            }
        };
        tokio::select! {
            () = news => true,
            () = tokio::time::sleep(self.distance()) => true,
            () = stop.cancelled() => false,
        }
    }

    /// Waits until a status on the way may be told, and gives way to a later one.
    async fn chance(&mut self, seq: Seq, stop: &CancellationToken) -> Result<Chance, StoreError> {
        let mut seen = seq;
        loop {
            let later = self.read_after(seen).await?;
            if later.iter().any(|event| Glance::at(&event.body).state.is_some()) {
                return Ok(Chance::Passed);
            }
            match later.last() {
                Some(last) => seen = last.seq,
                None if self.distance().is_zero() => return Ok(Chance::Now),
                None => {
                    self.place = None;
                    if !self.news_or_distance(seen, stop).await {
                        return Ok(Chance::Stopped);
                    }
                }
            }
        }
    }

    /// The next events that are durable.
    async fn read(&self) -> Result<Vec<Arc<Event>>, StoreError> {
        self.read_after(self.config.acked).await
    }

    /// Those after `seen` that are durable: in memory, else from the log.
    async fn read_after(&self, seen: Seq) -> Result<Vec<Arc<Event>>, StoreError> {
        if let Some(live) = self.desk.hub.get(self.task)
            && live.loaded.initialized()
            && live.broken().is_none()
        {
            let mut events = Vec::new();
            if live.follow(seen, &mut events).found {
                events.truncate(PAGE);
                return Ok(events);
            }
        }
        let events = self.desk.store.events(self.task, seen, PAGE, PAGE_BYTES).await?;
        Ok(events.into_iter().map(|event| Arc::new(event.into())).collect())
    }

    /// Delivers one event, if this webhook gets it, and moves the cursor.
    async fn step(&mut self, route: &Route, event: &Event, stop: &CancellationToken) -> Result<Step, StoreError> {
        let glance = Glance::at(&event.body);
        let told = self.config.told.map(|state| state.0);
        let mut body = match route.tone {
            Some(tone) if glance.is_told(self.desk.options.events, told) => self.toned(tone, &glance, event).await?,
            Some(_) => None,
            None => match glance.form(self.desk.options.events, told) {
                Some(form) => Some(self.body(route.version, event, form).await?),
                None => None,
            },
        };
        if body.is_some() && route.tone.is_some() && !glance.rests() && !self.desk.options.interval.is_zero() {
            match self.chance(event.seq, stop).await? {
                Chance::Now => {}
                Chance::Passed => body = None,
                Chance::Stopped => return self.save().await.map(|_| Step::End),
            }
            if body.is_some() && !self.enter(route, stop).await {
                return self.save().await.map(|_| Step::End);
            }
        }
        if let Some(body) = body {
            let event_id = format!("{}/{}", glance.task_id, event.seq);
            let url = &*route.hook.url;
            let notice = Notice { url, task_id: glance.task_id.as_str(), event_id: &event_id, body: &body };
            let headers = headers_of(&route.headers, &notice, &self.desk.options);
            let sent = tokio::select! {
                sent = self.desk.options.guard.post(url, headers, body.clone(), self.desk.options.timeout) => sent,
                () = stop.cancelled() => return self.save().await.map(|_| Step::End),
            };
            match verdict(&sent) {
                Verdict::Delivered => {
                    self.desk.metrics.push.delivered.inc();
                    self.told_at = Some(Instant::now());
                    self.mend();
                    if let Some(state) = glance.state {
                        self.config.told = Some(State(state.number()));
                    }
                    if self.config.dead.is_none() {
                        self.config.last_error = None;
                    }
                }
                Verdict::Later(why, asked) => {
                    if let Some(due) = self.failed(why, asked) {
                        self.config.due = Some(due);
                        self.save().await?;
                        self.desk.retry_at(&self.slot(), due).await;
                        return Ok(Step::End);
                    }
                    self.give_up(&event_id, event.seq).await;
                }
                Verdict::Never(why) => {
                    self.desk.metrics.push.failed.inc();
                    self.mend();
                    self.config.last_error = Some(why);
                    self.give_up(&event_id, event.seq).await;
                }
            }
        }
        self.config.acked = event.seq;
        self.over = glance.is_last();
        if self.saved.elapsed() >= SAVE_EVERY && !self.over && !self.save().await? {
            return Ok(Step::End);
        }
        Ok(Step::Next)
    }

    /// A body of no version. Where the task is over, what it made is in it.
    async fn toned(&self, tone: Tone, glance: &Glance, event: &Event) -> Result<Option<Bytes>, StoreError> {
        let row = if glance.is_last() { self.desk.store.task_by_key(self.task).await? } else { None };
        let task: Option<Task> = row.and_then(|row| codec::decode(&row.snapshot?).ok());
        Ok(tone.body(&event.body, task.as_ref()))
    }

    async fn body(&self, version: Version, event: &Event, form: Form) -> Result<Bytes, StoreError> {
        let whole = match form {
            Form::AsIs => None,
            Form::Whole(id) => whole(&*self.desk.store, self.task, &id, event.seq).await?,
        };
        Ok(match (version, whole) {
            (Version::V1, None) => event.body.clone(),
            (Version::V1, Some(body)) => body,
            (Version::V03, None) => event.form(form::V03),
            (Version::V03, Some(body)) => Event::new(event.seq, body).form(form::V03),
        })
    }

    /// Counts a failure. When to try again, unless the event has had its attempts.
    fn failed(&mut self, why: String, asked: Option<Duration>) -> Option<Micros> {
        self.desk.metrics.push.failed.inc();
        let (retry, at) = (&self.desk.options.retry, now());
        self.config.attempts = self.config.attempts.saturating_add(1);
        self.config.last_error = Some(why);
        let since = *self.config.since.get_or_insert(at);
        if retry.is_over(self.config.attempts, since, at) {
            return None;
        }
        let pause = retry.pause(self.config.attempts, asked);
        Some(at.saturating_add(i64::try_from(pause.as_micros()).unwrap_or(Micros::MAX)))
    }

    /// The receiver answers, so that the next event has all its attempts.
    fn mend(&mut self) {
        self.config.attempts = 0;
        self.config.since = None;
    }

    /// Leaves an event behind. As long as the receiver is down, the ones behind it get one attempt each.
    async fn give_up(&mut self, event: &str, seq: Seq) {
        self.desk.metrics.push.given_up.inc();
        let why = self.config.last_error.as_deref().unwrap_or_default();
        tracing::warn!(
            event,
            webhook = self.config.id.as_str(),
            why,
            "a webhook did not take an event, which was given up"
        );
        let (from, count) = self.config.dead.map_or((seq, 0), |dead| (dead.from, dead.count));
        self.config.dead = Some(Dead { from, count: count + 1, at: now() });
        let why = self.config.last_error.as_deref().unwrap_or_default();
        self.desk.bury(&self.slot(), event, why).await;
    }

    fn slot(&self) -> Slot {
        (self.task, self.config.id.clone())
    }

    /// A webhook that cannot be read is tried again when its operator may have mended that.
    async fn fail(mut self, why: String) -> Result<(), StoreError> {
        let due = self.failed(why, None).unwrap_or_else(|| now() + 3_600_000_000);
        self.config.due = Some(due);
        self.save().await?;
        self.desk.retry_at(&self.slot(), due).await;
        Ok(())
    }

    /// Stores how far the webhook has come. False when it is no longer the same.
    async fn save(&mut self) -> Result<bool, StoreError> {
        self.saved = Instant::now();
        self.desk.store.advance_push(self.task, self.config.clone()).await
    }
}
