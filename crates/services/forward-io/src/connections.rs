//! Applications' connections whose socket is connected: those accepted here, and those made for
//! far nodes.

use crate::connection::{AfterWrite, Answer, Connection, FarEnd, Reading, Unwritten};
use crate::context::ForwardContext;
use crate::dial::Dialled;
use crate::poller::Ready;
use crate::refusal::RequestRefusal;
use crate::socket;
use crate::streams::{StreamKey, StreamTable};
use bytes::Bytes;
use skyhaul_forward::socks::{Reply, UNKNOWN, reply};
use skyhaul_forward::{Carriage, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::Duration;
use std::collections::VecDeque;
use std::os::fd::OwnedFd;

/// All of them, under the token of their socket.
#[derive(Debug, Default)]
pub(super) struct Connections {
    pub(super) all: StreamTable<Connection>,
}

/// An application's connection that the far node is to complete.
#[derive(Debug)]
pub(super) struct ForwardRequest {
    /// Under which its socket is watched.
    pub token: u64,
    pub session: SessionId,
    pub target: Target,
    pub carriage: Carriage,
    pub idle: Option<Duration>,
    pub answer: Answer,
}

impl Connections {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Received bytes that applications have not taken.
    pub fn unwritten(&self) -> usize {
        self.all.values().map(|connection| connection.unwritten.len()).sum()
    }

    pub fn token(&self, stream: StreamKey) -> Option<u64> {
        self.all.token(stream)
    }

    /// Asks the far node to connect. Gives the socket back where the session has no room for one
    /// more.
    pub fn open(
        &mut self,
        context: &mut ForwardContext,
        request: ForwardRequest,
        socket: OwnedFd,
    ) -> Result<(), OwnedFd> {
        let ForwardRequest { token, session, target, carriage, idle, answer } = request;
        let Some(peer) = context.sessions.get_mut(session) else { return Err(socket) };
        let Ok(stream) = peer.mux.open(context.now, target.clone(), &carriage) else {
            context.counters.refused += 1;
            return Err(socket);
        };
        context.counters.accepted += 1;
        let connection = Connection {
            stream: StreamKey { session, stream },
            lane: peer.mux.lane(stream).unwrap_or_default(),
            socket,
            far: FarEnd::Connecting { target, answer },
            // The poller reports a new socket's state. It has reported that of an application
            // that asked by SOCKS, during the handshake.
            reading: if answer == Answer::Socks { Reading::Ready } else { Reading::Blocked },
            writable: answer == Answer::Socks,
            unwritten: Unwritten::default(),
            active: context.now,
            idle,
        };
        self.all.insert(token, connection);
        self.queue(context, token);
        Ok(())
    }

    /// Takes over a connection that was made for a far node.
    pub fn adopt(&mut self, context: &mut ForwardContext, dialled: Dialled) {
        let Dialled { token, stream, socket, unwritten } = dialled;
        let Some(peer) = context.sessions.get_mut(stream.session) else {
            return socket::abort(socket);
        };
        peer.mux.accept(context.now, stream.stream);
        context.counters.connected += 1;
        let connection = Connection {
            stream,
            lane: peer.mux.lane(stream.stream).unwrap_or_default(),
            socket,
            far: FarEnd::Connected,
            reading: Reading::Ready,
            writable: true,
            unwritten,
            active: context.now,
            idle: None,
        };
        self.all.insert(token, connection);
        self.queue(context, token);
        self.write(context, token);
    }

    /// The far node has connected.
    pub fn accepted(&mut self, context: &mut ForwardContext, token: u64) {
        let Some(connection) = self.all.get_mut(token) else { return };
        let before = core::mem::replace(&mut connection.far, FarEnd::Connected);
        let is_told = match before {
            FarEnd::Connecting { answer: Answer::Socks, .. } => {
                socket::say(&connection.socket, &reply(Reply::Succeeded, UNKNOWN))
            }
            FarEnd::Connecting { .. } | FarEnd::Connected => true,
        };
        if !is_told {
            self.reset(context, token);
        }
    }

    /// The far node has not connected.
    pub fn refused(&mut self, context: &mut ForwardContext, token: u64, refusal: RequestRefusal) {
        let Some(Connection { socket, far, .. }) = self.all.remove(token) else { return };
        let FarEnd::Connecting { target, answer } = far else { return socket::abort(socket) };
        match answer {
            Answer::Socks => socket::farewell(socket, &reply(refusal.reason.into(), UNKNOWN)),
            Answer::Nothing => socket::abort(socket),
        }
        context.refused(target, refusal);
    }

    /// Bytes came for an application.
    pub fn data(&mut self, context: &mut ForwardContext, token: u64, bytes: Bytes) {
        if let Some(connection) = self.all.get_mut(token) {
            connection.unwritten.push(bytes);
        }
        self.write(context, token);
    }

    /// No more bytes come for an application.
    pub fn finish(&mut self, context: &mut ForwardContext, token: u64) {
        if let Some(connection) = self.all.get_mut(token) {
            connection.unwritten.finish();
        }
        self.write(context, token);
    }

    /// The far end has reset the stream.
    pub fn reset_by_peer(&mut self, context: &mut ForwardContext, token: u64) {
        if let Some(connection) = self.all.remove(token) {
            context.counters.reset += 1;
            socket::abort(connection.socket);
        }
    }

    /// Resets a connection at both ends.
    pub fn reset(&mut self, context: &mut ForwardContext, token: u64) {
        let Some(connection) = self.all.remove(token) else { return };
        let StreamKey { session, stream } = connection.stream;
        if let Some(peer) = context.sessions.get_mut(session) {
            peer.mux.reset(stream);
        }
        context.counters.reset += 1;
        socket::abort(connection.socket);
    }

    /// A session has ended.
    pub fn end_session(&mut self, context: &mut ForwardContext, session: SessionId) {
        for connection in self.all.take_session(session) {
            context.counters.reset += 1;
            socket::abort(connection.socket);
        }
    }

    /// The class tree of a session has changed: moves its connections to their new lanes.
    pub fn change_lanes(&mut self, context: &mut ForwardContext, session: SessionId) {
        let Some(peer) = context.sessions.get_mut(session) else { return };
        for connection in self.all.of_session(session) {
            connection.lane = peer.mux.lane(connection.stream.stream).unwrap_or_default();
        }
        let queued: VecDeque<u64> =
            core::mem::take(&mut peer.lanes).into_values().flatten().collect();
        for token in queued {
            if let Some(connection) = self.all.get(token) {
                peer.lanes.entry(connection.lane).or_default().push_back(token);
            }
        }
    }

    /// A socket is ready.
    pub fn ready(&mut self, context: &mut ForwardContext, ready: Ready) {
        let Some(connection) = self.all.get_mut(ready.token) else { return };
        if ready.broken && socket::error(&connection.socket).is_some() {
            return self.reset(context, ready.token);
        }
        connection.writable |= ready.writable;
        if ready.readable {
            connection.set_readable();
            self.queue(context, ready.token);
        }
        self.write(context, ready.token);
    }

    /// Writes what came for an application, and closes its connection where both directions have
    /// ended.
    pub fn write(&mut self, context: &mut ForwardContext, token: u64) {
        let Some(connection) = self.all.get_mut(token) else { return };
        let written = connection.write(context.now);
        let StreamKey { session, stream } = connection.stream;
        context.counters.bytes_received += written.bytes as u64;
        if let Some(peer) = context.sessions.get_mut(session)
            && written.bytes > 0
        {
            peer.mux.taken(context.now, peer.rtt, stream, written.bytes);
        }
        if written.socket == AfterWrite::Broken {
            self.reset(context, token);
        } else if connection.is_done() {
            context.counters.finished += 1;
            drop(self.all.remove(token));
        }
    }

    /// Puts a connection that has bytes to read into its lane's queue.
    pub fn queue(&mut self, context: &mut ForwardContext, token: u64) {
        let Some(connection) = self.all.get_mut(token) else { return };
        let is_ready = connection.reading == Reading::Ready;
        let peer = context.sessions.get_mut(connection.stream.session);
        if let Some(peer) = peer.filter(|_| is_ready) {
            connection.reading = Reading::Queued;
            peer.lanes.entry(connection.lane).or_default().push_back(token);
        }
    }

    /// Resets connections that were idle for too long.
    pub fn sweep(&mut self, context: &mut ForwardContext) {
        for token in self.all.tokens_where(|connection| connection.is_overdue(context.now)) {
            self.reset(context, token);
        }
    }
}
