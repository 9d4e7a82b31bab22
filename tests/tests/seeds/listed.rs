//! The tables of `docs/seeds`: every test that they name exists, and they leave no line of a document out.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// The documents, each with the number of its lines.
const DOCUMENTS: [(&str, u32); 5] = [("000", 282), ("001", 86), ("002", 327), ("003", 502), ("004", 280)];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The names of all tests below a folder.
fn tests_below(folder: &Path, found: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            tests_below(&path, found);
        } else if path.extension().is_some_and(|kind| kind == "rs") {
            let text = std::fs::read_to_string(&path).unwrap();
            let mut is_test = false;
            for line in text.lines() {
                is_test |= line.trim_start().starts_with("#[test]") || line.trim_start().starts_with("#[tokio::test");
                let name = line.trim_start().trim_start_matches("async ").strip_prefix("fn ");
                if let (true, Some(name)) = (is_test, name) {
                    found.insert(name.split('(').next().unwrap().to_owned());
                    is_test = false;
                }
            }
        }
    }
}

/// Lines of the document, and the tests that show what they say.
type Row = (Vec<(u32, u32)>, Vec<String>);

/// The rows of a table.
fn rows(text: &str) -> Vec<Row> {
    let row = |line: &str| {
        let cells: Vec<&str> = line.trim().strip_prefix("| ")?.split(" | ").collect();
        let range = |part: &str| {
            let (from, to) = part.trim().split_once('-').unwrap_or((part.trim(), part.trim()));
            Some((from.parse().ok()?, to.parse().ok()?))
        };
        let ranges = cells.first()?.split(',').map(range).collect::<Option<Vec<(u32, u32)>>>()?;
        let tests = cells.get(2)?.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some((ranges, tests))
    };
    text.lines().filter_map(row).collect()
}

#[test]
fn every_test_that_the_tables_name_exists() {
    let mut known = BTreeSet::new();
    tests_below(&root().join("tests/tests"), &mut known);
    tests_below(&root().join("crates"), &mut known);
    let mut named = 0;
    for entry in std::fs::read_dir(root().join("docs/seeds")).unwrap().map(Result::unwrap) {
        let text = std::fs::read_to_string(entry.path()).unwrap();
        for (lines, tests) in rows(&text) {
            for test in tests {
                let name = test.rsplit("::").next().unwrap();
                assert!(known.contains(name), "{test} at {lines:?} of {:?}", entry.path());
                named += 1;
            }
        }
    }
    assert!(named > 50, "{named}");
}

#[test]
fn the_tables_leave_no_line_out() {
    for (document, length) in DOCUMENTS {
        let text = std::fs::read_to_string(root().join(format!("docs/seeds/{document}.md"))).unwrap();
        let mut ranges: Vec<(u32, u32)> = rows(&text).into_iter().flat_map(|(ranges, _)| ranges).collect();
        ranges.sort_unstable();
        let mut next = 1;
        for (from, to) in ranges {
            assert!(from <= next, "{document}: lines {next} to {} are missing", from - 1);
            next = next.max(to + 1);
        }
        assert_eq!(next, length + 1, "{document}");
    }
}
