//! What the links did, as programs and people read it.

use crate::place::LinkEnd;
use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize, Serializer};
use skyhaul_link::{LinkConfig, LinkCounters};
use skyhaul_units::Duration;
use std::net::{Ipv4Addr, Ipv6Addr};

/// A direction of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EmulatedDirection {
    /// From `a` to `b`.
    Up,
    /// From `b` to `a`.
    Down,
}

/// All links at one moment.
#[derive(Debug, Clone, Serialize)]
pub struct Status {
    /// Seconds since the links began.
    pub running_s: f64,
    /// The links.
    pub links: Vec<LinkStatus>,
    /// Addresses between which flows are spread over several of them; left out where none are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spread: Option<SpreadStatus>,
}

/// Addresses that are on no link: flows between them are spread over several by their addresses and
/// ports.
#[derive(Debug, Clone, Serialize)]
pub struct SpreadStatus {
    /// Names of the links.
    pub links: Vec<String>,
    /// Address at `a`.
    pub a: Ipv4Addr,
    /// Address at `b`.
    pub b: Ipv4Addr,
    /// IPv6 address at `a`.
    pub a6: Ipv6Addr,
    /// IPv6 address at `b`.
    pub b6: Ipv6Addr,
}

impl SpreadStatus {
    /// Over these links; `None` over none.
    pub fn over(links: &[String]) -> Option<Self> {
        let (a, b) = (LinkEnd::A, LinkEnd::B);
        (!links.is_empty()).then(|| Self {
            links: links.to_vec(),
            a: a.spread_ipv4(),
            b: b.spread_ipv4(),
            a6: a.spread_ipv6(),
            b6: b.spread_ipv6(),
        })
    }
}

/// One link.
#[derive(Debug, Clone, Serialize)]
pub struct LinkStatus {
    /// Its name, and that of its devices.
    pub name: String,
    /// The largest IP packet it takes.
    pub mtu: u16,
    /// Address at `a`.
    pub a: Ipv4Addr,
    /// Address at `b`.
    pub b: Ipv4Addr,
    /// IPv6 address at `a`.
    pub a6: Ipv6Addr,
    /// IPv6 address at `b`.
    pub b6: Ipv6Addr,
    /// From `a` to `b`.
    pub up: DirectionStatus,
    /// From `b` to `a`.
    pub down: DirectionStatus,
}

/// One direction of one link.
#[derive(Debug, Clone, Serialize)]
pub struct DirectionStatus {
    /// As it was last set.
    pub config: LinkConfig,
    /// What became of the packets.
    #[serde(flatten, serialize_with = "as_numbers")]
    pub counters: LinkCounters,
    /// Packets that wait, are being sent, or are under way.
    pub in_flight: u64,
    /// How long packets waited for the line: quantiles, and how many waited how long.
    pub queue_delay_histogram: QueueDelays,
    /// What the device gave that is no packet, or cannot be cut into packets.
    pub malformed: u64,
    /// Packets that the device at the far end refused.
    pub refused: u64,
    /// Packets that the device dropped before they came to the link; left out where the system does
    /// not tell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_dropped: Option<u64>,
}

/// How long packets waited for the line.
#[derive(Debug, Clone, Serialize)]
pub struct QueueDelays {
    /// Half waited no longer, seconds.
    pub p50_s: f64,
    /// Nine of ten waited no longer, seconds.
    pub p90_s: f64,
    /// 99 of a hundred waited no longer, seconds.
    pub p99_s: f64,
    /// The longest, seconds.
    pub max_s: f64,
    /// Steps of a factor of two: upper end in seconds, and packets from the step before up to it.
    pub steps: Vec<(f64, u64)>,
}

/// Counters as programs read them: sizes in bytes and times in seconds, not in the words of a file.
fn as_numbers<S: Serializer>(counters: &LinkCounters, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Numbers {
        offered: u64,
        forwarded: u64,
        lost: u64,
        policed: u64,
        oversized: u64,
        queue_dropped: u64,
        outage_dropped: u64,
        overflow_dropped: u64,
        reordered: u64,
        offered_bytes: u64,
        forwarded_bytes: u64,
        queue_delay_mean_s: f64,
        queue_delay_max_s: f64,
    }
    let numbers = Numbers {
        offered: counters.offered,
        forwarded: counters.forwarded,
        lost: counters.lost,
        policed: counters.policed,
        oversized: counters.oversized,
        queue_dropped: counters.queue_dropped,
        outage_dropped: counters.outage_dropped,
        overflow_dropped: counters.overflow_dropped,
        reordered: counters.reordered,
        offered_bytes: counters.offered_bytes.as_u64(),
        forwarded_bytes: counters.forwarded_bytes.as_u64(),
        queue_delay_mean_s: counters.queue_delay.mean().as_secs_f64(),
        queue_delay_max_s: counters.queue_delay.max.as_secs_f64(),
    };
    numbers.serialize(serializer)
}

/// Times that packets waited, to a hundredth.
#[derive(Debug)]
pub(crate) struct Waits(Histogram<u64>);

impl Waits {
    pub fn new() -> Self {
        Self(
            Histogram::new_with_bounds(1, LONGEST_US, 2)
                .expect("the bounds are constants that fit"),
        )
    }

    pub fn add(&mut self, waited: Duration) {
        self.0.saturating_record(waited.as_micros());
    }

    pub fn quantiles(&self) -> QueueDelays {
        let seconds = |micros: u64| micros as f64 / 1e6;
        let at = |quantile| seconds(self.0.value_at_quantile(quantile));
        let steps = self.0.iter_log(1, 2.0).filter(|step| step.count_since_last_iteration() > 0);
        QueueDelays {
            p50_s: at(0.5),
            p90_s: at(0.9),
            p99_s: at(0.99),
            max_s: seconds(self.0.max()),
            steps: steps
                .map(|step| {
                    (seconds(step.value_iterated_to() + 1), step.count_since_last_iteration())
                })
                .collect(),
        }
    }
}

/// An hour, in microseconds: longer than any queue that is worth emulating.
const LONGEST_US: u64 = 3_600_000_000;
