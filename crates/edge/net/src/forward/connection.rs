//! One application's connection, and what waits to be written to it.

use super::socket::{self, Moved};
use bytes::{Buf as _, Bytes};
use skyhaul_forward::{StreamId, Target};
use skyhaul_sessions::SessionId;
use skyhaul_transport::ClassId;
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;

/// Where a connection is on its way.
///
/// ```text
///   accepted here:      Asking ── the far end accepts ──► Open
///   for a far node:     Resolving ── addresses ──► Connecting ── connected ──► Open
///                                                    │    ▲
///                                                    └────┘ the next address
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The far end connects.
    Asking,
    /// The name is looked up.
    Resolving,
    /// The system connects.
    Connecting,
    /// Both ends are connected.
    Open,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub session: SessionId,
    pub stream: StreamId,
    pub target: Target,
    /// Class and priority of its blocks.
    pub lane: (ClassId, u8),
    pub phase: Phase,
    /// The application has asked by SOCKS, and waits for the answer.
    pub expects_answer: bool,
    /// None before it is dialled.
    pub socket: Option<OwnedFd>,
    /// Addresses still to be tried.
    pub candidates: VecDeque<SocketAddr>,
    pub readable: bool,
    /// It stands in its lane's queue.
    pub queued: bool,
    /// The application sends nothing more.
    pub read_ended: bool,
    writable: bool,
    /// The far end sends nothing more, and it was passed on when nothing waits.
    finishing: bool,
    write_ended: bool,
    /// Bytes that came, bounded by the stream's window.
    waiting: VecDeque<Bytes>,
    /// When something last came or went.
    pub active: Instant,
    pub idle: Option<Duration>,
}

impl Connection {
    pub fn new(
        now: Instant,
        (session, stream): (SessionId, StreamId),
        target: Target,
        phase: Phase,
    ) -> Self {
        Self {
            session,
            stream,
            target,
            lane: (ClassId::default(), 0),
            phase,
            expects_answer: false,
            socket: None,
            candidates: VecDeque::new(),
            readable: false,
            queued: false,
            read_ended: false,
            writable: false,
            finishing: false,
            write_ended: false,
            waiting: VecDeque::new(),
            active: now,
            idle: None,
        }
    }

    /// Bytes came for the application.
    pub fn push(&mut self, bytes: Bytes) {
        self.waiting.push_back(bytes);
    }

    /// The far end sends nothing more.
    pub const fn finish(&mut self) {
        self.finishing = true;
    }

    /// The socket takes bytes, or an error is to be found out by writing.
    pub const fn set_writable(&mut self) {
        self.writable = true;
    }

    /// Writes what waits; then the end, if it has come. Returns the bytes written, and whether the
    /// socket still stands.
    pub fn write(&mut self, now: Instant) -> (usize, bool) {
        let mut written = 0;
        let Some(socket) = self.socket.as_ref().filter(|_| self.phase != Phase::Connecting) else {
            return (0, true);
        };
        while self.writable
            && let Some(bytes) = self.waiting.front_mut()
        {
            match socket::write(socket, bytes) {
                Moved::Some(count) => {
                    written += count;
                    bytes.advance(count);
                    if bytes.is_empty() {
                        self.waiting.pop_front();
                    }
                }
                Moved::Blocked => self.writable = false,
                Moved::End | Moved::Broken => return (written, false),
            }
        }
        if self.waiting.is_empty() && self.finishing && !self.write_ended {
            self.write_ended = true;
            socket::finish(socket);
        }
        if written > 0 {
            self.active = now;
        }
        (written, true)
    }

    /// Both directions have ended.
    pub const fn is_done(&self) -> bool {
        self.read_ended && self.write_ended
    }

    /// Bytes that came and wait.
    pub fn waiting(&self) -> usize {
        self.waiting.iter().map(Bytes::len).sum()
    }

    /// Nothing came or went for longer than it may, or it is not connected after so long.
    pub fn is_overdue(&self, now: Instant, connect: Duration) -> bool {
        let most = if self.phase == Phase::Connecting { Some(connect) } else { self.idle };
        most.is_some_and(|most| now.since(self.active) >= most)
    }

    /// Closes it so that the application sees a reset.
    pub fn abort(self) {
        self.socket.into_iter().for_each(socket::abort);
    }
}
