use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;
use crate::codec;
use crate::{AgentCapabilities, AgentInterface};

const NOW: u64 = 1_800_000_000;

fn card() -> AgentCard {
    AgentCard {
        name: "Zoë 😀".into(),
        version: "1".into(),
        supported_interfaces: vec![AgentInterface {
            url: "https://a.example/".into(),
            protocol_binding: "JSONRPC".into(),
            protocol_version: "1.0".into(),
            ..Default::default()
        }],
        capabilities: AgentCapabilities { streaming: Some(false), ..Default::default() },
        icon_url: Some(String::new()),
        ..Default::default()
    }
}

fn key(algorithm: Algorithm) -> SigningKey {
    match algorithm {
        Algorithm::Hs256 => SigningKey::secret("k-1", b"a secret that two people share").unwrap(),
        other => SigningKey::generate("k-1", other).unwrap(),
    }
}

/// The keys that check what this key signs.
fn keys(key: &SigningKey) -> KeySet {
    match key.public_jwk() {
        Some(jwk) => KeySet::from_jwks(&codec::encode(&json!({ "keys": [jwk] })), Secrets::Ignored).unwrap(),
        None => [VerifyingKey::secret(Some("k-1"), b"a secret that two people share").unwrap()].into_iter().collect(),
    }
}

fn signed(key: &SigningKey, form: Form) -> AgentCard {
    let mut card = card();
    card.signatures.push(sign(&card, key, form, None).unwrap());
    card
}

fn judge(card: &AgentCard, keys: &KeySet) -> Verdict {
    verify(&codec::encode(card), keys, NOW)
}

fn wrong(verdict: Verdict) -> Reason {
    match verdict {
        Verdict::Wrong(reason) => reason,
        other => panic!("wrong is right, not {other:?}"),
    }
}

#[test]
fn what_every_kind_of_key_signs_in_every_form_is_verified() {
    for alg in Algorithm::ALL {
        let key = key(alg);
        for form in [Form::Spec, Form::Sdk, Form::Escaped] {
            let verdict = judge(&signed(&key, form), &keys(&key));
            let whole = Verdict::Verified { kid: "k-1".into(), alg, form, uncovered: Vec::new() };
            assert_eq!(verdict, whole, "{alg} {form}");
        }
    }
}

#[test]
fn a_key_survives_its_file() {
    for alg in [Algorithm::Es256, Algorithm::Rs256, Algorithm::EdDsa] {
        let made = key(alg);
        let read = SigningKey::from_pem("k-1", &made.to_pem().unwrap()).unwrap();
        assert_eq!((read.algorithm(), read.public_jwk()), (alg, made.public_jwk()));
        assert!(judge(&signed(&read, Form::Spec), &keys(&made)).is_verified());
    }
    assert!(key(Algorithm::Hs256).to_pem().is_none() && key(Algorithm::Hs256).public_jwk().is_none());
    for text in ["", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----", "-----BEGIN PRIVATE KEY-----"] {
        SigningKey::from_pem("k", text).unwrap_err();
    }
}

#[test]
fn every_changed_byte_is_noticed() {
    let key = key(Algorithm::EdDsa);
    let keys = keys(&key);
    let json = codec::encode(&signed(&key, Form::Spec)).to_vec();
    let end = json.windows(12).position(|window| window == b"\"signatures\"").unwrap();
    let mut changed = 0;
    for i in 0..end {
        let mut other = json.clone();
        other[i] ^= 1;
        match verify(&other, &keys, NOW) {
            // The name of an empty member became one that nobody knows: it says nothing, and is named.
            Verdict::Verified { uncovered, .. } => {
                assert_eq!(uncovered.len(), 1, "byte {i}");
                assert_eq!(codec::decode::<AgentCard>(&other), codec::decode(&json), "byte {i}");
            }
            _ => changed += 1,
        }
    }
    assert!(changed > end * 2 / 3, "{changed} of {end}");
}

#[test]
fn members_that_nobody_vouches_for_are_named() {
    let key = key(Algorithm::Es256);
    let mut value = codec::to_value(&signed(&key, Form::Spec));
    value["url"] = "https://evil.example".into();
    let Verdict::Verified { uncovered, form: Form::Spec, .. } = verify(&codec::encode(&value), &keys(&key), NOW) else {
        panic!("1.0 is signed")
    };
    assert_eq!(uncovered, ["url"]);
}

#[test]
fn a_card_of_a_later_version_is_covered_as_it_came() {
    let key = key(Algorithm::EdDsa);
    let mut value = json!({ "name": "later", "supportedInterfaces": [], "generation": { "a": 1.0, "b": [] } });
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"EdDSA","kid":"k-1"}"#);
    let input = format!("{header}.{}", URL_SAFE_NO_PAD.encode(jcs::canonical(&value)));
    let signature = URL_SAFE_NO_PAD.encode(key.sign(input.as_bytes()).unwrap());
    value["signatures"] = json!([{ "protected": header, "signature": signature }]);
    let verdict = verify(&codec::encode(&value), &keys(&key), NOW);
    assert!(matches!(verdict, Verdict::Verified { form: Form::Received, ref uncovered, .. } if uncovered.is_empty()));
}

#[test]
fn one_good_signature_of_several_is_enough() {
    let (good, other) = (key(Algorithm::Es256), SigningKey::generate("other", Algorithm::EdDsa).unwrap());
    let mut card = card();
    let foreign = sign(&card, &other, Form::Spec, None).unwrap();
    let right = sign(&card, &good, Form::Sdk, None).unwrap();
    let broken = AgentCardSignature { protected: "%".into(), ..right.clone() };
    card.signatures = vec![broken.clone(), foreign.clone(), right];
    assert!(judge(&card, &keys(&good)).is_verified());
    // What is wrong weighs more than what nobody can judge.
    card.signatures = vec![foreign.clone(), broken];
    assert!(matches!(wrong(judge(&card, &keys(&good))), Reason::Malformed(_)));
    card.signatures = vec![foreign];
    assert_eq!(judge(&card, &keys(&good)), Verdict::Unverifiable(Reason::UnknownKey("other".into())));
    card.signatures = vec![];
    assert_eq!(judge(&card, &keys(&good)), Verdict::Absent);
}

#[test]
fn nobody_signs_with_none() {
    let mut card = card();
    for alg in ["none", "None", "NONE"] {
        let protected = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{alg}","kid":"k-1"}}"#));
        card.signatures = vec![AgentCardSignature { protected, ..Default::default() }];
        assert_eq!(wrong(judge(&card, &keys(&key(Algorithm::Es256)))), Reason::NoAlgorithm);
        assert_eq!(wrong(judge(&card, &KeySet::default())), Reason::NoAlgorithm);
    }
}

#[test]
fn a_public_key_is_no_secret() {
    let public = key(Algorithm::Rs256);
    let jwk = public.public_jwk().unwrap();
    // Whatever a forger may take for the secret: the key as it is published, or its modulus.
    for secret in [codec::encode(&jwk).to_vec(), jwk["n"].as_str().unwrap().as_bytes().to_vec()] {
        let forger = SigningKey::secret("k-1", &secret).unwrap();
        let reason = wrong(judge(&signed(&forger, Form::Spec), &keys(&public)));
        let confusion = Reason::KeyConfusion { kid: "k-1".into(), key: Algorithm::Rs256, says: Algorithm::Hs256 };
        assert_eq!(reason, confusion);
    }
}

#[test]
fn a_published_secret_does_not_count() {
    let jwks = br#"{"keys":[{"kty":"oct","kid":"k-1","k":"YSBzZWNyZXQgdGhhdCB0d28gcGVvcGxlIHNoYXJl"}]}"#;
    KeySet::from_jwks(jwks, Secrets::Ignored).unwrap_err();
    let keys = KeySet::from_jwks(jwks, Secrets::Allowed).unwrap();
    assert!(judge(&signed(&key(Algorithm::Hs256), Form::Spec), &keys).is_verified());
}

#[test]
fn a_key_counts_only_in_its_time() {
    let key = key(Algorithm::Es256);
    let card = signed(&key, Form::Spec);
    let timed = |nbf: u64, exp: u64| {
        let mut jwk = key.public_jwk().unwrap();
        (jwk["nbf"], jwk["exp"]) = (nbf.into(), exp.into());
        KeySet::from_jwks(&codec::encode(&jwk), Secrets::Ignored).unwrap()
    };
    assert!(judge(&card, &timed(NOW, NOW + 1)).is_verified());
    assert_eq!(wrong(judge(&card, &timed(0, NOW))), Reason::Expired("k-1".into()));
    assert_eq!(wrong(judge(&card, &timed(NOW + 1, NOW + 2))), Reason::NotYetValid("k-1".into()));
    let given: KeySet = keys(&key).into_iter().map(|key| key.valid(None, Some(NOW - 1))).collect();
    assert_eq!(wrong(judge(&card, &given)), Reason::Expired("k-1".into()));
}

#[test]
fn where_a_card_says_its_keys_are_proves_nothing() {
    let (good, forger) = (key(Algorithm::Es256), SigningKey::generate("k-2", Algorithm::Es256).unwrap());
    let mut card = card();
    card.signatures = vec![sign(&card, &forger, Form::Spec, Some("https://evil.example/jwks")).unwrap()];
    for keys in [keys(&good), KeySet::default()] {
        let reason = Reason::ForeignKeys { kid: "k-2".into(), jku: "https://evil.example/jwks".into() };
        assert_eq!(judge(&card, &keys), Verdict::Unverifiable(reason));
    }
    card.signatures = vec![sign(&card, &good, Form::Spec, None).unwrap()];
    assert_eq!(judge(&card, &KeySet::default()), Verdict::Unverifiable(Reason::NoKeys));
}

#[test]
fn another_key_of_the_same_name_is_noticed() {
    let (a, b) = (key(Algorithm::EdDsa), key(Algorithm::EdDsa));
    assert_eq!(wrong(judge(&signed(&a, Form::Spec), &keys(&b))), Reason::Mismatch("k-1".into()));
    assert!(judge(&signed(&a, Form::Spec), &keys(&b).into_iter().chain(keys(&a)).collect()).is_verified());
}

#[test]
fn what_is_not_supported_is_not_judged() {
    let header = |json: &str| AgentCardSignature {
        protected: URL_SAFE_NO_PAD.encode(json),
        signature: "AAAA".into(),
        ..Default::default()
    };
    let keys = keys(&key(Algorithm::Es256));
    for (json, reason) in [
        (r#"{"alg":"ES512","kid":"k-1"}"#, Reason::UnsupportedAlgorithm("ES512".into())),
        (r#"{"alg":"ES256","kid":"k-1","crit":["b64"],"b64":false}"#, Reason::Critical),
    ] {
        let card = AgentCard { signatures: vec![header(json)], ..card() };
        assert_eq!(judge(&card, &keys), Verdict::Unverifiable(reason));
    }
    for json in [r#"{"kid":"k-1"}"#, "[]", "{", r#"{"alg":"none","alg":"ES256"}"#] {
        let card = AgentCard { signatures: vec![header(json)], ..card() };
        assert!(matches!(wrong(judge(&card, &keys)), Reason::Malformed(_)), "{json}");
    }
}

#[test]
fn sets_are_read_with_patience() {
    let es = key(Algorithm::Es256).public_jwk().unwrap();
    let mut encryption = es.clone();
    encryption["use"] = "enc".into();
    let mut other = es.clone();
    other["alg"] = "ES384".into();
    let odd = json!({ "keys": [encryption, other, { "kty": "EC", "crv": "P-521" }, 7, { "kty": "RSA" }, es] });
    assert_eq!(KeySet::from_jwks(&codec::encode(&odd), Secrets::Allowed).unwrap().keys().len(), 1);
    for nothing in ["{}", "[]", r#"{"keys":[]}"#, r#"{"keys":3}"#, "no"] {
        KeySet::from_jwks(nothing.as_bytes(), Secrets::Allowed).unwrap_err();
    }
}
