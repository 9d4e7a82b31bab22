//! Who is told what became of a batch, and where.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

type News = Box<dyn FnOnce() + Send>;

/// Tells the outcome of batches in their order, inside the runtime: one wake-up from the writing thread
/// for all who wait instead of one for each, which would cost more than the batch. Without a runtime, or where only
/// one waits and nothing else is still to be told, the writing thread tells it itself.
#[derive(Clone)]
pub(super) struct Herald {
    /// None without a runtime.
    sender: Option<UnboundedSender<News>>,
    /// How much was handed over and is not told yet. Only the writing thread adds to it.
    untold: Arc<AtomicUsize>,
}

impl Herald {
    pub(super) fn start() -> Self {
        let untold = Arc::new(AtomicUsize::new(0));
        let Ok(runtime) = Handle::try_current() else { return Self { sender: None, untold } };
        let (sender, mut news) = unbounded_channel::<News>();
        let told = untold.clone();
        runtime.spawn(async move {
            while let Some(tell) = news.recv().await {
                tell();
                told.fetch_sub(1, Ordering::Release);
            }
        });
        Self { sender: Some(sender), untold }
    }

    pub(super) fn tell(&self, for_one: bool, news: impl FnOnce() + Send + 'static) {
        match &self.sender {
            None => news(),
            Some(_) if for_one && self.untold.load(Ordering::Acquire) == 0 => news(),
            Some(sender) => {
                self.untold.fetch_add(1, Ordering::Relaxed);
                // A runtime that has ended tells nothing any more.
                if let Err(back) = sender.send(Box::new(news)) {
                    (back.0)();
                }
            }
        }
    }
}
