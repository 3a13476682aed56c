//! What an input brought and nobody decoded yet, in memory that two processes share: one entry for
//! each read, with the time at which it came.
//!
//! | field | size | what |
//! |---|---|---|
//! | kind | u8 | 1 prepared, 2 read, 3 break, 4 end, 5 description: see [`BacklogKind`] |
//! | time | i64 | nanoseconds since 1970 |
//! | length | u32 | of the bytes that follow |
//!
//! Memory that was given back reads as zero, which is no kind.

use rustix::fs::{FallocateFlags, MemfdFlags, fallocate, memfd_create};
use skyhaul_units::Utc;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileExt, MetadataExt};

/// The most bytes of an entry: what an input reads at once.
pub const MAX_ENTRY: usize = 64 << 10;
/// Bytes before those of an entry.
const HEAD: usize = 13;
/// What is read ahead: 240 datagrams of 1 KiB with one call of the system, and the longest entry.
const AHEAD: usize = 256 << 10;
/// Memory is given back in steps of so many bytes: a quarter of a second of 500 Mbit/s.
const STEP: u64 = 16 << 20;

/// What an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BacklogKind {
    /// Bytes that were recorded, counted and prepared for the capture.
    Prepared,
    /// Bytes as the input brought them.
    Read,
    /// The sender ended this transmission.
    Break,
    /// The input is exhausted.
    End,
    /// A packet without symbols, which says how those after it are to be read.
    Description,
}

const KINDS: [BacklogKind; 5] = [
    BacklogKind::Prepared,
    BacklogKind::Read,
    BacklogKind::Break,
    BacklogKind::End,
    BacklogKind::Description,
];

/// What precedes the bytes of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BacklogHead {
    /// What it is.
    pub kind: BacklogKind,
    /// When it came.
    pub received: Utc,
    /// How many bytes follow; at most [`MAX_ENTRY`].
    pub length: usize,
}

impl BacklogHead {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence: it is none.
    pub fn parse(bytes: &[u8; HEAD]) -> Result<Self, String> {
        let [kind, rest @ ..] = bytes;
        let (time, length) = rest.split_first_chunk::<8>().expect("twelve bytes");
        let kind = *usize::from(*kind)
            .checked_sub(1)
            .and_then(|at| KINDS.get(at))
            .ok_or_else(|| format!("an entry of the kind {kind} is not known"))?;
        let received = Utc::from_nanos(i64::from_be_bytes(*time));
        let length: [u8; 4] = length.try_into().expect("four bytes");
        let length = u32::from_be_bytes(length) as usize;
        if length > MAX_ENTRY {
            return Err(format!("an entry of {length} bytes is longer than {MAX_ENTRY}"));
        }
        Ok(Self { kind, received, length })
    }

    /// Its bytes.
    pub fn encode(&self) -> [u8; HEAD] {
        let mut bytes = [0; HEAD];
        bytes[0] = KINDS.iter().take_while(|kind| **kind != self.kind).count() as u8 + 1;
        bytes[1..9].copy_from_slice(&self.received.as_nanos().to_be_bytes());
        bytes[9..].copy_from_slice(&(self.length as u32).to_be_bytes());
        bytes
    }
}

/// Writes entries.
#[derive(Debug)]
pub struct BacklogWriter {
    file: BufWriter<File>,
    written: u64,
}

impl BacklogWriter {
    /// Begins an empty backlog. Also returns it for its readers.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new() -> io::Result<(Self, File)> {
        let file = File::from(memfd_create("skyhaul-input", MemfdFlags::CLOEXEC)?);
        let shared = file.try_clone()?;
        Ok((Self { file: BufWriter::with_capacity(2 * MAX_ENTRY, file), written: 0 }, shared))
    }

    /// Appends an entry; bytes beyond [`MAX_ENTRY`] become further ones.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn write(&mut self, kind: BacklogKind, received: Utc, bytes: &[u8]) -> io::Result<()> {
        let first = bytes.len().min(MAX_ENTRY);
        let (first, rest) = bytes.split_at(first);
        let head = BacklogHead { kind, received, length: first.len() };
        self.file.write_all(&head.encode())?;
        self.file.write_all(first)?;
        self.written += (HEAD + first.len()) as u64;
        if rest.is_empty() { Ok(()) } else { self.write(kind, received, rest) }
    }

    /// Lets readers see all entries. Returns their bytes.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn flush(&mut self) -> io::Result<u64> {
        self.file.flush()?;
        Ok(self.written)
    }

    /// The bytes of all entries.
    pub const fn written(&self) -> u64 {
        self.written
    }

    /// The same for one more reader.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn shared(&self) -> io::Result<File> {
        self.file.get_ref().try_clone()
    }

    /// The bytes of memory that it has now: a reader may have given some back.
    ///
    /// # Errors
    /// The system does not say.
    pub fn held(&self) -> io::Result<u64> {
        held(self.file.get_ref())
    }
}

/// The bytes of memory that a backlog has now.
///
/// # Errors
/// The system does not say.
pub fn held(file: &File) -> io::Result<u64> {
    /// The unit in which the system counts.
    const BLOCK: u64 = 512;
    Ok(file.metadata()?.blocks() * BLOCK)
}

/// Reads entries.
#[derive(Debug)]
pub struct BacklogReader {
    file: File,
    /// What was read ahead.
    ahead: Vec<u8>,
    /// The byte of the file that this begins with.
    from: u64,
    /// Bytes of it that were taken.
    taken: usize,
    /// The byte before which memory was given back; none: others read the same.
    freed: Option<u64>,
}

impl BacklogReader {
    /// Begins with the first, and leaves all to others.
    pub const fn new(file: File) -> Self {
        Self { file, ahead: Vec::new(), from: 0, taken: 0, freed: None }
    }

    /// Begins with the one at byte `from`, and gives back the memory of those that it has read.
    pub const fn freeing(file: File, from: u64) -> Self {
        Self { file, ahead: Vec::new(), from, taken: 0, freed: Some(from - from % STEP) }
    }

    /// The byte that the next entry begins with.
    pub const fn at(&self) -> u64 {
        self.from + self.taken as u64
    }

    /// The next entry, whose bytes go to the beginning of `buffer`; none at the end, or where the
    /// last one is not whole.
    ///
    /// # Errors
    /// It is damaged, or the buffer has less than [`MAX_ENTRY`] bytes.
    pub fn next(&mut self, buffer: &mut [u8]) -> io::Result<Option<BacklogHead>> {
        if !self.has(HEAD)? {
            return Ok(None);
        }
        let (head, _) = self.ahead[self.taken..].split_first_chunk().expect("they are there");
        let head = BacklogHead::parse(head).map_err(io::Error::other)?;
        let into = buffer
            .get_mut(..head.length)
            .ok_or_else(|| io::Error::other("an entry is longer than the buffer"))?;
        if !self.has(HEAD + head.length)? {
            return Ok(None);
        }
        into.copy_from_slice(&self.ahead[self.taken + HEAD..][..head.length]);
        self.taken += HEAD + head.length;
        self.free();
        Ok(Some(head))
    }

    /// Whether the next `length` bytes are there; reads ahead where they are not.
    fn has(&mut self, length: usize) -> io::Result<bool> {
        if self.ahead.len() - self.taken >= length {
            return Ok(true);
        }
        self.ahead.drain(..self.taken);
        self.from = self.at();
        self.taken = 0;
        let mut filled = self.ahead.len();
        self.ahead.resize(AHEAD, 0);
        let outcome = fill(&self.file, &mut self.ahead, &mut filled, self.from);
        self.ahead.truncate(filled);
        outcome?;
        Ok(filled >= length)
    }

    /// Gives back the memory of what was taken, in whole steps.
    fn free(&mut self) {
        let at = self.at();
        let Some(freed) = &mut self.freed else { return };
        let until = at - at % STEP;
        if until > *freed {
            let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
            // Where the system does not, it has the memory back when the last reader is gone.
            let _ = fallocate(&self.file, hole, *freed, until - *freed);
            *freed = until;
        }
    }
}

/// Fills `buffer` from its byte `filled` on, up to the end of the file; the buffer begins with
/// byte `from`.
fn fill(file: &File, buffer: &mut [u8], filled: &mut usize, from: u64) -> io::Result<()> {
    while *filled < buffer.len() {
        match file.read_at(&mut buffer[*filled..], from + *filled as u64) {
            Ok(0) => break,
            Ok(more) => *filled += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_in_their_order_with_their_times() {
        let (mut writer, file) = BacklogWriter::new().unwrap();
        let long: Vec<u8> = (0..MAX_ENTRY + 5).map(|at| at as u8).collect();
        writer.write(BacklogKind::Prepared, Utc::from_nanos(-7), b"abc").unwrap();
        writer.write(BacklogKind::Read, Utc::from_nanos(1 << 60), &long).unwrap();
        writer.write(BacklogKind::Break, Utc::from_nanos(9), b"").unwrap();
        assert_eq!(writer.flush().unwrap(), file.metadata().unwrap().len());
        let (mut reader, mut buffer) = (BacklogReader::new(file), vec![0; MAX_ENTRY]);
        let mut next = || {
            let head = reader.next(&mut buffer).unwrap()?;
            Some((head.kind, head.received.as_nanos(), buffer[..head.length].to_vec()))
        };
        assert_eq!(next(), Some((BacklogKind::Prepared, -7, b"abc".to_vec())));
        let mut both = next().unwrap().2;
        both.extend(next().unwrap().2);
        assert_eq!(both, long);
        assert_eq!(next(), Some((BacklogKind::Break, 9, Vec::new())));
        assert_eq!(next(), None);
    }

    #[test]
    fn what_is_cut_or_damaged_is_never_taken_for_an_entry() {
        let (mut writer, file) = BacklogWriter::new().unwrap();
        writer.write(BacklogKind::Read, Utc::from_nanos(1), b"whole").unwrap();
        writer.write(BacklogKind::Read, Utc::from_nanos(2), b"not whole").unwrap();
        let written = writer.flush().unwrap();
        file.set_len(written - 1).unwrap();
        let (mut reader, mut buffer) = (BacklogReader::new(file), vec![0; MAX_ENTRY]);
        assert!(reader.next(&mut buffer).unwrap().is_some());
        assert_eq!(reader.next(&mut buffer).unwrap(), None);
        let mut head =
            BacklogHead { kind: BacklogKind::End, received: Utc::from_nanos(5), length: MAX_ENTRY };
        assert_eq!(BacklogHead::parse(&head.encode()), Ok(head));
        head.length += 1;
        assert!(BacklogHead::parse(&head.encode()).unwrap_err().contains("longer"));
        assert!(BacklogHead::parse(&[9; HEAD]).unwrap_err().contains("kind 9"));
        assert!(BacklogHead::parse(&[0; HEAD]).unwrap_err().contains("kind 0"));
    }

    /// Entries that fill so many steps of memory, each with its number.
    fn steps(count: u64) -> (File, u64) {
        let (mut writer, file) = BacklogWriter::new().unwrap();
        let (mut number, mut bytes) = (0, vec![7; MAX_ENTRY]);
        while writer.written() < count * STEP {
            bytes[..8].copy_from_slice(&u64::to_be_bytes(number));
            // Of many lengths, so that entries lie across the ends of what is read ahead.
            let length = 8 + (number as usize * 9_973) % (MAX_ENTRY - 8);
            writer.write(BacklogKind::Read, Utc::from_nanos(0), &bytes[..length]).unwrap();
            number += 1;
        }
        writer.flush().unwrap();
        (file, number)
    }

    fn number(reader: &mut BacklogReader, buffer: &mut [u8]) -> Option<u64> {
        reader.next(buffer).unwrap()?;
        Some(u64::from_be_bytes(*buffer.first_chunk().unwrap()))
    }

    /// Regression: what was taken stayed in memory until all of it was.
    #[test]
    fn a_reader_that_frees_what_it_has_taken_holds_little_more_than_a_step() {
        let (file, entries) = steps(3);
        assert!(held(&file).unwrap() >= 3 * STEP);
        let mut buffer = vec![0; MAX_ENTRY];
        let mut other = BacklogReader::new(file.try_clone().unwrap());
        for at in 0..entries {
            assert_eq!(number(&mut other, &mut buffer), Some(at));
        }
        assert!(held(&file).unwrap() >= 3 * STEP, "it leaves all to others");
        let mut reader = BacklogReader::freeing(file.try_clone().unwrap(), 0);
        for at in 0..entries / 2 {
            assert_eq!(number(&mut reader, &mut buffer), Some(at));
        }
        // Another one goes on from there, as in another process.
        let mut reader = BacklogReader::freeing(file.try_clone().unwrap(), reader.at());
        for at in entries / 2..entries {
            assert_eq!(number(&mut reader, &mut buffer), Some(at));
        }
        assert_eq!(number(&mut reader, &mut buffer), None);
        assert!(held(&file).unwrap() <= STEP, "{} are held", held(&file).unwrap());
    }
}
