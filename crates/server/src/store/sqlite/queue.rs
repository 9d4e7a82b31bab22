//! Where writes wait for the writer, in the order in which they were handed over.

use std::collections::VecDeque;

use parking_lot::{Condvar, Mutex};

/// An open-ended line with one taker. Unlike a channel it closes at an exact place: whatever was
/// pushed before is still taken, whatever comes later is given back.
pub(super) struct Queue<T> {
    line: Mutex<Line<T>>,
    arrived: Condvar,
}

struct Line<T> {
    waiting: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let line = Line { waiting: VecDeque::new(), closed: false };
        Self { line: Mutex::new(line), arrived: Condvar::new() }
    }

    /// Stands in line, or comes back when the queue is closed.
    pub(super) fn push(&self, item: T) -> Result<(), T> {
        let mut line = self.line.lock();
        if line.closed {
            return Err(item);
        }
        line.waiting.push_back(item);
        let first = line.waiting.len() == 1;
        drop(line);
        // The taker only sleeps while the line is empty.
        if first {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Waits for something and moves it to `into`: at most `limit` items, and not many more than
    /// `room` by weight. False when closed and empty.
    pub(super) fn take(&self, limit: usize, mut room: usize, weight: impl Fn(&T) -> usize, into: &mut Vec<T>) -> bool {
        let mut line = self.line.lock();
        while line.waiting.is_empty() {
            if line.closed {
                return false;
            }
            self.arrived.wait(&mut line);
        }
        while room > 0
            && into.len() < limit
            && let Some(item) = line.waiting.pop_front()
        {
            room = room.saturating_sub(weight(&item));
            into.push(item);
        }
        true
    }

    pub(super) fn close(&self) {
        self.line.lock().closed = true;
        self.arrived.notify_all();
    }
}
