//! The file of the page about a measurement.

use super::far::{FarEnd, Heading};
use skyhaul_exit::Failure;
use skyhaul_probe::report::Subject;
use std::io;
use std::path::{Path, PathBuf};

/// A page that is wanted.
#[derive(clap::Args)]
pub struct PageFlag {
    /// Writes a page with drawings, for a browser or a printer: to this file if its name ends in
    /// .html, otherwise into this folder, named after the measurement.
    #[arg(long, value_name = "DIR|FILE")]
    report: Option<PathBuf>,
}

/// Where a page goes.
pub struct ProbePageFile(PathBuf);

impl PageFlag {
    /// Makes the folder, before anything is measured; `None` where no page is wanted.
    ///
    /// # Errors
    /// A folder that cannot be made.
    pub fn open(&self, kind: &str) -> Result<Option<ProbePageFile>, Failure> {
        let Some(place) = &self.report else { return Ok(None) };
        let is_file = place.extension().is_some_and(|extension| extension == "html");
        let file = if is_file { place.clone() } else { place.join(format!("{kind}.html")) };
        let folder = file.parent().unwrap_or(Path::new("")).to_path_buf();
        // A name without a folder is in this folder, which exists.
        if !folder.as_os_str().is_empty() {
            std::fs::create_dir_all(&folder).map_err(|source| unwritable(place, source))?;
        }
        Ok(Some(ProbePageFile(file)))
    }
}

impl ProbePageFile {
    /// Writes the page; whoever reads it meanwhile has the old one or the new one.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, page: &str) -> Result<(), Failure> {
        let mut name = self.0.clone().into_os_string();
        name.push(".new");
        let written = std::fs::write(&name, page).and_then(|()| std::fs::rename(&name, &self.0));
        written.map_err(|source| {
            // An incomplete page is useless.
            let _ = std::fs::remove_file(&name);
            unwritable(&self.0, source)
        })
    }
}

/// What the page is about.
pub fn subject(far: &FarEnd, heading: &Heading) -> Subject {
    Subject { far: far.place(), began: heading.began(), version: env!("CARGO_PKG_VERSION") }
}

fn unwritable(place: &Path, source: io::Error) -> Failure {
    let help =
        "give --report a folder that this user can write to, or a file name that ends in .html";
    Failure::io("the report cannot be written", &place.display().to_string(), help, source)
}
