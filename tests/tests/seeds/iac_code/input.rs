//! Document 000, lines 99 to 109, and document 002, lines 324 to 326: workspaces and parts.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_tests::{Stage, Value, json, state, words};

use super::{echo, echo_in, params, said, with_parts};

const MIB: usize = 1 << 20;

async fn send(stage: &Stage, parts: Value) -> Value {
    stage.server.send_params(with_parts(parts)).await
}

fn raw(bytes: &[u8], media_type: &str) -> Value {
    json!([{ "raw": STANDARD.encode(bytes), "mediaType": media_type, "filename": "x.bin" }])
}

/// 000:104-107.
#[tokio::test]
async fn text_of_every_kind_becomes_the_prompt() {
    let stage = echo_in("", &[("IACCODE_A2A_TEXT_MIME_TYPES", "text/x-hcl; text/x-rego")]);
    let folder = stage.workspace.path();
    std::fs::write(folder.join("main.tf"), "resource {}").unwrap();
    let url = format!("file://{}", folder.join("main.tf").display());
    for (part, prompt) in [
        (json!({ "text": "plain" }), "plain"),
        (json!({ "text": "# head", "mediaType": "text/markdown" }), "# head"),
        (json!({ "text": "a: 1", "mediaType": "text/yaml" }), "a: 1"),
        (json!({ "text": "a: 2", "mediaType": "application/x-yaml" }), "a: 2"),
        (json!({ "text": "{}", "mediaType": "application/json" }), "{}"),
        (json!({ "text": "package x", "mediaType": "text/x-rego" }), "package x"),
        (json!({ "data": { "b": [1, 2], "a": "é" }, "mediaType": "application/json" }), r#"{"a":"é","b":[1,2]}"#),
        (json!({ "raw": STANDARD.encode("from bytes"), "mediaType": "text/plain" }), "from bytes"),
        (json!({ "url": url, "mediaType": "text/plain" }), "resource {}"),
    ] {
        let task = send(&stage, json!([part])).await;
        assert_eq!((state(&task), said(&task).as_str()), ("INPUT_REQUIRED", prompt), "{part}");
    }
    let both = send(&stage, json!([{ "text": "one" }, { "text": "two" }])).await;
    assert_eq!(said(&both), "one\ntwo");
}

/// 000:108, 002:326.
#[tokio::test]
async fn other_media_become_a_manifest() {
    let stage = echo_in("", &[("IACCODE_A2A_MULTIMODAL_MIME_TYPES", "video/mp4,application/pdf")]);
    let folder = stage.workspace.path();
    std::fs::write(folder.join("a.png"), b"PNG").unwrap();
    let url = format!("file://{}", folder.join("a.png").display());
    let source = format!("source={url}");
    let encoded = STANDARD.encode("PNG");
    for (part, media_type, name, source) in [
        (
            json!({ "raw": encoded, "mediaType": "image/png", "filename": "a.png" }),
            "image/png",
            "a.png",
            "source=inline",
        ),
        (json!({ "raw": encoded, "mediaType": "audio/mpeg" }), "audio/mpeg", "inline", "source=inline"),
        (json!({ "raw": encoded, "mediaType": "video/mp4" }), "video/mp4", "inline", "source=inline"),
        (
            json!({ "data": { "base64": encoded, "filename": "b.pdf" }, "mediaType": "application/pdf" }),
            "application/pdf",
            "b.pdf",
            "source=data",
        ),
        (json!({ "url": url, "mediaType": "image/png" }), "image/png", "a.png", source.as_str()),
    ] {
        let task = send(&stage, json!([part])).await;
        let prompt = said(&task);
        let lines: Vec<&str> = prompt.lines().collect();
        assert_eq!(lines[0], "A2A multimodal attachment:", "{part}: {task}");
        assert_eq!(
            lines[1..4],
            [&*format!("- filename={name}"), &*format!("- mediaType={media_type}"), "- byteSize=3"]
        );
        assert!(lines[4].starts_with("- sha256=") && lines[4].len() == 9 + 64, "{lines:?}");
        assert_eq!(lines[5], format!("- {source}"));
    }
}

/// 000:105-108: the limits.
#[tokio::test]
async fn parts_have_limits() {
    let stage = echo("max-body: 64MiB");
    let folder = stage.workspace.path();
    let file = |name: &str, size: usize| {
        std::fs::write(folder.join(name), vec![b'x'; size]).unwrap();
        format!("file://{}", folder.join(name).display())
    };
    let (small, large) = (file("small", MIB), file("large", MIB + 1));
    let (image, video) = (file("image", 25 * MIB), file("video", 25 * MIB + 1));
    let bytes = |size: usize| STANDARD.encode(vec![b'x'; size]);
    for (part, refusal) in [
        (json!({ "raw": bytes(MIB), "mediaType": "text/plain" }), ""),
        (json!({ "raw": bytes(MIB + 1), "mediaType": "text/plain" }), "A2A raw part content is too large."),
        (json!({ "data": "x".repeat(MIB - 2), "mediaType": "application/json" }), ""),
        (json!({ "data": "x".repeat(MIB), "mediaType": "application/json" }), "A2A data part content is too large."),
        (json!({ "url": small, "mediaType": "text/plain" }), ""),
        (json!({ "url": large, "mediaType": "text/plain" }), "A2A file URL part content is too large."),
        (json!({ "raw": bytes(5 * MIB), "mediaType": "image/png" }), ""),
        (json!({ "raw": bytes(5 * MIB + 1), "mediaType": "image/png" }), "A2A binary raw part content is too large."),
        (
            json!({ "data": { "bytes": bytes(5 * MIB + 1) }, "mediaType": "image/png" }),
            "A2A binary data part content is too large.",
        ),
        (json!({ "url": image, "mediaType": "image/png" }), ""),
        (json!({ "url": video, "mediaType": "image/png" }), "A2A binary file URL part content is too large."),
    ] {
        let task = send(&stage, json!([part])).await;
        let expected = if refusal.is_empty() { "INPUT_REQUIRED" } else { "FAILED" };
        assert_eq!((state(&task), words(&task)), (expected, refusal));
    }
}

/// 000:98-109, 000:273-275.
#[tokio::test]
async fn what_is_no_input_fails_with_words() {
    let stage = echo("");
    let folder = stage.workspace.path();
    std::fs::write(folder.join("bytes"), [0xff, 0xfe]).unwrap();
    let file = |name: &str| format!("file://{}", folder.join(name).display());
    for (part, refusal) in [
        (json!({ "text": "x", "mediaType": "text/html" }), "A2A part has unsupported media type."),
        (raw(b"x", "application/zip")[0].clone(), "A2A part has unsupported media type."),
        (json!({ "data": {}, "mediaType": "text/plain" }), "A2A data parts must use application/json media type."),
        (raw(&[0xff], "text/plain")[0].clone(), "A2A raw parts must contain valid UTF-8."),
        (
            json!({ "url": "https://a.example/x", "mediaType": "text/plain" }),
            "A2A file URL parts must use local file:// URLs.",
        ),
        (
            json!({ "url": "file://localhost/etc/hosts", "mediaType": "text/plain" }),
            "A2A file URL parts must use local file:// URLs.",
        ),
        (
            json!({ "url": "file:///etc/hosts", "mediaType": "text/plain" }),
            "A2A file URL part is outside the allowed workspace.",
        ),
        (
            json!({ "url": file("../x"), "mediaType": "text/plain" }),
            "A2A file URL part is outside the allowed workspace.",
        ),
        (
            json!({ "url": file("missing"), "mediaType": "text/plain" }),
            "A2A file URL part must reference an existing file.",
        ),
        (json!({ "url": file("bytes"), "mediaType": "text/plain" }), "A2A file URL parts must contain valid UTF-8."),
        (json!({ "data": [], "mediaType": "image/png" }), "A2A binary data parts must contain an object."),
        (json!({ "data": {}, "mediaType": "image/png" }), "A2A binary data parts must include base64 bytes."),
        (
            json!({ "data": { "bytes": "%" }, "mediaType": "image/png" }),
            "A2A binary data part bytes must be valid base64.",
        ),
    ] {
        let task = send(&stage, json!([part])).await;
        assert_eq!((state(&task), words(&task)), ("FAILED", refusal), "{part}");
    }
}

/// 000:99-100, 000:277, 002:324.
#[tokio::test]
async fn a_workspace_exists_and_is_allowed() {
    let (allowed, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir_in("/var/tmp").unwrap());
    let folder = allowed.path().join("project");
    std::fs::create_dir(&folder).unwrap();
    std::fs::write(allowed.path().join("file"), "").unwrap();
    let (inside, outside) = (folder.to_str().unwrap(), elsewhere.path().to_str().unwrap());
    let missing = allowed.path().join("missing");
    let wrong = ["relative", missing.to_str().unwrap(), "/", "/etc", ""];
    let script = "pwd -P";
    let more = "profile: iac-code\nstore: memory";
    // Without roots: the server's folder, and that for temporary files.
    let stage = Stage::shell(script, more);
    let here = stage.server.send("hello").await;
    assert_eq!(said(&here).trim(), stage.workspace.path().canonicalize().unwrap().to_str().unwrap());
    let there = stage.server.send_params(params("hello", Some(inside))).await;
    assert_eq!(said(&there).trim(), folder.canonicalize().unwrap().to_str().unwrap());
    for cwd in wrong.into_iter().chain([outside]) {
        let task = stage.server.send_params(params("hello", Some(cwd))).await;
        assert_eq!((state(&task), words(&task)), ("FAILED", "Invalid A2A workspace metadata."), "{cwd}");
    }
    assert!(!missing.exists());
    // With roots: those.
    let roots = format!("{outside}:{}", elsewhere.path().parent().unwrap().display());
    let stage = Stage::new_in("generic", &json!(["sh", "-c", script]), more, &[("IACCODE_A2A_ALLOWED_CWDS", &roots)]);
    let there = stage.server.send_params(params("hello", Some(outside))).await;
    assert_eq!(said(&there).trim(), elsewhere.path().canonicalize().unwrap().to_str().unwrap());
    let task = stage.server.send_params(params("hello", Some(inside))).await;
    assert_eq!(words(&task), "Invalid A2A workspace metadata.");
}
