use jsonwebtoken::{EncodingKey, encode, get_current_timestamp};
use nuncio_protocol::codec::json;

use super::*;

const ISSUER: &str = "https://id.example";

fn options() -> IssuerOptions {
    IssuerOptions {
        name: "oidc".into(),
        issuer: ISSUER.into(),
        audience: vec!["agents".into()],
        keys: KeySource::Secret("a secret that two parties share".into()),
        algorithms: vec![Algorithm::HS256],
        skew: Duration::from_secs(60),
        name_claim: "sub".into(),
        groups_claim: "realm.roles".into(),
        scopes: Some(ScopeTable::default()),
    }
}

fn good() -> Value {
    json!({
        "iss": ISSUER, "aud": ["other", "agents"], "sub": "anna", "exp": get_current_timestamp() + 300,
        "iat": get_current_timestamp(), "scope": "openid a2a:read", "realm": { "roles": ["blue", 7, "red"] },
    })
}

fn sign(header: &Header, claims: &Value) -> String {
    let key = EncodingKey::from_secret(b"a secret that two parties share");
    encode(header, claims, &key).expect("a token")
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = good();
    match value {
        Value::Null => _ = claims.as_object_mut().expect("an object").remove(name),
        value => claims[name] = value,
    }
    claims
}

async fn verify(claims: &Value) -> Result<Identity, Rejected> {
    let issuer = Issuer::new(options()).expect("a provider");
    issuer.verify(&sign(&Header::new(Algorithm::HS256), claims)).await
}

#[tokio::test]
async fn a_good_token_says_who_in_which_groups_and_what() {
    let identity = verify(&good()).await.expect("it is good");
    assert_eq!(&*identity.name, "oidc:anna", "no token of the operator can have this name");
    assert_eq!(identity.groups, [Arc::from("blue"), Arc::from("red")]);
    assert!(identity.grants.allow(crate::metrics::Operation::Get));
    assert!(!identity.grants.allow(crate::metrics::Operation::Send));
    let listed = verify(&with("scope", Value::Null)).await.expect("it is good");
    assert_eq!(listed.grants, Grants::NONE, "scopes are asked for, and there are none");
    let mut claims = with("scope", Value::Null);
    claims["scp"] = json!(["a2a:write"]);
    assert!(verify(&claims).await.expect("it is good").grants.allow(crate::metrics::Operation::Send));
    let all = Issuer::new(IssuerOptions { scopes: None, ..options() }).expect("a provider");
    let token = sign(&Header::new(Algorithm::HS256), &with("scope", Value::Null));
    assert_eq!(all.verify(&token).await.expect("it is good").grants, Grants::ALL);
}

#[tokio::test]
async fn every_claim_counts() {
    let now = get_current_timestamp();
    for (name, value) in [
        ("exp", json!(now - 61)),
        ("exp", Value::Null),
        ("exp", json!("soon")),
        ("nbf", json!(now + 120)),
        ("iat", json!(now + 120)),
        ("iat", json!("now")),
        ("iss", json!("https://id.example/")),
        ("iss", json!("https://evil.example")),
        ("iss", Value::Null),
        ("aud", json!("other")),
        ("aud", json!([])),
        ("aud", Value::Null),
        ("sub", Value::Null),
        ("sub", json!("")),
        ("sub", json!(7)),
        ("sub", json!("a\nb")),
        ("sub", json!("x".repeat(257))),
    ] {
        let claims = with(name, value.clone());
        assert_eq!(verify(&claims).await.map(|identity| identity.name), Err(Rejected::Wrong), "{name}: {value}");
    }
    for (name, value) in [("exp", json!(now - 30)), ("nbf", json!(now + 30)), ("aud", json!("agents"))] {
        assert!(verify(&with(name, value.clone())).await.is_ok(), "{name}: {value}");
    }
}

#[tokio::test]
async fn tokens_for_something_else_and_of_other_kinds_are_refused() {
    let issuer = Issuer::new(options()).expect("a provider");
    let header = |change: fn(&mut Header)| {
        let mut header = Header::new(Algorithm::HS256);
        change(&mut header);
        sign(&header, &good())
    };
    assert!(issuer.verify(&header(|header| header.typ = Some("at+jwt".into()))).await.is_ok());
    let logout = header(|header| header.typ = Some("logout+jwt".into()));
    let critical = header(|header| header.crit = Some(vec!["b64".into()]));
    let longer = sign(&Header::new(Algorithm::HS512), &good());
    let token = sign(&Header::new(Algorithm::HS256), &good());
    let (_, rest) = token.split_once('.').expect("a header");
    // {"alg":"none"} and {"alg":"None"}
    let nones = ["eyJhbGciOiJub25lIn0", "eyJhbGciOiJOb25lIn0"].map(|header| format!("{header}.{rest}"));
    let (signed, signature) = token.rsplit_once('.').expect("a signature");
    let unsigned = format!("{signed}.");
    let reversed = format!("{signed}.{}", signature.chars().rev().collect::<String>());
    let garbage = ["", ".", "..", "...", "a.b.c", "\u{1f512}"].map(str::to_owned);
    for token in [logout, critical, longer, unsigned, reversed].into_iter().chain(nones).chain(garbage) {
        assert_eq!(issuer.verify(&token).await.map(|identity| identity.name), Err(Rejected::Wrong), "{token}");
    }
}

#[test]
fn secrets_and_public_keys_do_not_mix() {
    let mixed = IssuerOptions { algorithms: vec![Algorithm::HS256, Algorithm::RS256], ..options() };
    assert!(Issuer::new(mixed).is_err());
    let public = IssuerOptions { keys: KeySource::Discovery, ..options() };
    assert!(Issuer::new(public).is_err(), "a secret that is published is none");
    let plain = IssuerOptions {
        keys: KeySource::Discovery,
        issuer: "http://id.example".into(),
        algorithms: vec![Algorithm::RS256],
        ..options()
    };
    assert!(Issuer::new(plain).expect_err("it is refused").0.contains("https"));
}
