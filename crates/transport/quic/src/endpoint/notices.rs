//! What a connection tells its endpoint.

use super::*;

impl QuicEndpoint {
    pub(super) fn note(&mut self, now: Instant, id: ConnectionId, notice: Notice) {
        let alpn = self.config.alpn();
        let ours = self.config.identity.fingerprint();
        let refused_key = self.refused.take();
        let Some(held) = self.connections.get_mut(&id) else { return };
        let peer = tls::peer_key(held.path.connection());
        let event = match notice {
            Notice::Connected => {
                let Some(theirs) = held.other_version.clone() else { return };
                held.path.close_for_version(now, alpn.clone());
                held.stage = Stage::Over;
                let ours = String::from_utf8_lossy(&alpn).into_owned();
                let reason = Refusal::Version { ours, theirs };
                EndpointEvent::Refused {
                    id: Some(id),
                    remote: held.remote,
                    fingerprint: peer,
                    reason,
                }
            }
            Notice::Up => {
                held.stage = Stage::Ready;
                held.shown = true;
                let peer = peer.expect("a path is up only after the peer's key was checked");
                let keying = Keying::derive(|out, label| {
                    held.path.export_keying_material(out, label, b"").is_ok()
                })
                .expect("TLS 1.3 exports keys of any length once it is set up");
                let (incoming, joins) = (held.incoming, held.path.joins());
                EndpointEvent::Ready { id, peer, keying, incoming, joins }
            }
            Notice::Over(error) => match core::mem::replace(&mut held.stage, Stage::Over) {
                Stage::Over => return,
                Stage::Ready => EndpointEvent::Closed { id, reason: down_reason(&error) },
                Stage::Handshake => {
                    let reason = match (refused_key, held.expected) {
                        (Some(_), Some(expected)) => Refusal::WrongKey { expected },
                        (Some(_), None) => Refusal::UntrustedKey,
                        (None, None) if is_withdrawn(&error) => Refusal::Withdrawn,
                        (None, _) => refusal(&error, ours, &alpn),
                    };
                    let fingerprint = refused_key.or(peer);
                    EndpointEvent::Refused {
                        id: Some(id),
                        remote: held.remote,
                        fingerprint,
                        reason,
                    }
                }
            },
        };
        self.report(event);
    }

    /// A path that its owner closed.
    pub(super) fn close_unnoticed(&mut self, id: ConnectionId) {
        let Some(held) = self.connections.get_mut(&id) else { return };
        if !held.path.is_over() {
            return;
        }
        let event = match core::mem::replace(&mut held.stage, Stage::Over) {
            Stage::Over => return,
            Stage::Ready => EndpointEvent::Closed { id, reason: DownReason::ClosedHere },
            Stage::Handshake => EndpointEvent::Refused {
                id: Some(id),
                remote: held.remote,
                fingerprint: None,
                reason: refusal(
                    &ConnectionError::LocallyClosed,
                    self.config.identity.fingerprint(),
                    &[],
                ),
            },
        };
        self.report(event);
    }
}
