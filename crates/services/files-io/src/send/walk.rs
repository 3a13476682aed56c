//! Walks the sources and offers their entries, many in a block.

use super::source::FileSource;
use super::{FOLDERS_MAX, Offer, Sending};
use crate::end::TransferEnd;
use crate::place::{Directory, file_type, mtime, path_kind, refusal, stamp};
use rustix::fs::{FileType, Stat};
use skyhaul_files::wire::{BLOCK_MAX, ITEMS_MAX, Message, OFFERS_MAX, OfferId, offer_len};
use skyhaul_files::{
    Entry, PathKind, RefusalReason, RelPath, SourceStamp, TransferRefusal, TreeEntryKind,
};

/// Offers everything of `sources`.
pub(super) fn walk(sending: &Sending<'_>, sources: &[FileSource]) -> Result<(), TransferEnd> {
    let mut walk = Walk { sending, source: 0, batch: Vec::new(), len: 0, most: FIRST_BATCH };
    for (index, source) in sources.iter().enumerate() {
        walk.source = index;
        match source {
            FileSource::Tree { place, at, name } => walk.tree(place, at, name)?,
            FileSource::Pipe(path, _) => {
                let mtime = sending.clock.utc().as_nanos();
                let entry = Entry {
                    path: path.clone(),
                    kind: TreeEntryKind::Pipe,
                    mode: 0o644,
                    mtime,
                    stamp: SourceStamp::default(),
                };
                walk.offer(entry)?;
            }
        }
    }
    walk.flush()?;
    sending.reports.walked();
    sending.state().walked = true;
    sending.changed.notify_all();
    Ok(())
}

struct Walk<'a> {
    sending: &'a Sending<'a>,
    source: usize,
    batch: Vec<(OfferId, Entry)>,
    /// The length of the batch on the wire.
    len: usize,
    /// Entries in a batch: few at first, so that contents begin early.
    most: usize,
}

/// A folder that is being walked: the names that are left, last one first.
struct Frame {
    folder: Directory,
    path: RelPath,
    names: Vec<Vec<u8>>,
}

impl Walk<'_> {
    fn tree(&mut self, place: &Directory, at: &RelPath, name: &RelPath) -> Result<(), TransferEnd> {
        let Some((above, last)) = at.split() else { return self.inside(place.clone(), name) };
        let found = place.folder(&above).and_then(|folder| Ok((folder.look(last)?, folder)));
        let (stat, folder) = match found {
            Ok(found) => found,
            Err(error) => {
                return self.sending.missing(name, refusal(name, "cannot be read", error));
            }
        };
        match self.entry(&folder, last, name.clone(), &stat)? {
            Some(inner) => self.inside(inner, name),
            None => Ok(()),
        }
    }

    /// What is in a folder, and in those in it: as deep as paths are long.
    fn inside(&mut self, folder: Directory, path: &RelPath) -> Result<(), TransferEnd> {
        let mut frames = Vec::new();
        self.enter(&mut frames, folder, path.clone())?;
        while let Some(frame) = frames.last_mut() {
            let Some(name) = frame.names.pop() else {
                frames.pop();
                continue;
            };
            if self.sending.cancel.is_set() {
                return Err(TransferEnd::Cancelled);
            }
            let Ok(path) = frame.path.join(&name) else {
                let refused = TransferRefusal::new(
                    RefusalReason::Name,
                    &format!("a path below {} is too long; shorten names", frame.path),
                );
                self.sending.missing(&frame.path.clone(), refused)?;
                continue;
            };
            let stat = match frame.folder.look(&name) {
                Ok(stat) => stat,
                Err(error) => {
                    self.sending.missing(&path, refusal(&path, "cannot be read", error))?;
                    continue;
                }
            };
            if !self.sending.selection.takes(&path, path_kind(&stat)) {
                continue;
            }
            let folder = frame.folder.clone();
            if let Some(inner) = self.entry(&folder, &name, path.clone(), &stat)? {
                self.enter(&mut frames, inner, path)?;
            }
        }
        Ok(())
    }

    fn enter(
        &mut self,
        frames: &mut Vec<Frame>,
        folder: Directory,
        path: RelPath,
    ) -> Result<(), TransferEnd> {
        match folder.names() {
            Ok(names) => {
                if self.sending.options.delete {
                    self.only(&path, &names)?;
                }
                let (partial, mut names): (Vec<_>, Vec<_>) =
                    names.into_iter().partition(|name| is_partial(name));
                for name in partial {
                    self.left_out(&folder, &path, &name)?;
                }
                names.reverse();
                frames.push(Frame { folder, path, names });
                Ok(())
            }
            Err(error) => self.sending.missing(&path, refusal(&path, "cannot be read", error)),
        }
    }

    /// Reports an entry whose name is reserved for partial files, unless the rules exclude it.
    fn left_out(&self, folder: &Directory, path: &RelPath, name: &[u8]) -> Result<(), TransferEnd> {
        let Ok(path) = path.join(name) else { return Ok(()) };
        let kind = folder.look(name).map_or(PathKind::Other, |stat| path_kind(&stat));
        if !self.sending.selection.takes(&path, kind) {
            return Ok(());
        }
        let sentence = format!(
            "{path} has a name reserved for unfinished files and was skipped; rename it, or \
            exclude it with --exclude"
        );
        self.sending.missing(&path, TransferRefusal::new(RefusalReason::Name, &sentence))
    }

    /// Sends the complete list of the names of a folder in order.
    fn only(&self, folder: &RelPath, names: &[Vec<u8>]) -> Result<(), TransferEnd> {
        let (mut from, mut rest) = (Vec::new(), names);
        loop {
            let mut len = 0;
            let fits = |name: &&Vec<u8>| {
                len += name.len() + 2;
                len <= BLOCK_MAX / 2
            };
            let count = rest.iter().take(ITEMS_MAX).take_while(fits).count();
            let (now, later) = rest.split_at(count);
            let to = later.first().cloned().unwrap_or_default();
            self.sending.control(&Message::Only(folder.clone(), from, to.clone(), now.to_vec()))?;
            if later.is_empty() {
                return Ok(());
            }
            (from, rest) = (to, later);
        }
    }

    /// Offers an entry. A folder is returned, to be walked.
    fn entry(
        &mut self,
        folder: &Directory,
        name: &[u8],
        path: RelPath,
        stat: &Stat,
    ) -> Result<Option<Directory>, TransferEnd> {
        let kind = match file_type(stat) {
            FileType::RegularFile => TreeEntryKind::File { size: stat.st_size.unsigned_abs() },
            FileType::Directory => TreeEntryKind::Folder,
            FileType::Symlink => match folder.link(name) {
                Ok(target) => TreeEntryKind::Link { target },
                Err(error) => {
                    self.sending.missing(&path, refusal(&path, "cannot be read", error))?;
                    return Ok(None);
                }
            },
            _ => {
                let what = format!(
                    "{path} is a pipe, socket or device and was skipped; exclude it with --exclude"
                );
                self.sending.missing(&path, TransferRefusal::new(RefusalReason::Special, &what))?;
                return Ok(None);
            }
        };
        let inner = match kind {
            TreeEntryKind::Folder => match RelPath::new(name)
                .map_or(Err(rustix::io::Errno::NAMETOOLONG), |name| folder.folder(&name))
            {
                Ok(inner) => Some(inner),
                Err(error) => {
                    self.sending.missing(&path, refusal(&path, "cannot be read", error))?;
                    return Ok(None);
                }
            },
            _ => None,
        };
        let mode = (stat.st_mode & 0o777) as u16;
        let entry = Entry { path, kind, mode, mtime: mtime(stat), stamp: stamp(stat) };
        self.offer(entry)?;
        Ok(inner)
    }

    fn offer(&mut self, entry: Entry) -> Result<(), TransferEnd> {
        if entry.kind == TreeEntryKind::Folder && entry.path.is_here() {
            return Ok(());
        }
        let len = offer_len(&entry);
        if self.len + len > BLOCK_MAX / 2 || self.batch.len() >= self.most {
            self.flush()?;
        }
        let mut state = self.sending.state();
        while state.offers.len() >= OFFERS_MAX {
            state = self.sending.wait(state)?;
        }
        let id = state.next;
        state.next = id.wrapping_add(1);
        if entry.kind == TreeEntryKind::Folder {
            if state.folders.len() >= FOLDERS_MAX {
                let many = "there are more than 1,048,576 folders; copy the tree in parts";
                return Err(TransferEnd::Refused(TransferRefusal::new(
                    RefusalReason::TooMany,
                    many,
                )));
            }
            state.folders.push(entry.clone());
        }
        let offer = Offer {
            entry: entry.clone(),
            source: self.source,
            held: Vec::new(),
            compare: None,
            bytes: entry.size(),
        };
        state.offers.insert(id, offer);
        drop(state);
        if !matches!(entry.kind, TreeEntryKind::Folder | TreeEntryKind::Link { .. }) {
            self.sending.reports.found(entry.size());
        }
        self.len += len;
        self.batch.push((id, entry));
        // The far end's answers free offers only of what it was told.
        if self.sending.state().offers.len() >= OFFERS_MAX { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), TransferEnd> {
        self.len = 0;
        self.most = (self.most * 2).min(ITEMS_MAX);
        match core::mem::take(&mut self.batch) {
            none if none.is_empty() => Ok(()),
            batch => self.sending.control(&Message::Offer(batch)),
        }
    }
}

/// Whether it is a partial file or the map of one.
pub(crate) fn is_partial(name: &[u8]) -> bool {
    name.starts_with(b".")
        && (name.ends_with(crate::PART.as_bytes()) || name.ends_with(crate::MAP.as_bytes()))
}

/// Entries in the first block.
const FIRST_BATCH: usize = 64;
