//! The sockets on which a node waits for calls, while it goes on in another process: calls that
//! come meanwhile wait in them, or, where the old process read them, in memory that both share.
//!
//! The memory has two entries of a backlog for each datagram: a description, which is a
//! [`CallOrigin`] as JSON, and a read, which is the datagram.

use super::backlog::{BacklogKind, BacklogReader, BacklogWriter, MAX_ENTRY};
use super::messages::{PassedKind, PassedSocket};
use bytes::BytesMut;
use serde::{Deserialize, Serialize};
use skyhaul_net::LeftSocket;
use skyhaul_sessions::ReceivedDatagram;
use skyhaul_units::Utc;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A socket that the old process keeps until the other one has taken over.
#[derive(Debug)]
pub struct KeptSocket {
    passed: PassedSocket,
    socket: OwnedFd,
    calls: File,
}

/// A socket that a node begins with.
#[derive(Debug)]
pub struct HandedSocket {
    /// Which.
    pub passed: PassedSocket,
    /// The socket, bound already.
    pub socket: OwnedFd,
    /// The datagrams that came to it and that nobody took.
    pub calls: File,
}

/// Where a datagram came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallOrigin {
    /// Who sent it.
    pub remote: SocketAddr,
    /// The address that it was sent to, where that is known.
    pub local: Option<IpAddr>,
}

/// The most datagrams that are read back: more than an endpoint keeps.
const CALLS_MAX: usize = 4_096;

impl CallOrigin {
    /// Reads one.
    ///
    /// # Errors
    /// A sentence: it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes)
            .map_err(|error| format!("the origin of a call cannot be read ({error})"))
    }
}

impl KeptSocket {
    /// What an endpoint left that was configured to listen at this address.
    ///
    /// # Errors
    /// The system gives no memory.
    pub fn new(listen: SocketAddr, left: LeftSocket) -> io::Result<Self> {
        let (mut writer, calls) = BacklogWriter::new()?;
        let (kind, socket, waiting) = match left {
            LeftSocket::Udp(socket, waiting) => (PassedKind::Udp, socket, waiting),
            LeftSocket::Tcp(socket) => (PassedKind::TcpListen, socket, Vec::new()),
        };
        for call in waiting {
            let origin = CallOrigin { remote: call.remote, local: call.local_ip };
            let at = Utc::from_nanos(0);
            writer.write(BacklogKind::Description, at, &serde_json::to_vec(&origin)?)?;
            writer.write(BacklogKind::Read, at, &call.payload)?;
        }
        writer.flush()?;
        Ok(Self { passed: PassedSocket { kind, listen }, socket, calls })
    }

    /// What the new process is told of it.
    pub const fn passed(&self) -> PassedSocket {
        self.passed
    }

    /// Its two descriptors.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 2] {
        [self.socket.as_fd(), self.calls.as_fd()]
    }

    /// The same for a node that starts in this process.
    ///
    /// # Errors
    /// The system has no more descriptors.
    pub fn handed(&self) -> io::Result<HandedSocket> {
        let (socket, calls) = (self.socket.try_clone()?, self.calls.try_clone()?);
        Ok(HandedSocket { passed: self.passed, socket, calls })
    }
}

impl HandedSocket {
    /// The socket, and the datagrams that wait. What is damaged is left out: who called, calls
    /// again.
    pub fn open(self) -> (OwnedFd, Vec<ReceivedDatagram>) {
        let (mut waiting, mut reader) = (Vec::new(), BacklogReader::new(self.calls));
        while waiting.len() < CALLS_MAX {
            match next(&mut reader) {
                Ok(Some(call)) => waiting.push(call),
                Ok(None) => break,
                Err(error) => {
                    tracing::warn!("calls that came during the upgrade cannot be read ({error})");
                    break;
                }
            }
        }
        (self.socket, waiting)
    }
}

/// The next datagram.
fn next(reader: &mut BacklogReader) -> io::Result<Option<ReceivedDatagram>> {
    let mut buffer = vec![0; MAX_ENTRY];
    let Some(head) = reader.next(&mut buffer)? else { return Ok(None) };
    let origin = CallOrigin::parse(&buffer[..head.length]).map_err(io::Error::other)?;
    let Some(head) = reader.next(&mut buffer)? else { return Ok(None) };
    let payload = BytesMut::from(&buffer[..head.length]);
    let CallOrigin { remote, local: local_ip } = origin;
    Ok(Some(ReceivedDatagram { remote, local_ip, ecn: None, payload }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::net::UdpSocket;

    fn kept(calls: &[(&str, &[u8])]) -> KeptSocket {
        let call = |(remote, payload): &(&str, &[u8])| ReceivedDatagram {
            remote: remote.parse().unwrap(),
            local_ip: Some("127.0.0.1".parse().unwrap()),
            ecn: None,
            payload: BytesMut::from(*payload),
        };
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap().into();
        let left = LeftSocket::Udp(socket, calls.iter().map(call).collect());
        KeptSocket::new("127.0.0.1:0".parse().unwrap(), left).unwrap()
    }

    #[test]
    fn calls_come_back_with_their_origins_as_often_as_they_are_handed() {
        let calls: [(&str, &[u8]); 2] =
            [("192.0.2.1:7", &[0xc0; 1_200]), ("[fe80::1%3]:9", &[0xcf])];
        let kept = kept(&calls);
        let own = kept.socket.as_fd().try_clone_to_owned().map(UdpSocket::from).unwrap();
        for _ in 0..2 {
            let (socket, waiting) = kept.handed().unwrap().open();
            let socket = UdpSocket::from(socket).local_addr().unwrap();
            assert_eq!(socket, own.local_addr().unwrap());
            let found: Vec<_> = waiting.iter().map(|one| (one.remote, &one.payload[..])).collect();
            assert_eq!(found, calls.map(|(remote, bytes)| (remote.parse().unwrap(), bytes)));
            assert!(waiting.iter().all(|one| one.local_ip.is_some()));
        }
    }

    #[test]
    fn what_is_damaged_is_left_out_and_the_socket_stays() {
        let kept = kept(&[("192.0.2.1:7", b"whole")]);
        let mut handed = kept.handed().unwrap();
        handed.calls.write_all(b"no entry at all").unwrap();
        let (_, waiting) = handed.open();
        assert!(waiting.len() <= 1, "{waiting:?}");
        assert!(CallOrigin::parse(b"{}").unwrap_err().contains("cannot be read"));
    }
}
