//! Tokens as a receiver sees them. That another library accepts them is tested where that library is.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED, UnparsedPublicKey};
use base64::Engine;
use nuncio_protocol::{Value, codec};

use super::{BASE64, FILE, KeyError, Notice, SHOWN, Signer};

const NOTICE: Notice<'static> = Notice {
    url: "https://Hooks.Example.com:8443/a2a/in?x=1",
    event_id: "t-1/7",
    task_id: "t-1",
    body: b"{\"statusUpdate\":{}}",
};

fn at(folder: &Path) -> Signer {
    Signer::open_in(folder, |_| None, "https://agent.example.com").unwrap()
}

fn part(text: &str) -> Value {
    codec::decode(&BASE64.decode(text).unwrap()).unwrap()
}

fn ids(jwks: &[u8]) -> BTreeSet<String> {
    let jwks: Value = codec::decode(jwks).unwrap();
    jwks["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

/// Whether one of the published keys has made the signature.
fn verifies(token: &str, jwks: &[u8]) -> bool {
    let (text, signature) = token.rsplit_once('.').unwrap();
    let header = part(text.split('.').next().unwrap());
    let jwks: Value = codec::decode(jwks).unwrap();
    let keys = jwks["keys"].as_array().unwrap();
    let Some(key) = keys.iter().find(|key| key["kid"] == header["kid"]) else { return false };
    let mut point = vec![4];
    for name in ["x", "y"] {
        point.extend(BASE64.decode(key[name].as_str().unwrap()).unwrap());
    }
    let signature = BASE64.decode(signature).unwrap();
    UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point).verify(text.as_bytes(), &signature).is_ok()
}

#[test]
fn a_token_says_who_to_whom_when_and_what() {
    let folder = tempfile::tempdir().unwrap();
    let signer = at(folder.path());
    let token = signer.sign_at(&NOTICE, 1_700_000_000).unwrap();
    let parts: Vec<&str> = token.split('.').collect();
    assert_eq!(parts.len(), 3);
    let header = part(parts[0]);
    assert_eq!((&header["alg"], &header["typ"]), (&"ES256".into(), &"JWT".into()));
    assert_eq!(ids(&signer.jwks()), [header["kid"].as_str().unwrap().to_owned()].into());
    let expected = codec::json!({
        "iss": "https://agent.example.com",
        "aud": "https://hooks.example.com:8443",
        "iat": 1_700_000_000,
        "exp": 1_700_000_300,
        "jti": "t-1/7",
        "taskId": "t-1",
    });
    let mut claims = part(parts[1]);
    let hash = claims.as_object_mut().unwrap().remove("request_body_sha256").unwrap();
    assert_eq!(claims, expected);
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, NOTICE.body);
    let hash = hash.as_str().unwrap();
    let bytes: Vec<u8> = (0..64).step_by(2).map(|i| u8::from_str_radix(&hash[i..i + 2], 16).unwrap()).collect();
    assert_eq!(bytes, digest.as_ref());
    assert!(verifies(&token, &signer.jwks()));
}

#[test]
fn the_key_survives_a_restart_in_a_file_of_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let token = at(folder.path()).sign(&NOTICE).unwrap();
    assert!(verifies(&token, &at(folder.path()).jwks()));
    let path = folder.path().join(FILE);
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let error = Signer::open_in(folder.path(), |_| None, "x").unwrap_err();
    assert_eq!(error, KeyError::Exposed { path });
}

#[test]
fn old_keys_are_shown_for_a_while_and_sign_no_more() {
    let folder = tempfile::tempdir().unwrap();
    let signer = at(folder.path());
    let (start, shown) = (1_700_000_000, SHOWN.as_secs());
    let old = signer.sign_at(&NOTICE, start).unwrap();
    let id = signer.rotate_at(start).unwrap();
    let new = signer.sign_at(&NOTICE, start).unwrap();
    assert_ne!(old.split('.').next(), new.split('.').next());
    let published = signer.jwks_at(start + shown);
    assert!(verifies(&old, &published) && verifies(&new, &published));
    assert_eq!(ids(&signer.jwks_at(start + shown + 1)), [id].into());
    // The file has one private key at any time, and forgets public ones in the end.
    let private = || fs::read_to_string(folder.path().join(FILE)).unwrap().matches("privateKey").count();
    assert_eq!(private(), 1);
    signer.rotate_at(start + shown + 1).unwrap();
    assert_eq!((private(), ids(&signer.jwks_at(start)).len()), (1, 2));
}

#[test]
fn published_keys_hold_no_private_half() {
    let folder = tempfile::tempdir().unwrap();
    let signer = at(folder.path());
    let file = fs::read_to_string(folder.path().join(FILE)).unwrap();
    let private = file.split(r#""privateKey": ""#).nth(1).unwrap().split('"').next().unwrap();
    let jwks: Value = codec::decode(&signer.jwks()).unwrap();
    let names: BTreeSet<&str> = jwks["keys"][0].as_object().unwrap().keys().map(String::as_str).collect();
    assert_eq!(names, ["alg", "crv", "kid", "kty", "use", "x", "y"].into());
    assert!(!format!("{jwks} {signer:?}").contains(private));
}

#[test]
fn keys_from_the_environment_are_the_same_on_every_node() {
    let folder = tempfile::tempdir().unwrap();
    let first = at(folder.path());
    let json = fs::read_to_string(folder.path().join(FILE)).unwrap();
    let elsewhere = tempfile::tempdir().unwrap();
    let second = Signer::open_in(elsewhere.path(), |_| Some(json.clone()), "https://agent.example.com").unwrap();
    assert_eq!(first.jwks(), second.jwks());
    assert!(verifies(&second.sign(&NOTICE).unwrap(), &first.jwks()));
    assert!(matches!(second.rotate(), Err(KeyError::Managed { .. })));
    assert!(!elsewhere.path().join(FILE).exists());
}

#[test]
fn keys_that_do_not_fit_are_refused() {
    let folders = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [a, b] = folders.each_ref().map(|folder| {
        at(folder.path());
        let json = fs::read(folder.path().join(FILE)).unwrap();
        codec::decode::<Value>(&json).unwrap()["keys"][0].clone()
    });
    let mut mixed = a.clone();
    mixed["privateKey"] = b["privateKey"].clone();
    for keys in [codec::json!([]), codec::json!([mixed]), codec::json!([a, b])] {
        let json = codec::json!({ "keys": keys }).to_string();
        let error = Signer::open_in(folders[0].path(), |_| Some(json.clone()), "x").unwrap_err();
        assert!(matches!(error, KeyError::Malformed { .. }), "{error}");
    }
}

#[test]
fn an_address_without_an_origin_is_not_signed_for() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["", "garbage", "data:text/plain,x"] {
        assert_eq!(at(folder.path()).sign(&Notice { url, ..NOTICE }), Err(KeyError::Audience), "{url}");
    }
}
