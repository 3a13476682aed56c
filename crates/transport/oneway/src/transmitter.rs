//! The sending end: the sender's datagrams, sealed, at the declared rate.

use skyhaul_congestion::Pacer;
use skyhaul_identity::{ONE_WAY_SEAL, OneWayKey, OneWaySession, Sealer};
use skyhaul_transport::oneway::{Assumptions, Design, DesignError, OneWaySender, SenderConfig};
use skyhaul_units::{ByteCount, Instant, Rate, Utc};

/// A session of a sender.
#[derive(Debug, Clone)]
pub struct TransmitSession {
    /// What both ends share.
    pub key: OneWayKey,
    /// When it begins: later than any before it under this key, or receivers ignore it.
    pub began: Utc,
    /// From the system's random numbers: no two sessions may have the same beginning and salt.
    pub salt: [u8; 8],
}

/// Gives out sealed datagrams, each when the line has room for it.
#[derive(Debug)]
pub struct Transmitter {
    sender: OneWaySender,
    sealer: Sealer,
    pacer: Pacer,
    /// IP and UDP headers.
    headers: usize,
    /// The largest IP packet.
    packet: ByteCount,
}

/// What IPv4 and UDP put in front of a datagram, in bytes.
pub const HEADERS_IPV4: usize = 28;
/// What IPv6 and UDP put in front of a datagram, in bytes.
pub const HEADERS_IPV6: usize = 48;

/// [`Assumptions::over`] a line of this rate that takes IP packets of up to `mtu`, with `headers`
/// of IP and UDP.
pub fn assumptions_for(rate: Rate, mtu: ByteCount, headers: usize) -> Assumptions {
    let headers = headers + ONE_WAY_SEAL;
    let payload = mtu.as_usize().saturating_sub(headers);
    Assumptions { payload, headers, ..Assumptions::over(rate) }
}

impl Transmitter {
    /// With nothing to send; `assumptions` with headers as [`assumptions_for`] makes them.
    ///
    /// # Errors
    /// No repair reaches what is asked for.
    pub fn new(
        now: Instant,
        session: TransmitSession,
        assumptions: &Assumptions,
        config: SenderConfig,
    ) -> Result<Self, DesignError> {
        let design = Design::new(assumptions)?;
        let packet = ByteCount::of(assumptions.payload + assumptions.headers);
        let began = u64::try_from(session.began.as_micros()).unwrap_or(0);
        let name = OneWaySession::new(began, session.salt);
        Ok(Self {
            sender: OneWaySender::new(design, config),
            sealer: Sealer::new(session.key, name),
            pacer: Pacer::new(assumptions.rate, packet, now),
            headers: assumptions.headers.saturating_sub(ONE_WAY_SEAL),
            packet,
        })
    }

    /// The sender: blocks go in there.
    pub const fn sender(&mut self) -> &mut OneWaySender {
        &mut self.sender
    }

    /// The session's name, which stands in clear in every datagram.
    pub const fn session(&self) -> OneWaySession {
        self.sealer.session()
    }

    /// The largest datagram that [`Self::poll`] gives out.
    pub fn datagram_max(&self) -> usize {
        self.packet.as_usize() - self.headers
    }

    /// The next datagram, if the line has room for it now.
    pub fn poll(&mut self, now: Instant) -> Option<Vec<u8>> {
        if self.pacer.available(now) < self.packet {
            return None;
        }
        let plain = self.sender.poll(now)?;
        let datagram = self.sealer.seal(&plain);
        self.pacer.spend(now, ByteCount::of(datagram.len() + self.headers));
        Some(datagram)
    }

    /// When to ask [`Self::poll`] again after it had nothing, unless a block is sent before; `None`
    /// when all is over.
    pub fn next_timeout(&mut self, now: Instant) -> Option<Instant> {
        let due = self.sender.next_timeout(now)?;
        match self.pacer.wake() {
            // Waiting for room, with something to send perhaps.
            Some(room) => Some(room),
            None => Some(due),
        }
    }
}
