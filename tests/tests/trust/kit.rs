//! Keys and tokens of a provider that there is not, and certificates of an authority that there is not.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use nuncio_tests::raw::Answer;
use nuncio_tests::{Value, json};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

pub(crate) const ANNA: &str = "Authorization: Bearer aaaaaaaaaaaaaaaaaaaaaaaa\r\n";
pub(crate) const BEN: &str = "Authorization: Bearer bbbbbbbbbbbbbbbbbbbbbbbb\r\n";
/// Two callers with tokens of their own.
pub(crate) const TOKENS: &str =
    "tokens:\n  - {name: anna, token: aaaaaaaaaaaaaaaaaaaaaaaa}\n  - {name: ben, token: bbbbbbbbbbbbbbbbbbbbbbbb}\n";

/// The header line for a bearer token.
pub(crate) fn bearer(token: &str) -> String {
    format!("Authorization: Bearer {token}\r\n")
}

/// Signs tokens, and writes the file of keys that a server checks them with.
pub(crate) struct Mint {
    key: EncodingKey,
    folder: tempfile::TempDir,
}

impl Mint {
    pub(crate) fn new() -> Self {
        let pair = KeyPair::generate().expect("a key");
        let point = pair.public_key_raw();
        let part = |range: std::ops::Range<usize>| URL_SAFE_NO_PAD.encode(&point[range]);
        let jwk =
            json!({ "kty": "EC", "crv": "P-256", "kid": "k", "alg": "ES256", "x": part(1..33), "y": part(33..65) });
        let folder = tempfile::tempdir().expect("a folder");
        let set = json!({ "keys": [jwk] }).to_string();
        std::fs::write(folder.path().join("keys.json"), set).expect("the file can be written");
        Self { key: EncodingKey::from_ec_der(&pair.serialize_der()), folder }
    }

    /// A place for a file beside the keys.
    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The configuration of a server that believes these tokens.
    pub(crate) fn config(&self, more: &str) -> String {
        let file = self.folder.path().join("keys.json");
        let (file, more) = (file.display(), if more.is_empty() { String::new() } else { format!(", {more}") });
        format!("oidc: {{issuer: \"https://id.example\", audience: agents, jwks-file: \"{file}\"{more}}}\n")
    }

    /// A good token with these claims beside the usual ones.
    pub(crate) fn token(&self, claims: &Value) -> String {
        let mut all = json!({ "iss": "https://id.example", "aud": "agents", "sub": "anna", "exp": now() + 600 });
        for (name, value) in claims.as_object().expect("claims") {
            all[name] = value.clone();
        }
        let header = Header { kid: Some("k".into()), ..Header::new(Algorithm::ES256) };
        encode(&header, &all, &self.key).expect("a token")
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("it is later").as_secs()
}

/// An authority and what it has signed, in files.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
    folder: tempfile::TempDir,
}

impl Authority {
    pub(crate) fn new(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let pem = params.self_signed(&key).expect("a certificate").pem();
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("ca.pem"), &pem).expect("the file can be written");
        Self { issuer: Issuer::new(params, key), pem, folder }
    }

    /// Its own certificate, in PEM.
    pub(crate) fn pem(&self) -> &str {
        &self.pem
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Certificate and key, in PEM, for a name; servers are at 127.0.0.1.
    pub(crate) fn issue(&self, name: &str) -> (String, String) {
        let names = vec!["127.0.0.1".to_owned(), "localhost".to_owned()];
        let mut params = CertificateParams::new(names).expect("names");
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.signed_by(&key, &self.issuer).expect("a certificate");
        (certificate.pem(), key.serialize_pem())
    }

    /// The configuration of a server with a certificate of this authority.
    pub(crate) fn config(&self) -> String {
        let (cert, key) = (self.file("cert.pem"), self.file("key.pem"));
        install(&cert, &key, &self.issue("server"));
        format!("tls: {{cert: \"{}\", key: \"{}\"}}\n", cert.display(), key.display())
    }
}

/// Puts certificate and key in the place of those that are there.
pub(crate) fn install(cert: &Path, key: &Path, made: &(String, String)) {
    for (path, text) in [(cert, &made.0), (key, &made.1)] {
        let new = path.with_extension("new");
        std::fs::write(&new, text).expect("the file can be written");
        std::fs::set_permissions(&new, Permissions::from_mode(0o600)).expect("it has a mode");
        std::fs::rename(&new, path).expect("it takes its place");
    }
}

/// All of an answer as text, ids by the order in which they appear and without times; the length says how many digits
/// a time has.
pub(crate) fn plain(answer: &Answer) -> String {
    let headers = answer.headers.iter().filter(|(name, _)| name != "date" && name != "content-length");
    let headers: String = headers.map(|(name, value)| format!("{name}: {value}\n")).collect();
    let whole = format!("{}\n{headers}\n{}", answer.status, answer.text());
    let (mut text, mut seen, mut rest) = (String::new(), Vec::new(), whole.as_str());
    while let Some(first) = rest.chars().next() {
        if let Some(id) = rest.get(..36).filter(|id| is_id(id)) {
            let at = seen.iter().position(|known| *known == id).unwrap_or_else(|| {
                seen.push(id);
                seen.len() - 1
            });
            text.push_str(&format!("<id {at}>"));
            rest = &rest[36..];
        } else if let Some(end) = time_at(rest) {
            text.push_str("<time>");
            rest = &rest[end..];
        } else if let Some(time) = rest.strip_prefix("\"durationMs\":") {
            text.push_str("<duration>");
            rest = time.trim_start_matches(|digit: char| digit.is_ascii_digit());
        } else {
            text.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    text
}

fn is_id(text: &str) -> bool {
    let fits = |(at, byte): (usize, u8)| match at {
        8 | 13 | 18 | 23 => byte == b'-',
        _ => byte.is_ascii_hexdigit(),
    };
    text.bytes().enumerate().all(fits)
}

/// Where a time such as `2026-01-02T03:04:05.678Z` ends.
fn time_at(text: &str) -> Option<usize> {
    let head = text.get(..20)?.as_bytes();
    if head[4] != b'-' || head[10] != b'T' || !head[..4].iter().all(u8::is_ascii_digit) {
        return None;
    }
    text.find('Z').filter(|end| *end < 32).map(|end| end + 1)
}
