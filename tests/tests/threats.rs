//! The table of threats in SECURITY.md: every row names tests, and every test is there.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a panic is how a test reports")]

use std::path::Path;

/// What A2A servers and clients have met. A row may say more than these words, but none may be missing.
const THREATS: [&str; 18] = [
    "by a webhook's URL",
    "DNS rebinding",
    "by cards, key addresses and file URIs",
    "Credentials sent to a host that the card names",
    "Spoofed and shadowed cards",
    "Signatures that fail across SDKs",
    "Prompt injection in cards",
    "Session smuggling",
    "Guessed task ids, access across tenants",
    "Secrets returned by reads of webhooks",
    "Forged and replayed notifications",
    "Header injection",
    "Open by default",
    "Workspace escape, hostile repositories",
    "Browser attacks on loopback servers",
    "Resource exhaustion",
    "Approval confusion",
    "Leaks in errors",
];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The rows of the table: threat, answer, tests.
fn rows() -> Vec<[String; 3]> {
    let text = std::fs::read_to_string(root().join("SECURITY.md")).unwrap();
    let (_, table) = text.split_once("| threat | answer | shown by |\n|---|---|---|\n").expect("the table");
    let rows = table.lines().take_while(|line| line.starts_with('|'));
    rows.map(|row| {
        let cells: Vec<String> = row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("three cells: {cells:?}"))
    })
    .collect()
}

#[test]
fn every_threat_has_an_answer_and_a_test_that_is_there() {
    let rows = rows();
    for threat in THREATS {
        let found = rows.iter().filter(|[name, ..]| name.contains(threat)).count();
        assert_eq!(found, 1, "{threat}");
    }
    assert_eq!(rows.len(), THREATS.len());
    for [threat, answer, tests] in &rows {
        assert!(answer.len() > 20, "{threat}: {answer}");
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        assert!(!named.is_empty(), "{threat} has no test");
        for test in named {
            let (file, name) = test.split_once("::").unwrap_or_else(|| panic!("{test} is no file::test"));
            let source = std::fs::read_to_string(root().join(file)).unwrap_or_else(|_| panic!("{file} is not there"));
            let lines: Vec<&str> = source.lines().map(str::trim).collect();
            let declared = |line: &&str| {
                line.starts_with(&format!("fn {name}(")) || line.starts_with(&format!("async fn {name}("))
            };
            let at = lines.iter().position(declared).unwrap_or_else(|| panic!("{test} is not there"));
            let above = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
            assert!(above.into_iter().any(|line| line.contains("test")), "{test} is not run as a test");
            let ignored = lines[..at].iter().rev().take_while(|line| line.starts_with("#["));
            assert!(!ignored.into_iter().any(|line| line.starts_with("#[ignore")), "{test} is not run");
        }
    }
}
