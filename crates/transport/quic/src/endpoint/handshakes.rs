//! What connections are set up with: keys, trust, protocol names, transport parameters.

use crate::clock::TokenClock;
use crate::config::EndpointConfig;
use crate::feed::Feed;
use crate::{Fingerprint, tls};
use noq_proto::{ClientConfig, Incoming, ServerConfig, TimeSource, ValidationTokenConfig};
use skyhaul_identity::{RefusedKey, Trust};
use skyhaul_sessions::admission::CALLS_MAX;
use skyhaul_units::Instant;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Makes the state machine's configuration of each connection.
pub(super) struct Handshakes {
    trust: Arc<Trust>,
    refused: Arc<RefusedKey>,
    token_clock: Arc<TokenClock>,
    /// For incoming connections; each gets a copy with its own transport parameters.
    server: Option<ServerConfig>,
}

impl Handshakes {
    pub(super) fn new(config: &EndpointConfig) -> Self {
        let trust = Arc::new(Trust::default());
        trust.accept(config.trusted.clone());
        let mut handshakes =
            Self { trust, refused: Arc::default(), token_clock: Arc::default(), server: None };
        handshakes.server = config.listen.then(|| handshakes.server_config(config));
        handshakes
    }

    /// For the state machine's endpoint; `None` where it accepts no connections.
    pub(super) fn server(&self) -> Option<Arc<ServerConfig>> {
        self.server.clone().map(Arc::new)
    }

    pub(super) fn set_trusted(&self, trusted: BTreeSet<Fingerprint>) {
        self.trust.accept(trusted);
    }

    /// Sets the time by which Retry tokens are judged.
    pub(super) fn set_time(&self, now: Instant) {
        self.token_clock.set(now);
    }

    /// The key that TLS has refused here, once.
    pub(super) fn take_refused(&self) -> Option<Fingerprint> {
        self.refused.take()
    }

    /// For a connection to the node with the key `expected`.
    pub(super) fn client(
        &self,
        config: &EndpointConfig,
        expected: Fingerprint,
        feed: &Feed,
    ) -> ClientConfig {
        let crypto =
            tls::client(&config.identity, expected, &self.refused, &config.versions.names());
        let mut client = ClientConfig::new(Arc::new(crypto));
        client.transport_config(config.path.transport(feed));
        client
    }

    /// For one incoming connection.
    pub(super) fn server_for(
        &self,
        config: &EndpointConfig,
        feed: &Feed,
        other_version: Option<&str>,
    ) -> Option<Arc<ServerConfig>> {
        let mut server = self.server.clone()?;
        server.transport_config(config.path.transport(feed));
        if let Some(alpn) = other_version {
            let alpn = [alpn.as_bytes().to_vec()];
            let crypto = tls::server(&config.identity, &self.trust, &self.refused, &alpn);
            server.crypto = Arc::new(crypto);
        }
        Some(Arc::new(server))
    }

    fn server_config(&self, config: &EndpointConfig) -> ServerConfig {
        let alpn = config.versions.names();
        let crypto = tls::server(&config.identity, &self.trust, &self.refused, &alpn);
        let mut server = ServerConfig::with_crypto(Arc::new(crypto));
        let mut no_tokens = ValidationTokenConfig::default();
        no_tokens.sent(0);
        server
            .validation_token_config(no_tokens)
            .time_source(Arc::clone(&self.token_clock) as Arc<dyn TimeSource>)
            .max_incoming(CALLS_MAX)
            .incoming_buffer_size(INCOMING_BYTES)
            .incoming_buffer_size_total(INCOMING_BYTES * 4);
        server
    }
}

/// The protocol name of an incoming connection that speaks another version. Its handshake goes on
/// as far as it can, because only then can it be told which versions are spoken here (RFC 9001 4.8:
/// an alert says no more than "no common protocol").
pub(super) fn other_version(config: &EndpointConfig, incoming: &Incoming) -> Option<String> {
    let hello = incoming.decrypt()?;
    let offered: Vec<_> = hello.alpns()?.filter_map(Result::ok).collect();
    config.versions.other(offered.iter().map(|name| &name[..]))
}

/// Datagrams of an incoming connection kept before it is accepted, which happens at once.
const INCOMING_BYTES: u64 = 64 * 1024;
