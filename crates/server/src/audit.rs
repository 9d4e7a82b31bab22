//! Who did what to which task, when, and from where: a line of JSON for each call. No secrets and no contents.
//!
//! Calls only put a note into a queue; a thread writes. When the queue is full because the disk is slower than the
//! callers, notes are lost rather than calls delayed, and the record says how many.

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{SyncSender, TrySendError, sync_channel};
use std::time::{Duration, Instant};

use nuncio_protocol::{ErrorKind, Timestamp};
use serde::Serialize;
use tokio::sync::oneshot;

mod writer;

use self::writer::Writer;
use crate::auth::Caller;
use crate::call::{Call, Way};
use crate::metrics::Operation;

/// Notes that wait to be written. Enough for a disk that takes its time, and no more than a few megabytes.
const MOST_WAITING: usize = 16_384;
/// Names and ids are cut there: a caller chooses some of them, and they are no place for contents.
const LONGEST: usize = 128;
/// How long the end of the server may wait for the last lines.
const LAST_LINES: Duration = Duration::from_secs(2);

/// The record.
pub struct Audit {
    queue: SyncSender<Waiting>,
    lost: Arc<AtomicU64>,
}

enum Waiting {
    Line(Box<Line>),
    /// Everything before it is to be written.
    Flush(oneshot::Sender<()>),
}

/// One line.
#[derive(Debug, Serialize)]
struct Line {
    time: Timestamp,
    caller: String,
    tenant: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    address: Option<std::net::IpAddr>,
    operation: &'static str,
    binding: &'static str,
    #[serde(skip_serializing_if = "str::is_empty")]
    version: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    task: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    context: String,
    outcome: &'static str,
    /// Milliseconds.
    duration: f64,
}

/// A call under way. It is put on record when it ends, however that is.
pub(crate) struct Note {
    audit: Arc<Audit>,
    began: Instant,
    line: Option<Box<Line>>,
}

impl Audit {
    /// A record at the end of this file, which is made if it is not there.
    pub fn to_file(path: &Path) -> std::io::Result<Arc<Self>> {
        Ok(Self::start(Writer::file(path)?))
    }

    /// A record on the standard error output.
    pub fn to_stderr() -> Arc<Self> {
        Self::start(Writer::stderr())
    }

    fn start(writer: Writer) -> Arc<Self> {
        let (queue, waiting) = sync_channel(MOST_WAITING);
        let lost = Arc::new(AtomicU64::new(0));
        let counted = lost.clone();
        std::thread::spawn(move || writer.run(&waiting, &counted));
        Arc::new(Self { queue, lost })
    }

    /// A call begins.
    pub(crate) fn begin(self: &Arc<Self>, call: &Call, operation: Operation, (task, context): (&str, &str)) -> Note {
        let line = Line {
            caller: cut(&call.caller),
            tenant: cut(&call.scope.tenant),
            version: call.version.as_str(),
            task: cut(task),
            context: cut(context),
            ..Line::new(call.way, operation.name())
        };
        Note { audit: self.clone(), began: Instant::now(), line: Some(Box::new(line)) }
    }

    /// A download of an artifact begins.
    pub(crate) fn download(self: &Arc<Self>, caller: &Caller, tenant: &str, task: &str) -> Note {
        let line = Line {
            caller: cut(&caller.name),
            tenant: cut(tenant),
            task: cut(task),
            ..Line::new(caller.way, "GetArtifact")
        };
        Note { audit: self.clone(), began: Instant::now(), line: Some(Box::new(line)) }
    }

    /// Somebody was not let in.
    pub(crate) fn denied(&self, way: Way, outcome: &'static str) {
        self.put(Box::new(Line { outcome, ..Line::new(way, "Authenticate") }));
    }

    /// Somebody calls more often than he may. Of what he wants nothing is read.
    pub(crate) fn too_many(&self, caller: &Caller) {
        let outcome = ErrorKind::TooMany.reason();
        let line = Line::new(caller.way, Operation::Unknown.name());
        self.put(Box::new(Line { caller: cut(&caller.name), outcome, ..line }));
    }

    fn put(&self, line: Box<Line>) {
        if let Err(TrySendError::Full(_) | TrySendError::Disconnected(_)) = self.queue.try_send(Waiting::Line(line)) {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Waits until everything so far is written, if that does not take long.
    pub(crate) async fn flush(&self) {
        let (done, written) = oneshot::channel();
        if self.queue.try_send(Waiting::Flush(done)).is_ok() {
            let _ = tokio::time::timeout(LAST_LINES, written).await;
        }
    }
}

impl fmt::Debug for Audit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Audit").field("lost", &self.lost).finish_non_exhaustive()
    }
}

impl Line {
    fn new(way: Way, operation: &'static str) -> Self {
        Self {
            time: Timestamp::now(),
            caller: String::new(),
            tenant: String::new(),
            address: way.client,
            operation,
            binding: way.binding.unwrap_or("jsonrpc"),
            version: "",
            task: String::new(),
            context: String::new(),
            // What stays if nobody waits for the end.
            outcome: "disconnected",
            duration: 0.0,
        }
    }
}

impl Note {
    /// What the call turned out to be about.
    pub(crate) fn about(&mut self, task: &str, context: &str) {
        if let Some(line) = &mut self.line {
            line.task = cut(task);
            line.context = cut(context);
        }
    }

    /// The call is over.
    pub(crate) fn end(mut self, outcome: &'static str) {
        if let Some(line) = &mut self.line {
            line.outcome = outcome;
        }
    }
}

impl Drop for Note {
    fn drop(&mut self) {
        if let Some(mut line) = self.line.take() {
            line.duration = (self.began.elapsed().as_secs_f64() * 1e6).round() / 1e3;
            self.audit.put(line);
        }
    }
}

fn cut(text: &str) -> String {
    text.chars().take(LONGEST).collect()
}

#[cfg(test)]
mod tests {
    use nuncio_protocol::{Value, codec};

    use super::*;

    #[test]
    fn what_does_not_fit_is_counted_and_the_record_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("audit.log");
        let (queue, waiting) = sync_channel(2);
        let audit = Audit { queue, lost: Arc::default() };
        for _ in 0..5 {
            audit.denied(Way::default(), "UNAUTHENTICATED");
        }
        let lost = audit.lost.clone();
        assert_eq!(lost.load(Ordering::Relaxed), 3);
        // Nobody can put anything into the queue any more, so that the writer comes to an end.
        drop(audit);
        Writer::file(&path).unwrap().run(&waiting, &lost);
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<Value> = text.lines().map(|line| codec::decode(line.as_bytes()).unwrap()).collect();
        let outcomes: Vec<&str> = lines.iter().filter_map(|line| line["outcome"].as_str()).collect();
        assert_eq!(outcomes, ["UNAUTHENTICATED", "UNAUTHENTICATED", "lost"]);
        assert_eq!(lines[2]["lines"], 3);
        assert_eq!(lost.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn names_that_callers_choose_are_cut() {
        assert_eq!(cut(&"\u{e4}".repeat(1000)).chars().count(), LONGEST);
    }
}
