//! The transport's side of a client: moves blocks between the program and the sessions.

use crate::hint::HintError;
use crate::path_choice::PathChoice;
use crate::state::{ArrivedBlock, ChannelId, ConnectRequest, OutgoingBlock, Shared, Ticket};
use skyhaul_net::Service;
use skyhaul_net::SessionManager;
use skyhaul_sessions::{PathTarget, SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{BlockId, Event, Opening, Outcome, SendError, cost};
use skyhaul_units::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Serves the sessions of one client. Each has one channel.
#[derive(Debug)]
pub(crate) struct ChannelDriver {
    name: String,
    shared: Arc<Shared>,
    sessions: BTreeMap<SessionId, OwnSession>,
}

#[derive(Debug)]
struct OwnSession {
    channel: ChannelId,
    /// Further paths, to be joined after the handshake.
    further: Vec<PathChoice>,
    /// Blocks that the session has and whose outcome is open, bounded by its send buffer.
    tickets: BTreeMap<BlockId, Ticket>,
}

impl ChannelDriver {
    pub fn new(name: String, shared: Arc<Shared>) -> Self {
        Self { name, shared, sessions: BTreeMap::new() }
    }

    /// The thread ends.
    pub fn stop(&mut self, reason: String) {
        self.shared.state().stop(&reason);
    }

    fn session_event(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        event: Event,
    ) {
        let Some(member) = self.sessions.get_mut(&id) else { return };
        let mut state = self.shared.state();
        let Some(channel) = state.channels.get_mut(&member.channel) else { return };
        match event {
            Event::Greeted { name, .. } => {
                channel.open = true;
                channel.peer_name = name;
                for path in member.further.drain(..) {
                    let to = PathTarget { socket: SocketId(path.socket), remote: path.remote };
                    if let Err(error) = manager.join(now, id, to, path.options) {
                        channel.refused.push(format!("{}: {error}", path.remote));
                    }
                }
            }
            Event::Block(received) => channel.arrived(ArrivedBlock { received, is_counted: true }),
            Event::Settled { id, outcome } => {
                if let Some(ticket) = member.tickets.remove(&id) {
                    channel.settle(ticket, outcome);
                }
            }
            Event::Closed(reason) => channel.close(reason.to_string()),
            Event::Custody { .. } | Event::Application { .. } | Event::PathUp(_) => {}
            Event::PathStalled(_)
            | Event::PathBack(_)
            | Event::PathDown(..)
            | Event::PathResized(_) => {}
        }
        channel.wake();
    }

    fn ended(&mut self, channel: ChannelId, reason: String) {
        if let Some(channel) = self.shared.state().channels.get_mut(&channel) {
            channel.close(reason);
        }
    }

    fn connect_requested(&mut self, now: Instant, manager: &mut SessionManager) {
        loop {
            let Some((channel, request)) = self.shared.state().connecting.pop_front() else {
                return;
            };
            let ConnectRequest { paths, peer } = request;
            let mut paths = paths.into_iter();
            let Some(first) = paths.next() else {
                self.ended(channel, "no path given; give at least one".to_owned());
                continue;
            };
            match manager.connect_from(now, SocketId(first.socket), first.remote, peer) {
                Ok(id) => {
                    let member =
                        OwnSession { channel, further: paths.collect(), tickets: BTreeMap::new() };
                    self.sessions.insert(id, member);
                }
                Err(error) => self.ended(channel, error.to_string()),
            }
        }
    }

    /// Moves blocks to the sessions, and gives back the window of blocks that programs have taken.
    fn serve(&mut self, now: Instant, manager: &mut SessionManager) {
        let mut finished = Vec::new();
        let mut state = self.shared.state();
        for (id, member) in &mut self.sessions {
            let Some(channel) = state.channels.get_mut(&member.channel) else { continue };
            let Some(session) = manager.session(*id) else { continue };
            channel.released.drain(..).for_each(|len| session.release(len));
            for (number, path, hint) in channel.terms.hints.take_all() {
                let is_there = session.paths().iter().any(|(known, _)| known == path);
                let answer = match is_there && session.hint(path, [hint.at(now)]) {
                    true => Ok(()),
                    false if is_there => Err(HintError::TooMany(path)),
                    false => Err(HintError::NoPath(path)),
                };
                channel.hinted(number, answer);
            }
            channel.stats = session.stats();
            channel.paths.clear();
            channel.paths.extend(session.paths().iter());
            let mut moved = false;
            while let Some(OutgoingBlock { block, .. }) = channel.outgoing.front() {
                if !session.is_open()
                    || session.room().as_u64() < cost(block.bytes.len())
                        && channel.stats.sent.buffer > 0
                {
                    break;
                }
                let Some(OutgoingBlock { ticket, block, .. }) = channel.outgoing.pop_front() else {
                    break;
                };
                moved = true;
                match session.send(now, block) {
                    Ok(id) => {
                        member.tickets.insert(id, ticket);
                        channel.named(ticket, id);
                    }
                    Err(SendError::NotOpen) => {}
                    Err(_) => channel.settle(ticket, Outcome::Cancelled),
                }
                channel.stats = session.stats();
            }
            if moved {
                channel.wake();
            }
            if channel.is_done_with() && member.tickets.is_empty() {
                finished.push(*id);
                channel.close(CLOSED_HERE.to_owned());
            }
        }
        // A channel stays while the program may ask for the outcome of one of its blocks.
        state.channels.retain(|_, channel| !channel.is_over());
        drop(state);
        for id in finished {
            manager.close(now, id, CLOSED_HERE);
        }
    }
}

const CLOSED_HERE: &str = "closed by this program";

impl Service for ChannelDriver {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, fingerprint, .. } => {
                let shared = &self.shared;
                let member = self.sessions.entry(id).or_insert_with(|| {
                    let channel = shared.state().accept(fingerprint);
                    OwnSession { channel, further: Vec::new(), tickets: BTreeMap::new() }
                });
                if let Some(channel) = shared.state().channels.get_mut(&member.channel) {
                    channel.peer_key = Some(fingerprint);
                }
                if let Some(session) = manager.session(id) {
                    session.open(Opening { name: self.name.clone(), ..Opening::default() });
                }
            }
            SessionManagerEvent::Session { id, event } => {
                self.session_event(now, manager, id, event);
            }
            SessionManagerEvent::Disconnected { id, reason } => {
                if let Some(member) = self.sessions.remove(&id) {
                    self.ended(member.channel, reason.to_string());
                }
            }
            SessionManagerEvent::Refused { id, reason, .. } => {
                if let Some(member) = id.and_then(|id| self.sessions.remove(&id)) {
                    self.ended(member.channel, reason.to_string());
                }
            }
            SessionManagerEvent::PathRefused { id, remote, reason, .. } => {
                let mut state = self.shared.state();
                let channel = self
                    .sessions
                    .get(&id)
                    .and_then(|member| state.channels.get_mut(&member.channel));
                if let Some(channel) = channel {
                    channel.refused.push(format!("{remote}: {reason}"));
                }
            }
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        self.connect_requested(now, manager);
        self.serve(now, manager);
        None
    }
}
