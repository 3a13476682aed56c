//! The far node that a command connects to: its addresses, its key, and this end's sockets.

use super::ip::IpVersion;
use super::perf::keys::Keys;
use super::perf::line::LineFlags;
use skyhaul_channels_io::{ClientSetup, PathChoice};
use skyhaul_exit::{Exit, Failure};
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{PathOptions, SessionConfig};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs};

/// A far node as a command line names it.
#[derive(Clone, Copy)]
pub struct FarName<'a> {
    /// The known nodes, `NAME=ADDR`.
    pub known: &'a [String],
    /// The name of the one that is meant.
    pub name: &'a str,
}

/// This end, as the far node sees it.
pub struct OwnEnd<'a> {
    /// Its name, for the other end's log.
    pub name: &'a str,
    /// The configuration of its sessions.
    pub session: SessionConfig,
}

/// The addresses and the key of the far node, and this end's sockets.
///
/// # Errors
/// The node is not known, or the keys cannot be used.
pub fn far(
    node: FarName<'_>,
    keys: &Keys,
    line: &LineFlags,
    own: OwnEnd<'_>,
) -> Result<(Vec<SocketAddr>, Fingerprint, ClientSetup), Failure> {
    let mut remotes = Vec::new();
    for text in node.known {
        let Some((name, address)) = text.split_once('=').filter(|(name, _)| !name.is_empty())
        else {
            let what = format!("`{text}` is not a node");
            return Err(Failure::new(Exit::Usage, &what, "write it like far=198.51.100.1:4740"));
        };
        if name == node.name {
            remotes.push(resolve(address)?);
        }
    }
    if remotes.is_empty() {
        let node = node.name;
        let what = format!("the far node `{node}` is not known");
        let help = format!("give its address, like --node {node}=198.51.100.1:4740");
        return Err(Failure::new(Exit::Usage, &what, &help));
    }
    let accepted = keys.read(remotes.iter().copied())?;
    let peer = *accepted.peers.first().expect("there is one, as it was read");
    let bind = remotes.iter().map(|remote| match remote {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    });
    let setup = ClientSetup {
        bind: bind.collect(),
        path: line.path(IpVersion::largest(remotes.iter().copied()))?,
        session: own.session,
        ..ClientSetup::new(own.name, accepted.own)
    };
    Ok((remotes, peer, setup))
}

/// A path from each socket to its address.
pub fn ways(remotes: &[SocketAddr]) -> Vec<PathChoice> {
    let way = |(socket, remote): (usize, &SocketAddr)| PathChoice {
        socket,
        remote: *remote,
        options: PathOptions::default(),
    };
    remotes.iter().enumerate().map(way).collect()
}

fn resolve(address: &str) -> Result<SocketAddr, Failure> {
    let help = "give a host and a port, such as 198.51.100.1:4740";
    let mut found = address.to_socket_addrs().map_err(|error| {
        Failure::new(Exit::Usage, &format!("`{address}` is not found ({error})"), help)
    })?;
    found
        .next()
        .ok_or_else(|| Failure::new(Exit::Usage, &format!("`{address}` has no address"), help))
}
