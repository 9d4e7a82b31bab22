//! What a maintainer runs: `cargo xtask proto`, and what `bench/` uses: `seed` and `soak`.

mod proto;
mod seed;
mod soak;

use std::process::ExitCode;

const HELP: &str = "\
cargo xtask proto            Rust and descriptors from the schemas in crates/protocol/proto
cargo xtask seed DIR COUNT   a database with so many finished tasks, for bench/compare
cargo xtask soak             a long run of mixed load; start it with bench/soak
";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let result = match words.next().as_deref() {
        Some("proto") => proto::write(),
        Some("seed") => seed::run(words),
        Some("soak") => soak::run(words),
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
