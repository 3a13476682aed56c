//! The ordered control stream: one unidirectional stream each way, opened by its sender.
//!
//! Each begins with one byte, which confirms the ACK_FREQUENCY frame and says what the connection
//! is for: a session of its own ([`GREETING`]), or one more path of a session ([`JOINING`]). The
//! path is up at an end when the far end's byte has come and the handshake is confirmed.

use bytes::Bytes;
use noq_proto::{Connection, Dir, ReadError, StreamId};
use skyhaul_sessions::ConnectionPurpose;

/// Both directions of one path's control stream.
#[derive(Debug, Default)]
pub(crate) struct Control {
    outgoing: Option<StreamId>,
    incoming: Option<StreamId>,
    readable: bool,
    greeted: bool,
    /// What this end connects for.
    pub(crate) purpose: ConnectionPurpose,
    /// What the far end connects for, by its greeting.
    peer_purpose: ConnectionPurpose,
}

/// The far end does not keep to the control stream's rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("protocol error on the control stream: {0}")]
pub(crate) struct Broken(&'static str);

impl Control {
    /// Opens our direction and greets; does nothing once that is done.
    pub(crate) fn greet(&mut self, conn: &mut Connection) {
        if self.outgoing.is_some() {
            return;
        }
        let Some(id) = conn.streams().open(Dir::Uni) else { return };
        if conn.send_stream(id).write(&[self.purpose_byte()]) == Ok(1) {
            self.outgoing = Some(id);
        }
    }

    /// What the connection is for: the end that did not connect always greets with
    /// [`ConnectionPurpose::NewSession`].
    pub(crate) const fn agreed_purpose(&self) -> ConnectionPurpose {
        match (self.purpose, self.peer_purpose) {
            (ConnectionPurpose::NewSession, ConnectionPurpose::NewSession) => {
                ConnectionPurpose::NewSession
            }
            _ => ConnectionPurpose::JoinSession,
        }
    }

    const fn purpose_byte(&self) -> u8 {
        match self.purpose {
            ConnectionPurpose::NewSession => GREETING,
            ConnectionPurpose::JoinSession => JOINING,
        }
    }

    /// Appends what fits; returns how much.
    pub(crate) fn write(&mut self, conn: &mut Connection, bytes: &[u8]) -> usize {
        let Some(id) = self.outgoing else { return 0 };
        // A stream that is blocked, stopped or closed takes nothing.
        conn.send_stream(id).write(bytes).unwrap_or_default()
    }

    /// The far end opened its direction.
    pub(crate) fn opened(&mut self, conn: &mut Connection) {
        if let Some(id) = conn.streams().accept(Dir::Uni) {
            self.incoming = Some(id);
            self.readable = true;
        }
    }

    pub(crate) const fn readable(&mut self) {
        self.readable = true;
    }

    /// Looks for the greeting; true once it has come.
    pub(crate) fn greeted(&mut self, conn: &mut Connection) -> Result<bool, Broken> {
        if !self.greeted
            && let Some(first) = self.take(conn, 1)?
        {
            match first[..] {
                [GREETING] => {}
                [JOINING] => self.peer_purpose = ConnectionPurpose::JoinSession,
                _ => return Err(Broken("the first byte is not the greeting")),
            }
            self.greeted = true;
            self.readable = true;
        }
        Ok(self.greeted)
    }

    /// The next bytes in order, if any. Only after the greeting.
    pub(crate) fn read(&mut self, conn: &mut Connection) -> Result<Option<Bytes>, Broken> {
        if self.greeted { self.take(conn, MAX_READ) } else { Ok(None) }
    }

    fn take(&mut self, conn: &mut Connection, limit: usize) -> Result<Option<Bytes>, Broken> {
        let Some(id) = self.incoming.filter(|_| self.readable) else { return Ok(None) };
        let mut stream = conn.recv_stream(id);
        let mut chunks =
            stream.read(true).map_err(|_| Broken("the far end closed its direction"))?;
        let taken = match chunks.next(limit) {
            Ok(Some(chunk)) => Ok(Some(chunk.bytes)),
            Ok(None) => Err(Broken("the far end finished its direction")),
            Err(ReadError::Reset(_)) => Err(Broken("the far end reset its direction")),
            Err(ReadError::Blocked) => Ok(None),
        };
        // Flow control credit goes out with the next packet, so nothing depends on the answer.
        let _ = chunks.finalize();
        self.readable = matches!(taken, Ok(Some(_)));
        taken
    }
}

/// First byte in each direction.
pub(crate) const GREETING: u8 = 0x01;
/// First byte from an end that connects to join a session.
const JOINING: u8 = 0x02;

/// Largest piece given out at once.
const MAX_READ: usize = 64 * 1024;
