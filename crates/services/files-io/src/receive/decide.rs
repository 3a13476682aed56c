//! Decides on each offer by the entry that has its name already.

use super::State;
use super::coming::Coming;
use crate::place::{Directory, Folders, exists, file_type, mtime, name, refusal, times};
use crate::send::is_partial;
use rustix::fs::{AtFlags, FileType, Mode, Stat};
use rustix::io::Errno;
use skyhaul_files::wire::{OfferAnswer, Options};
use skyhaul_files::{
    Entry, FileHasher, Hash, RefusalReason, RelPath, TransferRefusal, TreeEntryKind,
};
use std::io::Read;

impl State<'_> {
    /// The answer to an offer, and what then comes.
    pub(super) fn decide(
        &mut self,
        entry: Entry,
    ) -> Result<(OfferAnswer, Option<Coming>), TransferRefusal> {
        let refused = |error| refusal(&entry.path, "cannot be written", error);
        if entry.path.parts().any(is_partial) {
            let sentence =
                format!("{} has a name reserved for unfinished files; rename it", entry.path);
            return Err(TransferRefusal::new(RefusalReason::Name, &sentence));
        }
        let dry_run = self.receiving.options.dry_run;
        let Some(folders) = &mut self.folders else { return Ok((OfferAnswer::Send, None)) };
        let folder = match folders.holding(&entry.path) {
            Err(Errno::NOENT) if dry_run => return Ok((OfferAnswer::Send, None)),
            other => other.map_err(refused)?,
        };
        let Some((_, last)) = entry.path.split() else { return Ok((OfferAnswer::Made, None)) };
        let there = match folder.look(last) {
            Ok(stat) => Some(stat),
            Err(Errno::NOENT) => None,
            Err(error) => return Err(refused(error)),
        };
        let is_folder = there.is_some_and(|stat| file_type(&stat) == FileType::Directory);
        if is_folder && entry.kind != TreeEntryKind::Folder {
            return Err(refused(Errno::ISDIR));
        }
        match &entry.kind {
            TreeEntryKind::Folder if dry_run => Ok((OfferAnswer::Made, None)),
            _ if dry_run && !matches!(entry.kind, TreeEntryKind::File { .. }) => {
                Ok((if there.is_some() { OfferAnswer::Have } else { OfferAnswer::Send }, None))
            }
            TreeEntryKind::Folder => {
                if there.is_none() {
                    make_folder(&folder, &entry).map_err(refused)?;
                }
                folders.place().folder(&entry.path).map_err(refused)?;
                Ok((OfferAnswer::Made, None))
            }
            TreeEntryKind::Link { target } => {
                make_link(&folder, last, target, &entry).map_err(refused)
            }
            TreeEntryKind::Pipe => Ok((OfferAnswer::Send, Some(Coming::new(entry)))),
            TreeEntryKind::File { size } => {
                let size = *size;
                self.decide_file(&folder, there, entry, size)
            }
        }
    }

    fn decide_file(
        &mut self,
        folder: &Directory,
        there: Option<Stat>,
        entry: Entry,
        size: u64,
    ) -> Result<(OfferAnswer, Option<Coming>), TransferRefusal> {
        let last = entry.path.split().map_or(&[][..], |(_, last)| last);
        let file = there.filter(|stat| file_type(stat) == FileType::RegularFile);
        let same_size = file.filter(|stat| stat.st_size.unsigned_abs() == size);
        let Options { keep, checksum, .. } = self.receiving.options;
        if keep && there.is_some() && same_size.is_none() {
            return Err(exists(&entry.path));
        }
        let by_contents = keep || checksum;
        if let Some(stat) = same_size {
            if !by_contents && mtime(&stat) == entry.mtime {
                return self.decide_rights(&stat, &entry).map(|answer| (answer, None));
            }
            if by_contents && let Some(hash) = hash_of(folder, last, size) {
                let coming = (!self.receiving.options.dry_run).then(|| Coming::new(entry));
                // Without writing, nobody asks the far end to read all of its file: it counts as
                // one that differs.
                return Ok((
                    if coming.is_some() { OfferAnswer::Compare(hash) } else { OfferAnswer::Send },
                    coming,
                ));
            }
        }
        if self.receiving.options.dry_run {
            return Ok((OfferAnswer::Send, None));
        }
        let mut coming = Coming::new(entry);
        coming.look_for_part(self.receiving, folder)?;
        let free = rustix::fs::fstatvfs(folder.fd())
            .map_or(u64::MAX, |stat| stat.f_bavail.saturating_mul(stat.f_frsize));
        if size - coming.offset() > free {
            return Err(refusal(&coming.entry.path, "does not fit", Errno::NOSPC));
        }
        Ok((OfferAnswer::Send, Some(coming)))
    }
}

impl State<'_> {
    /// The contents are there: the rights may differ.
    fn decide_rights(
        &mut self,
        there: &Stat,
        entry: &Entry,
    ) -> Result<OfferAnswer, TransferRefusal> {
        if there.st_mode & 0o777 == u32::from(entry.mode) {
            return Ok(OfferAnswer::Have);
        }
        if let (false, Some(folders)) = (self.receiving.options.dry_run, &mut self.folders) {
            set_attributes(folders, entry)
                .map_err(|error| refusal(&entry.path, "cannot have its permissions set", error))?;
        }
        Ok(OfferAnswer::Rights)
    }
}

fn make_folder(folder: &Directory, entry: &Entry) -> Result<(), Errno> {
    let last = entry.path.split().map_or(&[][..], |(_, last)| last);
    // As long as things are put into it, this user has to be able to.
    let mode = Mode::from_raw_mode(u32::from(entry.mode) | 0o700);
    rustix::fs::mkdirat(folder.fd(), name(last), mode)
}

fn make_link(
    folder: &Directory,
    last: &[u8],
    target: &[u8],
    entry: &Entry,
) -> Result<(OfferAnswer, Option<Coming>), Errno> {
    if folder.link(last).is_ok_and(|there| there == target) {
        return Ok((OfferAnswer::Have, None));
    }
    let part = super::part::part_name(last);
    let _ = folder.remove(&part);
    rustix::fs::symlinkat(name(target), folder.fd(), name(&part))?;
    let set = rustix::fs::utimensat(
        folder.fd(),
        name(&part),
        &times(entry.mtime),
        AtFlags::SYMLINK_NOFOLLOW,
    );
    let moved =
        set.and_then(|()| rustix::fs::renameat(folder.fd(), name(&part), folder.fd(), name(last)));
    if moved.is_err() {
        let _ = folder.remove(&part);
    }
    moved.map(|()| (OfferAnswer::Made, None))
}

/// Gives what is there the attributes of `entry`.
pub(super) fn set_attributes(folders: &mut Folders, entry: &Entry) -> Result<(), Errno> {
    let folder = folders.holding(&entry.path)?;
    let (Some((_, last)), mode) = (entry.path.split(), Mode::from_raw_mode(entry.mode.into()))
    else {
        return Ok(());
    };
    let path = RelPath::new(last).map_err(|_| Errno::NAMETOOLONG)?;
    let open = folder.read(&path)?;
    rustix::fs::fchmod(&open, mode)?;
    rustix::fs::futimens(&open, &times(entry.mtime))
}

/// The hash of a file that is there; `None` where it cannot be read to its end.
fn hash_of(folder: &Directory, last: &[u8], size: u64) -> Option<Hash> {
    let mut file = folder.read(&RelPath::new(last).ok()?).ok()?;
    let mut hasher = FileHasher::new(size);
    let mut bytes = vec![0; 1 << 17];
    loop {
        match file.read(&mut bytes).ok()? {
            0 => return hasher.finish(),
            read => hasher.update(&bytes[..read]),
        }
    }
}
