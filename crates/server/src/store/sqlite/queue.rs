//! Where writes wait for the writer, in the order in which they were handed over.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// An open-ended line with one taker. Unlike a channel it closes at an exact place: whatever was
/// pushed before is still taken, whatever comes later is given back.
pub(super) struct Queue<T> {
    line: Mutex<Line<T>>,
    arrived: Condvar,
}

struct Line<T> {
    /// Each with whether somebody waits for its outcome.
    waiting: VecDeque<(T, bool)>,
    /// How many of them somebody waits for.
    awaited: usize,
    /// How many of those it takes to wake a taker who hopes for company.
    enough: usize,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let line = Line { waiting: VecDeque::new(), awaited: 0, enough: 0, closed: false };
        Self { line: Mutex::new(line), arrived: Condvar::new() }
    }

    /// Stands in line, or comes back when the queue is closed.
    pub(super) fn push(&self, item: T, awaited: bool) -> Result<(), T> {
        let mut line = self.line.lock();
        if line.closed {
            return Err(item);
        }
        line.waiting.push_back((item, awaited));
        line.awaited += usize::from(awaited);
        let wake = line.waiting.len() == 1 || (awaited && line.awaited == line.enough);
        drop(line);
        // The taker only sleeps while the line is empty or shorter than he likes.
        if wake {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Waits until something is there, and then for up to `patience` until `enough` of it is awaited: those
    /// who were served last are likely to come back at once. False when closed and empty.
    pub(super) fn wait(&self, enough: usize, patience: Duration) -> bool {
        let mut line = self.line.lock();
        while line.waiting.is_empty() {
            if line.closed {
                return false;
            }
            self.arrived.wait(&mut line);
        }
        line.enough = enough;
        let until = Instant::now() + patience;
        while line.awaited < enough && !line.closed {
            if self.arrived.wait_until(&mut line, until).timed_out() {
                break;
            }
        }
        line.enough = 0;
        true
    }

    /// Moves what is there to `into`: at most `limit` items, and not many more than `room` by weight.
    /// Returns how many of them somebody waits for.
    pub(super) fn take(&self, limit: usize, mut room: usize, weight: impl Fn(&T) -> usize, into: &mut Vec<T>) -> usize {
        let mut line = self.line.lock();
        let before = line.awaited;
        while room > 0
            && into.len() < limit
            && let Some((item, awaited)) = line.waiting.pop_front()
        {
            line.awaited -= usize::from(awaited);
            room = room.saturating_sub(weight(&item));
            into.push(item);
        }
        before - line.awaited
    }

    pub(super) fn close(&self) {
        self.line.lock().closed = true;
        self.arrived.notify_all();
    }
}
