//! Writes to a file past the page cache, one at a time, without a thread that waits for them.
//!
//! ```text
//!   begin(pages) ──▶ io_submit ──▶ disk        finished() ──▶ pages come back
//!                         └──▶ News::come()
//! ```
//!
//! A thread that writes and syncs costs two switches of threads. The kernel's own asynchronous writes cost none, but take an
//! address, and Rust cannot see that what is there stays until the kernel is done. So this crate is the one that may have
//! unsafe code: four system calls and the promise to Tokio that a descriptor stays open. All other crates forbid it.
//!
//! Why not io_uring: containers mostly forbid it, and it wakes the thread that began a write as by a signal, which
//! costs a second look at what has happened.
//!
//! Elsewhere than on Linux, and where the kernel has no room for one more of these, [`Direct::open`] says so.

#[cfg(target_os = "linux")]
mod aio;
#[cfg(not(target_os = "linux"))]
#[path = "none.rs"]
mod aio;
mod pages;

pub use aio::{Direct, News};
pub use pages::{PAGE, Pages};
