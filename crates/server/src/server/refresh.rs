//! Files and keys that change while the server runs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::bind::App;

/// How often files are looked at.
const EVERY: Duration = Duration::from_secs(1);

/// Says when to look whether certificates, tokens and keys have changed, without waiting for the next time.
#[derive(Clone, Debug, Default)]
pub struct Reloader(Arc<Notify>);

impl Reloader {
    /// Now.
    pub fn reload(&self) {
        self.0.notify_one();
    }
}

/// Looks again and again until `stop`.
pub(super) async fn run(app: Arc<App>, reloader: Reloader, stop: CancellationToken) {
    loop {
        let files = app.clone();
        let looked = tokio::task::spawn_blocking(move || {
            files.gate.refresh_files();
            if let Some(tls) = &files.tls {
                tls.refresh();
            }
        });
        let _ = looked.await;
        tokio::select! {
            () = app.gate.refresh_keys() => {}
            () = stop.cancelled() => return,
        }
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            () = reloader.0.notified() => {}
            () = stop.cancelled() => return,
        }
    }
}
