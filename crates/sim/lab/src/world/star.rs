//! A node with a session to each of several others, all over its one line, over QUIC and the
//! production session manager.

use super::{Bulk, OPENING, RunFault, Sink, User};
use crate::{Application, Network, NetworkDatagram, NetworkNode, NodeId, Peer, PeerConfig, Stop};
use core::net::SocketAddr;
use skyhaul_congestion::ControllerConfig;
use skyhaul_link::LinkConfig;
use skyhaul_quic::{Fingerprint, Identity, PathConfig, SessionManager};
use skyhaul_sessions::{SessionId, SessionManagerEvent};
use skyhaul_transport::{
    Block, ClassId, ClassTree, Event, LineShare, Opening, PathId, SessionConfig,
};
use skyhaul_units::{ByteCount, FlowId, Instant, Rate};

/// The line of a star, and who is at its ends.
#[derive(Debug, Clone)]
pub struct StarConfig {
    /// From the node to all others together, and back.
    pub links: [LinkConfig; 2],
    /// The rate that the node's sessions share, counted in IP packets.
    pub rate: Rate,
    /// The class tree that they share.
    pub tree: ClassTree,
    /// For each of the others: the leaf under which it gets all that the line carries.
    pub others: Vec<ClassId>,
}

/// A node, its line, and the nodes behind it.
pub struct Star {
    network: Network<Severable>,
    station: NodeId,
    others: Vec<NodeId>,
    there: crate::LinkId,
}

impl Star {
    /// A star whose chances `seed` decides, and whose sessions are open.
    ///
    /// # Errors
    /// They did not open.
    pub fn open(config: &StarConfig, seed: u64) -> Result<Self, RunFault> {
        let here = SocketAddr::from(([192, 0, 2, 1], 4433));
        let count = u8::try_from(config.others.len())
            .map_err(|_| RunFault::new("there are too many nodes"))?;
        let addresses: Vec<SocketAddr> =
            (0..count).map(|host| SocketAddr::from(([192, 0, 2, host + 2], 4433))).collect();
        let keys: Vec<Identity> = (1..=count + 1).map(identity).collect::<Result<_, _>>()?;
        let line = LineShare::new(config.tree.clone());
        line.declare(Instant::ZERO, LINE, Some(config.rate)).map_err(RunFault::new)?;
        let outgoing = config.others.iter().zip(&addresses).zip(&keys[1..]);
        let outgoing = outgoing.map(|((class, address), key)| Outgoing::new(*class, *address, key));
        let station = End::Station(Station {
            outgoing: outgoing.collect(),
            line,
            has_called: false,
            fault: None,
        });
        let path = PathConfig {
            controller: ControllerConfig::declared(config.rate),
            ..PathConfig::default()
        };
        let peer = |address: SocketAddr, key: &Identity, callers: &[Fingerprint], end, seed| {
            let config = PeerConfig {
                addresses: vec![address],
                identity: key.clone(),
                callers: callers.iter().copied().collect(),
                paths: vec![path],
                session: SessionConfig::default(),
                seed,
            };
            let peer = Peer::new(config, end).map_err(RunFault::new)?;
            Ok::<Severable, RunFault>(Severable { peer, is_cut: false })
        };
        let mut network = Network::new();
        let near = network.add_node(peer(here, &keys[0], &[], station, seed)?, &[here]);
        let [there, back] = config.links.clone();
        let there = network.add_link(there, seed.wrapping_mul(2));
        let back = network.add_link(back, seed.wrapping_mul(2).wrapping_add(1));
        let mut others = Vec::new();
        for ((address, key), index) in addresses.iter().zip(&keys[1..]).zip(1..) {
            let end = End::Centre(Centre::default());
            let callers = [keys[0].fingerprint()];
            let far = peer(*address, key, &callers, end, !seed.wrapping_add(index))?;
            others.push(network.add_node(far, &[*address]));
            network.route(here, *address, there);
            network.route(*address, here, back);
        }
        let mut star = Self { network, station: near, others, there };
        let limit = star.network.now() + OPENING;
        let is_open = |network: &Network<Severable>| match network.node(near).peer.application() {
            End::Station(station) => station.outgoing.iter().all(|one| one.is_open),
            End::Centre(_) => false,
        };
        let stop = star.network.run(limit, is_open).map_err(RunFault::new)?;
        star.check()?;
        match stop {
            Stop::Done => Ok(star),
            Stop::TimeUp | Stop::Idle => Err(RunFault::new("the sessions did not open")),
        }
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.network.now()
    }

    /// Runs until an instant.
    ///
    /// # Errors
    /// A session ended.
    pub fn run_until(&mut self, limit: Instant) -> Result<(), RunFault> {
        self.network.run_until(limit).map_err(RunFault::new)?;
        self.check()
    }

    /// Cuts one of the others off from the far end of the line, or joins it again. What is sent to
    /// it goes over the line all the same.
    pub fn set_cut(&mut self, other: usize, is_cut: Reach) {
        self.network.node_mut(self.others[other]).is_cut = is_cut == Reach::Cut;
    }

    /// Bytes of blocks that each of the others has so far.
    pub fn delivered(&self) -> Vec<ByteCount> {
        let of = |node: &NodeId| match self.network.node(*node).peer.application() {
            End::Centre(centre) => centre.sink.delivered(),
            End::Station(_) => ByteCount::ZERO,
        };
        self.others.iter().map(of).collect()
    }

    /// IP packets that the node has put on its line so far, in bytes.
    pub fn offered(&self) -> ByteCount {
        self.network.link(self.there).counters().offered_bytes
    }

    fn check(&self) -> Result<(), RunFault> {
        let nodes = self.others.iter().chain([&self.station]);
        let mut faults =
            nodes.filter_map(|node| match self.network.node(*node).peer.application() {
                End::Station(station) => station.fault.clone(),
                End::Centre(centre) => centre.fault.clone(),
            });
        faults.next().map_or(Ok(()), Err)
    }
}

/// Whether a node can be reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// It can.
    Joined,
    /// Nothing gets to it, and nothing from it to the line.
    Cut,
}

/// The name of the line's path.
const LINE: &str = "line";

/// Large enough that a block costs little, small enough that a second is measured well.
const BLOCK: usize = 64 << 10;

fn identity(key: u8) -> Result<Identity, RunFault> {
    Identity::from_seed(&[key; 32]).map_err(RunFault::new)
}

/// A peer that can be cut off.
struct Severable {
    peer: Peer<End>,
    is_cut: bool,
}

impl NetworkNode for Severable {
    fn handle_datagram(&mut self, now: Instant, datagram: NetworkDatagram) {
        if !self.is_cut {
            self.peer.handle_datagram(now, datagram);
        }
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<NetworkDatagram> {
        loop {
            let datagram = self.peer.poll_transmit(now)?;
            if !self.is_cut {
                return Some(datagram);
            }
        }
    }

    fn next_timeout(&mut self) -> Option<Instant> {
        self.peer.next_timeout()
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.peer.handle_timeout(now);
    }
}

enum End {
    Station(Station),
    Centre(Centre),
}

/// The node in the middle: a session to each of the others, and one line for all of them.
struct Station {
    outgoing: Vec<Outgoing>,
    line: LineShare,
    has_called: bool,
    fault: Option<RunFault>,
}

/// A session to one of the others, and what is sent there.
struct Outgoing {
    bulk: Bulk,
    address: SocketAddr,
    key: Fingerprint,
    id: Option<SessionId>,
    is_open: bool,
}

#[derive(Default)]
struct Centre {
    sink: Sink,
    id: Option<SessionId>,
    fault: Option<RunFault>,
}

impl Outgoing {
    fn new(class: ClassId, address: SocketAddr, key: &Identity) -> Self {
        let block = Block { class, ..Block::reliable(FlowId(0), vec![0x5a; BLOCK].into()) };
        let bulk = Bulk::of(block, u64::MAX);
        Self { bulk, address, key: key.fingerprint(), id: None, is_open: false }
    }
}

impl Station {
    fn take(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        event: SessionManagerEvent,
    ) -> Result<(), RunFault> {
        match event {
            SessionManagerEvent::Connected { id, fingerprint, .. } => {
                let mut outgoing = self.outgoing.iter_mut();
                let called = outgoing.find(|one| one.key == fingerprint);
                let Some((one, session)) = called.zip(manager.session(id)) else {
                    return Err(RunFault::new("an unknown node has called"));
                };
                one.id = Some(id);
                session.sender_mut().set_line(Some(&self.line)).map_err(RunFault::new)?;
                let sharing = session.sender_mut().sharing_mut();
                sharing.set_path(PathId(0), LINE).map_err(RunFault::new)?;
                session.open(Opening::default());
                Ok(())
            }
            SessionManagerEvent::Session { event: Event::Closed(reason), .. } => {
                Err(RunFault::new(reason))
            }
            SessionManagerEvent::Session { id, event } => {
                let one = self.outgoing.iter_mut().find(|one| one.id == Some(id));
                if let Some((one, session)) = one.zip(manager.session(id)) {
                    one.is_open |= session.is_open();
                    one.bulk.event(now, session, event);
                }
                Ok(())
            }
            other => Err(RunFault(format!("{other:?}"))),
        }
    }

    fn call(&mut self, now: Instant, manager: &mut SessionManager) -> Result<(), RunFault> {
        self.has_called = true;
        for one in &self.outgoing {
            manager.connect(now, one.address, one.key).map_err(RunFault::new)?;
        }
        Ok(())
    }
}

impl Centre {
    fn take(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        event: SessionManagerEvent,
    ) -> Result<(), RunFault> {
        match event {
            SessionManagerEvent::Connected { id, .. } => {
                self.id = Some(id);
                if let Some(session) = manager.session(id) {
                    session.open(Opening::default());
                }
                Ok(())
            }
            SessionManagerEvent::Session { event: Event::Closed(reason), .. } => {
                Err(RunFault::new(reason))
            }
            SessionManagerEvent::Session { id, event } => {
                if let Some(session) = manager.session(id) {
                    self.sink.event(now, session, event);
                }
                Ok(())
            }
            other => Err(RunFault(format!("{other:?}"))),
        }
    }
}

impl Application for End {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        let (taken, fault) = match self {
            Self::Station(station) => (station.take(now, manager, event), &mut station.fault),
            Self::Centre(centre) => (centre.take(now, manager, event), &mut centre.fault),
        };
        if let Err(found) = taken {
            fault.get_or_insert(found);
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        let Self::Station(station) = self else { return None };
        if !station.has_called
            && let Err(fault) = station.call(now, manager)
        {
            station.fault.get_or_insert(fault);
        }
        for one in &mut station.outgoing {
            let session = one.id.and_then(|id| manager.session(id));
            if let Some(session) = session.filter(|session| session.is_open()) {
                one.bulk.work(now, session);
            }
        }
        None
    }
}
