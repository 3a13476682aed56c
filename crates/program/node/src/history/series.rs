//! The series of a look: rates are those since the look before.

use crate::centre::{FrameStage, RecentTimes};
use crate::looks::NodeLook;
use crate::status::{
    CentreStatus, ChannelState, LinePath, LineState, StationStatus, count_deliveries,
};
use skyhaul_history::{HistorySample, HistoryUnit};
use skyhaul_units::Instant;
use std::collections::BTreeMap;

/// What the rates of the next look are counted from.
#[derive(Debug, Default)]
pub struct LookSeries {
    at: Option<Instant>,
    bytes: BTreeMap<String, u64>,
}

/// The samples of one look as they are collected.
struct Collected<'a> {
    before: &'a BTreeMap<String, u64>,
    /// Since the look before; none at the first one.
    seconds: Option<f64>,
    bytes: BTreeMap<String, u64>,
    samples: Vec<HistorySample>,
}

impl LookSeries {
    /// The samples of a look.
    pub fn samples(&mut self, look: &NodeLook) -> Vec<HistorySample> {
        let since = self.at.replace(look.begun);
        let seconds = since.map(|since| look.begun.since(since).as_secs_f64());
        let mut found = Collected {
            before: &self.bytes,
            seconds: seconds.filter(|seconds| *seconds > 0.0),
            bytes: BTreeMap::new(),
            samples: Vec::new(),
        };
        found.node(look);
        if let Some(station) = &look.status.station {
            found.station(station);
        }
        if let Some(centre) = &look.status.centre {
            found.centre(centre);
        }
        let Collected { bytes, samples, .. } = found;
        self.bytes = bytes;
        samples
    }
}

impl Collected<'_> {
    fn level(&mut self, name: impl Into<String>, unit: HistoryUnit, value: f64) {
        self.samples.push(HistorySample::level(name, unit, value));
    }

    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    fn count(&mut self, name: impl Into<String>, unit: HistoryUnit, value: u64) {
        self.level(name, unit, value as f64);
    }

    /// The bits a second of a counter of bytes. One that was set up again counts from zero.
    #[allow(clippy::cast_precision_loss, reason = "a figure for people")]
    fn rate(&mut self, name: String, bytes: u64) {
        let grown = self.before.get(&name).map(|before| bytes.saturating_sub(*before));
        if let Some((grown, seconds)) = grown.zip(self.seconds) {
            self.level(&*name, HistoryUnit::BitRate, grown as f64 * 8.0 / seconds);
        }
        self.bytes.insert(name, bytes);
    }

    fn share(&mut self, name: String, holds: impl FnOnce() -> bool) {
        self.level(name, HistoryUnit::Share, if holds() { 1.0 } else { 0.0 });
    }

    fn node(&mut self, look: &NodeLook) {
        let rates = &look.rates;
        if look.status.station.is_some() {
            self.count("node/all/captured_bps", HistoryUnit::BitRate, rates.captured_bps);
            self.count("node/all/sent_bps", HistoryUnit::BitRate, rates.sent_bps);
        }
        if look.status.centre.is_some() {
            self.count("node/all/received_bps", HistoryUnit::BitRate, rates.received_bps);
        }
        let standing = look.status.unexplained_alarms() as u64;
        self.count("alarms/all/standing", HistoryUnit::Number, standing);
    }

    fn station(&mut self, station: &StationStatus) {
        let spool = &station.spool;
        self.count("spool/all/waiting_bytes", HistoryUnit::Bytes, spool.bytes);
        self.count("spool/all/disk_bytes", HistoryUnit::Bytes, spool.disk_bytes);
        for channel in &station.channels {
            let name = &channel.name;
            self.rate(format!("channel/{name}/captured_bps"), channel.bytes);
            let is_locked = || channel.state == ChannelState::Lock;
            self.share(format!("channel/{name}/locked"), is_locked);
        }
        for one in &station.destinations {
            let (name, backlog) = (&one.name, &one.backlog);
            let waiting = format!("destination/{name}/waiting_bytes");
            self.count(waiting, HistoryUnit::Bytes, backlog.bytes);
            let is_open = || one.line.state == LineState::Open;
            self.share(format!("destination/{name}/line_up"), is_open);
            let spare = one.forecasts.iter().filter_map(|forecast| forecast.spare_s);
            if let Some(least) = spare.min_by(f64::total_cmp) {
                self.level(format!("destination/{name}/spare_s"), HistoryUnit::Seconds, least);
            }
            self.paths(name, &one.line.paths);
        }
    }

    fn centre(&mut self, centre: &CentreStatus) {
        self.count("store/all/disk_bytes", HistoryUnit::Bytes, centre.store.disk_bytes);
        let missing = centre.products.gaps.missing_frames;
        self.count("gaps/all/missing_frames", HistoryUnit::Number, missing);
        let deliveries = count_deliveries(&centre.products.deliveries);
        self.count("deliveries/all/waiting", HistoryUnit::Number, deliveries.waiting);
        self.count("deliveries/all/late", HistoryUnit::Number, deliveries.late);
        self.count("deliveries/all/failed", HistoryUnit::Number, deliveries.failed);
        for peer in &centre.stations {
            self.rate(format!("station/{}/received_bps", peer.name), peer.bytes_delivered);
            self.paths(&peer.name, &peer.paths);
        }
    }

    fn paths(&mut self, node: &str, paths: &[LinePath]) {
        for path in paths {
            let id = path.id(node);
            self.rate(format!("path/{id}/sent_bps"), path.bytes_sent);
            // Before the first round trip there is nothing to say.
            if path.rtt_s > 0.0 {
                self.level(format!("path/{id}/rtt_s"), HistoryUnit::Seconds, path.rtt_s);
                self.level(format!("path/{id}/loss"), HistoryUnit::Share, path.loss);
            }
        }
    }
}

/// Samples of the times of frames, by mission and stage.
pub fn of_frames(
    recent: BTreeMap<String, BTreeMap<FrameStage, RecentTimes>>,
) -> Vec<HistorySample> {
    let mut samples = Vec::new();
    for (mission, stages) in recent {
        for (stage, RecentTimes { sketch, worst }) in stages {
            let name = format!("frames/{mission}/{}_s", stage.name());
            let mut sample = HistorySample::spread(name, HistoryUnit::Seconds, sketch);
            // Of the stages mean, least and greatest are kept: their means add up.
            sample.series.spread = stage == FrameStage::Total;
            sample.worst = worst.filter(|_| stage == FrameStage::Total);
            samples.push(sample);
        }
    }
    samples
}
