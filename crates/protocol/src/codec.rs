//! The only place that calls `serde_json`.

use std::borrow::Cow;
use std::ops::Deref;

use serde::Deserialize;

/// Text that is borrowed from the input where it needs no unescaping.
#[derive(Deserialize)]
#[serde(transparent)]
pub(crate) struct Text<'a>(#[serde(borrow)] Cow<'a, str>);

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}
