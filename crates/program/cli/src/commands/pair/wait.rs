//! The end that waits and shows the code.

use crate::commands::signals;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_node::log;
use skyhaul_pairing::{PairingCard, PairingDesk, PairingEvent, PairingVisitor, VISITORS_MAX};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::Ordering;

/// Waits at `bind` for the node that has the code, and returns its card.
///
/// # Errors
/// The address cannot be used; nobody came in time, or too many wrong codes; it was interrupted.
pub fn wait(
    bind: SocketAddr,
    card: PairingCard,
    seed: [u8; 32],
    out: &mut dyn Write,
) -> Result<PairingCard, Failure> {
    let listener = TcpListener::bind(bind)
        .and_then(|listener| listener.set_nonblocking(true).map(|()| listener));
    let listener = listener.map_err(|source| {
        let help = "stop the program that uses the port, or give --bind another address of this \
                    host";
        Failure::io("the TCP port cannot be used", &bind.to_string(), help, source)
    })?;
    let bound = listener.local_addr()?;
    let (clock, stop) = (Clock::start(), signals::stop_flag()?);
    let desk = PairingDesk::new(clock.now(), card, seed);
    let mut waiting = Waiting { listener, clock, desk, visitors: BTreeMap::new(), next: 0 };
    writeln!(out, "listening on {bound}")?;
    show(&waiting.desk, bound, out)?;
    while !stop.load(Ordering::Relaxed) {
        while let Some(event) = waiting.desk.poll() {
            match waiting.carry_out(event) {
                Next::On => {}
                Next::NewCode(why) => {
                    log::say(&why);
                    show(&waiting.desk, bound, out)?;
                }
                Next::Paired(card) => return Ok(card),
                Next::Over(why) => return Err(Failure::from_sentence(Exit::Peer, &why)),
            }
        }
        waiting.rest()?;
        waiting.receive();
        waiting.desk.handle_timeout(clock.now());
    }
    let help = "start it again: it shows a new code";
    Err(Failure::new(Exit::Interrupted, "interrupted before the other node came", help))
}

/// Prints the command for the other end.
fn show(desk: &PairingDesk, bound: SocketAddr, out: &mut dyn Write) -> Result<(), Failure> {
    let address = SocketAddr::new(reachable(bound.ip()), bound.port());
    writeln!(out, "type at the other end, within 10 minutes:")?;
    writeln!(out, "  skyhaul pair {address} {}", desk.code())?;
    Ok(out.flush()?)
}

/// An address of this host for others: where it is bound, or that of the default route.
fn reachable(bound: IpAddr) -> IpAddr {
    if !bound.is_unspecified() {
        return bound;
    }
    // No datagram is sent: the system chooses the source address for this destination of RFC 5737.
    let chosen = UdpSocket::bind("0.0.0.0:0")
        .and_then(|socket| socket.connect("192.0.2.1:9").and_then(|()| socket.local_addr()));
    chosen.map_or(bound, |address| address.ip())
}

struct Waiting {
    listener: TcpListener,
    clock: Clock,
    desk: PairingDesk,
    visitors: BTreeMap<PairingVisitor, Guest>,
    next: PairingVisitor,
}

struct Guest {
    stream: TcpStream,
    from: SocketAddr,
    /// The desk is done with it: it is closed then, or as soon as the other end closes. Closed at
    /// once, bytes that were not read would destroy the last message on its way.
    leaves: Option<Instant>,
}

/// What follows from an event.
enum Next {
    On,
    NewCode(String),
    Paired(PairingCard),
    Over(String),
}

impl Waiting {
    fn carry_out(&mut self, event: PairingEvent) -> Next {
        match event {
            PairingEvent::Send { visitor, bytes } => {
                // A message is far smaller than a socket's buffer: who does not take it is gone.
                let sent = self.visitors.get_mut(&visitor).map(|guest| guest.stream.write(&bytes));
                if sent.is_some_and(|sent| sent.ok() != Some(bytes.len())) {
                    self.desk.handle_closed(visitor);
                }
                Next::On
            }
            PairingEvent::Close { visitor } => {
                if let Some(guest) = self.visitors.get_mut(&visitor) {
                    // It may be gone.
                    let _ = guest.stream.shutdown(Shutdown::Write);
                    guest.leaves = Some(self.clock.now() + CLOSING);
                }
                Next::On
            }
            PairingEvent::WrongCode { visitor, left } => {
                let from = self.from(visitor);
                let tries = if left == 1 { "1 try is" } else { &format!("{left} tries are") };
                Next::NewCode(format!("{from} gave a wrong code: it is void, {tries} left"))
            }
            PairingEvent::Vanished { visitor } => {
                let from = self.from(visitor);
                Next::NewCode(format!("{from} did not finish the exchange: the code is void"))
            }
            PairingEvent::Paired(card) => Next::Paired(card),
            PairingEvent::Over(why) => Next::Over(why.to_string()),
        }
    }

    fn from(&self, visitor: PairingVisitor) -> String {
        self.visitors
            .get(&visitor)
            .map_or_else(|| "a node".to_owned(), |guest| guest.from.ip().to_string())
    }

    /// Waits for bytes, a connection, or the time of the desk.
    fn rest(&mut self) -> Result<(), Failure> {
        let now = self.clock.now();
        let due = self.desk.next_timeout().map_or(LOOK, |due| due.since(now.min(due)));
        let rest = due.min(LOOK);
        let timeout = Timespec {
            tv_sec: 0,
            tv_nsec: i64::try_from(rest.as_nanos()).unwrap_or(0).min(999_999_999),
        };
        let mut fds: Vec<PollFd<'_>> = vec![PollFd::new(&self.listener, PollFlags::IN)];
        fds.extend(self.visitors.values().map(|guest| PollFd::new(&guest.stream, PollFlags::IN)));
        match poll(&mut fds, Some(&timeout)) {
            // A signal: the flag is looked at.
            Err(rustix::io::Errno::INTR) | Ok(_) => Ok(()),
            Err(errno) => {
                let help = "check that its network is up";
                Err(Failure::io("a socket failed", "this host", help, errno.into()))
            }
        }
    }

    /// Takes connections and bytes that have arrived.
    fn receive(&mut self) {
        let now = self.clock.now();
        for _ in 0..ACCEPTED {
            // Where the system has no more descriptors, connections wait in its queue.
            let Ok((stream, from)) = self.listener.accept() else { break };
            if stream.set_nonblocking(true).is_err() {
                continue;
            }
            self.desk.enter(now, self.next);
            self.visitors.insert(self.next, Guest { stream, from, leaves: None });
            self.next += 1;
        }
        self.visitors.retain(|_, guest| guest.leaves.is_none_or(|leaves| leaves > now));
        while self.visitors.len() > GUESTS_MAX {
            let leaving = self.visitors.iter().find(|(_, guest)| guest.leaves.is_some());
            let Some(oldest) = leaving.map(|(visitor, _)| *visitor) else { break };
            self.visitors.remove(&oldest);
        }
        let visitors: Vec<PairingVisitor> = self.visitors.keys().copied().collect();
        for visitor in visitors {
            self.read(now, visitor);
        }
    }

    fn read(&mut self, now: Instant, visitor: PairingVisitor) {
        let Some(guest) = self.visitors.get_mut(&visitor) else { return };
        let mut bytes = [0; 2048];
        match guest.stream.read(&mut bytes) {
            Err(error)
                if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {}
            Ok(1..) if guest.leaves.is_some() => {}
            Ok(count @ 1..) => self.desk.handle(now, visitor, &bytes[..count]),
            Ok(0) | Err(_) => {
                self.desk.handle_closed(visitor);
                self.visitors.remove(&visitor);
            }
        }
    }
}

/// Connections, those included that are being closed.
const GUESTS_MAX: usize = 4 * VISITORS_MAX;
/// For the other end to read the last message and close.
const CLOSING: Duration = Duration::from_secs(2);
/// Connections accepted in one turn.
const ACCEPTED: usize = 16;
/// An interrupt is noticed this soon.
const LOOK: Duration = Duration::from_millis(200);
