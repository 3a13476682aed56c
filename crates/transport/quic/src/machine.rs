//! The QUIC state machine of one connection, driven in this program's clock.

use crate::clock::Clock;
use bytes::Bytes;
use noq_proto::{Connection, FrameStats, PathId, Transmit, VarInt};
use skyhaul_units::Instant;
use std::net::SocketAddr;
use std::num::NonZeroUsize;

/// One connection of the state machine. It uses one network path, [`PathId::ZERO`].
pub(crate) struct Machine {
    conn: Connection,
    clock: Clock,
}

impl Machine {
    pub(crate) const fn new(conn: Connection, clock: Clock) -> Self {
        Self { conn, clock }
    }

    pub(crate) const fn connection(&mut self) -> &mut Connection {
        &mut self.conn
    }

    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// The far end's address now.
    pub(crate) fn remote(&self) -> Option<SocketAddr> {
        self.conn.network_path(PathId::ZERO).ok().map(|path| path.remote())
    }

    /// Frames received so far, by type.
    pub(crate) fn frames_received(&mut self) -> FrameStats {
        self.conn.path_stats(PathId::ZERO).unwrap_or_default().frame_rx
    }

    /// Frames sent so far, by type.
    pub(crate) fn frames_sent(&mut self) -> FrameStats {
        self.conn.path_stats(PathId::ZERO).unwrap_or_default().frame_tx
    }

    /// UDP payload of a full datagram now.
    pub(crate) fn full_payload(&self) -> u16 {
        self.conn.current_mtu()
    }

    /// The largest datagram that fits a packet now; `None` where the far end takes none.
    pub(crate) fn max_datagram(&mut self) -> Option<usize> {
        self.conn.datagrams().max_size()
    }

    /// Derives key material bound to this connection; `false` where TLS cannot.
    pub(crate) fn export_keying_material(
        &self,
        out: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> bool {
        self.conn.crypto_session().export_keying_material(out, label, context).is_ok()
    }

    /// Closes the connection with an application close code and reason.
    pub(crate) fn close(&mut self, now: Instant, code: u32, reason: &[u8]) {
        let reason = Bytes::copy_from_slice(reason);
        self.conn.close(self.clock.std(now), VarInt::from_u32(code), reason);
    }

    /// When [`Machine::handle_timeout`] is due.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.conn.poll_timeout().map(|at| self.clock.ours(at))
    }

    /// Runs the timers that have expired.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.conn.handle_timeout(self.clock.std(now));
        }
    }

    /// The next UDP datagram, or up to `limit` of one size, into `out`.
    pub(crate) fn poll_transmit(
        &mut self,
        now: Instant,
        limit: NonZeroUsize,
        out: &mut Vec<u8>,
    ) -> Option<Transmit> {
        self.conn.poll_transmit(self.clock.std(now), limit, out)
    }

    /// How a copy of `size` bytes of a datagram sent before leaves.
    pub(crate) fn copy_transmit(&self, size: usize) -> Option<Transmit> {
        let path = self.conn.network_path(PathId::ZERO).ok()?;
        let (destination, src_ip) = (path.remote(), path.local_ip());
        Some(Transmit { destination, ecn: None, size, segment_size: None, src_ip })
    }
}
