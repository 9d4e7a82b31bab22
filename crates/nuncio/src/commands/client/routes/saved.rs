//! Routes that were saved for later calls: `routes.json` in a folder.

use std::fs;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};

use nuncio_protocol::{Value as Json, codec, json};

use super::{Route, from_json};
use crate::failure::Failure;

const LARGEST: u64 = 1024 * 1024;

/// Where routes are saved.
pub(crate) fn file(folder: &Path) -> PathBuf {
    folder.join("routes.json")
}

/// The routes that were saved; none if nobody saved any.
pub(crate) fn load(folder: &Path) -> Result<Vec<Route>, Failure> {
    let path = file(folder);
    let wrong = |what: &str| Failure::usage(vec![format!("cannot read the routes in `{}`: {what}", path.display())]);
    let bytes = match fs::metadata(&path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => return Ok(Vec::new()),
        Err(error) => return Err(wrong(&error.to_string())),
        Ok(about) if about.len() > LARGEST => return Err(wrong("the file is larger than 1 MiB")),
        Ok(_) => fs::read(&path).map_err(|error| wrong(&error.to_string()))?,
    };
    let value: Json = codec::decode(&bytes).map_err(|error| wrong(&error.to_string()))?;
    let Some(Json::Array(items)) = value.get("routes") else { return Err(wrong("there is no list `routes` in it")) };
    items.iter().map(|item| from_json(item).map_err(|message| wrong(&message))).collect()
}

/// Saves routes beside those that are saved already; one of the same name is replaced.
pub(crate) fn save(folder: &Path, routes: &[Route]) -> Result<PathBuf, Failure> {
    let mut all: Vec<Route> = routes.to_vec();
    let kept = load(folder)?.into_iter().filter(|old| !routes.iter().any(|route| route.name == old.name));
    all.splice(0..0, kept);
    let path = file(folder);
    let wrong = |error: std::io::Error| Failure::failed(format!("cannot save routes in `{}`: {error}", path.display()));
    fs::create_dir_all(folder).map_err(wrong)?;
    // Written aside and moved: whoever reads it at this moment sees the old file or the new one.
    let aside = folder.join(format!(".routes.json.{}", std::process::id()));
    let text = format!("{}\n", codec::encode_pretty(&json!({ "routes": all })));
    let written = fs::File::create(&aside).and_then(|mut file| file.write_all(text.as_bytes()).and(file.sync_all()));
    written.and_then(|()| fs::rename(&aside, &path)).map_err(wrong)?;
    Ok(path)
}
