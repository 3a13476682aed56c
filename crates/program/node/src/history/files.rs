//! The files of the history: made as large as they ever get, read and written in place.

use rustix::fs::FallocateFlags;
use rustix::io::Errno;
use skyhaul_history::{
    FILE_HEAD, FileHead, HistoryBook, HistoryFile, HistoryFormError, HistoryWrite, ROW_BYTES,
    ROW_HEAD, RowHead, SeriesTable, TABLE_BYTES_MAX,
};
use skyhaul_units::Utc;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// The files, open.
#[derive(Debug)]
pub struct HistoryFiles {
    folder: PathBuf,
    minutes: File,
    hours: File,
}

/// The table of series.
const TABLE: &str = "series.json";

/// Why a file is not used.
enum Unusable {
    /// It is damaged, or is none of ours: another takes its place.
    Damaged(String),
    /// It cannot be used now.
    Refused(String),
}

impl Unusable {
    fn io(path: &Path, error: &io::Error) -> Self {
        Self::Refused(format!("{error} at {}", path.display()))
    }
}

/// A file of rows that was opened.
struct OpenedRows {
    file: File,
    head: FileHead,
    /// By place.
    rows: Vec<Option<RowHead>>,
}

impl HistoryFiles {
    /// Opens the files in a folder, and takes up what they have. What is damaged is set aside, and
    /// begins anew.
    ///
    /// # Errors
    /// What is wrong, where.
    pub fn open(folder: &Path, book: &mut HistoryBook, now: Utc) -> Result<Self, String> {
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
        made.map_err(|error| format!("{error} at {}", folder.display()))?;
        let path = folder.join(TABLE);
        let table = match read_table(&path) {
            Ok(table) => table,
            Err(Unusable::Refused(reason)) => return Err(reason),
            Err(Unusable::Damaged(reason)) => {
                // Without the table nobody knows whose the cells are.
                for name in [TABLE, HistoryFile::Minutes.name(), HistoryFile::Hours.name()] {
                    set_aside(&folder.join(name), now, &reason)?;
                }
                None
            }
        };
        let (table, is_new) = match table {
            Some(table) => (table, None),
            None => (SeriesTable::default(), Some(())),
        };
        let opened = |file| open_rows(folder, book.head(file), now);
        let (minutes, hours) = (opened(HistoryFile::Minutes)?, opened(HistoryFile::Hours)?);
        let own = Self { folder: folder.to_owned(), minutes: minutes.file, hours: hours.file };
        if is_new.is_some() {
            let first = own.write(&HistoryWrite::Table(table.write()));
            first.map_err(|error| format!("{error} at {}", folder.display()))?;
        }
        book.take_up(table, [&minutes.rows, &hours.rows], |file, offset, into| {
            own.read(file, offset, into).is_ok()
        });
        Ok(own)
    }

    /// Where they are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    const fn file(&self, file: HistoryFile) -> &File {
        match file {
            HistoryFile::Minutes => &self.minutes,
            HistoryFile::Hours => &self.hours,
        }
    }

    /// Reads a part of a file.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn read(&self, file: HistoryFile, offset: u64, into: &mut [u8]) -> io::Result<()> {
        self.file(file).read_exact_at(into, offset)
    }

    /// Writes durably.
    ///
    /// # Errors
    /// The disk refuses: any part of it may be there.
    pub fn write(&self, write: &HistoryWrite) -> io::Result<()> {
        match write {
            HistoryWrite::Table(bytes) => replace(&self.folder.join(TABLE), bytes),
            HistoryWrite::Row { file, offset, bytes } => {
                let file = self.file(*file);
                let (head, cells) = bytes.split_at(ROW_HEAD);
                file.write_all_at(cells, *offset + ROW_HEAD as u64)?;
                file.write_all_at(head, *offset)?;
                file.sync_data()
            }
        }
    }
}

/// Reads the table; none where there is none yet.
fn read_table(path: &Path) -> Result<Option<SeriesTable>, Unusable> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unusable::io(path, &error)),
    };
    let mut bytes = Vec::new();
    let read = file.take(TABLE_BYTES_MAX).read_to_end(&mut bytes);
    read.map_err(|error| Unusable::io(path, &error))?;
    SeriesTable::read(&bytes).map(Some).map_err(Unusable::Damaged)
}

/// Opens a file of rows, or makes one. One that keeps more or fewer rows is made anew with them.
fn open_rows(folder: &Path, wanted: FileHead, now: Utc) -> Result<OpenedRows, String> {
    let path = folder.join(wanted.file.name());
    let found = match read_rows(&path, wanted.file) {
        Ok(found) => found,
        Err(Unusable::Refused(reason)) => return Err(reason),
        Err(Unusable::Damaged(reason)) => {
            set_aside(&path, now, &reason)?;
            None
        }
    };
    match found {
        Some(found) if found.head == wanted => Ok(found),
        before => {
            let made = make_rows(&path, wanted, before.as_ref());
            made.map_err(|error| format!("{error} at {}", path.display()))
        }
    }
}

fn read_rows(path: &Path, file: HistoryFile) -> Result<Option<OpenedRows>, Unusable> {
    let opened = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(opened) => opened,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(Unusable::io(path, &error)),
    };
    let failed = |error: &io::Error| Unusable::io(path, error);
    let length = opened.metadata().map_err(|error| failed(&error))?.len();
    let mut first = [0; 64];
    let read = opened.read_at(&mut first, 0).map_err(|error| failed(&error))?;
    let head = FileHead::read(file, &first[..read], length).map_err(|error| match error {
        HistoryFormError::Version(_) => {
            let help = "run the release that wrote it, or move it away";
            Unusable::Refused(format!("{error}; {help}; it is {}", path.display()))
        }
        error => Unusable::Damaged(error.to_string()),
    })?;
    let rows = row_heads(&opened, head).map_err(|error| failed(&error))?;
    Ok(Some(OpenedRows { file: opened, head, rows }))
}

/// The heads of the rows, by place. A torn one is none.
fn row_heads(file: &File, head: FileHead) -> io::Result<Vec<Option<RowHead>>> {
    let read = |nth: u32| {
        let mut bytes = [0; ROW_HEAD];
        file.read_exact_at(&mut bytes, head.offset(u64::from(nth)))?;
        Ok(RowHead::read(&bytes))
    };
    (0..head.rows).map(read).collect()
}

/// Makes a file of rows beside the one that is there, with the newest rows of that one, and puts it
/// in its place.
fn make_rows(path: &Path, head: FileHead, before: Option<&OpenedRows>) -> io::Result<OpenedRows> {
    let new = path.with_extension("new");
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    reserve(&file, head.file_bytes()).inspect_err(|_| drop(std::fs::remove_file(&new)))?;
    file.write_all_at(&head.encode(), 0)?;
    if let Some(before) = before {
        let mut rows: Vec<RowHead> = before.rows.iter().flatten().copied().collect();
        rows.sort_unstable_by_key(|row| row.number);
        let newest = rows.last().map_or(0, |row| row.number);
        let mut bytes = vec![0; ROW_BYTES];
        for row in rows.iter().filter(|row| row.number + u64::from(head.rows) > newest) {
            before.file.read_exact_at(&mut bytes, before.head.offset(row.number))?;
            file.write_all_at(&bytes, head.offset(row.number))?;
        }
    }
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    sync_folder(path)?;
    let rows = row_heads(&file, head)?;
    Ok(OpenedRows { file, head, rows })
}

/// Takes the room on the disk, so that it cannot lack later.
fn reserve(file: &File, bytes: u64) -> io::Result<()> {
    match rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes) {
        Ok(()) => Ok(()),
        // Some file systems cannot do that.
        Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => {
            let zeros = vec![0; 1 << 20];
            let mut at = 0;
            while at < bytes {
                let part = (bytes - at).min(1 << 20);
                let part = usize::try_from(part).unwrap_or(zeros.len());
                file.write_all_at(&zeros[..part], at)?;
                at += part as u64;
            }
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}

/// Replaces a small file in one step.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let new = path.with_extension("new");
    let options = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).clone();
    let mut file = options.open(&new)?;
    file.write_all(bytes)?;
    file.sync_data()?;
    std::fs::rename(&new, path)?;
    sync_folder(path)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

/// Moves a file out of the way, and says so. The one that was set aside before is replaced.
fn set_aside(path: &Path, now: Utc, reason: &str) -> Result<(), String> {
    let aside = path.with_extension("set-aside");
    match std::fs::rename(path, &aside) {
        Ok(()) => {
            tracing::warn!(
                "{} is damaged ({reason}): it is set aside as {}, and the history begins anew at \
                 {now}",
                path.display(),
                aside.display()
            );
            Ok(())
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(format!("{error} at {}", path.display())),
    }
}

/// Bytes of the head that a file has at least.
const _: () = assert!(FILE_HEAD >= 64);
