//! Makes paths: this node's key, the keys that it trusts, and a bound on setups at a time.

use crate::TcpPath;
use crate::channel::Channel;
use crate::config::TlsEndpointConfig;
use crate::terms::Terms;
use skyhaul_identity::{Fingerprint, Refusal, Trust};
use skyhaul_sessions::admission::CALLS_MAX;
use skyhaul_units::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;

/// What all paths over TCP of one node share. The owner of each path moves its bytes.
#[derive(Debug)]
pub struct TlsEndpoint {
    config: TlsEndpointConfig,
    terms: Terms,
    /// One more reference for each incoming connection that is being set up.
    setups: Arc<()>,
}

impl TlsEndpoint {
    /// An endpoint without paths.
    pub fn new(config: TlsEndpointConfig) -> Self {
        let trust = Arc::new(Trust::default());
        trust.accept(config.trusted.clone());
        let terms = Terms { identity: config.identity.clone(), trust, versions: config.versions };
        Self { config, terms, setups: Arc::default() }
    }

    /// Changes which keys are trusted. Paths that are up stay.
    pub fn set_trusted(&mut self, trusted: BTreeSet<Fingerprint>) {
        self.terms.trust.accept(trusted);
    }

    /// The near end of a stream to a node that must have the key `expected`.
    ///
    /// # Errors
    /// The system gives no random numbers.
    pub fn connect(&mut self, now: Instant, expected: Fingerprint) -> Result<TcpPath, Refusal> {
        let channel = Channel::call(&self.terms, expected)
            .map_err(|error| Refusal::Failed(error.to_string()))?;
        Ok(TcpPath::new(now, self.config.path, channel, self.terms.of_path(Some(expected))))
    }

    /// The near end of an incoming stream.
    ///
    /// # Errors
    /// [`Refusal::Busy`] where [`CALLS_MAX`] calls are being set up: close the stream.
    pub fn accept(&mut self, now: Instant) -> Result<TcpPath, Refusal> {
        if Arc::strong_count(&self.setups) > CALLS_MAX {
            return Err(Refusal::Busy);
        }
        let channel = Channel::answer(self.terms.clone());
        let mut path = TcpPath::new(now, self.config.path, channel, self.terms.of_path(None));
        path.lifecycle_mut().occupy(Arc::clone(&self.setups));
        Ok(path)
    }

    /// This node's key.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.terms.identity.fingerprint()
    }
}
