//! What `docs/client-library.md` shows: `cargo run -p nuncio-client --example client -- URL TEXT`

use futures_util::StreamExt;
use nuncio_client::{CardKeys, Client, ClientError, Options, SendOptions};
use nuncio_protocol::{Message, Part, SendMessageRequest};

async fn ask(client: &Client, text: &str) -> Result<(), ClientError> {
    let message = Message::from_user(vec![Part::text(text)]);
    let request = SendMessageRequest { message: Some(message), ..Default::default() };
    let mut events = client.stream(request.clone()).await?;
    while let Some(event) = events.next().await {
        println!("{:?}", event?.response);
    }
    client.send_with(request, &SendOptions::key("order-4711")).await?;
    Ok(())
}

fn options() -> Result<Options, ClientError> {
    // Only signed cards, if the environment says whose.
    let Ok(url) = std::env::var("CARD_KEYS") else { return Ok(Options::default()) };
    Ok(Options { card_keys: CardKeys::jwks_url(&url)?, require_signature: true, ..Options::default() })
}

#[tokio::main]
async fn main() -> Result<(), ClientError> {
    let mut words = std::env::args().skip(1);
    let url = words.next().unwrap_or_else(|| "http://127.0.0.1:41242".into());
    let text = words.next().unwrap_or_else(|| "hello".into());
    let client = Client::discover(&url, options()?).await?;
    println!("signature: {}", client.signature().map(ToString::to_string).unwrap_or_default());
    ask(&client, &text).await
}
