//! Runs a session manager on the sockets of its endpoints, in real time, on one thread.

use crate::SessionManager;
use crate::clock::Clock;
use crate::endpoint::{AnyEndpoint, Arrived, FAREWELL_MAX, Left};
use crate::rest::{self, Gathering};
use crate::socket::Socket;
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags};
use skyhaul_sessions::{SessionManagerEvent, SocketId};
use skyhaul_units::Instant;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// What uses the session manager's sessions: it feeds them, and takes what they give.
pub trait Service {
    /// Something happened.
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent);

    /// Called after events and at every wake-up: feed sessions, send receipts. Returns when it
    /// wants to be called again by itself: a time that has come means at once, after what arrived
    /// meanwhile has been taken.
    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant>;

    /// An endpoint to serve from now on, with its socket; asked for after each [`Service::work`]
    /// until there is none.
    fn next_socket(&mut self) -> Option<AnyEndpoint> {
        None
    }

    /// What becomes readable when the service has something to do, beside the endpoints' sockets.
    /// Datagrams are then taken as they come: letting them gather would keep what is behind it
    /// waiting.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The socket given last is served under this name.
    fn socket_added(&mut self, _id: SocketId) {}
}

/// A session manager and its clock.
pub struct Driver {
    manager: SessionManager,
    clock: Clock,
    waker: Waker,
    gathering: Gathering,
    waits: u64,
}

/// Rounds of sending, and of filling the room that this made, before receiving has its turn.
const ROUNDS: usize = 16;

impl Driver {
    /// Runs `session manager`.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new(manager: SessionManager, clock: Clock) -> io::Result<Self> {
        Ok(Self::woken_by(Waker::new()?, manager, clock))
    }

    /// The same where endpoints on other threads are to wake it too.
    pub fn woken_by(waker: Waker, manager: SessionManager, clock: Clock) -> Self {
        Self { manager, clock, waker, gathering: Gathering::default(), waits: 0 }
    }

    /// Adds one more endpoint.
    pub fn add_endpoint(&mut self, endpoint: impl Into<AnyEndpoint>) -> SocketId {
        self.manager.add_endpoint(endpoint.into())
    }

    /// Wakes the driver when the service has something new.
    pub fn waker(&self) -> Waker {
        self.waker.clone()
    }

    /// The endpoints, in the order in which they were added.
    pub fn endpoints(&self) -> impl Iterator<Item = &AnyEndpoint> {
        self.manager.endpoints()
    }

    /// The endpoints' UDP sockets.
    pub fn sockets(&self) -> impl Iterator<Item = &Socket> {
        self.endpoints().filter_map(AnyEndpoint::socket)
    }

    /// Datagrams that the system refused to send; they count as lost on the line.
    pub fn send_errors(&self) -> u64 {
        self.endpoints().map(AnyEndpoint::send_errors).sum()
    }

    /// How often the thread has waited for something to do.
    pub const fn waits(&self) -> u64 {
        self.waits
    }

    /// Runs until `stop` is set, then says farewell to the connected nodes.
    ///
    /// # Errors
    /// The socket failed.
    pub fn run(&mut self, service: &mut impl Service, stop: &AtomicBool) -> io::Result<()> {
        while !stop.load(Ordering::Relaxed) {
            let arrived = self.receive()?;
            self.gathering.took(arrived);
            let now = self.clock.now();
            self.manager.handle_timeout(now);
            let service_due = self.serve(service, now);
            let more_to_send = self.transmit(now)?;
            // Neither a service that has more to do now nor a line that has is kept waiting for the
            // clock.
            if arrived == Arrived::More || more_to_send || service_due.is_some_and(|due| due <= now)
            {
                continue;
            }
            let due = [self.manager.next_timeout(), service_due].into_iter().flatten().min();
            self.waits += 1;
            let own = service.fd();
            let gathers = arrived == Arrived::Little && own.is_none();
            if !gathers || !self.gathering.rest(&self.waker, &self.clock, (now, due))? {
                let own = own.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
                let fds = self.manager.endpoints().filter_map(AnyEndpoint::poll_fd).chain(own);
                rest::wait(&self.waker, &self.clock, due, fds)?;
            }
        }
        self.farewell()
    }

    /// Closes the sessions, and sends the closing datagrams and their copies. A socket that fails
    /// keeps no other from its farewell.
    fn farewell(&mut self) -> io::Result<()> {
        let clock = self.clock;
        let now = clock.now();
        let ends = now + FAREWELL_MAX;
        let open: Vec<_> = self.manager.sessions().map(|(id, _)| id).collect();
        for id in open {
            self.manager.close(now, id, "the node is stopping");
        }
        self.manager.endpoints_mut().for_each(AnyEndpoint::begin_farewell);
        let mut outcome = Ok(());
        loop {
            let now = clock.now();
            self.manager.handle_timeout(now);
            let mut left = Left::Nothing;
            for endpoint in self.manager.endpoints_mut() {
                match endpoint.transmit(&clock) {
                    Ok(more) => left = left.max(more),
                    Err(error) => outcome = outcome.and(Err(error)),
                }
            }
            let is_closing = self.manager.endpoints().any(AnyEndpoint::is_closing);
            if now >= ends || (left != Left::Part && !is_closing) {
                break;
            }
            if left != Left::Part {
                let due = self.manager.next_timeout().map_or(ends, |due| due.min(ends));
                if let Err(error) = rest::wait(&self.waker, &clock, Some(due), None) {
                    outcome = outcome.and(Err(error));
                    break;
                }
            }
        }
        self.manager.endpoints_mut().for_each(AnyEndpoint::farewell);
        outcome
    }

    /// Events and work until neither brings more.
    fn serve(&mut self, service: &mut impl Service, now: Instant) -> Option<Instant> {
        self.manager.flush(now);
        while let Some(event) = self.manager.poll_event() {
            service.event(now, &mut self.manager, event);
        }
        let mut due = service.work(now, &mut self.manager);
        while let Some(endpoint) = service.next_socket() {
            let id = self.add_endpoint(endpoint);
            service.socket_added(id);
            due = Some(now);
        }
        self.manager.flush(now);
        due
    }

    /// Takes what has arrived.
    fn receive(&mut self) -> io::Result<Arrived> {
        let clock = self.clock;
        self.manager.endpoints_mut().try_fold(Arrived::Nothing, |most, endpoint| {
            endpoint.receive(&clock).map(|arrived| arrived.max(most))
        })
    }

    /// Sends what is ready; returns whether there may be more.
    fn transmit(&mut self, now: Instant) -> io::Result<bool> {
        let clock = self.clock;
        for round in 0..ROUNDS {
            let left = self.manager.endpoints_mut().try_fold(Left::Nothing, |most, endpoint| {
                endpoint.transmit(&clock).map(|left| left.max(most))
            })?;
            match left {
                Left::Part => return Ok(true),
                // What was filled in does not leave yet.
                Left::Nothing if round > 0 => return Ok(false),
                Left::Nothing | Left::All if !self.manager.refill(now) => return Ok(false),
                Left::Nothing | Left::All => {}
            }
        }
        Ok(true)
    }
}
