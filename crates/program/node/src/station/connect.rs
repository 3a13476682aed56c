//! Reaching a TCP server without waiting for it: a thread of its own finds the address and
//! connects, so that a server that does not answer holds no other input up.

use crate::services;
use skyhaul_units::Duration;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

/// One attempt to reach a server.
#[derive(Debug)]
pub struct Attempt {
    outcome: Receiver<Option<TcpStream>>,
}

/// How an attempt stands.
#[derive(Debug)]
pub enum Reached {
    /// There.
    Yes(TcpStream),
    /// Not there, and not under way.
    No,
    /// Not known yet.
    NotYet,
}

/// How long one address of a server is tried.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(2);

impl Attempt {
    /// Begins to reach `address`; `None` where no thread can be started.
    pub fn begin(address: &str) -> Option<Self> {
        let (done, outcome) = sync_channel(1);
        let address = address.to_owned();
        services::thread("connect", move || {
            // Whoever wanted it may have ended meanwhile.
            let _ = done.send(connect(&address));
        })
        .ok()?;
        Some(Self { outcome })
    }

    /// Waits for the outcome, up to `patience`.
    pub fn outcome(&self, patience: Duration) -> Reached {
        match self.outcome.recv_timeout(patience.to_std()) {
            Ok(Some(stream)) => Reached::Yes(stream),
            Ok(None) | Err(RecvTimeoutError::Disconnected) => Reached::No,
            Err(RecvTimeoutError::Timeout) => Reached::NotYet,
        }
    }
}

fn connect(address: &str) -> Option<TcpStream> {
    let mut addresses = address.to_socket_addrs().ok()?;
    addresses.find_map(|address| TcpStream::connect_timeout(&address, CONNECT).ok())
}
