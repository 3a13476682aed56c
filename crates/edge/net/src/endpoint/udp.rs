//! QUIC over UDP: an endpoint and its socket.

use crate::Clock;
use crate::left_socket::LeftSocket;
use crate::socket::{AT_ONCE, OutgoingDatagrams, Socket};
use crate::turn::{Arrived, Left};
use bytes::BytesMut;
use rustix::event::{PollFd, PollFlags};
use skyhaul_quic::QuicEndpoint;
use skyhaul_sessions::{ReceivedDatagram, Transmit};
use skyhaul_units::{ByteCount, Instant};
use std::io;
use std::os::fd::AsFd as _;

/// An endpoint and its socket.
pub struct UdpEndpoint {
    quic: QuicEndpoint,
    socket: Socket,
    /// The batch that is sent next; kept while the socket's buffer is full.
    batch: Vec<u8>,
    unsent: Option<Transmit>,
    send_errors: u64,
    /// Datagrams that begin calls: to be taken in first, or, where the node goes on in another
    /// process, for that.
    calls: Vec<ReceivedDatagram>,
    calls_bytes: ByteCount,
    /// Calls are kept for the other process.
    keeps_calls: bool,
}

/// What is kept for the process that goes on: three datagrams for each of as many connections as
/// there may be, of 1.2 to 1.5 KB. Callers of those beyond call again after a second.
const CALLS_MAX: usize = 3 * 1_024;
const CALLS_BYTES_MAX: ByteCount = ByteCount::mib(5);

/// System calls to receive before sending has its turn: 2 MB at most, 4 ms at 4 Gbit/s.
const RECEIVES: usize = 4;
/// System calls to send before receiving has its turn: 1 MB at most, 2 ms at 4 Gbit/s.
const TRANSMITS: usize = 16;

impl UdpEndpoint {
    /// `endpoint` on `socket`, with as many datagrams in a system call as the system takes.
    pub fn new(mut quic: QuicEndpoint, socket: Socket) -> Self {
        quic.batch(socket.max_segments());
        Self {
            quic,
            socket,
            batch: Vec::new(),
            unsent: None,
            send_errors: 0,
            calls: Vec::new(),
            calls_bytes: ByteCount::ZERO,
            keeps_calls: false,
        }
    }

    /// Takes these datagrams in first, which came to the socket before.
    #[must_use]
    pub fn with_calls(self, calls: Vec<ReceivedDatagram>) -> Self {
        Self { calls, ..self }
    }

    /// Closes all connections, because this node goes on in another process. Calls are kept for
    /// that from now on.
    pub(crate) fn close_to_go_on(&mut self, now: Instant) {
        self.quic.close_to_go_on(now);
        self.keeps_calls = true;
    }

    /// The socket, and the calls that were kept.
    pub(crate) fn leave(&mut self) -> io::Result<LeftSocket> {
        let socket = self.socket.as_fd().try_clone_to_owned()?;
        Ok(LeftSocket::Udp(socket, core::mem::take(&mut self.calls)))
    }

    /// The socket.
    pub const fn socket(&self) -> &Socket {
        &self.socket
    }

    /// The QUIC endpoint.
    pub const fn quic(&self) -> &QuicEndpoint {
        &self.quic
    }

    pub(crate) const fn quic_mut(&mut self) -> &mut QuicEndpoint {
        &mut self.quic
    }

    pub(crate) const fn send_errors(&self) -> u64 {
        self.send_errors
    }

    pub(crate) fn receive(&mut self, clock: &Clock) -> io::Result<Arrived> {
        let mut taken = ByteCount::ZERO;
        if !self.keeps_calls {
            let now = clock.now();
            self.calls.drain(..).for_each(|call| self.quic.handle_datagram(now, call));
        }
        for _ in 0..RECEIVES {
            let mut arrived = None;
            let Self { quic, calls, calls_bytes, keeps_calls, .. } = self;
            let count = self.socket.receive(|incoming| {
                // The clock is read after the datagrams. A reading from before could be older than
                // their arrival by as long as this thread did not run, and a round trip that looks
                // too short makes every later one look like a queue.
                let now = *arrived.get_or_insert_with(|| clock.now());
                let (remote, local_ip, ecn) = (incoming.from, incoming.to, incoming.ecn);
                for payload in incoming {
                    taken += ByteCount::of(payload.len());
                    let is_kept = *keeps_calls && is_call(&payload);
                    if !is_kept {
                        let received = ReceivedDatagram { remote, local_ip, ecn, payload };
                        quic.handle_datagram(now, received);
                    } else if calls.len() < CALLS_MAX && *calls_bytes < CALLS_BYTES_MAX {
                        *calls_bytes += ByteCount::of(payload.len());
                        // Copied, so that it keeps no buffer of the socket alive.
                        let payload = BytesMut::from(&payload[..]);
                        calls.push(ReceivedDatagram { remote, local_ip, ecn, payload });
                    }
                }
            })?;
            if count < AT_ONCE {
                return Ok(Arrived::all(taken));
            }
        }
        Ok(Arrived::More)
    }

    pub(crate) fn transmit(&mut self, now: Instant) -> Left {
        let mut left = Left::Nothing;
        for _ in 0..TRANSMITS {
            let unsent = self.unsent.take();
            let next = unsent.or_else(|| self.quic.poll_transmit(now, &mut self.batch));
            let Some(transmit) = next else { return left };
            let outgoing = OutgoingDatagrams {
                to: transmit.to,
                from: transmit.src_ip,
                ecn: transmit.ecn,
                contents: &self.batch[..transmit.size],
                segment_size: transmit.segment_size,
            };
            match self.socket.send(&outgoing) {
                Ok(true) => left = Left::All,
                Ok(false) => {
                    self.unsent = Some(transmit);
                    return left;
                }
                Err(_) => {
                    self.send_errors += 1;
                    left = Left::All;
                }
            }
        }
        Left::Part
    }

    /// Whether closing datagrams are still to be sent.
    pub(crate) fn is_closing(&self) -> bool {
        self.unsent.is_some() || self.quic.is_closing()
    }

    pub(crate) fn poll_fd(&self) -> PollFd<'_> {
        let writable = if self.unsent.is_some() { PollFlags::OUT } else { PollFlags::empty() };
        PollFd::from_borrowed_fd(self.socket.as_fd(), PollFlags::IN | writable)
    }
}

/// Whether a datagram begins a call: an Initial packet of QUIC version 1 (RFC 9000 17.2.2).
fn is_call(datagram: &[u8]) -> bool {
    datagram.first().is_some_and(|first| first & 0xf0 == 0xc0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_identity::Identity;
    use skyhaul_quic::{EndpointConfig, PathConfig};
    use skyhaul_transport::{Path as _, Token};
    use skyhaul_units::{Duration, Rate};

    fn endpoint(seed: u8, clock: &Clock) -> UdpEndpoint {
        let identity = |seed| Identity::from_seed(&[seed; 32]).unwrap();
        let path = PathConfig::over(Rate::from_mbps(1_000));
        let mut config = EndpointConfig::new(identity(seed), path, clock.std_start());
        config.trusted = [identity(1), identity(2)].iter().map(Identity::fingerprint).collect();
        config.listen = true;
        let socket = Socket::bind("127.0.0.1:0".parse().unwrap()).unwrap();
        UdpEndpoint::new(QuicEndpoint::new(config).unwrap(), socket)
    }

    #[test]
    fn a_call_after_the_farewell_is_kept_and_answered_by_who_goes_on_with_the_socket() {
        let clock = Clock::start();
        let (mut near, mut far) = (endpoint(1, &clock), endpoint(2, &clock));
        let to = far.socket.local_addr().unwrap();
        let key = Identity::from_seed(&[2; 32]).unwrap().fingerprint();
        far.close_to_go_on(clock.now());
        near.quic.connect(clock.now(), to, key).unwrap();
        near.transmit(clock.now());
        let patience = clock.now() + Duration::from_secs(60);
        while far.calls.is_empty() {
            assert!(clock.now() < patience, "no call came");
            far.receive(&clock).unwrap();
        }
        assert!(far.transmit(clock.now()) == Left::Nothing, "it is not answered here");
        let LeftSocket::Udp(socket, calls) = far.leave().unwrap() else { panic!("no UDP socket") };
        assert!(calls.iter().all(|call| call.remote == near.socket.local_addr().unwrap()));
        drop(far);
        let new = endpoint(2, &clock).quic;
        let mut new = UdpEndpoint::new(new, Socket::given(socket).unwrap()).with_calls(calls);
        new.receive(&clock).unwrap();
        assert!(new.transmit(clock.now()) != Left::Nothing, "it is answered there");
    }

    /// Every endpoint does so: files and streams once cost a system call for each datagram.
    #[test]
    fn datagrams_that_are_ready_go_out_in_one_system_call() {
        let clock = Clock::start();
        let (mut near, mut far) = (endpoint(1, &clock), endpoint(2, &clock));
        if near.socket.max_segments() < 2 {
            eprintln!("SKIPPED: this system does not send several datagrams in one call");
            return;
        }
        let to = far.socket.local_addr().unwrap();
        let key = Identity::from_seed(&[2; 32]).unwrap().fingerprint();
        let id = near.quic.connect(clock.now(), to, key).unwrap();
        let patience = clock.now() + Duration::from_secs(60);
        let mut together = 1;
        while together < 2 {
            assert!(clock.now() < patience, "each datagram came by itself");
            let now = clock.now();
            if let Some(path) = near.quic.path(id) {
                while path.poll(now).is_some() {}
                for _ in 0..path.room(now) {
                    path.send(now, Some(Token(0)), vec![0; 1_300].into());
                }
            }
            near.quic.handle_timeout(now);
            near.transmit(now);
            near.receive(&clock).unwrap();
            let quic = &mut far.quic;
            far.socket
                .receive(|incoming| {
                    let (remote, local_ip, ecn) = (incoming.from, incoming.to, incoming.ecn);
                    let count = incoming
                        .map(|payload| {
                            quic.handle_datagram(
                                now,
                                ReceivedDatagram { remote, local_ip, ecn, payload },
                            );
                        })
                        .count();
                    together = together.max(count);
                })
                .unwrap();
            far.quic.handle_timeout(now);
            far.transmit(now);
            while near.quic.poll_event().is_some() || far.quic.poll_event().is_some() {}
        }
    }
}
