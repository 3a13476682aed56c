//! This host's end.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use skyhaul_channels_io::{AppChannel, AppClient, ClientStartError, LinkError, PathChoice, Setup};
use skyhaul_congestion::ControllerConfig;
use skyhaul_quic::{Fingerprint, Identity, PathConfig};
use skyhaul_transport::{PathOptions, SessionConfig};
use skyhaul_units::{ByteCount, Rate};

/// A node on its sockets, run by a thread of its own. Dropping it closes its sessions.
#[derive(Debug)]
pub struct Node(AppClient);

/// A node that is to be started.
#[derive(Debug, Clone)]
#[must_use = "it does nothing before it is started"]
pub struct NodeBuilder {
    setup: Setup,
    packet: ByteCount,
}

/// A path to another node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Path(PathChoice);

impl Path {
    /// From the node's first socket to `remote`.
    pub fn to(remote: SocketAddr) -> Self {
        Self(PathChoice { socket: 0, remote, options: PathOptions::default() })
    }

    /// From another socket: its place in the order of [`NodeBuilder::bind`], from zero.
    #[must_use]
    pub const fn from_socket(self, socket: usize) -> Self {
        Self(PathChoice { socket, ..self.0 })
    }

    /// It carries only what would be late on the free paths.
    #[must_use]
    pub const fn metered(self) -> Self {
        Self(PathChoice { options: PathOptions { metered: true, ..self.0.options }, ..self.0 })
    }

    /// It is used only while no other works.
    #[must_use]
    pub const fn standby(self) -> Self {
        Self(PathChoice { options: PathOptions { standby: true, ..self.0.options }, ..self.0 })
    }
}

impl NodeBuilder {
    /// A socket at `address`; port 0 is any free one. May be said several times, once for each path
    /// that is to leave from an address of its own. Not said, it is any address and port of IPv4.
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.setup.bind.push(address);
        self
    }

    /// Takes calls of the node with this key. Without one, calls are not taken.
    pub fn trust(mut self, key: Fingerprint) -> Self {
        self.setup.trusted.insert(key);
        self
    }

    /// Declares what the line carries, counted in IP packets with their headers, for sending at
    /// that rate. Not said, the rate is found.
    pub fn line(mut self, rate: Rate) -> Self {
        self.setup.path.controller = ControllerConfig::declared(rate);
        self
    }

    /// The largest IP packet that fits the line, 1280 B to 65000 B: the same at both ends. Not
    /// said, 1500 B.
    pub const fn packet(mut self, size: ByteCount) -> Self {
        self.packet = size;
        self
    }

    /// Windows, classes, scheduling and repair of every session.
    pub fn sessions(mut self, config: SessionConfig) -> Self {
        self.setup.session = config;
        self
    }

    /// Binds the sockets and starts the node's thread.
    ///
    /// # Errors
    /// See [`ClientStartError`].
    pub fn start(mut self) -> Result<Node, ClientStartError> {
        if self.setup.bind.is_empty() {
            self.setup.bind.push(SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0));
        }
        // Headers of IP and UDP.
        let headers = if self.setup.bind.iter().any(SocketAddr::is_ipv6) { 48 } else { 28 };
        let payload = self.packet.as_u64().saturating_sub(headers);
        // What does not fit is refused with the path's configuration.
        self.setup.path.udp_payload = u16::try_from(payload).unwrap_or(u16::MAX);
        AppClient::start(self.setup).map(Node)
    }
}

impl Node {
    /// A node with a name, for the far ends' logs, and a key.
    pub fn named(name: &str, key: Identity) -> NodeBuilder {
        let path = PathConfig::default();
        let setup = Setup { bind: Vec::new(), path, ..Setup::new(name, key) };
        NodeBuilder { setup, packet: ByteCount::new(1_500) }
    }

    /// Where its sockets are, in the order of [`NodeBuilder::bind`].
    pub fn addresses(&self) -> &[SocketAddr] {
        self.0.addresses()
    }

    /// Calls the node with the key `peer` over `paths`. The session stands once the first path
    /// does; the others join it then, and what is turned away
    /// [`Session::refused_paths`](AppChannel::refused_paths) tells.
    ///
    /// # Errors
    /// No path is given, nobody answers within a minute, or the far end has another key or does not
    /// trust ours.
    pub async fn connect(
        &self,
        paths: impl IntoIterator<Item = Path>,
        peer: Fingerprint,
    ) -> Result<AppChannel, LinkError> {
        let ways: Vec<PathChoice> = paths.into_iter().map(|path| path.0).collect();
        self.0.connect_over(&ways, peer).await
    }

    /// The next session of a node that called; `None` once this node has stopped.
    pub async fn accept(&self) -> Option<AppChannel> {
        self.0.accept().await
    }
}
