//! An nginx of our own, with the example's configuration.

use std::net::{TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nuncio_tests::PATIENCE;

use crate::{said, text};

/// An nginx in front of three ports.
pub(crate) struct Nginx {
    child: Child,
    pub(crate) port: u16,
    /// In PEM.
    pub(crate) certificate: String,
    folder: tempfile::TempDir,
}

impl Nginx {
    pub(crate) fn start(replicas: [u16; 3]) -> Self {
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let made =
            rcgen::generate_simple_self_signed(["agent.example.com".to_owned(), "localhost".to_owned()]).unwrap();
        std::fs::write(folder.path().join("tls.crt"), made.cert.pem()).unwrap();
        std::fs::write(folder.path().join("tls.key"), made.signing_key.serialize_pem()).unwrap();
        let path = folder.path().display();
        let mut config = text("deploy/nginx/nginx.conf");
        let mut swap = |from: &str, to: &str| {
            assert!(config.contains(from), "{from} is not in the example");
            config = config.replace(from, to);
        };
        for (n, port) in (1..).zip(replicas) {
            swap(&format!("nuncio-{n}:41242"), &format!("127.0.0.1:{port}"));
        }
        swap("listen 443 ssl", &format!("listen 127.0.0.1:{} ssl", free.port()));
        swap("/etc/nginx/tls", folder.path().to_str().unwrap());
        // Its own files are in our folder.
        let paths = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .map(|name| format!("{name}_temp_path {path}/{name};\n"));
        swap("http {\n", &format!("error_log {path}/error.log;\nhttp {{\n{}", paths.concat()));
        std::fs::write(folder.path().join("nginx.conf"), config).unwrap();
        let command = || {
            let mut command = Command::new("nginx");
            command.arg("-p").arg(folder.path()).arg("-c").arg(folder.path().join("nginx.conf"));
            command.args(["-e", "error.log", "-g", &format!("pid {path}/nginx.pid; daemon off;")]);
            command
        };
        let there = Command::new("nginx").arg("-v").output();
        there.expect("nginx is missing: apt-get install nginx");
        let (_, about) = said(command().arg("-t"));
        assert!(!about.contains("warn"), "{about}");
        let child = command().stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let mut nginx = Self { child, port: free.port(), certificate: made.cert.pem(), folder };
        let until = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", nginx.port)).is_err() {
            assert!(nginx.child.try_wait().unwrap().is_none() && Instant::now() < until, "{}", nginx.log());
            std::thread::sleep(Duration::from_millis(20));
        }
        nginx
    }

    fn log(&self) -> String {
        std::fs::read_to_string(self.folder.path().join("error.log")).unwrap_or_default()
    }

    /// `https://agent.example.com:PORT`
    pub(crate) fn url(&self) -> String {
        format!("https://agent.example.com:{}", self.port)
    }

    /// A client that finds and trusts it.
    pub(crate) fn client(&self) -> reqwest::ClientBuilder {
        let certificate = reqwest::Certificate::from_pem(self.certificate.as_bytes()).unwrap();
        let address = std::net::SocketAddr::from(([127, 0, 0, 1], self.port));
        reqwest::Client::builder().no_proxy().tls_certs_only([certificate]).resolve("agent.example.com", address)
    }
}

impl Drop for Nginx {
    fn drop(&mut self) {
        // Asked, it ends its workers too.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}
