//! The sockets of paths: opened, served, and used again when their path is removed.

use crate::address_family::AddressFamily;
use crate::fault::Fault;
use crate::station::sockets::{PathSocket, PathSocketOpener};
use skyhaul_config::LinePath as PathConfig;
use skyhaul_net::{AnyEndpoint, TcpEndpoint};
use skyhaul_sessions::SocketId;
use std::collections::VecDeque;

/// The sockets of a station's paths. A socket is never closed: the session manager numbers sockets
/// by their order.
#[derive(Debug)]
pub struct SocketPool {
    /// Opens sockets.
    pub opener: PathSocketOpener,
    /// Opened and not served yet; the first is the one that was handed over last.
    opening: VecDeque<OpeningSocket>,
    /// Sockets of removed paths, for paths with the same address, interface, rate and remote.
    spare: Vec<SpareSocket>,
    /// Sockets ever opened.
    opened: usize,
}

struct OpeningSocket {
    config: PathConfig,
    family: AddressFamily,
    endpoint: Option<AnyEndpoint>,
}

impl core::fmt::Debug for OpeningSocket {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("OpeningSocket").field("path", &self.config.title()).finish_non_exhaustive()
    }
}

/// A socket that is served, and the path that it was opened for.
#[derive(Debug)]
pub struct SpareSocket {
    /// The path.
    pub config: PathConfig,
    /// Its address family.
    pub family: AddressFamily,
    /// The session manager's number of it.
    pub socket: SocketId,
}

/// Sockets ever opened. A path that is removed leaves its socket, so adding paths of ever other
/// addresses or rates would use up the process's files.
const SOCKETS_MAX: usize = 64;

impl SocketPool {
    /// A pool of which `opened` sockets are served already.
    pub const fn new(opener: PathSocketOpener, opened: usize) -> Self {
        Self { opener, opening: VecDeque::new(), spare: Vec::new(), opened }
    }

    /// Takes a spare socket that does for a path.
    pub fn take_spare(&mut self, config: &PathConfig) -> Option<SpareSocket> {
        let index = self.spare.iter().position(|spare| spare.serves(config))?;
        Some(self.spare.swap_remove(index))
    }

    /// Keeps the socket of a removed path.
    pub fn keep(&mut self, spare: SpareSocket) {
        self.spare.push(spare);
    }

    /// Opens the socket of a path; it is served after [`Self::next_endpoint`].
    ///
    /// # Errors
    /// As [`PathSocketOpener::open`], or too many sockets have been opened.
    pub fn open(&mut self, config: &PathConfig) -> Result<AddressFamily, Fault> {
        if self.opened >= SOCKETS_MAX {
            let what =
                format!("the station has opened {SOCKETS_MAX} sockets since its start, the limit");
            return Err(Fault::environment(
                what,
                format!("path {}", config.title()),
                "restart the station: the spool keeps all data",
            ));
        }
        let PathSocket { endpoint, family } = self.opener.open(config)?;
        self.opened += 1;
        let endpoint = Some(endpoint);
        self.opening.push_back(OpeningSocket { config: config.clone(), family, endpoint });
        Ok(family)
    }

    /// Opens the TCP side of a path; none where too many sockets have been opened.
    ///
    /// # Errors
    /// As [`PathSocketOpener::open_tcp`].
    pub fn open_tcp(
        &mut self,
        config: &PathConfig,
        family: AddressFamily,
    ) -> Result<Option<TcpEndpoint>, Fault> {
        if self.opened >= SOCKETS_MAX {
            return Ok(None);
        }
        let endpoint = self.opener.open_tcp(config, family)?;
        self.opened += 1;
        Ok(Some(endpoint))
    }

    /// The endpoint to be served next.
    pub fn next_endpoint(&mut self) -> Option<AnyEndpoint> {
        self.opening.iter_mut().find_map(|opening| opening.endpoint.take())
    }

    /// The session manager serves the endpoint that it was given last as `socket`. Returns the
    /// socket with the path that it was opened for.
    pub fn served(&mut self, socket: SocketId) -> Option<SpareSocket> {
        let OpeningSocket { config, family, .. } = self.opening.pop_front()?;
        Some(SpareSocket { config, family, socket })
    }

    /// The configured size of IP packets.
    pub fn mtu(&self) -> u64 {
        self.opener.line.mtu.size().as_u64()
    }

    /// Sockets ever opened, and spare ones.
    #[cfg(test)]
    pub fn counts(&self) -> (usize, usize) {
        (self.opened, self.spare.len())
    }
}

impl SpareSocket {
    /// Whether the socket does for another path.
    fn serves(&self, other: &PathConfig) -> bool {
        let own = &self.config;
        own.local == other.local
            && own.transport == other.transport
            && own.interface == other.interface
            && own.rate == other.rate
            && own.remote == other.remote
    }
}
