//! This host's end: a node and its sessions.

use core::net::{IpAddr, Ipv4Addr, SocketAddr};
use skyhaul_channels_io::{
    AppChannel, AppChannelError, AppClient, ClientSetup, ClientStartError, PathChoice,
};
use skyhaul_congestion::ControllerConfig;
use skyhaul_quic::{Fingerprint, Identity, PathConfig};
use skyhaul_transport::{PathOptions, SessionConfig};
use skyhaul_units::{ByteCount, Rate};

/// A node on its sockets, run by a thread of its own. Dropping it closes its sessions.
#[derive(Debug)]
pub struct Node(AppClient);

/// The configuration of a node.
#[derive(Debug, Clone)]
#[must_use = "a node does nothing before it is started"]
pub struct NodeBuilder {
    setup: ClientSetup,
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

    /// From another socket: its index in the order of [`NodeBuilder::bind`].
    #[must_use]
    pub const fn from_socket(self, socket: usize) -> Self {
        Self(PathChoice { socket, ..self.0 })
    }

    /// It carries only what would be late on the paths that are not metered.
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
    /// A socket at `address`; port 0 is any free one. May be called several times, once for each
    /// path that needs an address of its own. Default: any address and port of IPv4.
    pub fn bind(mut self, address: SocketAddr) -> Self {
        self.setup.bind.push(address);
        self
    }

    /// Accepts connections from the node with this key. Default: none.
    pub fn trust(mut self, key: Fingerprint) -> Self {
        self.setup.trusted.insert(key);
        self
    }

    /// Declares the line's rate, counted in IP packets with their headers, to send at that rate.
    /// Default: congestion control finds the rate.
    pub fn line(mut self, rate: Rate) -> Self {
        self.setup.path.controller = ControllerConfig::declared(rate);
        self
    }

    /// The largest IP packet that fits the line, 1280 B to 65000 B, the same at both ends. Default:
    /// 1500 B.
    pub const fn packet(mut self, size: ByteCount) -> Self {
        self.packet = size;
        self
    }

    /// Windows, classes, scheduling and FEC repair of every session.
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
        // A size out of range is refused with the path's configuration.
        self.setup.path.udp_payload = u16::try_from(payload).unwrap_or(u16::MAX);
        AppClient::start(self.setup).map(Node)
    }
}

impl Node {
    /// A node with a name, for the far ends' logs, and a key.
    pub fn named(name: &str, key: Identity) -> NodeBuilder {
        let path = PathConfig::default();
        let setup = ClientSetup { bind: Vec::new(), path, ..ClientSetup::new(name, key) };
        NodeBuilder { setup, packet: ByteCount::new(1_500) }
    }

    /// The addresses of its sockets, in the order of [`NodeBuilder::bind`].
    pub fn addresses(&self) -> &[SocketAddr] {
        self.0.addresses()
    }

    /// Connects to the node with the key `peer` over `paths`. The session is open as soon as the
    /// first path is; the others join it then, and
    /// [`Session::refused_paths`](AppChannel::refused_paths) reports those that could not be made.
    ///
    /// # Errors
    /// No path is given, there is no answer within a minute, or the far end has another key or does
    /// not trust this node's.
    pub async fn connect(
        &self,
        paths: impl IntoIterator<Item = Path>,
        peer: Fingerprint,
    ) -> Result<AppChannel, AppChannelError> {
        let ways: Vec<PathChoice> = paths.into_iter().map(|path| path.0).collect();
        self.0.connect_over(&ways, peer).await
    }

    /// The next session of a node that has connected; `None` once this node has stopped.
    pub async fn accept(&self) -> Option<AppChannel> {
        self.0.accept().await
    }
}
