//! The key that a node uses now. A switch changes it for every connection that begins later.

use crate::{Fingerprint, Identity};
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The key of all endpoints of a node. A clone is the same key: what one switches, all use.
#[derive(Debug, Clone)]
pub struct OwnKey(Arc<Mutex<Identity>>);

impl OwnKey {
    /// The key that the next connection uses.
    pub fn current(&self) -> Identity {
        self.held().clone()
    }

    /// Its fingerprint.
    pub fn fingerprint(&self) -> Fingerprint {
        self.held().fingerprint()
    }

    /// Connections that begin from now on use `next`; those that are up go on.
    pub fn switch(&self, next: Identity) {
        *self.held() = next;
    }

    fn held(&self) -> MutexGuard<'_, Identity> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl From<Identity> for OwnKey {
    fn from(identity: Identity) -> Self {
        Self(Arc::new(Mutex::new(identity)))
    }
}

impl ResolvesServerCert for OwnKey {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.held().certified())
    }
    fn only_raw_public_keys(&self) -> bool {
        true
    }
}

impl ResolvesClientCert for OwnKey {
    fn resolve(
        &self,
        _root_hint_subjects: &[&[u8]],
        _schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        Some(self.held().certified())
    }
    fn only_raw_public_keys(&self) -> bool {
        true
    }
    fn has_certs(&self) -> bool {
        true
    }
}
