//! Connecting for far nodes: the name look-up, then one address after the other.

use crate::connection::Unwritten;
use crate::context::{ForwardContext, Located};
use crate::refusal::RequestRefusal;
use crate::socket;
use crate::streams::{OnStream, StreamKey, StreamTable};
use bytes::Bytes;
use rustix::io::Errno;
use skyhaul_forward::{ConnectRefusal, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// How long the system may take to connect: three of its attempts over a line of 660 ms, and less
/// than applications wait.
pub(super) const CONNECT_MAX: Duration = Duration::from_secs(15);

/// Connection attempts in progress.
#[derive(Debug, Default)]
pub(super) struct Dials {
    all: StreamTable<Dial>,
}

/// One target that a far node wants to be connected to.
#[derive(Debug)]
struct Dial {
    stream: StreamKey,
    target: Target,
    phase: Phase,
    /// Bytes that came before the connection is made.
    unwritten: Unwritten,
}

/// ```text
///  LookingUp ── addresses ──► Connecting ── connected ──► `Dialled`
///                              │    ▲
///                              └────┘ the next address
/// ```
#[derive(Debug)]
enum Phase {
    LookingUp,
    Connecting {
        socket: OwnedFd,
        since: Instant,
        /// Addresses still to be tried.
        others: VecDeque<SocketAddr>,
    },
}

/// A connection that has been made.
#[derive(Debug)]
pub(super) struct Dialled {
    pub token: u64,
    pub stream: StreamKey,
    pub socket: OwnedFd,
    /// Bytes that came meanwhile.
    pub unwritten: Unwritten,
}

impl Dials {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Bytes that wait for a connection.
    pub fn unwritten(&self) -> usize {
        self.all.values().map(|dial| dial.unwritten.len()).sum()
    }

    pub fn contains(&self, token: u64) -> bool {
        self.all.contains(token)
    }

    /// A far node asks to connect. A socket file is connected at once.
    pub fn start(
        &mut self,
        context: &mut ForwardContext,
        stream: StreamKey,
        target: Target,
    ) -> Option<Dialled> {
        let token = context.poller.token();
        let (phase, unwritten) = (Phase::LookingUp, Unwritten::default());
        self.all.insert(token, Dial { stream, target: target.clone(), phase, unwritten });
        if let Target::Unix(path) = &target {
            return self.connect_file(context, token, path);
        }
        match context.locate(stream.session, token, &target) {
            Located::At(address) => self.try_addresses(context, token, &[address]),
            Located::LookingUp => {}
            Located::Refused(refusal) => self.refuse(context, token, refusal),
        }
        None
    }

    fn connect_file(
        &mut self,
        context: &mut ForwardContext,
        token: u64,
        path: &str,
    ) -> Option<Dialled> {
        let Dial { stream, target, .. } = self.all.get(token)?;
        let peer = context.sessions.get(stream.session);
        if !peer.is_some_and(|peer| peer.permits(target, None)) {
            self.refuse(context, token, RequestRefusal::not_allowed());
            return None;
        }
        match socket::connect_unix(path).and_then(|socket| context.watched(socket, token)) {
            Ok(socket) => {
                let Dial { stream, unwritten, .. } = self.all.remove(token)?;
                Some(Dialled { token, stream, socket, unwritten })
            }
            Err(errno) => {
                self.refuse(context, token, RequestRefusal::of_connect(errno));
                None
            }
        }
    }

    /// A name look-up has ended.
    pub fn located(
        &mut self,
        context: &mut ForwardContext,
        token: u64,
        addresses: Result<Vec<SocketAddr>, RequestRefusal>,
    ) {
        match addresses {
            Ok(addresses) => self.try_addresses(context, token, &addresses),
            Err(refusal) => self.refuse(context, token, refusal),
        }
    }

    /// Connects to the first of the addresses that are allowed.
    fn try_addresses(
        &mut self,
        context: &mut ForwardContext,
        token: u64,
        addresses: &[SocketAddr],
    ) {
        let Some(Dial { stream, target, .. }) = self.all.get(token) else { return };
        let allowed = context.allowed(stream.session, target, addresses);
        if allowed.is_empty() {
            return self.refuse(context, token, RequestRefusal::not_allowed());
        }
        self.try_next(context, token, allowed.into(), Errno::ADDRNOTAVAIL);
    }

    /// Connects to the next address. Where there is none, the failure of the last one, `last`, is
    /// the answer.
    fn try_next(
        &mut self,
        context: &mut ForwardContext,
        token: u64,
        mut addresses: VecDeque<SocketAddr>,
        mut last: Errno,
    ) {
        while let Some(address) = addresses.pop_front() {
            let connecting =
                socket::connect_tcp(&address).and_then(|socket| context.watched(socket, token));
            match connecting {
                Ok(socket) => {
                    let Some(dial) = self.all.get_mut(token) else { return };
                    dial.phase =
                        Phase::Connecting { socket, since: context.now, others: addresses };
                    return;
                }
                Err(errno) => last = errno,
            }
        }
        self.refuse(context, token, RequestRefusal::of_connect(last));
    }

    /// The system has connected, or has failed to.
    pub fn connected(&mut self, context: &mut ForwardContext, token: u64) -> Option<Dialled> {
        let dial = self.all.get_mut(token)?;
        let Phase::Connecting { socket, others, .. } = &mut dial.phase else { return None };
        if let Some(errno) = socket::error(socket) {
            let others = core::mem::take(others);
            dial.phase = Phase::LookingUp;
            self.try_next(context, token, others, errno);
            return None;
        }
        let Dial { stream, phase, unwritten, .. } = self.all.remove(token)?;
        let Phase::Connecting { socket, .. } = phase else { return None };
        Some(Dialled { token, stream, socket, unwritten })
    }

    /// Bytes came for a connection that is not made yet.
    pub fn data(&mut self, stream: StreamKey, bytes: Bytes) {
        if let Some(dial) = self.all.token(stream).and_then(|token| self.all.get_mut(token)) {
            dial.unwritten.push(bytes);
        }
    }

    /// No more bytes come for it.
    pub fn finish(&mut self, stream: StreamKey) {
        if let Some(dial) = self.all.token(stream).and_then(|token| self.all.get_mut(token)) {
            dial.unwritten.finish();
        }
    }

    /// The far node wants no connection any more.
    pub fn reset_by_peer(&mut self, context: &mut ForwardContext, stream: StreamKey) {
        if self.all.token(stream).and_then(|token| self.all.remove(token)).is_some() {
            context.counters.reset += 1;
        }
    }

    /// A session has ended.
    pub fn end_session(&mut self, context: &mut ForwardContext, session: SessionId) {
        context.counters.reset += self.all.take_session(session).len() as u64;
    }

    /// Ends attempts that take too long.
    pub fn sweep(&mut self, context: &mut ForwardContext) {
        let is_late = |dial: &Dial| match dial.phase {
            Phase::LookingUp => false,
            Phase::Connecting { since, .. } => context.now.since(since) >= CONNECT_MAX,
        };
        for token in self.all.tokens_where(is_late) {
            let refusal = RequestRefusal::new(ConnectRefusal::TimedOut, "no answer");
            self.refuse(context, token, refusal);
        }
    }

    /// Tells the far node that it is not connected, and why.
    fn refuse(&mut self, context: &mut ForwardContext, token: u64, refusal: RequestRefusal) {
        let Some(Dial { stream, target, .. }) = self.all.remove(token) else { return };
        if let Some(peer) = context.sessions.get_mut(stream.session) {
            peer.mux.refuse(stream.stream, refusal.reason, &refusal.sentence);
        }
        context.refused(target, refusal);
    }
}

impl OnStream for Dial {
    fn stream(&self) -> StreamKey {
        self.stream
    }
}
