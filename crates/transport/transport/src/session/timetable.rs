//! The capacity of all paths together from now on, by what they carry and what hints forecast. The
//! forecasts of flows are computed from it.

use super::attached::Attached;
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The capacity of all paths together from now on.
#[derive(Debug)]
pub struct Timetable {
    one_way_delay: Duration,
    /// For each change: when, the bytes delivered until then, and the rate from then on.
    steps: Vec<(Instant, ByteCount, Rate)>,
}

impl Timetable {
    pub fn of<'a>(now: Instant, paths: impl Iterator<Item = &'a Attached>) -> Self {
        let serving: Vec<&Attached> = paths.filter(|path| serves(path)).collect();
        let edges = serving.iter().flat_map(|path| path.hints.edges(path.rtt() / 2));
        let mut edges: Vec<Instant> = edges.filter(|at| *at > now).chain([now]).collect();
        edges.sort_unstable();
        edges.dedup();
        let (standbys, at_work): (Vec<&Attached>, _) =
            serving.iter().copied().partition(|path| path.options.standby);
        let total = |of: &[&Attached], at: Instant| {
            Rate::from_bps(of.iter().map(|path| brings(path, at, now).as_bps()).sum())
        };
        let mut steps: Vec<(Instant, ByteCount, Rate)> = Vec::with_capacity(edges.len());
        for at in edges {
            let rate = Some(total(&at_work, at)).filter(|rate| *rate > Rate::ZERO);
            let rate = rate.unwrap_or_else(|| total(&standbys, at));
            let brought = steps.last().map_or(ByteCount::ZERO, |(since, brought, rate)| {
                *brought + *rate * at.since(*since)
            });
            steps.push((at, brought, rate));
        }
        let delays = serving.iter().map(|path| path.rtt() / 2);
        Self { one_way_delay: delays.min().unwrap_or(Duration::ZERO), steps }
    }

    /// When the last of `ahead` bytes arrives; none if no path is known to deliver it.
    pub fn arrival(&self, ahead: ByteCount) -> Option<Instant> {
        let next = self.steps.partition_point(|(_, brought, _)| *brought < ahead).saturating_sub(1);
        let able = self.steps.get(next..)?.iter().find(|(_, _, rate)| *rate > Rate::ZERO);
        able.map(|(since, brought, rate)| {
            let left = ByteCount::new(ahead.as_u64().saturating_sub(brought.as_u64()));
            *since + rate.time_for(left) + self.one_way_delay
        })
    }
}

/// The headers of IPv4, UDP and QUIC around a datagram: those of a symbol are a part of the
/// datagram.
const PACKET_HEADERS: u64 = 62;
/// The usual header of a symbol.
const SYMBOL_HEADER: u64 = 8;

/// The rate at which a path delivers bytes of blocks at an instant to come.
fn brings(path: &Attached, at: Instant, now: Instant) -> Rate {
    if path.hints.is_out(at + path.rtt() / 2, at) {
        return Rate::ZERO;
    }
    let known = path.hints.predicted.unwrap_or(path.estimate.rate);
    let rate = path.hints.rate_foretold(now, at).unwrap_or(known);
    let rate = path.hints.ceiling_at(at).map_or(rate, |most| rate.min(most));
    let payload = path.payload.map_or(0, |payload| payload as u64);
    let arriving = rate.scaled(payload.saturating_sub(SYMBOL_HEADER), payload + PACKET_HEADERS);
    let loss = path.repair.loss().as_f64();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of a rate")]
    let lost = (arriving.as_bps() as f64 * loss) as u64;
    Rate::from_bps(arriving.as_bps().saturating_sub(lost))
}

/// Whether a path carries data, or will when a forecast outage is over.
fn serves(path: &Attached) -> bool {
    path.payload.is_some() && (!path.is_stalled() || path.hints.is_absent())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn a_timetable_leaves_outages_out() {
        let steps = vec![
            (at(0), ByteCount::ZERO, Rate::from_mbps(8)),
            (at(1_000), ByteCount::new(1_000_000), Rate::ZERO),
            (at(4_000), ByteCount::new(1_000_000), Rate::from_mbps(16)),
        ];
        let timetable = Timetable { one_way_delay: Duration::from_millis(50), steps };
        let arrivals = [0, 500_000, 1_000_000, 1_000_002, 3_000_000]
            .map(|ahead| timetable.arrival(ByteCount::new(ahead)));
        assert_eq!(arrivals[..3], [50, 550, 1_050].map(|millis| Some(at(millis))));
        assert_eq!(arrivals[3], Some(at(4_050) + Duration::from_micros(1)));
        assert_eq!(arrivals[4], Some(at(5_050)));
        let never = Timetable { steps: vec![(at(0), ByteCount::ZERO, Rate::ZERO)], ..timetable };
        assert_eq!(never.arrival(ByteCount::new(1)), None);
    }
}
