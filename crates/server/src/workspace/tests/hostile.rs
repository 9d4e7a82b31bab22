//! Any message at all: the reader neither breaks nor shows what is outside.

use std::sync::OnceLock;

use nuncio_protocol::{Content, Metadata, Part, Value, json};
use proptest::prelude::*;

use super::super::{Accepts, Limits, Workspace, read_parts, wanted_workspace};
use super::{SECRET, Tree};

fn tree() -> &'static (Tree, Workspace) {
    static TREE: OnceLock<(Tree, Workspace)> = OnceLock::new();
    TREE.get_or_init(|| {
        let tree = Tree::new();
        let workspace = tree.workspace();
        (tree, workspace)
    })
}

/// Steps of a path: real names, traps, dots in several spellings, and noise.
fn step() -> impl Strategy<Value = String> {
    let known = [
        "..",
        ".",
        "",
        "%2e%2e",
        "%252e%252e",
        "..%2f",
        "up",
        "file-up",
        "absolute",
        "root",
        "magic",
        "magic-root",
        "within",
        "absolute-within",
        "loop",
        "pipe",
        "sub",
        "deep",
        "plain.txt",
        "note.txt",
        "outside",
        "secret.txt",
        "inside",
        "proc",
        "self",
        "cwd",
        "fd",
        "%00",
        "\0",
        "\u{202e}",
    ];
    prop_oneof![8 => prop::sample::select(known.to_vec()).prop_map(str::to_owned), 1 => ".{0,8}"]
}

fn path() -> impl Strategy<Value = String> {
    let (tree, _) = tree();
    let base = [tree.inside.clone(), tree.outside.clone(), "/".into(), "/proc/self".into()];
    let base = prop::sample::select(base.map(|base| base.display().to_string()).to_vec());
    (base, prop::collection::vec(step(), 0..6)).prop_map(|(base, steps)| format!("{base}/{}", steps.join("/")))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        path().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 16, 4, |inner| {
        let keys = prop_oneof!["bytes", "base64", "filename", "path", "cwd", ".{0,4}"];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((keys, inner), 0..4).prop_map(|all| Value::Object(all.into_iter().collect())),
        ]
    })
}

fn part() -> impl Strategy<Value = Part> {
    let content = prop_oneof![
        2 => ".{0,20}".prop_map(Content::Text),
        2 => prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| Content::Raw(bytes.into())),
        2 => value().prop_map(Content::Data),
        6 => path().prop_map(|path| Content::Url(format!("file://{path}"))),
        1 => ".{0,30}".prop_map(Content::Url),
    ];
    let kinds = ["", "text/plain", "application/json", "image/png", "audio/wav", "application/octet-stream"];
    let kind = prop_oneof![6 => prop::sample::select(kinds.to_vec()).prop_map(str::to_owned), 1 => ".{0,16}"];
    (content, kind, prop_oneof![Just(String::new()), ".{0,12}", path()])
        .prop_map(|(content, media_type, filename)| Part { media_type, filename, ..Part::from(content) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_message_breaks_the_reader_or_shows_what_is_outside(
        parts in prop::collection::vec(part(), 0..4),
        (images, binaries, strict) in any::<(bool, bool, bool)>(),
    ) {
        let (tree, workspace) = tree();
        let accepts = Accepts { images, binaries, strict, limits: Limits::default(), ..Accepts::default() };
        match read_parts(&parts, workspace, &accepts) {
            Ok(prompt) => {
                prop_assert!(!prompt.text.contains(SECRET));
                for attachment in prompt.attachments {
                    prop_assert!(!String::from_utf8_lossy(&attachment.bytes).contains(SECRET));
                    prop_assert!(!attachment.filename.contains('/'));
                }
            }
            Err(error) => prop_assert!(!error.to_string().contains(&*tree.inside.to_string_lossy())),
        }
    }

    #[test]
    fn no_path_leads_outside(path in path()) {
        let (tree, workspace) = tree();
        if let Ok(bytes) = workspace.read(&path, 1000) {
            prop_assert!(bytes == b"plain" || bytes == b"note", "{path} shows {bytes:?}");
        }
        if let Ok(chosen) = tree.workspaces().choose(Some(&path)) {
            prop_assert!(chosen.path().starts_with(&tree.inside), "{path}");
        }
    }

    #[test]
    fn no_metadata_breaks_the_choice(request in value(), message in value()) {
        let wrap = |value: Value| {
            let all = json!({ "iac_code": value.clone(), super::super::WORKSPACE: value });
            Metadata::from(all.as_object().cloned().unwrap_or_default())
        };
        let _ = wanted_workspace(&wrap(request), &wrap(message));
    }
}
