//! The file beside the database.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::super::short::Short;
use super::block::{self, LARGEST, SLOT, SLOTS};

const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

const LENGTH: u64 = SLOTS * SLOT as u64;

/// Where it is.
pub(super) fn path(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push("-ahead");
    name.into()
}

/// Makes every byte of it be there before it is used: a write that has to make room is not one write.
pub(super) fn prepare(path: &Path) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600).custom_flags(NO_LINK);
    let mut file = options.open(path)?;
    if file.metadata()?.len() != LENGTH {
        file.set_len(0)?;
        let zeros = vec![0; LARGEST * SLOT];
        for _ in 0..LENGTH / zeros.len() as u64 {
            file.write_all(&zeros)?;
        }
        file.sync_all()?;
        // Its name as well.
        path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())?;
    }
    Ok(())
}

/// What the database has not got.
#[derive(Default)]
pub(super) struct Recovered {
    pub(super) tasks: Vec<Short>,
    /// The slot behind the last of it.
    pub(super) next: u64,
    /// Whether there is more that does not follow it: something in between is gone.
    pub(super) is_damaged: bool,
}

/// Reads what stands from a slot on. A write that was cut off is not there, and nobody was told that it is; but nothing
/// can follow it, because one is through before the next begins.
pub(super) fn recover(path: &Path, database: u64, from: u64) -> io::Result<Recovered> {
    let mut found = Recovered { next: from, ..Recovered::default() };
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(found),
        file => file?,
    };
    let mut bytes = vec![0; 2 * LARGEST * SLOT];
    loop {
        // The next block stands right behind the last one, or at the beginning of the file.
        let next = found.next;
        let places = [next, block::begin(next, LARGEST)];
        let mut follows = None;
        for slot in places {
            let window = read(&file, slot, &mut bytes)?;
            let mut later = (slot..).zip(window.chunks(SLOT).enumerate()).take(LARGEST);
            let block = later.find_map(|(slot, (n, _))| block::find(&window[n * SLOT..], database, slot));
            follows = follows.or(block);
        }
        match follows {
            Some(block) if block.after == next => {
                found.tasks.extend(block.tasks);
                found.next = block.next;
            }
            other => {
                found.is_damaged = other.is_some();
                return Ok(found);
            }
        }
    }
}

/// What stands at a slot and behind it.
fn read<'a>(file: &File, slot: u64, into: &'a mut [u8]) -> io::Result<&'a [u8]> {
    let mut filled = 0;
    while filled < into.len() {
        match file.read_at(&mut into[filled..], block::place(slot) + filled as u64) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&into[..filled])
}
