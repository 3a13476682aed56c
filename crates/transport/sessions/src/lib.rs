//! Sessions of one node, and the connections that are their paths. Sans-IO: time and bytes are
//! arguments.
//!
//! An [`Endpoint`] makes connections of one kind over one socket: QUIC over UDP (crate `quic`), TLS
//! over TCP (crate `tcp`). The [`SessionManager`] opens a session on a connection, joins further
//! connections to it whatever their kind, and moves what can move between sessions and connections.
//! The [`Dialler`] decides when a second connection attempt begins over another transport.
//! It leaves out: what a session does (crate `transport`), sockets and timers (crate `net`), and
//! when to connect to whom (crate `node`).

pub mod admission;
mod dialler;
mod endpoint;
mod session_manager;
mod udp;

pub use dialler::{
    AfterFailure, DialAttempt, DialFailure, Dialler, DiallerSettings, SecondAttempt,
};
pub use endpoint::{ConnectError, ConnectionId, ConnectionPurpose, Endpoint, EndpointEvent};
pub use session_manager::{
    PathTarget, SessionId, SessionManager, SessionManagerEvent, SocketId, follow_key,
};
pub use udp::{Datagrams, Ecn, ReceivedDatagram, Transmit};
