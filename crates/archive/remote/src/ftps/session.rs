//! Logs in to an FTP server with TLS.

use super::refusal::refused;
use crate::access::{RemoteAccess, Secret};
use crate::failure::{failed, stalled};
use crate::http::tls;
use crate::place::RemoteServer;
use rustls::client::Resumption;
use rustls::{ClientConfig, version};
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::Duration;
use suppaftp::types::FileType;
use suppaftp::{FtpError, Mode, RustlsConnector, RustlsFtpStream};

/// What logging in needs.
pub struct FtpLogin {
    /// As texts name the place.
    pub place: String,
    /// The server.
    pub server: RemoteServer,
    /// Keys and files.
    pub access: RemoteAccess,
    older: Arc<ClientConfig>,
    newer: Arc<ClientConfig>,
}

impl FtpLogin {
    /// Of a server.
    ///
    /// # Errors
    /// The certificates that vouch for it cannot be read.
    pub fn new(
        place: String,
        server: RemoteServer,
        access: RemoteAccess,
    ) -> Result<Self, DeliveryFailure> {
        let ca = access.ca_file.as_deref();
        let older = tls::config_of(&place, ca, &[&version::TLS12])?;
        let newer = tls::config_of(&place, ca, &[&version::TLS13])?;
        Ok(Self { place, server, access, older, newer })
    }

    /// A session. TLS 1.2 comes first: servers that want the session of the control connection on
    /// each data connection run out of the tickets of TLS 1.3 after two of them (vsftpd 3.0.3).
    ///
    /// # Errors
    /// The server cannot be reached, or does not let the user in.
    pub fn session(&self) -> Result<RustlsFtpStream, DeliveryFailure> {
        let mut session = match self.secured(&self.older) {
            Err(FtpError::ConnectionError(error)) if is_too_old(&error) => {
                self.secured(&self.newer)
            }
            secured => secured,
        }
        .map_err(|error| self.refused("agreeing on TLS", &error))?;
        let user = self.server.user.as_deref().unwrap_or("anonymous");
        let password = self.access.password(&self.place)?.unwrap_or(Secret(String::new()));
        let logged_in = session.login(user, &password.0);
        logged_in.map_err(|error| {
            let failure = self.refused(&format!("logging in as {user}"), &error);
            match error {
                // Whatever its code is: the server was asked nothing but to let the user in.
                FtpError::UnexpectedResponse(_) => {
                    DeliveryFailure::new(FailureKind::Access, failure.sentence)
                }
                _ => failure,
            }
        })?;
        let binary = session.transfer_type(FileType::Binary);
        binary.map_err(|error| self.refused("asking for binary files", &error))?;
        Ok(session)
    }

    fn secured(&self, config: &ClientConfig) -> Result<RustlsFtpStream, FtpError> {
        // Data connections resume the TLS session of their own control connection: servers that
        // want that (ProFTPD) refuse them where the control connection resumed an earlier one.
        let mut config = config.clone();
        config.resumption = Resumption::default();
        let stall = self.access.stall;
        let stream = self.connected(stall).map_err(FtpError::ConnectionError)?;
        let is_ipv6 = stream.peer_addr().is_ok_and(|address| address.is_ipv6());
        let mut session = RustlsFtpStream::connect_with_stream(stream)?
            .passive_stream_builder(move |address| {
                open(&address, stall).map_err(FtpError::ConnectionError)
            })
            .into_secure(RustlsConnector::from(Arc::new(config)), &self.server.host)?;
        // The address in the answer to PASV is often that of the inside of a network.
        session.set_passive_nat_workaround(true);
        session.set_mode(if is_ipv6 { Mode::ExtendedPassive } else { Mode::Passive });
        Ok(session)
    }

    fn connected(&self, stall: Duration) -> std::io::Result<TcpStream> {
        let mut last = std::io::Error::from(std::io::ErrorKind::AddrNotAvailable);
        for address in (self.server.host.as_str(), self.server.port).to_socket_addrs()? {
            match open(&address, stall) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// The failure of a request.
    pub fn refused(&self, doing: &str, error: &FtpError) -> DeliveryFailure {
        let io = match error {
            FtpError::ConnectionError(io) => io,
            FtpError::SecureError(what) => return failed(FailureKind::Access, &self.place, what),
            _ => return refused(&self.place, doing, error),
        };
        match io.kind() {
            std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => {
                stalled(&self.place, doing, self.access.stall)
            }
            _ if io.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) => {
                tls::failure(&self.place, io)
            }
            _ => failed(FailureKind::Line, &self.place, format!("{doing}: {io}")),
        }
    }
}

/// Whether the server does not speak TLS 1.2.
fn is_too_old(error: &std::io::Error) -> bool {
    use rustls::{AlertDescription, Error};
    matches!(
        error.get_ref().and_then(|inner| inner.downcast_ref::<Error>()),
        Some(
            Error::AlertReceived(
                AlertDescription::ProtocolVersion | AlertDescription::HandshakeFailure
            ) | Error::PeerIncompatible(_)
        )
    )
}

fn open(address: &SocketAddr, stall: Duration) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect_timeout(address, stall)?;
    stream.set_read_timeout(Some(stall))?;
    stream.set_write_timeout(Some(stall))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}
