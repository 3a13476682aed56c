//! One application's connection: its socket, and how far each direction is.

use crate::socket::{self, Moved};
use crate::streams::{OnStream, StreamKey};
use bytes::{Buf as _, Bytes};
use skyhaul_forward::{Lane, Target};
use skyhaul_units::{Duration, Instant};
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// An application's connection.
#[derive(Debug)]
pub(super) struct Connection {
    pub stream: StreamKey,
    pub lane: Lane,
    pub socket: OwnedFd,
    pub far: FarEnd,
    pub reading: Reading,
    /// The socket takes bytes, or has an error that writing will show.
    pub writable: bool,
    pub unwritten: Unwritten,
    /// When bytes were last read or written.
    pub active: Instant,
    pub idle: Option<Duration>,
}

/// The connection at the far node.
#[derive(Debug)]
pub(super) enum FarEnd {
    /// It is being made.
    Connecting {
        target: Target,
        answer: Answer,
    },
    Connected,
}

/// What the application expects to hear once the far node has connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    Nothing,
    /// It has asked by SOCKS.
    Socks,
}

/// Reading from the application.
///
/// ```text
///  Blocked ── readable ──► Ready ── enters its lane's queue ──► Queued
///  Queued, when it is its turn: some bytes ──► Queued   no window left ──► Ready
///                               no bytes ────► Blocked  the end ─────────► Ended
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reading {
    /// The socket has nothing.
    Blocked,
    /// The socket has bytes.
    Ready,
    /// It is in its lane's queue.
    Queued,
    /// The application sends nothing more.
    Ended,
}

/// Bytes that came for an application, and their end. The stream's window bounds them.
#[derive(Debug, Default)]
pub(super) struct Unwritten {
    bytes: VecDeque<Bytes>,
    end: WriteEnd,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum WriteEnd {
    /// More may come.
    #[default]
    Open,
    /// The far end sends nothing more; the application has not been told.
    Received,
    /// The application has been told.
    Written,
}

/// What one call wrote.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Written {
    pub bytes: usize,
    pub socket: AfterWrite,
}

/// The socket after writing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AfterWrite {
    Usable,
    Broken,
}

impl Connection {
    /// The socket has bytes, or the end of them.
    pub fn set_readable(&mut self) {
        if self.reading == Reading::Blocked {
            self.reading = Reading::Ready;
        }
    }

    /// Writes what has come, and then the end, if that has come.
    pub fn write(&mut self, now: Instant) -> Written {
        let mut written = Written { bytes: 0, socket: AfterWrite::Usable };
        while self.writable
            && let Some(bytes) = self.unwritten.bytes.front_mut()
        {
            match socket::write(&self.socket, bytes) {
                Moved::Some(count) => {
                    written.bytes += count;
                    bytes.advance(count);
                    if bytes.is_empty() {
                        self.unwritten.bytes.pop_front();
                    }
                }
                Moved::Blocked => self.writable = false,
                Moved::End | Moved::Broken => {
                    written.socket = AfterWrite::Broken;
                    return written;
                }
            }
        }
        if self.unwritten.bytes.is_empty() && self.unwritten.end == WriteEnd::Received {
            self.unwritten.end = WriteEnd::Written;
            socket::finish(&self.socket);
        }
        if written.bytes > 0 {
            self.active = now;
        }
        written
    }

    /// Both directions have ended.
    pub fn is_done(&self) -> bool {
        self.reading == Reading::Ended && self.unwritten.end == WriteEnd::Written
    }

    /// Nothing was read or written for longer than allowed.
    pub fn is_overdue(&self, now: Instant) -> bool {
        self.idle.is_some_and(|idle| now.since(self.active) >= idle)
    }
}

impl OnStream for Connection {
    fn stream(&self) -> StreamKey {
        self.stream
    }
}

impl Unwritten {
    /// Bytes came.
    pub fn push(&mut self, bytes: Bytes) {
        self.bytes.push_back(bytes);
    }

    /// No more bytes come.
    pub fn finish(&mut self) {
        if self.end == WriteEnd::Open {
            self.end = WriteEnd::Received;
        }
    }

    pub fn len(&self) -> usize {
        self.bytes.iter().map(Bytes::len).sum()
    }
}
