//! An agent of one's own on the A2A network: `cargo run --example hello_agent`.

use nuncio_server::{Agent, AgentError, Turn, serve};

struct Hello;

#[async_trait::async_trait]
impl Agent for Hello {
    async fn run(&self, turn: &mut Turn) -> Result<(), AgentError> {
        turn.text(format!("Hello! You said: {}", turn.text_in())).await
    }
}

#[tokio::main]
async fn main() -> std::io::Result<()> {
    println!("http://127.0.0.1:41242/.well-known/agent-card.json");
    serve(Hello, "127.0.0.1:41242").await
}
