//! Packet files: read through once, then at the places that are wanted.

use super::error::RdrError;
use skyhaul_ccsds::packet::{Packets, SpaceHeader};
use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A packet file.
#[derive(Debug)]
pub struct PacketFileSource {
    file: File,
    path: PathBuf,
}

impl PacketFileSource {
    /// Opens a packet file.
    pub fn open(path: &Path) -> Result<Self, RdrError> {
        let file =
            File::open(path).map_err(|source| RdrError::Read { file: path.to_owned(), source })?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// Shows every packet with its place in the file. Returns the bytes after the last whole
    /// packet, which are those of a packet that was cut.
    pub fn read(
        &mut self,
        mut take: impl FnMut(u64, &[u8]) -> Result<(), RdrError>,
    ) -> Result<usize, RdrError> {
        let (mut held, mut offset) = (Vec::with_capacity(READ_SIZE), 0u64);
        loop {
            let read = (&mut self.file).take(READ_SIZE as u64).read_to_end(&mut held);
            let read = read.map_err(|source| self.unreadable(source))?;
            let mut packets = Packets::new(&held);
            let mut at = 0;
            for (_, packet) in packets.by_ref() {
                take(offset + at as u64, packet)?;
                at += packet.len();
            }
            let rest = packets.rest();
            let is_cut = SpaceHeader::parse(rest)
                .map_or(rest.len() < SpaceHeader::LEN, |header| header.total_len > rest.len());
            if (read == 0 && !is_cut) || rest.len() > SpaceHeader::LONGEST_PACKET {
                return Err(RdrError::NotPackets {
                    file: self.path.clone(),
                    offset: offset + at as u64,
                });
            }
            if read == 0 {
                return Ok(rest.len());
            }
            held.drain(..at);
            offset += at as u64;
        }
    }

    /// The packet of `len` bytes at `offset`.
    pub fn packet(&self, offset: u64, len: u32, packet: &mut Vec<u8>) -> Result<(), RdrError> {
        packet.resize(len as usize, 0);
        self.file.read_exact_at(packet, offset).map_err(|source| self.unreadable(source))
    }

    fn unreadable(&self, source: io::Error) -> RdrError {
        RdrError::Read { file: self.path.clone(), source }
    }
}

/// 1 MiB: some thousand packets.
const READ_SIZE: usize = 1 << 20;
