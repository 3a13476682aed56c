//! The configuration of a proxy, and why it refuses one.

use serde::{Deserialize, Serialize};
use skyhaul_link::LinkConfig;
use skyhaul_units::{ByteCount, Duration};
use std::io;
use std::net::SocketAddr;
use std::num::NonZeroU16;

/// A proxy's configuration. Only the addresses have no default.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProxyConfig {
    /// Where clients send to. Port 0 lets the system choose.
    pub listen: SocketAddr,
    /// Where the proxy sends what they sent.
    pub to: SocketAddr,
    /// The line from clients to the destination. Its delay is one way.
    #[serde(default)]
    pub up: LinkConfig,
    /// The line from the destination to clients. Its delay is one way.
    #[serde(default)]
    pub down: LinkConfig,
    /// Seed of chance on the line up; the line down takes the next number.
    #[serde(default)]
    pub seed: u64,
    /// Most client addresses at a time, each with a socket. More are refused and counted.
    #[serde(default = "default_max_clients")]
    pub max_clients: NonZeroU16,
    /// A client neither heard from nor answered for this long is forgotten.
    #[serde(default = "default_idle")]
    pub idle: Duration,
    /// Socket buffer asked for, in each direction. The system's own limit may be lower.
    #[serde(default = "default_socket_buffer")]
    pub socket_buffer: ByteCount,
}

impl ProxyConfig {
    /// A proxy whose line is the same in both directions.
    pub fn new(listen: SocketAddr, to: SocketAddr, line: LinkConfig) -> Self {
        Self {
            listen,
            to,
            up: line.clone(),
            down: line,
            seed: 0,
            max_clients: default_max_clients(),
            idle: default_idle(),
            socket_buffer: default_socket_buffer(),
        }
    }
}

/// Why a proxy could not start or go on.
#[derive(Debug, thiserror::Error)]
pub enum ProxyError {
    /// Another program has the address.
    #[error(
        "cannot listen on {address}: the address is in use; \
         choose another port, or stop the program that uses it (`ss -ulpn` shows it)"
    )]
    InUse {
        /// The address asked for.
        address: SocketAddr,
    },
    /// The address cannot be had.
    #[error(
        "cannot listen on {address}: {source}; choose an address of this machine, and a port above \
        1023"
    )]
    Bind {
        /// The address asked for.
        address: SocketAddr,
        /// What the system said.
        source: io::Error,
    },
    /// The destination is the proxy itself, or has no port.
    #[error(
        "cannot proxy to {0}: it has no port, or is the proxy's own address; give the address to \
        forward to"
    )]
    Destination(SocketAddr),
    /// The system refused a descriptor.
    #[error("cannot set up the proxy: {0}; check the limit of open files (`ulimit -n`)")]
    Setup(io::Error),
    /// The system refused to wait.
    #[error("the proxy cannot wait for its sockets: {0}; restart it")]
    Wait(io::Error),
}

impl ProxyError {
    pub(super) fn bind(address: SocketAddr, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::AddrInUse {
            return Self::InUse { address };
        }
        Self::Bind { address, source }
    }
}

/// A station has a handful of connections; each client costs one descriptor and two socket buffers.
fn default_max_clients() -> NonZeroU16 {
    const { NonZeroU16::new(64).expect("64 is not zero") }
}

/// Longer than any outage that a connection is expected to live through without a word.
fn default_idle() -> Duration {
    Duration::from_secs(600)
}

/// 100 ms of 300 Mbit/s: what may come while the proxy's thread is kept from running.
fn default_socket_buffer() -> ByteCount {
    ByteCount::mib(4)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_form_needs_the_addresses_only_and_refuses_unknown_keys() {
        let text = "listen = \"127.0.0.1:5000\"\nto = \"127.0.0.1:4433\"\n";
        let config: ProxyConfig = toml::from_str(text).unwrap();
        let expected = ProxyConfig::new(config.listen, config.to, LinkConfig::default());
        assert_eq!(config, expected);
        let error = toml::from_str::<ProxyConfig>(&format!("{text}delay = \"80 ms\"")).unwrap_err();
        assert!(error.to_string().contains("unknown field `delay`"), "{error}");
        let again: ProxyConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
    }
}
