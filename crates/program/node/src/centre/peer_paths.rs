//! The paths of peers that have connected here: what is known of them in advance, and what status
//! shows.
//!
//! The peer made the path and has its name. Here it is called by the name of the peer and its
//! number in the session, `svalbard/0`; `svalbard` stands for all paths of that peer. A hint for
//! all of them also holds in the sessions that follow; one for a number ends with its session,
//! because the next one numbers its paths anew.

use super::admission::PeerHint;
use crate::fault::Fault;
use crate::forecasts::{ForecastRefused, HintGiver, PathForecasts};
use crate::station::outside::board::PathKnowledge;
use crate::status::{LinePath, PathHint, PathOutlook};
use skyhaul_net::{AnyEndpoint, Clock, SessionManager};
use skyhaul_sessions::{ConnectionId, Endpoint as _, SessionId, SocketId};
use skyhaul_transport::PathId;
use skyhaul_units::Utc;
use std::collections::{BTreeMap, BTreeSet};

/// What is known in advance of the paths of each peer.
#[derive(Debug)]
pub struct PeerPaths {
    clock: Clock,
    /// By the name of the peer: no more than the configuration has, or had.
    peers: BTreeMap<String, PeerForecasts>,
}

#[derive(Debug, Default)]
struct PeerForecasts {
    all: PathForecasts,
    /// Of single paths of a session; bounded by the paths that it has.
    single: BTreeMap<(SessionId, PathId), PathForecasts>,
}

/// The peers that may connect, and the sessions that some of them have.
pub struct KnownPeers<'a> {
    /// The names of all.
    pub names: BTreeSet<&'a str>,
    /// The sessions, each with the name of its peer.
    pub sessions: Vec<(SessionId, &'a str)>,
}

/// A name of one path, or of all paths of a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Named<'a> {
    peer: &'a str,
    path: Option<PathId>,
}

impl PeerPaths {
    /// Nothing is known yet.
    pub const fn new(clock: Clock) -> Self {
        Self { clock, peers: BTreeMap::new() }
    }

    /// Takes a hint. Returns a sentence for people.
    ///
    /// # Errors
    /// There is no such peer or path, the peer is not connected, or the hint cannot be.
    pub fn take(
        &mut self,
        manager: &mut SessionManager,
        known: &KnownPeers<'_>,
        order: &PeerHint,
    ) -> Result<String, Fault> {
        let PeerHint { path: name, hint } = order;
        let named = known.find(name)?;
        let used = known.paths(manager, named.peer);
        let is_used = |path| used.iter().any(|(_, other)| *other == path);
        if used.is_empty() && hint.says != PathHint::Withdraw {
            let help =
                "give it while `skyhaul path list` shows paths of that node, or give it there";
            let what = format!("{} is not connected", named.peer);
            return Err(Fault::configuration(what, format!("path {name}"), help));
        }
        if named.path.is_some_and(|path| !is_used(path)) {
            let all: Vec<String> = used.iter().map(|(_, path)| path.0.to_string()).collect();
            let help = format!("its paths are {}", all.join(", "));
            let what = format!("{} has no such path", named.peer);
            return Err(Fault::configuration(what, format!("path {name}"), help));
        }
        let utc = self.clock.utc();
        let forecasts = self.peers.entry(named.peer.to_owned()).or_default();
        let refused = |ForecastRefused { reason, help }| {
            Fault::configuration(reason, format!("path {name}"), help)
        };
        let mut said = match named.path {
            None => forecasts.all.apply(name, hint, utc).map_err(refused)?,
            Some(named) => {
                let mut said = String::new();
                // An earlier session may not have ended yet.
                for key in used.iter().filter(|(_, path)| *path == named) {
                    let single = forecasts.single.entry(*key).or_default();
                    said = single.apply(name, hint, utc).map_err(refused)?;
                }
                said
            }
        };
        if hint.says == PathHint::Withdraw && hint.by == HintGiver::Operator {
            match named.path {
                None => forecasts.single.clear(),
                Some(_) if forecasts.all.is_empty() => {}
                Some(_) => said += &format!(" of its own; those of {} stay", named.peer),
            }
        }
        for (id, path) in used {
            self.send(manager, id, named.peer, path);
        }
        Ok(said)
    }

    /// A path of a peer is up: the session learns what is known of it.
    pub fn up(&self, manager: &mut SessionManager, id: SessionId, peer: &str, path: PathId) {
        if self.peers.contains_key(peer) {
            self.send(manager, id, peer, path);
        }
    }

    /// A session of a peer has ended.
    pub fn ended(&mut self, peer: &str, id: SessionId) {
        if let Some(forecasts) = self.peers.get_mut(peer) {
            forecasts.single.retain(|(session, _), _| *session != id);
        }
    }

    /// Brings what counts up to date: a hint of the operator that is over uncovers that of a
    /// program.
    pub fn refresh(&mut self, manager: &mut SessionManager, known: &KnownPeers<'_>) {
        let utc = self.clock.utc();
        let mut changed: Vec<String> = Vec::new();
        for (peer, forecasts) in &mut self.peers {
            if forecasts.refresh(utc) {
                changed.push(peer.clone());
            }
        }
        for peer in changed {
            for (id, path) in known.paths(manager, &peer) {
                self.send(manager, id, &peer, path);
            }
        }
        self.peers.retain(|_, forecasts| !forecasts.is_empty());
    }

    fn send(&self, manager: &mut SessionManager, id: SessionId, peer: &str, path: PathId) {
        let Some(session) = manager.session(id) else { return };
        match self.peers.get(peer) {
            Some(PeerForecasts { all, single }) => {
                all.send_beside(single.get(&(id, path)), session, path, self.clock);
            }
            None => PathForecasts::default().send_to(session, path, self.clock),
        }
    }

    /// The paths of a session with a peer, for status output.
    pub fn status(&self, manager: &SessionManager, id: SessionId, peer: &str) -> Vec<LinePath> {
        let endpoints: Vec<&AnyEndpoint> = manager.endpoints().collect();
        let Some((_, session)) = manager.sessions().find(|(other, _)| *other == id) else {
            return Vec::new();
        };
        let shown = |(path, socket, connection): (PathId, SocketId, ConnectionId)| {
            let endpoint = endpoints.get(socket.0).copied();
            let status = session.paths().iter().find(|(other, _)| *other == path)?.1;
            let over = if matches!(endpoint, Some(AnyEndpoint::Tcp(_))) { "tcp" } else { "udp" };
            let remote = endpoint.and_then(|endpoint| endpoint.remote(connection));
            let mut shown = LinePath {
                name: format!("{peer}/{}", path.0),
                local: "here".to_owned(),
                remote: remote.map_or_else(String::new, |remote| remote.to_string()),
                over: over.to_owned(),
                outlook: self.outlook(peer, id, path),
                ..LinePath::default()
            };
            shown.measure(&status, self.clock);
            Some(shown)
        };
        manager.paths(id).filter_map(shown).collect()
    }

    fn outlook(&self, peer: &str, id: SessionId, path: PathId) -> PathOutlook {
        let utc = self.clock.utc();
        let Some(forecasts) = self.peers.get(peer) else { return PathOutlook::default() };
        let mut outlook = forecasts.all.outlook(utc);
        if let Some(single) = forecasts.single.get(&(id, path)) {
            outlook.hints.extend(single.outlook(utc).hints);
        }
        outlook
    }
}

impl PeerForecasts {
    /// Returns whether others count than before.
    fn refresh(&mut self, utc: Utc) -> bool {
        let every = self.single.values_mut().chain([&mut self.all]);
        let mut is_other = false;
        for one in every {
            is_other |= one.learn(PathKnowledge::default(), utc);
        }
        is_other
    }

    fn is_empty(&self) -> bool {
        self.all.is_empty() && self.single.values().all(PathForecasts::is_empty)
    }
}

impl KnownPeers<'_> {
    fn find<'n>(&self, name: &'n str) -> Result<Named<'n>, Fault> {
        let (peer, number) = match name.rsplit_once('/') {
            Some((peer, number)) => (peer, Some(number)),
            None => (name, None),
        };
        let place = format!("path {name}");
        if !self.names.contains(peer) {
            let known: Vec<&str> = self.names.iter().copied().collect();
            let help = format!(
                "give the name of a node that connects here, alone or with the number of one of \
                its paths as in `NAME/0`; the nodes are {}",
                known.join(", ")
            );
            return Err(Fault::configuration(NO_PEER, place, help));
        }
        let path = number.map(|number| number.parse().map(PathId));
        let path = path.transpose().map_err(|_| {
            let help = "`skyhaul path list` shows the names, such as `NAME/0`";
            Fault::configuration("this is no number of a path", place, help)
        })?;
        Ok(Named { peer, path })
    }

    /// The paths of the sessions with a peer.
    fn paths(&self, manager: &SessionManager, peer: &str) -> Vec<(SessionId, PathId)> {
        let its = self.sessions.iter().filter(|(_, name)| *name == peer);
        its.flat_map(|(id, _)| manager.paths(*id).map(|(path, ..)| (*id, path))).collect()
    }
}

const NO_PEER: &str = "no node of this name may connect here";
