//! Where writes wait for the writer, in the order in which they were handed over.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

/// How long what can wait does wait for company, and how much of it is company enough.
const PATIENCE: Duration = Duration::from_millis(50);
const ENOUGH: usize = 256;

/// An open-ended line with one taker. Unlike a channel it closes at an exact place: whatever was
/// pushed before is still taken, whatever comes later is given back.
pub(super) struct Queue<T> {
    line: Mutex<Line<T>>,
    arrived: Condvar,
}

struct Line<T> {
    waiting: VecDeque<Waiting<T>>,
    /// How many of them somebody waits for.
    awaited: usize,
    /// How many of those it takes to wake a taker who hopes for company.
    enough: usize,
    /// How many can wait, how much they bring together, and since when the first one is there.
    patient: usize,
    load: usize,
    since: Option<Instant>,
    closed: bool,
}

struct Waiting<T> {
    item: T,
    how: How,
}

/// How urgent something is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum How {
    /// Somebody waits for its outcome.
    Awaited,
    /// Nobody waits, but what is behind it may be awaited.
    Soon,
    /// It can wait until something urgent comes, or enough of its kind: it brings so much.
    Patient(usize),
}

impl<T> Queue<T> {
    pub(super) fn new() -> Self {
        let line =
            Line { waiting: VecDeque::new(), awaited: 0, enough: 0, patient: 0, load: 0, since: None, closed: false };
        Self { line: Mutex::new(line), arrived: Condvar::new() }
    }

    /// Stands in line, or comes back when the queue is closed.
    pub(super) fn push(&self, item: T, how: How) -> Result<(), T> {
        let mut line = self.line.lock();
        if line.closed {
            return Err(item);
        }
        let before = line.load;
        line.waiting.push_back(Waiting { item, how });
        line.enter(how);
        // The taker only sleeps while nothing is urgent, until what can wait has waited, or while the line is shorter
        // than he likes.
        let wake = match how {
            How::Patient(_) => line.patient == 1 || (before < ENOUGH && line.load >= ENOUGH),
            How::Soon => line.urgent() == 1,
            How::Awaited => line.urgent() == 1 || line.awaited == line.enough,
        };
        drop(line);
        if wake {
            self.arrived.notify_one();
        }
        Ok(())
    }

    /// Stands at the head of the line once more, to be tried again in a while. Comes back when the queue is closed.
    pub(super) fn put_back(&self, item: T, load: usize) -> Result<(), T> {
        let mut line = self.line.lock();
        if line.closed {
            return Err(item);
        }
        let how = How::Patient(load);
        line.waiting.push_front(Waiting { item, how });
        line.since = None;
        line.enter(how);
        Ok(())
    }

    /// Waits until something is there, and then for up to `patience` until `enough` of it is awaited: those
    /// who were served last are likely to come back at once. False when closed and empty.
    pub(super) fn wait(&self, enough: usize, patience: Duration) -> bool {
        let mut line = self.line.lock();
        while line.urgent() == 0 && line.load < ENOUGH && !line.closed {
            match line.since {
                None => self.arrived.wait(&mut line),
                Some(since) => {
                    if self.arrived.wait_until(&mut line, since + PATIENCE).timed_out() {
                        break;
                    }
                }
            }
        }
        if line.waiting.is_empty() {
            return false;
        }
        line.enough = enough;
        let until = Instant::now() + patience;
        while line.urgent() > 0 && line.awaited < enough && !line.closed {
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
            && let Some(Waiting { item, how }) = line.waiting.pop_front()
        {
            line.leave(how);
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

impl<T> Line<T> {
    /// How many cannot wait.
    fn urgent(&self) -> usize {
        self.waiting.len() - self.patient
    }

    fn enter(&mut self, how: How) {
        match how {
            How::Awaited => self.awaited += 1,
            How::Soon => {}
            How::Patient(load) => {
                self.patient += 1;
                self.load += load;
                self.since.get_or_insert_with(Instant::now);
            }
        }
    }

    fn leave(&mut self, how: How) {
        match how {
            How::Awaited => self.awaited -= 1,
            How::Soon => {}
            How::Patient(load) => {
                self.patient -= 1;
                self.load -= load;
                if self.patient == 0 {
                    self.since = None;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::thread;

    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    fn take(queue: &Queue<u8>) -> Vec<u8> {
        let mut all = Vec::new();
        queue.take(usize::MAX, usize::MAX, |_| 0, &mut all);
        all
    }

    #[test]
    fn what_can_wait_goes_with_what_cannot_and_before_it() {
        let queue = Queue::new();
        queue.push(1, How::Patient(1)).unwrap();
        queue.push(2, How::Awaited).unwrap();
        queue.push(3, How::Patient(1)).unwrap();
        assert!(queue.wait(1, LONG));
        assert_eq!(take(&queue), [1, 2, 3]);
    }

    #[test]
    fn what_can_wait_goes_by_itself_when_it_is_much_or_old() {
        let queue = Queue::new();
        queue.push(1, How::Patient(ENOUGH)).unwrap();
        assert!(queue.wait(0, Duration::ZERO));
        assert_eq!(take(&queue), [1]);
        queue.push(2, How::Patient(1)).unwrap();
        let began = Instant::now();
        assert!(queue.wait(5, LONG), "nobody else is waited for");
        assert!(began.elapsed() >= PATIENCE / 2);
        assert_eq!(take(&queue), [2]);
    }

    #[test]
    fn who_sleeps_is_woken_by_what_is_urgent_and_by_what_has_become_much() {
        for how in [How::Awaited, How::Soon, How::Patient(ENOUGH)] {
            let queue = Arc::new(Queue::new());
            let taker = queue.clone();
            let taker = thread::spawn(move || {
                let mut all = Vec::new();
                while all.len() < 2 {
                    assert!(taker.wait(0, Duration::ZERO));
                    all.extend(take(&taker));
                }
                all
            });
            queue.push(1, How::Patient(0)).unwrap();
            queue.push(2, how).unwrap();
            assert_eq!(taker.join().unwrap(), [1, 2]);
        }
    }

    #[test]
    fn what_is_put_back_comes_first() {
        let queue = Queue::new();
        queue.push(2, How::Awaited).unwrap();
        queue.put_back(1, 9).unwrap();
        assert_eq!(take(&queue), [1, 2]);
        queue.close();
        assert_eq!(queue.put_back(1, 9), Err(1));
        assert_eq!(queue.push(1, How::Soon), Err(1));
        assert!(!queue.wait(0, LONG));
    }
}
