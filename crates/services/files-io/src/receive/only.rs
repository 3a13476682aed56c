//! Mirroring: removes entries at the receiving end that the sending end does not have.

use super::{Receiving, State};
use crate::PART;
use crate::end::TransferEnd;
use crate::event::EntryOutcome;
use crate::place::{Directory, file_type, name, path_kind, refusal};
use crate::send::is_partial;
use rustix::fs::{AtFlags, FileType};
use rustix::io::Errno;
use skyhaul_files::RelPath;
use skyhaul_files::wire::Message;
use std::collections::BTreeSet;

/// The names of one folder that stay, between two of them.
pub(super) struct Only {
    pub folder: RelPath,
    /// The first name that is spoken of; empty is from the beginning.
    pub from: Vec<u8>,
    /// The first one behind; empty is to the end.
    pub to: Vec<u8>,
    pub names: Vec<Vec<u8>>,
}

impl State<'_> {
    /// Removes what is not to stay, and tells what that was.
    pub(super) fn only(&mut self, only: Only) -> Result<(), TransferEnd> {
        if !self.receiving.options.delete {
            return Err(TransferEnd::Malformed("an unrequested removal".to_owned()));
        }
        let Some(folders) = &self.folders else { return Ok(()) };
        // What is not there has nothing to be removed.
        let Ok(folder) = folders.place().folder(&only.folder) else { return Ok(()) };
        let mut removed = Vec::new();
        for gone in only.gone(&folder) {
            let Ok(path) = only.folder.join(&gone) else { continue };
            remove(self.receiving, &folder, &path, &mut removed);
        }
        for some in removed.chunks(PATHS_AT_ONCE) {
            self.receiving.say(&Message::Removed(some.to_vec()))?;
        }
        Ok(())
    }
}

impl Only {
    /// The names in `folder` that are not to stay.
    fn gone(&self, folder: &Directory) -> Vec<Vec<u8>> {
        let stay: BTreeSet<&[u8]> = self.names.iter().map(Vec::as_slice).collect();
        let spoken_of =
            |name: &[u8]| *name >= *self.from && (self.to.is_empty() || *name < *self.to);
        let stays = |name: &[u8]| {
            stay.contains(name) || is_partial(name) && self.stays_partial(&stay, name)
        };
        let names = folder.names().unwrap_or_default().into_iter();
        names.filter(|name| spoken_of(name) && !stays(name)).collect()
    }

    /// Of a file that stays, what is not finished stays too; and where its name is not to be told
    /// from it.
    fn stays_partial(&self, stay: &BTreeSet<&[u8]>, partial: &[u8]) -> bool {
        let end = if partial.ends_with(PART.as_bytes()) { PART } else { crate::MAP };
        let whole = &partial[1..partial.len() - end.len()];
        let spoken_of = *whole >= *self.from && (self.to.is_empty() || *whole < *self.to);
        stay.contains(whole) || !spoken_of || whole.len() == blake3::OUT_LEN * 2
    }
}

/// Removes the entry at `path`, whose last name is in `folder`, except what the rules exclude.
fn remove(
    receiving: &Receiving<'_>,
    folder: &Directory,
    path: &RelPath,
    removed: &mut Vec<RelPath>,
) {
    let Some((_, last)) = path.split() else { return };
    let Ok(stat) = folder.look(last) else { return };
    let is_folder = file_type(&stat) == FileType::Directory;
    if !receiving.selection.takes(path, path_kind(&stat)) {
        return;
    }
    if is_folder
        && let Ok(inner) =
            RelPath::new(last).map_err(|_| Errno::NAMETOOLONG).and_then(|last| folder.folder(&last))
    {
        for name in inner.names().unwrap_or_default() {
            if let Ok(path) = path.join(&name) {
                remove(receiving, &inner, &path, removed);
            }
        }
    }
    let flags = if is_folder { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    let outcome = if receiving.options.dry_run {
        Ok(())
    } else {
        rustix::fs::unlinkat(folder.fd(), name(last), flags)
    };
    match outcome {
        Ok(()) => {
            receiving.reports.tell(path, 0, EntryOutcome::Removed);
            removed.push(path.clone());
        }
        // It still holds entries that the rules exclude.
        Err(Errno::NOTEMPTY | Errno::NOENT) => {}
        Err(error) => {
            receiving.reports.tell(
                path,
                0,
                EntryOutcome::Failed(refusal(path, "cannot be removed", error)),
            );
        }
    }
}

/// Paths in one message: with the longest it fits a block.
const PATHS_AT_ONCE: usize = 32;
