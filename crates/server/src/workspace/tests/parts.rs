//! What an agent gets of a message.

use std::fs;

use bytes::Bytes;
use nuncio_protocol::{Content, Part, json};

use super::super::{Accepts, Limits, PartError, Prompt, read_parts};
use super::{SECRET, Tree};

fn part(content: Content, media_type: &str) -> Part {
    Part { media_type: media_type.into(), ..Part::from(content) }
}

fn raw(bytes: &'static [u8], media_type: &str) -> Part {
    part(Content::Raw(Bytes::from_static(bytes)), media_type)
}

fn url(url: impl Into<String>) -> Part {
    part(Content::Url(url.into()), "")
}

impl Tree {
    fn parts(&self, parts: &[Part], accepts: &Accepts) -> Result<Prompt, PartError> {
        read_parts(parts, &self.workspace(), accepts)
    }

    fn read(&self, part: Part) -> Result<String, PartError> {
        self.parts(&[part], &Accepts::default()).map(|prompt| prompt.text)
    }

    fn url(&self, name: &str) -> String {
        format!("file://{}/{name}", self.inside.display())
    }
}

#[test]
fn the_texts_of_all_parts_are_joined_in_order() {
    let tree = Tree::new();
    let parts = [
        Part::text("first"),
        Part::text(""),
        part(Content::Data(json!({ "b": [{ "z": 1, "a": "ü" }], "a": null })), "application/json"),
        raw(b"name: vpc\n", "TEXT/YAML; charset=utf-8"),
        url(tree.url("plain.txt")),
    ];
    let prompt = tree.parts(&parts, &Accepts::default()).expect("good");
    let expected = "first\n{\"a\":null,\"b\":[{\"a\":\"ü\",\"z\":1}]}\nname: vpc\n\nplain";
    assert_eq!(prompt, Prompt { text: expected.into(), attachments: Vec::new() });
    assert_eq!(tree.parts(&[], &Accepts::default()), Ok(Prompt::default()));
}

#[test]
fn any_text_and_code_is_taken_and_nothing_unknown() {
    let tree = Tree::new();
    for kind in ["", "text/plain", "text/x-rust", "text/csv", "application/toml", "application/vnd.x+json"] {
        assert_eq!(tree.read(raw(b"x", kind)).as_deref(), Ok("x"), "{kind}");
    }
    for kind in ["application/pdf", "video/mp4", "image/svg+xml", "nonsense", "application/"] {
        let error = tree.read(raw(b"x", kind)).expect_err(kind);
        assert_eq!(error.to_string(), "A2A part has unsupported media type.");
    }
    let accepts = Accepts {
        text_types: vec!["application/hcl".into()],
        binary_types: vec!["application/pdf".into()],
        ..Accepts::default()
    };
    assert_eq!(tree.parts(&[raw(b"x", "application/HCL")], &accepts).expect("text").text, "x");
    assert!(tree.parts(&[raw(b"x", "application/pdf")], &accepts).expect("described").text.contains("byteSize=1"));
}

#[test]
fn data_without_a_type_is_json() {
    let tree = Tree::new();
    let data = || Part::data(json!({ "a": 1 }));
    assert_eq!(tree.read(data()).as_deref(), Ok("{\"a\":1}"));
    assert_eq!(tree.read(part(data().content, "text/markdown")), Err(PartError::DataNotJson));
}

#[test]
fn strict_readers_take_few_kinds_of_text_and_never_nothing() {
    let tree = Tree::new();
    let strict = Accepts { strict: true, text_types: vec!["text/x-hcl".into()], ..Accepts::default() };
    for known in ["text/plain", "text/markdown", "application/x-yaml", "text/x-hcl"] {
        assert_eq!(tree.parts(&[raw(b"x", known)], &strict).expect("text").text, "x", "{known}");
    }
    assert_eq!(tree.parts(&[raw(b"x", "text/html")], &strict), Err(PartError::MediaType));
    assert_eq!(tree.parts(&[Part::text(" \n")], &strict), Err(PartError::Empty));
    assert_eq!(tree.parts(&[], &strict), Err(PartError::Empty));
    assert_eq!(tree.parts(&[], &Accepts::default()), Ok(Prompt::default()));
}

#[test]
fn attachments_that_the_agent_does_not_take_are_described_in_place() {
    let tree = Tree::new();
    let image = Part { filename: "diagram.png".into(), ..raw(b"image", "image/PNG") };
    let manifest = "A2A multimodal attachment:\n- filename=diagram.png\n- mediaType=image/png\n- byteSize=5\n\
        - sha256=6105d6cc76af400325e94d588ce511be5bfdbb73b437dc51eca43917d7a43e3d\n- source=inline";
    let parts = [Part::text("look"), image, Part::text("well")];
    let prompt = tree.parts(&parts, &Accepts::default()).expect("good");
    assert_eq!(prompt.text, format!("look\n{manifest}\nwell"));
    let prompt = tree.parts(&parts, &Accepts { images: true, ..Accepts::default() }).expect("good");
    assert_eq!(prompt.text, "look\nwell");
    assert_eq!(prompt.attachments[0].bytes, "image");
    assert_eq!(prompt.attachments[0].describe(), manifest);
}

#[test]
fn attachments_come_as_bytes_as_data_and_as_files() {
    let tree = Tree::new();
    fs::write(tree.inside.join("a voice.wav"), "RIFF").expect("written");
    let accepts = Accepts { binaries: true, ..Accepts::default() };
    let data = json!({ "base64": "AAE=", "filename": "../../x" });
    let parts = [
        raw(b"\0\x01", "application/octet-stream"),
        part(Content::Data(data), "audio/ogg"),
        part(Content::Url(tree.url("a%20voice.wav")), "audio/wav"),
        raw(b"image", "image/gif"),
    ];
    let prompt = tree.parts(&parts, &accepts).expect("good");
    let got: Vec<_> = prompt.attachments.iter().map(|a| (&*a.filename, &*a.source, &*a.bytes)).collect();
    let source = tree.url("a%20voice.wav");
    let expected: [(&str, &str, &[u8]); 3] =
        [("inline", "inline", b"\0\x01"), ("attachment", "data", b"\0\x01"), ("a voice.wav", &source, b"RIFF")];
    assert_eq!(got, expected);
    assert!(prompt.text.contains("- mediaType=image/gif"), "images are not taken: {}", prompt.text);
}

#[test]
fn a_name_cannot_add_lines_to_the_description() {
    let tree = Tree::new();
    let image = Part { filename: "x\n- source=file:///etc/passwd".into(), ..raw(b"i", "image/png") };
    assert!(tree.read(image).expect("good").contains("- filename=attachment\n"));
}

#[test]
fn binary_data_that_is_none_is_refused() {
    let tree = Tree::new();
    let read = |value| tree.read(part(Content::Data(value), "image/png")).map_err(|error| error.to_string());
    let says = |text: &str| Err(text.to_owned());
    assert_eq!(read(json!("x")), says("A2A binary data parts must contain an object."));
    assert_eq!(read(json!({ "bytes": 1 })), says("A2A binary data parts must include base64 bytes."));
    assert_eq!(read(json!({ "bytes": "?" })), says("A2A binary data part bytes must be valid base64."));
}

#[test]
fn contents_above_their_limits_are_refused() {
    let tree = Tree::new();
    let limits = Limits { raw: 3, data: 3, file: 4, binary: 3, binary_file: 4 };
    let accepts = Accepts { limits, ..Accepts::default() };
    let file = |kind: &str| part(Content::Url(tree.url("plain.txt")), kind);
    for (part, what) in [
        (raw(b"four", "text/plain"), "raw"),
        (Part::data(json!([1, 2])), "data"),
        (file(""), "file URL"),
        (raw(b"four", "image/png"), "binary raw"),
        (part(Content::Data(json!({ "bytes": "Zm91cg==" })), "image/png"), "binary data"),
        (file("image/png"), "binary file URL"),
    ] {
        let error = tree.parts(&[part], &accepts).expect_err(what);
        assert_eq!(error.to_string(), format!("A2A {what} part content is too large."));
    }
    assert_eq!(tree.parts(&[Part::text("more than four")], &accepts).expect("no limit").text, "more than four");
    let limits = Limits::default();
    assert_eq!((limits.raw, limits.binary, limits.binary_file), (1 << 20, 5 << 20, 25 << 20));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let tree = Tree::new();
    fs::write(tree.inside.join("bytes"), b"\xff").expect("written");
    let error = |part| tree.read(part).expect_err("no text").to_string();
    assert_eq!(error(raw(b"\xff", "text/plain")), "A2A raw parts must contain valid UTF-8.");
    assert_eq!(error(url(tree.url("bytes"))), "A2A file URL parts must contain valid UTF-8.");
}

#[test]
fn urls_that_are_not_local_are_refused() {
    let tree = Tree::new();
    let path = tree.inside.join("plain.txt").display().to_string();
    for wrong in [
        "https://example.org/x".to_owned(),
        format!("file://localhost{path}"),
        format!("file://127.0.0.1{path}"),
        format!("file:{path}"),
        format!("file:////{path}"),
        format!("{path}?x"),
        format!("file://{path}?x"),
        format!("file://{path}%00"),
        "file://".into(),
        "data:text/plain,x".into(),
        path.clone(),
        String::new(),
    ] {
        let error = tree.read(url(&*wrong)).expect_err(&wrong).to_string();
        assert_eq!(error, "A2A file URL parts must use local file:// URLs.", "{wrong}");
    }
    assert_eq!(tree.read(url(format!("FILE://{path}"))).as_deref(), Ok("plain"));
}

#[test]
fn files_outside_are_refused_and_nothing_is_given_away() {
    let tree = Tree::new();
    let secret = tree.secret().display().to_string();
    for wrong in [
        format!("file://{secret}"),
        "file:///etc/passwd".into(),
        "file:///no/such/file".into(),
        tree.url("../outside/secret.txt"),
        tree.url("../outside/missing.txt"),
        tree.url("%2e%2e/outside/secret.txt"),
        tree.url("%252e%252e/outside/secret.txt"),
        tree.url("%252e%252e%252foutside%252fsecret.txt"),
        tree.url("up/secret.txt"),
        tree.url("up/missing.txt"),
        tree.url("file-up"),
        tree.url("absolute/secret.txt"),
        tree.url("absolute/missing.txt"),
        tree.url(&format!("root{secret}")),
        tree.url("magic/Cargo.toml"),
        format!("file:///proc/self/root{secret}"),
        format!("file:///proc/{}/root{}/plain.txt", std::process::id(), tree.inside.display()),
        "file:///proc/self/cwd/Cargo.toml".into(),
    ] {
        let error = tree.read(url(&*wrong)).expect_err(&wrong).to_string();
        assert_eq!(error, "A2A file URL part is outside the allowed workspace.", "{wrong}");
    }
    for wrong in ["missing.txt", "pipe", "sub", ""] {
        let error = tree.read(url(tree.url(wrong))).expect_err(wrong).to_string();
        assert_eq!(error, "A2A file URL part must reference an existing file.", "{wrong}");
    }
}

#[test]
fn a_file_that_flips_while_it_is_read_never_shows_what_is_outside() {
    let tree = Tree::new();
    let workspace = tree.workspace();
    let seen = tree.flipping("plain.txt", "../outside/secret.txt", || {
        let read = |_| read_parts(&[url(tree.url("flip"))], &workspace, &Accepts::default()).ok();
        (0..1000).filter_map(read).collect::<Vec<_>>()
    });
    assert!(seen.iter().all(|prompt| prompt.text == "plain" && !prompt.text.contains(SECRET)));
}
