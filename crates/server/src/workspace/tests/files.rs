//! Which files are read and written.

use std::fs;
use std::io::ErrorKind;
use std::path::Path;
use std::time::{Duration, Instant};

use super::{SECRET, Tree};

#[test]
fn files_inside_are_read_by_any_of_their_names() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    let absolute = tree.inside.join("sub/deep/note.txt");
    let names =
        ["sub/deep/note.txt", "./sub/deep/../deep/note.txt", "within/note.txt", "absolute-within/deep/note.txt"];
    for name in names.map(Path::new).into_iter().chain([&*absolute]) {
        assert_eq!(workspace.read(name, 4).expect("inside"), b"note", "{}", name.display());
    }
}

#[test]
fn files_outside_are_neither_read_nor_written() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    let here = std::process::id();
    let secret = tree.secret();
    let secret = secret.to_str().expect("plain");
    for name in [
        secret.to_owned(),
        "../outside/secret.txt".into(),
        "sub/../../outside/secret.txt".into(),
        "up/secret.txt".into(),
        "file-up".into(),
        "absolute/secret.txt".into(),
        format!("root{secret}"),
        format!("magic-root{secret}"),
        format!("/proc/self/root{secret}"),
        format!("/proc/{here}/root{secret}"),
        format!("/proc/{here}/root{}/plain.txt", tree.inside.display()),
        "/proc/self/environ".into(),
        "magic/Cargo.toml".into(),
        "/proc/self/cwd/Cargo.toml".into(),
        "loop".into(),
    ] {
        let error = workspace.read(&name, 1000).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        assert_eq!(error.expect_err(&name).kind(), ErrorKind::PermissionDenied, "{name}");
        assert!(workspace.write(&name, b"overwritten").is_err(), "{name}");
        assert!(
            workspace.write(format!("{name}.new"), b"new").is_err() || name == "file-up" || name == "loop",
            "{name}"
        );
    }
    assert_eq!(fs::read_to_string(secret).expect("there"), SECRET);
    assert_eq!(fs::read_dir(&tree.outside).expect("there").count(), 1, "nothing was made outside");
}

#[test]
fn what_is_no_regular_file_is_refused_at_once() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    for name in ["pipe", "sub", "."] {
        assert!(workspace.read(name, 1000).is_err(), "{name}");
        assert!(workspace.write(name, b"x").is_err(), "{name}");
    }
    assert_eq!(workspace.read("nothing", 1000).expect_err("missing").kind(), ErrorKind::NotFound);
    assert!(workspace.read("plain.txt\0", 1000).is_err());
    let _socket = std::os::unix::net::UnixListener::bind(tree.inside.join("socket")).expect("a socket");
    assert!(workspace.read("socket", 1000).is_err());
}

#[test]
fn a_file_above_the_limit_is_not_read() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    assert_eq!(workspace.read("plain.txt", 4).expect_err("five bytes").kind(), ErrorKind::FileTooLarge);
    assert_eq!(workspace.read("plain.txt", 5).expect("five bytes"), b"plain");
    let huge = fs::File::create(tree.inside.join("huge")).expect("made");
    huge.set_len(1 << 40).expect("a hole of a tebibyte");
    assert_eq!(workspace.read("huge", 1 << 20).expect_err("too large").kind(), ErrorKind::FileTooLarge);
}

#[test]
fn files_are_written_with_their_folders() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    workspace.write("new/and/deeper.txt", b"one, longer").expect("written");
    workspace.write(tree.inside.join("new/and/deeper.txt"), b"two").expect("written again");
    assert_eq!(fs::read(tree.inside.join("new/and/deeper.txt")).expect("there"), b"two");
    workspace.write("within/new/x.txt", b"three").expect("through a link that stays inside");
    assert_eq!(fs::read(tree.inside.join("sub/deep/new/x.txt")).expect("there"), b"three");
}

#[test]
fn a_link_to_what_is_missing_makes_it_inside_only() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    let outside = tree.outside.join("made.txt");
    for (link, target) in
        [("near", "made.txt"), ("sub/up", "../up.txt"), ("chain", "near-2"), ("near-2", "sub/chained.txt")]
    {
        tree.link(target, link);
        if link != "chain" {
            workspace.write(link, b"made").unwrap_or_else(|error| panic!("{link}: {error}"));
        }
    }
    fs::remove_file(tree.inside.join("sub/chained.txt")).expect("made by the link before");
    workspace.write("chain", b"made").expect("two links");
    for made in ["made.txt", "up.txt", "sub/chained.txt"] {
        assert_eq!(fs::read(tree.inside.join(made)).expect("there"), b"made", "{made}");
    }
    for (link, target) in [
        ("away", "../outside/made.txt"),
        ("away-whole", outside.to_str().expect("plain")),
        ("round", "loop"),
        ("folder", "no-such-folder/made.txt"),
    ] {
        tree.link(target, link);
        assert!(workspace.write(link, b"made").is_err(), "{link}");
    }
    assert!(!outside.exists() && !tree.inside.join("no-such-folder").exists());
}

#[test]
fn a_link_that_flips_while_it_is_read_never_shows_what_is_outside() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    tree.flipping("plain.txt", "../outside/secret.txt", || {
        only("plain", |_| workspace.read("flip", 1000).ok());
    });
}

#[test]
fn a_folder_that_flips_never_shows_what_is_outside() {
    let tree = Tree::new();
    fs::create_dir(tree.inside.join("good")).expect("made");
    fs::write(tree.inside.join("good/secret.txt"), "good").expect("written");
    let workspace = tree.workspace();
    let outside = tree.outside.to_str().expect("plain").to_owned();
    tree.flipping("good", &outside, || {
        only("good", |n| {
            let name = Path::new("flip/secret.txt");
            let name = if n.is_multiple_of(2) { name.to_owned() } else { tree.inside.join(name) };
            workspace.read(name, 1000).ok()
        });
    });
    tree.flipping_writes(&workspace, &outside);
    assert_eq!(fs::read_to_string(tree.secret()).expect("there"), SECRET);
}

#[test]
fn a_system_that_cannot_confine_paths_is_walked_without_any_link() {
    use super::super::beneath::{FOLDER, OpenError, walk};
    use rustix::fs::{Mode, OFlags};
    use std::os::fd::AsFd;
    let tree = Tree::new();
    let dir = rustix::fs::open(&tree.inside, FOLDER, Mode::empty()).expect("a folder");
    let open = |path: &str| walk(dir.as_fd(), Path::new(path), OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
    for good in ["plain.txt", "./sub/deep/note.txt", "sub", "."] {
        assert!(open(good).is_ok(), "{good}");
    }
    let secret = tree.secret();
    let secret = secret.to_str().expect("plain");
    for bad in
        ["up/secret.txt", "file-up", "absolute/secret.txt", "within/note.txt", "../outside/secret.txt", secret, "loop"]
    {
        assert!(matches!(open(bad), Err(OpenError::Outside)), "{bad}");
    }
    assert!(matches!(open("missing/x"), Err(OpenError::Missing)));
}

/// Reads until what is inside was seen a hundred times. On a busy machine the link may lead outside for long.
fn only(inside: &str, read: impl Fn(u32) -> Option<Vec<u8>>) {
    let end = Instant::now() + Duration::from_secs(60);
    let mut seen = 0;
    for n in 0.. {
        if let Some(bytes) = read(n) {
            assert_eq!(String::from_utf8_lossy(&bytes), inside);
            seen += 1;
        }
        if n >= 1000 && seen >= 100 {
            return;
        }
        assert!(Instant::now() < end, "what is inside was seen {seen} times of {n}");
    }
}

impl Tree {
    fn flipping_writes(&self, workspace: &super::Workspace, outside: &str) {
        fs::remove_file(self.inside.join("flip")).expect("removed");
        self.flipping("good", outside, || {
            for _ in 0..1000 {
                let _ = workspace.write("flip/secret.txt", b"good");
            }
        });
    }
}
