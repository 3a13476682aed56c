//! Logs in to an SFTP server whose key is known.

use super::known_status::KnownStatus;
use crate::access::{RemoteAccess, Secret, secret_file};
use crate::connect::connect;
use crate::failure::{failed, stalled, words};
use crate::place::RemoteServer;
use russh::client::{self, AuthResult, Handle, KeyboardInteractiveAuthResponse as Prompted};
use russh::keys::{HashAlg, PrivateKeyWithHashAlg, PublicKeyOrCertificate, decode_secret_key};
use russh::{MethodSet, SshId};
use russh_sftp::client::RawSftpSession;
use skyhaul_dispatch::{DeliveryFailure, FailureKind};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// An SFTP session.
pub struct SftpSession {
    /// Its requests.
    pub raw: RawSftpSession,
    /// What the server offers beyond version 3.
    pub extensions: BTreeMap<String, String>,
    /// The server's name for itself.
    pub server: String,
    /// Ends the connection when it goes.
    handle: Handle<HostKeyCheck>,
}

impl SftpSession {
    /// Whether the connection has ended.
    pub fn is_closed(&self) -> bool {
        self.handle.is_closed()
    }
}

/// What logging in needs.
pub struct Login<'a> {
    /// As texts name the place.
    pub place: &'a str,
    /// The server.
    pub server: &'a RemoteServer,
    /// Keys and files.
    pub access: &'a RemoteAccess,
}

/// Compares the key of a server with those it may have.
struct HostKeyCheck {
    expected: Vec<String>,
    seen: Arc<Mutex<Option<String>>>,
}

impl client::Handler for HostKeyCheck {
    type Error = russh::Error;

    async fn check_server_key(
        &mut self,
        key: &PublicKeyOrCertificate,
    ) -> Result<bool, Self::Error> {
        let fingerprint = match key {
            PublicKeyOrCertificate::PublicKey { key, .. } => key.fingerprint(HashAlg::Sha256),
            PublicKeyOrCertificate::Certificate(certificate) => {
                certificate.public_key().fingerprint(HashAlg::Sha256)
            }
        };
        let fingerprint = fingerprint.to_string();
        let is_known = self.expected.contains(&fingerprint);
        *self.seen.lock().expect("no thread panics with this lock") = Some(fingerprint);
        Ok(is_known)
    }
}

impl Login<'_> {
    /// A session, within the time in which something must move.
    ///
    /// # Errors
    /// The server cannot be reached, has another key, or does not let the user in.
    pub async fn session(&self) -> Result<SftpSession, DeliveryFailure> {
        let stall = self.access.stall;
        let tcp = connect(self.place, &self.server.host, self.server.port, stall).await?;
        timeout(stall, self.log_in(tcp))
            .await
            .unwrap_or_else(|_| Err(stalled(self.place, "logging in", stall)))
    }

    async fn log_in(&self, tcp: TcpStream) -> Result<SftpSession, DeliveryFailure> {
        let mut banner = [0; 255];
        let length = tcp.peek(&mut banner).await.unwrap_or(0);
        let banner = String::from_utf8_lossy(&banner[..length]).into_owned();
        let server = words(banner.lines().next().unwrap_or_default());
        let seen = Arc::new(Mutex::new(None));
        let expected = self.access.host_keys.clone();
        let check = HostKeyCheck { expected, seen: Arc::clone(&seen) };
        let config = client::Config {
            client_id: SshId::Standard("SSH-2.0-Skyhaul".into()),
            ..client::Config::default()
        };
        let mut handle =
            client::connect_stream(Arc::new(config), tcp, check).await.map_err(|error| {
                let seen = seen.lock().expect("no thread panics with this lock").take();
                self.not_agreed(&error, seen)
            })?;
        self.authenticate(&mut handle).await?;
        let channel = handle.channel_open_session().await.map_err(|error| self.lost(&error))?;
        let no_sftp = |error: &dyn core::fmt::Display| {
            let what = format!("the server offers no SFTP: {error}");
            failed(FailureKind::Access, self.place, what)
        };
        channel.request_subsystem(true, "sftp").await.map_err(|error| no_sftp(&error))?;
        let config = russh_sftp::client::Config {
            request_timeout_secs: whole_seconds(self.access.stall),
            ..russh_sftp::client::Config::default()
        };
        let raw = RawSftpSession::new_with_config(KnownStatus::new(channel.into_stream()), config);
        let version = raw.init().await.map_err(|error| no_sftp(&error))?;
        let extensions = version.extensions.into_iter().collect();
        Ok(SftpSession { raw, extensions, server, handle })
    }

    fn lost(&self, error: &russh::Error) -> DeliveryFailure {
        let what = format!("the connection broke: {}", words(&error.to_string()));
        failed(FailureKind::Line, self.place, what)
    }

    fn not_agreed(&self, error: &russh::Error, seen: Option<String>) -> DeliveryFailure {
        let (russh::Error::UnknownKey, Some(seen)) = (error, seen) else {
            let kind = match error {
                russh::Error::NoCommonAlgo { .. } | russh::Error::WrongServerSig => {
                    FailureKind::Access
                }
                _ => FailureKind::Line,
            };
            let what = format!("SSH was not agreed on: {}", words(&error.to_string()));
            return failed(kind, self.place, what);
        };
        let what = match self.access.host_keys.is_empty() {
            true => format!(
                "the server's key is {seen}, and none is configured; compare it with what its \
                 operator says, and configure it"
            ),
            false => format!(
                "the server's key is {seen}, which is none of those that are configured; ask its \
                 operator whether it changed before you configure it"
            ),
        };
        failed(FailureKind::Access, self.place, what)
    }

    async fn authenticate(&self, handle: &mut Handle<HostKeyCheck>) -> Result<(), DeliveryFailure> {
        let mut tried = Vec::new();
        let mut offered = None;
        if let Some(path) = &self.access.key_file {
            let text = secret_file(self.place, path)?;
            match self.with_key(handle, &text).await? {
                AuthResult::Success => return Ok(()),
                AuthResult::Failure { remaining_methods, .. } => offered = Some(remaining_methods),
            }
            tried.push(format!("the key {}", path.display()));
        }
        if let Some(password) = self.access.password(self.place)? {
            match self.with_password(handle, &password).await? {
                None => return Ok(()),
                Some(methods) => offered = Some(methods),
            }
            tried.push("the password".to_owned());
        }
        let user = self.server.user.as_deref().unwrap_or_default();
        let what = match (tried.is_empty(), offered) {
            (true, _) => "neither a key nor a password is configured; name its file".to_owned(),
            (false, offered) => {
                let tried = tried.join(" and ");
                let offered: Vec<String> =
                    offered.iter().flat_map(|offered| offered.iter()).map(name_of).collect();
                let offered = offered.join(", ");
                format!(
                    "the server does not take {tried} for user {user}; it takes: {offered}; check \
                     them with its operator"
                )
            }
        };
        Err(failed(FailureKind::Access, self.place, what))
    }

    async fn with_key(
        &self,
        handle: &mut Handle<HostKeyCheck>,
        text: &Secret,
    ) -> Result<AuthResult, DeliveryFailure> {
        let key = decode_secret_key(&text.0, None).map_err(|error| {
            let what = format!(
                "the key file is none of OpenSSH without a passphrase: {}",
                words(&error.to_string())
            );
            failed(FailureKind::Access, self.place, what)
        })?;
        let hash = match key.algorithm().is_rsa() {
            true => {
                handle.best_supported_rsa_hash().await.map_err(|error| self.lost(&error))?.flatten()
            }
            false => None,
        };
        let key = PrivateKeyWithHashAlg::new(Arc::new(key), hash);
        let user = self.server.user.clone().unwrap_or_default();
        handle.authenticate_publickey(user, key).await.map_err(|error| self.lost(&error))
    }

    /// Logs in with a password, also where the server asks for it in a dialogue; or says what the
    /// server takes.
    async fn with_password(
        &self,
        handle: &mut Handle<HostKeyCheck>,
        password: &Secret,
    ) -> Result<Option<MethodSet>, DeliveryFailure> {
        let user = self.server.user.clone().unwrap_or_default();
        let lost = |error: russh::Error| self.lost(&error);
        let answer = handle.authenticate_password(user.clone(), &password.0).await.map_err(lost)?;
        let AuthResult::Failure { remaining_methods, .. } = answer else { return Ok(None) };
        if !remaining_methods.contains(&russh::MethodKind::KeyboardInteractive) {
            return Ok(Some(remaining_methods));
        }
        let begun = handle.authenticate_keyboard_interactive_start(user, None::<String>);
        let mut dialogue = begun.await.map_err(lost)?;
        // A dialogue for a password has one or two steps.
        for _ in 0..4 {
            let Prompted::InfoRequest { prompts, .. } = dialogue else { break };
            let answers = prompts.iter().map(|_| password.0.clone()).collect();
            dialogue =
                handle.authenticate_keyboard_interactive_respond(answers).await.map_err(lost)?;
        }
        match dialogue {
            Prompted::Success => Ok(None),
            _ => Ok(Some(remaining_methods)),
        }
    }
}

fn name_of(method: &russh::MethodKind) -> String {
    <&str>::from(method).to_owned()
}

/// At least one.
fn whole_seconds(span: Duration) -> u64 {
    span.as_secs() + u64::from(span.subsec_nanos() > 0)
}
