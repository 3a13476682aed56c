//! SOCKS version 5 (RFC 1928), by which applications name their targets themselves.
//!
//! It has CONNECT and UDP ASSOCIATE without authentication (method 0). It has no BIND, which
//! applications do not use today, and no fragments of datagrams, which RFC 1928 allows to drop.

use crate::target::Target;
use crate::wire::ConnectRefusal;
use skyhaul_units::wire::ByteReader;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// The beginning of a connection, up to the request. It never reads beyond that, because what
/// follows is for the target.
#[derive(Debug, Clone, Default)]
pub struct Handshake {
    got: Vec<u8>,
    /// The method is agreed on.
    agreed: bool,
}

/// The next step of a handshake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocksStep {
    /// Read [`Handshake::wants`] bytes.
    Read,
    /// Write this, and read on.
    Say(Vec<u8>),
    /// The application's request; answer with [`reply`].
    Asked(Request),
    /// Write this, which may be empty, and close.
    Refuse(Vec<u8>),
}

/// An application's request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Request {
    /// A connection.
    Connect(Target),
    /// Datagrams, as long as the requesting connection is open.
    Associate,
}

/// The answer to a request (RFC 1928 6).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Reply {
    /// The request has succeeded.
    Succeeded = 0,
    /// Any reason without a number of its own.
    GeneralFailure = 1,
    /// The rules do not allow it.
    NotAllowed = 2,
    /// There is no route to that network, or the far node is not connected.
    NetworkUnreachable = 3,
    /// There is no route to that host, it does not answer, or its name is unknown.
    HostUnreachable = 4,
    /// Nobody listens there.
    ConnectionRefused = 5,
    /// It is neither CONNECT nor UDP ASSOCIATE.
    CommandNotSupported = 7,
    /// The kind of address is unknown.
    AddressNotSupported = 8,
}

/// The address of a request or a datagram.
struct HostPort {
    host: String,
    port: u16,
}

const VERSION: u8 = 5;
const NO_AUTHENTICATION: u8 = 0;
const NO_METHOD: u8 = 0xff;
const CONNECT: u8 = 1;
const ASSOCIATE: u8 = 3;
const IPV4: u8 = 1;
const NAME: u8 = 3;
const IPV6: u8 = 4;
/// Version, command and a reserved byte stand before a request's address; two reserved bytes and
/// the fragment's number before a datagram's.
const BEFORE_ADDRESS: usize = 3;

impl Handshake {
    /// How many bytes to read next, at most and at least one.
    pub fn wants(&self) -> usize {
        let all = match (self.agreed, &*self.got) {
            (false, [_, methods, ..]) => 2 + usize::from(*methods),
            (false, _) => 2,
            // The length of an address follows from its kind and, for a name, its first byte.
            (true, [_, _, _, kind, first, ..]) => BEFORE_ADDRESS + address_len(*kind, *first),
            (true, _) => BEFORE_ADDRESS + 2,
        };
        all.saturating_sub(self.got.len()).max(1)
    }

    /// Takes bytes, no more than [`Self::wants`].
    pub fn take(&mut self, bytes: &[u8]) -> SocksStep {
        self.got.extend(bytes);
        match self.agreed {
            false => self.methods(),
            true => self.request(),
        }
    }

    fn methods(&mut self) -> SocksStep {
        match &*self.got {
            [version, ..] if *version != VERSION => SocksStep::Refuse(Vec::new()),
            [_, count, methods @ ..] if methods.len() >= usize::from(*count) => {
                if !methods.contains(&NO_AUTHENTICATION) {
                    return SocksStep::Refuse(vec![VERSION, NO_METHOD]);
                }
                (self.agreed, self.got) = (true, Vec::new());
                SocksStep::Say(vec![VERSION, NO_AUTHENTICATION])
            }
            _ => SocksStep::Read,
        }
    }

    fn request(&self) -> SocksStep {
        let refuse = |answer| SocksStep::Refuse(reply(answer, UNKNOWN));
        match &*self.got {
            [version, ..] if *version != VERSION => SocksStep::Refuse(Vec::new()),
            [_, command, ..] if !matches!(*command, CONNECT | ASSOCIATE) => {
                refuse(Reply::CommandNotSupported)
            }
            [_, _, _, kind, ..] if !matches!(*kind, IPV4 | NAME | IPV6) => {
                refuse(Reply::AddressNotSupported)
            }
            [_, command, _, address @ ..] => {
                match (host_and_port(&mut ByteReader::new(address)), *command) {
                    (None, _) => SocksStep::Read,
                    // The address in the request, from where datagrams will come, is ignored: most
                    // applications do not know it yet.
                    (Some(_), ASSOCIATE) => SocksStep::Asked(Request::Associate),
                    (Some(address), _) => match address.target() {
                        Some(target) => SocksStep::Asked(Request::Connect(target)),
                        None => refuse(Reply::GeneralFailure),
                    },
                }
            }
            _ => SocksStep::Read,
        }
    }
}

impl From<ConnectRefusal> for Reply {
    fn from(refusal: ConnectRefusal) -> Self {
        match refusal {
            ConnectRefusal::NotAllowed => Self::NotAllowed,
            ConnectRefusal::ConnectionRefused => Self::ConnectionRefused,
            ConnectRefusal::NetworkUnreachable => Self::NetworkUnreachable,
            ConnectRefusal::HostUnreachable
            | ConnectRefusal::TimedOut
            | ConnectRefusal::NameUnknown => Self::HostUnreachable,
            ConnectRefusal::Busy | ConnectRefusal::Failed | ConnectRefusal::InUse => {
                Self::GeneralFailure
            }
        }
    }
}

/// The address in an answer that has none to report.
pub const UNKNOWN: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0);

/// The answer to a request, with the address that this end uses for it.
pub fn reply(answer: Reply, bound: SocketAddr) -> Vec<u8> {
    let mut out = vec![VERSION, answer as u8, 0];
    put(&mut out, &Target::of(bound));
    out
}

/// The target and the bytes of an application's datagram (RFC 1928 7). `None` for a fragment, and
/// for a malformed datagram.
pub fn unwrap(datagram: &[u8]) -> Option<(Target, &[u8])> {
    let ([_, _, fragment], rest) = datagram.split_first_chunk::<BEFORE_ADDRESS>()?;
    let mut reader = ByteReader::new(rest);
    let address = host_and_port(&mut reader).filter(|_| *fragment == 0)?;
    Some((address.target()?.for_datagrams()?, reader.rest()))
}

/// A datagram from `target` in the application's form.
pub fn wrap(target: &Target, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() + 24);
    out.extend([0; BEFORE_ADDRESS]);
    put(&mut out, target);
    out.extend(bytes);
    out
}

/// The length of an address with its kind and port, from its kind and first byte.
fn address_len(kind: u8, first: u8) -> usize {
    3 + match kind {
        IPV4 => 4,
        IPV6 => 16,
        _ => 1 + usize::from(first),
    }
}

/// Reads a host and a port.
fn host_and_port(reader: &mut ByteReader<'_>) -> Option<HostPort> {
    let host = match reader.u8()? {
        IPV4 => Ipv4Addr::from(reader.array::<4>()?).to_string(),
        IPV6 => Ipv6Addr::from(reader.array::<16>()?).to_string(),
        NAME => {
            let len = reader.u8()?;
            core::str::from_utf8(reader.take(len.into())?).ok()?.to_owned()
        }
        _ => return None,
    };
    Some(HostPort { host, port: reader.u16()? })
}

impl HostPort {
    fn target(&self) -> Option<Target> {
        let Self { host, port } = self;
        match host.parse::<IpAddr>() {
            Ok(ip) if *port > 0 => Some(Target::of(SocketAddr::new(ip, *port))),
            Ok(_) => None,
            Err(_) => {
                let target = format!("{host}:{port}").parse().ok();
                target.filter(|target| matches!(target, Target::Tcp(..)))
            }
        }
    }
}

fn put(out: &mut Vec<u8>, target: &Target) {
    let (host, port) = (target.host().unwrap_or_default(), target.port().unwrap_or_default());
    match target.ip() {
        Some(IpAddr::V4(ip)) => {
            out.push(IPV4);
            out.extend(ip.octets());
        }
        Some(IpAddr::V6(ip)) => {
            out.push(IPV6);
            out.extend(ip.octets());
        }
        None => {
            // A name of a target has at most 253 bytes.
            out.extend([NAME, host.len() as u8]);
            out.extend(host.as_bytes());
        }
    }
    out.extend(port.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Feeds a handshake as it asks for it; what it said, what it ended with, and what it left.
    fn run(mut bytes: &[u8]) -> (Vec<u8>, SocksStep, &[u8]) {
        let (mut handshake, mut said) = (Handshake::default(), Vec::new());
        loop {
            let len = handshake.wants().min(bytes.len());
            let (next, rest) = bytes.split_at(len);
            bytes = rest;
            match handshake.take(next) {
                SocksStep::Read if len == 0 => return (said, SocksStep::Read, bytes),
                SocksStep::Read => {}
                SocksStep::Say(answer) => said.extend(answer),
                end => return (said, end, bytes),
            }
        }
    }

    fn connect(address: &[u8]) -> SocksStep {
        let request = [&[5, 1, 0, 5, 1, 0], address, &[0, 80], b"GET"].concat();
        let (said, step, rest) = run(&request);
        assert_eq!((said.as_slice(), rest), (&[5, 0][..], &b"GET"[..]));
        step
    }

    #[test]
    fn a_target_is_named_by_either_kind_of_address_or_by_name_and_nothing_behind_it_is_read() {
        for (address, target) in [
            (&[1, 10, 0, 0, 5][..], "10.0.0.5:80"),
            (&[4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1], "[2001:db8::1]:80"),
            (&[3, 7, b'a', b'r', b'c', b'h', b'i', b'v', b'e'], "archive:80"),
        ] {
            assert_eq!(
                connect(address),
                SocksStep::Asked(Request::Connect(target.parse().unwrap()))
            );
        }
        let associate = [5, 2, 2, 0, 5, 3, 0, 1, 0, 0, 0, 0, 0, 0];
        assert_eq!(run(&associate).1, SocksStep::Asked(Request::Associate));
    }

    #[test]
    fn what_cannot_be_done_is_refused_with_its_number() {
        let refused = |answer| SocksStep::Refuse(reply(answer, UNKNOWN));
        assert_eq!(run(&[4, 1, 0, 80]).1, SocksStep::Refuse(Vec::new()));
        assert_eq!(run(b"GET / HTTP/1.0").1, SocksStep::Refuse(Vec::new()));
        assert_eq!(run(&[5, 1, 2]).1, SocksStep::Refuse(vec![5, 0xff]));
        assert_eq!(
            run(&[5, 1, 0, 5, 2, 0, 1, 10, 0, 0, 5, 0, 80]).1,
            refused(Reply::CommandNotSupported)
        );
        assert_eq!(
            run(&[5, 1, 0, 5, 1, 0, 9, 10, 0, 0, 5, 0, 80]).1,
            refused(Reply::AddressNotSupported)
        );
        // No port, no name, and what is no name.
        assert_eq!(
            run(&[5, 1, 0, 5, 1, 0, 1, 10, 0, 0, 5, 0, 0]).1,
            refused(Reply::GeneralFailure)
        );
        assert_eq!(run(&[5, 1, 0, 5, 1, 0, 3, 0, 0, 80]).1, refused(Reply::GeneralFailure));
        assert_eq!(run(&[5, 1, 0, 5, 1, 0, 3, 1, b'/', 0, 80]).1, refused(Reply::GeneralFailure));
    }

    #[test]
    fn answers_have_the_bytes_of_the_standard() {
        assert_eq!(reply(Reply::Succeeded, UNKNOWN), [5, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
        let bound = "[::1]:258".parse().unwrap();
        assert_eq!(reply(Reply::ConnectionRefused, bound)[..5], [5, 5, 0, 4, 0]);
        assert_eq!(
            reply(Reply::from(ConnectRefusal::TimedOut), bound).last_chunk(),
            Some(&[1, 1, 2])
        );
    }

    #[test]
    fn datagrams_cross_with_their_target_and_fragments_do_not() {
        for target in ["udp:10.0.0.5:53", "udp:[::1]:53", "udp:archive.example.org:53"] {
            let target: Target = target.parse().unwrap();
            let wrapped = wrap(&target, b"bytes");
            assert_eq!(unwrap(&wrapped), Some((target, &b"bytes"[..])));
            let mut fragment = wrapped.clone();
            fragment[2] = 1;
            assert_eq!(unwrap(&fragment), None);
            assert_eq!(unwrap(&wrapped[..wrapped.len() - 6]), None);
        }
    }

    proptest! {
        #[test]
        fn no_application_brings_it_down(bytes in proptest::collection::vec(prop_oneof![3 =>
            0u8..6, 1 => any::<u8>()], 0..64)) {
            let _ = run(&bytes);
            if let Some((target, rest)) = unwrap(&bytes) {
                let again = wrap(&target, rest);
                prop_assert_eq!(unwrap(&again), Some((target, rest)));
            }
        }
    }
}
