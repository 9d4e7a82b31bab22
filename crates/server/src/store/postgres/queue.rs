//! Where writes wait for a writer, in the order in which they were handed over.

use std::collections::VecDeque;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// An open-ended line with one taker. Unlike a channel it closes at an exact place: whatever was
/// pushed before is still taken, whatever comes later is given back.
pub(super) struct Queue<T> {
    line: Mutex<Line<T>>,
    arrived: Notify,
}

struct Line<T> {
    waiting: VecDeque<T>,
    closed: bool,
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        Self { line: Mutex::new(Line { waiting: VecDeque::new(), closed: false }), arrived: Notify::new() }
    }

    /// Stands in line, or comes back when the queue is closed.
    pub(super) fn push(&self, item: T) -> Result<(), T> {
        let mut line = self.line.lock();
        if line.closed {
            return Err(item);
        }
        line.waiting.push_back(item);
        let wake = line.waiting.len() == 1;
        drop(line);
        // The taker only sleeps while the line is empty.
        if wake {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Waits until something is there. False when closed and empty.
    pub(super) async fn wait(&self) -> bool {
        loop {
            let arrived = self.arrived.notified();
            {
                let line = self.line.lock();
                if !line.waiting.is_empty() {
                    return true;
                }
                if line.closed {
                    return false;
                }
            }
            arrived.await;
        }
    }

    /// Moves what is there behind what `into` holds: up to `limit` items in all, and not many more than `room` by weight.
    pub(super) fn take(&self, limit: usize, mut room: usize, weight: impl Fn(&T) -> usize, into: &mut VecDeque<T>) {
        let mut line = self.line.lock();
        while room > 0
            && into.len() < limit
            && let Some(item) = line.waiting.pop_front()
        {
            room = room.saturating_sub(weight(&item));
            into.push_back(item);
        }
    }

    pub(super) fn close(&self) {
        self.line.lock().closed = true;
        self.arrived.notify_one();
    }

    pub(super) fn is_closed(&self) -> bool {
        self.line.lock().closed
    }
}
