//! Who is told what became of a batch, and where.

use tokio::runtime::Handle;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

type News = Box<dyn FnOnce() + Send>;

/// Tells the outcome of batches in their order, inside the runtime: one wake-up from the writing thread
/// for all who wait instead of one for each, which would cost more than the batch. Without a runtime the
/// writing thread tells it itself.
#[derive(Clone)]
pub(super) struct Herald(Option<UnboundedSender<News>>);

impl Herald {
    pub(super) fn start() -> Self {
        let Ok(runtime) = Handle::try_current() else { return Self(None) };
        let (sender, mut news) = unbounded_channel::<News>();
        runtime.spawn(async move {
            while let Some(tell) = news.recv().await {
                tell();
            }
        });
        Self(Some(sender))
    }

    pub(super) fn tell(&self, news: impl FnOnce() + Send + 'static) {
        match &self.0 {
            None => news(),
            Some(sender) => {
                // A runtime that has ended tells nothing any more.
                if let Err(back) = sender.send(Box::new(news)) {
                    (back.0)();
                }
            }
        }
    }
}
