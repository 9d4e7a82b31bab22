//! Secrets that stay secret.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE};

use super::{Context, FILE, KeyError, Keyring, Sealed};

const CONTEXT: Context<'static> = Context { url: "https://a.example/", config: "c-1" };

fn at(folder: &Path) -> Keyring {
    Keyring::open_in(folder, |_| None).unwrap()
}

fn given(json: &str) -> Result<Keyring, KeyError> {
    let folder = tempfile::tempdir().unwrap();
    let ring = Keyring::open_in(folder.path(), |name| (name == "NUNCIO_PUSH_KEYRING").then(|| json.to_owned()));
    assert!(!folder.path().join(FILE).exists(), "the environment needs no file");
    ring
}

fn one_key(id: &str, fill: u8) -> String {
    let key = STANDARD.encode([fill; 32]);
    format!(r#"{{"activeKeyId":"{id}","keys":[{{"id":"{id}","key":"{key}"}}]}}"#)
}

#[test]
fn what_was_sealed_can_be_opened_and_not_be_read() {
    let folder = tempfile::tempdir().unwrap();
    let ring = at(folder.path());
    for secret in ["", "a secret token", "ünïcode"] {
        let sealed = ring.seal(CONTEXT, secret.as_bytes()).unwrap();
        assert!(secret.is_empty() || !sealed.as_str().contains(secret));
        assert_eq!(ring.open(CONTEXT, &sealed).unwrap(), secret.as_bytes());
        assert_ne!(sealed, ring.seal(CONTEXT, secret.as_bytes()).unwrap(), "never the same twice");
    }
}

#[test]
fn the_keys_survive_a_restart_in_a_file_of_their_owner() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let sealed = at(&data).seal(CONTEXT, b"secret").unwrap();
    assert_eq!(at(&data).open(CONTEXT, &sealed).unwrap(), b"secret");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&data), mode(&data.join(FILE))), (0o700, 0o600));
}

#[test]
fn a_file_that_others_can_read_is_refused_with_the_command_that_helps() {
    let folder = tempfile::tempdir().unwrap();
    at(folder.path());
    let path = folder.path().join(FILE);
    for mode in [0o640, 0o604, 0o620, 0o644, 0o666] {
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        let error = Keyring::open_in(folder.path(), |_| None).unwrap_err();
        assert_eq!(error, KeyError::Exposed { path: path.clone() });
        assert!(error.to_string().contains(&format!("chmod 600 {}", path.display())), "{error}");
    }
    fs::set_permissions(&path, fs::Permissions::from_mode(0o400)).unwrap();
    at(folder.path());
}

#[test]
fn a_secret_belongs_to_its_webhook() {
    let folder = tempfile::tempdir().unwrap();
    let ring = at(folder.path());
    let sealed = ring.seal(CONTEXT, b"secret").unwrap();
    for other in [
        Context { url: "https://evil.example/", ..CONTEXT },
        Context { config: "c-2", ..CONTEXT },
        Context { url: "https://a.example/c", config: "-1" },
        Context { url: "c-1", config: "https://a.example/" },
    ] {
        assert_eq!(ring.open(other, &sealed), Err(KeyError::Broken), "{other:?}");
    }
}

#[test]
fn any_change_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let ring = at(folder.path());
    let sealed = ring.seal(CONTEXT, b"secret").unwrap();
    let (head, text) = sealed.as_str().rsplit_once(':').unwrap();
    let bytes = super::BASE64.decode(text).unwrap();
    for i in 0..bytes.len() {
        let mut changed = bytes.clone();
        changed[i] ^= 1;
        let changed = Sealed::from(format!("{head}:{}", super::BASE64.encode(changed)));
        assert_eq!(ring.open(CONTEXT, &changed), Err(KeyError::Broken), "byte {i}");
    }
    for length in 0..bytes.len() {
        let cut = Sealed::from(format!("{head}:{}", super::BASE64.encode(&bytes[..length])));
        assert_eq!(ring.open(CONTEXT, &cut), Err(KeyError::Broken), "{length} bytes");
    }
}

#[test]
fn plain_text_and_other_forms_are_not_opened() {
    let folder = tempfile::tempdir().unwrap();
    let ring = at(folder.path());
    for text in ["", "secret", "nk1", "nk1:", "nk1:id", "nk2:id:AAAA", ":::", "nk1:id:not base64!"] {
        assert_eq!(ring.open(CONTEXT, &Sealed::from(text.to_owned())), Err(KeyError::Broken), "{text}");
    }
}

#[test]
fn another_key_does_not_open() {
    let sealed = given(&one_key("k", 1)).unwrap().seal(CONTEXT, b"secret").unwrap();
    assert_eq!(given(&one_key("k", 1)).unwrap().open(CONTEXT, &sealed).unwrap(), b"secret");
    assert_eq!(given(&one_key("k", 2)).unwrap().open(CONTEXT, &sealed), Err(KeyError::Broken));
    let unknown = given(&one_key("other", 1)).unwrap().open(CONTEXT, &sealed);
    assert_eq!(unknown, Err(KeyError::Unknown { id: "k".into() }));
}

#[test]
fn rotation_keeps_old_secrets_readable_and_seals_new_ones_with_the_new_key() {
    let folder = tempfile::tempdir().unwrap();
    let (ring, other) = (at(folder.path()), at(folder.path()));
    let old = ring.seal(CONTEXT, b"secret").unwrap();
    let id = ring.rotate().unwrap();
    assert_ne!(old.key_id().unwrap(), id);
    assert_eq!(ring.open(CONTEXT, &old).unwrap(), b"secret");
    let new = ring.reseal(CONTEXT, &old).unwrap().unwrap();
    assert_eq!(new.key_id().unwrap(), id);
    assert_eq!(ring.reseal(CONTEXT, &new).unwrap(), None);
    // A process that runs meanwhile learns of the new key when it meets it.
    assert_eq!(other.open(CONTEXT, &new).unwrap(), b"secret");
    assert_eq!(other.ids()[0], id);
    // An unused key can go, the active one never.
    ring.forget_all_but(&[old.key_id().unwrap()]).unwrap();
    assert_eq!(ring.ids().len(), 2);
    ring.forget_all_but(&[]).unwrap();
    assert_eq!(ring.ids(), [id]);
    assert!(matches!(at(folder.path()).open(CONTEXT, &old), Err(KeyError::Unknown { .. })));
    assert_eq!(at(folder.path()).open(CONTEXT, &new).unwrap(), b"secret");
}

#[test]
fn keys_from_the_environment_win_and_cannot_be_rotated() {
    let ring = given(&one_key("k", 1)).unwrap();
    assert_eq!(ring.rotate(), Err(KeyError::Managed { variable: "NUNCIO_PUSH_KEYRING" }));
}

#[test]
fn the_keyring_of_iac_code_is_read() {
    let (a, b) = (URL_SAFE.encode([7; 32]), URL_SAFE.encode([255; 32]));
    let json = format!(
        r#"{{"activeKeyId":"push-1-b","keys":[
            {{"id":"push-1-a","fernetKey":"{a}","createdAt":1700000000.5}},
            {{"id":"push-1-b","fernetKey":"{b}","createdAt":1700000001}}]}}"#
    );
    let folder = tempfile::tempdir().unwrap();
    let ring =
        Keyring::open_in(folder.path(), |name| (name == "IAC_CODE_A2A_PUSH_KEYRING").then(|| json.clone())).unwrap();
    let sealed = ring.seal(CONTEXT, b"secret").unwrap();
    assert_eq!(sealed.key_id().unwrap(), "push-1-b");
    assert_eq!(ring.open(CONTEXT, &sealed).unwrap(), b"secret");
    assert_eq!(ring.ids(), ["push-1-b", "push-1-a"]);
}

#[test]
fn a_malformed_keyring_is_reported_without_a_word_of_it() {
    let key = STANDARD.encode([1; 32]);
    for json in [
        "hunter2".to_owned(),
        "{}".into(),
        r#"{"activeKeyId":"k","keys":[]}"#.into(),
        one_key("k", 1).replace(r#""activeKeyId":"k""#, r#""activeKeyId":"hunter2""#),
        r#"{"activeKeyId":"k","keys":[{"id":"k","key":"hunter2"}]}"#.into(),
        r#"{"activeKeyId":"k","keys":[{"id":"k","key":["hunter2"]}]}"#.into(),
        format!(r#"{{"activeKeyId":"k","keys":[{{"id":"k","key":"{key}"}},{{"id":"k","key":"{key}"}}]}}"#),
    ] {
        let error = given(&json).unwrap_err();
        assert!(matches!(error, KeyError::Malformed { .. }), "{json}: {error}");
        assert!(!error.to_string().contains("hunter2"), "{error}");
    }
}

#[test]
fn nothing_prints_a_key() {
    let folder = tempfile::tempdir().unwrap();
    let ring = at(folder.path());
    let text = fs::read_to_string(folder.path().join(FILE)).unwrap();
    let key = text.split(r#""key": ""#).nth(1).unwrap().split('"').next().unwrap();
    let sealed = ring.seal(CONTEXT, b"secret").unwrap();
    let shown = format!("{ring:?} {sealed:?}");
    assert!(!shown.contains(key) && shown.contains(&ring.ids()[0]), "{shown}");
}

#[test]
fn many_that_start_at_once_use_the_same_key() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("data");
    let sealed: Vec<Sealed> = std::thread::scope(|scope| {
        let begin = || scope.spawn(|| at(&path).seal(CONTEXT, b"secret").unwrap());
        let threads: Vec<_> = (0..16).map(|_| begin()).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let ring = at(&path);
    for sealed in &sealed {
        assert_eq!(ring.open(CONTEXT, sealed).unwrap(), b"secret");
    }
    assert_eq!(ring.ids().len(), 1);
}

#[test]
fn rotations_at_the_same_time_are_all_kept() {
    let folder = tempfile::tempdir().unwrap();
    at(folder.path());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| at(folder.path()).rotate().unwrap());
        }
    });
    assert_eq!(at(folder.path()).ids().len(), 9);
}
