//! A UDP socket with batches: segmentation and receive offload, congestion marks, large buffers.

use crate::option;
use bytes::BytesMut;
use noq_udp::{EcnCodepoint, RecvMeta, Transmit, UdpSockRef, UdpSocketState};
use rustix::net::sockopt::{set_socket_reuseport, socket_type};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use skyhaul_sessions::Ecn;
use skyhaul_units::ByteCount;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A bound, non-blocking UDP socket.
#[derive(Debug)]
pub struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffers: [BytesMut; AT_ONCE],
    metas: [RecvMeta; AT_ONCE],
    granted: Buffers,
}

/// The socket buffers that the kernel granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buffers {
    /// Send buffer.
    pub send: ByteCount,
    /// Receive buffer.
    pub receive: ByteCount,
    /// The size asked for, of each.
    pub wanted: ByteCount,
}

impl Buffers {
    /// What to do to get the buffers asked for, if they were not granted.
    pub fn advice(&self) -> Option<String> {
        let short = |granted: ByteCount, name: &'static str| {
            (granted < self.wanted).then_some((granted, name))
        };
        let of = [short(self.receive, "net.core.rmem_max"), short(self.send, "net.core.wmem_max")];
        let names: Vec<&str> = of.iter().flatten().map(|(_, name)| *name).collect();
        let least = of.iter().flatten().map(|(granted, _)| *granted).min()?;
        let set: Vec<String> =
            names.iter().map(|name| format!("{name}={}", self.wanted.as_u64())).collect();
        Some(format!(
            "the system grants {least} of the {} socket buffers requested; to avoid loss on this \
            host: sysctl -w {}",
            self.wanted,
            set.join(" ")
        ))
    }
}

/// The size asked for in each direction: 30 ms at 4 Gbit/s, 350 ms at 300 Mbit/s, longer than the
/// process is usually interrupted at these rates. The kernel doubles it for its own overhead.
const WANTED: ByteCount = ByteCount::mib(16);
/// Messages received by one system call; each has up to 64 datagrams that the kernel merged (GRO).
pub const AT_ONCE: usize = 8;
/// The largest message: the longest UDP payload and a merged message are both smaller.
const MESSAGE_MAX: usize = 1 << 16;
/// A buffer serves several messages before it is renewed.
const BUFFER: usize = 4 * MESSAGE_MAX;

impl Socket {
    /// Binds to `address`.
    ///
    /// # Errors
    /// The address is in use, not of this host, or not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<Self> {
        Self::of(UdpSocket::bind(address)?)
    }

    /// Binds to `address`, which further sockets of this user may share (SO_REUSEPORT): the system
    /// hands all datagrams from one address and port to one of them, which its hash picks.
    ///
    /// # Errors
    /// As [`Socket::bind`].
    pub fn bind_shared(address: SocketAddr) -> io::Result<Self> {
        let family = if address.is_ipv6() { AddressFamily::INET6 } else { AddressFamily::INET };
        let socket = socket_with(family, SocketType::DGRAM, SocketFlags::CLOEXEC, None)?;
        set_socket_reuseport(&socket, true)?;
        rustix::net::bind(&socket, &address)?;
        Self::of(socket.into())
    }

    /// Binds to `address` and keeps to one network interface.
    ///
    /// # Errors
    /// As [`Socket::bind`]; there is no such interface; before Linux 5.7, the process has no
    /// CAP_NET_RAW.
    pub fn bind_on(address: SocketAddr, interface: &str) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        crate::interface::keep_on(&socket, interface)?;
        Self::of(socket)
    }

    /// A socket that is bound already.
    ///
    /// # Errors
    /// It is no UDP socket.
    pub fn given(socket: OwnedFd) -> io::Result<Self> {
        if socket_type(&socket)? != SocketType::DGRAM {
            return Err(io::Error::other("it is no UDP socket"));
        }
        Self::of(socket.into())
    }

    fn of(socket: UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        let wanted = WANTED.as_usize();
        // With CAP_NET_ADMIN the size may exceed the system's limit. Otherwise the system refuses
        // or reduces it; the granted size is read back and reported.
        let number = libc::c_int::try_from(wanted).unwrap_or(libc::c_int::MAX);
        if option::set(&socket, libc::SOL_SOCKET, libc::SO_SNDBUFFORCE, number).is_err() {
            let _ = state.set_send_buffer_size(UdpSockRef::from(&socket), wanted);
        }
        if option::set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, number).is_err() {
            let _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), wanted);
        }
        // The kernel keeps, and reports, twice what it grants (socket(7)).
        let granted = Buffers {
            send: ByteCount::of(state.send_buffer_size(UdpSockRef::from(&socket))? / 2),
            receive: ByteCount::of(state.recv_buffer_size(UdpSockRef::from(&socket))? / 2),
            wanted: WANTED,
        };
        let (buffers, metas) = Default::default();
        Ok(Self { socket, state, buffers, metas, granted })
    }

    /// The address it is bound to.
    ///
    /// # Errors
    /// As the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    /// The socket buffers that the kernel granted.
    pub const fn buffers(&self) -> Buffers {
        self.granted
    }

    /// How many datagrams of one size may be sent by one call (GSO).
    pub fn max_segments(&self) -> usize {
        self.state.max_gso_segments().get()
    }

    /// Sends a datagram or a batch; returns `false` if the socket's buffer is full. A batch that is
    /// too large for one call is sent in several. If the buffer becomes full between them, all of
    /// the batch must be sent again, and part of it arrives twice.
    ///
    /// # Errors
    /// As the system says; the datagrams are lost, as if on the line.
    pub fn send(&self, outgoing: &OutgoingDatagrams<'_>) -> io::Result<bool> {
        let at_once = self.max_segments();
        match outgoing.segment_size {
            Some(size) if outgoing.contents.len() > size * at_once => {
                for part in outgoing.contents.chunks(size * at_once) {
                    let segment_size = (part.len() > size).then_some(size);
                    if !self.send_part(outgoing, part, segment_size)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            size => self.send_part(outgoing, outgoing.contents, size),
        }
    }

    fn send_part(
        &self,
        outgoing: &OutgoingDatagrams<'_>,
        contents: &[u8],
        segment_size: Option<usize>,
    ) -> io::Result<bool> {
        let transmit = Transmit {
            destination: outgoing.to,
            ecn: outgoing.ecn.map(to_codepoint),
            contents,
            segment_size,
            src_ip: outgoing.from,
        };
        match self.state.try_send(UdpSockRef::from(&self.socket), &transmit) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Receives up to eight messages, and hands over each. Returns how many there were; fewer
    /// than that means that there are no more now.
    ///
    /// # Errors
    /// As the system says; an earlier datagram's ICMP answer is not one.
    pub fn receive(&mut self, mut take: impl FnMut(ReceivedBatch)) -> io::Result<usize> {
        for buffer in &mut self.buffers {
            if buffer.len() < MESSAGE_MAX {
                // The memory is used again if no earlier datagram in it is still in use.
                buffer.clear();
                buffer.resize(BUFFER, 0);
            }
        }
        let mut slices =
            self.buffers.each_mut().map(|buffer| IoSliceMut::new(&mut buffer[..MESSAGE_MAX]));
        let count =
            match self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut self.metas) {
                Ok(count) => count,
                Err(error) if is_transient(&error) => return Ok(0),
                Err(error) => return Err(error),
            };
        for (meta, buffer) in self.metas.iter().zip(&mut self.buffers).take(count) {
            take(ReceivedBatch {
                from: meta.addr,
                to: meta.dst_ip,
                ecn: meta.ecn.map(from_codepoint),
                contents: buffer.split_to(meta.len),
                segment_size: meta.stride.max(1),
            });
        }
        Ok(count)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// A datagram, or a batch of one size, to send.
#[derive(Debug)]
pub struct OutgoingDatagrams<'a> {
    /// The receiver.
    pub to: SocketAddr,
    /// The local address to send from, if there are several.
    pub from: Option<std::net::IpAddr>,
    /// Congestion mark, as in the IP header.
    pub ecn: Option<Ecn>,
    /// The datagrams, one after the other.
    pub contents: &'a [u8],
    /// The size of each but the last, if there are several.
    pub segment_size: Option<usize>,
}

/// Datagrams that the kernel merged: of one size but for the last, from one sender, with one mark.
#[derive(Debug)]
pub struct ReceivedBatch {
    /// The sender.
    pub from: SocketAddr,
    /// The local address they were sent to.
    pub to: Option<std::net::IpAddr>,
    /// Congestion mark, as in the IP header.
    pub ecn: Option<Ecn>,
    contents: BytesMut,
    segment_size: usize,
}

impl Iterator for ReceivedBatch {
    type Item = BytesMut;

    /// The next datagram's payload.
    fn next(&mut self) -> Option<BytesMut> {
        if self.contents.is_empty() {
            return None;
        }
        let size = self.segment_size.min(self.contents.len());
        Some(self.contents.split_to(size))
    }
}

/// Nothing there, or the ICMP answer to something sent before.
fn is_transient(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionRefused, Interrupted, WouldBlock};
    matches!(error.kind(), WouldBlock | ConnectionRefused | Interrupted)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// All datagrams that come within two seconds, until there are `count`.
    fn received(socket: &mut Socket, count: usize) -> Vec<(Option<Ecn>, Vec<u8>)> {
        let mut got = Vec::new();
        while got.len() < count {
            let timeout = rustix::event::Timespec { tv_sec: 2, tv_nsec: 0 };
            let mut fds =
                [rustix::event::PollFd::new(&socket.socket, rustix::event::PollFlags::IN)];
            if rustix::event::poll(&mut fds, Some(&timeout)).unwrap() == 0 {
                break;
            }
            socket
                .receive(|incoming| {
                    let ecn = incoming.ecn;
                    got.extend(incoming.map(|datagram| (ecn, datagram.to_vec())));
                })
                .unwrap();
        }
        got
    }

    #[test]
    fn batches_of_any_length_arrive_as_single_datagrams_with_their_mark() {
        let here = SocketAddr::from(([127, 0, 0, 1], 0));
        let (near, mut far) = (Socket::bind(here).unwrap(), Socket::bind(here).unwrap());
        let to = far.local_addr().unwrap();
        // More than the system takes in one call, and a last one that is shorter.
        let contents: Vec<u8> = (0..100 * 300 + 7).map(|n| (n / 300) as u8).collect();
        let outgoing = OutgoingDatagrams {
            to,
            from: None,
            ecn: Some(Ecn::Ect0),
            contents: &contents,
            segment_size: Some(300),
        };
        assert!(near.send(&outgoing).unwrap());
        let got = received(&mut far, 101);
        assert_eq!(got.len(), 101);
        for (index, (ecn, datagram)) in got.iter().enumerate() {
            assert_eq!(*ecn, Some(Ecn::Ect0));
            assert_eq!(*datagram, vec![index as u8; if index < 100 { 300 } else { 7 }]);
        }
    }

    #[test]
    fn what_was_not_granted_is_said_with_its_settings() {
        let buffers = |send, receive| Buffers {
            send: ByteCount::mib(send),
            receive: ByteCount::mib(receive),
            wanted: ByteCount::mib(16),
        };
        assert_eq!(buffers(16, 17).advice(), None);
        let advice = buffers(16, 4).advice().unwrap();
        assert!(
            advice.contains("4 MiB of the 16 MiB") && advice.contains("net.core.rmem_max=16777216"),
            "{advice}"
        );
        assert!(!advice.contains("wmem"), "{advice}");
        assert!(buffers(1, 4).advice().unwrap().contains("net.core.wmem_max=16777216"));
    }
}
