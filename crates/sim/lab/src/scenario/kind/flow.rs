//! `flow`: bare packets over one bottleneck, with any controller; one flow or several.

use super::line::{Ends, FlowOf, Line, PACKET};
use super::{Broken, CellParameters, Experiment, Kind, ParametersRefused};
use crate::flow::{Bottleneck, FlowConfig, FlowKey, FlowRecord};
use crate::scenario::metric::{
    GOODPUT, LIMIT, Measured, Metric, PointSeries, QUEUE_P50, RATIO, STARTUP, STARTUP_RTTS, Unit,
};
use skyhaul_link::LinkConfig;
use skyhaul_units::{Duration, Instant, Rate};

/// The kind.
pub(super) struct Flow;

impl Kind for Flow {
    fn name(&self) -> &'static str {
        "flow"
    }

    fn about(&self) -> &'static str {
        "greedy flows of bare packets over one bottleneck: how a congestion controller behaves"
    }

    fn metrics(&self) -> &'static [&'static Metric] {
        METRICS
    }

    fn cell(
        &self,
        parameters: CellParameters<'_>,
    ) -> Result<Box<dyn Experiment>, ParametersRefused> {
        Ok(Box::new(Cell::new(parameters.read()?)?))
    }
}

/// A cell: a line and its flows.
pub(super) struct Cell {
    line: Line,
    data: LinkConfig,
    returns: LinkConfig,
    flows: Vec<FlowOf>,
}

impl Cell {
    pub fn new(line: Line) -> Result<Self, ParametersRefused> {
        let impossible = |error: skyhaul_link::LossError| ParametersRefused::new(error.to_string());
        let (data, returns) =
            (line.data().map_err(impossible)?, line.returns().map_err(impossible)?);
        let one = |controller| FlowOf {
            controller,
            rtt: None,
            start: Duration::ZERO,
            stop: None,
            acknowledging: line.acknowledging,
        };
        let flows = match (line.controller, &line.flows[..]) {
            (Some(controller), []) => vec![one(controller)],
            (None, flows @ [_, ..]) if flows.len() <= MAX_FLOWS => flows.to_vec(),
            (None, [_, ..]) => {
                return Err(ParametersRefused::new(format!(
                    "there are too many flows; give {MAX_FLOWS} at most"
                )));
            }
            (Some(_), _) => {
                return Err(ParametersRefused::new(
                    "`controller` and `flows` are both given; give one of them",
                ));
            }
            (None, []) => {
                return Err(ParametersRefused::new(
                    "nobody sends; give `controller`, or `flows` for several",
                ));
            }
        };
        if flows.iter().any(|flow| flow.rtt.is_some_and(|rtt| rtt < line.rtt)) {
            return Err(ParametersRefused::new(
                "a flow's round trip is below the line's; lower `rtt` of the line",
            ));
        }
        if line.warm_up() >= line.duration {
            return Err(ParametersRefused::new(
                "the start-up takes the whole run; lengthen `duration` or set `warm_up`",
            ));
        }
        if line.rate == Rate::ZERO {
            return Err(ParametersRefused::new("the line has no rate; give `rate` above zero"));
        }
        Ok(Self { line, data, returns, flows })
    }

    /// What arrives after start-up over all flows, in the application's bytes.
    pub fn goodput(&self, seed: u64) -> Rate {
        let (bottleneck, keys) = self.play(seed);
        let (from, to) = self.watched();
        let goodputs = keys.iter().map(|key| bottleneck.flow(*key).goodput(from, to).as_bps());
        self.useful(Rate::from_bps(goodputs.sum()))
    }

    fn play(&self, seed: u64) -> (Bottleneck, Vec<FlowKey>) {
        let mut bottleneck = Bottleneck::new(self.data.clone(), self.returns.clone(), seed);
        let add = |flow: &FlowOf| {
            let ends = match flow.acknowledging {
                Ends::Quic => FlowConfig::default(),
                Ends::Kernel => FlowConfig::kernel(),
            };
            let config = FlowConfig {
                packet: PACKET,
                access_delay: flow.rtt.unwrap_or(self.line.rtt).saturating_sub(self.line.rtt),
                offered: self.line.offered,
                start: flow.start,
                stop: flow.stop,
                ..ends
            };
            let controller =
                flow.controller.config(self.line.rate).build(self.line.remembered.map(Into::into));
            bottleneck.add(config, controller)
        };
        let keys = self.flows.iter().map(add).collect();
        bottleneck.run_until(self.line.end());
        (bottleneck, keys)
    }

    fn watched(&self) -> (Instant, Instant) {
        (Instant::ZERO + self.line.warm_up(), self.line.end())
    }

    /// What the application gets of packets.
    pub fn useful(&self, packets: Rate) -> Rate {
        packets.scaled(self.line.payload.as_u64(), PACKET.as_u64())
    }

    /// The most that the application could get after start-up.
    pub fn limit(&self) -> Rate {
        let (from, to) = self.watched();
        self.useful(Rate::over(self.line.capacity(from, to), to.since(from)))
    }

    fn measure_one(&self, record: &FlowRecord, measured: &mut Measured) {
        let line = &self.line;
        let ready = record.ready.unwrap_or(line.end());
        let possible = Rate::over(line.capacity(ready, line.end()), line.end().since(ready));
        measured.add(&RATIO_WITH_STARTUP, share(record.goodput(ready, line.end()), possible));
        let window = (line.rtt / 4).max(SHORTEST_WINDOW);
        let startup = record.startup(line.limit(ready).scaled(9, 10), window);
        measured.add_time(&STARTUP, startup);
        measured.add(&STARTUP_RTTS, startup.map(|startup| round_trips(startup, line.rtt)));
        let turns = line.turns();
        let until = |index: usize| turns.get(index + 1).map_or(line.end(), |(turn, _)| *turn);
        let recoveries = turns.iter().enumerate().map(|(index, (turn, rtt))| {
            let spent = recovery(record, *turn, until(index), line.limit(*turn).scaled(9, 10))?;
            Some((spent, spent.as_secs_f64() - (*rtt * 2).as_secs_f64()))
        });
        let recoveries: Option<Vec<_>> = recoveries.collect();
        if let Some(recoveries) = recoveries.filter(|recoveries| !recoveries.is_empty()) {
            measured.add_time(&RECOVERY, recoveries.iter().map(|(spent, _)| *spent).max());
            let beyond =
                recoveries.iter().map(|(_, beyond)| *beyond).fold(f64::NEG_INFINITY, f64::max);
            measured.add(&RECOVERY_BEYOND, beyond);
        }
    }
}

impl Experiment for Cell {
    fn virtual_time(&self) -> Duration {
        self.line.duration
    }

    fn cost(&self) -> Duration {
        PER_PACKET * self.line.packets()
    }

    fn run(&self, seed: u64) -> Result<Measured, Broken> {
        let (bottleneck, keys) = self.play(seed);
        let (from, to) = self.watched();
        let records: Vec<&FlowRecord> = keys.iter().map(|key| bottleneck.flow(*key)).collect();
        let goodputs: Vec<Rate> = records.iter().map(|record| record.goodput(from, to)).collect();
        let all = Rate::from_bps(goodputs.iter().map(|rate| rate.as_bps()).sum());
        let mut measured = Measured::default();
        measured.add_rate(&GOODPUT, self.useful(all));
        measured.add_rate(&LIMIT, self.limit());
        measured.add(&RATIO, share(self.useful(all), self.limit()));
        let whole = records.iter().map(|record| record.goodput(Instant::ZERO, to).as_bps()).sum();
        measured.add_rate(&GOODPUT_OF_RUN, self.useful(Rate::from_bps(whole)));
        if let [record] = records[..] {
            self.measure_one(record, &mut measured);
        }
        let queue = bottleneck.queue_delays(from, to);
        measured.add_time(&QUEUE_P50, queue.p50);
        measured.add_time(&QUEUE_P99, queue.p99);
        measured.add(&QUEUE_P50_RTTS, round_trips(queue.p50, self.line.rtt));
        let sent: u64 = records.iter().map(|record| record.sent).sum();
        let refused: u64 = records.iter().map(|record| record.queue_dropped + record.policed).sum();
        measured.add(&OWN_EXCESS, refused as f64 / sent as f64);
        if goodputs.len() > 1 {
            measured.add(&JAIN, jain(&goodputs));
            measured.add(&SHARE_OF_FIRST, share(goodputs[0], all));
        }
        measured.add(&SENT, sent as f64);
        measured.add(&DELIVERED, records.iter().map(|record| record.delivered).sum::<u64>() as f64);
        measured.add(&LOST, bottleneck.data().lost as f64);
        measured.series = courses(&bottleneck, &records, self.line.end());
        Ok(measured)
    }
}

/// From a turn of the line until packets arrive at `rate` for good, as far as [`HORIZON`] shows:
/// means of a second stay at it or above. `None` where the last of them is still below.
fn recovery(record: &FlowRecord, turn: Instant, until: Instant, rate: Rate) -> Option<Duration> {
    let watched = until.since(turn).min(HORIZON).saturating_sub(STEADY);
    let steps = watched.as_nanos() / STEP.as_nanos();
    let is_below = |step: &u64| {
        let from = turn + STEP * *step;
        record.goodput(from, from + STEADY) < rate
    };
    match (0..=steps).rev().find(is_below) {
        None => Some(Duration::ZERO),
        Some(last) if last == steps => None,
        Some(last) => Some(STEP * (last + 1)),
    }
}

/// Arrival rate of each flow and the queue, in up to [`POINTS`] points.
fn courses(bottleneck: &Bottleneck, records: &[&FlowRecord], end: Instant) -> Vec<PointSeries> {
    let step = (end.since(Instant::ZERO) / POINTS).max(STEP);
    let ends = (1..).map(|count| Instant::ZERO + step * count).take_while(|at| *at <= end);
    let before = |at: Instant| Instant::from_nanos(at.as_nanos() - step.as_nanos());
    let seconds = |at: Instant| at.since(Instant::ZERO).as_secs_f64();
    let rates = records.iter().enumerate().map(|(index, record)| PointSeries {
        name: RATE_COURSE.to_owned(),
        part: if records.len() > 1 { format!("flow {}", index + 1) } else { String::new() },
        x: Unit::Seconds,
        y: Unit::BitRate,
        points: ends
            .clone()
            .map(|at| (seconds(at), record.goodput(before(at), at).as_bps() as f64))
            .collect(),
    });
    let queue = PointSeries {
        name: QUEUE_COURSE.to_owned(),
        part: String::new(),
        x: Unit::Seconds,
        y: Unit::Seconds,
        points: ends
            .clone()
            .map(|at| (seconds(at), bottleneck.queue_delays(before(at), at).p50.as_secs_f64()))
            .collect(),
    };
    rates.chain([queue]).collect()
}

fn share(part: Rate, whole: Rate) -> f64 {
    part.as_bps() as f64 / whole.as_bps() as f64
}

fn round_trips(time: Duration, rtt: Duration) -> f64 {
    time.as_secs_f64() / rtt.as_secs_f64()
}

/// Jain's index: 1 where all get the same, 1 ÷ n where one gets all.
fn jain(rates: &[Rate]) -> f64 {
    let rates = || rates.iter().map(|rate| rate.as_bps() as f64);
    let sum: f64 = rates().sum();
    sum * sum / (rates().count() as f64 * rates().map(|rate| rate * rate).sum::<f64>())
}

const GOODPUT_OF_RUN: Metric = Metric {
    key: "goodput_of_run_bps",
    heading: "goodput, all",
    unit: Unit::BitRate,
    meaning: "bytes that the application gets over the whole run, handshake and start-up included",
};
const RATIO_WITH_STARTUP: Metric = Metric {
    key: "ratio_with_startup",
    heading: "ratio, all",
    unit: Unit::Share,
    meaning: "what arrived from the handshake's end to the end of the run ÷ what could have",
};
const QUEUE_P99: Metric = Metric {
    key: "queue_delay_p99_s",
    heading: "queue p99",
    unit: Unit::Seconds,
    meaning: "99th percentile of the queueing delay after start-up",
};
const QUEUE_P50_RTTS: Metric = Metric {
    key: "queue_delay_p50_rtts",
    heading: "queue p50, RTT",
    unit: Unit::RoundTrips,
    meaning: "`queue_delay_p50_s` in round trips of the empty line",
};
const OWN_EXCESS: Metric = Metric {
    key: "own_excess",
    heading: "own excess",
    unit: Unit::Share,
    meaning: "share of the packets sent that queue or policer dropped",
};
const JAIN: Metric = Metric {
    key: "jain",
    heading: "Jain",
    unit: Unit::Share,
    meaning: "Jain's index of the flows' goodputs after start-up: 1 where all get the same",
};
const SHARE_OF_FIRST: Metric = Metric {
    key: "share_of_first",
    heading: "share of first",
    unit: Unit::Share,
    meaning: "what the first flow gets of all that arrives after start-up",
};
const RECOVERY: Metric = Metric {
    key: "recovery_s",
    heading: "recovery",
    unit: Unit::Seconds,
    meaning: "longest time from a change, or the end of an outage, until packets arrive at 90 % of \
             the new limit and go on to",
};
const RECOVERY_BEYOND: Metric = Metric {
    key: "recovery_less_2rtt_s",
    heading: "recovery − 2 RTT",
    unit: Unit::Seconds,
    meaning: "`recovery_s` less two of the then round trips",
};
const SENT: Metric =
    Metric { key: "packets.sent", heading: "sent", unit: Unit::Count, meaning: "packets sent" };
const DELIVERED: Metric = Metric {
    key: "packets.delivered",
    heading: "delivered",
    unit: Unit::Count,
    meaning: "packets that arrived",
};
const LOST: Metric = Metric {
    key: "packets.lost",
    heading: "lost",
    unit: Unit::Count,
    meaning: "packets lost on the line, in the direction of the data",
};

const METRICS: &[&Metric] = &[
    &GOODPUT,
    &LIMIT,
    &RATIO,
    &GOODPUT_OF_RUN,
    &RATIO_WITH_STARTUP,
    &STARTUP,
    &STARTUP_RTTS,
    &RECOVERY,
    &RECOVERY_BEYOND,
    &QUEUE_P50,
    &QUEUE_P99,
    &QUEUE_P50_RTTS,
    &OWN_EXCESS,
    &JAIN,
    &SHARE_OF_FIRST,
    &SENT,
    &DELIVERED,
    &LOST,
];

/// The course of the arrival rate.
const RATE_COURSE: &str = "rate";
/// The course of the queueing delay.
const QUEUE_COURSE: &str = "queue";

/// The interval of the flow simulation's samples.
const STEP: Duration = Duration::from_millis(10);
/// A rate is taken over a quarter of a round trip, but no less than this: a queue's worth of jitter
/// is no rate.
const SHORTEST_WINDOW: Duration = Duration::from_millis(20);
/// Over how long a rate is taken that has to last: the short pauses in which a controller looks for
/// the empty line's round trip do not count.
const STEADY: Duration = Duration::from_secs(1);
/// How long after a turn of the line it is watched: three times what recovery may take at 160 ms.
const HORIZON: Duration = Duration::from_secs(7);
/// Points of a course: as many as a plot can show.
const POINTS: u64 = 400;
/// A thousand flows over one bottleneck are no scenario of ours.
const MAX_FLOWS: usize = 64;
/// What a packet costs a processor core, measured: 0.36 us with `line`.
const PER_PACKET: Duration = Duration::from_nanos(400);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jain_is_one_for_equals_and_falls_to_one_over_n() {
        let of = |mbps: &[u64]| {
            jain(&mbps.iter().map(|mbps| Rate::from_mbps(*mbps)).collect::<Vec<_>>())
        };
        assert!((of(&[10, 10, 10]) - 1.0).abs() < 1e-9);
        assert!((of(&[10, 0]) - 0.5).abs() < 1e-9);
    }

    fn cell(text: &str) -> Cell {
        Cell::new(toml::from_str(text).unwrap()).unwrap()
    }

    #[test]
    fn a_rate_that_doubles_is_recovered_only_when_packets_arrive_at_it() {
        let text = |declared: &str| {
            format!(
                r#"
                rate = "10 Mbit/s"
                rtt = "40 ms"
                duration = "6 s"
                warm_up = "1 s"
                changes = [{{ at = "3 s", rate = "20 Mbit/s" }}]
                controller = {{ kind = "line", rate = "{declared}" }}
                "#
            )
        };
        let never = cell(&text("10 Mbit/s")).run(1).unwrap();
        assert_eq!(never.figure("recovery_s"), None);
        let change = "changes = [{ at = \"3 s\", rate = \"20 Mbit/s\" }]";
        let outage =
            text("10 Mbit/s").replace(change, "outages = [{ start = \"2 s\", length = \"1 s\" }]");
        let back = cell(&outage).run(1).unwrap().figure("recovery_s").unwrap();
        assert!((0.02..1.5).contains(&back), "{back}");
        let slower = text("5 Mbit/s").replace("rate = \"20 Mbit/s\"", "rate = \"5 Mbit/s\"");
        assert!(cell(&slower).run(1).unwrap().figure("recovery_s").unwrap() < 0.2);
    }

    #[test]
    fn what_does_not_go_together_is_refused() {
        let cases = [
            ("", "nobody sends"),
            ("controller = \"line\"\nflows = [{ controller = \"line\" }]", "both given"),
            ("flows = [{ controller = \"line\", rtt = \"1 ms\" }]", "below the line's"),
            ("controller = \"line\"\nwarm_up = \"2 min\"", "lengthen `duration`"),
            ("controller = \"line\"\nloss = \"60 %\"\nmean_burst = 1", "lengthen the bursts"),
        ];
        for (text, reason) in cases {
            let line =
                toml::from_str(&format!("rate = \"10 Mbit/s\"\nrtt = \"40 ms\"\n{text}")).unwrap();
            let refused = Cell::new(line).err().unwrap();
            assert!(refused.sentence.contains(reason), "{text}: {}", refused.sentence);
        }
    }
}
