//! `dtp`: text, audio and video over two paths that cannot always carry all of it, as in the
//! evaluation of deadline-aware transports (`draft-shi-quic-dtp` and its papers): what of it is in
//! time, by its worth.
//!
//! The bound beside it is computed without a run. It fills all that the paths bring between the
//! first hand-over and the last deadline with what is worth most for its bytes, headers and the
//! repetition that independent loss makes unavoidable included; the last item in part. A group of
//! video frames is one item, because frames are worth nothing without the first. No schedule can do
//! better: when each block must be sent does not count in it.

mod rival;

use super::medium::{Medium, OFF_PLAIN, off};
use super::{Broken, CellParameters, Experiment, Kind, ParametersRefused};
use crate::PlainLine;
use crate::plain::IP_AND_QUIC;
use crate::scenario::metric::{Measured, Metric, Unit};
use crate::workload::{
    Arrivals, BlockRecord, BlockStream, HandedOver, Lifetime, Pattern, StreamConfig, Traffic,
};
use crate::world::{Over, Sessions, Users, WorldConfig, WorldPath};
use serde::Deserialize;
use skyhaul_transport::{ClassId, Mode, SessionConfig};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant, Probability, Rate};

/// The kind.
pub(super) struct Dtp;

impl Kind for Dtp {
    fn name(&self) -> &'static str {
        "dtp"
    }

    fn about(&self) -> &'static str {
        "text, audio and video with deadlines over several thin paths: the worth of what is in \
        time, beside a bound"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(
        &self,
        parameters: CellParameters<'_>,
    ) -> Result<Box<dyn Experiment>, ParametersRefused> {
        let cell: Cell = parameters.read()?;
        if cell.rtts.is_empty() || cell.rtts.len() > 8 {
            return Err(ParametersRefused::new(
                "the number of paths is out of range; give `rtts` 1 to 8 values",
            ));
        }
        Ok(Box::new(cell))
    }
}

/// The paths; the applications are the same in all cells.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Cell {
    /// The round trip of each path.
    rtts: Vec<Duration>,
    /// The rate of each path, counted in IP packets.
    bandwidth: Rate,
    /// Share of packets lost on each, each alone, in both directions.
    loss: Probability,
    /// How long blocks are handed over.
    duration: Duration,
    /// What the paths are.
    #[serde(default)]
    over: Medium,
}

impl Experiment for Cell {
    fn virtual_time(&self) -> Duration {
        self.duration
    }

    fn cost(&self) -> Duration {
        PER_SECOND * (self.duration.as_millis() / 1_000) * self.over.effort()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let (start, stop) = self.interval();
        let ledger = &self.carry(seed, self.over.over())?;
        let (score, bound) = (worth_in_time(ledger), self.bound());
        let mut measured = Measured::default();
        measured.add(&SCORE, score / all_worth(ledger));
        measured.add(&BOUND, bound / all_worth(ledger));
        measured.add(&OF_BOUND, score / bound);
        let streams =
            applications(start, stop).map(|config| BlockStream::new(config, seed)).to_vec();
        let rival = rival::Rivals::new(self, streams, seed).worth_in_time(stop + VIDEO_LIFE);
        measured.add(&RIVAL, rival / all_worth(ledger));
        // Where the rival brings nothing, ours is as often as much as the smallest worth allows.
        measured.add(&OF_RIVAL, score / rival.max(1.0));
        for (metric, flow) in [(&TEXT_SHARE, TEXT), (&AUDIO_SHARE, AUDIO), (&VIDEO_SHARE, VIDEO)] {
            let blocks = ledger.of(flow);
            let useful = blocks.iter().filter(|record| ledger.is_of_use(record)).count();
            measured.add(metric, useful as f64 / blocks.len() as f64);
        }
        measured.add(&REFUSED, ledger.refused_count() as f64);
        if self.over == Medium::Quic {
            measured.add(&OFF_PLAIN, off(score, worth_in_time(&self.carry(seed, Over::Plain)?)));
        }
        Ok(measured)
    }
}

impl Cell {
    /// What becomes of all blocks.
    fn carry(&self, seed: u64, over: Over) -> Result<HandedOver, Broken> {
        let paths: Vec<WorldPath> =
            self.rtts.iter().map(|rtt| WorldPath::new(self.line(*rtt))).collect();
        let (start, stop) = self.interval();
        let users =
            Users { near: Traffic::new(applications(start, stop), seed), far: Arrivals::default() };
        let config = WorldConfig::alike(SessionConfig::default());
        let mut sessions = Sessions::open(over, config, &paths, seed, users)?;
        sessions.run_until(stop + VIDEO_LIFE * 2)?;
        let (mut traffic, arrivals) = sessions.into_users()?;
        traffic.ledger.settle(&arrivals);
        Ok(traffic.ledger)
    }

    fn line(&self, rtt: Duration) -> PlainLine {
        PlainLine {
            rate: self.bandwidth,
            one_way_delay: rtt / 2,
            loss: self.loss,
            ..PlainLine::default()
        }
    }

    fn interval(&self) -> (Instant, Instant) {
        let settling = if self.over == Medium::Quic { SETTLING_QUIC } else { SETTLING };
        let start = Instant::ZERO + settling;
        (start, start + self.duration)
    }

    /// The most worth that the paths can bring in time.
    fn bound(&self) -> f64 {
        let span = |rtt: &Duration| (self.duration + VIDEO_LIFE).saturating_sub(*rtt / 2);
        let carried: u64 = self.rtts.iter().map(|rtt| (self.bandwidth * span(rtt)).as_u64()).sum();
        let mut room = carried as f64 * self.loss.complement().as_f64();
        let count = |period: Duration| self.duration.as_nanos().div_ceil(period.as_nanos()) as f64;
        let group = on_line(INTRA) + on_line(PREDICTED) * f64::from(GROUP - 1);
        let mut items = [
            (worth(0), on_line(TEXT_SIZE), count(TEXT_PERIOD)),
            (worth(1), on_line(AUDIO_SIZE), count(AUDIO_PERIOD)),
            (worth(2) * f64::from(GROUP), group, count(FRAME) / f64::from(GROUP)),
        ];
        items.sort_by(|one, other| (other.0 / other.1).total_cmp(&(one.0 / one.1)));
        let mut sum = 0.0;
        for (worth, bytes, count) in items {
            let taken = count.min(room / bytes);
            room -= taken * bytes;
            sum += taken * worth;
        }
        sum
    }
}

/// Text, audio and video of one conference.
fn applications(start: Instant, stop: Instant) -> [StreamConfig; 3] {
    let stream = |flow, priority, life, pattern| StreamConfig {
        flow,
        class: ClassId::default(),
        priority,
        lifetime: Some(Lifetime { fixed: life, filled_at: None }),
        mode: Mode::Expendable,
        pattern,
        start,
        stop,
    };
    let video = Pattern::Video { period: FRAME, group: GROUP, intra: INTRA, predicted: PREDICTED };
    [
        stream(TEXT, 0, TEXT_LIFE, Pattern::Periodic { size: TEXT_SIZE, period: TEXT_PERIOD }),
        stream(AUDIO, 1, AUDIO_LIFE, Pattern::Periodic { size: AUDIO_SIZE, period: AUDIO_PERIOD }),
        stream(VIDEO, 2, VIDEO_LIFE, video),
    ]
}

/// Three for high, two for mid, one for low: as the default policy weighs priorities.
fn worth(priority: u8) -> f64 {
    f64::from(3 - priority.min(2))
}

fn all_worth(ledger: &HandedOver) -> f64 {
    ledger.records().map(|(_, record)| worth(record.priority)).sum::<f64>()
        + ledger.refused_count() as f64
}

fn worth_in_time(ledger: &HandedOver) -> f64 {
    let useful = |(_, record): &(FlowId, &BlockRecord)| ledger.is_of_use(record);
    ledger.records().filter(useful).map(|(_, record)| worth(record.priority)).sum()
}

/// What a block takes on the line at least.
fn on_line(size: ByteCount) -> f64 {
    let datagrams = size.as_u64().div_ceil(PAYLOAD);
    (size.as_u64() + datagrams * (IP_AND_QUIC.as_u64() + SYMBOL_HEADER)) as f64
}

const SCORE: Metric = Metric {
    key: "score",
    heading: "score",
    unit: Unit::Share,
    meaning: "worth of the blocks in time, by priority three, two and one, ÷ worth of all; a frame \
             counts if the one \
              that it needs is in time too",
};
const BOUND: Metric = Metric {
    key: "bound",
    heading: "bound",
    unit: Unit::Share,
    meaning: "the same for all that the paths could carry, filled by worth per byte whatever the \
             order: an upper bound",
};
const OF_BOUND: Metric =
    Metric { key: "of_bound", heading: "÷ bound", unit: Unit::Share, meaning: "score ÷ bound" };
const RIVAL: Metric = Metric {
    key: "rival_score",
    heading: "rival",
    unit: Unit::Share,
    meaning: "the score of three multipath connections: New Reno for each path, shortest round \
             trip first, in-order \
              streams, no deadlines",
};
const OF_RIVAL: Metric = Metric {
    key: "of_rival",
    heading: "÷ rival",
    unit: Unit::Share,
    meaning: "score ÷ the rival's",
};
const TEXT_SHARE: Metric = share("in_time.text", "text");
const AUDIO_SHARE: Metric = share("in_time.audio", "audio");
const VIDEO_SHARE: Metric = share("in_time.video", "video");
const REFUSED: Metric = Metric {
    key: "refused",
    heading: "refused",
    unit: Unit::Count,
    meaning: "blocks that the session had no room for",
};

const fn share(key: &'static str, heading: &'static str) -> Metric {
    Metric { key, heading, unit: Unit::Share, meaning: "share of the stream's blocks in time" }
}

const METRICS: &[&Metric] = &[
    &SCORE,
    &BOUND,
    &OF_BOUND,
    &RIVAL,
    &OF_RIVAL,
    &TEXT_SHARE,
    &AUDIO_SHARE,
    &VIDEO_SHARE,
    &REFUSED,
    &OFF_PLAIN,
];

const TEXT: FlowId = FlowId(0);
const AUDIO: FlowId = FlowId(1);
const VIDEO: FlowId = FlowId(2);

const TEXT_SIZE: ByteCount = ByteCount::new(1_000);
const TEXT_PERIOD: Duration = Duration::from_millis(50);
const TEXT_LIFE: Duration = Duration::from_millis(800);
/// 128 kbit/s in frames of 20 ms.
const AUDIO_SIZE: ByteCount = ByteCount::new(320);
const AUDIO_PERIOD: Duration = Duration::from_millis(20);
const AUDIO_LIFE: Duration = Duration::from_secs(1);
/// 30 frames a second, one a second stands alone: 1.9 Mbit/s.
const FRAME: Duration = Duration::from_nanos(33_333_333);
const GROUP: u32 = 30;
const INTRA: ByteCount = ByteCount::new(60_000);
const PREDICTED: ByteCount = ByteCount::new(6_000);
const VIDEO_LIFE: Duration = Duration::from_secs(3);
/// Paths are up and measured before the first block.
const SETTLING: Duration = Duration::from_secs(5);
/// Handshakes in which a fifth of all packets is lost are over by then.
const SETTLING_QUIC: Duration = Duration::from_secs(30);
/// Bytes of a block in a full datagram, and a symbol's header at least.
const PAYLOAD: u64 = 1_430;
const SYMBOL_HEADER: u64 = 8;
/// What a second of it costs a processor core.
const PER_SECOND: Duration = Duration::from_millis(6);
