//! Names as PostgreSQL can hold them, and as its indexes can.

use std::borrow::Cow;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::super::Scope;

/// Text in PostgreSQL holds every character but NUL. The escape keeps the order of bytes, by which tasks are listed.
pub(super) fn escape(text: &str) -> Cow<'_, str> {
    if memchr::memchr2(0, 1, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace('\u{1}', "\u{1}\u{2}").replace('\0', "\u{1}\u{1}"))
}

/// Undoes [`escape`].
pub(super) fn unescape(text: &str) -> Cow<'_, str> {
    if memchr::memchr(1, text.as_bytes()).is_none() {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.replace("\u{1}\u{1}", "\0").replace("\u{1}\u{2}", "\u{1}"))
}

/// A hash of several texts. Each has its length before it, so that no two lists look the same.
pub(super) fn digest(parts: &[&str]) -> [u8; 32] {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update((part.len() as u64).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().into()
}

fn short(parts: &[&str]) -> Uuid {
    let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, ..] = digest(parts);
    Uuid::from_bytes([a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p])
}

fn number(parts: &[&str]) -> i64 {
    let [a, b, c, d, e, f, g, h, ..] = digest(parts);
    i64::from_be_bytes([a, b, c, d, e, f, g, h])
}

pub(super) fn scope(scope: &Scope) -> Uuid {
    short(&[&scope.tenant, &scope.owner])
}

pub(super) fn context(scope: &Scope, context_id: &str) -> Uuid {
    short(&[&scope.tenant, &scope.owner, context_id])
}

pub(super) fn realm(tenant: &str) -> i64 {
    number(&[tenant])
}

pub(super) fn who(owner: &str) -> i64 {
    number(&[owner])
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn every_text_comes_back_and_keeps_its_place() {
        let pieces = ["", "\0", "\u{1}", "\u{2}", "a", "\0\u{1}", "\u{1}\u{2}", "\u{1}\u{1}", "é"];
        let mut all: Vec<String> = Vec::new();
        for a in pieces {
            for b in pieces {
                all.extend(pieces.map(|c| format!("{a}{b}{c}")));
            }
        }
        all.sort();
        all.dedup();
        let escaped: Vec<String> = all.iter().map(|text| escape(text).into_owned()).collect();
        assert!(escaped.iter().all(|text| !text.contains('\0')));
        assert!(escaped.is_sorted());
        assert!(escaped.iter().zip(&all).all(|(escaped, text)| unescape(escaped) == *text));
    }
}
