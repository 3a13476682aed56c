//! QUIC over UDP: an endpoint and its socket.

use super::{Arrived, Left};
use crate::Clock;
use crate::socket::{AT_ONCE, Outgoing, Socket};
use rustix::event::{PollFd, PollFlags};
use skyhaul_engine::{Received, Transmit};
use skyhaul_quic::Endpoint;
use skyhaul_units::{Bytes, Instant};
use std::io;
use std::os::fd::AsFd as _;

/// An endpoint and its socket.
pub struct UdpCarrier {
    endpoint: Endpoint,
    socket: Socket,
    /// The batch that leaves next; kept where the socket's buffer is full.
    batch: Vec<u8>,
    unsent: Option<Transmit>,
    send_errors: u64,
}

/// System calls for what arrived before sending has its turn: 2 MB at most, 4 ms at 4 Gbit/s.
const RECEIVES: usize = 4;
/// System calls for what leaves before receiving has its turn: 1 MB at most, 2 ms at 4 Gbit/s.
const TRANSMITS: usize = 16;

impl UdpCarrier {
    /// `endpoint` on `socket`.
    pub const fn new(endpoint: Endpoint, socket: Socket) -> Self {
        Self { endpoint, socket, batch: Vec::new(), unsent: None, send_errors: 0 }
    }

    /// The socket.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// What speaks QUIC there.
    pub const fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) const fn endpoint_mut(&mut self) -> &mut Endpoint {
        &mut self.endpoint
    }

    pub(crate) const fn send_errors(&self) -> u64 {
        self.send_errors
    }

    pub(crate) fn receive(&mut self, clock: &Clock) -> io::Result<Arrived> {
        let mut taken = Bytes::ZERO;
        for _ in 0..RECEIVES {
            let mut arrived = None;
            let endpoint = &mut self.endpoint;
            let count = self.socket.receive(|incoming| {
                // Read after the datagrams: a reading from before may be older than their arrival by as long as this thread
                // was kept from running, and a round trip that looks too short makes every later one look like a queue.
                let now = *arrived.get_or_insert_with(|| clock.now());
                let (remote, local_ip, ecn) = (incoming.from, incoming.to, incoming.ecn);
                for payload in incoming {
                    taken += Bytes::of(payload.len());
                    endpoint.handle_datagram(now, Received { remote, local_ip, ecn, payload });
                }
            })?;
            if count < AT_ONCE {
                return Ok(Arrived::all(taken));
            }
        }
        Ok(Arrived::More)
    }

    pub(crate) fn transmit(&mut self, now: Instant) -> Left {
        let mut left = Left::Nothing;
        for _ in 0..TRANSMITS {
            let unsent = self.unsent.take();
            let next = unsent.or_else(|| self.endpoint.poll_transmit(now, &mut self.batch));
            let Some(transmit) = next else { return left };
            let outgoing = Outgoing {
                to: transmit.to,
                from: transmit.src_ip,
                ecn: transmit.ecn,
                contents: &self.batch[..transmit.size],
                segment_size: transmit.segment_size,
            };
            match self.socket.send(&outgoing) {
                Ok(true) => left = Left::All,
                Ok(false) => {
                    self.unsent = Some(transmit);
                    return left;
                }
                Err(_) => {
                    self.send_errors += 1;
                    left = Left::All;
                }
            }
        }
        Left::Part
    }

    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        let writable = if self.unsent.is_some() { PollFlags::OUT } else { PollFlags::empty() };
        PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN | writable)
    }
}
