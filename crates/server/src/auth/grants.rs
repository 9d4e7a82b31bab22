//! What a caller may do.

use crate::metrics::Operation;

/// A set of operations. Whoever is not limited may do all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Grants(u16);

const METRICS: u16 = 1 << 15;

const fn bit(operation: Operation) -> u16 {
    1 << operation as u16
}

impl Grants {
    /// Everything.
    pub const ALL: Self = Self(u16::MAX);
    /// Nothing.
    pub const NONE: Self = Self(0);

    /// These operations, by the names that A2A 1.0 has for them, and `metrics`.
    pub fn of<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownOperation> {
        names.into_iter().try_fold(Self::NONE, |all, name| {
            let one = match Operation::from_name(name) {
                Some(operation) => bit(operation),
                None if name == "metrics" => METRICS,
                None => return Err(UnknownOperation(name.to_owned())),
            };
            Ok(Self(all.0 | one))
        })
    }

    /// Whether an operation is among them. What is no operation has its own error.
    pub(crate) fn allow(self, operation: Operation) -> bool {
        operation == Operation::Unknown || self.0 & bit(operation) != 0
    }

    /// Whether the numbers for operators are among them.
    pub(crate) fn allow_metrics(self) -> bool {
        self.0 & METRICS != 0
    }

    /// Whether nothing is.
    pub(crate) fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl Default for Grants {
    fn default() -> Self {
        Self::ALL
    }
}

/// A name that no operation has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is no operation: use names such as SendMessage, GetTask or ListTasks, or metrics")]
pub struct UnknownOperation(pub String);

/// Which operations each scope allows.
#[derive(Clone, Debug)]
pub struct ScopeTable(Vec<(String, Grants)>);

/// The scopes of a server whose operator names none.
const STANDARD: [(&str, &[&str]); 4] = [
    (
        "a2a:read",
        &[
            "GetTask",
            "ListTasks",
            "SubscribeToTask",
            "GetTaskPushNotificationConfig",
            "ListTaskPushNotificationConfigs",
            "GetExtendedAgentCard",
        ],
    ),
    ("a2a:write", &["SendMessage", "SendStreamingMessage", "CancelTask"]),
    ("a2a:push", &["CreateTaskPushNotificationConfig", "DeleteTaskPushNotificationConfig"]),
    ("a2a:metrics", &["metrics"]),
];

impl ScopeTable {
    /// A table with these rows.
    pub fn new(rows: Vec<(String, Grants)>) -> Self {
        Self(rows)
    }

    /// What somebody with these scopes may do. Scopes that the table does not know mean nothing here.
    pub fn grants<'a>(&self, scopes: impl IntoIterator<Item = &'a str>) -> Grants {
        let row = |scope: &str| self.0.iter().find(|(name, _)| name == scope).map_or(0, |(_, grants)| grants.0);
        Grants(scopes.into_iter().fold(0, |all, scope| all | row(scope)))
    }

    /// Whether it has a row of this name.
    pub fn knows(&self, scope: &str) -> bool {
        self.0.iter().any(|(name, _)| name == scope)
    }
}

impl Default for ScopeTable {
    fn default() -> Self {
        let row = |(name, operations): &(&str, &[&str])| {
            ((*name).to_owned(), Grants::of(operations.iter().copied()).unwrap_or(Grants::NONE))
        };
        Self(STANDARD.iter().map(row).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scopes_add_up_and_unknown_ones_add_nothing() {
        let table = ScopeTable::default();
        let read = table.grants(["a2a:read", "openid"]);
        assert!(read.allow(Operation::Get) && read.allow(Operation::Subscribe) && read.allow(Operation::ExtendedCard));
        assert!(!read.allow(Operation::Send) && !read.allow(Operation::PushCreate) && !read.allow_metrics());
        assert!(read.allow(Operation::Unknown), "what is no operation has its own error");
        let both = table.grants(["a2a:read", "a2a:write"]);
        assert!(both.allow(Operation::Get) && both.allow(Operation::Cancel) && !both.allow(Operation::PushDelete));
        assert!(table.grants(["a2a:metrics"]).allow_metrics());
        assert!(table.grants(["profile"]).is_empty() && table.grants([]).is_empty());
        let all = table.grants(["a2a:read", "a2a:write", "a2a:push", "a2a:metrics"]);
        let forgotten = Operation::ALL.iter().find(|operation| !all.allow(**operation));
        assert_eq!(forgotten, None, "an operation that no scope allows");
        assert_eq!(Grants::of(["GetTask", "gettask"]), Err(UnknownOperation("gettask".into())));
    }
}
