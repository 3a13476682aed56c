//! What every HTTP server of a node needs: its thread, its listener, TLS, the head of a request,
//! and whether a client makes progress.
//!
//! [`HttpThread`] accepts connections in one thread of its own, with an async runtime that serves
//! all of them. What a connection is answered is the business of the server: that of products
//! (`serve-io`), or that of the node's own page (`web-io`).

mod connection;
mod head;
mod hosts;
mod http_thread;
mod progress;
mod tls;

pub use connection::{ConnectionEnd, ConnectionLimits, HttpConnection};
pub use head::{read_head, target};
pub use hosts::is_local_host;
pub use http_thread::{HttpThread, HttpThreadSetup};
pub use progress::ClientProgress;
pub use tls::acceptor;
