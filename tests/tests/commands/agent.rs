//! A small agent that keeps webhooks, has an extended card, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

use nuncio_tests::{Value, json};
use parking_lot::Mutex;

/// The agent. It lives as long as the test.
pub(crate) struct Agent {
    pub(crate) url: String,
    seen: Arc<Mutex<Vec<Seen>>>,
}

/// One request.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    pub(crate) path: String,
    pub(crate) headers: String,
    pub(crate) body: Value,
}

impl Agent {
    /// Answers each method with what `answer` says: a result, or an error with a code.
    pub(crate) fn start(
        card: Value,
        answer: impl Fn(&str, &Value) -> Result<Value, i32> + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let url = format!("http://{}/", listener.local_addr().expect("an address"));
        let mut whole = json!({
            "name": "small", "description": "A small agent", "version": "1",
            "supportedInterfaces": [{ "url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
            "capabilities": {}, "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
        });
        for (key, value) in card.as_object().expect("an object") {
            whole[key] = value.clone();
        }
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, answer) = (seen.clone(), Arc::new(answer));
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let (log, card, answer) = (log.clone(), whole.clone(), answer.clone());
                std::thread::spawn(move || serve(&stream, &card, &log, &*answer));
            }
        });
        Self { url, seen }
    }

    /// Keeps webhooks in memory and has an extended card.
    pub(crate) fn with_webhooks() -> Self {
        let kept: Mutex<Vec<Value>> = Mutex::new(Vec::new());
        let card = json!({ "capabilities": { "pushNotifications": true, "extendedAgentCard": true } });
        Self::start(card, move |method, params| {
            let mut kept = kept.lock();
            let place =
                kept.iter().position(|config| config["id"] == params["id"] && config["taskId"] == params["taskId"]);
            match method {
                "CreateTaskPushNotificationConfig" => {
                    kept.push(params.clone());
                    Ok(params.clone())
                }
                "GetTaskPushNotificationConfig" => place.map(|place| kept[place].clone()).ok_or(-32001),
                "ListTaskPushNotificationConfigs" => {
                    Ok(json!({ "configs": kept.clone(), "nextPageToken": if kept.len() > 1 { "more" } else { "" } }))
                }
                "DeleteTaskPushNotificationConfig" => {
                    place.map(|place| kept.remove(place)).map(|_| Value::Null).ok_or(-32001)
                }
                "GetExtendedAgentCard" => Ok(json!({
                    "name": "small, extended", "description": "More", "version": "1", "supportedInterfaces": [],
                    "capabilities": {}, "defaultInputModes": [], "defaultOutputModes": [], "skills": [],
                })),
                _ => Err(-32601),
            }
        })
    }

    /// The last request whose path is this.
    pub(crate) fn last(&self, path: &str) -> Seen {
        let seen = self.seen.lock();
        seen.iter().rev().find(|seen| seen.path == path).cloned().expect("such a request")
    }
}

fn serve(
    stream: &TcpStream,
    card: &Value,
    log: &Mutex<Vec<Seen>>,
    answer: &dyn Fn(&str, &Value) -> Result<Value, i32>,
) {
    let mut reader = BufReader::new(stream);
    loop {
        let (mut head, mut length) = (String::new(), 0_usize);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line).unwrap_or(0) == 0 {
                return;
            }
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().expect("a number");
            }
            if line == "\r\n" {
                break;
            }
            head.push_str(&line);
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body).expect("a body");
        let path = head.split(' ').nth(1).expect("a path").to_owned();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        log.lock().push(Seen { path: path.clone(), headers: head, body: body.clone() });
        let reply = if path.ends_with("agent-card.json") {
            card.clone()
        } else {
            let mut reply = json!({ "jsonrpc": "2.0", "id": body["id"] });
            match answer(body["method"].as_str().unwrap_or_default(), &body["params"]) {
                Ok(result) => reply["result"] = result,
                Err(code) => reply["error"] = json!({ "code": code, "message": "no" }),
            }
            reply
        };
        let reply = reply.to_string();
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", reply.len());
        if (&*stream).write_all(format!("{head}{reply}").as_bytes()).is_err() {
            return;
        }
    }
}
