//! Server-sent events: the rules of the format, and that chunks do not matter.

use std::time::Duration;

use nuncio_client::sse::{Parser, SseError, SseEvent};
use proptest::prelude::*;

/// All events of some chunks, and the error that ended them.
fn parse_chunks<'a>(
    limit: usize,
    chunks: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<SseEvent>, Option<SseError>, Option<Duration>) {
    let mut parser = Parser::with_limit(limit);
    let mut events = Vec::new();
    for chunk in chunks {
        parser.push(chunk);
        loop {
            match parser.next_event() {
                Ok(Some(event)) => events.push(event),
                Ok(None) => break,
                Err(error) => {
                    assert_eq!(parser.next_event(), Err(error), "an error stays");
                    return (events, Some(error), parser.retry());
                }
            }
        }
    }
    (events, None, parser.retry())
}

fn parse(bytes: &[u8]) -> Vec<SseEvent> {
    let (events, error, _) = parse_chunks(1 << 20, [bytes]);
    assert_eq!(error, None);
    events
}

fn data(text: &str) -> SseEvent {
    SseEvent { data: text.into(), ..SseEvent::default() }
}

#[test]
fn fields_of_an_event() {
    let events = parse(b"id: 7\nevent: error\ndata: {\"a\":1}\nretry: 250\n\n");
    assert_eq!(events, [SseEvent { id: Some("7".into()), event: "error".into(), data: "{\"a\":1}".into() }]);
    assert_eq!(parse_chunks(100, [b"retry: 250\nretry: x\nretry: \n".as_slice()]).2, Some(Duration::from_millis(250)));
}

#[test]
fn data_lines_are_joined_and_lose_one_space() {
    assert_eq!(parse(b"data:a\ndata:  b\ndata\ndata: \n\n"), [data("a\n b\n\n")]);
    assert_eq!(parse(b"data:\n\n"), [data("")]);
}

#[test]
fn every_line_end() {
    for end in ["\n", "\r", "\r\n"] {
        let text = format!("data: a{end}data: b{end}{end}data: c{end}{end}");
        assert_eq!(parse(text.as_bytes()), [data("a\nb"), data("c")], "{end:?}");
    }
    assert_eq!(parse(b"data: a\r\r\ndata: b\n\r\n"), [data("a"), data("b")]);
}

#[test]
fn comments_unknown_fields_and_events_without_data_are_dropped() {
    assert_eq!(parse(b": keep-alive\n\nfoo: bar\nDATA: x\n\nid: 3\n\ndata: a\n\n"), [data("a")]);
}

#[test]
fn an_id_belongs_to_its_event() {
    let events = parse(b"id: 1\ndata: a\n\ndata: b\n\nid: 2\nid:\ndata: c\n\nid: x\0y\ndata: d\n\n");
    let ids: Vec<_> = events.iter().map(|event| event.id.as_deref()).collect();
    assert_eq!(ids, [Some("1"), None, None, None]);
}

#[test]
fn a_byte_order_mark_is_skipped_only_at_the_start() {
    assert_eq!(parse(b"\xef\xbb\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"), [data("a")]);
}

#[test]
fn an_unfinished_event_is_no_event() {
    assert_eq!(parse(b"data: a\n\ndata: b\n"), [data("a")]);
}

#[test]
fn bytes_that_are_not_text_are_an_error() {
    let (events, error, _) = parse_chunks(100, [b"data: a\n\ndata: \xff\n\n".as_slice()]);
    assert_eq!((events.len(), error), (1, Some(SseError::NotUtf8)));
}

#[test]
fn an_event_has_a_largest_size() {
    let long = SseError::TooLarge { limit: 20 };
    assert_eq!(parse_chunks(20, [b"data: 01234567890123456789".as_slice()]).1, Some(long));
    assert_eq!(parse_chunks(20, [b"data: 0123456789\ndata: 0123456789\n".as_slice()]).1, Some(long));
    assert_eq!(parse_chunks(20, [b"data: 0123456789\n\ndata: 0123456789\n\n".as_slice()]).1, None);
}

/// Text that looks like events often enough to be interesting.
fn event_bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        Just(b"\n".to_vec()),
        Just(b"\r".to_vec()),
        Just(b"\r\n".to_vec()),
        Just(b"\n\n".to_vec()),
        Just(b"data: ".to_vec()),
        Just(b"data".to_vec()),
        Just(b"id: 12".to_vec()),
        Just(b"event: error".to_vec()),
        Just(b"retry: 9".to_vec()),
        Just(b": comment".to_vec()),
        Just(b"\xef\xbb\xbf".to_vec()),
        Just("ü€😀".as_bytes().to_vec()),
        "[a-z :]{0,12}".prop_map(String::into_bytes),
        prop::collection::vec(any::<u8>(), 0..3),
    ];
    prop::collection::vec(piece, 0..40).prop_map(|pieces| pieces.concat())
}

proptest! {
    #[test]
    fn chunks_do_not_matter(bytes in event_bytes(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..12), limit in 1_usize..80) {
        let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
        cuts.extend([0, bytes.len()]);
        cuts.sort_unstable();
        let whole = parse_chunks(limit, [bytes.as_slice()]);
        prop_assert_eq!(&whole, &parse_chunks(limit, cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]])));
        prop_assert_eq!(&whole, &parse_chunks(limit, bytes.chunks(1)));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), limit in 0_usize..100) {
        let (events, _, _) = parse_chunks(limit, [bytes.as_slice()]);
        prop_assert!(events.iter().all(|event| event.data.len() <= limit));
    }
}
