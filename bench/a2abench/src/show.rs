//! One call of each method, to see what a server answers.

use serde_json::{Value, json};

use crate::args::Args;
use crate::conn::Conn;

pub async fn run(args: &Args) -> Result<Value, String> {
    let io = |e: std::io::Error| e.to_string();
    let show = |b: &[u8]| String::from_utf8_lossy(&b[..b.len().min(1200)]).into_owned();
    let mut out = json!({});
    let mut plain = Conn::http(&args.target);
    plain.call(&args.target.card()).await.map_err(io)?;
    out["card"] = json!(format!("{} {}", plain.status(), show(plain.content())));
    let mut conn = Conn::new(&args.target);
    conn.call(&args.target.send(&args.text(), None, false)).await.map_err(io)?;
    out["send"] = json!(format!("{} {}", conn.status(), show(conn.content())));
    let id = args.target.binding.task_id(conn.content()).unwrap_or_default();
    out["task"] = json!(id);
    for (name, request) in [("get", args.target.get_task(&id)), ("list", args.target.list(2, None))] {
        conn.call(&request).await.map_err(io)?;
        out[name] = json!(format!("{} {}", conn.status(), show(conn.content())));
    }
    let stream = format!("{} {}", args.word, args.chunks);
    if conn.open(&args.target.send(&stream, None, true)).await.map_err(io)? {
        let mut events = Vec::new();
        while conn.event().await.map_err(io)? {
            events.push(show(conn.content()));
        }
        out["stream_events"] = json!(events.len());
        let n = events.len();
        if n > 4 {
            events.drain(3..n - 1);
        }
        out["stream"] = json!(events);
    } else {
        out["stream"] = json!(format!("{} {}", conn.status(), show(conn.content())));
    }
    Ok(out)
}
