//! Serving products over HTTPS: sockets, TLS, files, the catalogue.
//!
//! [`ServeServer`] has one thread with an async runtime for all connections, and at most
//! [`READERS_MAX`] more that read files and search the catalogue. Which answer a request gets is
//! decided by `skyhaul-serve`; here its body goes from the file to the socket in pieces, of which
//! each connection holds one. All pieces together take at most [`PIECES_MAX`]; the more clients
//! there are, the smaller the pieces. Nothing that captures, stores or delivers data waits for a
//! client: the server has its own connections to the catalogue, and takes no lock of the node.

mod body;
mod connection;

mod holdings;
mod hosts;
mod place;
mod served_request;
mod server;
mod shared;

pub use place::{ServeFiles, ServeNotice, ServedContacts, ServedProducts, SessionBoard};
pub use server::{READERS_MAX, ServeFault, ServeServer, ServeSetup};
pub use shared::PIECES_MAX;

#[cfg(test)]
mod tests;
