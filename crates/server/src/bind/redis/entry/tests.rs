use super::*;

const RULES: Rules<'_> = Rules { requests: "in", responses: "out", max_body: 1000, max_header: 500 };

fn read(fields: &[(&str, &str)]) -> Entry {
    Entry::read(fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect(), RULES)
}

fn request(fields: &[(&str, &str)]) -> (ReplyTo, Box<Parts>) {
    match read(&[&[("correlation_id", "c")], fields].concat()) {
        Entry::Request(to, parts, _) => (to, parts),
        other => panic!("a request: {other:?}"),
    }
}

fn header<'a>(parts: &'a Parts, name: &str) -> Option<&'a str> {
    parts.headers.get(name).and_then(|value| value.to_str().ok())
}

fn send(method: &str, message: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"{method}","params":{{"message":{message}}}}}"#)
}

#[test]
fn without_a_name_replies_go_to_the_common_stream() {
    let (to, _) = request(&[("payload", "{}")]);
    assert_eq!(to, ReplyTo { stream: "out".into(), correlation: "c".into() });
    let (to, _) = request(&[("payload", "{}"), ("reply_stream", "out:client-1")]);
    assert_eq!(to.stream, "out:client-1");
}

#[test]
fn only_names_below_the_common_stream_are_written_to() {
    let long = format!("out:{}", "x".repeat(10_000));
    let edge = format!("out:{}", "x".repeat(LONGEST_STREAM - 4));
    request(&[("payload", "{}"), ("reply_stream", &edge)]);
    for name in ["in", "other", "out:", "outside", "out:a b", "out:a\n", "out:ü", "in:entry:1", &long] {
        let entry = read(&[("correlation_id", "c"), ("payload", "{}"), ("reply_stream", name)]);
        assert!(matches!(entry, Entry::Hopeless(_)), "{name}");
    }
    let rules = Rules { requests: "out:in", ..RULES };
    let fields = [("correlation_id", "c"), ("reply_stream", "out:in"), ("payload", "{}")];
    let fields = fields.iter().map(|(name, value)| ((*name).to_owned(), value.as_bytes().to_vec())).collect();
    assert!(matches!(Entry::read(fields, rules), Entry::Hopeless(_)), "the requests themselves, whatever their name");
}

#[test]
fn whoever_can_be_told_is_told_what_is_wrong() {
    for fields in [
        &[("correlation_id", "c")][..],
        &[("reply_stream", "out:mine"), ("payload", "{}")],
        &[("correlation_id", "c"), ("payload", &"x".repeat(1001))],
        &[("correlation_id", "c"), ("payload", "{}"), ("headers", "[]")],
        &[("correlation_id", "c"), ("payload", "{}"), ("headers", r#"{"a":1}"#)],
        &[("correlation_id", "c"), ("payload", "{}"), ("headers", r#"{"a b":"c"}"#)],
        &[("correlation_id", "c"), ("payload", "{}"), ("headers", r#"{"a":"b\nc"}"#)],
        &[("correlation_id", "c"), ("payload", "{}"), ("headers", &format!(r#"{{"a":"{}"}}"#, "x".repeat(500)))],
    ] {
        assert!(matches!(read(fields), Entry::Refused(..)), "{fields:?}");
    }
    for fields in [
        &[("payload", "{}")][..],
        &[("correlation_id", ""), ("payload", "{}")],
        &[("correlation_id", &"c".repeat(LONGEST_CORRELATION + 1)), ("reply_stream", "out:mine")],
    ] {
        assert!(matches!(read(fields), Entry::Hopeless(_)), "{fields:?}");
    }
    let raw = HashMap::from([("correlation_id".to_owned(), vec![0xff])]);
    assert!(matches!(Entry::read(raw, RULES), Entry::Hopeless(_)));
}

#[test]
fn the_method_tells_the_version_where_nothing_else_does() {
    let version = |payload: &str, headers: &str| {
        header(&request(&[("payload", payload), ("headers", headers)]).1, "a2a-version").map(str::to_owned)
    };
    let (new, old) = (send("SendMessage", "{}"), send("message/send", "{}"));
    assert_eq!(version(&new, "").as_deref(), Some("1.0"));
    assert_eq!(version(&old, ""), None);
    assert_eq!(version(&new, r#"{"A2A-Version":"0.3"}"#).as_deref(), Some("0.3"));
}

#[test]
fn a_message_is_its_own_key_unless_it_has_another() {
    let key = |method: &str, message: &str, headers: &str| {
        let (_, parts) = request(&[("payload", &send(method, message)), ("headers", headers)]);
        header(&parts, "idempotency-key").map(str::to_owned)
    };
    let first = key("SendMessage", r#"{"messageId":"m"}"#, "");
    assert!(first.as_ref().is_some_and(|key| key.starts_with("message-id:")));
    assert_eq!(key("message/stream", r#"{"messageId":"m","parts":[]}"#, ""), first);
    assert_eq!(key("SendMessage", r#"{"message_id":"m"}"#, ""), first);
    assert_ne!(key("SendMessage", r#"{"messageId":"ü"}"#, ""), first);
    assert_ne!(key("SendMessage", r#"{"messageId":"m","taskId":"t"}"#, ""), first, "the same id for another task");
    assert_eq!(key("SendMessage", r#"{"messageId":"m"}"#, r#"{"Idempotency-Key":"k"}"#).as_deref(), Some("k"));
    assert_eq!(key("GetTask", r#"{"messageId":"m"}"#, ""), None);
    assert_eq!(key("SendMessage", r#"{"messageId":7}"#, ""), None);
}
