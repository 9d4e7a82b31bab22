//! A run while its turn waits for somebody.

use std::collections::VecDeque;

use super::super::child::Child;
use super::super::report::{Dialect, Report};
use super::BACKLOG;

/// What is needed of a run while its turn waits for somebody.
pub(super) struct Waiting<'a> {
    pub(super) child: &'a mut Child,
    pub(super) dialect: &'a mut dyn Dialect,
    pub(super) queue: &'a mut VecDeque<Report>,
}

impl Waiting<'_> {
    /// Waits for an answer while the program goes on. `None` when the program no longer wants it, or is gone.
    pub(super) async fn while_asking<T>(self, id: &str, answer: impl Future<Output = T>) -> Option<T> {
        let mut answer = std::pin::pin!(answer);
        let mut listening = true;
        loop {
            let room = listening && self.queue.len() < BACKLOG;
            tokio::select! {
                biased;
                answer = &mut answer => return Some(answer),
                line = self.child.line(), if room => match line {
                    Ok(Some(line)) => {
                        let mut out = Vec::new();
                        self.dialect.line(&String::from_utf8_lossy(&line), &mut out);
                        let settled = out.iter().any(|report| settles(report, id));
                        self.queue.extend(out);
                        if settled {
                            return None;
                        }
                    }
                    Ok(None) => return None,
                    // It is noticed again by whoever reads next.
                    Err(_) => listening = false,
                },
            }
        }
    }
}

/// Whether nobody waits any more for the answer to this request: it was withdrawn, or the turn is over.
pub(super) fn settles(report: &Report, request: &str) -> bool {
    match report {
        Report::Withdraw { id } => id == request,
        Report::Done | Report::Failed(_) | Report::AuthRequired(_) | Report::Rejected(_) | Report::Lost(_) => true,
        _ => false,
    }
}
