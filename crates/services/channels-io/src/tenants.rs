//! Forwards, files, streams and programs' blocks on a session that a station or centre owns, beside
//! its contacts.
//!
//! A station and its centre have one session with each other. The station's uplink and the centre's
//! downlink own it, for contacts; [`Tenants`] carries applications' connections, files and streams
//! on it, in flows of their own ([`FlowRange`]). The owner hands it the session's events and calls
//! [`Tenants::work`]; it returns the events that are for the owner alone. The session's class tree
//! decides what goes first. Each service has a [`Share`] of the send buffer, so that none keeps the
//! owner's blocks out. At the receiving end their blocks leave the session's window at once: they
//! have windows of their own, so that a slow reader holds back only itself. By a
//! [`ChannelService`], programs on other threads open channels over the session.

use crate::shared_session::{ChannelService, IncomingChannels, SharedSession, SharedSessionOwner};
use skyhaul_channels::{FIRST_GUEST, FlowRange, SessionEnd};
use skyhaul_forward_io::{
    Counters, FarRules, ForwardSession, Forwarding, Forwards, Notify, StartError,
};
use skyhaul_identity::Fingerprint;
use skyhaul_net::{SessionManager, Waker};
use skyhaul_sessions::SessionId;
use skyhaul_transport::{ClassTree, Event, RefusalCause, Session};
use skyhaul_units::{ByteCount, Instant};
use std::os::fd::BorrowedFd;
use std::sync::Arc;

/// Limit of the forwards' blocks that a session holds without an outcome: half a second of
/// 250 Mbit/s. A session that carries tenants has a send buffer that is as much larger.
pub const FORWARDS_SHARE: ByteCount = ByteCount::mib(16);
/// The same of files: four round trips of 660 ms at 93 Mbit/s.
pub const FILES_SHARE: ByteCount = ByteCount::mib(32);
/// The same of streams: a second of 250 Mbit/s, which is twice the usual lateness bound.
pub const STREAMS_SHARE: ByteCount = ByteCount::mib(32);

/// The same of programs' blocks: eight round trips of 660 ms at 93 Mbit/s. One program alone has
/// half of it, and each further one finds room.
pub const BLOCKS_SHARE: ByteCount = ByteCount::mib(64);

/// Forwards, files, streams and programs' blocks on sessions that a station or centre owns.
pub struct Tenants {
    forwards: Forwards,
    files: SharedSession,
    streams: SharedSession,
    blocks: SharedSession,
}

/// Which channels of far nodes are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TakenChannels {
    /// Those of files.
    pub files: IncomingChannels,
    /// Those of streams.
    pub streams: IncomingChannels,
}

/// The far end of a session.
#[derive(Debug, Clone)]
pub struct SessionPeer {
    /// Which end of the session this one is.
    pub end: SessionEnd,
    /// The far node's index in [`Forwarding::nodes`]; none if no forward leads there.
    pub node: Option<usize>,
    /// What it may have this node do.
    pub rules: Arc<FarRules>,
    /// Its key.
    pub key: Fingerprint,
}

impl core::fmt::Debug for Tenants {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Tenants")
            .field("counters", &self.forwards.counters())
            .finish_non_exhaustive()
    }
}

impl TakenChannels {
    /// None are taken.
    pub const NONE: Self =
        Self { files: IncomingChannels::Refused, streams: IncomingChannels::Refused };
    /// All are taken.
    pub const ALL: Self =
        Self { files: IncomingChannels::Accepted, streams: IncomingChannels::Accepted };
}

impl Tenants {
    /// Listens where `forwarding` says. `waker` is the driver's.
    ///
    /// # Errors
    /// See [`StartError`].
    pub fn new(
        forwarding: Forwarding,
        taken: TakenChannels,
        waker: Waker,
        notify: Notify,
    ) -> Result<Self, StartError> {
        let files = SharedSession::new(FlowRange::Files, FILES_SHARE, taken.files, waker.clone());
        let (range, taken) = (FlowRange::Streams, taken.streams);
        let streams = SharedSession::new(range, STREAMS_SHARE, taken, waker.clone());
        let (range, named) = (FlowRange::Blocks, IncomingChannels::Named);
        let blocks = SharedSession::new(range, BLOCKS_SHARE, named, waker.clone());
        Ok(Self { forwards: Forwards::new(forwarding, waker, notify)?, files, streams, blocks })
    }

    /// Channels for files; [`Forwarding::nodes`] has the order of the nodes.
    pub fn files(&self) -> ChannelService {
        self.files.service()
    }

    /// Channels for streams.
    pub fn streams(&self) -> ChannelService {
        self.streams.service()
    }

    /// Channels for programs' blocks, by the names of the far nodes.
    pub fn blocks(&self) -> ChannelService {
        self.blocks.service()
    }

    /// A session has begun, and has its class tree.
    pub fn begun(&mut self, id: SessionId, session: &Session, far: SessionPeer) {
        let SessionPeer { end, node, rules, key } = far;
        for service in [&mut self.files, &mut self.streams, &mut self.blocks] {
            service.begun(id, SharedSessionOwner { end, node, key });
        }
        let (range, share) = (FlowRange::Forwards, Some(FORWARDS_SHARE));
        self.forwards.begun(id, session, ForwardSession { end, node, rules, range, share });
    }

    /// The handshake is complete, and the far end is the right one: tenants use the session from
    /// now on.
    pub fn opened(&mut self, id: SessionId, name: &str) {
        self.forwards.opened(id);
        self.files.opened(id, name);
        self.streams.opened(id, name);
        self.blocks.opened(id, name);
    }

    /// Takes an event of a session if it is of a tenant; returns the others.
    pub fn event(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
        event: Event,
    ) -> Option<Event> {
        match event {
            Event::Block(received) => match FlowRange::of(received.id.flow) {
                Some(FlowRange::Forwards) => self.forwards.block(now, manager, id, &received),
                Some(range) => {
                    if let (Some(service), Some(session)) =
                        (self.service(range), manager.session(id))
                    {
                        service.block(now, session, id, &received);
                    }
                }
                None if received.id.flow >= FIRST_GUEST => {
                    refuse(manager, id, "a block of an unknown flow");
                }
                None => return Some(Event::Block(received)),
            },
            Event::Settled { id: block, outcome } => match FlowRange::of(block.flow) {
                Some(FlowRange::Forwards) => self.forwards.settled(id, block),
                Some(range) => {
                    self.service(range)
                        .into_iter()
                        .for_each(|service| service.settled(id, block, outcome));
                }
                None => return Some(Event::Settled { id: block, outcome }),
            },
            event => return Some(event),
        }
        None
    }

    /// The service whose channels are in this range.
    fn service(&mut self, range: FlowRange) -> Option<&mut SharedSession> {
        match range {
            FlowRange::Files => Some(&mut self.files),
            FlowRange::Streams => Some(&mut self.streams),
            FlowRange::Blocks => Some(&mut self.blocks),
            FlowRange::Own | FlowRange::Forwards => None,
        }
    }

    /// A session has ended.
    pub fn ended(&mut self, id: SessionId) {
        self.forwards.left(id);
        self.files.ended(id);
        self.streams.ended(id);
        self.blocks.ended(id);
    }

    /// The node of this index does not answer.
    pub fn unreached(&mut self, node: usize) {
        self.forwards.unreached(node);
    }

    /// The class tree of a session has changed.
    pub fn shared(&mut self, id: SessionId, classes: &ClassTree) {
        self.forwards.shared(id, classes);
    }

    /// Takes what is new, and hands over what the line has room for. Returns when it wants to be
    /// called again.
    pub fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Instant {
        self.files.work(now, manager);
        self.streams.work(now, manager);
        self.blocks.work(now, manager);
        self.forwards.work(now, manager)
    }

    /// Readable when there is something to do; none if nothing can be, so that datagrams of the
    /// line may gather.
    pub fn fd(&self) -> Option<BorrowedFd<'_>> {
        Some(self.forwards.fd()).filter(|_| !self.forwards.is_still())
    }

    /// The forwards.
    pub const fn forwards(&self) -> &Forwards {
        &self.forwards
    }

    /// Counters of the forwards.
    pub fn counters(&self) -> Counters {
        self.forwards.counters()
    }
}

/// Ends the session of a far end that breaks the protocol.
fn refuse(manager: &mut SessionManager, id: SessionId, reason: &str) {
    if let Some(session) = manager.session(id) {
        session.refuse(RefusalCause::Told, reason);
    }
}
