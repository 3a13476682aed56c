//! The kinds of carriers that a driver moves bytes for. Each owns its sockets.

mod tcp;
mod udp;

pub use tcp::{TcpCarrier, TcpConfig};
pub use udp::UdpCarrier;

use crate::{Clock, LaneCarrier, Socket, drops};
use core::net::SocketAddr;
use rustix::event::PollFd;
use skyhaul_quic::Fingerprint;
use skyhaul_sessions::{CarrierEvent, ConnectError, ConnectionId};
use skyhaul_transport::Path;
use skyhaul_units::{ByteCount, Instant};
use std::collections::BTreeSet;
use std::io;

/// A carrier of whatever kind.
pub enum Carrier {
    /// QUIC over UDP.
    Udp(Box<UdpCarrier>),
    /// TLS over TCP.
    Tcp(Box<TcpCarrier>),
    /// QUIC over UDP, on a thread of its own.
    Lane(Box<LaneCarrier>),
}

/// How much was there of what had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Arrived {
    Nothing,
    /// Less than [`PLENTY`], and all of it was taken.
    Little,
    Plenty,
    /// More than is taken at once.
    More,
}

/// What a carrier's turn to send came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Left {
    /// Nothing was ready, or the sockets are full.
    Nothing,
    /// All that was ready.
    All,
    /// As much as goes at once; there may be more.
    Part,
}

/// So much at a time, 64 datagrams of 1500 bytes, needs no gathering: waking up for it costs less than it does, and what
/// comes meanwhile might not fit the socket.
const PLENTY: ByteCount = ByteCount::kib(96);

impl Arrived {
    /// All of so much was taken.
    fn all(taken: ByteCount) -> Self {
        match taken {
            ByteCount::ZERO => Self::Nothing,
            taken if taken < PLENTY => Self::Little,
            _ => Self::Plenty,
        }
    }
}

impl Carrier {
    /// Takes what has arrived.
    ///
    /// # Errors
    /// The socket failed.
    pub(crate) fn receive(&mut self, clock: &Clock) -> io::Result<Arrived> {
        match self {
            Self::Udp(carrier) => carrier.receive(clock),
            Self::Tcp(carrier) => carrier.receive(clock),
            Self::Lane(_) => Ok(Arrived::Nothing),
        }
    }

    /// Sends what is ready.
    ///
    /// # Errors
    /// The system cannot say any more when a socket is ready.
    pub(crate) fn transmit(&mut self, clock: &Clock) -> io::Result<Left> {
        match self {
            Self::Udp(carrier) => Ok(carrier.transmit(clock.now())),
            Self::Tcp(carrier) => carrier.transmit(clock),
            Self::Lane(carrier) => {
                carrier.hand_over();
                Ok(Left::Nothing)
            }
        }
    }

    /// What to wait for; a lane wakes by itself.
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        match self {
            Self::Udp(carrier) => Some(carrier.poll_fd()),
            Self::Tcp(carrier) => Some(carrier.poll_fd()),
            Self::Lane(_) => None,
        }
    }

    /// Sees to it that what is to be told of the end leaves.
    pub(crate) fn farewell(&mut self) {
        match self {
            Self::Udp(_) | Self::Tcp(_) => {}
            Self::Lane(carrier) => carrier.stop(),
        }
    }

    /// The UDP socket, where it has one on this thread.
    pub fn socket(&self) -> Option<&Socket> {
        match self {
            Self::Udp(carrier) => Some(carrier.socket()),
            Self::Tcp(_) | Self::Lane(_) => None,
        }
    }

    /// By which the kernel knows its UDP socket.
    pub fn inode(&self) -> Option<u64> {
        match self {
            Self::Udp(carrier) => drops::inode(carrier.socket()).ok(),
            Self::Tcp(_) => None,
            Self::Lane(carrier) => carrier.inode(),
        }
    }

    /// Where it takes calls, or calls from; `None` where that is not known before a call is made.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp(carrier) => carrier.socket().local_addr().ok(),
            Self::Tcp(carrier) => carrier.local_addr(),
            Self::Lane(carrier) => carrier.local_addr(),
        }
    }

    /// Datagrams that the system refused to send; they count as lost on the line.
    pub fn send_errors(&self) -> u64 {
        match self {
            Self::Udp(carrier) => carrier.send_errors(),
            Self::Tcp(_) => 0,
            Self::Lane(carrier) => carrier.send_errors(),
        }
    }

    /// Changes whose calls are taken. Connections that stand stay.
    pub fn set_trusted(&mut self, trusted: BTreeSet<Fingerprint>) {
        match self {
            Self::Udp(carrier) => carrier.endpoint_mut().set_trusted(trusted),
            Self::Tcp(carrier) => carrier.set_trusted(trusted),
            Self::Lane(carrier) => carrier.set_trusted(trusted),
        }
    }

    fn inner(&self) -> &dyn skyhaul_sessions::Carrier {
        match self {
            Self::Udp(carrier) => carrier.endpoint(),
            Self::Tcp(carrier) => &**carrier,
            Self::Lane(carrier) => &**carrier,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn skyhaul_sessions::Carrier {
        match self {
            Self::Udp(carrier) => carrier.endpoint_mut(),
            Self::Tcp(carrier) => &mut **carrier,
            Self::Lane(carrier) => &mut **carrier,
        }
    }
}

impl From<UdpCarrier> for Carrier {
    fn from(carrier: UdpCarrier) -> Self {
        Self::Udp(Box::new(carrier))
    }
}

impl From<TcpCarrier> for Carrier {
    fn from(carrier: TcpCarrier) -> Self {
        Self::Tcp(Box::new(carrier))
    }
}

impl From<LaneCarrier> for Carrier {
    fn from(carrier: LaneCarrier) -> Self {
        Self::Lane(Box::new(carrier))
    }
}

impl skyhaul_sessions::Carrier for Carrier {
    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        joins: bool,
    ) -> Result<ConnectionId, ConnectError> {
        self.inner_mut().call(now, remote, expected, joins)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path> {
        self.inner_mut().connection(id)
    }

    fn poll_event(&mut self) -> Option<CarrierEvent> {
        self.inner_mut().poll_event()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.inner().next_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner_mut().handle_timeout(now);
    }
}
