//! The durable ledger of a drop folder: one file in the state folder, to which lines are appended.

use skyhaul_files::drop_folder::{DropFolder, FolderLedger, FolderLedgerError, LedgerLine};
use skyhaul_store::{Disk, DiskFile};
use skyhaul_units::ByteCount;
use std::io;
use std::sync::Arc;

/// The ledger of one folder.
#[derive(Debug)]
pub struct DropLedger {
    disk: Arc<dyn Disk>,
    path: String,
    file: Arc<dyn DiskFile>,
    /// Its lines, superseded ones too.
    lines: u64,
    /// Whether its last line may be incomplete.
    is_torn: bool,
}

/// The name of a ledger in the state folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LedgerName {
    path: String,
    /// The name that it had while the configuration named no destination, or before it did: the
    /// same files went to the same destination.
    former: Option<String>,
}

/// Why a ledger cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum DropLedgerError {
    /// Its contents.
    #[error("{0}: {1}")]
    Contents(String, FolderLedgerError),
    /// The disk.
    #[error("{0}: {1}; check the disk and the permissions of the state folder")]
    Io(String, io::Error),
}

/// The largest ledger that is read: four times what is remembered with the longest names.
const LARGEST: ByteCount = ByteCount::mib(1024);
/// Superseded lines that stay, beside as many as are in force.
const SUPERSEDED: u64 = 10_000;

impl LedgerName {
    /// Of the folder `name`, whose configuration names no destination: they go to `first`, if they
    /// go as files.
    pub fn alone(name: &str, first: Option<&str>) -> Self {
        let former = first.map(|first| Self::path_to(name, first));
        Self { path: Self::path_of(name), former }
    }

    /// Of the folder `name` and the destination `to`, which is the first of the node or another.
    pub fn to(name: &str, to: &str, first: &str) -> Self {
        let former = (to == first).then(|| Self::path_of(name));
        Self { path: Self::path_to(name, to), former }
    }

    fn path_of(name: &str) -> String {
        format!("folder-{name}.ledger")
    }

    /// No name of a folder has the sign in it.
    fn path_to(name: &str, to: &str) -> String {
        format!("folder-{name}@{to}.ledger")
    }

    /// Gives the former ledger this name, where there is none of this name yet.
    fn take_over(&self, disk: &dyn Disk) -> io::Result<()> {
        let Some(former) = &self.former else { return Ok(()) };
        let is_there = |path: &str| match disk.open(path) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        };
        if !is_there(&self.path)? && is_there(former)? {
            disk.rename(former, &self.path)?;
            disk.sync_dir("")?;
        }
        Ok(())
    }
}

impl DropLedger {
    /// Opens the ledger of this name, and notes its lines in `folder`. Returns the lines that were
    /// damaged too.
    ///
    /// # Errors
    /// It cannot be read, or is of another version.
    pub fn open(
        disk: Arc<dyn Disk>,
        name: &LedgerName,
        folder: &mut DropFolder,
    ) -> Result<(Self, u64), DropLedgerError> {
        let path = name.path.clone();
        let io = |error| DropLedgerError::Io(path.clone(), error);
        name.take_over(&*disk).map_err(io)?;
        let (file, bytes) = match disk.open(&path) {
            Ok(file) => {
                let bytes = whole(&*file).map_err(io)?;
                (file, bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let file = disk.create(&path).map_err(io)?;
                disk.sync_dir("").map_err(io)?;
                (file, Vec::new())
            }
            Err(error) => return Err(io(error)),
        };
        let read = FolderLedger::read(&bytes)
            .map_err(|error| DropLedgerError::Contents(path.clone(), error))?;
        let lines = read.lines.len() as u64;
        read.lines.into_iter().for_each(|line| folder.note(line));
        let head = FolderLedger::head();
        if !bytes.starts_with(head.as_bytes()) {
            file.truncate(ByteCount::ZERO).map_err(io)?;
            file.append(head.as_bytes()).map_err(io)?;
            file.sync().map_err(io)?;
        }
        let is_torn = !bytes.is_empty() && !bytes.ends_with(b"\n");
        let mut ledger = Self { disk, path, file, lines, is_torn };
        ledger.compact(folder).map_err(|error| DropLedgerError::Io(ledger.path.clone(), error))?;
        Ok((ledger, read.damaged))
    }

    /// Makes lines durable, then notes them in `folder`.
    ///
    /// # Errors
    /// The disk refuses: nothing is noted, and what was written of the lines does no harm.
    pub fn write(&mut self, lines: Vec<LedgerLine>, folder: &mut DropFolder) -> io::Result<()> {
        let mut text = if self.is_torn { "\n".to_owned() } else { String::new() };
        lines.iter().for_each(|line| text.push_str(&line.to_string()));
        self.is_torn = true;
        self.file.append(text.as_bytes())?;
        self.is_torn = false;
        self.file.sync()?;
        self.lines += lines.len() as u64;
        lines.into_iter().for_each(|line| folder.note(line));
        // A ledger that cannot be made smaller is still one.
        let _ = self.compact(folder);
        Ok(())
    }

    /// Writes it anew, where most of its lines are superseded.
    fn compact(&mut self, folder: &DropFolder) -> io::Result<()> {
        if self.lines < 2 * folder.remembered() + SUPERSEDED {
            return Ok(());
        }
        let new = format!("{}.new", self.path);
        let file = self.disk.create(&new)?;
        let (mut text, mut lines) = (FolderLedger::head(), 0);
        for line in folder.lines() {
            text.push_str(&line.to_string());
            lines += 1;
            if text.len() >= PART {
                file.append(core::mem::take(&mut text).as_bytes())?;
            }
        }
        file.append(text.as_bytes())?;
        file.sync()?;
        self.disk.rename(&new, &self.path)?;
        self.disk.sync_dir("")?;
        self.file = self.disk.open(&self.path)?;
        (self.lines, self.is_torn) = (lines, false);
        Ok(())
    }
}

/// Written at once.
const PART: usize = 1 << 20;

fn whole(file: &dyn DiskFile) -> io::Result<Vec<u8>> {
    let size = file.size()?;
    if size > LARGEST {
        let said = format!("the ledger has {size}, more than the {LARGEST} of one");
        return Err(io::Error::new(io::ErrorKind::InvalidData, said));
    }
    let mut bytes = vec![0; size.as_usize()];
    let read = file.read_at(&mut bytes, ByteCount::ZERO)?;
    bytes.truncate(read);
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_files::drop_folder::{DroppedFile, HandedFile, Leaving};
    use skyhaul_files::{Hash, RelPath};
    use skyhaul_store::sim::SimDisk;
    use skyhaul_units::Duration;

    fn folder() -> DropFolder {
        DropFolder::new(Duration::ZERO, Leaving::Stays)
    }

    fn a() -> LedgerName {
        LedgerName::alone("a", None)
    }

    fn done(number: u64) -> LedgerLine {
        let name = RelPath::new(format!("f{number}").as_bytes()).unwrap();
        let file = DroppedFile { name, size: number, modified_ns: 1, inode: number };
        LedgerLine::Done(HandedFile { file, hash: Hash::from_bytes([number.to_le_bytes()[0]; 32]) })
    }

    fn open(disk: &Arc<SimDisk>) -> (DropLedger, DropFolder) {
        let mut folder = folder();
        let (ledger, damaged) = DropLedger::open(disk.clone(), &a(), &mut folder).unwrap();
        assert_eq!(damaged, 0);
        (ledger, folder)
    }

    #[test]
    fn what_was_written_is_known_after_a_power_cut_and_a_full_disk_loses_nothing() {
        let disk = Arc::new(SimDisk::new(ByteCount::kib(64)));
        let (mut ledger, mut folder) = open(&disk);
        let mut written = 0;
        let refused = loop {
            match ledger.write(vec![done(written)], &mut folder) {
                Ok(()) => written += 1,
                Err(error) => break error,
            }
        };
        assert!(skyhaul_store::is_full(&refused), "{refused}");
        assert_eq!(folder.remembered(), written, "what is not durable is not noted");
        disk.crash(7);
        let (_, again) = open(&disk);
        let lines = |folder: &DropFolder| folder.lines().map(|line| line.to_string()).collect();
        let (before, after): (Vec<String>, Vec<String>) = (lines(&folder), lines(&again));
        assert!(after.len() >= before.len() && before.iter().all(|line| after.contains(line)));
    }

    #[test]
    fn superseded_lines_are_dropped_and_the_others_stay() {
        let disk = Arc::new(SimDisk::new(ByteCount::mib(64)));
        let (mut ledger, mut folder) = open(&disk);
        for round in 0..3 {
            let lines = (0..SUPERSEDED / 2).map(|_| done(round)).collect();
            ledger.write(lines, &mut folder).unwrap();
        }
        assert!(ledger.lines < SUPERSEDED, "{} lines", ledger.lines);
        let (again, restored) = open(&disk);
        assert_eq!((restored.remembered(), again.lines), (3, ledger.lines));
    }

    #[test]
    fn a_ledger_of_a_later_version_is_refused_with_what_to_do() {
        let disk = Arc::new(SimDisk::new(ByteCount::mib(1)));
        let file = disk.create("folder-a.ledger").unwrap();
        file.append(b"skyhaul-folder 2\n").unwrap();
        let refused = DropLedger::open(disk.clone(), &a(), &mut folder()).unwrap_err().to_string();
        assert!(refused.contains("folder-a.ledger: the ledger has version 2"), "{refused}");
        assert!(refused.contains("run the newer program"), "{refused}");
    }

    #[test]
    fn a_ledger_follows_its_destination_when_the_configuration_begins_to_name_it_and_stops() {
        let disk: Arc<dyn Disk> = Arc::new(SimDisk::new(ByteCount::mib(1)));
        let remembered = |name: &LedgerName| {
            let mut folder = folder();
            DropLedger::open(disk.clone(), name, &mut folder).unwrap();
            folder.remembered()
        };
        let (mut ledger, _) = DropLedger::open(disk.clone(), &a(), &mut folder()).unwrap();
        ledger.write(vec![done(1)], &mut folder()).unwrap();
        assert_eq!(remembered(&LedgerName::to("a", "backup", "oper")), 0, "another destination");
        assert_eq!(remembered(&LedgerName::to("a", "oper", "oper")), 1, "the one that it had");
        assert_eq!(remembered(&LedgerName::alone("a", Some("oper"))), 1, "and back");
    }
}
