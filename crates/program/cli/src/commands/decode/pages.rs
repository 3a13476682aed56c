//! The folder of the pages about contacts.

use super::Decode;
use skyhaul_exit::{Exit, Failure};
use std::collections::BTreeSet;
use std::io;
use std::path::{Path, PathBuf};

/// A folder for pages.
#[derive(Debug)]
pub struct Pages {
    folder: PathBuf,
    /// One page only needs no name of its own.
    is_single: bool,
}

impl Pages {
    /// Makes the folder; `None` where no pages are wanted.
    ///
    /// # Errors
    /// A folder that cannot be made, or two pages that would be one file.
    pub fn open(command: &Decode) -> Result<Option<Self>, Failure> {
        let Some(folder) = &command.report else { return Ok(None) };
        let mut names = BTreeSet::new();
        if let Some(twice) = command.files.iter().find(|file| !names.insert(file.file_name()))
            && !command.select
        {
            let help = "decode them one by one into different folders";
            let what = "two inputs have the same name, and so would their pages";
            return Err(Failure::new(Exit::Usage, what, help).at(&twice.display().to_string()));
        }
        std::fs::create_dir_all(folder).map_err(|source| unwritable(folder, source))?;
        Ok(Some(Self {
            folder: folder.clone(),
            is_single: command.select || command.files.len() == 1,
        }))
    }

    /// Writes the page about downlink `number` of `file`, from 1.
    ///
    /// # Errors
    /// A file that cannot be written.
    pub fn write(&self, file: &Path, number: usize, page: &str) -> Result<(), Failure> {
        let of = file.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned());
        let report =
            if number == 1 { "report.html".to_owned() } else { format!("report-{number}.html") };
        let name = if self.is_single { report } else { format!("{of}.{report}") };
        let place = self.folder.join(name);
        std::fs::write(&place, page).map_err(|source| unwritable(&place, source))
    }
}

fn unwritable(place: &Path, source: io::Error) -> Failure {
    let help = "give --report a folder that this user can write to";
    Failure::io("the report cannot be written", &place.display().to_string(), help, source)
}
