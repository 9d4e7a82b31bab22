//! What a maintainer runs: `cargo xtask proto`, `replicas`, `streams`, and what `bench/` uses: `seed` and `soak`.

mod proto;
mod replicas;
mod seed;
mod soak;
mod streams;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask proto            Rust and descriptors from the schemas in crates/protocol/proto
cargo xtask replicas         what one, two and three servers do on one PostgreSQL, and what reading costs beside many tasks
cargo xtask seed DIR COUNT   a database with so many finished tasks, for bench/compare
cargo xtask soak             a long run of mixed load; start it with bench/soak
cargo xtask streams          what open streams and running turns cost in memory
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let result = match words.next().as_deref() {
        Some("proto") => proto::write(),
        Some("replicas") => replicas::run(),
        Some("seed") => seed::run(words),
        Some("soak") => soak::run(words),
        Some("streams") => streams::run(),
        _ => {
            eprint!("{HELP}");
            return ExitCode::from(2);
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
