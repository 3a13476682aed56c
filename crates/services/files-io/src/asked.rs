//! The called end of requests about single files: lists folders, reads files, gives them names.

use crate::cancel::Cancel;
use crate::end::TransferEnd;
use crate::place::{Directory, file_type, io_refusal, name, refusal};
use crate::rights::{unreadable, unwritable};
use crate::send::is_partial;
use crate::talk::{hear, say};
use rustix::fs::FileType;
use rustix::io::Errno;
use skyhaul::Session;
use skyhaul_files::wire::{LISTED_MAX, Message, OfferAnswer, PIECE_MAX};
use skyhaul_files::{RefusalReason, RelPath, TransferRefusal};
use std::io::Read;

/// A folder with its rights, and who asks about its files.
pub(crate) struct Asked<'a> {
    pub link: &'a Session,
    pub cancel: &'a Cancel,
    pub place: &'a Directory,
    /// Whether files may be listed and read.
    pub read: bool,
    /// Whether files may be moved.
    pub write: bool,
}

/// Why a request is not carried out: the far end is told, or there is nobody to tell.
enum Failure {
    Refused(TransferRefusal),
    End(TransferEnd),
}

impl Asked<'_> {
    /// Answers until the calling end has no more requests: it closes the application channel.
    pub fn run(&self) -> Result<(), TransferEnd> {
        while let Some(message) = hear(self.link, self.cancel)? {
            let done = match message {
                Message::List(folder) => self.list(&folder),
                Message::Read(path, most) => self.read(&path, most),
                Message::Move(from, to) => self.rename(&from, &to),
                _ => return Err(TransferEnd::Malformed("no request for a file".to_owned())),
            };
            match done {
                Ok(()) => {}
                Err(Failure::Refused(refused)) => {
                    self.say(&Message::Answers(vec![(0, OfferAnswer::No(refused))]))?;
                }
                Err(Failure::End(end)) => return Err(end),
            }
        }
        Ok(())
    }

    fn say(&self, message: &Message) -> Result<(), TransferEnd> {
        say(self.link, self.cancel, message)
    }

    fn list(&self, folder: &RelPath) -> Result<(), Failure> {
        self.check_read()?;
        for names in listed(self.place, folder)?.chunks(NAMES_AT_ONCE) {
            self.say(&Message::Names(names.to_vec()))?;
        }
        Ok(self.say(&Message::Names(Vec::new()))?)
    }

    fn read(&self, path: &RelPath, most: u64) -> Result<(), Failure> {
        self.check_read()?;
        let failed = |error: Errno| refusal(path, "cannot be read", error);
        let file = self.place.read(path).map_err(failed)?;
        let stat = rustix::fs::fstat(&file).map_err(failed)?;
        if file_type(&stat) != FileType::RegularFile {
            return Err(failed(Errno::ISDIR).into());
        }
        let size = stat.st_size.unsigned_abs();
        if size > most {
            let sentence = format!("{path} has {size} bytes, of which {most} are read at most");
            return Err(TransferRefusal::new(RefusalReason::TooMany, &sentence).into());
        }
        // One that grows meanwhile is read as far as it was; another request reads the rest.
        let (mut file, mut piece) = (file.take(size), vec![0; PIECE_MAX]);
        let (mut offset, mut hash) = (0, blake3::Hasher::new());
        loop {
            let count = file
                .read(&mut piece)
                .map_err(|error| io_refusal(path, "cannot be read", &error))?;
            if count == 0 {
                break;
            }
            hash.update(&piece[..count]);
            self.say(&Message::Data(0, offset, piece[..count].to_vec().into()))?;
            offset += count as u64;
        }
        Ok(self.say(&Message::End(0, offset, hash.finalize()))?)
    }

    fn rename(&self, from: &RelPath, to: &RelPath) -> Result<(), Failure> {
        if !self.write {
            return Err(unwritable().into());
        }
        rename(self.place, from, to)?;
        Ok(self.say(&Message::Answers(vec![(0, OfferAnswer::Made)]))?)
    }

    fn check_read(&self) -> Result<(), TransferRefusal> {
        if self.read { Ok(()) } else { Err(unreadable()) }
    }
}

/// Lengths and names of the files of a folder; one that does not exist has none.
fn listed(place: &Directory, folder: &RelPath) -> Result<Vec<(u64, Vec<u8>)>, TransferRefusal> {
    let failed = |error: Errno| refusal(folder, "cannot be listed", error);
    let open = match place.folder(folder) {
        Err(Errno::NOENT) => return Ok(Vec::new()),
        open => open.map_err(failed)?,
    };
    let mut files = Vec::new();
    for name in open.names().map_err(failed)? {
        // What went away meanwhile is not listed.
        let Ok(stat) = open.look(&name) else { continue };
        if file_type(&stat) == FileType::RegularFile && !name.starts_with(b".") {
            files.push((stat.st_size.unsigned_abs(), name));
        }
        if files.len() == LISTED_MAX {
            break;
        }
    }
    Ok(files)
}

/// Gives a file another name, durably; the new name's folder is made where it does not exist.
fn rename(place: &Directory, from: &RelPath, to: &RelPath) -> Result<(), TransferRefusal> {
    let wrong = |path: &RelPath| {
        let sentence = format!("{path} is no name of a file that is moved");
        TransferRefusal::new(RefusalReason::Name, &sentence)
    };
    let split = |path: &RelPath| {
        let found = path.split().map(|(folder, last)| (folder, last.to_owned()));
        // What another transfer is writing stays as it is.
        found.filter(|(_, last)| !is_partial(last)).ok_or_else(|| wrong(path))
    };
    let ((from_folder, from_last), (to_folder, to_last)) = (split(from)?, split(to)?);
    let failed = |error: Errno| refusal(from, "cannot be moved", error);
    let old = place.folder(&from_folder).map_err(failed)?;
    if file_type(&old.look(&from_last).map_err(failed)?) != FileType::RegularFile {
        return Err(wrong(from));
    }
    let failed = |error: Errno| refusal(to, "cannot be the name of a file", error);
    let new = place.make(&to_folder).map_err(failed)?;
    rustix::fs::renameat(old.fd(), name(&from_last), new.fd(), name(&to_last)).map_err(failed)?;
    // The new name first: a kill in between leaves the file at two places, not at none.
    for folder in [&new, &old] {
        rustix::fs::fsync(folder.fd()).map_err(failed)?;
    }
    Ok(())
}

impl From<TransferRefusal> for Failure {
    fn from(refused: TransferRefusal) -> Self {
        Self::Refused(refused)
    }
}

impl From<TransferEnd> for Failure {
    fn from(end: TransferEnd) -> Self {
        Self::End(end)
    }
}

/// Names in one message: 136 KiB, if each has as many bytes as a name may.
const NAMES_AT_ONCE: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn path(text: &str) -> RelPath {
        RelPath::new(text.as_bytes()).unwrap()
    }

    #[test]
    fn only_files_are_listed_and_a_folder_that_lacks_has_none() {
        let outer = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(outer.path().join("root/in/below")).unwrap();
        for (name, text) in [("b.PAN", "abc"), ("a.PAN", ""), (".hidden", "x")] {
            std::fs::write(outer.path().join("root/in").join(name), text).unwrap();
        }
        symlink("a.PAN", outer.path().join("root/in/link")).unwrap();
        symlink("../", outer.path().join("root/out")).unwrap();
        let place = Directory::open(&outer.path().join("root")).unwrap();
        let found = listed(&place, &path("in")).unwrap();
        assert_eq!(found, [(0, b"a.PAN".to_vec()), (3, b"b.PAN".to_vec())]);
        assert_eq!(listed(&place, &path("none/there")).unwrap(), []);
        assert_eq!(listed(&place, &path("out")).unwrap_err().reason, RefusalReason::Outside);
        assert_eq!(listed(&place, &path("in/a.PAN")).unwrap_err().reason, RefusalReason::InTheWay);
    }

    #[test]
    fn files_are_moved_within_the_folder_and_nothing_else_is() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        std::fs::create_dir_all(root.join("in")).unwrap();
        symlink("..", root.join("up")).unwrap();
        for (name, text) in [("in/a", "new"), ("in/.x.skyhaul-part", "part"), ("b", "old")] {
            std::fs::write(root.join(name), text).unwrap();
        }
        let place = Directory::open(&root).unwrap();
        let refused =
            |from: &str, to: &str| rename(&place, &path(from), &path(to)).unwrap_err().reason;
        assert_eq!(refused("in/a", "up/a"), RefusalReason::Outside);
        assert_eq!(refused("in/none", "c"), RefusalReason::Absent);
        assert_eq!(refused("in", "c"), RefusalReason::Name, "a folder");
        assert_eq!(refused("up", "c"), RefusalReason::Name, "a link");
        assert_eq!(refused("in/a", "in"), RefusalReason::InTheWay);
        assert_eq!(refused("in/.x.skyhaul-part", "c"), RefusalReason::Name);
        assert_eq!(refused("in/a", "in/.x.skyhaul-part"), RefusalReason::Name);
        assert_eq!(refused("in/a", ""), RefusalReason::Name);
        rename(&place, &path("in/a"), &path("b")).unwrap();
        assert_eq!(std::fs::read_to_string(root.join("b")).unwrap(), "new");
        rename(&place, &path("b"), &path("in/read/a")).unwrap();
        assert_eq!(std::fs::read_to_string(root.join("in/read/a")).unwrap(), "new");
    }
}
