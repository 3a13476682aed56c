//! The sending end's addresses.

use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Socket;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// Where datagrams go.
///
/// # Errors
/// There is no such address.
pub fn address(text: &str) -> Result<SocketAddr, Failure> {
    let help = "give a host and a port, such as 192.0.2.1:4720";
    let mut found = text.to_socket_addrs().map_err(|error| {
        Failure::new(Exit::Usage, &format!("`{text}` is not found ({error})"), help)
    })?;
    found.next().ok_or_else(|| Failure::new(Exit::Usage, &format!("`{text}` has no address"), help))
}

/// A socket to send to `to` from.
///
/// # Errors
/// The local address cannot be used.
pub fn bind(local: Option<SocketAddr>, to: SocketAddr) -> Result<Socket, Failure> {
    let any = match to {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let local = local.unwrap_or(any);
    Socket::bind(local).map_err(|source| {
        let help = "give one of this host's addresses and a free port";
        Failure::io("the UDP port cannot be used", &local.to_string(), help, source)
    })
}
