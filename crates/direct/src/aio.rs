//! One write at a time by the kernel's asynchronous input and output: what `io_submit(2)` says.

use std::fs::{File, OpenOptions};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::ptr;

use libc::{c_long, c_ulong};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::OFlags;
use tokio::io::unix::AsyncFd;

use crate::Pages;

/// A file that is written past the page cache. A write that is through is durable, if it changed nothing but bytes that
/// were there before.
#[derive(Debug)]
pub struct Direct {
    context: Context,
    file: File,
    /// Where the kernel says that a write is through.
    told: OwnedFd,
    /// What the kernel may be reading, and how much of it.
    in_flight: Option<(Pages, usize)>,
}

impl Direct {
    /// Fails where there is no such file, or the kernel has none of this, or no more of it. Not every file system says here
    /// that it does not take such writes: the first write does.
    pub fn open(path: &Path) -> io::Result<Self> {
        let flags = (OFlags::DIRECT | OFlags::DSYNC | OFlags::NOFOLLOW).bits().cast_signed();
        Self::new(OpenOptions::new().read(true).write(true).custom_flags(flags).open(path)?)
    }

    /// Writes to a file that was opened otherwise. Whether a write that is through is durable is then the file's to say.
    pub fn new(file: File) -> io::Result<Self> {
        let told = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { context: Context::new()?, file, told, in_flight: None })
    }

    /// Tells when a write is through. Inside a Tokio runtime only.
    #[allow(unsafe_code)]
    pub fn news(&self) -> io::Result<News> {
        let told = self.told.try_clone()?;
        // SAFETY: nobody else has this descriptor, so that it is open until the runtime has forgotten it.
        Ok(News(unsafe { AsyncFd::register(told) }?))
    }

    /// Begins to write the first `length` bytes of `pages` at this place of the file. Only one write can be on its way;
    /// [`Direct::finished`] or [`Direct::wait`] gives the pages back.
    pub fn begin(&mut self, pages: Pages, length: usize, at: u64) -> io::Result<()> {
        if self.in_flight.is_some() {
            return Err(io::Error::other("a write is on its way"));
        }
        let bytes = pages.get(..length).ok_or(io::ErrorKind::InvalidInput)?;
        let write = Write::new(&self.file, bytes, at, &self.told)?;
        // `self` owns the file and, from here on, the pages, whose memory never moves. It gives back neither before the
        // kernel has said that it is done, also when it is dropped.
        self.in_flight = Some((pages, length));
        let begun = self.context.submit(write);
        if begun.is_err() {
            self.in_flight = None;
        }
        begun
    }

    /// What became of the write, if it is through.
    pub fn finished(&mut self) -> Option<(Pages, io::Result<()>)> {
        self.look(0)
    }

    /// Waits for the write that is on its way. None if there is none.
    pub fn wait(&mut self) -> Option<(Pages, io::Result<()>)> {
        self.look(1)
    }

    fn look(&mut self, least: c_long) -> Option<(Pages, io::Result<()>)> {
        self.in_flight.as_ref()?;
        let result = self.context.result(least)?;
        let (pages, length) = self.in_flight.take()?;
        let outcome = match usize::try_from(result) {
            Ok(written) if written == length => Ok(()),
            Ok(_) => Err(io::ErrorKind::WriteZero.into()),
            Err(_) => Err(io::Error::from_raw_os_error(i32::try_from(-result).unwrap_or(i32::MAX))),
        };
        Some((pages, outcome))
    }
}

impl Drop for Direct {
    fn drop(&mut self) {
        // Where even waiting fails, the kernel keeps what it may be reading.
        if self.wait().is_none() {
            mem::forget(self.in_flight.take());
        }
    }
}

/// Comes when a write is through.
#[derive(Debug)]
pub struct News(AsyncFd<OwnedFd>);

impl News {
    /// Waits until it may be that a write is through. What came before this was last asked is not told again: first ask,
    /// then look.
    pub async fn come(&self) -> io::Result<()> {
        self.0.readable().await?.clear_ready();
        Ok(())
    }
}

/// What the kernel knows a queue of writes by.
#[derive(Debug)]
struct Context(c_ulong);

#[allow(unsafe_code)]
impl Context {
    /// One with room for one write.
    fn new() -> io::Result<Self> {
        let mut context: c_ulong = 0;
        // SAFETY: the kernel writes one number, which is there.
        check(unsafe { libc::syscall(libc::SYS_io_setup, 1 as c_long, &raw mut context) })?;
        Ok(Self(context))
    }

    /// Begins a write. What it names has to stay as it is until [`Context::result`] has told of it.
    fn submit(&self, mut write: Write) -> io::Result<()> {
        let mut list = [&raw mut write];
        // SAFETY: the list has one entry, which the kernel copies; nobody else sees what it writes there.
        again(|| unsafe { libc::syscall(libc::SYS_io_submit, self.0, 1 as c_long, list.as_mut_ptr()) })?;
        Ok(())
    }

    /// What became of a write, if it is through, or of the next one that is.
    fn result(&self, least: c_long) -> Option<i64> {
        let mut event = Event::default();
        let no_limit = ptr::null_mut::<libc::timespec>();
        // SAFETY: the kernel writes one event at most, which is there, and no limit is allowed.
        let look =
            || unsafe { libc::syscall(libc::SYS_io_getevents, self.0, least, 1 as c_long, &raw mut event, no_limit) };
        (again(look).ok()? == 1).then_some(event.result)
    }
}

impl Drop for Context {
    #[allow(unsafe_code)]
    fn drop(&mut self) {
        // SAFETY: it is a number. The kernel waits for what it may be reading.
        unsafe { libc::syscall(libc::SYS_io_destroy, self.0) };
    }
}

/// `struct iocb` of the kernel.
#[repr(C)]
struct Write {
    data: u64,
    #[cfg(target_endian = "little")]
    key: u32,
    flags: i32,
    #[cfg(target_endian = "big")]
    key: u32,
    operation: u16,
    priority: i16,
    file: RawFd,
    address: u64,
    length: u64,
    at: i64,
    nothing: u64,
    tell: u32,
    told: RawFd,
}

impl Write {
    fn new(file: &File, bytes: &[u8], at: u64, told: &OwnedFd) -> io::Result<Self> {
        const WRITE: u16 = 1;
        const TELL: u32 = 1;
        let at = i64::try_from(at).map_err(|_| io::ErrorKind::InvalidInput)?;
        Ok(Self {
            data: 0,
            key: 0,
            flags: 0,
            operation: WRITE,
            priority: 0,
            file: file.as_raw_fd(),
            address: bytes.as_ptr().expose_provenance() as u64,
            length: bytes.len() as u64,
            at,
            nothing: 0,
            tell: TELL,
            told: told.as_raw_fd(),
        })
    }
}

/// `struct io_event` of the kernel.
#[repr(C)]
#[derive(Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    more: i64,
}

fn check(result: c_long) -> io::Result<c_long> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Until no signal comes in between.
fn again(mut call: impl FnMut() -> c_long) -> io::Result<c_long> {
    loop {
        match check(call()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            done => return done,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;
    use std::{fs, thread};

    use super::*;
    use crate::PAGE;

    fn file(pages: usize) -> (tempfile::TempDir, Direct) {
        // Not where temporary files are: those may be in memory, which knows nothing of such writes.
        let folder = tempfile::tempdir_in(env!("CARGO_MANIFEST_DIR")).unwrap();
        let path = folder.path().join("file");
        fs::write(&path, vec![0; pages * PAGE]).unwrap();
        let direct = Direct::open(&path).unwrap();
        (folder, direct)
    }

    fn pages(count: usize, byte: u8) -> Pages {
        let mut pages = Pages::new(count);
        pages.fill(byte);
        pages
    }

    #[tokio::test]
    async fn what_is_written_is_in_the_file() {
        let (folder, mut direct) = file(8);
        let news = direct.news().unwrap();
        for (byte, at) in [(1, 0), (2, 3), (3, 6)] {
            direct.begin(pages(4, byte), 2 * PAGE, (at * PAGE) as u64).unwrap();
            let (back, outcome) = loop {
                news.come().await.unwrap();
                if let Some(through) = direct.finished() {
                    break through;
                }
            };
            outcome.unwrap();
            assert!(back.iter().all(|found| *found == byte));
            assert!(direct.finished().is_none() && direct.wait().is_none());
        }
        let found = fs::read(folder.path().join("file")).unwrap();
        let bytes: Vec<u8> = found.chunks(PAGE).map(|page| page[0]).collect();
        assert_eq!(bytes, [1, 1, 0, 2, 2, 0, 3, 3]);
    }

    #[test]
    fn one_write_is_on_its_way_at_a_time() {
        let (_folder, mut direct) = file(2);
        direct.begin(pages(1, 1), PAGE, 0).unwrap();
        direct.begin(pages(1, 2), PAGE, 0).unwrap_err();
        direct.wait().unwrap().1.unwrap();
        direct.begin(pages(1, 2), PAGE, 0).unwrap();
    }

    #[test]
    fn who_goes_away_waits_for_what_he_has_begun() {
        let (folder, mut direct) = file(64);
        direct.begin(pages(64, 9), 64 * PAGE, 0).unwrap();
        drop(direct);
        assert!(fs::read(folder.path().join("file")).unwrap().iter().all(|byte| *byte == 9));
    }

    #[test]
    fn what_another_thread_has_begun_can_be_waited_for() {
        let (_folder, mut direct) = file(64);
        let begun = thread::spawn(move || {
            direct.begin(pages(64, 9), 64 * PAGE, 0).unwrap();
            thread::sleep(Duration::from_millis(20));
            direct
        });
        begun.join().unwrap().wait().unwrap().1.unwrap();
    }

    #[test]
    fn what_the_kernel_reads_has_its_shape() {
        assert_eq!((size_of::<Write>(), size_of::<Event>()), (64, 32));
    }

    #[test]
    fn a_write_that_fails_says_so() {
        let (_folder, mut direct) = file(2);
        // Not a whole sector, which is found out when it is begun, or on the way.
        let outcome = direct.begin(pages(1, 1), 7, 0).and_then(|()| direct.wait().unwrap().1);
        assert_eq!(outcome.unwrap_err().kind(), io::ErrorKind::InvalidInput);
        direct.begin(pages(1, 1), PAGE, 0).unwrap();
        direct.wait().unwrap().1.unwrap();
    }

    #[test]
    fn a_write_that_cannot_begin_says_so() {
        let (folder, _) = file(1);
        let mut direct = Direct::new(File::open(folder.path().join("file")).unwrap()).unwrap();
        for _ in 0..2 {
            let error = direct.begin(pages(1, 1), PAGE, 0).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(rustix::io::Errno::BADF.raw_os_error()));
            assert!(direct.wait().is_none());
        }
    }
}
