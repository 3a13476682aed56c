//! The progress of a pass.

use super::backup::BackupProgress;
use super::line::LineFacts;
use crate::commands::rate::share_text;
use serde::Serialize;
use skyhaul_node::status::{CentreStatus, ChannelState, ContactState, LineState, StationStatus};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// One look at everything.
#[derive(Debug, Clone, Serialize)]
pub struct DemoProgress {
    /// `progress`.
    pub event: &'static str,
    /// Seconds since the pass began.
    pub elapsed_s: f64,
    /// The station's inputs.
    pub channels: Vec<ChannelProgress>,
    /// What waits at the station for the centre's receipt.
    pub spool: SpoolProgress,
    /// The line.
    pub line: LineProgress,
    /// Seconds from a frame's last bit to durable at the centre, so far.
    pub latency_s: LatencyProgress,
    /// Contacts whose products are written.
    pub contacts_done: usize,
    /// Products written.
    pub products: usize,
    /// The backup centre.
    pub backup: BackupProgress,
}

/// The nodes at one look.
#[derive(Debug, Clone, Copy)]
pub struct DemoStatus<'a> {
    /// The station.
    pub station: &'a StationStatus,
    /// The operational centre.
    pub centre: &'a CentreStatus,
    /// The backup centre.
    pub backup: BackupProgress,
}

/// One input.
#[derive(Debug, Clone, Serialize)]
pub struct ChannelProgress {
    /// Its name.
    pub name: String,
    /// Whether it has lock.
    pub state: ChannelState,
    /// The mission found.
    pub mission: Option<String>,
    /// Good frames captured.
    pub frames: u64,
    /// Symbols corrected in them.
    pub corrected_symbols: u64,
    /// Frames set aside.
    pub set_aside: u64,
    /// Bytes played to it.
    pub played_bytes: u64,
    /// Bytes of its pass.
    pub total_bytes: u64,
}

/// The spool.
#[derive(Debug, Clone, Serialize)]
pub struct SpoolProgress {
    /// Blocks not in the centre's custody.
    pub blocks: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The line.
#[derive(Debug, Clone, Serialize)]
pub struct LineProgress {
    /// Whether it is in use.
    pub state: LineState,
    /// What it carried towards the centre lately, in bit/s of IP packets.
    pub rate_bps: u64,
    /// Round trip as the station measures it, in seconds.
    pub rtt_s: f64,
    /// Share of packets lost as the station measures it.
    pub loss: f64,
}

/// The latency.
#[derive(Debug, Clone, Serialize)]
pub struct LatencyProgress {
    /// The median.
    pub p50: f64,
    /// All but one in a hundred are shorter.
    pub p99: f64,
}

/// What the meter found at the end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Work {
    /// Bytes of blocks that the centre reported whole.
    pub delivered: ByteCount,
    /// From the first symbol on the line to the last block reported whole.
    pub busy: Duration,
}

/// Measures rates between looks.
#[derive(Debug, Default)]
pub struct RateMeter {
    /// Time and bytes at the far end of the line, a second of looks.
    carried: Vec<(Instant, ByteCount)>,
    first_symbol: Option<Instant>,
    last_block: Instant,
    /// Counts of the connections before this one, and of this one.
    reported: (ByteCount, ByteCount),
}

impl RateMeter {
    /// Takes the status of the station and the line at `now`.
    pub fn look(&mut self, now: Instant, station: &StationStatus, carried: ByteCount) {
        if station.line().symbols_sent > 0 {
            self.first_symbol.get_or_insert(now);
        }
        let reported = ByteCount::new(station.line().bytes_reported);
        if reported > self.reported.1 {
            self.last_block = now;
        }
        if reported < self.reported.1 {
            self.reported.0 += self.reported.1;
        }
        self.reported.1 = reported;
        self.carried.push((now, carried));
        self.carried.retain(|(at, _)| now.since(*at) <= WINDOW);
    }

    /// What the line carries now.
    pub fn rate(&self) -> Rate {
        let (Some((from, before)), Some((to, after))) = (self.carried.first(), self.carried.last())
        else {
            return Rate::ZERO;
        };
        Rate::over(*after - *before, to.since(*from))
    }

    /// The bytes carried in total.
    pub fn work(&self) -> Work {
        let busy = self.first_symbol.map_or(Duration::ZERO, |first| self.last_block.since(first));
        Work { delivered: self.reported.0 + self.reported.1, busy }
    }
}

impl DemoProgress {
    /// One look: `played` has for each input the bytes played and all bytes of its pass.
    pub fn new(
        elapsed: Duration,
        nodes: &DemoStatus<'_>,
        played: &[(ByteCount, ByteCount)],
        rate: Rate,
    ) -> Self {
        let DemoStatus { station, centre, backup } = *nodes;
        let channels =
            station.channels.iter().zip(played).map(|(channel, (played, total))| ChannelProgress {
                name: channel.name.clone(),
                state: channel.state,
                mission: channel.mission.clone(),
                frames: channel.frames,
                corrected_symbols: channel.corrected_symbols,
                set_aside: channel.set_aside,
                played_bytes: played.as_u64(),
                total_bytes: total.as_u64(),
            });
        let latency = centre.latency_s.get("total").copied().unwrap_or_default();
        let done = |state| matches!(state, ContactState::Done | ContactState::Failed);
        Self {
            event: "progress",
            elapsed_s: elapsed.as_secs_f64(),
            channels: channels.collect(),
            spool: SpoolProgress { blocks: station.spool.blocks, bytes: station.spool.bytes },
            line: LineProgress {
                state: station.line().state,
                rate_bps: rate.as_bps(),
                rtt_s: station.line().rtt_s,
                loss: station.line().loss,
            },
            latency_s: LatencyProgress { p50: latency.p50, p99: latency.p99 },
            contacts_done: centre.contacts.iter().filter(|contact| done(contact.state)).count(),
            products: centre.contacts.iter().map(|contact| contact.products.len()).sum(),
            backup,
        }
    }
}

impl LineFacts {
    /// The line in words.
    pub fn describe(self) -> String {
        format!("{}, {} round trip, {} loss each way", self.rate, self.rtt, share_text(self.loss))
    }
}

/// Rates are means over this time: a reader sees no faster change.
const WINDOW: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_node::status::{DestinationStatus, LineStatus};

    fn station(symbols: u64, reported: u64) -> StationStatus {
        let mut status = StationStatus::default();
        let line =
            LineStatus { symbols_sent: symbols, bytes_reported: reported, ..LineStatus::default() };
        status.destinations = vec![DestinationStatus { line, ..DestinationStatus::default() }];
        status
    }

    #[test]
    fn busy_time_is_from_the_first_symbol_to_the_last_block_over_all_connections() {
        let mut meter = RateMeter::default();
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        for (millis, symbols, reported) in
            [(0, 0, 0), (100, 5, 0), (200, 9, 700), (300, 2, 0), (400, 4, 300), (900, 4, 300)]
        {
            meter.look(at(millis), &station(symbols, reported), ByteCount::new(millis * 1_000));
        }
        assert_eq!(
            meter.work(),
            Work { delivered: ByteCount::new(1_000), busy: Duration::from_millis(300) }
        );
        assert_eq!(meter.rate(), Rate::from_mbps(8));
    }
}
