//! Kernel multipath TCP: a connection of our own, because iperf3 of today's distributions cannot ask for one.

use super::bench::{Bench, Gone};
use super::tool::PORT;
use rustix::net::{AddressFamily, SocketType, ipproto, sockopt};
use skyhaul_emulator::{EmulatorError, Place};
use skyhaul_net::Clock;
use skyhaul_units::{Bytes, Duration, Rate};
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Sends for the time of `bench`. Gives the goodput at the receiver, bit/s, from the connection on.
pub fn run(bench: &Bench<'_>, control: &str) -> Result<f64, Gone> {
    let broken = |error: io::Error| Gone::Failed(format!("multipath TCP failed ({error})"));
    let far = SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, PORT);
    let listener = inside(bench, Place::B, || {
        let socket = socket(control)?;
        sockopt::set_socket_reuseaddr(&socket, true)?;
        rustix::net::bind(&socket, &far)?;
        rustix::net::listen(&socket, 1)?;
        Ok(TcpListener::from(socket))
    })?;
    let to = SocketAddrV4::new(Place::B.ipv4(0), PORT);
    let sender = inside(bench, Place::A, || {
        let socket = socket(control)?;
        rustix::net::connect(&socket, &to)?;
        Ok(TcpStream::from(socket))
    })?;
    let (receiver, _) = listener.accept().map_err(broken)?;
    receiver.set_read_timeout(Some(STALL.to_std())).map_err(broken)?;
    sender.set_write_timeout(Some(STALL.to_std())).map_err(broken)?;
    let done = AtomicBool::new(false);
    let received = std::thread::scope(|scope| {
        scope.spawn(|| {
            let bytes = vec![0x5a; 1 << 16];
            // A full buffer is not the end; a connection that broke is told of by the receiver.
            while !done.load(Ordering::Relaxed) {
                let _ = (&sender).write(&bytes);
            }
        });
        let received = receive(bench, &receiver);
        done.store(true, Ordering::Relaxed);
        received
    });
    received.map_err(broken).and_then(|(bytes, span)| match bench.is_interrupted() {
        true => Err(Gone::Interrupted),
        false => Ok(Rate::over(bytes, span).as_bps() as f64),
    })
}

fn receive(bench: &Bench<'_>, mut from: &TcpStream) -> io::Result<(Bytes, Duration)> {
    let (clock, mut room, mut bytes) = (Clock::start(), vec![0; 1 << 18], Bytes::ZERO);
    let start = clock.now();
    loop {
        let span = clock.now().since(start);
        if span >= Duration::from_secs(bench.seconds()) || bench.is_interrupted() {
            return Ok((bytes, span));
        }
        match from.read(&mut room) {
            Ok(0) => return Err(io::ErrorKind::ConnectionReset.into()),
            Ok(length) => bytes += Bytes::of(length),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

fn socket(control: &str) -> io::Result<OwnedFd> {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, Some(ipproto::MPTCP))?;
    sockopt::set_tcp_congestion(&socket, control)?;
    Ok(socket)
}

fn inside<T: Send>(
    bench: &Bench<'_>,
    place: Place,
    work: impl FnOnce() -> io::Result<T> + Send,
) -> Result<T, Gone> {
    let made = bench.namespace(place).enter(|| Ok::<_, EmulatorError>(work()))?;
    made.map_err(|error| Gone::Failed(format!("multipath TCP cannot be used ({error})")))
}

/// How long a call may wait, so that the end is noticed.
const STALL: Duration = Duration::from_millis(200);
