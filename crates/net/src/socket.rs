//! A UDP socket with batches: segmentation and receive offload, congestion marks, large buffers.

use noq_udp::{BATCH_SIZE, EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use skyhaul_quic::Ecn;
use skyhaul_units::Bytes;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

/// A bound, non-blocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: Vec<Vec<u8>>,
    metas: Vec<RecvMeta>,
    granted: Buffers,
}

/// What the kernel granted of the buffers asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Send buffer.
    pub send: Bytes,
    /// Receive buffer.
    pub receive: Bytes,
    /// What was asked for, each.
    pub wanted: Bytes,
}

impl Buffers {
    /// What to do for the buffers wanted, where they were not granted.
    pub fn advice(&self) -> Option<String> {
        let short = |granted: Bytes, name: &'static str| (granted < self.wanted).then_some((granted, name));
        let of = [short(self.receive, "net.core.rmem_max"), short(self.send, "net.core.wmem_max")];
        let names: Vec<&str> = of.iter().flatten().map(|(_, name)| *name).collect();
        let least = of.iter().flatten().map(|(granted, _)| *granted).min()?;
        let set: Vec<String> = names.iter().map(|name| format!("{name}={}", self.wanted.as_u64())).collect();
        Some(format!(
            "the system grants socket buffers of {least} of {} wanted; against loss at this host: sysctl -w {}",
            self.wanted,
            set.join(" ")
        ))
    }
}

/// Asked for in each direction: 30 ms at 4 Gbit/s, 350 ms at 300 Mbit/s, longer than the process is ever kept from
/// running there. The kernel counts its own book-keeping in, about as much again.
const WANTED: Bytes = Bytes::mib(16);
/// Receive batches taken before sending gets its turn: 4 MB at most.
const BATCHES: usize = 4;

impl Socket {
    /// Binds to `address`.
    ///
    /// # Errors
    /// The address is in use, not of this host, or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let wanted = WANTED.as_usize();
        // Refused or cut down by the system's ceiling: what was granted is read back and reported.
        let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), wanted);
        let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), wanted);
        // The kernel keeps, and tells, twice what it grants (socket(7)).
        let granted = Buffers {
            send: Bytes::of(state.send_buffer_size(UdpSockRef::from(&socket))? / 2),
            receive: Bytes::of(state.recv_buffer_size(UdpSockRef::from(&socket))? / 2),
            wanted: WANTED,
        };
        let size = 2048 * state.gro_segments().get();
        let buffers = vec![vec![0; size]; BATCH_SIZE.min(8)];
        let metas = vec![RecvMeta::default(); buffers.len()];
        Ok(Self { socket, state, buffers, metas, granted })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// What the kernel granted of the buffers asked for.
    pub const fn buffers(&self) -> Buffers {
        self.granted
    }

    /// How many datagrams of one size may go in one call.
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments().get()
    }

    /// Sends a datagram or a batch; `false` where the socket's buffer is full.
    ///
    /// # Errors
    /// As the system says; the datagrams are lost, as on a line.
    pub fn send(&self, transmit: &Outgoing<'_>) -> io::Result<bool> {
        let transmit = Transmit {
            destination: transmit.to,
            ecn: transmit.ecn.map(to_codepoint),
            contents: transmit.contents,
            segment_size: transmit.segment_size,
            src_ip: transmit.from,
        };
        match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Takes what has arrived, some batches at most, and hands over each datagram.
    ///
    /// # Errors
    /// As the system says; an earlier datagram's ICMP answer is not one.
    pub fn receive(&mut self, mut take: impl FnMut(Incoming<'_>)) -> io::Result<()> {
        for _ in 0..BATCHES {
            let mut slices: Vec<IoSliceMut<'_>> =
                self.buffers.iter_mut().map(|one| IoSliceMut::new(one)).collect();
            let count = match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut self.metas) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => continue,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            for (meta, buffer) in self.metas.iter().zip(&self.buffers).take(count) {
                let ecn = meta.ecn.map(from_codepoint);
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    take(Incoming { from: meta.addr, to: meta.dst_ip, ecn, contents: datagram });
                }
            }
        }
        Ok(())
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A datagram, or a batch of one size, to send.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// The local address to send from, where several could be.
    pub from: Option<std::net::IpAddr>,
    /// Congestion mark, as in the IP header.
    pub ecn: Option<Ecn>,
    /// The datagrams, one after the other.
    pub contents: &'a [u8],
    /// The size of each but the last, where there are several.
    pub segment_size: Option<usize>,
}

/// A datagram that arrived.
#[derive(Debug)]
pub struct Incoming<'a> {
    /// Who sent it.
    pub from: SocketAddr,
    /// The local address it was sent to.
    pub to: Option<std::net::IpAddr>,
    /// Congestion mark, as in the IP header.
    pub ecn: Option<Ecn>,
    /// Its payload.
    pub contents: &'a [u8],
}

const fn to_codepoint(ecn: Ecn) -> EcnCodepoint {
    match ecn {
        Ecn::Ect0 => EcnCodepoint::Ect0,
        Ecn::Ect1 => EcnCodepoint::Ect1,
        Ecn::Ce => EcnCodepoint::Ce,
    }
}

const fn from_codepoint(ecn: EcnCodepoint) -> Ecn {
    match ecn {
        EcnCodepoint::Ect0 => Ecn::Ect0,
        EcnCodepoint::Ect1 => Ecn::Ect1,
        EcnCodepoint::Ce => Ecn::Ce,
    }
}
