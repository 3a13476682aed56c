//! The transport's side: moves blocks between the program and the sessions.

use super::PathChoice;
use super::state::{Call, Came, LinkId, LinkState, Shared, Ticket};
use crate::Service;
use crate::SessionManager;
use skyhaul_sessions::{PathTarget, SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{BlockId, Event, Opening, Outcome, SendError, cost};
use skyhaul_units::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Serves the sessions of one exchange.
#[derive(Debug)]
pub(super) struct ChannelDriver {
    name: String,
    shared: Arc<Shared>,
    sessions: BTreeMap<SessionId, Member>,
}

#[derive(Debug)]
struct Member {
    link: LinkId,
    /// Further paths, to be called for once the far end has introduced itself.
    further: Vec<PathChoice>,
    /// Blocks that the session has and of whose fate it has not told. Bounded by its send buffer.
    tickets: BTreeMap<BlockId, Ticket>,
}

impl ChannelDriver {
    pub fn new(name: String, shared: Arc<Shared>) -> Self {
        Self { name, shared, sessions: BTreeMap::new() }
    }

    /// The thread ends.
    pub fn over(&mut self, reason: String) {
        self.shared.state().stop(&reason);
    }

    fn session_event(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        (id, event): (SessionId, Event),
    ) {
        let Some(member) = self.sessions.get_mut(&id) else { return };
        let mut state = self.shared.state();
        let Some(link) = state.links.get_mut(&member.link) else { return };
        match event {
            Event::Greeted { name, .. } => {
                link.open = true;
                link.peer.0 = name;
                for way in member.further.drain(..) {
                    let to = PathTarget { socket: SocketId(way.socket), remote: way.remote };
                    if let Err(error) = manager.join(now, id, to, way.options) {
                        link.refused.push(format!("{}: {error}", way.remote));
                    }
                }
            }
            Event::Block(received) => link.arrived(Came { received, is_counted: true }),
            Event::Settled { id, outcome } => {
                if let Some(ticket) = member.tickets.remove(&id) {
                    link.settle(ticket, outcome);
                }
            }
            Event::Closed(reason) => link.close(reason.to_string()),
            Event::Custody { .. } | Event::Application { .. } | Event::PathUp(_) => {}
            Event::PathStalled(_)
            | Event::PathBack(_)
            | Event::PathDown(..)
            | Event::PathResized(_) => {}
        }
        link.wake();
    }

    fn ended(&mut self, link: LinkId, reason: String) {
        if let Some(link) = self.shared.state().links.get_mut(&link) {
            link.close(reason);
        }
    }

    fn place_calls(&mut self, now: Instant, manager: &mut SessionManager) {
        loop {
            let Some((link, call)) = self.shared.state().calls.pop_front() else { return };
            let Call { ways, peer } = call;
            let mut ways = ways.into_iter();
            let Some(first) = ways.next() else {
                self.ended(link, "no path given; give at least one".to_owned());
                continue;
            };
            match manager.connect_from(now, SocketId(first.socket), first.remote, peer) {
                Ok(id) => {
                    let member = Member { link, further: ways.collect(), tickets: BTreeMap::new() };
                    self.sessions.insert(id, member);
                }
                Err(error) => self.ended(link, error.to_string()),
            }
        }
    }

    /// Blocks to a session, and memory given back.
    fn serve(&mut self, now: Instant, manager: &mut SessionManager) {
        let mut finished = Vec::new();
        let mut state = self.shared.state();
        for (id, member) in &mut self.sessions {
            let Some(link) = state.links.get_mut(&member.link) else { continue };
            let Some(session) = manager.session(*id) else { continue };
            link.released.drain(..).for_each(|len| session.release(len));
            link.stats = session.stats();
            link.paths.clear();
            link.paths.extend(session.paths());
            let mut moved = false;
            while let Some((_, block)) = link.outgoing.front() {
                if !session.is_open()
                    || session.room().as_u64() < cost(block.bytes.len())
                        && link.stats.send_buffer > 0
                {
                    break;
                }
                let Some((ticket, block)) = link.outgoing.pop_front() else { break };
                moved = true;
                match session.send(now, block) {
                    Ok(id) => {
                        member.tickets.insert(id, ticket);
                        link.named(ticket, id);
                    }
                    Err(SendError::NotOpen) => {}
                    Err(_) => link.settle(ticket, Outcome::Cancelled),
                }
                link.stats = session.stats();
            }
            if moved {
                link.wake();
            }
            if is_done_with(link) && member.tickets.is_empty() {
                finished.push(*id);
                link.close(CLOSED_HERE.to_owned());
            }
        }
        // One whose blocks somebody still asks for stays until then.
        state.links.retain(|_, link| !link.is_over());
        drop(state);
        for id in finished {
            manager.close(now, id, CLOSED_HERE);
        }
    }
}

const CLOSED_HERE: &str = "closed by this program";

/// Whether the program has let go of the link, and nothing of it is on the way any more.
fn is_done_with(link: &LinkState) -> bool {
    link.dropped && link.closed.is_none() && link.outgoing.is_empty()
}

impl Service for ChannelDriver {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        match event {
            SessionManagerEvent::Connected { id, fingerprint, .. } => {
                let shared = &self.shared;
                let member = self.sessions.entry(id).or_insert_with(|| {
                    let link = shared.state().accept(fingerprint);
                    Member { link, further: Vec::new(), tickets: BTreeMap::new() }
                });
                if let Some(link) = shared.state().links.get_mut(&member.link) {
                    link.peer.1 = Some(fingerprint);
                }
                if let Some(session) = manager.session(id) {
                    session.open(Opening { name: self.name.clone(), ..Opening::default() });
                }
            }
            SessionManagerEvent::Session { id, event } => {
                self.session_event(now, manager, (id, event));
            }
            SessionManagerEvent::Disconnected { id, reason } => {
                if let Some(member) = self.sessions.remove(&id) {
                    self.ended(member.link, reason.to_string());
                }
            }
            SessionManagerEvent::Refused { id, reason, .. } => {
                if let Some(member) = id.and_then(|id| self.sessions.remove(&id)) {
                    self.ended(member.link, reason.to_string());
                }
            }
            SessionManagerEvent::PathRefused { id, remote, reason, .. } => {
                let mut state = self.shared.state();
                let link =
                    self.sessions.get(&id).and_then(|member| state.links.get_mut(&member.link));
                if let Some(link) = link {
                    link.refused.push(format!("{remote}: {reason}"));
                }
            }
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        self.place_calls(now, manager);
        self.serve(now, manager);
        None
    }
}
