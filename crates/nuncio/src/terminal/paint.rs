//! Colours, for those who can see them.

/// How a text looks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Paint {
    /// As it is.
    #[default]
    Plain,
    Bold,
    Dim,
    Red,
    Green,
    Yellow,
}

impl Paint {
    /// The text, coloured if `on`.
    pub(crate) fn on(self, on: bool, text: &str) -> String {
        let code = match self {
            Self::Plain => return text.to_owned(),
            Self::Bold => "1",
            Self::Dim => "2",
            Self::Red => "31",
            Self::Green => "32",
            Self::Yellow => "33",
        };
        if on && !text.is_empty() { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}
