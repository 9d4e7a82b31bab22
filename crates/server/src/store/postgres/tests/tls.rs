//! TLS to the database.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};

use super::*;

struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self { issuer: CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap() }
    }

    fn write(&self, path: &Path) {
        std::fs::write(path, self.issuer.pem()).unwrap();
    }
}

#[tokio::test]
async fn the_server_is_trusted_as_far_as_the_url_says() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &authority.issuer).unwrap();
    let mut postgres = Postgres::down(&["ssl=on"]);
    postgres.put("server.crt", &certificate.pem());
    postgres.put("server.key", &key.serialize_pem());
    postgres.put("pg_hba.conf", "hostssl all guarded 127.0.0.1/32 scram-sha-256\nhost all all 127.0.0.1/32 trust\n");
    postgres.up();
    let url = postgres.database();
    let folder = tempfile::tempdir().unwrap();
    let (ours, theirs) = (folder.path().join("ours.pem"), folder.path().join("theirs.pem"));
    authority.write(&ours);
    stranger.write(&theirs);
    let by_name = url.replace("127.0.0.1", "localhost");
    let encrypted = async |url: &str, options: &str| {
        let store = open(&format!("{url}?pool=1&writers=1&{options}")).await.map_err(|error| error.to_string())?;
        store.check().await.unwrap();
        let sql =
            "SELECT bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) WHERE application_name = 'nuncio'";
        let answer = postgres.ask("postgres", sql);
        store.close().await;
        drop(store);
        // Its connections end a moment later.
        while postgres.ask("postgres", "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'nuncio'") != "0"
        {
            tokio::time::sleep(std::time::Duration::from_millis(10)).await;
        }
        Ok::<_, String>(answer == "t")
    };
    assert_eq!(encrypted(&url, "sslmode=disable").await, Ok(false));
    assert_eq!(encrypted(&url, "").await, Ok(true), "preferred");
    assert_eq!(encrypted(&url, "sslmode=require").await, Ok(true));
    let root = |path: &Path| format!("sslrootcert={}", path.display());
    assert_eq!(encrypted(&url, &format!("sslmode=verify-ca&{}", root(&ours))).await, Ok(true));
    assert_eq!(encrypted(&by_name, &format!("sslmode=verify-full&{}", root(&ours))).await, Ok(true));
    for (url, options) in [
        (&url, format!("sslmode=verify-full&{}", root(&ours))),
        (&by_name, format!("sslmode=verify-full&{}", root(&theirs))),
        (&url, format!("sslmode=verify-ca&{}", root(&theirs))),
        (&by_name, "sslmode=verify-full".to_owned()),
    ] {
        let error = encrypted(url, &options).await.unwrap_err();
        assert!(error.contains("certificate"), "{options}: {error}");
    }

    // The proof of the password is tied to the certificate.
    postgres.ask("postgres", "CREATE ROLE guarded LOGIN SUPERUSER PASSWORD 'right'");
    let guarded = url.replace("nuncio@", "guarded:right@");
    assert_eq!(encrypted(&guarded, "sslmode=require&channel_binding=require").await, Ok(true));
}
