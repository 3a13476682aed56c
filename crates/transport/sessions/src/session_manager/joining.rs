//! How a connection becomes one more path of a session.
//!
//! ```text
//!   calling end                                   called end
//!   up ── Join { path, proof } ──────────────────► finds the session that gives the same proof
//!   the path is added ◄────── Join { path, proof } ── the path is added
//! ```
//!
//! A proof is made with keying material of the new connection over a secret of the session's first
//! connection, the direction and the path's number ([`Keying::prove`]): only the two ends of both
//! connections can make it.

use super::{Key, Role, SessionId, SessionManager, SessionManagerEvent, connection};
use crate::Endpoint;
use core::net::SocketAddr;
use skyhaul_identity::{Fingerprint, Keying};
use skyhaul_transport::wire::{Control, ControlReader};
use skyhaul_transport::{PathEvent, PathId, PathOptions};
use skyhaul_units::{Duration, Instant};

/// A connection on its way into a session.
pub(super) struct Joining {
    side: Side,
    reader: ControlReader,
    /// Control bytes still to be sent.
    unsent: Vec<u8>,
    payload: usize,
    /// Once it is up, since when, and its keying material.
    began: Option<(Instant, Keying)>,
}

enum Side {
    Calling { session: SessionId, path: PathId, options: PathOptions, remote: SocketAddr },
    Called { peer: Fingerprint },
}

/// A far end that has not said what it wants to join for this long is closed: a message that is
/// lost twice on a round trip of 10 s takes 100 s.
const JOIN_WITHIN: Duration = Duration::from_secs(120);

impl Joining {
    pub(super) fn calling(
        session: SessionId,
        path: PathId,
        options: PathOptions,
        remote: SocketAddr,
    ) -> Self {
        Self::new(Side::Calling { session, path, options, remote })
    }

    pub(super) fn called(peer: Fingerprint) -> Self {
        Self::new(Side::Called { peer })
    }

    fn new(side: Side) -> Self {
        Self { side, reader: ControlReader::default(), unsent: Vec::new(), payload: 0, began: None }
    }

    /// What its owner learns of its end, where it called.
    pub(super) fn refused(self, reason: String) -> Option<SessionManagerEvent> {
        match self.side {
            Side::Calling { session, path, remote, .. } => {
                Some(SessionManagerEvent::PathRefused { id: session, path, remote, reason })
            }
            Side::Called { .. } => None,
        }
    }
}

impl<C: Endpoint> SessionManager<C> {
    /// A connection for one more path is up.
    pub(super) fn begin_join(
        &mut self,
        now: Instant,
        key: Key,
        (mut joining, keying): (Joining, Keying),
    ) {
        if let Side::Calling { session, path, .. } = joining.side {
            let Some(held) = self.sessions.get(&session) else {
                if let Some(connection) = connection(&mut self.endpoints, key) {
                    connection.close(now, "the session has ended");
                }
                self.events.extend(joining.refused("the session has ended".to_owned()));
                return;
            };
            let proof = keying.prove(&held.keying, path.0, true);
            joining.unsent = Control::Join { path: path.0, proof }.encode();
        }
        joining.began = Some((now, keying));
        self.roles.insert(key, Role::Joining(joining));
    }

    /// Brings connections that join forward.
    pub(super) fn advance_joins(&mut self, now: Instant) {
        let joining =
            |role: &Role| matches!(role, Role::Joining(joining) if joining.began.is_some());
        let keys: Vec<Key> =
            self.roles.iter().filter(|(_, role)| joining(role)).map(|(key, _)| *key).collect();
        for key in keys {
            if let Some(Role::Joining(joining)) = self.roles.remove(&key)
                && let Some(joining) = self.advance_join(now, key, joining)
            {
                self.roles.insert(key, Role::Joining(joining));
            }
        }
    }

    /// Gives the joining back while it is not over.
    fn advance_join(&mut self, now: Instant, key: Key, mut joining: Joining) -> Option<Joining> {
        let connection = connection(&mut self.endpoints, key)?;
        while let Some(event) = connection.poll(now) {
            match event {
                PathEvent::Up { payload } => joining.payload = payload,
                PathEvent::Control(bytes) => joining.reader.push(&bytes),
                PathEvent::Down(reason) => {
                    self.events.extend(joining.refused(reason.to_string()));
                    return None;
                }
                // Symbols before the path is part of the session are sent again.
                PathEvent::Datagram(_) | PathEvent::Acked(_) | PathEvent::Lost(_) => {}
            }
        }
        let taken = connection.send_control(now, &joining.unsent);
        joining.unsent.drain(..taken);
        match joining.reader.next_message() {
            Ok(Some(Control::Join { path, proof })) => {
                self.joined(now, key, joining, (PathId(path), proof))
            }
            Ok(None)
                if joining
                    .began
                    .as_ref()
                    .is_none_or(|(began, _)| now.since(*began) < JOIN_WITHIN) =>
            {
                Some(joining)
            }
            Ok(_) | Err(_) => {
                connection
                    .close(now, "a connection that joins a session must name the session first");
                self.events.extend(
                    joining.refused("the far end refused to add it to the session".to_owned()),
                );
                None
            }
        }
    }

    fn joined(
        &mut self,
        now: Instant,
        key: Key,
        joining: Joining,
        (path, proof): (PathId, [u8; 32]),
    ) -> Option<Joining> {
        let connection = connection(&mut self.endpoints, key)?;
        let (from_caller, options) = match joining.side {
            Side::Calling { options, .. } => (false, options),
            Side::Called { .. } => (true, PathOptions::default()),
        };
        let may = |id: SessionId, held: &super::Held| match joining.side {
            Side::Calling { session, path: ours, .. } => id == session && path == ours,
            Side::Called { peer } => {
                held.peer == peer && !held.paths.contains_key(&path) && path.0 > 0
            }
        };
        let (_, keying) = joining.began.as_ref()?;
        let found = self.sessions.iter_mut().find(|(id, held)| {
            may(**id, held) && keying.is_proved(&held.keying, (path.0, from_caller), &proof)
        });
        let Some((id, held)) = found else {
            connection.close(now, "no session here has this path");
            self.events.extend(joining.refused("no session has this path".to_owned()));
            return None;
        };
        if from_caller {
            let proof = keying.prove(&held.keying, path.0, false);
            // A stream on which nothing was sent takes so few bytes whole.
            connection.send_control(now, &Control::Join { path: path.0, proof }.encode());
        }
        held.session.add_path(path, options);
        held.session.handle(now, path, PathEvent::Up { payload: joining.payload });
        let rest = joining.reader.into_rest();
        if !rest.is_empty() {
            held.session.handle(now, path, PathEvent::Control(rest.into()));
        }
        held.paths.insert(path, key);
        held.next_path = held.next_path.max(u16::from(path.0) + 1);
        self.roles.insert(key, Role::Member(*id, path));
        None
    }
}
