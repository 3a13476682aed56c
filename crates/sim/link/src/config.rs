//! What a link is like: the facts a scenario or an operator states.

use crate::{Loss, Policer};
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration, Probability, Rate};

/// One direction of one link. The default is a perfect line: no limit, no delay, no loss.
///
/// Times within it (`outages`, `changes`) count from the link's start, or from its last
/// [`reconfigure`](crate::Link::reconfigure).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkConfig {
    /// Rate of the line, counted in IP packets; none is without limit, zero stands still.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// Drops at the entrance what exceeds a rate: `policer = { rate = "93 Mbit/s", burst = "128
    /// KiB" }`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policer: Option<Policer>,
    /// Packets larger than this are dropped without a message: an MTU black hole.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub largest: Option<ByteCount>,
    /// Most bytes that may wait for the line, the packet being sent not counted. What comes on top
    /// is dropped.
    pub queue: ByteCount,
    /// From the end of a packet's transmission to its arrival. One way, not round trip.
    pub one_way_delay: Duration,
    /// The delay of each packet varies uniformly by up to this much to either side, but is never
    /// below zero. By itself it does not change the order.
    pub jitter: Duration,
    /// Packets that fall behind the others.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering: Option<Reordering>,
    /// Loss on the line, after the queue.
    pub loss: Loss,
    /// Times in which nothing gets through.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub outages: Vec<Outage>,
    /// What becomes different, and when.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
}

/// Packets that fall behind the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reordering {
    /// Probability that a packet falls behind.
    pub probability: Probability,
    /// How much longer it then takes. Packets sent within this time overtake it.
    pub extra_delay: Duration,
}

/// A time in which nothing gets through. Packets whose transmission ends in it are dropped; those
/// already under way arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Outage {
    /// From the link's start to the first instant without service.
    pub start: Duration,
    /// How long it lasts; packets get through again at `start + length`.
    pub length: Duration,
}

/// A change of the line at one instant. What is not named stays as it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Change {
    /// From the link's start to the change.
    pub at: Duration,
    /// The new rate. The packet being sent goes on at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The new delay, for packets whose transmission ends later. It does not change the order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_delay: Option<Duration>,
    /// The new loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loss: Option<Loss>,
}

impl Default for LinkConfig {
    fn default() -> Self {
        Self {
            rate: None,
            policer: None,
            largest: None,
            queue: DEFAULT_QUEUE,
            one_way_delay: Duration::ZERO,
            jitter: Duration::ZERO,
            reordering: None,
            loss: Loss::None,
            outages: Vec::new(),
            changes: Vec::new(),
        }
    }
}

impl LinkConfig {
    /// A line of a rate and a delay, else perfect, with a queue of as much as is under way on it
    /// (rate × delay), at least the default of 1 MiB.
    pub fn line(rate: Rate, one_way_delay: Duration) -> Self {
        let queue = (rate * one_way_delay).max(DEFAULT_QUEUE);
        Self { rate: Some(rate), one_way_delay, queue, ..Self::default() }
    }
}

/// 90 ms at 93 Mbit/s: about one round trip of a geostationary hop, what routers on such lines are
/// given.
const DEFAULT_QUEUE: ByteCount = ByteCount::mib(1);

#[cfg(test)]
mod tests {
    use super::*;

    const FULL: &str = r#"
        rate = "93 Mbit/s"
        policer = { rate = "50 Mbit/s", burst = "128 KiB" }
        largest = "1400 B"
        queue = "2 MiB"
        one_way_delay = "80 ms"
        jitter = "2 ms"
        reordering = { probability = "0.5 %", extra_delay = "5 ms" }
        loss = { kind = "bursts", mean = "1 %", mean_burst = 8 }
        outages = [{ start = "10 s", length = "5 s" }]
        changes = [{ at = "20 s", rate = "50 Mbit/s", loss = { kind = "none" } }]
    "#;

    #[test]
    fn text_form_is_read_and_written_back() {
        let config: LinkConfig = toml::from_str(FULL).unwrap();
        assert_eq!(config.rate, Some(Rate::from_mbps(93)));
        let policed = Policer { rate: Rate::from_mbps(50), burst: ByteCount::kib(128) };
        assert_eq!((config.policer, config.largest), (Some(policed), Some(ByteCount::new(1_400))));
        assert_eq!(config.outages[0].length, Duration::from_secs(5));
        assert_eq!(config.changes[0].loss, Some(Loss::None));
        let again: LinkConfig = toml::from_str(&toml::to_string(&config).unwrap()).unwrap();
        assert_eq!(again, config);
        assert_eq!(toml::from_str::<LinkConfig>("").unwrap(), LinkConfig::default());
    }

    #[test]
    fn unknown_keys_wrong_units_and_impossible_values_are_refused() {
        let cases = [
            ("delay = \"80 ms\"", "unknown field `delay`"),
            ("rate = \"93 ms\"", "unit"),
            ("rate = 93", "string"),
            ("loss = { kind = \"none\", p = \"1 %\" }", "unknown field `p`"),
            (
                "loss = { kind = \"independent\", probability = \"1 %\", burst = 2 }",
                "unknown field `burst`",
            ),
            ("loss = { kind = \"sometimes\" }", "unknown variant `sometimes`"),
            (
                "loss = { kind = \"bursts\", mean = \"60 %\", mean_burst = 1 }",
                "lengthen the bursts",
            ),
            ("policer = { rate = \"1 Mbit/s\" }", "missing field `burst`"),
            ("outages = [{ start = \"1 s\", end = \"2 s\" }]", "unknown field `end`"),
        ];
        for (text, reason) in cases {
            let error = toml::from_str::<LinkConfig>(text).unwrap_err().to_string();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
