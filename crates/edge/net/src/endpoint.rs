//! The kinds of endpoints that a driver serves. Each owns its sockets.

mod tcp;
mod udp;

pub use tcp::{TcpConfig, TcpEndpoint};
pub use udp::UdpEndpoint;

use crate::left_socket::LeftSocket;
use crate::turn::{Arrived, Left};
use crate::{Clock, Socket, ThreadedEndpoint, drops};
use core::net::SocketAddr;
use rustix::event::PollFd;
use skyhaul_quic::Fingerprint;
use skyhaul_sessions::{ConnectError, ConnectionId, ConnectionPurpose, EndpointEvent};
use skyhaul_transport::Path;
use skyhaul_units::Instant;
use std::collections::BTreeSet;
use std::io;

/// An endpoint of any kind.
pub enum AnyEndpoint {
    /// QUIC over UDP.
    Udp(Box<UdpEndpoint>),
    /// TLS over TCP.
    Tcp(Box<TcpEndpoint>),
    /// QUIC over UDP, on a thread of its own.
    Lane(Box<ThreadedEndpoint>),
}

impl AnyEndpoint {
    /// Takes what has arrived.
    ///
    /// # Errors
    /// The socket failed.
    pub(crate) fn receive(&mut self, clock: &Clock) -> io::Result<Arrived> {
        match self {
            Self::Udp(endpoint) => endpoint.receive(clock),
            Self::Tcp(endpoint) => endpoint.receive(clock),
            Self::Lane(_) => Ok(Arrived::Nothing),
        }
    }

    /// Sends what is ready.
    ///
    /// # Errors
    /// The poller of the sockets failed.
    pub(crate) fn transmit(&mut self, clock: &Clock) -> io::Result<Left> {
        match self {
            Self::Udp(endpoint) => Ok(endpoint.transmit(clock.now())),
            Self::Tcp(endpoint) => endpoint.transmit(clock),
            Self::Lane(endpoint) => {
                endpoint.hand_over();
                Ok(Left::Nothing)
            }
        }
    }

    /// What to wait for. A lane wakes the driver itself.
    pub(crate) fn poll_fd(&self) -> Option<PollFd<'_>> {
        match self {
            Self::Udp(endpoint) => Some(endpoint.poll_fd()),
            Self::Tcp(endpoint) => Some(endpoint.poll_fd()),
            Self::Lane(_) => None,
        }
    }

    /// Whether closing datagrams are still to be sent on this thread. TCP retransmits by itself;
    /// where the node goes on in another process, its far ends' last bytes are read. A lane waits
    /// on its own thread.
    pub(crate) fn is_closing(&self) -> bool {
        match self {
            Self::Udp(endpoint) => endpoint.is_closing(),
            Self::Tcp(endpoint) => endpoint.is_closing(),
            Self::Lane(_) => false,
        }
    }

    /// Makes a lane send its closing datagrams, so that all lanes wait at the same time.
    pub(crate) fn begin_farewell(&mut self) {
        match self {
            Self::Udp(_) | Self::Tcp(_) => {}
            Self::Lane(endpoint) => endpoint.begin_stop(),
        }
    }

    /// Waits until a lane has sent its closing datagrams.
    pub(crate) fn farewell(&mut self) {
        match self {
            Self::Udp(_) | Self::Tcp(_) => {}
            Self::Lane(endpoint) => endpoint.stop(),
        }
    }

    /// Closes all connections, because this node goes on in another process. From now on calls
    /// wait for that.
    pub(crate) fn close_to_go_on(&mut self, now: Instant) {
        match self {
            Self::Udp(endpoint) => endpoint.close_to_go_on(now),
            Self::Tcp(endpoint) => endpoint.close_to_go_on(now),
            // Its thread says that the node stops: no node that is upgraded has one.
            Self::Lane(_) => {}
        }
    }

    /// The socket that waits for calls, and the calls that came since.
    pub(crate) fn leave(&mut self) -> io::Result<Option<LeftSocket>> {
        match self {
            Self::Udp(endpoint) => endpoint.leave().map(Some),
            Self::Tcp(endpoint) => endpoint.leave(),
            Self::Lane(_) => Ok(None),
        }
    }

    /// The UDP socket, where it has one on this thread.
    pub fn socket(&self) -> Option<&Socket> {
        match self {
            Self::Udp(endpoint) => Some(endpoint.socket()),
            Self::Tcp(_) | Self::Lane(_) => None,
        }
    }

    /// The kernel's inode number of its UDP socket.
    pub fn inode(&self) -> Option<u64> {
        match self {
            Self::Udp(endpoint) => drops::inode(endpoint.socket()).ok(),
            Self::Tcp(_) => None,
            Self::Lane(endpoint) => endpoint.inode(),
        }
    }

    /// The address that it listens at, or connects from; `None` where that is not known before it
    /// connects.
    pub fn local_addr(&self) -> Option<SocketAddr> {
        match self {
            Self::Udp(endpoint) => endpoint.socket().local_addr().ok(),
            Self::Tcp(endpoint) => endpoint.local_addr(),
            Self::Lane(endpoint) => endpoint.local_addr(),
        }
    }

    /// Datagrams that the system refused to send; they count as lost on the line.
    pub fn send_errors(&self) -> u64 {
        match self {
            Self::Udp(endpoint) => endpoint.send_errors(),
            Self::Tcp(_) => 0,
            Self::Lane(endpoint) => endpoint.send_errors(),
        }
    }

    /// Changes which nodes may connect. Existing connections stay.
    pub fn set_trusted(&mut self, trusted: BTreeSet<Fingerprint>) {
        match self {
            Self::Udp(endpoint) => endpoint.quic_mut().set_trusted(trusted),
            Self::Tcp(endpoint) => endpoint.set_trusted(trusted),
            Self::Lane(endpoint) => endpoint.set_trusted(trusted),
        }
    }

    fn inner(&self) -> &dyn skyhaul_sessions::Endpoint {
        match self {
            Self::Udp(endpoint) => endpoint.quic(),
            Self::Tcp(endpoint) => &**endpoint,
            Self::Lane(endpoint) => &**endpoint,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn skyhaul_sessions::Endpoint {
        match self {
            Self::Udp(endpoint) => endpoint.quic_mut(),
            Self::Tcp(endpoint) => &mut **endpoint,
            Self::Lane(endpoint) => &mut **endpoint,
        }
    }
}

impl From<UdpEndpoint> for AnyEndpoint {
    fn from(endpoint: UdpEndpoint) -> Self {
        Self::Udp(Box::new(endpoint))
    }
}

impl From<TcpEndpoint> for AnyEndpoint {
    fn from(endpoint: TcpEndpoint) -> Self {
        Self::Tcp(Box::new(endpoint))
    }
}

impl From<ThreadedEndpoint> for AnyEndpoint {
    fn from(endpoint: ThreadedEndpoint) -> Self {
        Self::Lane(Box::new(endpoint))
    }
}

impl skyhaul_sessions::Endpoint for AnyEndpoint {
    fn call(
        &mut self,
        now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionId, ConnectError> {
        self.inner_mut().call(now, remote, expected, purpose)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path> {
        self.inner_mut().connection(id)
    }

    fn remote(&self, id: ConnectionId) -> Option<SocketAddr> {
        self.inner().remote(id)
    }

    fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.inner_mut().poll_event()
    }

    fn next_timeout(&self) -> Option<Instant> {
        self.inner().next_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.inner_mut().handle_timeout(now);
    }
}
