//! TLS 1.3 between two nodes: bare public keys in both directions (RFC 7250), accepted by fingerprint alone.

use crate::{Fingerprint, Identity};
use ::aws_lc_rs::digest::{Context, SHA256};
use ::aws_lc_rs::hmac;
use noq_proto::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{AlwaysResolvesClientRawPublicKeys, Resumption};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{AlwaysResolvesServerRawPublicKeys, NoServerSessionStorage};
use rustls::{
    CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

/// Whose keys are accepted from callers, and whose was refused last.
#[derive(Debug, Default)]
pub(crate) struct Trust {
    accepted: Mutex<BTreeSet<Fingerprint>>,
    refused: Mutex<Option<Fingerprint>>,
}

impl Trust {
    pub(crate) fn accept(&self, accepted: BTreeSet<Fingerprint>) {
        *held(&self.accepted) = accepted;
    }

    /// The key that was refused since the last call. Handshakes run inside the endpoint's calls, one at a time, so
    /// it belongs to the connection just driven.
    pub(crate) fn take_refused(&self) -> Option<Fingerprint> {
        held(&self.refused).take()
    }
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}

/// Accepts exactly one key, or those that are trusted.
#[derive(Debug)]
struct PeerVerifier {
    expected: Option<Fingerprint>,
    trust: Arc<Trust>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PeerVerifier {
    fn check(&self, key: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
        let found = Fingerprint::of_public_key(key);
        let known = match self.expected {
            Some(expected) => found == expected,
            None => held(&self.trust.accepted).contains(&found),
        };
        if known && others.is_empty() {
            return Ok(());
        }
        *held(&self.trust.refused) = Some(found);
        Err(CertificateError::ApplicationVerificationFailure.into())
    }

    fn signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let spki = SubjectPublicKeyInfoDer::from(key.as_ref());
        verify_tls13_signature_with_raw_key(message, &spki, signed, &self.algorithms)
    }
}

/// TLS 1.2 is not offered, so its signatures cannot come.
fn no_tls12() -> Result<HandshakeSignatureValid, Error> {
    Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
}

impl ServerCertVerifier for PeerVerifier {
    fn verify_server_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _name: &ServerName<'_>,
        _ocsp: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.check(key, others).map(|()| ServerCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, key, signed)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

impl ClientCertVerifier for PeerVerifier {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }
    fn verify_client_cert(
        &self,
        key: &CertificateDer<'_>,
        others: &[CertificateDer<'_>],
        _now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        self.check(key, others).map(|()| ClientCertVerified::assertion())
    }
    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _key: &CertificateDer<'_>,
        _signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        no_tls12()
    }
    fn verify_tls13_signature(
        &self,
        message: &[u8],
        key: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.signature(message, key, signed)
    }
    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        vec![SignatureScheme::ED25519]
    }
    fn requires_raw_public_keys(&self) -> bool {
        true
    }
}

/// Bare keys carry no dates, so the handshake needs no clock.
#[derive(Debug)]
struct NoClock;

impl rustls::time_provider::TimeProvider for NoClock {
    fn current_time(&self) -> Option<UnixTime> {
        Some(UnixTime::since_unix_epoch(core::time::Duration::ZERO))
    }
}

/// One key exchange and AES-128-GCM first: the hello fits one datagram, and the cipher is the fastest.
fn provider() -> Arc<CryptoProvider> {
    Arc::new(CryptoProvider {
        cipher_suites: vec![
            aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256,
            aws_lc_rs::cipher_suite::TLS13_CHACHA20_POLY1305_SHA256,
        ],
        kx_groups: vec![aws_lc_rs::kx_group::X25519],
        ..aws_lc_rs::default_provider()
    })
}

fn verifier(expected: Option<Fingerprint>, trust: &Arc<Trust>) -> Arc<PeerVerifier> {
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    Arc::new(PeerVerifier { expected, trust: Arc::clone(trust), algorithms })
}

/// For calling the node whose key is `expected`.
pub(crate) fn client(
    identity: &Identity,
    expected: Fingerprint,
    trust: &Arc<Trust>,
    alpn: &[u8],
) -> QuicClientConfig {
    let mut config = rustls::ClientConfig::builder_with_details(provider(), Arc::new(NoClock))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3 suites")
        .dangerous()
        .with_custom_certificate_verifier(verifier(Some(expected), trust))
        .with_client_cert_resolver(Arc::new(AlwaysResolvesClientRawPublicKeys::new(identity.certified())));
    config.alpn_protocols = vec![alpn.to_vec()];
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    config.enable_sni = false;
    QuicClientConfig::try_from(config).expect("the provider has the suite of Initial packets")
}

/// For being called by nodes whose keys are trusted.
pub(crate) fn server(identity: &Identity, trust: &Arc<Trust>, alpn: &[u8]) -> QuicServerConfig {
    let mut config = rustls::ServerConfig::builder_with_details(provider(), Arc::new(NoClock))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3 suites")
        .with_client_cert_verifier(verifier(None, trust))
        .with_cert_resolver(Arc::new(AlwaysResolvesServerRawPublicKeys::new(identity.certified())));
    config.alpn_protocols = vec![alpn.to_vec()];
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    QuicServerConfig::try_from(config).expect("the provider has the suite of Initial packets")
}

/// The key the far end has proven, once the handshake has got so far.
pub(crate) fn peer_key(conn: &noq_proto::Connection) -> Option<Fingerprint> {
    let identity = conn.crypto_session().peer_identity()?;
    let chain = identity.downcast::<Vec<CertificateDer<'static>>>().ok()?;
    chain.first().map(|key| Fingerprint::of_public_key(key))
}

/// Made from the node's key, so that a node that was started anew can tell the others that it knows their
/// connections no more (RFC 9000 10.3), and they needn't wait for the idle time-out.
pub(crate) fn reset_key(identity: &Identity) -> hmac::Key {
    let mut secret = Context::new(&SHA256);
    secret.update(b"skyhaul stateless reset");
    secret.update(identity.secret());
    hmac::Key::new(hmac::HMAC_SHA256, secret.finish().as_ref())
}
