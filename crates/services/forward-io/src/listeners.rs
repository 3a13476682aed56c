//! Where applications come in: sockets of this node's own configuration, and those that far nodes
//! asked for.

use crate::context::ForwardContext;
use crate::refusal::RequestRefusal;
use crate::sessions::{ListenerOwner, Reach, Sessions};
use crate::{FarTarget, ForwardNotice, socket};
use rustix::io::Errno;
use skyhaul_forward::{Carriage, ConnectRefusal, Listen, Local, Target};
use skyhaul_sessions::SessionId;
use skyhaul_units::Duration;
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::sync::Arc;

/// All sockets that applications connect or send to.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    all: BTreeMap<u64, Listener>,
    /// The system had no more descriptors: accepting waits for the next sweep.
    exhausted: bool,
}

/// A socket that is listened at, or that clients' datagrams come to.
#[derive(Debug)]
struct Listener {
    socket: Arc<OwnedFd>,
    /// Connections or datagrams may wait.
    pending: bool,
    /// Its address, with the port that the system chose.
    local: Local,
    entry: Arc<Entry>,
}

/// What becomes of what comes in.
#[derive(Debug, Clone)]
pub(super) struct Entry {
    pub owner: ListenerOwner,
    pub leads: Leads,
    pub carriage: Carriage,
    pub idle: Option<Duration>,
}

/// Where it goes.
#[derive(Debug, Clone)]
pub(super) enum Leads {
    /// As the setup, or the far node, says.
    Arrival(FarTarget),
    /// Each datagram names its target by SOCKS. Only the host that asked for this may send.
    Wrapped { client: IpAddr },
}

/// An application's new connection.
#[derive(Debug)]
pub(super) struct Accepted {
    pub listener: u64,
    pub entry: Arc<Entry>,
    pub socket: OwnedFd,
}

/// A datagram of a client.
#[derive(Debug)]
pub(super) struct FromClient {
    pub listener: u64,
    pub entry: Arc<Entry>,
    /// Answers go out here.
    pub socket: Arc<OwnedFd>,
    pub address: SocketAddr,
    pub len: usize,
}

/// Listeners that one far node may ask for.
const LISTENS_MAX: usize = 256;

impl Listeners {
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Listens at `local`. Returns the listener's token.
    pub fn listen(
        &mut self,
        context: &mut ForwardContext,
        local: &Local,
        entry: Entry,
    ) -> io::Result<u64> {
        let socket = match &entry.leads {
            Leads::Arrival(FarTarget::Diverted) => socket::listen_for_others(local)?,
            _ => socket::listen_at(local)?,
        };
        let local = match socket::address(&socket) {
            Some(address) => local.at(address.port()),
            None => local.clone(),
        };
        let token = context.poller.token();
        context.poller.watch(&socket, token)?;
        let (socket, entry) = (Arc::new(socket), Arc::new(entry));
        self.all.insert(token, Listener { socket, pending: false, local, entry });
        Ok(token)
    }

    pub fn local(&self, token: u64) -> Option<&Local> {
        self.all.get(&token).map(|listener| &listener.local)
    }

    /// Closes a listener. A socket file that a far node asked for is removed.
    pub fn close(&mut self, token: u64) {
        let Some(listener) = self.all.remove(&token) else { return };
        if let (Local::Unix(path), ListenerOwner::Session(_)) =
            (&listener.local, listener.entry.owner)
        {
            // The file may have been removed already.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Closes the listeners that the far node of a session asked for. Returns their tokens.
    pub fn close_of(&mut self, session: SessionId) -> Vec<u64> {
        let owner = ListenerOwner::Session(session);
        let of_it = self.all.iter().filter(|(_, listener)| listener.entry.owner == owner);
        let tokens: Vec<u64> = of_it.map(|(token, _)| *token).collect();
        tokens.iter().for_each(|token| self.close(*token));
        tokens
    }

    /// A socket is ready. Returns whether it is a listener's.
    pub fn ready(&mut self, token: u64) -> bool {
        let Some(listener) = self.all.get_mut(&token) else { return false };
        listener.pending = true;
        true
    }

    /// The next connection that can be carried or must be turned away: none while the first
    /// connection attempt to its far node is in progress.
    pub fn accept(&mut self, sessions: &Sessions) -> Option<Accepted> {
        let waiting = self.all.iter_mut().filter(|(_, listener)| {
            listener.pending
                && !listener.is_for_datagrams()
                && sessions.reach(listener.entry.owner) != Reach::Connecting
        });
        for (token, listener) in waiting {
            if self.exhausted {
                return None;
            }
            match socket::accept(&listener.socket) {
                Ok(Some(socket)) => {
                    let entry = Arc::clone(&listener.entry);
                    return Some(Accepted { listener: *token, entry, socket });
                }
                Ok(None) => listener.pending = false,
                Err(_) => self.exhausted = true,
            }
        }
        None
    }

    /// Tries again to accept after the system had no more descriptors.
    pub const fn sweep(&mut self) {
        self.exhausted = false;
    }

    /// The original target of a diverted connection; `None` where that is this listener itself,
    /// which would be a loop.
    pub fn diverted_from(&self, token: u64, socket: &OwnedFd) -> Option<Target> {
        let own = socket::address(&self.all.get(&token)?.socket)?;
        let wanted = socket::address(socket).filter(|wanted| wanted.port() != own.port())?;
        Some(Target::of(wanted))
    }

    /// Listeners that datagrams may wait at. They wait there until the first connection attempt to
    /// the far node has been answered.
    pub fn with_datagrams(&self, sessions: &Sessions) -> Vec<u64> {
        let waiting = self.all.iter().filter(|(_, listener)| {
            listener.pending
                && listener.is_for_datagrams()
                && sessions.reach(listener.entry.owner) != Reach::Connecting
        });
        waiting.map(|(token, _)| *token).collect()
    }

    /// The next datagram at a listener.
    pub fn receive(&mut self, token: u64, buffer: &mut [u8]) -> Option<FromClient> {
        let listener = self.all.get_mut(&token)?;
        let Some((len, address)) = socket::receive_from(&listener.socket, buffer) else {
            listener.pending = false;
            return None;
        };
        let (entry, socket) = (Arc::clone(&listener.entry), Arc::clone(&listener.socket));
        Some(FromClient { listener: token, entry, socket, address, len })
    }

    /// A far node asks this one to listen. Answers it.
    pub fn listen_for(
        &mut self,
        context: &mut ForwardContext,
        session: SessionId,
        number: u32,
        listen: Listen,
    ) {
        let (at, target) = (listen.at.clone(), listen.target.clone());
        let outcome = self.try_listen_for(context, session, listen);
        let Some(peer) = context.sessions.get_mut(session) else { return };
        match outcome {
            Ok(local) => {
                peer.mux.listens.grant(number, local.clone());
                context.notice(&ForwardNotice::Listens { at: local, target });
            }
            Err(RequestRefusal { reason, sentence }) => {
                peer.mux.listens.refuse(number, reason, &sentence);
                context.notice(&ForwardNotice::ListensNot { at, reason, sentence });
            }
        }
    }

    fn try_listen_for(
        &mut self,
        context: &mut ForwardContext,
        session: SessionId,
        listen: Listen,
    ) -> Result<Local, RequestRefusal> {
        let Listen { at, target, carriage, idle } = listen;
        let rules = context.sessions.get(session).map(|peer| &peer.rules);
        let may = rules
            .is_some_and(|rules| rules.allow_listen.iter().any(|rule| rule.permits_listening(&at)));
        if !may {
            return Err(RequestRefusal::new(
                ConnectRefusal::NotAllowed,
                "the listening node's rules do not allow it; allow the port with --allow-listen \
                 there",
            ));
        }
        if matches!(at, Local::Udp(_)) != target.is_for_datagrams() {
            return Err(RequestRefusal::new(
                ConnectRefusal::Failed,
                "datagrams and connections cannot share one forward",
            ));
        }
        let owner = ListenerOwner::Session(session);
        if self.all.values().filter(|held| held.entry.owner == owner).count() >= LISTENS_MAX {
            return Err(RequestRefusal::new(
                ConnectRefusal::Busy,
                &format!("a node opens at most {LISTENS_MAX} ports for one other node"),
            ));
        }
        let entry = Entry { owner, leads: Leads::Arrival(FarTarget::For(target)), carriage, idle };
        let token = self.listen(context, &at, entry).map_err(|error| {
            let is_taken = Errno::from_io_error(&error) == Some(Errno::ADDRINUSE);
            let reason = if is_taken { ConnectRefusal::InUse } else { ConnectRefusal::Failed };
            RequestRefusal::new(reason, &error.to_string())
        })?;
        Ok(self.local(token).cloned().unwrap_or(at))
    }
}

impl Listener {
    const fn is_for_datagrams(&self) -> bool {
        matches!(self.local, Local::Udp(_))
    }
}
