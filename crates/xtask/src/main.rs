//! What a maintainer runs: `cargo xtask instructions`, `cargo xtask proto`, `cargo xtask replicas`,
//! `cargo xtask streams`, `cargo xtask transports`.

mod instructions;
mod proto;
mod replicas;
mod streams;
mod transports;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask instructions   how many instructions a call costs, counted by valgrind, in memory and on SQLite
cargo xtask proto          Rust and descriptors from the schemas in crates/protocol/proto
cargo xtask replicas       what one, two and three servers do on one PostgreSQL, and what reading costs beside many tasks
cargo xtask streams        what open streams and running turns cost in memory
cargo xtask transports     what a call costs the server over each transport
";

fn main() -> ExitCode {
    let result = match std::env::args().nth(1).as_deref() {
        Some("instructions") => instructions::run(),
        Some("proto") => proto::write(),
        Some("replicas") => replicas::run(),
        Some("streams") => streams::run(),
        Some("transports") => transports::run(),
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
