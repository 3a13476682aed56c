//! Answers of SFTP servers with the status codes that version 3 has.
//!
//! Some servers (ProFTPD's mod_sftp 1.1) answer in version 3 with codes of later versions, such as
//! 11, "file already exists"; the library takes such an answer for the end of the session. The
//! codes are changed as they come in; the server's words behind them stay.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A stream of SFTP packets from a server, and requests to it.
pub struct KnownStatus<S> {
    stream: S,
    packet: Packets,
}

/// Where the stream is in its packets: length (4 bytes), type, and of a status its number (4 bytes)
/// and its code (4 bytes). Numbers are big-endian.
#[derive(Debug, Default)]
struct Packets {
    /// Bytes of the packet that are past, with its length.
    past: u64,
    length: u32,
    is_status: bool,
    /// The first three bytes of the code are not all zero.
    is_large: bool,
}

impl<S> KnownStatus<S> {
    /// Of a stream at its beginning.
    pub fn new(stream: S) -> Self {
        Self { stream, packet: Packets::default() }
    }
}

impl Packets {
    /// Takes in what came next, and changes codes in it.
    fn pass(&mut self, bytes: &mut [u8]) {
        for byte in bytes {
            match self.past {
                0..4 => self.length = self.length << 8 | u32::from(*byte),
                4 => self.is_status = *byte == STATUS,
                9..12 if self.is_status => {
                    self.is_large |= *byte != 0;
                    *byte = 0;
                }
                12 if self.is_status => *byte = if self.is_large { FAILURE } else { known(*byte) },
                _ => {}
            }
            self.past += 1;
            if self.past >= 4 && self.past == 4 + u64::from(self.length) {
                *self = Self::default();
            }
        }
    }
}

/// The code of version 3 for one of any version (draft-ietf-secsh-filexfer-13, 9.1).
const fn known(code: u8) -> u8 {
    match code {
        0..=8 => code,
        NO_SUCH_PATH => NO_SUCH_FILE,
        WRITE_PROTECT => PERMISSION_DENIED,
        _ => FAILURE,
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for KnownStatus<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        ready!(Pin::new(&mut self.stream).poll_read(context, buffer))?;
        self.packet.pass(&mut buffer.filled_mut()[before..]);
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for KnownStatus<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

const STATUS: u8 = 101;
const NO_SUCH_FILE: u8 = 2;
const PERMISSION_DENIED: u8 = 3;
const FAILURE: u8 = 4;
const NO_SUCH_PATH: u8 = 10;
const WRITE_PROTECT: u8 = 12;

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 1).unwrap();
        [&length.to_be_bytes()[..], &[kind], body].concat()
    }

    fn status(code: u32) -> Vec<u8> {
        packet(STATUS, &[&[0, 0, 1, 7], &code.to_be_bytes()[..], b"\0\0\0\x02no\0\0\0\0"].concat())
    }

    /// Regression: ProFTPD answers 11 where a file of the new name exists, and the session ended.
    #[test]
    fn codes_of_later_versions_become_those_of_version_3_however_they_are_cut() {
        let codes = [0, 2, 8, 9, 10, 11, 12, 14, 255, 256, u32::MAX, 1];
        let others = [packet(103, &[11; 40]), packet(102, &[]), vec![0, 0, 0, 0]].concat();
        let mut came = Vec::new();
        let mut wanted = Vec::new();
        for (code, is) in codes.into_iter().zip([0, 2, 8, 4, 2, 4, 3, 4, 4, 4, 4, 1]) {
            came.extend(status(code));
            came.extend(&others);
            wanted.extend(status(is));
            wanted.extend(&others);
        }
        for size in [1, 2, 3, 5, 13, 64, came.len()] {
            let (mut packets, mut seen) = (Packets::default(), came.clone());
            seen.chunks_mut(size).for_each(|piece| packets.pass(piece));
            assert_eq!(seen, wanted, "pieces of {size} bytes");
        }
    }
}
