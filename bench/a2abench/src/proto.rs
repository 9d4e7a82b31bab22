//! The few protobuf messages that gRPC needs, written and read by hand: a generator must cost little.

/// A field of a message: its number and content.
fn bytes(out: &mut Vec<u8>, field: u8, content: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, content.len() as u64);
    out.extend_from_slice(content);
}

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// `SendMessageRequest` with one part of text.
pub fn send_message(id: &str, context: Option<&str>, text: &str) -> Vec<u8> {
    let (mut part, mut message, mut request) = (Vec::new(), Vec::new(), Vec::new());
    bytes(&mut part, 1, text.as_bytes());
    bytes(&mut message, 1, id.as_bytes());
    if let Some(context) = context {
        bytes(&mut message, 2, context.as_bytes());
    }
    message.extend_from_slice(&[4 << 3, 1]); // role: user
    bytes(&mut message, 5, &part);
    bytes(&mut request, 2, &message);
    request
}

/// `GetTaskRequest` and `SubscribeToTaskRequest`.
pub fn task_by_id(id: &str) -> Vec<u8> {
    let mut out = Vec::new();
    bytes(&mut out, 2, id.as_bytes());
    out
}

/// `ListTasksRequest`.
pub fn list_tasks(page: u64, context: Option<&str>) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some(context) = context {
        bytes(&mut out, 2, context.as_bytes());
    }
    out.push(4 << 3);
    varint(&mut out, page);
    out
}

enum Field<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

fn take_varint(from: &mut &[u8]) -> Option<u64> {
    let mut n = 0;
    for shift in (0..64).step_by(7) {
        let (&byte, rest) = from.split_first()?;
        *from = rest;
        n |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(n);
        }
    }
    None
}

fn fields(mut from: &[u8]) -> impl Iterator<Item = (u64, Field<'_>)> {
    std::iter::from_fn(move || {
        let key = take_varint(&mut from)?;
        let field = match key & 7 {
            0 => Field::Number(take_varint(&mut from)?),
            2 => {
                let size = usize::try_from(take_varint(&mut from)?).ok()?;
                Field::Bytes(take(&mut from, size)?)
            }
            1 => Field::Bytes(take(&mut from, 8)?),
            5 => Field::Bytes(take(&mut from, 4)?),
            _ => return None,
        };
        Some((key >> 3, field))
    })
}

fn take<'a>(from: &mut &'a [u8], n: usize) -> Option<&'a [u8]> {
    let (content, rest) = from.split_at_checked(n)?;
    *from = rest;
    Some(content)
}

fn field(message: &[u8], number: u64) -> Option<&[u8]> {
    fields(message).find_map(|(n, field)| match field {
        Field::Bytes(content) if n == number => Some(content),
        _ => None,
    })
}

/// What an answer or an event is about: a task (also without a wrapper), or an update of one.
fn subject(body: &[u8]) -> Option<&[u8]> {
    // The id of a bare task is no message; everything else is wrapped in field 1, 3 or 4.
    let (number, first) = fields(body).find_map(|(n, f)| match f {
        Field::Bytes(content) => Some((n, content)),
        Field::Number(_) => None,
    })?;
    let bare = number == 1 && field(body, 3).is_some();
    Some(if bare { body } else { first })
}

/// The state that an answer or an event says.
pub fn state(body: &[u8]) -> Option<u64> {
    if is_artifact(body) {
        return None;
    }
    let status = field(subject(body)?, 3)?;
    fields(status).find_map(|(n, f)| match f {
        Field::Number(state) if n == 1 => Some(state),
        _ => None,
    })
}

pub fn is_artifact(event: &[u8]) -> bool {
    event.first() == Some(&(4 << 3 | 2))
}

pub fn task_id(body: &[u8]) -> Option<String> {
    String::from_utf8(field(subject(body)?, 1)?.to_vec()).ok()
}
