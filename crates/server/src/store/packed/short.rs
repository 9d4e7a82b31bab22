//! Events of which the ids of their task and of its context, and the phrases that nearly all of them have in common, are
//! one byte each: more than half of what a short task has to say.

use std::sync::LazyLock;

use bytes::Bytes;
use memchr::memmem::Finder;
use nuncio_protocol::{ContextId, TaskId};

use super::CutOff;

/// What stands for the id of the task, and for that of its context: bytes that JSON never has, but in its strings, where
/// they are escaped. So is all below [`TEXT`].
const TASK: u8 = 1;
const CONTEXT: u8 = 2;

/// The byte of the first phrase; those of the others follow.
const PHRASE: u8 = 3;

/// From here on a byte is itself.
const TEXT: u8 = b' ';

/// The phrases, with bytes for ids in them. Their places are part of the format: others may only be added behind.
const PHRASES: [&[u8]; 5] = [
    b"{\"statusUpdate\":{\"taskId\":\"\x01\",\"contextId\":\"\x02\",\"status\":{\"state\":\"TASK_STATE_",
    b"{\"artifactUpdate\":{\"taskId\":\"\x01\",\"contextId\":\"\x02\",\"artifact\":{\"artifactId\":\"",
    b"{\"task\":{\"id\":\"\x01\",\"contextId\":\"\x02\",\"status\":{\"state\":\"TASK_STATE_",
    b"{\"id\":\"\x01\",\"contextId\":\"\x02\",\"status\":{\"state\":\"TASK_STATE_",
    b"\",\"taskId\":\"\x01\",\"role\":\"ROLE_USER\",\"parts\":[{\"text\":\"",
];

/// The phrase that goes on behind the id of a context in a message. All others are openings.
const IN_MESSAGE: usize = 4;

/// The end of a member's name before an id: `"id":"`, `"taskId":"`, `"contextId":"`.
static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(r#"d":""#));

/// The ids to be shortened.
pub(in crate::store) struct Ids<'a> {
    task: &'a [u8],
    context: &'a [u8],
}

impl<'a> Ids<'a> {
    pub(in crate::store) fn new(task: &'a TaskId, context: &'a ContextId) -> Self {
        Self { task: task.as_str().as_bytes(), context: context.as_str().as_bytes() }
    }

    /// Puts a body behind what is there, shortened. False, and nothing, where that could not be undone.
    pub(super) fn shorten(&self, body: &[u8], into: &mut Vec<u8>) -> bool {
        if has_marks(body) {
            return false;
        }
        let opening = (0..IN_MESSAGE).find_map(|at| self.phrase(at, body, into)).unwrap_or_default();
        let mut done = opening;
        for name in NAME.find_iter(&body[opening..]) {
            let start = opening + name + NAME.needle().len();
            let stands = |(id, _): &(&[u8], u8)| !id.is_empty() && body[start..].starts_with(id);
            let found = [(self.task, TASK), (self.context, CONTEXT)].into_iter().find(stands);
            // An id may look like a name itself, and a phrase has names in it.
            let Some((id, mark)) = found.filter(|_| start >= done) else { continue };
            into.extend_from_slice(&body[done..start]);
            into.push(mark);
            done = start + id.len();
            if mark == CONTEXT {
                done += self.phrase(IN_MESSAGE, &body[done..], into).unwrap_or_default();
            }
        }
        into.extend_from_slice(&body[done..]);
        true
    }

    /// Puts the byte of a phrase there, if the body begins with it. Returns how much of the body that is.
    fn phrase(&self, at: usize, body: &[u8], into: &mut Vec<u8>) -> Option<usize> {
        let mut rest = body;
        for piece in PHRASES[at].split_inclusive(|byte| *byte < TEXT) {
            rest = match piece {
                [text @ .., TASK] => rest.strip_prefix(text)?.strip_prefix(self.task)?,
                [text @ .., CONTEXT] => rest.strip_prefix(text)?.strip_prefix(self.context)?,
                text => rest.strip_prefix(text)?,
            };
        }
        into.push(PHRASE + u8::try_from(at).ok()?);
        Some(body.len() - rest.len())
    }
}

/// The ids in full, for who reads what was shortened; none where nothing is.
pub(in crate::store) type FullIds<'a> = Option<(&'a str, &'a str)>;

/// What was shortened as it was.
pub(super) fn full(short: &[u8], ids: FullIds<'_>) -> Result<Bytes, CutOff> {
    let ids = ids.ok_or(CutOff)?;
    // Exactly what it takes, since it may be kept for long.
    let mut size = 0;
    expand(short, ids, &mut |piece| size += piece.len())?;
    let mut out = Vec::with_capacity(size);
    expand(short, ids, &mut |piece| out.extend_from_slice(piece))?;
    Ok(out.into())
}

/// Hands out what was shortened, piece by piece.
fn expand(short: &[u8], ids: (&str, &str), take: &mut impl FnMut(&[u8])) -> Result<(), CutOff> {
    let mut done = 0;
    for at in marks(short) {
        take(&short[done..at]);
        match short[at] {
            TASK => take(ids.0.as_bytes()),
            CONTEXT => take(ids.1.as_bytes()),
            // A phrase has ids in it and no phrases.
            mark => expand(phrase_of(mark).ok_or(CutOff)?, ids, take)?,
        }
        done = at + 1;
    }
    take(&short[done..]);
    Ok(())
}

/// Where bytes stand for more than themselves.
fn marks(short: &[u8]) -> impl Iterator<Item = usize> {
    const STRIDE: usize = 32;
    let strides = short.chunks(STRIDE).zip((0..).step_by(STRIDE)).filter(|(stride, _)| has_marks(stride));
    strides.flat_map(|(stride, start)| (start..).zip(stride).filter(|(_, byte)| **byte < TEXT).map(|(at, _)| at))
}

/// To look at all of it takes a fraction of looking for the first.
fn has_marks(text: &[u8]) -> bool {
    text.iter().fold(false, |found, byte| found | (*byte < TEXT))
}

fn phrase_of(mark: u8) -> Option<&'static [u8]> {
    PHRASES.get(usize::from(mark.checked_sub(PHRASE)?)).copied()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Texts with ids and phrases where they should be, and where they should not.
    fn body() -> impl Strategy<Value = Vec<u8>> {
        let phrase = prop::sample::select(&PHRASES[..]).prop_map(<[u8]>::to_vec);
        let text = "([ab\"\u{e9}-]|d\":\"|d\":\"a|d\":\"ab-){0,6}".prop_map(String::into_bytes);
        prop::collection::vec(prop_oneof![phrase, text], 0..5).prop_map(|parts| parts.concat())
    }

    proptest! {
        #[test]
        fn what_is_shortened_comes_back(
            body in body(),
            task in "[ab-]{0,3}|a?d\":\"[ab]?",
            context in "[ab-]{0,3}",
            odd in prop::option::of(0_u8..40),
        ) {
            let mut whole = Vec::new();
            expand(&body, (&task, &context), &mut |piece| whole.extend_from_slice(piece)).expect("only ids");
            whole.extend(odd);
            let (task_id, context_id) = (TaskId::from(&*task), ContextId::from(&*context));
            let mut short = vec![];
            if Ids::new(&task_id, &context_id).shorten(&whole, &mut short) {
                prop_assert_eq!(full(&short, Some((&task, &context))).expect("what was written"), whole);
            } else {
                prop_assert!(odd.is_some_and(|byte| byte < TEXT) && short.is_empty());
            }
        }

        #[test]
        fn what_was_never_written_is_an_error_or_nothing(short in prop::collection::vec(0_u8..64, 0..64)) {
            let _ = full(&short, Some(("t", "c")));
            prop_assert!(full(&short, None).is_err());
        }
    }

    #[test]
    fn phrases_and_ids_take_a_byte_each() {
        let (task, context) = (TaskId::fresh(), ContextId::fresh());
        let ids = (task.as_str(), context.as_str());
        for (at, phrase) in (0..).zip(PHRASES) {
            let mut whole = if at < IN_MESSAGE { vec![] } else { b"{\"contextId\":\"\x02".to_vec() };
            let before = whole.len();
            whole.extend_from_slice(phrase);
            let whole = full(&whole, Some(ids)).expect("only ids");
            let mut short = Vec::new();
            assert!(Ids::new(&task, &context).shorten(&whole, &mut short));
            assert_eq!(short.len(), before + 1, "phrase {at}");
        }
    }
}
