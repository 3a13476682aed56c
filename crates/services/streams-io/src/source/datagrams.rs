//! Datagrams as sources (VTP, jive5ab or any other): one frame each, with or without a sequence
//! number of 64 bits before it.

use super::{Step, Unit, is_ready};
use crate::spec::Numbering;
use skyhaul_streams::{FrameHead, StreamFormat};
use skyhaul_units::Duration;
use std::io;
use std::net::{ToSocketAddrs, UdpSocket};

/// Receives datagrams, some at a time.
#[derive(Debug)]
pub(super) struct Receiver {
    socket: UdpSocket,
    numbering: Numbering,
    format: Option<StreamFormat>,
    buffer: Vec<u8>,
    /// Where the datagrams received lie in the buffer; those before `at` were given.
    lens: Vec<usize>,
    at: usize,
    /// The number of the next datagram, once one came.
    next: Option<u64>,
    /// The next datagram's number was told of.
    told: bool,
    frame_len: Option<usize>,
}

impl Receiver {
    pub fn bind(
        address: &str,
        numbering: Numbering,
        format: Option<StreamFormat>,
    ) -> io::Result<Self> {
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the name has no address");
        for address in address.to_socket_addrs()? {
            match UdpSocket::bind(address) {
                Ok(socket) => {
                    // As much as the system lets us have: `skyhaul tune` says how to get more.
                    let _ = socket2::SockRef::from(&socket).set_recv_buffer_size(SOCKET_BUFFER);
                    socket.set_nonblocking(true)?;
                    let (buffer, lens) = (vec![0; AT_ONCE * LARGEST], Vec::new());
                    let (next, frame_len) = (None, None);
                    return Ok(Self {
                        socket,
                        numbering,
                        format,
                        buffer,
                        lens,
                        at: 0,
                        next,
                        told: false,
                        frame_len,
                    });
                }
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    pub const fn format(&self) -> Option<StreamFormat> {
        self.format
    }

    pub fn advance(&mut self, wait: Duration) -> io::Result<Step> {
        self.lens.clear();
        self.at = 0;
        if !is_ready(&self.socket, wait)? {
            return Ok(Step::Idle);
        }
        while self.lens.len() < AT_ONCE {
            let from = self.lens.len() * LARGEST;
            match self.socket.recv(&mut self.buffer[from..from + LARGEST]) {
                Ok(len) => self.lens.push(len),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(if self.lens.is_empty() { Step::Idle } else { Step::More })
    }

    pub fn unit(&mut self) -> Option<Unit<'_>> {
        let len = *self.lens.get(self.at)?;
        let from = self.at * LARGEST;
        let mut body = from..from + len;
        if self.numbering == Numbering::Numbered {
            let Some(number) =
                self.buffer[body.clone()].first_chunk().map(|bytes| u64::from_le_bytes(*bytes))
            else {
                self.at += 1;
                return Some(Unit::Skipped(len as u64));
            };
            body.start += 8;
            if !core::mem::replace(&mut self.told, true) {
                let next = self.next.unwrap_or(number);
                self.next = Some(next.max(number.saturating_add(1)));
                match number.checked_sub(next) {
                    Some(0) => {}
                    Some(missing) => return Some(Unit::Missing(missing)),
                    None => return Some(Unit::Reordered),
                }
            }
        }
        (self.at, self.told) = (self.at + 1, false);
        let bytes = &self.buffer[body];
        if self.format.is_none() {
            let is = |format| {
                FrameHead::read(format, bytes).is_ok_and(|head| head.frame_len() == bytes.len())
            };
            self.format =
                [StreamFormat::Mark5b, StreamFormat::Vdif].into_iter().find(|format| is(*format));
        }
        match self.format {
            Some(StreamFormat::Datagrams) if !bytes.is_empty() => Some(Unit::Frame(None, bytes)),
            Some(format) => match FrameHead::read(format, bytes) {
                Ok(head) if head.frame_len() == bytes.len() => {
                    let before = *self.frame_len.get_or_insert(bytes.len());
                    let changed = before != bytes.len();
                    Some(if changed {
                        Unit::Changed(before, bytes.len())
                    } else {
                        Unit::Frame(Some(head), bytes)
                    })
                }
                _ => Some(Unit::Skipped(len as u64)),
            },
            None => Some(Unit::Skipped(len as u64)),
        }
    }
}

/// Datagrams received at a time.
const AT_ONCE: usize = 64;
/// The largest datagram, in bytes.
const LARGEST: usize = 1 << 16;
/// 32 MiB are a quarter of a second of 1 Gbit/s.
const SOCKET_BUFFER: usize = 32 << 20;
