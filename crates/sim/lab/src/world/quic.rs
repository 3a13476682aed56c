//! Two sessions over the production session manager: a QUIC connection for each path, joined into
//! one session.

use super::{OPENING, RunFault, User, Users, WorldConfig, WorldPath};
use crate::plain::PlainLine;
use crate::{Application, Network, NodeId, Peer, PeerConfig, Stop};
use core::net::SocketAddr;
use skyhaul_congestion::ControllerConfig;
use skyhaul_link::{GilbertElliott, LinkConfig, Loss};
use skyhaul_quic::{Fingerprint, Identity, PathConfig, SessionManager};
use skyhaul_sessions::{PathTarget, SessionId, SessionManagerEvent, SocketId};
use skyhaul_transport::{Event, Opening, PathOptions, PathState, Session};
use skyhaul_units::{ByteCount, Duration, Instant};

/// A path as the session manager sees it.
#[derive(Debug, Clone)]
pub struct QuicLine {
    /// From the near side to the far one, and back.
    pub links: [LinkConfig; 2],
    /// Who decides how fast both ends send.
    pub controller: ControllerConfig,
    /// What both sides may do with it.
    pub options: PathOptions,
}

impl QuicLine {
    /// A plain path's lines as links, each with a queue of one round trip, as the operator of a
    /// line would have it. Left out, the controller is told each line's rate.
    ///
    /// # Errors
    /// No chain has so much loss in bursts so short.
    pub fn of(path: &WorldPath, controller: Option<ControllerConfig>) -> Result<Self, RunFault> {
        let [there, back] = path.lines;
        let controller = controller.unwrap_or(ControllerConfig::declared(there.rate));
        Ok(Self { links: [link(&there)?, link(&back)?], controller, options: path.options })
    }
}

/// What a line's drop-tail queue holds: one round trip, sixteen packets at least.
pub(crate) fn queue(line: &PlainLine) -> ByteCount {
    (line.rate * (line.one_way_delay * 2)).max(QUEUE_MIN)
}

fn link(line: &PlainLine) -> Result<LinkConfig, RunFault> {
    let bursts =
        || GilbertElliott::with_bursts(line.loss, line.mean_burst).map(Loss::GilbertElliott);
    let loss = if line.mean_burst.get() > 1 {
        bursts().map_err(RunFault::new)?
    } else {
        Loss::Independent(line.loss)
    };
    Ok(LinkConfig { queue: queue(line), loss, ..LinkConfig::line(line.rate, line.one_way_delay) })
}

/// Two session managers with an address for each path, and what uses them. The near side connects.
pub struct QuicWorld<N, F> {
    network: Network<Peer<End<N, F>>>,
    nodes: [NodeId; 2],
    paths: usize,
}

impl<N: User, F: User> QuicWorld<N, F> {
    /// A world whose chances `seed` decides, that has not begun.
    ///
    /// # Errors
    /// There are no paths, or more than a session may have.
    pub fn new(
        config: WorldConfig,
        lines: &[QuicLine],
        seed: u64,
        Users { near, far }: Users<N, F>,
    ) -> Result<Self, RunFault> {
        let keys = [identity(1)?, identity(2)?];
        let count =
            u8::try_from(lines.len()).map_err(|_| RunFault::new("there are too many paths"))?;
        let addresses = |host: u8| -> Vec<SocketAddr> {
            (1..=count).map(|path| SocketAddr::from(([192, 0, path, host], 4433))).collect()
        };
        let addresses = [addresses(1), addresses(2)];
        let ways = addresses[1].iter().zip(lines).map(|(to, line)| (*to, line.options)).collect();
        let caller = Caller { ways, key: keys[1].fingerprint(), has_called: false };
        let callers = [[].into(), [keys[0].fingerprint()].into()];
        let ends = [Role::Near(near, caller), Role::Far(far)].map(|role| End {
            role,
            id: None,
            fault: None,
        });
        let mut network = Network::new();
        let mut nodes = Vec::new();
        let parts = ends.into_iter().zip(callers).zip(&keys).zip(config.sessions).zip(&addresses);
        for (((((end, callers), key), session), at), seed) in parts.zip([seed, !seed]) {
            let path = |line: &QuicLine| PathConfig {
                controller: line.controller,
                ..PathConfig::default()
            };
            let config = PeerConfig {
                addresses: at.clone(),
                identity: key.clone(),
                callers,
                paths: lines.iter().map(path).collect(),
                session,
                seed,
            };
            nodes.push(network.add_node(Peer::new(config, end).map_err(RunFault::new)?, at));
        }
        for (place, line) in lines.iter().enumerate() {
            let seed = seed.wrapping_mul(64).wrapping_add(place as u64 * 2);
            let [there, back] = line.links.clone();
            let there = network.add_link(there, seed);
            let back = network.add_link(back, seed.wrapping_add(1));
            network.route(addresses[0][place], addresses[1][place], there);
            network.route(addresses[1][place], addresses[0][place], back);
        }
        let [near, far] = nodes[..] else { return Err(RunFault::new("a world has two sides")) };
        Ok(Self { network, nodes: [near, far], paths: lines.len() })
    }

    /// Runs until both sessions are open and all paths carry; the longest round trip decides how
    /// long that may take.
    ///
    /// # Errors
    /// They are not in time, or a session manager found a fault.
    pub fn open(&mut self, longest_rtt: Duration) -> Result<(), RunFault> {
        let paths = self.paths;
        let is_up = |end: &Peer<End<N, F>>| {
            end.manager().sessions().next().is_some_and(|(_, session)| {
                let up = session
                    .paths()
                    .iter()
                    .filter(|(_, path)| path.state != PathState::Probing)
                    .count();
                session.is_open() && up == paths
            })
        };
        let nodes = self.nodes;
        let opening = OPENING + longest_rtt * 40;
        let limit = self.network.now() + opening;
        let stop =
            self.network.run(limit, |network| nodes.iter().all(|node| is_up(network.node(*node))));
        self.check(stop.map_err(RunFault::new)?)?;
        let are_up = nodes.iter().all(|node| is_up(self.network.node(*node)));
        if are_up {
            Ok(())
        } else {
            Err(RunFault(format!("the sessions did not open within {opening}")))
        }
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        self.network.now()
    }

    /// Runs until an instant, or until the far side's user is `done`; whether it was.
    ///
    /// # Errors
    /// A session manager found a fault.
    pub fn run_until(
        &mut self,
        limit: Instant,
        mut done: impl FnMut(&F) -> bool,
    ) -> Result<bool, RunFault> {
        let far = self.nodes[1];
        let is_done =
            |network: &Network<Peer<End<N, F>>>| match &network.node(far).application().role {
                Role::Far(user) => done(user),
                Role::Near(..) => false,
            };
        let stop = self.network.run(limit, is_done).map_err(RunFault::new)?;
        let is_done = stop == Stop::Done;
        self.check(stop)?;
        Ok(is_done)
    }

    fn check(&self, stop: Stop) -> Result<(), RunFault> {
        let faults = self
            .nodes
            .iter()
            .filter_map(|node| self.network.node(*node).application().fault.clone());
        match (faults.into_iter().next(), stop) {
            (Some(fault), _) => Err(fault),
            (None, Stop::Idle) => Err(RunFault::new("both ends fell asleep")),
            (None, _) => Ok(()),
        }
    }

    /// A side's session, 0 for the near side and 1 for the far one; `None` before it is set up.
    pub fn session(&self, side: usize) -> Option<&Session> {
        let manager = self.network.node(self.nodes[side]).manager();
        manager.sessions().next().map(|(_, session)| session)
    }

    /// What uses the sessions.
    pub fn into_users(self) -> Option<(N, F)> {
        let mut users = (None, None);
        for peer in self.network.into_nodes() {
            match peer.into_application().role {
                Role::Near(near, _) => users.0 = Some(near),
                Role::Far(far) => users.1 = Some(far),
            }
        }
        users.0.zip(users.1)
    }

    /// What uses the far side's session.
    pub fn far_user(&self) -> Option<&F> {
        match &self.network.node(self.nodes[1]).application().role {
            Role::Far(user) => Some(user),
            Role::Near(..) => None,
        }
    }
}

fn identity(key: u8) -> Result<Identity, RunFault> {
    Identity::from_seed(&[key; 32]).map_err(RunFault::new)
}

/// What uses a session manager.
struct End<N, F> {
    role: Role<N, F>,
    id: Option<SessionId>,
    /// What went wrong first.
    fault: Option<RunFault>,
}

enum Role<N, F> {
    Near(N, Caller),
    Far(F),
}

struct Caller {
    ways: Vec<(SocketAddr, PathOptions)>,
    key: Fingerprint,
    has_called: bool,
}

impl Caller {
    /// Connects over the first path.
    fn call(&mut self, now: Instant, manager: &mut SessionManager) -> Result<(), RunFault> {
        self.has_called = true;
        let (first, _) = self.ways.first().ok_or_else(|| RunFault::new("there is no path"))?;
        manager.connect(now, *first, self.key).map(|_| ()).map_err(RunFault::new)
    }

    /// Connects the paths beyond the first.
    fn join(
        &self,
        now: Instant,
        manager: &mut SessionManager,
        id: SessionId,
    ) -> Result<(), RunFault> {
        for (socket, way) in self.ways.iter().enumerate().skip(1) {
            let target = PathTarget { socket: SocketId(socket), remote: way.0 };
            manager.join(now, id, target, way.1).map_err(RunFault::new)?;
        }
        Ok(())
    }
}

impl<N: User, F: User> End<N, F> {
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
                if let (Role::Near(_, caller), Event::Greeted { .. }) = (&self.role, &event) {
                    caller.join(now, manager, id)?;
                }
                let Some(session) = manager.session(id) else { return Ok(()) };
                match &mut self.role {
                    Role::Near(user, _) => user.event(now, session, event),
                    Role::Far(user) => user.event(now, session, event),
                }
                Ok(())
            }
            other => Err(RunFault(format!("{other:?}"))),
        }
    }
}

impl<N: User, F: User> Application for End<N, F> {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        if let Err(fault) = self.take(now, manager, event) {
            self.fault.get_or_insert(fault);
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        if let Role::Near(_, caller) = &mut self.role
            && !caller.has_called
            && let Err(fault) = caller.call(now, manager)
        {
            self.fault.get_or_insert(fault);
        }
        let session =
            self.id.and_then(|id| manager.session(id)).filter(|session| session.is_open())?;
        match &mut self.role {
            Role::Near(user, _) => user.work(now, session),
            Role::Far(user) => user.work(now, session),
        }
    }
}

/// Sixteen packets: what an end in ticks sends at once.
const QUEUE_MIN: ByteCount = ByteCount::kib(24);
