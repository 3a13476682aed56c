//! The transport's side: moves blocks between the program and the sessions.

use super::state::{LinkId, LinkState, Shared, Ticket};
use crate::Engine;
use crate::Service;
use skyhaul_engine::{EngineEvent, SessionId};
use skyhaul_transport::{BlockId, Event, Opening, Outcome, SendError, cost};
use skyhaul_units::Instant;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Serves the sessions of one exchange.
#[derive(Debug)]
pub(super) struct Bridge {
    name: String,
    shared: Arc<Shared>,
    sessions: BTreeMap<SessionId, Member>,
}

#[derive(Debug)]
struct Member {
    link: LinkId,
    /// Blocks that the session has and of whose fate it has not told. Bounded by its send buffer.
    tickets: BTreeMap<BlockId, Ticket>,
}

impl Bridge {
    pub fn new(name: String, shared: Arc<Shared>) -> Self {
        Self { name, shared, sessions: BTreeMap::new() }
    }

    /// The thread ends.
    pub fn over(&mut self, reason: String) {
        self.shared.state().stop(&reason);
    }

    fn session_event(&mut self, id: SessionId, event: Event) {
        let Some(member) = self.sessions.get_mut(&id) else { return };
        let mut state = self.shared.state();
        let Some(link) = state.links.get_mut(&member.link) else { return };
        match event {
            Event::Greeted { .. } => link.open = true,
            Event::Block(received) => link.incoming.push_back(received),
            Event::Settled { id, outcome } => {
                if let Some(ticket) = member.tickets.remove(&id) {
                    link.settle(ticket, outcome);
                }
            }
            Event::Closed(reason) => link.close(reason.to_string()),
            Event::Custody { .. } | Event::Application { .. } | Event::PathUp(_) => {}
            Event::PathStalled(_) | Event::PathBack(_) | Event::PathDown(..) => {}
        }
        link.wake();
    }

    fn ended(&mut self, link: LinkId, reason: String) {
        if let Some(link) = self.shared.state().links.get_mut(&link) {
            link.close(reason);
        }
    }

    fn place_calls(&mut self, now: Instant, engine: &mut Engine) {
        loop {
            let Some((link, call)) = self.shared.state().calls.pop_front() else { return };
            match engine.connect(now, call.remote, call.peer) {
                Ok(id) => {
                    self.sessions.insert(id, Member { link, tickets: BTreeMap::new() });
                }
                Err(error) => self.ended(link, error.to_string()),
            }
        }
    }

    /// Blocks to a session, and memory given back.
    fn serve(&mut self, now: Instant, engine: &mut Engine) {
        let mut finished = Vec::new();
        let mut state = self.shared.state();
        for (id, member) in &mut self.sessions {
            let Some(link) = state.links.get_mut(&member.link) else { continue };
            let Some(session) = engine.session(*id) else { continue };
            link.released.drain(..).for_each(|len| session.release(len));
            link.stats = session.stats();
            let mut moved = false;
            while let Some((_, block)) = link.outgoing.front() {
                if !session.is_open()
                    || session.room().as_u64() < cost(block.bytes.len()) && link.stats.send_buffer > 0
                {
                    break;
                }
                let Some((ticket, block)) = link.outgoing.pop_front() else { break };
                moved = true;
                match session.send(now, block) {
                    Ok(id) => drop(member.tickets.insert(id, ticket)),
                    Err(SendError::NotOpen) => {}
                    Err(_) => link.settle(ticket, Outcome::Cancelled),
                }
                link.stats = session.stats();
            }
            if moved {
                link.wake();
            }
            if is_done_with(link) && member.tickets.is_empty() {
                finished.push((*id, member.link));
            }
        }
        state.links.retain(|id, link| {
            !(link.dropped && link.closed.is_some()) || finished.iter().any(|(_, done)| done == id)
        });
        drop(state);
        for (id, _) in finished {
            engine.close(now, id, "the program has closed the link");
        }
    }
}

/// Whether the program has let go of the link, and nothing of it is on the way any more.
fn is_done_with(link: &LinkState) -> bool {
    link.dropped && link.closed.is_none() && link.outgoing.is_empty()
}

impl Service for Bridge {
    fn event(&mut self, _now: Instant, engine: &mut Engine, event: EngineEvent) {
        match event {
            EngineEvent::Connected { id, .. } => {
                if !self.sessions.contains_key(&id) {
                    let link = self.shared.state().accept();
                    self.sessions.insert(id, Member { link, tickets: BTreeMap::new() });
                }
                if let Some(session) = engine.session(id) {
                    session.open(Opening { name: self.name.clone(), ..Opening::default() });
                }
            }
            EngineEvent::Session { id, event } => self.session_event(id, event),
            EngineEvent::Disconnected { id, reason } => {
                if let Some(member) = self.sessions.remove(&id) {
                    self.ended(member.link, reason.to_string());
                }
            }
            EngineEvent::Refused { id, reason, .. } => {
                if let Some(member) = id.and_then(|id| self.sessions.remove(&id)) {
                    self.ended(member.link, reason.to_string());
                }
            }
            EngineEvent::PathRefused { .. } => {}
        }
    }

    fn work(&mut self, now: Instant, engine: &mut Engine) -> Option<Instant> {
        self.place_calls(now, engine);
        self.serve(now, engine);
        None
    }
}
