//! The page of a node on its socket: connections, who may what, orders, the stream of looks.
//!
//! [`WebServer`] has one thread for all connections. It answers from the newest look that it was
//! given ([`WebServer::show`]) and from nothing else: it takes no lock of the node, reads no disk
//! and asks no peer, so that clients, however many, cost the data threads nothing but processor
//! time. Orders, and questions about the history and the events, go to a [`WebDesk`], in threads of
//! their own.

mod body;
mod connection;
mod desk;
mod events;
mod login;
mod server;
mod shared;
mod stream;
mod turns;

pub use desk::{AccessNews, EventsFound, FoundEvent, NumberHole, OrderGiver, WebDesk};
pub use server::{CONNECTIONS_MAX, WebCounters, WebFault, WebFiles, WebServer, WebSetup};
pub use shared::{STREAMS_MAX, WebLook};

#[cfg(test)]
mod tests;
