//! A connection that sends and receives notices instead of asking for anything: for the bus.

use std::future::poll_fn;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_postgres::{AsyncMessage, Client};

use super::super::StoreError;
use super::tls::Tls;
use super::url::Place;
use crate::store::Durability;

/// How long anything may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// So many notices wait to be read; those beyond are lost.
const MOST_WAITING: usize = 1024;

/// One channel of notices.
pub(crate) struct Notices {
    client: Client,
    channel: String,
    heard: mpsc::Receiver<String>,
}

impl Notices {
    /// Listens to a channel of the database at this URL.
    pub(crate) async fn open(url: &str, password: Option<&str>, channel: &str) -> Result<Self, StoreError> {
        let mut place = Place::read(url, password).map_err(|what| StoreError::Failed { at: "bus".into(), what })?;
        place.settle(Durability::Normal);
        let tls = Tls::new(&place)?;
        let connected = tokio::time::timeout(PATIENCE, place.config.connect(tls)).await;
        let (client, mut connection) =
            connected.map_err(|_| place.at.failed("no answer"))?.map_err(|error| place.at.sql(&error))?;
        let (ear, heard) = mpsc::channel(MOST_WAITING);
        tokio::spawn(async move {
            // It ends with the connection, and the last end of the channel with it.
            while let Some(Ok(message)) = poll_fn(|cx| connection.poll_message(cx)).await {
                if let AsyncMessage::Notification(notice) = message {
                    // Whoever does not keep up looks by itself.
                    let _ = ear.try_send(notice.payload().to_owned());
                }
            }
        });
        let listen = format!("LISTEN \"{channel}\"");
        let listening = tokio::time::timeout(PATIENCE, client.batch_execute(&listen)).await;
        listening.map_err(|_| place.at.failed("no answer"))?.map_err(|error| place.at.sql(&error))?;
        Ok(Self { client, channel: channel.to_owned(), heard })
    }

    /// Waits for a notice. Nothing when the connection is gone.
    pub(crate) async fn next(&mut self) -> Option<String> {
        self.heard.recv().await
    }

    /// Sends some notices in one statement. False when the connection is of no use any more.
    pub(crate) async fn send(&self, texts: &[String]) -> bool {
        let sql = "SELECT pg_notify($1, text) FROM unnest($2::text[]) AS text";
        let sent = async { self.client.query(sql, &[&self.channel, &texts]).await };
        matches!(tokio::time::timeout(PATIENCE, sent).await, Ok(Ok(_)))
    }
}
