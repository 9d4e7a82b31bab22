//! Names with passwords, as HTTP Basic sends them.

use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use subtle::ConstantTimeEq;

/// A caller who proves who he is with a password.
#[derive(Clone)]
pub struct Password {
    user: Arc<str>,
    password: Arc<str>,
    /// Whose tasks his are.
    name: Arc<str>,
}

impl Password {
    /// A user and his password.
    pub fn new(user: &str, password: &str) -> Self {
        Self { user: user.into(), password: password.into(), name: format!("basic:{user}").into() }
    }
}

impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Password").field("user", &self.user).finish_non_exhaustive()
    }
}

/// The one whose name and password stand behind `Basic`.
pub(super) fn find(all: &[Password], shown: &str) -> Option<Arc<str>> {
    let pair = STANDARD.decode(shown).ok()?;
    let colon = pair.iter().position(|byte| *byte == b':')?;
    let (user, password) = (&pair[..colon], &pair[colon + 1..]);
    let mut found = None;
    for known in all {
        // Both are compared, whatever the first says.
        let same = known.user.as_bytes().ct_eq(user) & known.password.as_bytes().ct_eq(password);
        if bool::from(same) {
            found = Some(known.name.clone());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_pair_is_known() {
        let all = [Password::new("anna", "se:cret"), Password::new("ben", "other")];
        let shown = |text: &str| find(&all, &STANDARD.encode(text));
        assert_eq!(shown("anna:se:cret").as_deref(), Some("basic:anna"));
        assert_eq!(shown("ben:other").as_deref(), Some("basic:ben"));
        for wrong in ["anna:other", "ben:se:cret", "anna:", ":se:cret", "anna", "", "Anna:se:cret", "anna:se:cret "] {
            assert_eq!(shown(wrong), None, "{wrong}");
        }
        assert_eq!(find(&all, "no base64!"), None);
        assert!(!format!("{all:?}").contains("se:cret"));
    }
}
