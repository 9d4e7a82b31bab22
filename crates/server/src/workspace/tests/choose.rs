//! Which folder a caller gets.

use std::fs;
use std::process::Command;

use nuncio_protocol::{Metadata, Value, json};

use super::super::{WORKSPACE, WorkspaceError, Workspaces, wanted_workspace};
use super::Tree;

const REFUSED: &str = "Invalid A2A workspace metadata.";

fn refused(workspaces: &Workspaces, wanted: &str) {
    let error = workspaces.choose(Some(wanted)).map(|got| got.path().to_owned()).expect_err(wanted);
    assert_eq!(error.to_string(), REFUSED, "nothing is given away for {wanted}");
    assert!(!error.reason().is_empty());
}

#[test]
fn without_a_wish_the_default_folder_is_chosen() {
    let tree = Tree::new();
    assert_eq!(tree.workspace().path(), tree.inside);
}

#[test]
fn folders_below_a_root_are_chosen() {
    let tree = Tree::new();
    let workspaces = tree.workspaces();
    let choose = |path: String| workspaces.choose(Some(&path)).expect("allowed").path().to_owned();
    let inside = tree.inside.to_str().expect("plain");
    let deep = tree.inside.join("sub/deep");
    assert_eq!(choose(inside.to_owned()), tree.inside);
    assert_eq!(choose(format!("{inside}/sub/deep")), deep);
    assert_eq!(choose(format!("{inside}/sub//./deep/")), deep);
    assert_eq!(choose(format!("{inside}/sub/x/../deep")), deep, "normalised before it is looked at");
    assert_eq!(choose(format!("{inside}/within")), deep, "a link that stays inside is resolved");
    assert_eq!(choose(format!("{inside}/absolute-within/deep")), deep);
}

#[test]
fn what_leaves_the_roots_is_refused_with_one_text() {
    let tree = Tree::new();
    let workspaces = tree.workspaces();
    let inside = tree.inside.to_str().expect("plain");
    let outside = tree.outside.to_str().expect("plain");
    let here = std::process::id();
    for wanted in [
        outside.to_owned(),
        "/".into(),
        "/etc".into(),
        format!("{inside}/.."),
        format!("{inside}/../outside"),
        format!("{inside}/up"),
        format!("{inside}/absolute"),
        format!("{inside}/root"),
        format!("{inside}/loop"),
        format!("{inside}-not"),
        "/proc/self/cwd".into(),
        format!("/proc/{here}/cwd"),
        format!("/proc/{here}/root{inside}"),
        format!("/proc/self/root{inside}/sub"),
        format!("{inside}/magic"),
        format!("{inside}/magic-root{inside}"),
        format!("{inside}/plain.txt"),
        format!("{inside}/pipe"),
        format!("{inside}/missing"),
        format!("{inside}/sub\0"),
        format!("{inside}/%2e%2e/outside"),
        format!("{inside}/%252e%252e/outside"),
        format!("file://{inside}"),
        "sub".into(),
        "./sub".into(),
        "~".into(),
        String::new(),
    ] {
        refused(&workspaces, &wanted);
        refused(&workspaces.clone().create_missing(true), &wanted.replace("missing", "plain.txt/missing"));
    }
}

#[test]
fn magic_links_are_refused_even_where_they_lead_inside() {
    let here = std::env::current_dir().expect("a folder");
    let workspaces = Workspaces::new(&here, Vec::new()).expect("a folder");
    refused(&workspaces, "/proc/self/cwd");
    refused(&workspaces, &format!("/proc/{}/cwd", std::process::id()));
}

#[test]
fn further_roots_are_as_good_as_the_default() {
    let tree = Tree::new();
    let workspaces = Workspaces::new(tree.inside.clone(), vec![tree.outside.clone()]).expect("folders");
    assert_eq!(workspaces.choose(tree.outside.to_str()).expect("allowed").path(), tree.outside);
    assert_eq!(workspaces.choose(None).expect("allowed").path(), tree.inside);
}

#[test]
fn a_root_that_is_no_folder_is_told_to_the_operator() {
    let tree = Tree::new();
    let error = Workspaces::new(tree.inside.clone(), vec![tree.inside.join("missing")]).expect_err("not there");
    assert!(matches!(&error, WorkspaceError::Configuration { path, .. } if path.ends_with("missing")), "{error}");
    assert!(Workspaces::new(tree.inside.join("plain.txt"), Vec::new()).is_err());
}

#[test]
fn a_missing_folder_is_made_only_where_that_is_wanted_and_allowed() {
    let tree = Tree::new();
    let workspaces = tree.workspaces().create_missing(true);
    let new = tree.inside.join("new/and/deeper");
    assert_eq!(workspaces.choose(new.to_str()).expect("made").path(), new);
    assert!(new.is_dir());
    assert_eq!(
        workspaces.choose(tree.inside.join("within/new").to_str()).expect("made").path(),
        tree.inside.join("sub/deep/new")
    );
    for wanted in ["up/new", "absolute/new", "root/tmp/new", "magic/new", "../outside/new", "../new"] {
        refused(&workspaces, &format!("{}/{wanted}", tree.inside.display()));
    }
    assert_eq!(fs::read_dir(&tree.outside).expect("it is there").count(), 1, "nothing was made outside");
}

#[test]
fn a_folder_that_was_exchanged_after_the_check_is_refused() {
    let tree = Tree::new();
    let sub = tree.inside.join("sub");
    let workspace = tree.workspaces().choose(sub.to_str()).expect("allowed");
    assert!(workspace.open_dir().is_ok());
    fs::rename(&sub, tree.inside.join("moved")).expect("moved");
    assert!(workspace.open_dir().is_err(), "it is not there");
    std::os::unix::fs::symlink(&tree.outside, &sub).expect("a link");
    assert!(workspace.open_dir().is_err(), "a link is there");
    assert!(workspace.cwd().is_err());
    fs::remove_file(&sub).expect("removed");
    fs::create_dir(&sub).expect("made");
    assert!(workspace.open_dir().is_err(), "another folder is there");
    assert_eq!(workspace.read("deep/note.txt", 100).expect("still the same folder"), b"note");
}

#[test]
fn a_process_starts_in_the_folder_that_was_checked() {
    let tree = Tree::new();
    let sub = tree.inside.join("sub");
    let workspace = tree.workspaces().choose(sub.to_str()).expect("allowed");
    let cwd = workspace.cwd().expect("a handle");
    fs::rename(&sub, tree.inside.join("moved")).expect("moved");
    std::os::unix::fs::symlink(&tree.outside, &sub).expect("a link");
    let said = Command::new("ls").current_dir(cwd.path()).output().expect("it starts");
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "deep");
}

fn metadata(value: &Value) -> Metadata {
    value.as_object().cloned().expect("an object").into()
}

#[test]
fn the_request_is_asked_before_the_message() {
    let none = Metadata::new();
    let native = metadata(&json!({ WORKSPACE: { "path": "/a" } }));
    let plain = metadata(&json!({ WORKSPACE: "/b" }));
    let iac = metadata(&json!({ "iac_code": { "cwd": "/c", "channel": "x" } }));
    let wanted = |request: &Metadata, message: &Metadata| wanted_workspace(request, message).expect("good");
    assert_eq!(wanted(&none, &none), None);
    assert_eq!(wanted(&native, &iac).as_deref(), Some("/a"));
    assert_eq!(wanted(&iac, &native).as_deref(), Some("/c"));
    assert_eq!(wanted(&none, &plain).as_deref(), Some("/b"));
    let unset = metadata(&json!({ WORKSPACE: null, "iac_code": { "cwd": null } }));
    assert_eq!(wanted(&unset, &iac).as_deref(), Some("/c"));
}

#[test]
fn a_wish_of_the_wrong_type_is_refused() {
    for wrong in [
        json!({ WORKSPACE: 1 }),
        json!({ WORKSPACE: {} }),
        json!({ WORKSPACE: { "path": ["/a"] } }),
        json!({ WORKSPACE: { "path": null } }),
        json!({ "iac_code": "x" }),
        json!({ "iac_code": { "cwd": 7 } }),
        json!({ "iac_code": { "cwd": { "path": "/a" } } }),
    ] {
        let wrong = metadata(&wrong);
        for (request, message) in [(&wrong, &Metadata::new()), (&Metadata::new(), &wrong)] {
            assert_eq!(wanted_workspace(request, message).expect_err("refused").to_string(), REFUSED);
        }
    }
}

#[test]
fn what_is_private_is_refused_unless_a_root_lies_below_it() {
    let tree = Tree::new();
    let workspaces = tree.workspaces().private(vec![tree.inside.join("absolute-within")]);
    refused(&workspaces, tree.inside.join("sub").to_str().expect("plain"));
    refused(&workspaces, tree.inside.join("within").to_str().expect("plain"));
    let held = workspaces.choose(None).expect("the default");
    assert!(held.read("sub/deep/note.txt", 100).is_err());
    assert!(held.write("sub/deep/note.txt", b"other").is_err());
    tree.link("sub/new-by-link.txt", "nowhere");
    for name in ["sub/new.txt", "sub/new/deeper.txt", "within/new.txt", "absolute-within/new.txt", "nowhere"] {
        assert!(held.write(name, b"new").is_err(), "{name}");
    }
    let left: Vec<_> =
        ["sub", "sub/deep"].map(|name| fs::read_dir(tree.inside.join(name)).expect("there").count()).into();
    assert_eq!(left, [1, 1], "nothing was made there");
    assert_eq!(held.read("plain.txt", 100).expect("inside"), b"plain");
    let deep = Workspaces::new(tree.inside.join("sub/deep"), Vec::new()).expect("a folder");
    let held = deep.private(vec![tree.inside.clone()]).choose(None).expect("the default");
    assert_eq!(held.read("note.txt", 100).expect("unchanged"), b"note");
    // Where both are the same folder, an agent may work there, and the server reads nothing for anybody.
    let both = tree.workspaces().private(vec![tree.inside.clone()]);
    assert!(both.choose(None).expect("the default").read("plain.txt", 100).is_err());
    refused(&both, tree.inside.join("sub").to_str().expect("plain"));
}
