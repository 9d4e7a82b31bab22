//! Where the kernel has none of this.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::Pages;

/// Cannot be had here.
#[derive(Debug)]
pub struct Direct(std::convert::Infallible);

#[allow(missing_docs, clippy::missing_errors_doc)]
impl Direct {
    pub fn open(_: &Path) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn new(_: File) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub fn news(&self) -> io::Result<News> {
        match self.0 {}
    }

    pub fn begin(&mut self, _: Pages, _: usize, _: u64) -> io::Result<()> {
        match self.0 {}
    }

    pub fn finished(&mut self) -> Option<(Pages, io::Result<()>)> {
        match self.0 {}
    }

    pub fn wait(&mut self) -> Option<(Pages, io::Result<()>)> {
        match self.0 {}
    }
}

/// Never comes.
#[derive(Debug)]
pub struct News(std::convert::Infallible);

#[allow(missing_docs, clippy::missing_errors_doc)]
impl News {
    pub async fn come(&self) -> io::Result<()> {
        match self.0 {}
    }
}
