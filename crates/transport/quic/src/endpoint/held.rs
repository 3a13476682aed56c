//! One connection of an endpoint: its path, which end opened it, and what has been reported of it.

use crate::config::EndpointConfig;
use crate::event::{down_reason, is_withdrawn, refusal};
use crate::path::Notice;
use crate::tls;
use crate::{Fingerprint, QuicPath, Refusal};
use noq_proto::{ConnectionError, ConnectionHandle};
use skyhaul_identity::Keying;
use skyhaul_sessions::admission::SETUP_MAX;
use skyhaul_sessions::{ConnectionId, EndpointEvent};
use skyhaul_transport::{DownReason, Path as _};
use skyhaul_units::Instant;
use std::net::SocketAddr;

/// A connection and what the endpoint knows of it.
pub(super) struct HeldConnection {
    /// Set by the table.
    pub(super) id: ConnectionId,
    pub(super) path: QuicPath,
    pub(super) handle: ConnectionHandle,
    pub(super) remote: SocketAddr,
    pub(super) began: Instant,
    pub(super) drained: bool,
    origin: Origin,
    stage: Stage,
    /// Reported as ready, so that its owner reads it to its end.
    was_ready: bool,
}

/// Which end opened a connection.
pub(super) enum Origin {
    /// This one. The far end must have the key `expected`.
    Here { expected: Fingerprint },
    /// The far one. `other_version` is its protocol name, where it speaks another version.
    FarEnd { other_version: Option<String> },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Handshake,
    Ready,
    Over,
}

impl HeldConnection {
    pub(super) const fn new(
        began: Instant,
        handle: ConnectionHandle,
        remote: SocketAddr,
        path: QuicPath,
        origin: Origin,
    ) -> Self {
        Self {
            id: ConnectionId(0),
            path,
            handle,
            remote,
            began,
            drained: false,
            origin,
            stage: Stage::Handshake,
            was_ready: false,
        }
    }

    pub(super) const fn is_done(&self) -> bool {
        self.drained && (!self.was_ready || self.path.state().is_polled_out())
    }

    const fn is_incoming(&self) -> bool {
        matches!(self.origin, Origin::FarEnd { .. })
    }

    /// Until when an incoming connection must be up.
    pub(super) fn setup_end(&self) -> Option<Instant> {
        (self.is_incoming() && self.stage == Stage::Handshake).then(|| self.began + SETUP_MAX)
    }

    /// When something is due.
    pub(super) fn due(&self) -> Option<Instant> {
        [self.path.next_timeout(), self.setup_end()].into_iter().flatten().min()
    }

    /// What the endpoint reports after `notice`. `refused_key` is the key that TLS has refused
    /// here.
    pub(super) fn on_notice(
        &mut self,
        now: Instant,
        notice: Notice,
        refused_key: Option<Fingerprint>,
        config: &EndpointConfig,
    ) -> Option<EndpointEvent> {
        let peer = tls::peer_key(self.path.connection());
        match notice {
            Notice::Connected => {
                let Origin::FarEnd { other_version: Some(theirs) } = &self.origin else {
                    return None;
                };
                let ours = config.versions.text();
                self.path.close_for_version(now, ours.as_bytes());
                let reason = Refusal::Version { ours, theirs: theirs.clone() };
                self.stage = Stage::Over;
                Some(self.refused(peer, reason))
            }
            Notice::Up => {
                self.stage = Stage::Ready;
                self.was_ready = true;
                let peer = peer.expect("a path is up only after the peer's key was checked");
                let keying = Keying::derive(|out, label| {
                    self.path.export_keying_material(out, label, b"").is_ok()
                })
                .expect("TLS 1.3 exports keys of any length once it is set up");
                let (incoming, purpose) = (self.is_incoming(), self.path.purpose());
                let agreed = tls::agreed(self.path.connection());
                let version = agreed.and_then(|name| config.versions.of_name(&name));
                let version = version.expect("both ends of TLS have one of the names offered");
                let id = self.id;
                Some(EndpointEvent::Ready { id, peer, keying, incoming, purpose, version })
            }
            Notice::Over(error) => match core::mem::replace(&mut self.stage, Stage::Over) {
                Stage::Over => None,
                Stage::Ready => {
                    Some(EndpointEvent::Closed { id: self.id, reason: down_reason(&error) })
                }
                Stage::Handshake => {
                    let reason = match (refused_key, &self.origin) {
                        (Some(_), Origin::Here { expected }) => {
                            Refusal::WrongKey { expected: *expected }
                        }
                        (Some(_), Origin::FarEnd { .. }) => Refusal::UntrustedKey,
                        (None, Origin::FarEnd { .. }) if is_withdrawn(&error) => Refusal::Withdrawn,
                        (None, _) => {
                            refusal(&error, config.identity.fingerprint(), config.versions)
                        }
                    };
                    Some(self.refused(refused_key.or(peer), reason))
                }
            },
        }
    }

    /// What the endpoint reports where the path's owner has closed it.
    pub(super) fn on_closed_by_owner(&mut self, config: &EndpointConfig) -> Option<EndpointEvent> {
        if !self.path.state().is_over() {
            return None;
        }
        match core::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Over => None,
            Stage::Ready => {
                Some(EndpointEvent::Closed { id: self.id, reason: DownReason::ClosedHere })
            }
            Stage::Handshake => {
                let ours = config.identity.fingerprint();
                let reason = refusal(&ConnectionError::LocallyClosed, ours, config.versions);
                Some(self.refused(None, reason))
            }
        }
    }

    /// Closes an incoming connection that is not up in time, to make room for others.
    pub(super) fn refuse_slow(&mut self, now: Instant) -> EndpointEvent {
        self.stage = Stage::Over;
        self.path.close(now, "the handshake took too long");
        self.refused(None, Refusal::TooSlow)
    }

    const fn refused(&self, fingerprint: Option<Fingerprint>, reason: Refusal) -> EndpointEvent {
        EndpointEvent::Refused { id: Some(self.id), remote: self.remote, fingerprint, reason }
    }
}
