//! Where applications come in: sockets of this node's own configuration, and those that far nodes
//! asked for.

use super::connection::{Connection, Phase};
use super::forwards::Forwards;
use super::{FarTarget, socket};
use skyhaul_forward::{Carriage, Local, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::{Duration, Instant};
use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

/// A socket that is listened at, or that clients' datagrams come to.
#[derive(Debug)]
pub(super) struct Listener {
    pub socket: OwnedFd,
    /// Connections or datagrams may wait.
    pub pending: bool,
    /// Where: with the port that the system gave.
    pub local: Local,
    pub entry: Entry,
}

/// What becomes of what comes in.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub whose: ListenerOwner,
    pub leads: Leads,
    pub carriage: Carriage,
    pub idle: Option<Duration>,
}

/// Over which session it goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ListenerOwner {
    /// That with the node at this place of the setup.
    Node(usize),
    /// That of the far node which asked for it.
    Session(SessionId),
}

/// Where to.
#[derive(Debug, Clone)]
pub(super) enum Leads {
    /// As the setup, or the far node, says.
    Arrival(FarTarget),
    /// Each datagram of the host that has asked for this names its target.
    Wrapped { client: IpAddr },
}

/// How it stands with a session that is needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    Open(SessionId),
    /// Its first call is not answered yet.
    Called,
    Down,
}

impl Forwards {
    /// Listens at `local` under a new token.
    pub(super) fn listen(&mut self, local: &Local, entry: Entry) -> io::Result<u64> {
        let socket = match &entry.leads {
            Leads::Arrival(FarTarget::Diverted) => socket::listen_for_others(local)?,
            _ => socket::listen_at(local)?,
        };
        let local = match socket::address(&socket) {
            Some(address) => local.at(address.port()),
            None => local.clone(),
        };
        let token = self.token();
        self.poller.watch(&socket, token)?;
        self.listeners.insert(token, Listener { socket, pending: false, local, entry });
        Ok(token)
    }

    /// Listens there no more. A socket file that a far node asked for goes with it.
    pub(super) fn close_listener(&mut self, token: u64) {
        let Some(listener) = self.listeners.remove(&token) else { return };
        if let (Local::Unix(path), ListenerOwner::Session(_)) =
            (&listener.local, listener.entry.whose)
        {
            // One that is gone already is gone.
            let _ = std::fs::remove_file(path);
        }
        self.forget_clients(token);
    }

    pub(super) fn reach(&self, whose: ListenerOwner) -> Reach {
        match whose {
            ListenerOwner::Node(node) => self.reaches.get(node).copied().unwrap_or(Reach::Down),
            ListenerOwner::Session(id) if self.peers.get(&id).is_some_and(|peer| peer.open) => {
                Reach::Open(id)
            }
            ListenerOwner::Session(_) => Reach::Down,
        }
    }

    /// Accepts what applications ask for, where the far node is there. Where it does not answer
    /// they are reset: that is what they would see of a host that is not there.
    pub(super) fn accept_all(&mut self, now: Instant) {
        let streams =
            self.listeners.iter().filter(|(_, held)| held.pending && !held.is_for_datagrams());
        let tokens: Vec<u64> = streams.map(|(token, _)| *token).collect();
        for token in tokens {
            let Some(entry) = self.listeners.get(&token).map(|listener| listener.entry.clone())
            else {
                continue;
            };
            let reach = self.reach(entry.whose);
            while reach != Reach::Called
                && !self.exhausted
                && let Some(listener) =
                    self.listeners.get_mut(&token).filter(|listener| listener.pending)
            {
                match socket::accept(&listener.socket) {
                    Ok(Some(socket)) => self.accepted(now, token, (&entry, reach), socket),
                    Ok(None) => listener.pending = false,
                    Err(_) => self.exhausted = true,
                }
            }
        }
    }

    fn accepted(
        &mut self,
        now: Instant,
        listener: u64,
        (entry, reach): (&Entry, Reach),
        socket: OwnedFd,
    ) {
        let target = match &entry.leads {
            Leads::Arrival(FarTarget::For(target)) => Some(target.clone()),
            Leads::Arrival(FarTarget::Diverted) => self.diverted_from(listener, &socket),
            // It is told that the node is not there, where it is not.
            Leads::Arrival(FarTarget::Proxy) => return self.greet(now, listener, socket),
            Leads::Wrapped { .. } => None,
        };
        let (Some(target), Reach::Open(session)) = (target, reach) else {
            return socket::abort(socket);
        };
        let token = self.token();
        match self.poller.watch(&socket, token) {
            Ok(()) => {
                if let Err(socket) = self.begin(now, token, (session, target, entry), socket) {
                    socket::abort(socket);
                }
            }
            Err(_) => socket::abort(socket),
        }
    }

    /// Where a diverted connection was going to; `None` where that is here, which would lead round
    /// and round.
    fn diverted_from(&self, listener: u64, socket: &OwnedFd) -> Option<Target> {
        let own =
            self.listeners.get(&listener).and_then(|listener| socket::address(&listener.socket))?;
        let wanted = socket::address(socket).filter(|wanted| wanted.port() != own.port())?;
        Some(Target::of(wanted))
    }

    /// Asks the far node to connect to `target` for an application whose socket is watched under
    /// `token`. Gives the socket back where the session has no room for one more.
    pub(super) fn begin(
        &mut self,
        now: Instant,
        token: u64,
        (session, target, entry): (SessionId, Target, &Entry),
        socket: OwnedFd,
    ) -> Result<(), OwnedFd> {
        let Some(peer) = self.peers.get_mut(&session) else { return Err(socket) };
        let Ok(stream) = peer.mux.open(now, target.clone(), &entry.carriage) else {
            self.counters.refused += 1;
            return Err(socket);
        };
        self.counters.accepted += 1;
        let mut connection = Connection::new(now, (session, stream), target, Phase::Asking);
        connection.lane = peer.mux.lane(stream).unwrap_or_default();
        connection.idle = entry.idle;
        connection.socket = Some(socket);
        self.keep_as(token, connection);
        Ok(())
    }
}

impl Listener {
    pub const fn is_for_datagrams(&self) -> bool {
        matches!(self.local, Local::Udp(_))
    }
}
