//! Names that source files declare at their top level, found by the first words of lines.

use std::collections::HashSet;

/// Endings of files that are looked at.
const SOURCES: [&str; 14] =
    ["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "rs", "py", "go", "java", "kt", "swift"];

/// Words before the one that says what is declared.
const MODIFIERS: [&str; 17] = [
    "export",
    "default",
    "declare",
    "abstract",
    "async",
    "pub",
    "pub(crate)",
    "pub(super)",
    "unsafe",
    "public",
    "final",
    "static",
    "open",
    "data",
    "sealed",
    "private",
    "internal",
];

/// Words that say what is declared; the name follows.
const KINDS: [&str; 16] = [
    "function",
    "function*",
    "class",
    "interface",
    "type",
    "enum",
    "const",
    "let",
    "fn",
    "struct",
    "trait",
    "def",
    "func",
    "fun",
    "protocol",
    "record",
];

/// Whether a file is looked at, by its name.
pub(super) fn is_source(path: &str) -> bool {
    path.rsplit_once('.').is_some_and(|(_, ending)| SOURCES.contains(&ending))
}

/// The names in these files, each once, in as many bytes at most.
pub(super) fn list(files: impl Iterator<Item = String>, most: usize) -> String {
    let mut seen = HashSet::new();
    let mut list = String::new();
    for file in files {
        for name in file.lines().filter_map(declared) {
            if list.len() + name.len() + 2 > most {
                return list;
            }
            if seen.insert(name.to_owned()) {
                if !list.is_empty() {
                    list.push_str(", ");
                }
                list.push_str(name);
            }
        }
    }
    list
}

/// What a line declares. An indented line is inside of something.
fn declared(line: &str) -> Option<&str> {
    if !line.starts_with(|c: char| c.is_ascii_alphabetic()) {
        return None;
    }
    let mut words = line.split_whitespace().skip_while(|word| MODIFIERS.contains(word));
    let kind = words.next()?;
    if !KINDS.contains(&kind) {
        return None;
    }
    let mut name = words.next()?;
    if ["fn", "enum"].contains(&name) && kind == "const" {
        name = words.next()?;
    }
    let end = name.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '$')).unwrap_or(name.len());
    (end > 0).then(|| &name[..end])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> String {
        list([text.to_owned()].into_iter(), 1000)
    }

    #[test]
    fn declarations_of_several_languages_are_found() {
        let ts = "export default async function main() {}\nexport interface Shape<T> {}\nconst LIMIT = 3;\nimport x from 'y';";
        assert_eq!(names(ts), "main, Shape, LIMIT");
        assert_eq!(names("pub struct A;\npub(crate) const fn b() {}\nimpl A {\n    fn inner() {}\n}"), "A, b");
        assert_eq!(names("class A:\n    def inner(self): ...\nasync def go(): ..."), "A, go");
        assert_eq!(names("func Run(x int) {}\ntype T struct {}"), "Run, T");
    }

    #[test]
    fn each_name_counts_once_and_the_list_is_bounded() {
        assert_eq!(names("class A {}\nclass A {}"), "A");
        let many: String = (0..1000).map(|n| format!("class C{n} {{}}\n")).collect();
        assert!(names(&many).len() <= 1000);
    }

    #[test]
    fn endings_tell_sources() {
        assert!(is_source("src/a.ts") && is_source("b.py"));
        assert!(!is_source("README.md") && !is_source("ts"));
    }
}
