//! TLS 1.3 between two nodes: bare public keys in both directions (RFC 7250), accepted by
//! fingerprint alone.

use crate::{Fingerprint, OwnKey};
use rustls::client::Resumption;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{
    CryptoProvider, WebPkiSupportedAlgorithms, aws_lc_rs, verify_tls13_signature_with_raw_key,
};
use rustls::pki_types::{CertificateDer, ServerName, SubjectPublicKeyInfoDer, UnixTime};
use rustls::server::NoServerSessionStorage;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    CertificateError, ClientConfig, DigitallySignedStruct, DistinguishedName, Error,
    PeerMisbehaved, ServerConfig, SignatureScheme,
};
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard};

/// The keys that are accepted from connecting nodes.
#[derive(Debug, Default)]
pub struct Trust(Mutex<BTreeSet<Fingerprint>>);

impl Trust {
    /// Accepts these keys from now on, and no others.
    pub fn accept(&self, accepted: BTreeSet<Fingerprint>) {
        *held(&self.0) = accepted;
    }

    fn contains(&self, key: &Fingerprint) -> bool {
        held(&self.0).contains(key)
    }
}

/// The key that a handshake refused last: the TLS library's error does not name it.
#[derive(Debug, Default)]
pub struct RefusedKey(Mutex<Option<Fingerprint>>);

impl RefusedKey {
    /// The key that was refused since the last call. Where several connections share this, it
    /// belongs to the one just driven.
    pub fn take(&self) -> Option<Fingerprint> {
        held(&self.0).take()
    }
}

/// The configuration for connecting to the node whose key is `expected`, with the protocols `alpn`,
/// of which the first one is preferred. A refused key is noted in `refused`.
pub fn client_config(
    own: &OwnKey,
    expected: Fingerprint,
    refused: &Arc<RefusedKey>,
    alpn: &[Vec<u8>],
) -> ClientConfig {
    let mut config = ClientConfig::builder_with_details(provider(), Arc::new(NoClock))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3 suites")
        .dangerous()
        .with_custom_certificate_verifier(verifier(Accepted::Only(expected), refused))
        .with_client_cert_resolver(Arc::new(own.clone()));
    config.alpn_protocols = alpn.to_vec();
    config.resumption = Resumption::disabled();
    config.enable_early_data = false;
    config.enable_sni = false;
    config
}

/// The configuration for accepting nodes whose keys are in `trust`, with the protocols `alpn`, of
/// which the first one is preferred. A refused key is noted in `refused`.
pub fn server_config(
    own: &OwnKey,
    trust: &Arc<Trust>,
    refused: &Arc<RefusedKey>,
    alpn: &[Vec<u8>],
) -> ServerConfig {
    let mut config = ServerConfig::builder_with_details(provider(), Arc::new(NoClock))
        .with_protocol_versions(&[&rustls::version::TLS13])
        .expect("the provider has TLS 1.3 suites")
        .with_client_cert_verifier(verifier(Accepted::Listed(Arc::clone(trust)), refused))
        .with_cert_resolver(Arc::new(own.clone()));
    config.alpn_protocols = alpn.to_vec();
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    config.max_early_data_size = 0;
    config
}

/// The fingerprint of the key that a peer presented: under RFC 7250, the bare key takes the place
/// of the certificate.
pub fn presented_key(chain: &[CertificateDer<'_>]) -> Option<Fingerprint> {
    chain.first().map(|key| Fingerprint::of_public_key(key))
}

/// The keys that a verifier accepts.
#[derive(Debug)]
enum Accepted {
    Only(Fingerprint),
    Listed(Arc<Trust>),
}

#[derive(Debug)]
struct PeerVerifier {
    accepted: Accepted,
    refused: Arc<RefusedKey>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl PeerVerifier {
    fn check(&self, key: &CertificateDer<'_>, others: &[CertificateDer<'_>]) -> Result<(), Error> {
        let found = Fingerprint::of_public_key(key);
        let known = match &self.accepted {
            Accepted::Only(expected) => found == *expected,
            Accepted::Listed(trust) => trust.contains(&found),
        };
        if known && others.is_empty() {
            return Ok(());
        }
        *held(&self.refused.0) = Some(found);
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

/// TLS 1.2 is not offered, so its signatures cannot occur.
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

/// One key exchange and AES-128-GCM first: the hello fits one datagram, and the cipher is the
/// fastest.
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

fn verifier(accepted: Accepted, refused: &Arc<RefusedKey>) -> Arc<PeerVerifier> {
    let algorithms = aws_lc_rs::default_provider().signature_verification_algorithms;
    Arc::new(PeerVerifier { accepted, refused: Arc::clone(refused), algorithms })
}

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("no holder of this lock panics")
}
