//! Reads a published file in order, at the rate of the destination, and compares it with its
//! published digest.

use crate::failure::source;
use crate::sink::OutgoingFile;
use sha2::{Digest, Sha256};
use skyhaul_dispatch::DeliveryFailure;
use std::fs::File;
use std::io::{self, Read};

/// A published file that is being read.
pub struct PublishedSource<'a> {
    of: &'a OutgoingFile,
    file: File,
    at: u64,
    hash: Sha256,
}

impl<'a> PublishedSource<'a> {
    /// Opens it.
    ///
    /// # Errors
    /// It cannot be read, or has another length than was published.
    pub fn open(of: &'a OutgoingFile) -> Result<Self, DeliveryFailure> {
        let unreadable = |error: io::Error| source(&of.path, format!("cannot be read: {error}"));
        let file = File::open(&of.path).map_err(unreadable)?;
        let length = file.metadata().map_err(unreadable)?.len();
        if length != of.size.as_u64() {
            let was = of.size.as_u64();
            let what =
                format!("has {length} bytes, and was published with {was}; restore it, or publish");
            return Err(source(&of.path, format!("{what} it anew")));
        }
        Ok(Self { of, file, at: 0, hash: Sha256::new() })
    }

    /// How far it was read.
    pub fn at(&self) -> u64 {
        self.at
    }

    /// Whether all of it was read.
    pub fn is_at_end(&self) -> bool {
        self.at == self.of.size.as_u64()
    }

    /// The next bytes, at most `most`; none at the end.
    ///
    /// # Errors
    /// It cannot be read, or became shorter.
    pub fn next(&mut self, most: usize) -> Result<Vec<u8>, DeliveryFailure> {
        let left = self.of.size.as_u64() - self.at;
        let length = usize::try_from(left).unwrap_or(usize::MAX).min(most);
        let mut bytes = vec![0; length];
        self.file
            .read_exact(&mut bytes)
            .map_err(|error| source(&self.of.path, format!("cannot be read: {error}")))?;
        self.hash.update(&bytes);
        self.at += length as u64;
        Ok(bytes)
    }

    /// Reads on to a place, for the digest; the last bytes before it, at most `tail`, are returned.
    ///
    /// # Errors
    /// As [`PublishedSource::next`].
    pub fn skip_to(&mut self, place: u64, tail: usize) -> Result<Vec<u8>, DeliveryFailure> {
        let mut last = Vec::new();
        while self.at < place {
            let left = usize::try_from(place - self.at).unwrap_or(usize::MAX);
            last.extend(self.next(left.min(PIECE))?);
            last.drain(..last.len().saturating_sub(tail));
        }
        Ok(last)
    }

    /// Compares the digest of what was read, which is all of it.
    ///
    /// # Errors
    /// It is not what was published.
    pub fn finish(self) -> Result<(), DeliveryFailure> {
        let digest: [u8; 32] = self.hash.finalize().into();
        if digest == self.of.sha256 {
            return Ok(());
        }
        Err(source(
            &self.of.path,
            "has another digest than when it was published; restore it, or publish it anew",
        ))
    }

    /// Reads all of a file and compares its digest.
    ///
    /// # Errors
    /// It is not what was published.
    pub fn check(of: &'a OutgoingFile) -> Result<(), DeliveryFailure> {
        let mut source = Self::open(of)?;
        source.skip_to(of.size.as_u64(), 0)?;
        source.finish()
    }
}

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 256 KiB at a time: the processor's cache holds it between reading and hashing.
pub const PIECE: usize = 256 << 10;
