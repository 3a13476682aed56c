//! How a connection becomes one more path of a session.
//!
//! ```text
//!   connecting end                                accepting end
//!   up ── Join { path, proof } ──────────────────► finds the session that gives the same proof
//!   the path is added ◄────── Join { path, proof } ── the path is added
//! ```
//!
//! A proof is made with keying material of the new connection over a secret of the session's first
//! connection, the direction and the path's number ([`Keying::prove`]): only the two ends of both
//! connections can make it.

use super::event::{SessionId, SessionManagerEvent};
use super::table::{Agreed, HeldSession, SessionTable};
use core::net::SocketAddr;
use skyhaul_identity::{Fingerprint, Keying, ProvenBy};
use skyhaul_transport::wire::{Control, ControlReader};
use skyhaul_transport::{PROTOCOL_VERSION, Path, PathEvent, PathId, PathOptions};
use skyhaul_units::{Duration, Instant};

/// A connection on its way into a session.
pub(super) struct Joining {
    side: Side,
    reader: ControlReader,
    /// What both ends of the connection speak.
    version: u16,
    /// Control bytes still to be sent.
    unsent: Vec<u8>,
    payload: usize,
    /// Once it is up, since when, and its keying material.
    began: Option<(Instant, Keying)>,
}

enum Side {
    Connecting { session: SessionId, path: PathId, options: PathOptions, remote: SocketAddr },
    Accepting { peer: Fingerprint },
}

/// Where a joining connection has got to.
pub(super) enum JoinProgress {
    Waiting(Joining),
    /// It is a path of the session now.
    Joined(SessionId, PathId),
    /// It is not, and the owner learns why where this end connected.
    Failed(Option<SessionManagerEvent>),
}

/// A far end that has not named the session for this long is disconnected: a message that is lost
/// twice on a round trip of 10 s takes 100 s.
const JOIN_WITHIN: Duration = Duration::from_secs(120);

impl Joining {
    pub(super) fn connecting(
        session: SessionId,
        path: PathId,
        options: PathOptions,
        remote: SocketAddr,
    ) -> Self {
        Self::new(Side::Connecting { session, path, options, remote })
    }

    pub(super) fn accepting(peer: Fingerprint) -> Self {
        Self::new(Side::Accepting { peer })
    }

    fn new(side: Side) -> Self {
        Self {
            side,
            reader: ControlReader::default(),
            unsent: Vec::new(),
            payload: 0,
            began: None,
            version: PROTOCOL_VERSION,
        }
    }

    pub(super) const fn has_begun(&self) -> bool {
        self.began.is_some()
    }

    /// What the owner learns where the connection does not become a path.
    pub(super) fn refused(self, reason: String) -> Option<SessionManagerEvent> {
        match self.side {
            Side::Connecting { session, path, remote, .. } => {
                Some(SessionManagerEvent::PathRefused { id: session, path, remote, reason })
            }
            Side::Accepting { .. } => None,
        }
    }

    /// The connection is up: prepares this end's half. Fails where the session has ended.
    pub(super) fn begin(
        mut self,
        now: Instant,
        agreed: Agreed,
        connection: Option<&mut dyn Path>,
        sessions: &SessionTable,
    ) -> JoinProgress {
        let Agreed { keying, version, .. } = agreed;
        self.reader = ControlReader::of(version);
        if let Side::Connecting { session, path, .. } = self.side {
            let Some(held) = sessions.get(session) else {
                if let Some(connection) = connection {
                    connection.close(now, "the session has ended");
                }
                return JoinProgress::Failed(self.refused("the session has ended".to_owned()));
            };
            let proof = keying.prove(&held.keying, path.0, ProvenBy::Connecting);
            self.unsent = Control::Join { path: path.0, proof }.encode_in(version);
        }
        self.began = Some((now, keying));
        self.version = version;
        JoinProgress::Waiting(self)
    }

    /// Sends this end's half, and takes in the far end's.
    pub(super) fn advance(
        mut self,
        now: Instant,
        connection: &mut dyn Path,
        sessions: &mut SessionTable,
    ) -> JoinProgress {
        while let Some(event) = connection.poll(now) {
            match event {
                PathEvent::Up { payload } => self.payload = payload,
                PathEvent::Control(bytes) => self.reader.push(&bytes),
                PathEvent::Down(reason) => {
                    return JoinProgress::Failed(self.refused(reason.to_string()));
                }
                // Symbols before the path is part of the session are sent again.
                PathEvent::Datagram(_) | PathEvent::Acked(_) | PathEvent::Lost(_) => {}
            }
        }
        let taken = connection.send_control(now, &self.unsent);
        self.unsent.drain(..taken);
        match self.reader.next_message() {
            Ok(Some(Control::Join { path, proof })) => {
                let path = PathId(path);
                if let Some((id, held)) = self.find(path, &proof, sessions) {
                    self.join(now, connection, held, path);
                    return JoinProgress::Joined(id, path);
                }
                connection.close(now, "no session here has this path");
                JoinProgress::Failed(self.refused("no session has this path".to_owned()))
            }
            Ok(None) if !self.is_late(now) => JoinProgress::Waiting(self),
            Ok(_) | Err(_) => {
                connection
                    .close(now, "a connection that joins a session must name the session first");
                let reason = "the far end refused to add it to the session".to_owned();
                JoinProgress::Failed(self.refused(reason))
            }
        }
    }

    fn is_late(&self, now: Instant) -> bool {
        self.began.as_ref().is_some_and(|(began, _)| now.since(*began) >= JOIN_WITHIN)
    }

    /// The session that the far end has proven to mean by `path`.
    fn find<'a>(
        &self,
        path: PathId,
        proof: &[u8; 32],
        sessions: &'a mut SessionTable,
    ) -> Option<(SessionId, &'a mut HeldSession)> {
        let (_, keying) = self.began.as_ref()?;
        let far_end = match self.side {
            Side::Connecting { .. } => ProvenBy::Accepting,
            Side::Accepting { .. } => ProvenBy::Connecting,
        };
        sessions.iter_mut().find(|(id, held)| {
            let may_be = match self.side {
                Side::Connecting { session, path: ours, .. } => *id == session && path == ours,
                Side::Accepting { peer } => {
                    held.peer.has(peer) && !held.paths.contains_key(&path) && path.0 > 0
                }
            };
            may_be && keying.is_proved(&held.keying, path.0, far_end, proof)
        })
    }

    /// Adds the connection to `held` as `path`; the accepting end answers first.
    fn join(self, now: Instant, connection: &mut dyn Path, held: &mut HeldSession, path: PathId) {
        let options = match self.side {
            Side::Connecting { options, .. } => options,
            Side::Accepting { .. } => {
                if let Some((_, keying)) = &self.began {
                    let proof = keying.prove(&held.keying, path.0, ProvenBy::Accepting);
                    // A stream on which nothing was sent takes so few bytes whole.
                    connection.send_control(
                        now,
                        &Control::Join { path: path.0, proof }.encode_in(self.version),
                    );
                }
                PathOptions::default()
            }
        };
        held.session.add_path(path, options);
        held.session.handle(now, path, PathEvent::Up { payload: self.payload });
        let rest = self.reader.into_rest();
        if !rest.is_empty() {
            held.session.handle(now, path, PathEvent::Control(rest.into()));
        }
        held.next_path = held.next_path.max(u16::from(path.0) + 1);
    }
}
