//! A kernel connection for measurements that no tool of today's distributions supports.

use crate::gone::Gone;
use rustix::net::{AddressFamily, Protocol as Number, SocketType, ipproto, sockopt};
use skyhaul_emulator::{EmulatorError, LinkEnd, Namespace};
use skyhaul_net::Clock;
use skyhaul_units::{ByteCount, Duration};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Which of the kernel's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Tcp,
    /// Several paths as one (RFC 8684); iperf3 of today's distributions cannot ask for it.
    Multipath,
}

/// A connection from place `a` to place `b`.
#[derive(Debug)]
pub struct KernelConnection {
    pub sender: TcpStream,
    pub receiver: TcpStream,
}

impl KernelConnection {
    /// With a congestion control of this name, or the system's.
    pub fn open(lab: &str, protocol: Protocol, control: Option<&str>) -> Result<Self, Gone> {
        let far = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
        let listener = inside(lab, LinkEnd::B, || {
            let socket = socket(protocol, control)?;
            sockopt::set_socket_reuseaddr(&socket, true)?;
            rustix::net::bind(&socket, &far)?;
            rustix::net::listen(&socket, 1)?;
            Ok(TcpListener::from(socket))
        })?;
        let to = SocketAddrV4::new(LinkEnd::B.ipv4(0), PORT);
        let sender = inside(lab, LinkEnd::A, || {
            let socket = socket(protocol, control)?;
            rustix::net::connect(&socket, &to)?;
            Ok(TcpStream::from(socket))
        })?;
        let (receiver, _) = listener.accept().map_err(broken)?;
        receiver.set_read_timeout(Some(STALL.to_std())).map_err(broken)?;
        sender.set_write_timeout(Some(STALL.to_std())).map_err(broken)?;
        Ok(Self { sender, receiver })
    }

    /// Sends as fast as possible. Returns the bytes received in about `span` after the connection.
    pub fn measure(
        &self,
        span: Duration,
        stop: &AtomicBool,
    ) -> Result<(ByteCount, Duration), Gone> {
        let done = AtomicBool::new(false);
        let received = std::thread::scope(|scope| {
            scope.spawn(|| {
                let bytes = vec![0x5a; 1 << 16];
                // A full buffer is not an error; the receiver reports a broken connection.
                while !done.load(Ordering::Relaxed) {
                    let _ = (&self.sender).write(&bytes);
                }
            });
            let received = receive(&self.receiver, span, stop);
            done.store(true, Ordering::Relaxed);
            received
        });
        match stop.load(Ordering::Relaxed) {
            true => Err(Gone::Interrupted),
            false => received.map_err(broken),
        }
    }
}

fn receive(
    mut from: &TcpStream,
    limit: Duration,
    stop: &AtomicBool,
) -> io::Result<(ByteCount, Duration)> {
    let (clock, mut room, mut bytes) = (Clock::start(), vec![0; 1 << 18], ByteCount::ZERO);
    let start = clock.now();
    loop {
        let span = clock.now().since(start);
        if span >= limit || stop.load(Ordering::Relaxed) {
            return Ok((bytes, span));
        }
        match from.read(&mut room) {
            Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok(length) => bytes += ByteCount::of(length),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn socket(protocol: Protocol, control: Option<&str>) -> io::Result<OwnedFd> {
    let number: Option<Number> = match protocol {
        Protocol::Tcp => None,
        Protocol::Multipath => Some(ipproto::MPTCP),
    };
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, number)?;
    if let Some(control) = control {
        sockopt::set_tcp_congestion(&socket, control)?;
    }
    Ok(socket)
}

fn inside<T: Send>(
    lab: &str,
    place: LinkEnd,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, Gone> {
    let made = Namespace::new(lab, place).enter(|| Ok::<_, EmulatorError>(work()))?;
    made.map_err(|error| {
        Gone::Failed(format!("a connection of the kernel cannot be used ({error})"))
    })
}

/// What a connection that broke comes to.
#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err wants")]
pub fn broken(error: io::Error) -> Gone {
    Gone::Failed(format!("the connection broke ({error})"))
}

/// Where its far end listens.
const PORT: u16 = 5201;

/// How long a call may wait, so that the end is noticed.
const STALL: Duration = Duration::from_millis(200);
