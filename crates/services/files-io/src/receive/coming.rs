//! One file that is being received: the bytes written, and its hash so far.

use super::commit::Ready;
use super::part::{Make, Part, Sync};
use super::{Receiving, differs};
use crate::place::{Directory, Folders, io_refusal, refusal};
use rustix::io::Errno;
use skyhaul_files::wire::OfferId;
use skyhaul_files::{
    Chain, Chunk, Entry, FileContent, FileHasher, RefusalReason, TransferRefusal, TreeEntryKind,
    map,
};
use std::fs::File;
use std::os::unix::fs::FileExt;

/// A requested file.
#[derive(Debug)]
pub(super) struct Coming {
    pub entry: Entry,
    hash: Hashing,
    /// Open from when there is something to write, or when there was something of it before.
    part: Option<Part>,
    map: Option<File>,
    map_head: Vec<u8>,
    /// Chunks that were handed over to be synced, or that the map had.
    mapped: u64,
}

#[derive(Debug)]
enum Hashing {
    /// Boxed, because most files that wait are small and there are many.
    File(Option<Box<FileHasher>>),
    Pipe(Box<blake3::Hasher>, u64),
}

impl Coming {
    pub fn new(entry: Entry) -> Self {
        let hash = match entry.kind {
            TreeEntryKind::Pipe => Hashing::Pipe(Box::default(), 0),
            _ => Hashing::File(None),
        };
        Self { entry, hash, part: None, map: None, map_head: Vec::new(), mapped: 0 }
    }

    /// Where the next bytes belong.
    pub fn offset(&self) -> u64 {
        match &self.hash {
            Hashing::File(hasher) => hasher.as_ref().map_or(0, |hasher| hasher.offset()),
            Hashing::Pipe(_, offset) => *offset,
        }
    }

    /// The chunks that are here from before.
    pub fn held(&self) -> &[Chain] {
        match &self.hash {
            Hashing::File(Some(hasher)) => hasher.chains(),
            _ => &[],
        }
    }

    /// Resumes where an earlier transfer of the same source stopped.
    pub fn look_for_part(
        &mut self,
        receiving: &Receiving<'_>,
        folder: &Directory,
    ) -> Result<(), TransferRefusal> {
        if self.entry.size() <= Chunk::MIN || receiving.options.checksum {
            return Ok(());
        }
        let last = self.entry.path.split().map_or(&[][..], |(_, last)| last);
        let part = match Part::open(receiving, folder, last, Make::No) {
            Ok(Some(part)) => part,
            Ok(None) => return Ok(()),
            Err(error) => return Err(self.refused(error)),
        };
        let Some(map) = part.read_map() else { return Ok(()) };
        if map.stamp != self.entry.stamp || map.size != self.entry.size() || map.chains.is_empty() {
            return Ok(());
        }
        let chunk = Chunk::of(map.size).bytes();
        let on_disk = part.file.metadata().map_or(0, |data| data.len()) / chunk;
        let mut chains = map.chains;
        chains.truncate(usize::try_from(on_disk).unwrap_or(usize::MAX));
        self.mapped = chains.len() as u64;
        self.hash = Hashing::File(Some(Box::new(FileHasher::going_on(map.size, chains))));
        receiving.reports.begin(&self.entry.path, map.size, self.offset());
        self.part = Some(part);
        Ok(())
    }

    /// Writes the next bytes. Returns the chunks to sync, if there are enough.
    pub fn write(
        &mut self,
        receiving: &Receiving<'_>,
        folders: &mut Folders,
        offset: u64,
        bytes: &[u8],
    ) -> Result<Option<Sync>, TransferRefusal> {
        if offset != self.offset()
            || offset + bytes.len() as u64 > self.entry.size()
                && self.entry.kind != TreeEntryKind::Pipe
        {
            let sentence =
                format!("unexpected bytes of {} received; copy it again", self.entry.path);
            return Err(TransferRefusal::new(RefusalReason::Differs, &sentence));
        }
        self.open(receiving, folders)?;
        if offset == 0 {
            receiving.reports.begin(&self.entry.path, self.entry.size(), 0);
        }
        let Some(part) = &self.part else { return Ok(None) };
        let written = part.file.write_all_at(bytes, offset);
        written.map_err(|error| io_refusal(&self.entry.path, "cannot be written", &error))?;
        match &mut self.hash {
            Hashing::Pipe(hasher, offset) => {
                hasher.update(bytes);
                *offset += bytes.len() as u64;
                Ok(None)
            }
            Hashing::File(Some(hasher)) => {
                hasher.update(bytes);
                Ok(self.due())
            }
            Hashing::File(None) => Ok(None),
        }
    }

    /// It was sent completely: verifies it and prepares it for syncing and renaming.
    pub fn finish(
        mut self,
        receiving: &Receiving<'_>,
        folders: &mut Folders,
        id: OfferId,
        content: FileContent,
    ) -> Result<Ready, TransferRefusal> {
        let FileContent { bytes: size, hash } = content;
        self.open(receiving, folders)?;
        let found = match self.hash {
            Hashing::File(hasher) => {
                hasher.and_then(|hasher| hasher.finish()).filter(|_| size == self.entry.size())
            }
            Hashing::Pipe(hasher, offset) => (offset == size).then(|| hasher.finalize()),
        };
        let Some(part) = self.part else { return Err(differs(&self.entry)) };
        if found != Some(hash) {
            part.remove();
            return Err(differs(&self.entry));
        }
        Ok(Ready {
            id,
            entry: self.entry,
            part,
            has_map: self.map.is_some() || self.mapped > 0,
            size,
            hash,
        })
    }

    /// It will not be sent: its bytes are of no use.
    pub fn give_up(self) {
        if let Some(part) = self.part {
            part.remove();
        }
    }

    /// It will not be sent, and what an earlier transfer left of it is of no use either.
    pub fn forget(mut self, receiving: &Receiving<'_>, folders: &mut Folders) {
        if self.part.is_none()
            && let Ok(folder) = folders.holding(&self.entry.path)
        {
            let last = self.entry.path.split().map_or(&[][..], |(_, last)| last);
            // One that another transfer writes is that one's.
            self.part = Part::open(receiving, &folder, last, Make::No).ok().flatten();
        }
        self.give_up();
    }

    /// It cannot go on now: what the map has stays for the next time.
    pub fn leave(self) {
        if self.mapped == 0 {
            self.give_up();
        }
    }

    fn open(
        &mut self,
        receiving: &Receiving<'_>,
        folders: &mut Folders,
    ) -> Result<(), TransferRefusal> {
        if let Hashing::File(hasher @ None) = &mut self.hash {
            *hasher = Some(Box::new(FileHasher::new(self.entry.size())));
        }
        if self.part.is_some() {
            return Ok(());
        }
        let folder = folders.holding(&self.entry.path).map_err(|error| self.refused(error))?;
        let last = self.entry.path.split().map_or(&[][..], |(_, last)| last);
        let part =
            Part::open(receiving, &folder, last, Make::New).map_err(|error| self.refused(error))?;
        let part = part.ok_or_else(|| self.refused(Errno::NOENT))?;
        // What was there of another source is none of this one.
        rustix::fs::ftruncate(&part.file, 0).map_err(|error| self.refused(error))?;
        self.part = Some(part);
        Ok(())
    }

    /// Chunks to be synced, where enough were written since.
    fn due(&mut self) -> Option<Sync> {
        let Hashing::File(Some(hasher)) = &self.hash else { return None };
        let chunk = Chunk::of(self.entry.size()).bytes();
        let whole = hasher.chains().len() as u64;
        let part = self.part.as_ref()?;
        if (whole - self.mapped) * chunk < SYNC_EVERY {
            return None;
        }
        if self.map_head.is_empty() {
            self.map_head = map::head(self.entry.stamp, self.entry.size());
        }
        if self.map.is_none() {
            // Where it cannot be had, more is sent again after an interruption.
            self.map = part.open_map(&self.map_head, self.mapped).ok();
        }
        let first = self.mapped;
        let chains = hasher.chains().get(usize::try_from(first).ok()?..)?;
        let sync = Sync::of(part, self.map.as_ref()?, &self.map_head, first, chains);
        self.mapped = whole;
        sync
    }

    fn refused(&self, error: Errno) -> TransferRefusal {
        if error == Errno::BUSY {
            let sentence = format!(
                "{} is being written by another transfer; wait until that ends",
                self.entry.path
            );
            return TransferRefusal::new(RefusalReason::Busy, &sentence);
        }
        refusal(&self.entry.path, "cannot be written", error)
    }
}

/// As much is sent again at most after an interruption, with a chunk and what is in the system's
/// buffers.
const SYNC_EVERY: u64 = 8 << 20;
