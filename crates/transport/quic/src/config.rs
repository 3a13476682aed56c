//! The configuration of an endpoint and its paths.

use crate::feed::{Feed, FeedFactory};
use crate::{Fingerprint, OwnKey};
use noq_proto::{AckFrequencyConfig, IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};
use skyhaul_congestion::ControllerConfig;
use skyhaul_transport::ProtocolVersions;
use skyhaul_units::{ByteCount, Duration, Rate};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How to make an [`crate::QuicEndpoint`].
#[derive(Debug, Clone)]
pub struct EndpointConfig {
    /// This node's key.
    pub identity: OwnKey,
    /// Keys of the nodes that may connect.
    pub trusted: BTreeSet<Fingerprint>,
    /// Whether incoming connections are accepted.
    pub listen: bool,
    /// For every path.
    pub path: PathConfig,
    /// Makes the state machine's random choices repeat. Only for tests: peers may guess them.
    pub rng_seed: Option<[u8; 32]>,
    /// What [`skyhaul_units::Instant::ZERO`] is on the standard library's clock. Any fixed value
    /// serves.
    pub epoch: std::time::Instant,
    /// The protocol versions that it speaks; [`ProtocolVersions::OURS`].
    pub versions: ProtocolVersions,
}

impl EndpointConfig {
    /// An endpoint that opens connections and accepts none, with defaults for everything else.
    pub fn new(identity: impl Into<OwnKey>, path: PathConfig, epoch: std::time::Instant) -> Self {
        Self {
            identity: identity.into(),
            trusted: BTreeSet::new(),
            listen: false,
            path,
            rng_seed: None,
            epoch,
            versions: ProtocolVersions::OURS,
        }
    }
}

/// How to run a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PathConfig {
    /// How fast this end sends.
    pub controller: ControllerConfig,
    /// UDP payload of a full datagram, 1200 to 65527 bytes. It should fit the line: where it does
    /// not, or no longer, that is found, and smaller ones are used, down to 1200. Default 1472:
    /// IPv4 packets of 1500 bytes; 1452 for IPv6.
    pub udp_payload: u16,
    /// A path silent for this long is given up. Default 60 s.
    pub idle_timeout: Duration,
    /// After this long without sending, a sign of life is sent. Default 5 s.
    pub keep_alive: Duration,
    /// Received datagrams held until polled. Default 16 MiB: 1.4 s at 93 Mbit/s.
    pub receive_buffer: ByteCount,
    /// Control stream bytes held until sent and acknowledged, and until polled. Default 256 KiB.
    pub control_buffer: ByteCount,
    /// How often each datagram of the set-up is sent. Default three times: at 10 % loss and 660 ms
    /// round trip that halves the slowest per cent's time.
    pub setup_copies: u8,
}

impl Default for PathConfig {
    /// A path over a line of which nothing is known.
    fn default() -> Self {
        Self { controller: ControllerConfig::Adaptive, ..Self::over(Rate::from_mbps(100)) }
    }
}

impl PathConfig {
    /// A path over a line of `rate`, counted in IP packets, everything else at its default.
    pub const fn over(rate: Rate) -> Self {
        Self {
            controller: ControllerConfig::declared(rate),
            udp_payload: 1472,
            idle_timeout: Duration::from_secs(60),
            keep_alive: Duration::from_secs(5),
            receive_buffer: ByteCount::mib(16),
            control_buffer: ByteCount::kib(256),
            setup_copies: 3,
        }
    }

    /// The search for the size that the line carries (RFC 8899): from the configured one down to
    /// the smallest when only large datagrams are lost, then at once upwards, and again from time
    /// to time.
    ///
    /// The first probe is for the configured size, the second for the one half-way, and there is no
    /// third. At high loss chance alone looks like a smaller line now and then: a single probe
    /// mends that. A search by halving goes through four sizes, at each of which the datagrams of
    /// the size before are lost while larger ones arrive, which looks the same and begins it anew.
    fn search(&self) -> MtuDiscoveryConfig {
        let mut search = MtuDiscoveryConfig::default();
        search
            .upper_bound(self.udp_payload)
            .minimum_change(self.udp_payload.saturating_sub(PAYLOAD_MIN) / 2 + 1)
            .interval(SEARCH_AGAIN.to_std())
            .black_hole_cooldown(SEARCH_AFTER.to_std());
        search
    }

    /// How many datagrams the far end may receive before it acknowledges: a batch, or what comes in
    /// 20 ms. Waiting longer would let its acknowledgement timer (25 ms) decide, and blur the
    /// round-trip time.
    pub(crate) fn ack_threshold(&self) -> u32 {
        let Some(rate) = self.controller.declared_rate() else { return ACK_EVERY };
        let datagrams = (rate * Duration::from_millis(20)).as_u64() / u64::from(self.udp_payload);
        u32::try_from(datagrams.clamp(1, ACK_EVERY.into())).unwrap_or(ACK_EVERY)
    }

    /// For one connection, whose news go to `feed`.
    pub(crate) fn transport(&self, feed: &Feed) -> Arc<TransportConfig> {
        let mut acks = AckFrequencyConfig::default();
        // Reordering threshold 0: gaps are normal here and must not bring an acknowledgement each.
        acks.ack_eliciting_threshold(self.ack_threshold().into()).reordering_threshold(0u32.into());
        let control = VarInt::try_from(self.control_buffer.as_u64()).unwrap_or(VarInt::MAX);
        let idle = IdleTimeout::try_from(self.idle_timeout.to_std()).ok();
        let mut config = TransportConfig::default();
        config
            .max_concurrent_bidi_streams(0u32.into())
            .max_concurrent_uni_streams(1u32.into())
            .max_idle_timeout(idle)
            .keep_alive_interval(Some(self.keep_alive.to_std()))
            .stream_receive_window(control)
            .receive_window(control)
            .send_window(self.control_buffer.as_u64())
            // Loss is detected by time: long lines reorder by jitter, and packets are counted by
            // the thousand.
            .packet_threshold(10_000)
            .time_threshold(1.25)
            .initial_mtu(self.udp_payload)
            .min_mtu(PAYLOAD_MIN)
            .mtu_discovery_config(Some(self.search()))
            .ack_frequency_config(Some(acks))
            .datagram_receive_buffer_size(Some(self.receive_buffer.as_usize()))
            .datagram_send_buffer_size(usize::from(u16::MAX) * 2)
            .congestion_controller_factory(Arc::new(FeedFactory(feed.clone())))
            .enable_segmentation_offload(true);
        Arc::new(config)
    }
}

/// Datagrams that may come before they are acknowledged: enough to keep acknowledgements rare, few
/// enough for the 64 ranges of an acknowledgement to span many of them at 15 % loss.
const ACK_EVERY: u32 = 9;

/// Every line carries datagrams of this size whole (RFC 9000 14).
pub(crate) const PAYLOAD_MIN: u16 = 1_200;

/// A larger size is tried again after this: a detour ends. RFC 8899 5.1.1 proposes ten minutes; ten
/// probes a minute cost nothing.
const SEARCH_AGAIN: Duration = Duration::from_secs(60);

/// The search begins so soon after large datagrams alone were lost: where it was chance, it is back
/// at the full size a few round trips later.
const SEARCH_AFTER: Duration = Duration::from_millis(100);
