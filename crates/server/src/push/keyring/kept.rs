//! Keys and the place where they are kept: a file that only its owner can read, or the environment.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime};

use parking_lot::RwLock;

use super::KeyError;

/// How often the file is looked at: another process may have changed the keys.
const LOOK: Duration = Duration::from_secs(5);
/// No set of keys is larger.
const LARGEST: u64 = 1 << 20;

/// A set of keys that can be written down.
pub(in crate::push) trait KeySet: Sized {
    /// Reads it, or says what is wrong without a word of it.
    fn read(json: &[u8]) -> Result<Self, &'static str>;
    fn write(&self) -> Vec<u8>;
    /// A set with one new key.
    fn first() -> Result<Self, KeyError>;
}

/// The keys as they are now.
pub(in crate::push) struct Kept<T> {
    place: Place,
    state: RwLock<State<T>>,
}

enum Place {
    File(PathBuf),
    Environment(&'static str),
}

struct State<T> {
    keys: Arc<T>,
    stamp: Option<Stamp>,
    looked: Instant,
}

/// What tells one version of a file from another.
#[derive(Clone, PartialEq, Eq)]
struct Stamp(Option<SystemTime>, u64, u64);

impl<T: KeySet> Kept<T> {
    /// Keys from the first of the variables that is set, else from the file, which is made if it is missing.
    pub(in crate::push) fn find(
        path: &Path,
        variables: &[&'static str],
        environment: impl Fn(&str) -> Option<String>,
    ) -> Result<Self, KeyError> {
        let given = variables.iter().find_map(|&name| Some((name, environment(name).filter(|json| !json.is_empty())?)));
        if let Some((name, json)) = given {
            let malformed = |what| KeyError::Malformed { place: format!("The variable {name}"), what };
            let keys = T::read(json.as_bytes()).map_err(malformed)?;
            return Ok(Self::new(Place::Environment(name), keys, None));
        }
        let (keys, stamp) = match load(path)? {
            Some(found) => found,
            None => update(path, |found| found.map_or_else(T::first, Ok))?,
        };
        Ok(Self::new(Place::File(path.to_owned()), keys, Some(stamp)))
    }

    fn new(place: Place, keys: T, stamp: Option<Stamp>) -> Self {
        Self { place, state: RwLock::new(State { keys: Arc::new(keys), stamp, looked: Instant::now() }) }
    }

    /// The keys, which another process may have changed a moment ago.
    pub(in crate::push) fn now(&self) -> Arc<T> {
        {
            let state = self.state.read();
            if state.looked.elapsed() < LOOK {
                return state.keys.clone();
            }
        }
        if let Err(error) = self.refresh() {
            // What was read before is as good as it was.
            tracing::warn!(%error, "keys cannot be read again");
        }
        self.state.read().keys.clone()
    }

    /// Reads the file again if it has changed.
    pub(in crate::push) fn refresh(&self) -> Result<Arc<T>, KeyError> {
        let (known, keys) = {
            let mut state = self.state.write();
            state.looked = Instant::now();
            (state.stamp.clone(), state.keys.clone())
        };
        let Place::File(path) = &self.place else { return Ok(keys) };
        let found = fs::metadata(path).map_err(|error| io_error(path, &error))?;
        if Some(stamp(&found)) == known {
            return Ok(keys);
        }
        let Some((keys, stamp)) = load(path)? else { return Ok(keys) };
        Ok(self.put(keys, stamp))
    }

    /// Changes the keys and the file. Whoever does the same at the same time waits, and sees the change.
    pub(in crate::push) fn change(&self, change: impl FnOnce(T) -> Result<T, KeyError>) -> Result<Arc<T>, KeyError> {
        let path = match &self.place {
            Place::File(path) => path,
            Place::Environment(name) => return Err(KeyError::Managed { variable: name }),
        };
        let (keys, stamp) = update(path, |found| change(found.map_or_else(T::first, Ok)?))?;
        Ok(self.put(keys, stamp))
    }

    fn put(&self, keys: T, stamp: Stamp) -> Arc<T> {
        let keys = Arc::new(keys);
        *self.state.write() = State { keys: keys.clone(), stamp: Some(stamp), looked: Instant::now() };
        keys
    }
}

/// What the file holds; nothing if there is no file.
fn load<T: KeySet>(path: &Path) -> Result<Option<(T, Stamp)>, KeyError> {
    let failed = |error: io::Error| io_error(path, &error);
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(failed(error)),
    };
    let about = file.metadata().map_err(failed)?;
    check_mode(path, &about)?;
    let mut json = Vec::new();
    file.take(LARGEST).read_to_end(&mut json).map_err(failed)?;
    let malformed = |what| KeyError::Malformed { place: format!("The file {}", path.display()), what };
    Ok(Some((T::read(&json).map_err(malformed)?, stamp(&about))))
}

/// Replaces the file as a whole, under a lock beside it.
fn update<T: KeySet>(
    path: &Path,
    change: impl FnOnce(Option<T>) -> Result<T, KeyError>,
) -> Result<(T, Stamp), KeyError> {
    let failed = |error: io::Error| io_error(path, &error);
    if let Some(folder) = path.parent() {
        create_folder(folder).map_err(failed)?;
    }
    let lock = private(OpenOptions::new().create(true).truncate(false)).open(beside(path, ".lock")).map_err(failed)?;
    lock.lock().map_err(failed)?;
    let found = load(path)?.map(|(keys, _)| keys);
    let keys = change(found)?;
    let new = beside(path, ".new");
    // Left behind by a crash; under the lock it is nobody's.
    if let Err(error) = fs::remove_file(&new)
        && error.kind() != io::ErrorKind::NotFound
    {
        return Err(failed(error));
    }
    let mut file = private(OpenOptions::new().create_new(true)).open(&new).map_err(failed)?;
    file.write_all(&keys.write()).and_then(|()| file.sync_all()).map_err(failed)?;
    let stamp = stamp(&file.metadata().map_err(failed)?);
    fs::rename(&new, path).map_err(failed)?;
    // The name must survive a crash as well: what is sealed with a lost key is lost.
    if let Some(folder) = path.parent() {
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(failed)?;
    }
    Ok((keys, stamp))
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn private(options: &mut OpenOptions) -> &mut OpenOptions {
    options.write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(unix)]
fn check_mode(path: &Path, about: &Metadata) -> Result<(), KeyError> {
    use std::os::unix::fs::MetadataExt;
    if about.mode() & 0o077 == 0 { Ok(()) } else { Err(KeyError::Exposed { path: path.to_owned() }) }
}

#[cfg(not(unix))]
fn check_mode(_: &Path, _: &Metadata) -> Result<(), KeyError> {
    Ok(())
}

fn stamp(about: &Metadata) -> Stamp {
    #[cfg(unix)]
    let number = std::os::unix::fs::MetadataExt::ino(about);
    #[cfg(not(unix))]
    let number = 0;
    Stamp(about.modified().ok(), about.len(), number)
}

fn io_error(path: &Path, error: &io::Error) -> KeyError {
    KeyError::Io { path: path.to_owned(), cause: error.to_string() }
}
