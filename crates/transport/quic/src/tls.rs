//! The nodes' keys and TLS 1.3 in the forms that the QUIC state machine takes.

use crate::{Fingerprint, Identity, OwnKey};
use aws_lc_rs::hmac;
use noq_proto::crypto::rustls::{HandshakeData, QuicClientConfig, QuicServerConfig};
use rustls::pki_types::CertificateDer;
use skyhaul_identity::{RefusedKey, Trust, client_config, presented_key, server_config};
use std::sync::Arc;

/// For calling the node whose key is `expected`.
pub(crate) fn client(
    own: &OwnKey,
    expected: Fingerprint,
    refused: &Arc<RefusedKey>,
    alpn: &[Vec<u8>],
) -> QuicClientConfig {
    let config = client_config(own, expected, refused, alpn);
    QuicClientConfig::try_from(config).expect("the provider has the suite of Initial packets")
}

/// For being called by nodes whose keys are trusted.
pub(crate) fn server(
    own: &OwnKey,
    trust: &Arc<Trust>,
    refused: &Arc<RefusedKey>,
    alpn: &[Vec<u8>],
) -> QuicServerConfig {
    let config = server_config(own, trust, refused, alpn);
    QuicServerConfig::try_from(config).expect("the provider has the suite of Initial packets")
}

/// The key the far end has proven, once the handshake has got so far.
pub(crate) fn peer_key(conn: &noq_proto::Connection) -> Option<Fingerprint> {
    let identity = conn.crypto_session().peer_identity()?;
    let chain = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    presented_key(&chain)
}

/// The ALPN name that both ends have agreed on, once the handshake has got so far.
pub(crate) fn agreed(conn: &noq_proto::Connection) -> Option<Vec<u8>> {
    let data = conn.crypto_session().handshake_data()?;
    data.downcast::<HandshakeData>().ok()?.protocol
}

/// Made from the node's key, so that a node that was started anew can tell the others that it knows
/// their connections no more (RFC 9000 10.3), and they needn't wait for the idle time-out.
pub(crate) fn reset_key(identity: &Identity) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &identity.derive_secret(b"skyhaul stateless reset"))
}
