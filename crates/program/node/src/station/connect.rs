//! Connects to a TCP server without blocking: a thread of its own resolves the name and connects,
//! so that a server that does not answer delays no other input.

use crate::services;
use skyhaul_units::Duration;
use std::net::{TcpStream, ToSocketAddrs};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};

/// One connection attempt.
#[derive(Debug)]
pub struct ConnectionAttempt {
    outcome: Receiver<Option<TcpStream>>,
}

/// The state of an attempt.
#[derive(Debug)]
pub enum Reached {
    /// Connected.
    Yes(TcpStream),
    /// Failed.
    No,
    /// Under way.
    NotYet,
}

/// The time-out for each address of a server.
const CONNECT: std::time::Duration = std::time::Duration::from_secs(2);

impl ConnectionAttempt {
    /// Begins to connect to `address`; `None` where no thread can be started.
    pub fn begin(address: &str) -> Option<Self> {
        let (done, outcome) = sync_channel(1);
        let address = address.to_owned();
        services::thread("connect", move || {
            // The input may have ended meanwhile.
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
