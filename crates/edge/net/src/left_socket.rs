//! What is left of an endpoint whose node goes on in another process.

use skyhaul_sessions::ReceivedDatagram;
use std::os::fd::OwnedFd;

/// A socket that waits for calls, and with which another process goes on.
#[derive(Debug)]
pub enum LeftSocket {
    /// Over UDP: the socket, and the datagrams that begin calls.
    Udp(OwnedFd, Vec<ReceivedDatagram>),
    /// Over TCP: the listener. Calls wait in the system.
    Tcp(OwnedFd),
}
