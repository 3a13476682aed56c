//! The destination of a replay: TCP, UDP, a file or standard output. Every wait is short, so that
//! an interrupt takes effect soon.

use super::{LOOK, Replay, pause};
use skyhaul_config::HostPort;
use skyhaul_exit::{Exit, Failure};
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs, UdpSocket};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The result of sending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SinkResult {
    /// All of it was sent.
    Sent,
    /// It was interrupted.
    Stopped,
}

/// An open destination.
pub struct ReplaySink<'a> {
    kind: Kind<'a>,
    place: String,
}

enum Kind<'a> {
    Connect { address: HostPort, stream: Option<TcpStream> },
    Listen { listener: TcpListener, stream: Option<TcpStream> },
    Udp(UdpSocket),
    File(File),
    Out(&'a mut dyn Write),
}

/// How long one attempt to reach a server may take.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(5);
/// What of a stream goes into one datagram: with IP and UDP headers it fits the usual 1,500 bytes.
const DATAGRAM: usize = 1_400;

impl<'a> ReplaySink<'a> {
    /// Opens what the command names; `out` is standard output.
    ///
    /// # Errors
    /// It cannot be reached, bound or written.
    pub fn open(command: &Replay, out: &'a mut dyn Write) -> Result<Self, Failure> {
        if let Some(address) = &command.to_tcp {
            let (address, place) = (address.clone(), address.to_string());
            let stream = Some(connect(&address)?);
            return Ok(Self { kind: Kind::Connect { address, stream }, place });
        }
        if let Some(address) = &command.to_udp {
            return Ok(Self { kind: Kind::Udp(udp(address)?), place: address.to_string() });
        }
        if let Some(address) = command.listen {
            return Ok(Self { kind: listen(address)?, place: address.to_string() });
        }
        let path = command.output.as_deref().unwrap_or(Path::new("-"));
        let place = path.display().to_string();
        if place == "-" {
            return Ok(Self { kind: Kind::Out(out), place: "standard output".to_owned() });
        }
        let file = File::create(path).map_err(|source| {
            Failure::io(
                "the output cannot be written",
                &place,
                "give a path that this user can write",
                source,
            )
        })?;
        Ok(Self { kind: Kind::File(file), place })
    }

    /// Waits for a client, where it waits for clients.
    ///
    /// # Errors
    /// The socket failed.
    pub fn wait_ready(&mut self, stop: &AtomicBool) -> Result<SinkResult, Failure> {
        let Kind::Listen { listener, stream } = &mut self.kind else { return Ok(SinkResult::Sent) };
        while stream.is_none() {
            if stop.load(Ordering::Relaxed) {
                return Ok(SinkResult::Stopped);
            }
            match listener.accept() {
                Ok((accepted, _)) => *stream = Some(ready(accepted, &self.place)?),
                Err(error) if error.kind() == ErrorKind::WouldBlock => pause(LOOK),
                Err(source) => return Err(gone(&self.place, source)),
            }
        }
        Ok(SinkResult::Sent)
    }

    /// Sends bytes of a stream.
    ///
    /// # Errors
    /// The other end went away, or the disk refuses.
    pub fn stream(&mut self, bytes: &[u8], stop: &AtomicBool) -> Result<SinkResult, Failure> {
        self.connected(stop)?;
        let place = &self.place;
        match &mut self.kind {
            Kind::Udp(socket) => {
                bytes.chunks(DATAGRAM).try_for_each(|part| send_datagram(socket, part, place))?;
            }
            Kind::File(file) => file.write_all(bytes).map_err(|source| unwritten(place, source))?,
            Kind::Out(out) => out.write_all(bytes).map_err(|source| unwritten(place, source))?,
            Kind::Connect { stream, .. } | Kind::Listen { stream, .. } => {
                // `None` if it was interrupted while it waited for a client.
                let Some(stream) = stream else { return Ok(SinkResult::Stopped) };
                return write(stream, bytes, place, stop);
            }
        }
        Ok(SinkResult::Sent)
    }

    /// Sends a datagram; where the destination is a stream, its bytes.
    ///
    /// # Errors
    /// The other end went away, or the disk refuses.
    pub fn datagram(&mut self, bytes: &[u8], stop: &AtomicBool) -> Result<SinkResult, Failure> {
        if let Kind::Udp(socket) = &self.kind {
            return send_datagram(socket, bytes, &self.place).map(|()| SinkResult::Sent);
        }
        self.stream(bytes, stop)
    }

    /// A transmission ended here: a connection is ended, and made again for what comes next.
    ///
    /// # Errors
    /// None now; what cannot be made again is said when it is needed.
    pub fn end_transmission(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Connect { stream, .. } | Kind::Listen { stream, .. } => *stream = None,
            Kind::Udp(_) | Kind::File(_) | Kind::Out(_) => {}
        }
        Ok(())
    }

    /// Everything is sent.
    ///
    /// # Errors
    /// What was written does not reach the disk or the reader.
    pub fn finish(&mut self) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::File(file) => file.sync_all().map_err(|source| unwritten(&self.place, source)),
            Kind::Out(out) => out.flush().map_err(|source| unwritten(&self.place, source)),
            Kind::Connect { .. } | Kind::Listen { .. } | Kind::Udp(_) => Ok(()),
        }
    }

    fn connected(&mut self, stop: &AtomicBool) -> Result<(), Failure> {
        match &mut self.kind {
            Kind::Connect { address, stream: stream @ None } => *stream = Some(connect(address)?),
            Kind::Listen { .. } => drop(self.wait_ready(stop)?),
            Kind::Connect { .. } | Kind::Udp(_) | Kind::File(_) | Kind::Out(_) => {}
        }
        Ok(())
    }
}

fn write(
    stream: &mut TcpStream,
    bytes: &[u8],
    place: &str,
    stop: &AtomicBool,
) -> Result<SinkResult, Failure> {
    let mut rest = bytes;
    while !rest.is_empty() {
        if stop.load(Ordering::Relaxed) {
            return Ok(SinkResult::Stopped);
        }
        match stream.write(rest) {
            Ok(0) => return Err(gone(place, ErrorKind::WriteZero.into())),
            Ok(written) => rest = &rest[written..],
            Err(error) if is_patient(&error) => {}
            Err(source) => return Err(gone(place, source)),
        }
    }
    Ok(SinkResult::Sent)
}

fn is_patient(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

fn send_datagram(socket: &UdpSocket, bytes: &[u8], place: &str) -> Result<(), Failure> {
    match socket.send(bytes) {
        Ok(_) => Ok(()),
        // Nobody listens at the moment, as a receiver that is being started; UDP would not tell
        // over a network either.
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => Ok(()),
        Err(source) => Err(gone(place, source)),
    }
}

fn addresses(address: &HostPort) -> Result<Vec<SocketAddr>, Failure> {
    let found = (address.host(), address.port()).to_socket_addrs().map(Iterator::collect::<Vec<_>>);
    let help = "give the name or address of a host, and its port";
    match found {
        Ok(found) if !found.is_empty() => Ok(found),
        Ok(_) => {
            Err(Failure::new(Exit::Usage, "the host has no address", help).at(&address.to_string()))
        }
        Err(source) => {
            Err(Failure::io("the host is not known", &address.to_string(), help, source))
        }
    }
}

fn connect(address: &HostPort) -> Result<TcpStream, Failure> {
    let mut outcome = Err(io::Error::from(ErrorKind::NotFound));
    for candidate in addresses(address)? {
        outcome = TcpStream::connect_timeout(&candidate, CONNECT);
        if outcome.is_ok() {
            break;
        }
    }
    let place = address.to_string();
    let stream = outcome.map_err(|source| {
        Failure::io(
            "the receiver refuses the connection",
            &place,
            "start the receiver first, and check its port",
            source,
        )
    })?;
    ready(stream, &place)
}

/// A stream whose writes give up in time to notice an interrupt.
fn ready(stream: TcpStream, place: &str) -> Result<TcpStream, Failure> {
    let set = stream
        .set_nonblocking(false)
        .and_then(|()| stream.set_write_timeout(Some(10 * LOOK.to_std())));
    set.map_err(|source| gone(place, source))?;
    Ok(stream)
}

fn listen<'a>(address: SocketAddr) -> Result<Kind<'a>, Failure> {
    let bound = TcpListener::bind(address).and_then(|listener| {
        listener.set_nonblocking(true)?;
        Ok(listener)
    });
    let listener = bound.map_err(|source| {
        let help = "give an address of this host and a port that no other program uses";
        Failure::io("the port cannot be used", &address.to_string(), help, source)
    })?;
    if let Ok(address) = listener.local_addr() {
        // Standard error may be closed.
        let _ = writeln!(io::stderr(), "waiting for a client at {address}");
    }
    Ok(Kind::Listen { listener, stream: None })
}

fn udp(address: &HostPort) -> Result<UdpSocket, Failure> {
    let to = addresses(address)?[0];
    let any: SocketAddr = if to.is_ipv6() { ([0; 16], 0).into() } else { ([0; 4], 0).into() };
    let socket = UdpSocket::bind(any).and_then(|socket| {
        socket.connect(to)?;
        Ok(socket)
    });
    socket.map_err(|source| {
        Failure::io(
            "the host cannot be reached",
            &address.to_string(),
            "check that its network is up",
            source,
        )
    })
}

fn gone(place: &str, source: io::Error) -> Failure {
    Failure::io(
        "the receiver closed the connection",
        place,
        "find out why it ended, then resume with --from",
        source,
    )
}

fn unwritten(place: &str, source: io::Error) -> Failure {
    Failure::io("the output cannot be written", place, "free space, or give another path", source)
}
