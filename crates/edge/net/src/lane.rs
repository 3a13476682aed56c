//! An endpoint on a thread of its own: its endpoint, its UDP socket and its connections.
//!
//! ```text
//!   session's thread                                      lane's thread
//!   Session ◄─► SessionManager ◄─► ThreadedEndpoint       Worker ◄─► UdpEndpoint ◄─► network
//!                                   │  symbols, control bytes ──►  │
//!                                   │  ◄── news, datagrams         │
//!                                   └── shares room and estimate ──┘
//! ```
//!
//! A session over several lanes uses several cores: encryption, the QUIC state machine and the
//! system calls run in parallel. The session, which only chooses symbols and follows their outcome,
//! stays on one thread. A lane's connections are to it like any others.
//!
//! - **Room** is credit: the lane grants as many datagrams as its connection's rate control sends
//!   now, and half a millisecond more. Nothing else is queued, so that symbols are still chosen
//!   late.
//! - **Batches** of up to 64 symbols, or news, go through two bounded queues; the bytes of a symbol
//!   are not copied.
//! - **Wake-ups**: at most one write for a batch, and none while the other thread is awake.
//! - **Backpressure**: when the session's thread is slow, the queue towards it fills, and the lane
//!   leaves datagrams in the socket, where the far end's rate control sees a queue.
//! - **Failure** of a lane (its socket fails, its thread panics) ends its own connections with that
//!   reason; the session goes on over the others.
//!
//! No lock is held during a system call. Each lane's rate control remembers far ends for itself.

mod member;
mod message;
mod queue;
mod remote;
mod worker;

#[cfg(test)]
mod tests;

use crate::endpoint::UdpEndpoint;
use crate::{Clock, Waker, drops};
use core::net::SocketAddr;
use message::{FROM_LANE, FromLane, Gauge, TO_LANE, ToLane};
use queue::{Gone, Inlet, Outlet};
use remote::Remote;
use skyhaul_identity::Refusal;
use skyhaul_quic::Fingerprint;
use skyhaul_sessions::{ConnectError, ConnectionId, ConnectionPurpose, Endpoint, EndpointEvent};
use skyhaul_transport::{DownReason, Path, PathEvent};
use skyhaul_units::Instant;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::JoinHandle;

/// The session's side of a lane. Dropping it closes the connections and ends the thread.
pub struct ThreadedEndpoint {
    outlet: Outlet<ToLane>,
    inlet: Inlet<FromLane>,
    connections: BTreeMap<ConnectionId, Near>,
    calls: u64,
    events: VecDeque<EndpointEvent>,
    /// Used since the last hand-over.
    touched: Vec<ConnectionId>,
    /// Connections whose end has been reported.
    ended: Vec<ConnectionId>,
    thread: Option<JoinHandle<io::Result<()>>>,
    /// Why the thread has ended.
    gone: Option<String>,
    address: Option<SocketAddr>,
    inode: Option<u64>,
    send_errors: Arc<AtomicU64>,
}

/// A connection and its state.
struct Near {
    path: Remote,
    /// Where it connects to, until it is up.
    calling: Option<SocketAddr>,
}

impl ThreadedEndpoint {
    /// Runs `endpoint` on a thread of its own, called `name`. `session` wakes the thread that uses
    /// it.
    ///
    /// # Errors
    /// The system has no more file descriptors or threads.
    pub fn start(
        endpoint: UdpEndpoint,
        clock: Clock,
        session: &Waker,
        name: &str,
    ) -> io::Result<Self> {
        let waker = Waker::new()?;
        let (outlet, lane_inlet) = queue::queue(TO_LANE, session.clone(), waker.clone());
        let (lane_outlet, inlet) = queue::queue(FROM_LANE, waker.clone(), session.clone());
        let bell = Farewell(session.clone());
        let (address, inode) =
            (endpoint.socket().local_addr().ok(), drops::inode(endpoint.socket()).ok());
        let send_errors: Arc<AtomicU64> = Arc::default();
        let worker = worker::Worker {
            endpoint,
            send_errors: Arc::clone(&send_errors),
            clock,
            waker,
            gathering: Default::default(),
            session: session.clone(),
            inlet: lane_inlet,
            outlet: lane_outlet,
            connections: Default::default(),
        };
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Declared first, it is dropped last: the woken thread finds the queues disconnected.
            let _bell = bell;
            worker.run()
        })?;
        Ok(Self {
            outlet,
            inlet,
            connections: BTreeMap::new(),
            calls: 0,
            events: VecDeque::new(),
            touched: Vec::new(),
            ended: Vec::new(),
            thread: Some(thread),
            gone: None,
            address,
            inode,
            send_errors,
        })
    }

    /// Changes which nodes may connect. Existing connections stay.
    pub fn set_trusted(&mut self, trusted: BTreeSet<Fingerprint>) {
        let _ = self.outlet.give(ToLane::Trust(trusted));
    }

    /// The address of its socket.
    pub const fn local_addr(&self) -> Option<SocketAddr> {
        self.address
    }

    /// The inode number of its socket.
    pub const fn inode(&self) -> Option<u64> {
        self.inode
    }

    /// Datagrams that the system refused to send; they count as lost on the line.
    pub fn send_errors(&self) -> u64 {
        self.send_errors.load(Ordering::Relaxed)
    }

    /// Received datagrams that were dropped because they were not polled in time.
    pub fn overflowed(&self) -> u64 {
        self.connections.values().map(|near| near.path.overflowed).sum()
    }

    /// Makes the thread close the connections and end.
    pub(crate) fn begin_stop(&mut self) {
        self.hand_over();
        let _ = self.outlet.give(ToLane::Stop);
    }

    /// Closes the connections and waits for the thread, which sends its closing datagrams for half
    /// a second at most.
    pub(crate) fn stop(&mut self) {
        self.begin_stop();
        // This ends: the lane never waits for room in its own queue, and takes all messages at
        // every turn.
        while self.outlet.is_blocked() && self.outlet.retry() == Ok(()) {
            std::thread::yield_now();
        }
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has reported it on standard error.
            let _ = thread.join();
        }
    }

    /// Hands the gathered batches to the lane.
    pub(crate) fn hand_over(&mut self) {
        for id in self.touched.drain(..) {
            if let Some(near) = self.connections.get_mut(&id) {
                near.path.hand_over();
            }
        }
        // The end of the lane shows when the other queue is read.
        let _ = self.outlet.retry();
    }

    /// Takes the lane's messages, no more than the queue holds at a time.
    fn take(&mut self) {
        for _ in 0..FROM_LANE {
            match self.inlet.take() {
                Ok(Some(message)) => self.hear(message),
                Ok(None) => return,
                Err(Gone) => return self.lose(),
            }
        }
    }

    fn hear(&mut self, message: FromLane) {
        match message {
            FromLane::Called(id, gauge) => {
                let path = Remote::new(id, gauge, self.outlet.clone());
                self.connections.insert(id, Near { path, calling: None });
            }
            FromLane::News(id, news) => {
                if let Some(near) = self.connections.get_mut(&id) {
                    near.path.hear(news);
                }
            }
            FromLane::Event(event) => {
                if let EndpointEvent::Ready { id, .. } = &event
                    && let Some(near) = self.connections.get_mut(id)
                {
                    near.calling = None;
                }
                self.events.push_back(event);
            }
        }
    }

    /// The lane has ended, and with it its connections.
    fn lose(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        let reason = match thread.join() {
            Ok(Ok(())) => "the lane has ended".to_owned(),
            Ok(Err(error)) => format!("the lane's socket failed: {error}"),
            Err(panic) => format!("the lane's thread failed: {}", panic_text(&*panic)),
        };
        for (id, near) in &mut self.connections {
            let event = match near.calling.take() {
                Some(remote) => refused(*id, remote, &reason),
                None => {
                    let reason = DownReason::Failed(reason.clone());
                    near.path.hear(vec![PathEvent::Down(reason.clone())]);
                    EndpointEvent::Closed { id: *id, reason }
                }
            };
            self.events.push_back(event);
        }
        self.gone = Some(reason);
    }
}

impl Endpoint for ThreadedEndpoint {
    fn call(
        &mut self,
        _now: Instant,
        remote: SocketAddr,
        expected: Fingerprint,
        purpose: ConnectionPurpose,
    ) -> Result<ConnectionId, ConnectError> {
        let id = worker::calling(self.calls);
        self.calls += 1;
        if let Some(reason) = &self.gone {
            self.events.push_back(refused(id, remote, reason));
            return Ok(id);
        }
        let gauge: Arc<Gauge> = Arc::default();
        let path = Remote::new(id, Arc::clone(&gauge), self.outlet.clone());
        self.connections.insert(id, Near { path, calling: Some(remote) });
        let _ = self.outlet.give(ToLane::Call { id, remote, expected, purpose, gauge });
        Ok(id)
    }

    fn connection(&mut self, id: ConnectionId) -> Option<&mut dyn Path> {
        let near = self.connections.get_mut(&id)?;
        if self.touched.last() != Some(&id) {
            self.touched.push(id);
        }
        Some(&mut near.path)
    }

    fn poll_event(&mut self) -> Option<EndpointEvent> {
        self.hand_over();
        for id in self.ended.drain(..) {
            self.connections.remove(&id);
        }
        if self.events.is_empty() {
            self.take();
        }
        let event = self.events.pop_front()?;
        match &event {
            EndpointEvent::Closed { id, .. } | EndpointEvent::Refused { id: Some(id), .. } => {
                self.ended.push(*id);
            }
            EndpointEvent::Ready { .. } | EndpointEvent::Refused { id: None, .. } => {}
        }
        Some(event)
    }

    /// The lane has its own timers, and wakes the session's thread.
    fn next_timeout(&self) -> Option<Instant> {
        None
    }

    fn handle_timeout(&mut self, _now: Instant) {}
}

impl Drop for ThreadedEndpoint {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Wakes the session's thread when the lane's thread ends, whether or not by a panic.
struct Farewell(Waker);

impl Drop for Farewell {
    fn drop(&mut self) {
        self.0.wake();
    }
}

fn refused(id: ConnectionId, remote: SocketAddr, reason: &str) -> EndpointEvent {
    let reason = Refusal::Failed(reason.to_owned());
    EndpointEvent::Refused { id: Some(id), remote, fingerprint: None, reason }
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("it panicked")
}
