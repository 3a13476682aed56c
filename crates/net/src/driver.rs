//! Runs an engine on a socket, in real time, on one thread.

use crate::clock::Clock;
use crate::socket::{AT_ONCE, Outgoing, Socket};
use crate::waker::Waker;
use crate::{Carrier, Engine};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_engine::{EngineEvent, Received, SocketId, Transmit};
use skyhaul_units::{Bytes, Duration, Instant};
use std::io;
use std::os::fd::AsFd as _;
use std::sync::atomic::{AtomicBool, Ordering};

/// What uses the engine's sessions: it feeds them, and takes what they give.
pub trait Service {
    /// Something happened.
    fn event(&mut self, now: Instant, engine: &mut Engine, event: EngineEvent);

    /// Called after events and at every wake-up: feed sessions, send receipts. Returns when it wants to be called
    /// again by itself: a time that has come means at once, after what arrived meanwhile has been taken.
    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant>;

    /// A socket to serve from now on, and what speaks there; asked for after each [`Service::work`] until there is none.
    fn next_socket(&mut self) -> Option<(Carrier, Socket)> {
        None
    }

    /// The socket given last is served under this name.
    fn socket_added(&mut self, _id: SocketId) {}
}

/// An engine, the sockets of its carriers and its clock.
pub struct Driver {
    engine: Engine,
    /// In the order of the engine's carriers.
    sockets: Vec<Socket>,
    clock: Clock,
    waker: Waker,
    /// The batch that leaves next; kept where a socket's buffer is full.
    batch: Vec<u8>,
    unsent: Option<(SocketId, Transmit)>,
    /// Datagrams that the system refused to send.
    send_errors: u64,
}

/// The longest wait: the stop flag is looked at this often even where nobody wakes the driver.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// The shortest wait, so that what is due within it goes together. At 93 Mbit/s it is six packets.
const WAIT_MIN: Duration = Duration::from_micros(500);
/// What arrives within this of what was taken last is taken together with it: at 93 Mbit/s 16 datagrams, which would
/// otherwise wake the thread one by one, and as often as the pacer wakes it.
const GATHER: Duration = Duration::from_millis(2);
/// So much at a time, 64 datagrams of 1500 bytes, needs no gathering: waking up for it costs less than it does, and what
/// comes meanwhile might not fit the socket.
const PLENTY: Bytes = Bytes::kib(96);

/// System calls for what arrived before sending has its turn: 2 MB at most, 4 ms at 4 Gbit/s.
const RECEIVES: usize = 4;
/// System calls for what leaves before receiving has its turn: 1 MB at most, 2 ms at 4 Gbit/s.
const TRANSMITS: usize = 16;

impl Driver {
    /// Runs `engine` on `socket`.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new(engine: Engine, socket: Socket, clock: Clock) -> io::Result<Self> {
        let waker = Waker::new()?;
        let (batch, unsent, send_errors) = Default::default();
        Ok(Self { engine, sockets: vec![socket], clock, waker, batch, unsent, send_errors })
    }

    /// Adds the socket of one more carrier.
    pub fn add_socket(&mut self, carrier: impl Into<Carrier>, socket: Socket) -> SocketId {
        self.sockets.push(socket);
        self.engine.add_carrier(carrier.into())
    }

    /// Wakes the driver when the service has something new.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The first socket.
    pub fn socket(&self) -> &Socket {
        &self.sockets[0]
    }

    /// All sockets, in the order of the engine's carriers.
    pub fn sockets(&self) -> &[Socket] {
        &self.sockets
    }

    /// Datagrams that the system refused to send; they count as lost on the line.
    pub const fn send_errors(&self) -> u64 {
        self.send_errors
    }

    /// Runs until `stop` is set, then says farewell to the connected nodes.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run(&mut self, service: &mut impl Service, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let arrived = self.receive()?;
            let now = self.clock.now();
            self.engine.handle_timeout(now);
            let service_due = self.serve(service, now);
            let more_to_send = self.transmit(now);
            // Neither a service that has more to do now nor a line that has is kept waiting for the clock.
            if arrived == Arrived::More || more_to_send || service_due.is_some_and(|due| due <= now) {
                continue;
            }
            let due = [self.engine.next_timeout(), service_due].into_iter().flatten().min();
            if arrived != Arrived::Little || !self.gather(now, due)? {
                self.wait(due)?;
            }
        }
        let now = self.clock.now();
        let open: Vec<_> = self.engine.sessions().map(|(id, _)| id).collect();
        for id in open {
            self.engine.close(now, id, "the node is stopping");
        }
        while self.transmit(now) {}
        Ok(())
    }

    /// Events and work until neither brings more.
    fn serve(&mut self, service: &mut impl Service, now: Instant) -> Option<Instant> {
        self.engine.flush(now);
        while let Some(event) = self.engine.poll_event() {
            service.event(now, &mut self.engine, event);
        }
        let mut due = service.work(now, &mut self.engine);
        while let Some((carrier, socket)) = service.next_socket() {
            let id = self.add_socket(carrier, socket);
            service.socket_added(id);
            due = Some(now);
        }
        self.engine.flush(now);
        due
    }

    /// Takes what has arrived.
    fn receive(&mut self) -> io::Result<Arrived> {
        let mut arrived = Arrived::Nothing;
        for index in 0..self.sockets.len() {
            arrived = arrived.max(self.receive_from(SocketId(index))?);
        }
        Ok(arrived)
    }

    fn receive_from(&mut self, id: SocketId) -> io::Result<Arrived> {
        let (engine, clock) = (&mut self.engine, &self.clock);
        let mut taken = Bytes::ZERO;
        for _ in 0..RECEIVES {
            let mut arrived = None;
            let count = self.sockets[id.0].receive(|incoming| {
                // Read after the datagrams: a reading from before may be older than their arrival by as long as this thread
                // was kept from running, and a round trip that looks too short makes every later one look like a queue.
                let now = *arrived.get_or_insert_with(|| clock.now());
                let (remote, local_ip, ecn) = (incoming.from, incoming.to, incoming.ecn);
                for payload in incoming {
                    taken += Bytes::of(payload.len());
                    engine.handle_datagram(now, id, Received { remote, local_ip, ecn, payload });
                }
            })?;
            if count < AT_ONCE {
                return Ok(match taken {
                    Bytes::ZERO => Arrived::Nothing,
                    taken if taken < PLENTY => Arrived::Little,
                    _ => Arrived::Plenty,
                });
            }
        }
        Ok(Arrived::More)
    }

    /// Sends what is ready; returns whether there may be more.
    fn transmit(&mut self, now: Instant) -> bool {
        for _ in 0..TRANSMITS {
            let unsent = self.unsent.take();
            let next = unsent.or_else(|| self.engine.poll_transmit(now, &mut self.batch));
            let Some((id, transmit)) = next else { return false };
            let outgoing = Outgoing {
                to: transmit.to,
                from: transmit.src_ip,
                ecn: transmit.ecn,
                contents: &self.batch[..transmit.size],
                segment_size: transmit.segment_size,
            };
            match self.sockets[id.0].send(&outgoing) {
                Ok(true) => {}
                Ok(false) => {
                    self.unsent = Some((id, transmit));
                    return false;
                }
                Err(_) => self.send_errors += 1,
            }
        }
        true
    }

    /// Lets datagrams gather, for less time if something is `due`. Returns whether that, or the waker, ended it.
    fn gather(&self, now: Instant, due: Option<Instant>) -> io::Result<bool> {
        let end = due.map_or(now + GATHER, |due| due.min(now + GATHER));
        let mut fds = [PollFd::from_borrowed_fd(self.waker.fd(), PollFlags::IN)];
        poll_for(&mut fds, self.clock.until(end))?;
        let woken = fds[0].revents().contains(PollFlags::IN);
        if woken {
            self.waker.reset();
        }
        Ok(woken || end < now + GATHER)
    }

    fn wait(&self, due: Option<Instant>) -> io::Result<()> {
        let span = due.map_or(WAIT_MAX, |due| self.clock.until(due)).clamp(WAIT_MIN, WAIT_MAX);
        let blocked = self.unsent.map(|(id, _)| id.0);
        let mut fds = vec![PollFd::from_borrowed_fd(self.waker.fd(), PollFlags::IN)];
        fds.extend(self.sockets.iter().enumerate().map(|(index, socket)| {
            let writable = if blocked == Some(index) { PollFlags::OUT } else { PollFlags::empty() };
            PollFd::from_borrowed_fd(socket.as_fd(), PollFlags::IN | writable)
        }));
        poll_for(&mut fds, span)?;
        if fds[0].revents().contains(PollFlags::IN) {
            self.waker.reset();
        }
        Ok(())
    }
}

/// How much was there of what had arrived.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Arrived {
    Nothing,
    /// Less than [`PLENTY`], and all of it was taken.
    Little,
    Plenty,
    /// More than is taken at once.
    More,
}

/// Waits for one of `fds`, `span` at most; a signal ends it too.
fn poll_for(fds: &mut [PollFd<'_>], span: Duration) -> io::Result<()> {
    let nanos = span.as_nanos();
    let timeout = Timespec {
        tv_sec: (nanos / 1_000_000_000).cast_signed(),
        tv_nsec: (nanos % 1_000_000_000).cast_signed(),
    };
    match poll(fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}
