//! What an input brought and nobody decoded yet, in memory that two processes share: one entry for
//! each read, with the time at which it came.
//!
//! | field | size | what |
//! |---|---|---|
//! | kind | u8 | 0 prepared, 1 read, 2 break, 3 end, 4 description: see [`EntryKind`] |
//! | time | i64 | nanoseconds since 1970 |
//! | length | u32 | of the bytes that follow |

use rustix::fs::{MemfdFlags, memfd_create};
use skyhaul_units::Utc;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::FileExt;

/// The most bytes of an entry: what an input reads at once.
pub const MAX_ENTRY: usize = 64 << 10;
/// Bytes before those of an entry.
const HEAD: usize = 13;

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
        let kind = *KINDS
            .get(usize::from(*kind))
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
        bytes[0] = KINDS.iter().position(|kind| *kind == self.kind).unwrap_or_default() as u8;
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
}

/// Reads entries.
#[derive(Debug)]
pub struct BacklogReader {
    file: File,
    at: u64,
}

impl BacklogReader {
    /// Begins with the first.
    pub const fn new(file: File) -> Self {
        Self { file, at: 0 }
    }

    /// The next entry, whose bytes go to the beginning of `buffer`; none at the end, or where the
    /// last one is not whole.
    ///
    /// # Errors
    /// It is damaged, or the buffer has less than [`MAX_ENTRY`] bytes.
    pub fn next(&mut self, buffer: &mut [u8]) -> io::Result<Option<BacklogHead>> {
        let mut head = [0; HEAD];
        if !read_whole(&self.file, &mut head, self.at)? {
            return Ok(None);
        }
        let head = BacklogHead::parse(&head).map_err(io::Error::other)?;
        let into = buffer
            .get_mut(..head.length)
            .ok_or_else(|| io::Error::other("an entry is longer than the buffer"))?;
        if !read_whole(&self.file, into, self.at + HEAD as u64)? {
            return Ok(None);
        }
        self.at += (HEAD + head.length) as u64;
        Ok(Some(head))
    }
}

/// Fills `buffer` from byte `at` on; `false` where the file ends before.
fn read_whole(file: &File, buffer: &mut [u8], at: u64) -> io::Result<bool> {
    match file.read_exact_at(buffer, at) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
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
    }
}
