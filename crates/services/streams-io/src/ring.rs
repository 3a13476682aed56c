//! A byte ring in shared memory for other programs: they map the file, this program reads and
//! writes it.
//!
//! ```text
//!   0     8  "SKYRING1"
//!   8     8  bytes of the ring, which begins at 4096
//!   16    8  bytes ever written
//!   24    8  bytes that the reader has taken; the writer does not wait for it
//!   32    8  1 once nothing more is written
//! ```
//!
//! Numbers are little-endian. The byte number `n` stands at `4096 + n mod size`. A writer puts
//! bytes first and counts them afterwards, at most a quarter of the ring at a time; so what a
//! reader copied from the place `n` on is good where `written - n` is at most three quarters of the
//! ring *after* it was copied.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// One end of a ring.
#[derive(Debug)]
pub struct Ring {
    file: File,
    size: u64,
    /// How far it was written or read.
    at: u64,
}

/// The result of reading.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Took {
    /// So many bytes.
    Bytes(usize),
    /// Everything written was taken already.
    Nothing,
    /// So many bytes were overwritten before they were read.
    Overrun(u64),
    /// The ring has ended.
    End,
}

const MAGIC: &[u8; 8] = b"SKYRING1";
const SIZE: u64 = 8;
const WRITTEN: u64 = 16;
const READ: u64 = 24;
const ENDED: u64 = 32;
const DATA: u64 = 4096;

impl Ring {
    /// Opens a ring that another program writes, where its reader left off.
    ///
    /// # Errors
    /// It is not there, is none, or cannot be read and written.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).custom_flags(NO_LINK).open(path)?;
        let mut magic = [0; 8];
        file.read_exact_at(&mut magic, 0)?;
        let mut ring = Self { file, size: 0, at: 0 };
        ring.size = ring.number(SIZE)?;
        let whole = ring
            .size
            .checked_add(DATA)
            .is_some_and(|end| ring.file.metadata().is_ok_and(|is| is.len() >= end));
        if &magic != MAGIC || ring.size == 0 || !whole {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                "it is not a ring as in docs/how-to/streams.md",
            ));
        }
        ring.at = ring.number(READ)?.max(ring.oldest()?);
        Ok(ring)
    }

    /// Makes a ring that another program reads. One that has ended is replaced.
    ///
    /// # Errors
    /// There is one that has not ended, or it cannot be made.
    pub fn create(path: &Path, size: u64) -> io::Result<Self> {
        match Self::open(path) {
            Ok(ring) if ring.number(ENDED)? == 0 => {
                return Err(io::Error::new(
                    io::ErrorKind::AlreadyExists,
                    "another program still uses this ring",
                ));
            }
            Ok(_) => std::fs::remove_file(path)?,
            // A file that is no ring is not replaced: `create_new` fails.
            Err(_) => {}
        }
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .mode(0o660)
            .custom_flags(NO_LINK)
            .open(path)?;
        // Allocates the pages now, so that a full memory is reported now.
        rustix::fs::fallocate(&file, rustix::fs::FallocateFlags::empty(), 0, DATA + size)?;
        file.write_all_at(&size.to_le_bytes(), SIZE)?;
        // The mark is written last: a ring that has it is complete.
        file.write_all_at(MAGIC, 0)?;
        Ok(Self { file, size, at: 0 })
    }

    /// Writes `bytes` without waiting for a reader.
    ///
    /// # Errors
    /// The memory cannot be written.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        for piece in bytes.chunks(self.quarter()) {
            self.around(piece.len(), |file, at, range| file.write_all_at(&piece[range], at))?;
            self.at += piece.len() as u64;
            self.file.write_all_at(&self.at.to_le_bytes(), WRITTEN)?;
        }
        Ok(())
    }

    /// Marks the end of the ring.
    ///
    /// # Errors
    /// The memory cannot be written.
    pub fn finish(&self) -> io::Result<()> {
        self.file.write_all_at(&1_u64.to_le_bytes(), ENDED)
    }

    /// Reads what there is, as far as it fits into `bytes`.
    pub(crate) fn read(&mut self, bytes: &mut [u8]) -> io::Result<Took> {
        // The end mark is read first: bytes that are written after that are read the next time.
        let ended = self.number(ENDED)? != 0;
        let written = self.number(WRITTEN)?;
        let there = written.saturating_sub(self.at);
        if there == 0 {
            return Ok(if ended { Took::End } else { Took::Nothing });
        }
        let len = usize::try_from(there).unwrap_or(usize::MAX).min(bytes.len());
        self.around(len, |file, at, range| file.read_exact_at(&mut bytes[range], at))?;
        let oldest = self.oldest()?;
        let took = if self.at < oldest {
            let lost = oldest - self.at;
            self.at = oldest;
            Took::Overrun(lost)
        } else {
            self.at += len as u64;
            Took::Bytes(len)
        };
        self.file.write_all_at(&self.at.to_le_bytes(), READ)?;
        Ok(took)
    }

    /// The oldest byte that is not being overwritten. A ring that has ended has all that fits.
    fn oldest(&self) -> io::Result<u64> {
        let kept =
            if self.number(ENDED)? != 0 { self.size } else { self.size - self.size.div_ceil(4) };
        Ok(self.number(WRITTEN)?.saturating_sub(kept))
    }

    /// Calls `each` for the one or two pieces that `len` bytes from here on lie in.
    fn around(
        &self,
        len: usize,
        mut each: impl FnMut(&File, u64, core::ops::Range<usize>) -> io::Result<()>,
    ) -> io::Result<()> {
        let from = self.at % self.size;
        let first = usize::try_from(self.size - from).unwrap_or(usize::MAX).min(len);
        each(&self.file, DATA + from, 0..first)?;
        if first < len { each(&self.file, DATA, first..len) } else { Ok(()) }
    }

    fn quarter(&self) -> usize {
        usize::try_from(self.size / 4).unwrap_or(usize::MAX).max(1)
    }

    fn number(&self, at: u64) -> io::Result<u64> {
        let mut bytes = [0; 8];
        self.file.read_exact_at(&mut bytes, at)?;
        Ok(u64::from_le_bytes(bytes))
    }
}

/// Symbolic links are not followed: another user could redirect the ring.
const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_around_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring");
        let mut writer = Ring::create(&path, 1_000).unwrap();
        let mut reader = Ring::open(&path).unwrap();
        let mut buffer = [0; 300];
        for round in 0..50_u8 {
            writer.write(&[round; 170]).unwrap();
            assert_eq!(reader.read(&mut buffer).unwrap(), Took::Bytes(170));
            assert_eq!(buffer[..170], [round; 170]);
        }
        assert_eq!(reader.read(&mut buffer).unwrap(), Took::Nothing);
        writer.finish().unwrap();
        assert_eq!(reader.read(&mut buffer).unwrap(), Took::End);
    }

    #[test]
    fn a_reader_that_is_overrun_is_told_what_it_lost() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ring");
        let mut writer = Ring::create(&path, 1_000).unwrap();
        let mut reader = Ring::open(&path).unwrap();
        (0..4).for_each(|_| writer.write(&[1; 500]).unwrap());
        let mut buffer = [0; 1_000];
        assert_eq!(reader.read(&mut buffer).unwrap(), Took::Overrun(1_250));
        assert_eq!(reader.read(&mut buffer).unwrap(), Took::Bytes(750));
    }

    #[test]
    fn what_is_no_ring_is_neither_read_nor_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("other");
        std::fs::write(&path, [7; 9_000]).unwrap();
        assert_eq!(Ring::open(&path).unwrap_err().kind(), io::ErrorKind::InvalidData);
        assert_eq!(Ring::create(&path, 1_000).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        let ring = folder.path().join("ring");
        let first = Ring::create(&ring, 1_000).unwrap();
        assert_eq!(Ring::create(&ring, 1_000).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        first.finish().unwrap();
        assert!(Ring::create(&ring, 2_000).is_ok());
    }
}
