//! A connection that breaks again and again changes nothing about what is printed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use nuncio_tests::Random;
use nuncio_tests::raw::Wire;
use parking_lot::Mutex;

use crate::run::Shell;

/// Passes bytes on and breaks connections in the middle of streams.
struct Cutter {
    cuts: Arc<AtomicU32>,
}

impl Cutter {
    fn start(listener: TcpListener, target: String) -> Self {
        let cuts = Arc::new(AtomicU32::new(0));
        let (count, random) = (cuts.clone(), Arc::new(Mutex::new(Random::new())));
        std::thread::spawn(move || {
            for inward in listener.incoming().map_while(Result::ok) {
                let Ok(outward) = TcpStream::connect(&target) else { return };
                let (count, random) = (count.clone(), random.clone());
                let (from_client, to_server) = (inward.try_clone().unwrap(), outward.try_clone().unwrap());
                std::thread::spawn(move || pass(from_client, to_server, |_| usize::MAX));
                std::thread::spawn(move || {
                    let is_stream = |bytes: &[u8]| bytes.windows(17).any(|part| part == b"text/event-stream");
                    let mut room = usize::MAX;
                    pass(outward, inward, |bytes| {
                        if is_stream(bytes) {
                            // Behind the head and the first event, whose task id a client needs to come back.
                            let more = random.lock().below(1500);
                            room = 1200 + usize::try_from(more).unwrap();
                        }
                        let passed = room.min(bytes.len());
                        room = room.saturating_sub(bytes.len());
                        if passed < bytes.len() {
                            count.fetch_add(1, Ordering::Relaxed);
                        }
                        passed
                    });
                });
            }
        });
        Self { cuts }
    }
}

/// Passes on as much of each piece as `room` allows, and breaks the connection where that is not all.
fn pass(mut from: TcpStream, mut to: TcpStream, mut room: impl FnMut(&[u8]) -> usize) {
    let mut bytes = [0; 4096];
    while let Ok(count) = from.read(&mut bytes) {
        let passed = room(&bytes[..count]).min(count);
        if count == 0 || to.write_all(&bytes[..passed]).is_err() || passed < count {
            break;
        }
    }
    let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
}

#[tokio::test]
async fn a_stream_that_is_cut_again_and_again_prints_the_same_text() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let public = format!("http://{}", listener.local_addr().unwrap());
    let server = Wire::start(&format!("public-url: {public}\n"));
    let cutter = Cutter::start(listener, server.address.to_string());
    let shell = Shell::new();
    let whole: String = (0..200).map(|n| format!("chunk {n}")).collect();
    for version in ["1.0", "0.3"] {
        for transport in ["jsonrpc", "rest"] {
            let how = ["--a2a-version", version, "--transport", transport];
            let args = [&["call", "--url", &public, "-p", "stream 200 4"], &how[..]].concat();
            assert_eq!(shell.client(&args).ok(), format!("{whole}\n"), "{version} {transport}");
        }
    }
    let cuts = cutter.cuts.load(Ordering::Relaxed);
    assert!(cuts >= 100, "only {cuts} cuts");
}
