//! Runs an engine on a socket, in real time, on one thread.

use crate::clock::Clock;
use crate::socket::{Outgoing, Socket};
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use skyhaul_quic::{Engine, EngineEvent, Received, Transmit};
use skyhaul_units::{Duration, Instant};
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
}

/// An engine, its socket and its clock.
pub struct Driver {
    engine: Engine,
    socket: Socket,
    clock: Clock,
    waker: Waker,
    /// A batch that the socket's full buffer kept back.
    unsent: Option<(Transmit, Vec<u8>)>,
    /// Datagrams that the system refused to send.
    send_errors: u64,
}

/// The longest wait: the stop flag is looked at this often even where nobody wakes the driver.
const WAIT_MAX: Duration = Duration::from_millis(250);
/// The shortest wait, so that what is due within it goes together. At 93 Mbit/s it is six packets.
const WAIT_MIN: Duration = Duration::from_micros(500);

impl Driver {
    /// Runs `engine` on `socket`.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new(engine: Engine, socket: Socket, clock: Clock) -> io::Result<Self> {
        Ok(Self { engine, socket, clock, waker: Waker::new()?, unsent: None, send_errors: 0 })
    }

    /// Wakes the driver when the service has something new.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The socket.
    pub const fn socket(&self) -> &Socket {
        &self.socket
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
            self.receive()?;
            let now = self.clock.now();
            self.engine.handle_timeout(now);
            let service_due = self.serve(service, now);
            self.transmit(now);
            // A service that has more to do now is not kept waiting for the clock.
            if service_due.is_none_or(|due| due > now) {
                let due = [self.engine.next_timeout(), service_due].into_iter().flatten().min();
                self.wait(due)?;
            }
        }
        let now = self.clock.now();
        let open: Vec<_> = self.engine.sessions().map(|(id, _)| id).collect();
        for id in open {
            self.engine.close(now, id, "the node is stopping");
        }
        self.transmit(now);
        Ok(())
    }

    /// Events and work until neither brings more.
    fn serve(&mut self, service: &mut impl Service, now: Instant) -> Option<Instant> {
        self.engine.flush(now);
        while let Some(event) = self.engine.poll_event() {
            service.event(now, &mut self.engine, event);
        }
        let due = service.work(now, &mut self.engine);
        self.engine.flush(now);
        due
    }

    fn receive(&mut self) -> io::Result<()> {
        let (engine, clock) = (&mut self.engine, &self.clock);
        self.socket.receive(|incoming| {
            let payload = incoming.contents.into();
            let received =
                Received { remote: incoming.from, local_ip: incoming.to, ecn: incoming.ecn, payload };
            // Read after the datagram: a reading from before may be older than its arrival by as long as this thread was
            // kept from running, and a round trip that looks too short makes every later one look like a queue.
            engine.handle_datagram(clock.now(), received);
        })
    }

    fn transmit(&mut self, now: Instant) {
        loop {
            let (transmit, contents) = match self.unsent.take() {
                Some(unsent) => unsent,
                None => {
                    let mut contents = Vec::new();
                    let Some(transmit) = self.engine.poll_transmit(now, &mut contents) else { return };
                    (transmit, contents)
                }
            };
            let outgoing = Outgoing {
                to: transmit.to,
                from: transmit.src_ip,
                ecn: transmit.ecn,
                contents: &contents[..transmit.size],
                segment_size: transmit.segment_size,
            };
            match self.socket.send(&outgoing) {
                Ok(true) => {}
                Ok(false) => {
                    self.unsent = Some((transmit, contents));
                    return;
                }
                Err(_) => self.send_errors += 1,
            }
        }
    }

    fn wait(&self, due: Option<Instant>) -> io::Result<()> {
        let span = due.map_or(WAIT_MAX, |due| self.clock.until(due)).clamp(WAIT_MIN, WAIT_MAX);
        let nanos = span.as_nanos();
        let timeout = Timespec {
            tv_sec: (nanos / 1_000_000_000).cast_signed(),
            tv_nsec: (nanos % 1_000_000_000).cast_signed(),
        };
        let writable = if self.unsent.is_some() { PollFlags::OUT } else { PollFlags::empty() };
        let (socket, waker) = (self.socket.as_fd(), self.waker.fd());
        let mut fds = [
            PollFd::from_borrowed_fd(socket, PollFlags::IN | writable),
            PollFd::from_borrowed_fd(waker, PollFlags::IN),
        ];
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        if fds[1].revents().contains(PollFlags::IN) {
            self.waker.reset();
        }
        Ok(())
    }
}
