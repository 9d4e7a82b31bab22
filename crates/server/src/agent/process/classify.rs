//! How hard a task looks, judged by its words.

use std::str::FromStr;

/// Classes of tasks, each with an agent and a model of its own where routing is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Needs the best there is.
    Complex,
    /// Neither of the others.
    Mid,
    /// Anything can do it.
    Routine,
}

impl Profile {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Complex, Self::Mid, Self::Routine];

    /// Its name in configurations and in messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Complex => "COMPLEX",
            Self::Mid => "MID",
            Self::Routine => "ROUTINE",
        }
    }
}

/// Not the name of a profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected COMPLEX, MID or ROUTINE")]
pub struct UnknownProfile;

impl FromStr for Profile {
    type Err = UnknownProfile;

    /// Reads a name in any case.
    fn from_str(name: &str) -> Result<Self, UnknownProfile> {
        Self::ALL.into_iter().find(|profile| profile.name().eq_ignore_ascii_case(name.trim())).ok_or(UnknownProfile)
    }
}

/// A prompt with more characters than this is complex whatever it says.
const LONG: usize = 1500;

const COMPLEX: [&str; 11] = [
    "refactor",
    "architecture",
    "architect",
    "migrate",
    "migration",
    "debug",
    "security",
    "across the codebase",
    "redesign",
    "rewrite",
    "design ",
];

const ROUTINE: [&str; 9] =
    ["rename", "reformat", "format ", "typo", "add a comment", "docstring", "lint", "remove unused", "fix indentation"];

/// Judges a prompt. What sounds complex is complex, even if it sounds like routine as well.
pub fn classify(prompt: &str) -> Profile {
    if prompt.chars().nth(LONG).is_some() {
        return Profile::Complex;
    }
    let prompt = prompt.to_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| prompt.contains(word));
    if has(&COMPLEX) {
        Profile::Complex
    } else if has(&ROUTINE) {
        Profile::Routine
    } else {
        Profile::Mid
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_decide() {
        assert_eq!(classify("fix typo"), Profile::Routine);
        assert_eq!(classify("refactor and fix typo"), Profile::Complex);
        assert_eq!(classify("Add endpoint"), Profile::Mid);
        assert_eq!(classify("DESIGN a cache"), Profile::Complex);
        assert_eq!(classify("the designer left"), Profile::Mid);
        assert_eq!(classify(""), Profile::Mid);
    }

    #[test]
    fn length_decides_before_words() {
        assert_eq!(classify(&"a".repeat(1500)), Profile::Mid);
        assert_eq!(classify(&"a".repeat(1501)), Profile::Complex);
        assert_eq!(classify(&"é".repeat(1500)), Profile::Mid, "characters, not bytes");
    }

    #[test]
    fn names_are_read_in_any_case() {
        for profile in Profile::ALL {
            assert_eq!(profile.name().to_lowercase().parse(), Ok(profile));
        }
        assert_eq!("routine".parse(), Ok(Profile::Routine));
        assert_eq!("hard".parse::<Profile>(), Err(UnknownProfile));
    }
}
