//! Links over sessions that somebody else holds.

use super::link::{AppChannel, LinkError};
use super::state::{Came, LinkId, LinkState, Shared, State, Ticket, Wanted};
use crate::guests::{FlowRange, LinksTaken, Share};
use crate::{SessionManager, Waker};
use bytes::Bytes;
use skyhaul_identity::Fingerprint;
use skyhaul_sessions::SessionId;
use skyhaul_sessions::links::{self, LinkSlot, Links, WINDOW};
use skyhaul_transport::{
    Block, BlockId, ClassId, Outcome, Received, SendError, Session, Stats, cost,
};
use skyhaul_units::{ByteCount, FlowId, Instant};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::ops::Bound;
use std::sync::Arc;

/// The links of one service over all sessions of a node: what the program's side has of them is a
/// [`Door`].
#[derive(Debug)]
pub(crate) struct SharedSession {
    shared: Arc<Shared>,
    range: FlowRange,
    /// Of each session's send buffer.
    share: ByteCount,
    taken: LinksTaken,
    sessions: BTreeMap<SessionId, ServedSession>,
}

/// Where a program has links over sessions that somebody else holds.
#[derive(Debug, Clone)]
pub struct ChannelService(Arc<Shared>);

/// One session.
#[derive(Debug)]
struct ServedSession {
    node: Option<usize>,
    /// The far end's name, once it is open, and its key.
    name: Option<String>,
    key: Fingerprint,
    share: Share,
    links: Links,
    members: BTreeMap<LinkSlot, Member>,
    /// The link that handed a block over last: the one behind it is next.
    last: Option<LinkSlot>,
    /// A message of links as such that the session had no room for.
    held: Option<Block>,
}

/// A link.
#[derive(Debug)]
struct Member {
    link: LinkId,
    /// Under which class its blocks go, whatever they say; none for a link that the far end began.
    class: Option<String>,
    /// Blocks that the session has and of whose fate it has not told. Bounded by the share.
    tickets: BTreeMap<BlockId, Ticket>,
    stats: Stats,
}

/// What a session is to the links over it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedSessionOwner {
    /// Which end this is.
    pub end: links::SessionEnd,
    /// The place of the far node among those that this one calls by it.
    pub node: Option<usize>,
    /// The far node's key.
    pub key: Fingerprint,
}

impl ChannelService {
    /// A link over the session with the node at this place, from when that is open; its blocks go
    /// under `class`, or the default one where the session has none of that name.
    ///
    /// # Errors
    /// The node has stopped, or as many links are open as there may be.
    pub async fn connect(&self, node: usize, class: &str) -> Result<AppChannel, LinkError> {
        let id = self.0.want(Wanted { node, class: class.to_owned() });
        let link = AppChannel::new(Arc::clone(&self.0), id);
        let waiter = self.0.waiter(Some(id));
        poll_fn(|context| waiter.poll_open(context)).await?;
        Ok(link)
    }

    /// The next link that a far node has begun; `None` once the node has stopped.
    pub async fn accept(&self) -> Option<AppChannel> {
        let waiter = self.0.waiter(None);
        let id = poll_fn(|context| waiter.poll_accept(context)).await?;
        Some(AppChannel::new(Arc::clone(&self.0), id))
    }
}

impl SharedSession {
    /// None yet; `waker` is of who calls [`Lent::work`].
    pub fn new(range: FlowRange, share: ByteCount, taken: LinksTaken, waker: Waker) -> Self {
        Self {
            shared: Arc::new(Shared::new(waker)),
            range,
            share,
            taken,
            sessions: BTreeMap::new(),
        }
    }

    pub fn door(&self) -> ChannelService {
        ChannelService(Arc::clone(&self.shared))
    }

    /// A session has begun.
    pub fn begun(
        &mut self,
        id: SessionId,
        SharedSessionOwner { end, node, key }: SharedSessionOwner,
    ) {
        let lending = ServedSession {
            node,
            name: None,
            key,
            share: Share::of(self.share),
            links: Links::new(end, self.range.first()),
            members: BTreeMap::new(),
            last: None,
            held: None,
        };
        self.sessions.insert(id, lending);
    }

    /// Both ends know each other.
    pub fn opened(&mut self, id: SessionId, name: &str) {
        self.sessions
            .get_mut(&id)
            .into_iter()
            .for_each(|lending| lending.name = Some(name.to_owned()));
    }

    /// A block of the range came.
    pub fn block(&mut self, session: &mut Session, id: SessionId, received: &Received) {
        let Some(lending) = self.sessions.get_mut(&id) else { return };
        // Windows of links bound what is kept from here on; the session's window is for what is on
        // the way.
        session.release(received.bytes.len());
        let Some(flow) = self.range.inner(received.id.flow) else { return };
        match lending.links.receive(flow, &received.bytes) {
            Ok(events) => {
                for event in events {
                    lending.happened(&self.shared, self.taken, event, received);
                }
            }
            Err(error) => session.refuse(&error.to_string()),
        }
    }

    /// A session has told what became of a block of the range.
    pub fn settled(&mut self, id: SessionId, block: BlockId, outcome: Outcome) {
        let Some(lending) = self.sessions.get_mut(&id) else { return };
        lending.share.settled(block);
        let mut members = lending.members.values_mut();
        let found = members.find_map(|member| Some((member.link, member.tickets.remove(&block)?)));
        if let Some((link, ticket)) = found
            && let Some(link) = self.shared.state().links.get_mut(&link)
        {
            link.settle(ticket, outcome);
        }
    }

    /// A session is gone, and all its links with it.
    pub fn ended(&mut self, id: SessionId) {
        let Some(lending) = self.sessions.remove(&id) else { return };
        let mut state = self.shared.state();
        for member in lending.members.values() {
            if let Some(link) = state.links.get_mut(&member.link) {
                link.close("the session has ended".to_owned());
            }
        }
    }

    /// Begins links that are wanted, and moves blocks to the sessions.
    pub fn work(&mut self, now: Instant, manager: &mut SessionManager) {
        self.begin_wanted();
        for (id, lending) in &mut self.sessions {
            if let Some(session) = manager.session(*id).filter(|session| session.is_open()) {
                lending.serve(now, session, (&self.shared, self.range));
            }
        }
        self.shared.state().links.retain(|_, link| !link.is_over());
    }

    /// Links whose session is not there wait for it.
    fn begin_wanted(&mut self) {
        let mut state = self.shared.state();
        let wanted = core::mem::take(&mut state.wanted);
        for (id, wanted) in wanted {
            let Some(link) = state.links.get_mut(&id) else { continue };
            if link.dropped || link.closed.is_some() {
                link.close("cancelled before it opened".to_owned());
                continue;
            }
            let mut there = self.sessions.values_mut();
            let there =
                there.find(|lending| lending.node == Some(wanted.node) && lending.name.is_some());
            let Some(lending) = there else {
                state.wanted.push_back((id, wanted));
                continue;
            };
            match lending.links.begin() {
                Some(place) => {
                    lending.greet(link);
                    let Wanted { class, .. } = wanted;
                    lending.members.insert(place, Member::new(id, Some(class)));
                    link.wake();
                }
                None => {
                    link.close(format!("the session has {} channels, its limit", links::LINKS_MAX));
                }
            }
        }
    }
}

impl Drop for SharedSession {
    fn drop(&mut self) {
        self.shared.state().stop("the node has stopped");
    }
}

impl ServedSession {
    fn greet(&self, link: &mut LinkState) {
        link.open = true;
        link.peer = (self.name.clone().unwrap_or_default(), Some(self.key));
    }

    fn happened(
        &mut self,
        shared: &Shared,
        taken: LinksTaken,
        event: links::Event,
        received: &Received,
    ) {
        let mut state = shared.state();
        match event {
            links::Event::Begun(place)
                if taken == LinksTaken::ByNobody || state.accepted.len() >= ACCEPTED_MAX =>
            {
                self.links.end(place);
            }
            links::Event::Begun(place) => {
                let id = state.accept(self.key);
                state.links.get_mut(&id).into_iter().for_each(|link| self.greet(link));
                self.members.insert(place, Member::new(id, None));
            }
            links::Event::Data(place, flow, bytes) => {
                let Some(member) = self.members.get_mut(&place) else { return };
                let Some(link) = state.links.get_mut(&member.link) else { return };
                member.take(link, (flow, bytes), (received, true));
            }
            links::Event::Passing(place, flow, bytes) => {
                let Some(member) = self.members.get_mut(&place) else { return };
                let Some(link) = state.links.get_mut(&member.link) else { return };
                if link.uncounted() + cost(bytes.len()) > WINDOW.as_u64() {
                    // Worth less the longer it waits.
                    member.stats.blocks_expired += 1;
                } else {
                    member.take(link, (flow, bytes), (received, false));
                }
            }
            links::Event::Credit(_) => {}
            links::Event::Ended(place) => {
                let Some(member) = self.members.remove(&place) else { return };
                if let Some(link) = state.links.get_mut(&member.link) {
                    link.stats = member.stats;
                    link.close("ended by the far end".to_owned());
                }
            }
        }
    }

    /// A block of each link in turns, while the session has room.
    fn serve(
        &mut self,
        now: Instant,
        session: &mut Session,
        (shared, range): (&Shared, FlowRange),
    ) {
        let mut state = shared.state();
        for (place, member) in &mut self.members {
            let Some(link) = state.links.get_mut(&member.link) else { continue };
            link.released.drain(..).for_each(|len| self.links.taken(*place, len));
            link.stats = Stats { send_buffer: self.share.held(), ..member.stats };
            link.paths.clear();
            link.paths.extend(session.paths());
            if link.dropped
                && link.closed.is_none()
                && link.outgoing.is_empty()
                && member.tickets.is_empty()
            {
                self.links.end(*place);
                link.close("closed by this program".to_owned());
            }
        }
        self.members.retain(|_, member| {
            state.links.get(&member.link).is_some_and(|link| link.closed.is_none())
        });
        if !self.tell(now, session, range) {
            return;
        }
        while let Some(place) = self.ready(&state) {
            let Some(member) = self.members.get_mut(&place) else { return };
            let Some(link) = state.links.get_mut(&member.link) else { return };
            let Some((_, block)) = link.outgoing.front() else { return };
            let room = session.room().as_u64().min(self.share.room());
            if room < cost(block.bytes.len() + links::wire::HEAD) {
                // It is the first one when there is room again: small blocks of others never keep a
                // large one waiting.
                return;
            }
            let Some((ticket, block)) = link.outgoing.pop_front() else { return };
            self.last = Some(place);
            let named = self
                .links
                .data(place, Block { class: member.class(session, block.class), ..block });
            let named = named.and_then(|block| send(now, session, block, (&mut self.share, range)));
            match named {
                Some(name) => {
                    member.tickets.insert(name, ticket);
                    member.stats.blocks_taken += 1;
                    link.named(ticket, name);
                }
                None => link.settle(ticket, Outcome::Cancelled),
            }
            link.wake();
        }
    }

    /// The link whose turn it is, of those that have a block and the window for it.
    fn ready(&self, state: &State) -> Option<LinkSlot> {
        let ready = |(place, member): (&LinkSlot, &Member)| {
            let (_, block) = state.links.get(&member.link)?.outgoing.front()?;
            self.links.may_send(*place, block).then_some(*place)
        };
        let behind = self.last.map_or(Bound::Unbounded, Bound::Excluded);
        let mut behind = self.members.range((behind, Bound::Unbounded));
        behind.find_map(ready).or_else(|| self.members.iter().find_map(ready))
    }

    /// Says what is to be said of links as such; whether all of it.
    fn tell(&mut self, now: Instant, session: &mut Session, range: FlowRange) -> bool {
        while let Some(block) = self.held.take().or_else(|| self.links.poll_block()) {
            let cost = cost(block.bytes.len());
            if session.room().as_u64().min(self.share.room()) < cost {
                self.held = Some(block);
                return false;
            }
            let block = Block { class: session.classes().default_leaf(), ..block };
            let _ = send(now, session, block, (&mut self.share, range));
        }
        true
    }
}

/// Hands a block over that there is room for; `None` where it is none that a session takes.
fn send(
    now: Instant,
    session: &mut Session,
    block: Block,
    (share, range): (&mut Share, FlowRange),
) -> Option<BlockId> {
    let cost = cost(block.bytes.len());
    let flow = range.outer(block.flow)?;
    let sent: Result<BlockId, SendError> = session.send(now, Block { flow, ..block });
    let name = sent.ok()?;
    share.took(name, cost);
    Some(name)
}

impl Member {
    fn new(link: LinkId, class: Option<String>) -> Self {
        Self { link, class, tickets: BTreeMap::new(), stats: Stats::default() }
    }

    /// The class for a block that names one: it may be none of the session's since its line is
    /// shared otherwise.
    fn class(&self, session: &Session, named: ClassId) -> ClassId {
        let classes = session.classes();
        let found = match &self.class {
            Some(class) => classes.find(class),
            None => classes.leaves().map(|(leaf, _)| leaf).find(|leaf| *leaf == named),
        };
        found.unwrap_or_else(|| classes.default_leaf())
    }

    fn take(
        &mut self,
        link: &mut LinkState,
        (flow, bytes): (FlowId, Bytes),
        (received, is_counted): (&Received, bool),
    ) {
        let count = if received.timing.repaired {
            &mut self.stats.blocks_repaired
        } else {
            &mut self.stats.blocks_delivered
        };
        *count += 1;
        self.stats.bytes_delivered += bytes.len() as u64;
        let received =
            Received { id: BlockId { flow, seq: received.id.seq }, bytes, timing: received.timing };
        link.arrived(Came { received, is_counted });
    }
}

/// Links of far nodes that wait for the program: beyond that they are ended.
const ACCEPTED_MAX: usize = 64;
