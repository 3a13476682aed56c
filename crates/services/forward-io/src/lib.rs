//! Port forwarding: applications' sockets at both ends of sessions, on one thread.
//!
//! [`Forwards`] accepts applications' connections, and makes those that far nodes ask for and its
//! rules allow, over sessions that its caller owns. A [`Forwarder`] is a
//! [`skyhaul_net::Service`] with sessions for that alone: it connects to the far nodes that its
//! [`Setup`] names, and accepts others. Bytes are read from a socket only when the line has room
//! for them, so that backpressure reaches the application. The streams' protocol is in the crate
//! `forward`.
//!
//! ```text
//!   application ─► Listeners ─► Connections ──┐             ┌── Dials ─► Connections ─► server
//!                      │  └──► SocksClients   ├─ session ───┤
//!                      └─────► Associations ──┘             └── Associations ─► UDP server
//! ```
//!
//! `Forwards` hands each event to its part; `ForwardContext` is what the parts share.

mod associations;
mod connection;
mod connections;
mod context;
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

pub use context::Notify;
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

/// What is forwarded, here and at far nodes.
#[derive(Debug, Clone, Default)]
pub struct Forwarding {
    /// The names of the far nodes.
    pub nodes: Vec<String>,
    /// Where applications connect here.
    pub listens: Vec<ListenAddress>,
    /// Where they connect at far nodes.
    pub remotes: Vec<Remote>,
    /// Limit of the received bytes that applications have not taken, for each session; 16 KiB more
    /// for each connection.
    pub budget: ByteCount,
}

impl Forwarding {
    /// Adds one forward, to the node of this index.
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

/// What a far node may ask this one to do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FarRules {
    /// Where this one connects for it.
    pub allow: Vec<Allow>,
    /// Where this one listens for it.
    pub allow_listen: Vec<Allow>,
}

/// Why forwards did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system has no more file descriptors.
    #[error("the system allows no further poller ({0}): close other programs")]
    System(io::Error),
    /// The system does not listen at a port or socket file.
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

/// What a [`Forwarder`] does, and what far nodes may ask it to do.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// This node's name, for the far ends' logs.
    pub name: String,
    /// The nodes to connect to.
    pub nodes: Vec<ForwardNode>,
    /// Where applications connect here.
    pub listens: Vec<ListenAddress>,
    /// Where they connect at far nodes.
    pub remotes: Vec<Remote>,
    /// Where this node connects for far ones.
    pub allow: Vec<Allow>,
    /// Where it listens for them.
    pub allow_listen: Vec<Allow>,
    /// The class tree of each session; a forward names its class by [`Carriage::class`].
    pub classes: ClassTree,
    /// How often [`ForwardNotice::Stats`] is reported.
    pub stats: Option<Duration>,
    /// Limit of the received bytes that applications have not taken, for each session; 16 KiB more
    /// for each connection.
    pub budget: ByteCount,
}

/// A node to connect to.
#[derive(Debug, Clone)]
pub struct ForwardNode {
    /// Its name here.
    pub name: String,
    /// Its key.
    pub peer: Fingerprint,
    /// Its addresses, each with the endpoint to connect from. The first that answers begins the
    /// session; the others become further paths of it.
    pub addresses: Vec<(SocketId, SocketAddr)>,
}

/// Where applications connect.
#[derive(Debug, Clone)]
pub struct ListenAddress {
    /// The port or socket file.
    pub local: Local,
    /// The far node's index in [`Setup::nodes`].
    pub node: usize,
    /// Where the far node connects to.
    pub arrival: FarTarget,
    /// How the bytes are carried.
    pub carriage: Carriage,
    /// A connection that is idle for so long is reset, and a client of datagrams is forgotten.
    /// Default: none for connections, one minute for datagrams.
    pub idle: Option<Duration>,
}

/// Where the far node connects to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FarTarget {
    /// To this target.
    For(Target),
    /// To the target that the application names by SOCKS version 5 (RFC 1928).
    Proxy,
    /// To the destination from which this host's rules diverted the connection (TPROXY).
    Diverted,
}

/// A listener at a far node, whose connections are made from here.
#[derive(Debug, Clone)]
pub struct Remote {
    /// The far node's index in [`Setup::nodes`].
    pub node: usize,
    /// Where it listens, and where this node connects to.
    pub wish: skyhaul_forward::Listen,
}

/// Events that an operator wants to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ForwardNotice {
    /// The session with a node is open.
    NodeUp {
        /// Its name here.
        node: String,
    },
    /// A node does not answer, refuses, or is gone. There will be further attempts to connect.
    NodeDown {
        /// Its name here.
        node: String,
        /// The session was open.
        was_up: bool,
        /// Why.
        reason: String,
    },
    /// A node has connected.
    Called {
        /// The name it gives itself.
        node: String,
    },
    /// A node that had connected is gone.
    Left {
        /// Why.
        reason: String,
    },
    /// A node that tried to connect was refused.
    TurnedAway(RefusedCaller),
    /// The far node has refused to connect, or this one has refused a far node.
    Refused {
        /// The target.
        target: Target,
        /// For programs.
        reason: ConnectRefusal,
        /// For people.
        sentence: String,
    },
    /// A far node listens, as asked.
    FarListens {
        /// Its name here.
        node: String,
        /// Where.
        at: Local,
        /// Where this node connects to for it.
        target: Target,
    },
    /// A far node does not listen. It will be asked again.
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
    /// What was carried so far; reported at the interval [`Setup::stats`].
    Stats {
        /// Time since the previous report.
        interval: Duration,
        /// The counters now.
        counters: Box<Counters>,
        /// Those of the previous report.
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
