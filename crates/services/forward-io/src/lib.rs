//! Applications' sockets over sessions: listeners here, connections there, the bytes and datagrams
//! between, on one thread.
//!
//! [`Forwards`] accepts applications' connections, and makes those that far nodes ask for and its
//! rules allow, over sessions that somebody else holds. A [`Forwarder`] is a [`skyhaul_net::Service`]
//! with sessions for that alone: it calls the far nodes that its
//! [`Setup`] names, and takes calls of others. Bytes are read from a socket only when the line has
//! room for them, so that what waits, waits in the application's own socket. What is not here: the
//! streams' protocol (crate `forward`).

mod associations;
mod common;
mod connection;
mod connections;
mod counters;
mod dial;
mod diverted;
mod forwarder;
mod forwards;
mod listeners;
mod nodes;
mod peer;
mod poller;
mod proxy;
mod pump;
mod refusal;
mod remote;
mod resolver;
mod sessions;
mod socket;
mod streams;

pub use common::Notify;
pub use counters::{Counters, DatagramCounters, SessionCounters};
pub use forwarder::Forwarder;
pub use forwards::Forwards;
pub use peer::ForwardSession;

use core::net::SocketAddr;
use skyhaul_forward::{Allow, Carriage, ConnectRefusal, Entrance, Forward, Local, Target, What};
use skyhaul_identity::Fingerprint;
use skyhaul_net::RefusedCaller;
use skyhaul_sessions::SocketId;
use skyhaul_transport::ClassTree;
use skyhaul_units::{ByteCount, Duration};
use std::io;

/// What comes in here and at far nodes.
#[derive(Debug, Clone, Default)]
pub struct Forwarding {
    /// The names of the far nodes.
    pub nodes: Vec<String>,
    /// What comes in here.
    pub listens: Vec<ListenAddress>,
    /// What comes in at far nodes.
    pub remotes: Vec<Remote>,
    /// Bytes that came for applications and were not taken by them yet, at most, for each session;
    /// 16 KiB more for each connection.
    pub budget: ByteCount,
}

impl Forwarding {
    /// Adds one thing that is forwarded, by way of the node at this place.
    pub fn add(&mut self, what: What, node: usize, carriage: Carriage, idle: Option<Duration>) {
        let (local, arrival) = match what {
            What::Local(Forward { local, target, .. }) => (local, FarTarget::For(target)),
            What::Socks(Entrance { local, .. }) => (local, FarTarget::Proxy),
            What::Transparent(Entrance { local, .. }) => (local, FarTarget::Diverted),
            What::Remote(Forward { local: at, target, .. }) => {
                let wish = skyhaul_forward::Listen { at, target, carriage, idle };
                return self.remotes.push(Remote { node, wish });
            }
        };
        self.listens.push(ListenAddress { local, node, arrival, carriage, idle });
    }
}

/// What a far node may have this one do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FarRules {
    /// Where it may have this one connect.
    pub allow: Vec<Allow>,
    /// Where it may have this one listen.
    pub allow_listen: Vec<Allow>,
}

/// Why forwards did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system refused what every forwarder needs.
    #[error("the system allows no further poller ({0}): close other programs")]
    System(io::Error),
    /// A port or socket file cannot be listened at.
    #[error(
        "cannot listen on {local} ({source}): stop the program that uses it, or give another one"
    )]
    Listen {
        /// Where.
        local: Local,
        /// Why.
        source: io::Error,
    },
}

/// What a forwarder on sessions of its own does, and what it may be asked to.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// This node's name, for the far ends' logs.
    pub name: String,
    /// The nodes to call.
    pub nodes: Vec<ForwardNode>,
    /// What comes in here.
    pub listens: Vec<ListenAddress>,
    /// What comes in at far nodes.
    pub remotes: Vec<Remote>,
    /// Where far nodes may have this one connect.
    pub allow: Vec<Allow>,
    /// Where they may have this one listen.
    pub allow_listen: Vec<Allow>,
    /// How each session's line is shared; a forward names its class by [`Carriage::class`].
    pub classes: ClassTree,
    /// How often [`ForwardNotice::Stats`] is told.
    pub stats: Option<Duration>,
    /// Bytes that came for applications and were not taken by them yet, at most, for each session;
    /// 16 KiB more for each connection.
    pub budget: ByteCount,
}

/// A node to call.
#[derive(Debug, Clone)]
pub struct ForwardNode {
    /// Its name here.
    pub name: String,
    /// Its key.
    pub peer: Fingerprint,
    /// Its addresses, each with the endpoint to call it from: the first that answers begins the
    /// session, the others are further paths of it.
    pub addresses: Vec<(SocketId, SocketAddr)>,
}

/// Where applications come in.
#[derive(Debug, Clone)]
pub struct ListenAddress {
    /// The port or socket file.
    pub local: Local,
    /// The place of the far node among [`Setup::nodes`].
    pub node: usize,
    /// Where that connects to.
    pub arrival: FarTarget,
    /// How the bytes are carried.
    pub carriage: Carriage,
    /// A connection on which nothing came or went for so long is reset, and a client of datagrams
    /// forgotten: that after a minute where nothing is said.
    pub idle: Option<Duration>,
}

/// Where what comes in goes at the other side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FarTarget {
    /// There.
    For(Target),
    /// Where the application says by SOCKS version 5 (RFC 1928).
    Proxy,
    /// Where it was going to when this host's rules diverted it here (TPROXY).
    Diverted,
}

/// What comes in at a far node, and is connected here.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The place of the far node among [`Setup::nodes`].
    pub node: usize,
    /// Where it listens, and where this node connects to.
    pub wish: skyhaul_forward::Listen,
}

/// What an operator wants to know when it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardNotice {
    /// A node that was called has answered.
    NodeUp {
        /// Its name here.
        node: String,
    },
    /// A node that was called does not answer, refuses, or is gone. It is called again.
    NodeDown {
        /// Its name here.
        node: String,
        /// It had answered.
        was_up: bool,
        /// Why.
        reason: String,
    },
    /// A node has called.
    Called {
        /// The name it gives itself.
        node: String,
    },
    /// A node that had called is gone.
    Left {
        /// Why.
        reason: String,
    },
    /// Someone was turned away.
    TurnedAway(RefusedCaller),
    /// The far node has not connected, or this one has not for a far node.
    Refused {
        /// Where.
        target: Target,
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
    /// A far node listens, as it was asked to.
    FarListens {
        /// Its name here.
        node: String,
        /// Where.
        at: Local,
        /// Where this node connects to for it.
        target: Target,
    },
    /// A far node does not listen. It is asked again.
    FarRefuses {
        /// Its name here.
        node: String,
        /// Where it was to listen.
        at: Local,
        /// It had listened there before.
        was_heard: bool,
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
    /// This node listens for a far one.
    Listens {
        /// Where.
        at: Local,
        /// Where the far one connects to for it.
        target: Target,
    },
    /// What was carried so far; told each [`Setup::stats`].
    Stats {
        /// Since the time before.
        interval: Duration,
        /// Now.
        counters: Box<Counters>,
        /// The time before.
        before: Box<Counters>,
    },
    /// This node does not listen for a far one.
    ListensNot {
        /// Where it was to listen.
        at: Local,
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
}
