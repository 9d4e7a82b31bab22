//! Entries of a request stream that anybody may have written.

use std::collections::HashMap;

use nuncio_server::redis_entry::{Entry, Rules};

/// The names of fields that mean something, and one that does not.
const NAMES: [&str; 5] = ["correlation_id", "reply_stream", "payload", "headers", "other"];

/// Pieces of a field each, separated by a byte that no text holds; the first byte of a piece says which field it is.
///
/// # Panics
///
/// When an entry would be answered where no replies belong, or with more than is allowed.
pub fn run(bytes: &[u8]) {
    let mut fields = HashMap::new();
    for piece in bytes.split(|byte| *byte == 0xff) {
        let Some((name, value)) = piece.split_first() else { continue };
        fields.insert(NAMES[usize::from(*name) % NAMES.len()].to_owned(), value.to_vec());
    }
    let rules = Rules { requests: "out:in", responses: "out", max_body: 4096, max_header: 512 };
    let (to, parts) = match Entry::read(fields, rules) {
        Entry::Request(to, parts, payload) => {
            assert!(payload.len() <= rules.max_body);
            (to, Some(parts))
        }
        Entry::Refused(to, _) => (to, None),
        Entry::Hopeless(_) => return,
    };
    assert!(to.stream == "out" || to.stream.starts_with("out:"), "{}", to.stream);
    assert!(to.stream != rules.requests && to.stream.len() <= 256 && to.correlation.len() <= 512);
    assert!(to.stream.bytes().all(|byte| byte.is_ascii_graphic()));
    if let Some(parts) = parts {
        assert!(parts.headers.len() <= 66, "as many as are allowed, and two of our own");
    }
}
