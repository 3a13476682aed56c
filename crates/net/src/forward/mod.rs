//! Applications' sockets over sessions: listeners here, connections there, and the bytes between, on one thread.
//!
//! A [`Forwarder`] is a [`crate::Service`]: it calls the far nodes that its [`Setup`] names, takes calls of others, accepts
//! applications' connections and makes those that far nodes ask for and its rules allow. Bytes are read from a socket only
//! when the line has room for them, so that what waits, waits in the application's own socket. What is not here: the
//! streams' protocol (crate `forward`).

mod connection;
mod counters;
mod dial;
mod forwarder;
mod nodes;
mod peer;
mod poller;
mod pump;
mod resolver;
mod socket;

pub use counters::Counters;
pub use forwarder::{Forwarder, StartError};

use core::net::SocketAddr;
use skyhaul_engine::SocketId;
use skyhaul_forward::{Allow, Carriage, Local, Refusal, Target};
use skyhaul_identity::Fingerprint;
use skyhaul_units::{Bytes, Duration};

/// What is forwarded, and what may be.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// This node's name, for the far ends' logs.
    pub name: String,
    /// The nodes to call.
    pub nodes: Vec<Node>,
    /// What comes in here.
    pub listens: Vec<Listen>,
    /// Where far nodes may have this one connect.
    pub allow: Vec<Allow>,
    /// Bytes that came for applications and were not taken by them yet, at most, for each session; 16 KiB more for each
    /// connection.
    pub budget: Bytes,
}

/// A node to call.
#[derive(Debug, Clone)]
pub struct Node {
    /// Its name here.
    pub name: String,
    /// Its key.
    pub peer: Fingerprint,
    /// Its addresses, each with the carrier to call it from: the first that answers begins the session, the others are further
    /// paths of it.
    pub addresses: Vec<(SocketId, SocketAddr)>,
}

/// Where applications come in.
#[derive(Debug, Clone)]
pub struct Listen {
    /// The port or socket file.
    pub local: Local,
    /// The place of the far node among [`Setup::nodes`].
    pub node: usize,
    /// Where that connects to.
    pub target: Target,
    /// How the bytes are carried.
    pub carriage: Carriage,
    /// A connection on which nothing came or went for so long is reset.
    pub idle: Option<Duration>,
}

/// What an operator wants to know when it happens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
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
    TurnedAway {
        /// Its address.
        remote: SocketAddr,
        /// Why.
        reason: String,
    },
    /// The far node has not connected, or this one has not for a far node.
    Refused {
        /// Where.
        target: Target,
        /// For programs.
        reason: Refusal,
        /// For people.
        sentence: String,
    },
}
