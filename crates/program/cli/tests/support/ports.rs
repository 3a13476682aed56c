//! Addresses of this machine that tests give to other programs.

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU16, Ordering};

const FIRST_PORT: u16 = 20_000;
const PORTS: u16 = 12_000;
/// More than the ports of a few tests.
const APART: u16 = 97;

/// An address that a program can bind again and again, over UDP and TCP. Its port is not one of
/// those that the system gives to other sockets (32768 to 60999 by default), and each call returns
/// another one.
pub fn free_address() -> SocketAddr {
    static CALLS: AtomicU16 = AtomicU16::new(0);
    // Test binaries that run at the same time begin with ports that are far apart, though their
    // process numbers are not: a port is free until its program binds it.
    let begin = (std::process::id() as u16).wrapping_mul(APART) % PORTS;
    let is_free = |address: &SocketAddr| {
        UdpSocket::bind(address).is_ok() && TcpListener::bind(address).is_ok()
    };
    (0..PORTS)
        .map(|_| FIRST_PORT + begin.wrapping_add(CALLS.fetch_add(1, Ordering::Relaxed)) % PORTS)
        .map(|port| SocketAddr::from(([127, 0, 0, 1], port)))
        .find(is_free)
        .unwrap()
}

/// The port of such an address.
pub fn free_port() -> u16 {
    free_address().port()
}

/// A TCP port that refuses connections, and that nobody else gets, until this is dropped.
pub struct ClosedTcp(OwnedFd);

impl ClosedTcp {
    pub fn new() -> Self {
        let fd = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        // Bound, and never told to listen.
        bind(&fd, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        Self(fd)
    }

    pub fn address(&self) -> SocketAddr {
        getsockname(&self.0).unwrap().try_into().unwrap()
    }
}

/// A UDP port that answers datagrams with "unreachable", and that nobody else gets, until this is
/// dropped.
pub struct ClosedUdp(UdpSocket);

impl ClosedUdp {
    pub fn new() -> Self {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        // It takes datagrams of this sender alone; the kernel refuses those of others.
        socket.connect((Ipv4Addr::LOCALHOST, 9)).unwrap();
        Self(socket)
    }

    pub fn address(&self) -> SocketAddr {
        self.0.local_addr().unwrap()
    }
}
