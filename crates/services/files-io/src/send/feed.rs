//! Reads contents once; hashes, packs and sends them.

use super::source::{Reader, on_disk};
use super::{Offer, Sending};
use crate::end::TransferEnd;
use crate::event::EntryOutcome;
use crate::place::{exists, io_refusal, refusal, stamp};
use rustix::io::Errno;
use skyhaul_files::wire::{Message, OfferId, PIECE_MAX, Pack, data_head};
use skyhaul_files::{FileHasher, Pace, RefusalReason, RelPath, TransferRefusal};
use skyhaul_units::ByteCount;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};

/// Sends requested contents until every offer has its result, then the attributes of folders.
pub(super) fn feed(sending: &Sending<'_>, readers: Vec<Reader>) -> Result<(), TransferEnd> {
    let pace = sending.options.limit.map(|limit| Pace::new(limit, sending.clock.now()));
    let mut feed = Feed { sending, readers, pack: Pack::default(), pace };
    loop {
        let mut state = sending.state();
        if let Some(id) = state.wanted.pop_front() {
            let offer = state.offers.get(&id).cloned();
            drop(state);
            if let Some(offer) = offer {
                feed.one(id, offer)?;
            }
            continue;
        }
        if !feed.pack.is_empty() {
            drop(state);
            feed.flush()?;
            continue;
        }
        if state.walked && state.offers.is_empty() {
            let folders = core::mem::take(&mut state.folders);
            drop(state);
            return finish(sending, folders);
        }
        drop(sending.wait(state)?);
    }
}

fn finish(
    sending: &Sending<'_>,
    mut folders: Vec<skyhaul_files::Entry>,
) -> Result<(), TransferEnd> {
    if !sending.options.dry_run {
        // The innermost first: setting one's attributes does not change those above it.
        folders.reverse();
        for some in folders.chunks(FOLDERS_AT_ONCE) {
            sending.data(Message::Attributes(some.to_vec()).encode())?;
        }
    }
    sending.data(Message::Finish.encode())
}

struct Feed<'a> {
    sending: &'a Sending<'a>,
    readers: Vec<Reader>,
    /// A message of small files that is being filled.
    pack: Pack,
    pace: Option<Pace>,
}

/// Why a file is not sent completely.
enum Stop {
    File(TransferRefusal),
    End(TransferEnd),
}

impl Feed<'_> {
    fn one(&mut self, id: OfferId, offer: Offer) -> Result<(), TransferEnd> {
        let path = offer.entry.path.clone();
        let stopped = if offer.is_pipe() { self.pipe(id, &offer) } else { self.file(id, &offer) };
        match stopped {
            Ok(()) => Ok(()),
            Err(Stop::End(end)) => Err(end),
            Err(Stop::File(refused)) => {
                self.flush()?;
                self.sending.settle(id)?;
                self.sending.reports.tell(
                    &path,
                    offer.entry.size(),
                    EntryOutcome::Failed(refused.clone()),
                );
                self.sending.data(Message::Abandon(id, refused).encode())
            }
        }
    }

    fn file(&mut self, id: OfferId, offer: &Offer) -> Result<(), Stop> {
        let path = &offer.entry.path;
        let Some(Reader::Tree { place, at, name }) = self.readers.get(offer.source) else {
            return Ok(());
        };
        let mut file = place
            .read(&on_disk(at, name, path))
            .map_err(|error| Stop::File(unreadable(path, error)))?;
        same(offer, &file)?;
        if offer.compare.is_some() {
            if self.is_same(id, offer, &mut file)? {
                return Ok(());
            }
            if self.sending.options.keep {
                return Err(Stop::File(exists(path)));
            }
        }
        if offer.entry.size() <= SMALL_MAX {
            self.small(id, offer, file)
        } else {
            self.large(id, offer, file)
        }
    }

    fn small(&mut self, id: OfferId, offer: &Offer, mut file: File) -> Result<(), Stop> {
        let size = usize::try_from(offer.entry.size()).unwrap_or(usize::MAX);
        if !self.pack.has_room(size) {
            self.flush()?;
        }
        let mut bytes = vec![0; size];
        file.read_exact(&mut bytes).map_err(|error| broken(&offer.entry.path, &error))?;
        same(offer, &file)?;
        self.pack.put(id, &blake3::hash(&bytes), &bytes);
        self.sending.reports.moved(offer.entry.size());
        Ok(())
    }

    fn large(&mut self, id: OfferId, offer: &Offer, mut file: File) -> Result<(), Stop> {
        self.flush()?;
        let (path, size) = (&offer.entry.path, offer.entry.size());
        let mut hasher = FileHasher::going_on(size, offer.held.clone());
        self.sending.reports.begin(path, size, hasher.offset());
        file.seek(SeekFrom::Start(hasher.offset())).map_err(|error| broken(path, &error))?;
        while hasher.offset() < size {
            let offset = hasher.offset();
            let mut block = data_head(id, offset);
            let (head, len) = (block.len(), (size - offset).min(PIECE_MAX as u64));
            let read = (&mut file)
                .take(len)
                .read_to_end(&mut block)
                .map_err(|error| broken(path, &error))?;
            if (read as u64) < len {
                return Err(broken(path, &io::ErrorKind::UnexpectedEof.into()));
            }
            hasher.update(&block[head..]);
            self.send(block, len)?;
            // The far end may have given the file up.
            if !self.sending.state().offers.contains_key(&id) {
                return Ok(());
            }
        }
        same(offer, &file)?;
        let hash = hasher.finish().expect("it was read to its end");
        self.sending.data(Message::End(id, size, hash).encode())?;
        Ok(())
    }

    fn pipe(&mut self, id: OfferId, offer: &Offer) -> Result<(), Stop> {
        let Some(Reader::Pipe(pipe)) = self.readers.get_mut(offer.source) else { return Ok(()) };
        let Some(mut pipe) = pipe.take() else { return Ok(()) };
        let (mut hasher, mut offset) = (blake3::Hasher::new(), 0);
        self.sending.reports.begin(&offer.entry.path, 0, 0);
        self.sending.reports.open();
        loop {
            let mut block = data_head(id, offset);
            let head = block.len();
            let read = (&mut pipe).take(PIECE_MAX as u64).read_to_end(&mut block);
            let read = read.map_err(|error| broken(&offer.entry.path, &error))? as u64;
            if read == 0 {
                break;
            }
            hasher.update(&block[head..]);
            offset += read;
            self.sending.reports.grew(read);
            self.send(block, read)?;
        }
        self.sending.reports.closed();
        if let Some(offer) = self.sending.state().offers.get_mut(&id) {
            offer.bytes = offset;
        }
        self.sending.data(Message::End(id, offset, hasher.finalize()).encode())?;
        Ok(())
    }

    /// Whether the file has the hash that the far end has under its name; told if so.
    fn is_same(&mut self, id: OfferId, offer: &Offer, file: &mut File) -> Result<bool, Stop> {
        let mut hasher = FileHasher::new(offer.entry.size());
        let mut bytes = vec![0; PIECE_MAX];
        loop {
            let read = file.read(&mut bytes).map_err(|error| broken(&offer.entry.path, &error))?;
            if read == 0 {
                break;
            }
            hasher.update(&bytes[..read]);
        }
        if hasher.finish() != offer.compare {
            file.rewind().map_err(|error| broken(&offer.entry.path, &error))?;
            return Ok(false);
        }
        self.sending.data(Message::Same(id).encode())?;
        Ok(true)
    }

    fn flush(&mut self) -> Result<(), TransferEnd> {
        let Some(block) = self.pack.take() else { return Ok(()) };
        self.keep_pace(block.len() as u64)?;
        self.sending.data(block)
    }

    fn send(&mut self, block: Vec<u8>, bytes: u64) -> Result<(), TransferEnd> {
        self.keep_pace(bytes)?;
        self.sending.data(block.into())?;
        self.sending.reports.moved(bytes);
        Ok(())
    }

    /// Waits as the rate limit requires.
    fn keep_pace(&mut self, bytes: u64) -> Result<(), TransferEnd> {
        let Some(pace) = &mut self.pace else { return Ok(()) };
        let due =
            self.sending.clock.now() + pace.take(self.sending.clock.now(), ByteCount::new(bytes));
        while self.sending.clock.now() < due {
            let left = due.since(self.sending.clock.now()).to_std();
            std::thread::park_timeout(left.min(super::LOOK));
            if self.sending.cancel.is_set() {
                return Err(TransferEnd::Cancelled);
            }
        }
        Ok(())
    }
}

/// Checks that the file is still the one that was offered, before and after reading it.
fn same(offer: &Offer, file: &File) -> Result<(), Stop> {
    let path = &offer.entry.path;
    let stat = rustix::fs::fstat(file).map_err(|error| Stop::File(unreadable(path, error)))?;
    if stamp(&stat) == offer.entry.stamp {
        return Ok(());
    }
    Err(Stop::File(changed(path)))
}

fn changed(path: &RelPath) -> TransferRefusal {
    let sentence =
        format!("{path} changed while it was read; copy it again when no program writes it");
    TransferRefusal::new(RefusalReason::Changed, &sentence)
}

fn broken(path: &RelPath, error: &io::Error) -> Stop {
    Stop::File(match error.kind() {
        io::ErrorKind::UnexpectedEof => changed(path),
        _ => io_refusal(path, "cannot be read", error),
    })
}

fn unreadable(path: &RelPath, error: Errno) -> TransferRefusal {
    match error {
        Errno::NOENT => {
            let sentence =
                format!("{path} was removed since it was found; find out who removed it");
            TransferRefusal::new(RefusalReason::Vanished, &sentence)
        }
        error => refusal(path, "cannot be read", error),
    }
}

impl From<TransferEnd> for Stop {
    fn from(end: TransferEnd) -> Self {
        Self::End(end)
    }
}

/// Files up to here go many in a block.
const SMALL_MAX: u64 = 64 << 10;
/// Folders in one message: with the longest paths they fit a block.
const FOLDERS_AT_ONCE: usize = 32;
