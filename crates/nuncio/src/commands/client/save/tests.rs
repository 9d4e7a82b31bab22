use proptest::prelude::*;

use super::*;

#[test]
fn names_of_strangers_stay_in_the_folder() {
    let names = [
        ("notes.txt", Some("notes.txt")),
        ("../../etc/passwd", Some("passwd")),
        ("/etc/passwd", Some("passwd")),
        (r"..\..\windows\system.ini", Some("system.ini")),
        ("..", None),
        ("", None),
        ("a/", None),
        (".bashrc", Some("bashrc")),
        ("-rf", Some("rf")),
        ("a\0b\n\x1b[2Jc.txt", Some("ab[2Jc.txt")),
        ("CON.txt", Some("file-CON.txt")),
        ("  sp ace .txt. ", Some("sp ace .txt")),
        ("报告.pdf", Some("报告.pdf")),
    ];
    for (foreign, safe) in names {
        assert_eq!(safe_name(foreign).as_deref(), safe, "{foreign:?}");
    }
    let long = safe_name(&format!("{}.tar", "é".repeat(300))).unwrap();
    assert!(long.len() <= LONGEST && long.ends_with(".tar"), "{long}");
}

#[test]
fn nothing_is_overwritten_and_no_link_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = tempfile::NamedTempFile::new().unwrap();
    std::os::unix::fs::symlink(outside.path(), folder.path().join("link.txt")).unwrap();
    let (path, changed) = write(folder.path(), "link.txt", b"x").unwrap();
    assert_eq!((path, changed), (folder.path().join("link-2.txt"), true));
    assert_eq!(fs::read(outside.path()).unwrap(), b"");
    assert_eq!(write(folder.path(), "a", b"1").unwrap(), (folder.path().join("a"), false));
    assert_eq!(write(folder.path(), "a", b"2").unwrap(), (folder.path().join("a-2"), true));
    assert_eq!(fs::read(folder.path().join("a")).unwrap(), b"1");
}

#[test]
fn pieces_of_one_file_become_one_file() {
    let text = |text: &str| Part::text(text);
    let raw = |name: &str, bytes: &'static [u8]| Part {
        filename: name.into(),
        ..Part::from(Content::Raw(Bytes::from_static(bytes)))
    };
    let parts =
        vec![text("a"), text("b"), raw("x.bin", b"1"), raw("", b"2"), raw("y.bin", b"3"), Part::data(true.into())];
    let artifact = Artifact { artifact_id: "art".into(), parts, ..Artifact::default() };
    let found = pieces(&artifact);
    let told: Vec<(&str, &Source)> = found.iter().map(|piece| (piece.name.as_str(), &piece.content)).collect();
    let bytes = |text: &str| Source::Bytes(text.as_bytes().to_vec());
    assert_eq!(
        told,
        [("art.txt", &bytes("ab")), ("x.bin", &bytes("12")), ("y.bin", &bytes("3")), ("art.json", &bytes("true\n")),]
    );
}

proptest! {
    #[test]
    fn whatever_the_name_the_file_is_in_the_folder(foreign in "(\\PC|[./\\\\\\x00-\\x1f]){0,40}") {
        if let Some(name) = safe_name(&foreign) {
            let path = Path::new("/folder").join(&name);
            prop_assert_eq!(path.parent(), Some(Path::new("/folder")));
            prop_assert_eq!(path.file_name().and_then(|name| name.to_str()), Some(name.as_str()));
            prop_assert!(name.len() <= LONGEST && !name.starts_with('.'));
        }
    }
}
