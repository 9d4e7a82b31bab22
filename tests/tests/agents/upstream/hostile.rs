//! Agents that are away, lead astray, or do not speak as they should.

use std::sync::Arc;

use nuncio_tests::{PATIENCE, Server, Value, json, state, texts, words};
use parking_lot::Mutex;

use super::door::{Door, Reply, asks_for_card, card, ok, response};
use super::front;

const TOKEN: &str = "upstream-token: secret-for-the-agent";

async fn fails(server: &Server, with: &str) {
    let task = server.send("hello").await;
    assert_eq!(state(&task), "FAILED", "{task}");
    assert!(words(&task).contains(with), "{with}: {task}");
    for secret in ["secret-for-the-agent", "127.0.0.1", "/srv/"] {
        assert!(!task.to_string().contains(secret), "{secret}: {task}");
    }
}

#[tokio::test]
async fn an_agent_that_is_away_is_no_reason_not_to_start_and_is_found_later() {
    let mut back = super::old();
    back.kill();
    let front = front(&back.url, "");
    fails(&front, "cannot be reached. Try again later").await;
    back.restart();
    let task = front.send("hello").await;
    assert_eq!(texts(&task), ["hello"]);
    let card = front.get("/.well-known/agent-card.json").send().await.unwrap().json::<Value>().await.unwrap();
    assert_eq!(card["name"], "nuncio demo", "the card is the agent's by now");
}

#[tokio::test]
async fn a_card_that_leads_elsewhere_gets_nothing() {
    let elsewhere = Door::open(|_, own| Reply::With(ok(&card(own, "JSONRPC", "1.0", true)))).await;
    let other = elsewhere.url.clone();
    let liar = Door::open(move |_, _| Reply::With(ok(&card(&other, "JSONRPC", "1.0", true)))).await;
    for token in [TOKEN, ""] {
        fails(&front(&liar.url, token), "leads to another address").await;
    }
    let other = elsewhere.url.clone();
    let redirect = Door::open(move |_, _| {
        let head = "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nConnection: close";
        Reply::With(format!("{head}\r\nLocation: {other}/.well-known/agent-card.json\r\n\r\n"))
    })
    .await;
    fails(&front(&redirect.url, TOKEN), "leads to another address").await;
    let other = elsewhere.url.clone();
    let late = Door::open(move |head, own| {
        let moved = "HTTP/1.1 307 Temporary Redirect\r\nContent-Length: 0\r\nConnection: close";
        match asks_for_card(head) {
            true => Reply::With(ok(&card(own, "JSONRPC", "1.0", true))),
            false => Reply::With(format!("{moved}\r\nLocation: {other}/\r\n\r\n")),
        }
    })
    .await;
    fails(&front(&late.url, TOKEN), "leads to another address").await;
    assert!(late.heads().iter().all(|head| head.contains("Bearer secret-for-the-agent")), "its own origin knows it");
    assert_eq!(elsewhere.heads(), [""; 0], "nobody knocked");
}

#[tokio::test]
async fn answers_that_are_none_fail_in_plain_words() {
    let huge = format!("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n", 1_u64 << 40);
    let answers = [
        (
            response("401 Unauthorized", "who are you, secret-for-the-agent?"),
            "does not accept this server's credentials",
        ),
        (response("403 Forbidden", ""), "does not allow this"),
        (response("200 OK", "<html>"), "does not speak A2A"),
        (response("200 OK", "{}"), "does not speak A2A"),
        (response("418 Teapot", "at /srv/app.py"), "does not speak A2A"),
        (huge, "more than"),
        (
            response("200 OK", r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32009,"message":"speak 2.0"}}"#),
            "answers: speak 2.0",
        ),
    ];
    for (answer, with) in answers {
        let door = Door::open(move |head, own| match asks_for_card(head) {
            true => Reply::With(ok(&card(own, "JSONRPC", "1.0", true))),
            false => Reply::With(answer.clone()),
        })
        .await;
        fails(&front(&door.url, TOKEN), with).await;
    }
    let none = Door::open(|_, own| Reply::With(ok(&card(own, "JSONRPC", "7.1", true)))).await;
    fails(&front(&none.url, TOKEN), "offers no interface").await;
    let nonsense = Door::open(|_, _| Reply::With(response("200 OK", "<html>"))).await;
    fails(&front(&nonsense.url, TOKEN), "does not speak A2A").await;
}

#[tokio::test]
async fn agents_that_form_a_circle_notice_it() {
    let target = Arc::new(Mutex::new(None::<String>));
    let behind = target.clone();
    let door = Door::open(move |head, own| match (asks_for_card(head), &*behind.lock()) {
        (false, Some(address)) => Reply::Through(address.clone()),
        _ => Reply::With(ok(&card(own, "JSONRPC", "1.0", true))),
    })
    .await;
    // With one place for a turn, a circle that went on would wait for itself.
    let server = front(&door.url, "max-running-turns: 1");
    *target.lock() = Some(server.url.trim_start_matches("http://").to_owned());
    let task = tokio::time::timeout(PATIENCE, server.send("hello")).await.expect("an end");
    assert_eq!(state(&task), "FAILED", "{task}");
    assert!(words(&task).contains("the agents form a circle"), "{task}");
    assert_eq!(server.rpc("ListTasks", json!({})).await["result"]["totalSize"], 1, "nothing was stored for it");
}
