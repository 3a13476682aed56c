//! The byte stream with TLS on it: frames in clear on this side, records for the socket on the
//! other.

use crate::channel::{Channel, Progress};
use crate::wire::{FrameReader, TcpFrame, WireError};
use bytes::{Buf as _, BytesMut};
use rustls::Error;

/// Decrypts what the socket reads, encrypts frames, and keeps the records until they are written.
pub(crate) struct TlsStream {
    channel: Channel,
    reader: FrameReader,
    /// Encrypted, for the socket. Bounded by [`MOST_UNWRITTEN`] and a record.
    unwritten: BytesMut,
    /// Frames in clear; empty between calls of the path.
    clear: Vec<u8>,
}

impl TlsStream {
    pub(crate) fn new(channel: Channel) -> Self {
        Self {
            channel,
            reader: FrameReader::default(),
            unwritten: BytesMut::new(),
            clear: Vec::new(),
        }
    }

    /// The TLS connection: handshake, keys, protocol.
    pub(crate) const fn channel(&self) -> &Channel {
        &self.channel
    }

    /// Decrypts some of `bytes`; its frames are given by [`TlsStream::poll_frame`].
    pub(crate) fn receive(&mut self, bytes: &mut &[u8]) -> Result<Progress, Error> {
        self.channel.receive(bytes, &mut self.reader, &mut self.unwritten)
    }

    /// The next frame received, until `None`.
    pub(crate) fn poll_frame(&mut self) -> Result<Option<TcpFrame>, WireError> {
        self.reader.poll()
    }

    /// Frames to be encrypted by the next [`TlsStream::seal`] are appended here.
    pub(crate) const fn clear(&mut self) -> &mut Vec<u8> {
        &mut self.clear
    }

    /// Encrypts the frames in clear; `false` where there are none.
    pub(crate) fn seal(&mut self) -> bool {
        if self.clear.is_empty() {
            return false;
        }
        self.channel.seal(&self.clear);
        self.clear.clear();
        true
    }

    /// Sends a close frame where TLS is set up, and ends TLS in this direction.
    pub(crate) fn close(&mut self, code: u8, reason: &str) {
        if !self.channel.is_handshaking() {
            TcpFrame::Close { code, reason: reason.to_owned() }.encode(&mut self.clear);
            self.channel.seal(&self.clear);
            self.clear.clear();
        }
        self.channel.close_notify();
    }

    /// Moves the records that TLS has made to the bytes for the socket.
    pub(crate) fn collect_records(&mut self) {
        self.channel.take(&mut self.unwritten);
    }

    /// Whether one more record may be made.
    pub(crate) fn has_room(&self) -> bool {
        self.unwritten.len() < MOST_UNWRITTEN
    }

    /// The bytes for the socket.
    pub(crate) fn unwritten(&self) -> &[u8] {
        &self.unwritten
    }

    /// The socket has taken up to `bytes` of them; returns how many there were.
    pub(crate) fn written(&mut self, bytes: usize) -> usize {
        let bytes = bytes.min(self.unwritten.len());
        self.unwritten.advance(bytes);
        bytes
    }

    /// Drops the bytes for the socket.
    pub(crate) fn discard_unwritten(&mut self) {
        self.unwritten.clear();
    }
}

/// Encrypted bytes kept for the socket: four times what one system call takes. At the bound nothing
/// more is encrypted.
const MOST_UNWRITTEN: usize = 256 * 1024;
