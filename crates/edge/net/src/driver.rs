//! Runs a session manager on the sockets of its endpoints, in real time, on one thread.

use crate::SessionManager;
use crate::clock::Clock;
use crate::endpoint::AnyEndpoint;
use crate::left_socket::LeftSocket;
use crate::rest::{self, Gathering};
use crate::socket::Socket;
use crate::turn::{Arrived, FAREWELL_MAX, Left};
use crate::waker::Waker;
use rustix::event::{PollFd, PollFlags};
use skyhaul_sessions::{SessionManagerEvent, SocketId};
use skyhaul_units::Instant;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicBool, Ordering};

/// Uses the session manager's sessions: feeds them, and takes what they deliver.
pub trait Service {
    /// An event of the session manager.
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent);

    /// Called after events and at every wake-up: feed sessions, send receipts. Returns when it
    /// wants to be called again; a time that has passed means at once, after what arrived meanwhile
    /// has been taken.
    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant>;

    /// An endpoint to serve from now on, with its socket. Called after each [`Service::work`] until
    /// it returns `None`.
    fn next_socket(&mut self) -> Option<AnyEndpoint> {
        None
    }

    /// A descriptor that is readable when the service has something to do. Where there is one,
    /// datagrams are taken as they come: gathering them would delay the service.
    fn fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    /// The socket given last has this id.
    fn socket_added(&mut self, _id: SocketId) {}

    /// What the far ends are told when the driver ends.
    fn last_word(&self) -> LastWord {
        LastWord::Stops
    }
}

/// What the far ends are told at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LastWord {
    /// The node stops.
    Stops,
    /// It goes on in another process, with the same sockets: see [`Driver::left_sockets`].
    GoesOn,
}

/// Runs a session manager by a clock.
pub struct Driver {
    manager: SessionManager,
    clock: Clock,
    waker: Waker,
    gathering: Gathering,
    waits: u64,
}

/// Rounds of sending, and of refilling the room that this made, before receiving has its turn.
const ROUNDS: usize = 16;

impl Driver {
    /// Runs `manager`.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn new(manager: SessionManager, clock: Clock) -> io::Result<Self> {
        Ok(Self::woken_by(Waker::new()?, manager, clock))
    }

    /// The same with a waker that endpoints on other threads use too.
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

    /// Runs until `stop` is set, then closes the sessions.
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
            // Where the service or the line has more to do now, there is no wait.
            if arrived == Arrived::More || more_to_send || service_due.is_some_and(|due| due <= now)
            {
                continue;
            }
            let due = [self.manager.next_timeout(), service_due].into_iter().flatten().min();
            self.waits += 1;
            let own = service.fd();
            let gathers = arrived == Arrived::Little && own.is_none();
            if !gathers || !self.gathering.rest(&self.waker, &self.clock, now, due)? {
                let own = own.as_ref().map(|fd| PollFd::new(fd, PollFlags::IN));
                let fds = self.manager.endpoints().filter_map(AnyEndpoint::poll_fd).chain(own);
                rest::wait(&self.waker, &self.clock, due, fds)?;
            }
        }
        self.farewell(service.last_word())
    }

    /// The sockets that wait for calls, for the process that goes on with them, in the order of
    /// their endpoints. Nothing is read from them any more.
    ///
    /// # Errors
    /// The system has no more file descriptors.
    pub fn left_sockets(&mut self) -> io::Result<Vec<LeftSocket>> {
        self.manager.endpoints_mut().filter_map(|endpoint| endpoint.leave().transpose()).collect()
    }

    /// Closes the sessions, and sends the closing datagrams and their copies. Where one socket
    /// fails, the others go on.
    fn farewell(&mut self, word: LastWord) -> io::Result<()> {
        let clock = self.clock;
        let now = clock.now();
        let ends = now + FAREWELL_MAX;
        let open: Vec<_> = self.manager.sessions().map(|(id, _)| id).collect();
        match word {
            LastWord::Stops => {
                open.into_iter().for_each(|id| self.manager.close(now, id, "the node is stopping"));
            }
            LastWord::GoesOn => {
                self.manager.endpoints_mut().for_each(|endpoint| endpoint.close_to_go_on(now));
            }
        }
        self.manager.endpoints_mut().for_each(AnyEndpoint::begin_farewell);
        let mut outcome = Ok(());
        loop {
            let now = clock.now();
            self.manager.handle_timeout(now);
            let mut left = Left::Nothing;
            for endpoint in self.manager.endpoints_mut() {
                // What far ends sent before they heard of the end would fill the sockets.
                if word == LastWord::GoesOn
                    && let Err(error) = endpoint.receive(&clock)
                {
                    outcome = outcome.and(Err(error));
                }
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
                let fds = self.manager.endpoints().filter_map(AnyEndpoint::poll_fd);
                let fds = fds.filter(|_| word == LastWord::GoesOn);
                if let Err(error) = rest::wait(&self.waker, &clock, Some(due), fds) {
                    outcome = outcome.and(Err(error));
                    break;
                }
            }
        }
        self.manager.endpoints_mut().for_each(AnyEndpoint::farewell);
        outcome
    }

    /// Hands events to the service, and lets it work.
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
                // The refilled symbols are not due yet.
                Left::Nothing if round > 0 => return Ok(false),
                Left::Nothing | Left::All if !self.manager.refill(now) => return Ok(false),
                Left::Nothing | Left::All => {}
            }
        }
        Ok(true)
    }
}
