//! The line of a cell and what is done on it: the parameters that the kinds share.

use super::controller::Choice;
use core::num::NonZeroU32;
use serde::Deserialize;
use skyhaul_congestion::Memory;
use skyhaul_link::{
    Change, GilbertElliott, LinkConfig, Loss, LossError, Outage, Policer, Reordering,
};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// A line both ways, what goes wrong on it, and who sends.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Line {
    /// Rate of each direction, counted in IP packets.
    pub rate: Rate,
    /// Round trip of the empty line; each direction takes half of it.
    pub rtt: Duration,
    /// How long a full queue takes to send. Left out: one round trip.
    pub queue: Option<Duration>,
    /// Share of packets lost, in the directions that `lossy` says.
    #[serde(default = "nothing_lost")]
    pub loss: Probability,
    /// Losses come in bursts of this many packets on average. Left out: each packet alone.
    pub mean_burst: Option<NonZeroU32>,
    /// Where packets are lost. Left out: in the direction of the data.
    #[serde(default)]
    pub lossy: Lossy,
    /// The delay of each direction varies by up to this much to either side.
    #[serde(default = "no_time")]
    pub jitter: Duration,
    /// Packets that fall behind, in the direction of the data.
    pub reordering: Option<Reordering>,
    /// Drops what exceeds a rate, in the direction of the data.
    pub policer: Option<Policer>,
    /// What becomes different.
    #[serde(default)]
    pub changes: Vec<LineChange>,
    /// Times in which neither direction works.
    #[serde(default)]
    pub outages: Vec<Outage>,
    /// Who sends; for one flow.
    pub controller: Option<Choice>,
    /// Who sends; for several.
    #[serde(default)]
    pub flows: Vec<FlowOf>,
    /// What the application has to send. Left out: as much as goes.
    pub offered: Option<Rate>,
    /// What was learned of the path when it was used before.
    pub remembered: Option<Remembered>,
    /// How the far end acknowledges.
    #[serde(default)]
    pub acknowledging: Ends,
    /// What of each 1,500-byte packet the application gets. Left out: 1,430, a full symbol's; a
    /// kernel's TCP has 1,448.
    #[serde(default = "payload")]
    pub payload: ByteCount,
    /// How long the line is used.
    #[serde(default = "minute")]
    pub duration: Duration,
    /// What counts as start-up. Left out: 3 s and 6 round trips.
    pub warm_up: Option<Duration>,
}

/// Where packets are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Lossy {
    /// In the direction of the data.
    #[default]
    Data,
    /// In the direction of the acknowledgements.
    Return,
    /// In both, each with the same loss.
    Both,
}

/// How a far end acknowledges, and the near end finds losses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Ends {
    /// As our QUIC paths do.
    #[default]
    Quic,
    /// As a kernel's TCP does.
    Kernel,
}

/// One of several flows over the line.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FlowOf {
    /// Who sends.
    pub controller: Choice,
    /// Its round trip, at least the line's. Left out: the line's.
    pub rtt: Option<Duration>,
    /// When it begins. Left out: at once.
    #[serde(default = "no_time")]
    pub start: Duration,
    /// When it ends. Left out: never.
    pub stop: Option<Duration>,
    /// How its far end acknowledges.
    #[serde(default)]
    pub acknowledging: Ends,
}

/// What becomes different, and when. What is not named stays as it was.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct LineChange {
    /// When, from the start.
    pub at: Duration,
    /// The new rate, both ways.
    pub rate: Option<Rate>,
    /// The new round trip.
    pub rtt: Option<Duration>,
    /// The new loss, in the directions that are lossy.
    pub loss: Option<Probability>,
}

/// What was learned of the path when it was used before.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Remembered {
    /// The rate it carried then.
    pub rate: Rate,
    /// Its round trip then.
    pub rtt: Duration,
}

impl From<Remembered> for Memory {
    fn from(remembered: Remembered) -> Self {
        Self { rate: remembered.rate, rtt: remembered.rtt }
    }
}

impl Line {
    /// The direction of the data.
    pub fn data(&self) -> Result<LinkConfig, LossError> {
        let direction = self.direction(Lossy::Data)?;
        Ok(LinkConfig { reordering: self.reordering, policer: self.policer, ..direction })
    }

    /// The direction of the acknowledgements.
    pub fn returns(&self) -> Result<LinkConfig, LossError> {
        self.direction(Lossy::Return)
    }

    /// The direction `way`; it loses packets where the line is lossy there or both ways.
    fn direction(&self, way: Lossy) -> Result<LinkConfig, LossError> {
        let is_lossy = [way, Lossy::Both].contains(&self.lossy);
        let loss = |loss| if is_lossy { self.loss_of(loss) } else { Ok(Loss::None) };
        let change = |change: &LineChange| {
            let loss = change.loss.map(loss).transpose()?;
            let one_way_delay = change.rtt.map(|rtt| rtt / 2);
            Ok(Change { at: change.at, rate: change.rate, one_way_delay, loss })
        };
        Ok(LinkConfig {
            rate: Some(self.rate),
            queue: (self.rate * self.queue.unwrap_or(self.rtt)).max(PACKET),
            one_way_delay: self.rtt / 2,
            jitter: self.jitter,
            loss: loss(self.loss)?,
            outages: self.outages.clone(),
            changes: self.changes.iter().map(change).collect::<Result<_, _>>()?,
            ..LinkConfig::default()
        })
    }

    fn loss_of(&self, mean: Probability) -> Result<Loss, LossError> {
        match self.mean_burst {
            _ if mean == Probability::ZERO => Ok(Loss::None),
            None => Ok(Loss::Independent(mean)),
            Some(burst) => GilbertElliott::with_bursts(mean, burst).map(Loss::GilbertElliott),
        }
    }

    /// What counts as start-up.
    pub fn warm_up(&self) -> Duration {
        self.warm_up.unwrap_or(Duration::from_secs(3) + self.rtt * 6)
    }

    /// The end of the run.
    pub fn end(&self) -> Instant {
        Instant::ZERO + self.duration
    }

    /// Packets that the line could carry in the whole run: what a run costs.
    pub fn packets(&self) -> u64 {
        let fastest =
            self.changes.iter().filter_map(|change| change.rate).fold(self.rate, Ord::max);
        let slowest =
            [self.policer.map(|policer| policer.rate), self.offered].into_iter().flatten();
        (slowest.fold(fastest, Ord::min) * self.duration).as_u64() / PACKET.as_u64()
    }

    /// The most that can arrive between two instants, in IP packets: rate × (1 − loss), less what
    /// is policed or not offered, and nothing in outages.
    pub fn capacity(&self, from: Instant, to: Instant) -> ByteCount {
        let mut edges: Vec<Duration> = self.changes.iter().map(|change| change.at).collect();
        edges.extend(
            self.outages.iter().flat_map(|outage| [outage.start, outage.start + outage.length]),
        );
        let edges = edges
            .into_iter()
            .map(|edge| Instant::ZERO + edge)
            .filter(|edge| (from..to).contains(edge));
        let mut edges: Vec<Instant> = [from, to].into_iter().chain(edges).collect();
        edges.sort_unstable();
        edges.windows(2).map(|part| self.limit(part[0]) * part[1].since(part[0])).sum()
    }

    /// The most that can arrive a second at an instant, in IP packets.
    pub fn limit(&self, at: Instant) -> Rate {
        let since_start = at.since(Instant::ZERO);
        let is_out =
            |outage: &Outage| (outage.start..outage.start + outage.length).contains(&since_start);
        if self.outages.iter().any(is_out) {
            return Rate::ZERO;
        }
        let (mut rate, mut loss) = (self.rate, self.loss);
        let mut changes: Vec<&LineChange> =
            self.changes.iter().filter(|change| change.at <= since_start).collect();
        changes.sort_by_key(|change| change.at);
        for change in changes {
            rate = change.rate.unwrap_or(rate);
            loss = change.loss.unwrap_or(loss);
        }
        let rate = self.policer.map_or(rate, |policer| rate.min(policer.rate));
        let rate = self.offered.map_or(rate, |offered| rate.min(offered));
        let kept = if self.lossy == Lossy::Return { Probability::ONE } else { loss.complement() };
        rate.scaled(kept.as_ppb().into(), Probability::ONE.as_ppb().into())
    }

    /// When the line became another one or came back, and the round trip from then on.
    pub fn turns(&self) -> Vec<(Instant, Duration)> {
        let mut rtt = self.rtt;
        let mut changes: Vec<&LineChange> = self.changes.iter().collect();
        changes.sort_by_key(|change| change.at);
        let mut turns: Vec<(Instant, Duration)> = changes
            .into_iter()
            .map(|change| {
                rtt = change.rtt.unwrap_or(rtt);
                (Instant::ZERO + change.at, rtt)
            })
            .collect();
        let rtt_at = |turns: &[(Instant, Duration)], at| {
            turns.iter().rev().find(|(turn, _)| *turn <= at).map_or(self.rtt, |(_, rtt)| *rtt)
        };
        for outage in &self.outages {
            let back = Instant::ZERO + outage.start + outage.length;
            turns.push((back, rtt_at(&turns, back)));
        }
        turns.sort_unstable();
        turns
    }
}

/// A full IP packet.
pub(super) const PACKET: ByteCount = ByteCount::new(1500);

const fn nothing_lost() -> Probability {
    Probability::ZERO
}

const fn no_time() -> Duration {
    Duration::ZERO
}

const fn payload() -> ByteCount {
    ByteCount::new(1430)
}

const fn minute() -> Duration {
    Duration::from_secs(60)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(text: &str) -> Line {
        toml::from_str(text).unwrap()
    }

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    #[test]
    fn the_limit_follows_changes_outages_and_loss() {
        let line = line(
            r#"
            rate = "100 Mbit/s"
            rtt = "160 ms"
            loss = "10 %"
            changes = [{ at = "30 s", rate = "50 Mbit/s" }, { at = "20 s", rtt = "240 ms", loss = "0 %" }]
            outages = [{ start = "10 s", length = "5 s" }]
            "#,
        );
        assert_eq!(line.limit(at(0)), Rate::from_mbps(90));
        assert_eq!(line.limit(at(12)), Rate::ZERO);
        assert_eq!(line.limit(at(20)), Rate::from_mbps(100));
        assert_eq!(line.limit(at(40)), Rate::from_mbps(50));
        // 10 s of 90, 5 s of nothing, 5 s of 90, 10 s of 100, 10 s of 50 Mbit/s.
        assert_eq!(
            line.capacity(at(0), at(40)),
            ByteCount::new((15 * 90 + 10 * 100 + 10 * 50) * 125_000)
        );
        let (short, long) = (Duration::from_millis(160), Duration::from_millis(240));
        assert_eq!(line.turns(), [(at(15), short), (at(20), long), (at(30), long)]);
    }

    #[test]
    fn loss_is_where_it_is_said_to_be() {
        let of = |lossy: &str| {
            let line =
                line(&format!("rate = \"1 Mbit/s\"\nrtt = \"10 ms\"\nloss = \"1 %\"\n{lossy}"));
            let is_lossy = |link: LinkConfig| link.loss != Loss::None;
            (
                is_lossy(line.data().unwrap()),
                is_lossy(line.returns().unwrap()),
                line.limit(at(0)).as_bps(),
            )
        };
        assert_eq!(of(""), (true, false, 990_000));
        assert_eq!(of("lossy = \"both\"\nmean_burst = 8"), (true, true, 990_000));
        assert_eq!(of("lossy = \"return\""), (false, true, 1_000_000));
    }
}
