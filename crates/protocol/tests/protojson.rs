//! The JSON form of A2A 1.0: ProtoJSON, with the numbers and the order of user data kept.

#![allow(missing_docs, unreachable_pub, clippy::unwrap_used, clippy::panic)]

#[path = "support/schema.rs"]
mod schema;

use nuncio_protocol::codec::{DecodeError, decode, encode, to_value};
use nuncio_protocol::*;
use schema::{Field, MESSAGES, Presence, Shape, default, fields, fields_of, least, reread, sample};

/// An object with one field beside the least that the message needs.
fn with(field: &Field, name: &str, value: Value) -> String {
    let mut object = least(field);
    object.insert(name.to_owned(), value);
    Value::Object(object).to_string()
}

fn read(field: &Field, name: &str, value: Value) -> Value {
    let json = with(field, name, value);
    reread(field.message, &json).unwrap_or_else(|error| panic!("{} {json}: {error}", field.message))
}

fn refused(field: &Field, value: Value) {
    let json = with(field, &field.camel, value);
    let read = reread(field.message, &json);
    assert!(matches!(read, Err(DecodeError::Shape { .. })), "{} {json}: {read:?}", field.message);
}

#[test]
fn the_schema_names_every_message_once() {
    let named: std::collections::BTreeSet<&str> = fields().iter().map(|field| field.message).collect();
    assert_eq!(named, MESSAGES.iter().copied().collect());
}

#[test]
fn every_field_is_read_by_both_names_and_written_by_one() {
    for field in fields() {
        let value = sample(&field);
        let read_camel = read(&field, &field.camel, value.clone());
        assert_eq!(read_camel[&field.camel], value, "{}.{}", field.message, field.camel);
        assert_eq!(read(&field, field.snake, value), read_camel, "{}.{}", field.message, field.snake);
        if field.camel != field.snake {
            assert_eq!(read_camel.get(field.snake), None, "{}.{}", field.message, field.snake);
        }
    }
}

#[test]
fn no_message_is_written_with_members_that_the_schema_lacks() {
    for &message in MESSAGES {
        let fields = fields_of(message);
        for field in &fields {
            for name in read(field, &field.camel, sample(field)).as_object().unwrap().keys() {
                assert!(fields.iter().any(|field| field.camel == *name), "{message}.{name}");
            }
        }
    }
}

#[test]
fn null_is_absent_for_every_field() {
    for field in fields() {
        if field.kind == "Value" || field.presence == Presence::OneOf || field.snake == "flows" {
            continue; // `data: null` is a value, and a oneof needs a member
        }
        let absent = reread(field.message, &Value::Object(least(&field)).to_string()).unwrap();
        for name in [&*field.camel, field.snake] {
            assert_eq!(read(&field, name, Value::Null), absent, "{}.{name}", field.message);
        }
    }
}

#[test]
fn null_members_of_a_oneof_are_absent() {
    let part: Part =
        decode(br#"{"text":null,"raw":null,"url":"u","filename":null,"mediaType":null,"metadata":null}"#).unwrap();
    assert_eq!(part, Content::Url("u".into()).into());
    let event: StreamResponse = decode(br#"{"task":null,"message":{"messageId":"m"},"statusUpdate":null}"#).unwrap();
    assert!(matches!(event, StreamResponse::Message(_)));
}

#[test]
fn unknown_members_are_ignored_in_every_message() {
    for &message in MESSAGES {
        let field = &fields_of(message)[0];
        let mut object = least(field);
        object.insert(field.camel.clone(), sample(field));
        let plain = reread(message, &Value::Object(object.clone()).to_string()).unwrap();
        object.insert("x-unknown".into(), json!({"deep": [1, {"er": null}]}));
        object.insert("kind".into(), json!("task"));
        assert_eq!(reread(message, &Value::Object(object).to_string()), Ok(plain), "{message}");
    }
}

#[test]
fn defaults_are_left_out_unless_the_field_has_presence() {
    for field in fields() {
        if field.shape == Shape::One && needs_choice(field.kind) {
            continue; // there is no default to choose
        }
        let written = read(&field, &field.camel, default(&field)).get(&field.camel).cloned();
        let expected = match field.presence {
            Presence::Implicit => None,
            Presence::OneOf | Presence::Explicit | Presence::Required => Some(default(&field)),
        };
        assert_eq!(written, expected, "{}.{}", field.message, field.camel);
    }
}

/// Whether a message has to choose: it is a oneof, or requires one.
fn needs_choice(message: &str) -> bool {
    fields_of(message).iter().any(|field| field.presence == Presence::OneOf || field.kind == "OAuthFlows")
}

#[test]
fn required_fields_are_always_written() {
    for field in fields().iter().filter(|field| field.presence == Presence::Required) {
        // A request without its message is refused before anybody writes it.
        if matches!((field.message, field.snake), ("Oauth2SecurityScheme", _) | ("SendMessageRequest", "message")) {
            continue;
        }
        let written = reread(field.message, "{}").unwrap();
        assert_eq!(written.get(&field.camel), Some(&default(field)), "{}.{}", field.message, field.camel);
    }
}

#[test]
fn a_page_of_tasks_has_all_four_members() {
    let page = r#"{"tasks":[],"nextPageToken":"","pageSize":0,"totalSize":0}"#;
    assert_eq!(encode(&ListTasksResponse::default()), page);
}

#[test]
fn wrong_types_are_refused_for_every_field() {
    for field in fields() {
        let wrong = match (field.shape, field.kind) {
            (Shape::List, _) => vec![json!("oops"), json!(1), json!({"a": 1})],
            (Shape::Map, _) => vec![json!("oops"), json!(1), json!([1])],
            (_, "string" | "bytes") => vec![json!(1), json!(true), json!({}), json!(["s"])],
            (_, "bool") => vec![json!("true"), json!(1), json!({})],
            (_, "int32") => {
                vec![json!("seven"), json!(1.5), json!(2_147_483_648_i64), json!("2147483648"), json!({}), json!("")]
            }
            (_, "Timestamp") => vec![json!("yesterday"), json!(1), json!({}), json!("2026-13-01T00:00:00Z")],
            (_, "Struct") => vec![json!("oops"), json!(1), json!([]), json!(true)],
            (_, "TaskState" | "Role") => {
                vec![json!("working"), json!("user"), json!("ROLE"), json!(99), json!(-1), json!({}), json!(1.5)]
            }
            (_, "Value") => vec![],
            _ => vec![json!("oops"), json!(1), json!(true)],
        };
        wrong.into_iter().for_each(|value| refused(&field, value));
    }
}

#[test]
fn the_place_of_a_mistake_is_named() {
    let place = |json: &str| match decode::<SendMessageRequest>(json.as_bytes()) {
        Err(DecodeError::Shape { path, .. }) => path,
        other => panic!("{other:?}"),
    };
    assert_eq!(place(r#"{"message":{"parts":[{"text":"a"},{"text":1}]}}"#), "message.parts[1].text");
    assert_eq!(place(r#"{"message":{"role":"user"}}"#), "message.role");
    assert_eq!(place(r#"{"message":{"metadata":"oops"}}"#), "message.metadata");
    assert_eq!(place(r#"{"configuration":{"historyLength":"x"}}"#), "configuration.historyLength");
}

#[test]
fn enums_are_read_by_number() {
    for state in TaskState::ALL {
        let json = format!(r#"{{"state":{}}}"#, state.number());
        assert_eq!(decode::<TaskStatus>(json.as_bytes()).unwrap().state, *state);
        assert_eq!(to_value(state), state.name());
    }
    for role in Role::ALL {
        let json = format!(r#"{{"role":{}}}"#, role.number());
        assert_eq!(decode::<Message>(json.as_bytes()).unwrap().role, *role);
    }
}

#[test]
fn int32_is_read_from_numbers_strings_and_whole_floats() {
    for field in fields().iter().filter(|field| field.kind == "int32") {
        for (given, meant) in [(json!("5"), 5), (json!(5.0), 5), (json!(-3), -3), (json!("-3"), -3), (json!(5e1), 50)] {
            assert_eq!(read(field, &field.camel, given)[&field.camel], json!(meant), "{}", field.camel);
        }
        for edge in [i32::MAX, i32::MIN] {
            assert_eq!(read(field, &field.camel, json!(edge))[&field.camel], json!(edge));
        }
    }
}

#[test]
fn bytes_are_read_in_every_alphabet_and_written_in_one() {
    for (given, bytes) in [
        ("-_-_", &[0xfb, 0xff, 0xbf][..]),
        ("+/+/", &[0xfb, 0xff, 0xbf]),
        ("AQI=", &[1, 2]),
        ("AQI", &[1, 2]),
        ("_w", &[0xff]),
        ("/w==", &[0xff]),
        ("", &[]),
    ] {
        let part: Part = decode(json!({"raw": given}).to_string().as_bytes()).unwrap();
        assert_eq!(part.content, Content::Raw(bytes::Bytes::copy_from_slice(bytes)), "{given}");
    }
    assert_eq!(encode(&Part::from(Content::Raw(vec![0xfb, 0xff].into()))), r#"{"raw":"+/8="}"#);
    for bad in ["A", "A?==", "AQ ID", "é"] {
        assert!(decode::<Part>(json!({"raw": bad}).to_string().as_bytes()).is_err(), "{bad}");
    }
}

#[test]
fn a_part_holds_exactly_one_content() {
    for bad in [
        "{}",
        r#"{"text":null}"#,
        r#"{"filename":"a","metadata":{}}"#,
        r#"{"text":"a","url":"b"}"#,
        r#"{"url":"b","text":"a"}"#,
        r#"{"text":"","data":null}"#,
        r#"{"data":1,"raw":"AQID"}"#,
        r#"{"text":"a","metadata":"oops"}"#,
        r#"{"raw":"*"}"#,
        "[]",
        "null",
        "\"text\"",
    ] {
        assert!(decode::<Part>(bad.as_bytes()).is_err(), "{bad}");
    }
    for good in [r#"{"text":""}"#, r#"{"data":null}"#, r#"{"data":""}"#, r#"{"url":""}"#, r#"{"raw":""}"#] {
        assert_eq!(encode(&decode::<Part>(good.as_bytes()).unwrap()), good);
    }
}

#[test]
fn other_oneofs_have_exactly_one_member() {
    for bad in [r#"{"task":{},"message":{}}"#, "{}", r#"{"task":null}"#, r#"{"other":1}"#] {
        assert!(decode::<StreamResponse>(bad.as_bytes()).is_err(), "{bad}");
        assert!(decode::<SendMessageResponse>(bad.as_bytes()).is_err(), "{bad}");
    }
    assert!(decode::<SecurityScheme>(br#"{"mtlsSecurityScheme":{},"apiKeySecurityScheme":{}}"#).is_err());
    assert!(decode::<OAuthFlows>(br#"{"implicit":{},"password":{}}"#).is_err());
    assert!(decode::<Oauth2SecurityScheme>(b"{}").is_err());
}

#[test]
fn user_data_stays_as_it_is() {
    for data in [
        "7",
        "7.0",
        "-0.5",
        "9007199254740993",
        "18446744073709551615",
        "-9223372036854775808",
        "0.1",
        "1e+300",
        r#"{"z":1,"a":2,"m":{"y":1,"b":2}}"#,
        r#"{"timestamp":"2026-01-02T03:04:05+00:00"}"#,
        r#"{"timestamp":"2026-01-02T03:04:05+02:00","task_id":"x","role":1,"raw":"_w"}"#,
        "[null,true,[],{}]",
        "\"2026-01-02T03:04:05\"",
    ] {
        let json = format!(r#"{{"data":{data},"metadata":{{"z":{data},"a":null}}}}"#);
        assert_eq!(encode(&decode::<Part>(json.as_bytes()).unwrap()), json);
    }
}

#[test]
fn times_are_written_in_utc() {
    for (given, written) in [
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05.000Z"),
        ("2026-01-02T03:04:05.678Z", "2026-01-02T03:04:05.678Z"),
        ("2026-01-02T03:04:05.678+02:00", "2026-01-02T01:04:05.678Z"),
        ("2026-01-01T23:30:00-05:00", "2026-01-02T04:30:00.000Z"),
        ("2026-01-02T03:04:05.678901Z", "2026-01-02T03:04:05.678901Z"),
        ("2026-01-02T03:04:05.678901234Z", "2026-01-02T03:04:05.678901234Z"),
        ("2026-01-02T03:04:05.5Z", "2026-01-02T03:04:05.500Z"),
        ("2026-01-02T03:04:05.678", "2026-01-02T03:04:05.678Z"),
    ] {
        let status: TaskStatus = decode(json!({"timestamp": given}).to_string().as_bytes()).unwrap();
        assert_eq!(to_value(&status)["timestamp"], written, "{given}");
    }
}

#[test]
fn an_empty_string_is_an_absent_one() {
    let (empty, absent): (Message, Message) = (decode(br#"{"contextId":""}"#).unwrap(), decode(b"{}").unwrap());
    assert_eq!(empty, absent);
}

#[test]
fn nothing_is_invented_for_an_empty_request() {
    let request: SendMessageRequest = decode(b"{}").unwrap();
    assert_eq!(request, SendMessageRequest::default());
    assert_eq!(request.violations()[0].field, "message");
    let request: SendMessageRequest = decode(br#"{"message":{}}"#).unwrap();
    let wrong: Vec<String> = request.violations().into_iter().map(|violation| violation.field).collect();
    assert_eq!(wrong, ["message.messageId", "message.role", "message.parts"]);
}

#[test]
fn bad_json_is_told_from_bad_shapes() {
    for bad in ["", "{", "{\"a\":}", "nul", "{\"id\":\"\u{1}\"}", "{} {}"] {
        assert!(matches!(decode::<Task>(bad.as_bytes()), Err(DecodeError::Syntax(_))), "{bad}");
    }
    assert!(matches!(decode::<Task>(b"{\"id\":\"\xff\"}"), Err(DecodeError::Syntax(_))));
    assert!(matches!(decode::<Task>(b"3"), Err(DecodeError::Shape { .. })));
}
