//! The default controller on whole lines: each bar of docs/explanation/transport.md on a short run.
//! The long runs are the scenario files `adaptive`, `line`, `changes`, `sharing`, `against-cubic`,
//! `shallow`, `jitter` and `remembered`.
//!
//! [`cells`] is the list: a [`Cell`] is all that a run needs, and what must come out.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use skyhaul_congestion::{ControllerConfig, Memory};
use skyhaul_lab::flow::{Bottleneck, FlowConfig, FlowKey, Host, Pauses};
use skyhaul_link::{Change, GilbertElliott, LinkConfig, Loss, Outage, Policer};
use skyhaul_units::{ByteCount, Duration, Instant, Probability, Rate};

/// One run.
struct Cell {
    name: String,
    data: LinkConfig,
    returns: LinkConfig,
    flows: Vec<Flow>,
    length: Duration,
    bars: Vec<Bar>,
}

/// A flow, its controller, and what that remembers of the path.
#[derive(Clone, Copy)]
struct Flow {
    config: FlowConfig,
    controller: &'static str,
    memory: Option<Memory>,
}

/// What must come out. Times count from the first acknowledgement of the first flow, as after a
/// handshake.
#[derive(Debug, Clone, Copy)]
enum Bar {
    /// The first flow's goodput from then on is at least this.
    Goodput { after: Duration, least: Rate },
    /// This rate is reached by then.
    Startup { rate: Rate, within: Duration },
    /// From this time after the change on, the goodput over the next second is at least this.
    Back { change: Duration, within: Duration, least: Rate },
    /// Half of the time the queue is at most this long.
    Queue { after: Duration, median: Duration },
    /// At most so many of a thousand packets are dropped by the queue or the policer.
    Dropped { thousandths: u64 },
    /// The first flow's percentage of what both get is in this range.
    Share { after: Duration, from: u64, to: u64 },
}

const GREEDY: Flow = Flow { config: FLOW, controller: "adaptive", memory: None };
const FLOW: FlowConfig = FlowConfig {
    packet: ByteCount::new(1_500),
    acks: skyhaul_lab::flow::Acknowledging::quic(),
    detection: skyhaul_lab::flow::LossDetection::quic(),
    access_delay: Duration::ZERO,
    offered: None,
    start: Duration::ZERO,
    stop: None,
    near: PROMPT,
    far: PROMPT,
};
const PROMPT: Host = Host { gather: Duration::ZERO, pauses: None };

const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A line with a drop-tail queue of one bandwidth-delay product, and its way back.
fn line(rate: Rate, rtt: Duration) -> (LinkConfig, LinkConfig) {
    let data = LinkConfig {
        rate: Some(rate),
        queue: rate * rtt,
        one_way_delay: rtt / 2,
        ..LinkConfig::default()
    };
    (data.clone(), LinkConfig { rate: Some(rate.max(Rate::from_mbps(100))), ..data })
}

fn loss(ppm: u32, burst: u32) -> Loss {
    let mean = Probability::from_ppb(ppm * 1_000);
    match (ppm, burst) {
        (0, _) => Loss::None,
        (_, 1) => Loss::Independent(mean),
        _ => Loss::GilbertElliott(
            GilbertElliott::with_bursts(mean, burst.try_into().unwrap()).unwrap(),
        ),
    }
}

fn kept(rate: Rate, ppm: u32) -> Rate {
    rate.scaled(u64::from(1_000_000 - ppm), 1_000_000)
}

/// Every cell that is checked.
fn cells() -> Vec<Cell> {
    let mut cells = lossy();
    cells.extend(changing());
    cells.extend(shallow());
    cells.extend(remembered());
    cells.extend(shared());
    cells.extend(jittery());
    cells.extend(of_any_rate());
    cells.push(limited());
    cells
}

/// Loss, alone and in bursts, in one direction and in both.
fn lossy() -> Vec<Cell> {
    let mut cells = Vec::new();
    for (mbps, rtt) in [(93, ms(160)), (50, ms(660))] {
        for (ppm, burst, both) in
            [(0, 1, false), (10_000, 1, true), (50_000, 8, true), (140_000, 8, false)]
        {
            let rate = Rate::from_mbps(mbps);
            let (mut data, mut returns) = line(rate, rtt);
            data.loss = loss(ppm, burst);
            returns.loss = if both { data.loss } else { Loss::None };
            let limit = kept(rate, ppm);
            cells.push(Cell {
                name: format!(
                    "{rate}, {rtt}, {ppm} ppm lost in runs of {burst}, both ways: {both}"
                ),
                data,
                returns,
                flows: vec![GREEDY],
                length: rtt * 90,
                bars: vec![
                    Bar::Goodput { after: rtt * 8, least: limit.scaled(95, 100) },
                    Bar::Goodput { after: Duration::ZERO, least: limit.scaled(90, 100) },
                    Bar::Startup { rate: limit.scaled(90, 100), within: rtt * 8 },
                    Bar::Queue { after: rtt * 8, median: rtt / 4 },
                ],
            });
        }
    }
    cells
}

/// The line becomes another one after 6 s.
fn changing() -> Vec<Cell> {
    let (rate, rtt, at) = (Rate::from_mbps(93), ms(160), seconds(6));
    let rates = |rate| vec![Change { at, rate: Some(rate), ..Change::default() }];
    let delays = |delay| vec![Change { at, one_way_delay: Some(delay), ..Change::default() }];
    let (plain, returns) = line(rate, rtt);
    let outages = vec![Outage { start: at, length: ms(1_500) }];
    let longer = LinkConfig { one_way_delay: ms(160), ..plain.clone() };
    let cells = [
        (
            "halves",
            LinkConfig { changes: rates(rate.scaled(1, 2)), ..plain.clone() },
            rate.scaled(1, 2),
            rtt,
        ),
        (
            "doubles",
            LinkConfig { changes: rates(rate.scaled(2, 1)), ..plain.clone() },
            rate.scaled(2, 1),
            rtt,
        ),
        ("is longer", LinkConfig { changes: delays(ms(160)), ..plain.clone() }, rate, ms(240)),
        ("is shorter", LinkConfig { changes: delays(ms(80)), ..longer }, rate, rtt),
        ("was out", LinkConfig { outages, ..plain }, rate, rtt),
    ];
    let cell = |(name, data, rate, rtt): (&str, LinkConfig, Rate, Duration)| {
        let change = if data.outages.is_empty() { at } else { at + ms(1_500) };
        let returns = LinkConfig { outages: data.outages.clone(), ..returns.clone() };
        let within = seconds(2) + rtt * 2;
        let bar = Bar::Back { change, within, least: rate.scaled(9, 10) };
        Cell {
            name: format!("the line {name}"),
            data,
            returns,
            flows: vec![GREEDY],
            length: seconds(14),
            bars: vec![bar],
        }
    };
    cells.into_iter().map(cell).collect()
}

/// Bottlenecks that show themselves by loss.
fn shallow() -> Vec<Cell> {
    let (rate, rtt) = (Rate::from_mbps(93), ms(160));
    let mut cells = Vec::new();
    for ppm in [0, 20_000] {
        for burst in [None, Some(10), Some(100)] {
            let (mut data, returns) = line(rate, rtt);
            data.loss = loss(ppm, 1);
            match burst {
                None => data.queue = rate * ms(5),
                Some(burst) => {
                    data.rate = Some(Rate::from_mbps(1_000));
                    data.policer = Some(Policer { rate, burst: rate * ms(burst) });
                }
            }
            cells.push(Cell {
                name: format!(
                    "a policer with bursts of {burst:?} ms, or a queue of 5 ms, {ppm} ppm lost"
                ),
                data,
                returns,
                flows: vec![GREEDY],
                length: seconds(60),
                bars: vec![
                    Bar::Goodput { after: rtt * 8, least: kept(rate, ppm).scaled(9, 10) },
                    Bar::Dropped { thousandths: 30 },
                ],
            });
        }
    }
    cells
}

/// The path was used before.
fn remembered() -> Vec<Cell> {
    let cell = |(mbps, now, ppm): (u64, u64, u32)| {
        let (remembered, rate, rtt) = (Rate::from_mbps(mbps), Rate::from_mbps(now), ms(160));
        let (mut data, returns) = line(rate, rtt);
        data.loss = loss(ppm, 8);
        let limit = kept(rate, ppm);
        let memory = Some(Memory { rate: remembered, rtt });
        let right = Bar::Startup { rate: limit.scaled(9, 10), within: rtt * 3 };
        let wrong = [
            Bar::Goodput { after: Duration::ZERO, least: limit.scaled(9, 10) },
            Bar::Dropped { thousandths: 100 },
        ];
        Cell {
            name: format!("{remembered} remembered, {rate} now, {ppm} ppm lost"),
            data,
            returns,
            flows: vec![Flow { memory, ..GREEDY }],
            length: seconds(30),
            bars: if mbps == now { vec![right] } else { wrong.to_vec() },
        }
    };
    [(93, 93, 0), (93, 93, 140_000), (93, 9, 0), (9, 93, 0)].into_iter().map(cell).collect()
}

/// Two flows on one line.
fn shared() -> Vec<Cell> {
    let rate = Rate::from_mbps(100);
    let two = |delay: u64, start: u64| {
        let far = FlowConfig { access_delay: ms(delay), start: seconds(start), ..FLOW };
        vec![GREEDY, Flow { config: far, ..GREEDY }]
    };
    let near = |start| {
        let (mut data, returns) = line(rate, ms(40));
        data.queue = rate * ms(160);
        Cell {
            name: format!("40 ms and 160 ms share, the far one {start} s later"),
            data,
            returns,
            flows: two(120, start),
            length: seconds(60),
            // Jain's index of two flows is 0.9 at one third.
            bars: vec![Bar::Share { after: seconds(20 + start), from: 34, to: 66 }],
        }
    };
    let cubic = |rtt: u64, start: u64| {
        let (data, returns) = line(rate, ms(rtt));
        let kernel = FlowConfig { start: seconds(start), ..FlowConfig::kernel() };
        let others = Flow { config: kernel, controller: "cubic", memory: None };
        Cell {
            name: format!("beside CUBIC, {rtt} ms, {start} s later"),
            data,
            returns,
            flows: vec![GREEDY, others],
            length: seconds(150 + start),
            bars: vec![Bar::Share { after: seconds(start), from: 35, to: 65 }],
        }
    };
    vec![near(0), near(10), cubic(100, 0), cubic(40, 10)]
}

/// Delays that vary by half of themselves, with heavy loss.
fn jittery() -> Vec<Cell> {
    let (rate, rtt) = (Rate::from_mbps(10), ms(200));
    let (data, returns) = line(rate, rtt);
    let data = LinkConfig { jitter: ms(50), loss: loss(100_000, 1), ..data };
    let returns = LinkConfig { jitter: ms(50), ..returns };
    let bars = vec![Bar::Goodput { after: rtt * 8, least: rate.scaled(9 * 85, 1_000) }];
    let name = "100 ± 50 ms each way".to_owned();
    vec![Cell { name, data, returns, flows: vec![GREEDY], length: seconds(40), bars }]
}

/// From a modem to a loopback, with a fifth of the acknowledgements lost.
fn of_any_rate() -> Vec<Cell> {
    let cell = |(bps, rtt, length): (u64, Duration, Duration)| {
        let rate = Rate::from_bps(bps);
        let (mut data, mut returns) = line(rate, rtt);
        data.queue = (rate * ms(10)).max(ByteCount::new(15_000));
        returns.loss = loss(200_000, 1);
        let bars = vec![Bar::Goodput { after: length / 4, least: rate.scaled(9, 10) }];
        Cell { name: format!("{rate}, {rtt}"), data, returns, flows: vec![GREEDY], length, bars }
    };
    [
        (64_000, ms(160), seconds(60)),
        (1_000_000, ms(160), seconds(40)),
        (10_000_000, ms(20), seconds(20)),
        (2_000_000_000, Duration::from_micros(100), seconds(1)),
        (10_000_000_000, Duration::from_micros(100), ms(300)),
    ]
    .into_iter()
    .map(cell)
    .collect()
}

/// Lines on which a packet waits longer for its host than for anything else: both ends serve their
/// sockets late, in batches, and wait for a processor now and then. That is no queue, and an
/// acknowledgement that covers thousands tells of no loss.
fn on_busy_hosts() -> Vec<Cell> {
    let micros = Duration::from_micros;
    let cell = |(mbps, gather, longest, seed, percent): (u64, Duration, Duration, u64, u64)| {
        let rate = Rate::from_mbps(mbps);
        let (mut data, returns) = line(rate, micros(50));
        data.queue = rate * ms(10);
        let host = |seed| {
            let pauses = Pauses { every: ms(20), longest, seed };
            Host { gather, pauses: (longest > Duration::ZERO).then_some(pauses) }
        };
        let (near, far) = (host(seed), host(seed + 100));
        let flows = vec![Flow { config: FlowConfig { near, far, ..FLOW }, ..GREEDY }];
        let bars = vec![Bar::Goodput { after: ms(300), least: rate.scaled(percent, 100) }];
        let name = format!("{rate}, hosts that gather {gather} and pause up to {longest}");
        Cell { name, data, returns, flows, length: ms(1_500), bars }
    };
    // Pauses of up to 8 ms in 20 leave the line idle for a tenth of the time: more than it has in
    // its queue.
    [
        (1_000, ms(2), ms(8), 2, 80),
        (3_000, micros(500), ms(3), 2, 90),
        (8_000, ms(2), Duration::ZERO, 1, 90),
        (8_000, ms(2), micros(500), 1, 90),
        (8_000, ms(2), ms(8), 2, 80),
        (8_000, micros(500), ms(8), 2, 80),
    ]
    .into_iter()
    .map(cell)
    .collect()
}

/// An application that needs a third of the line, with a third of everything lost both ways.
fn limited() -> Cell {
    let (rate, offered, rtt, ppm) = (Rate::from_mbps(93), Rate::from_mbps(31), ms(160), 300_000);
    let (mut data, mut returns) = line(rate, rtt);
    data.loss = loss(ppm, 1);
    returns.loss = data.loss;
    let flow = Flow { config: FlowConfig { offered: Some(offered), ..FLOW }, ..GREEDY };
    let bars = vec![Bar::Goodput { after: seconds(5), least: kept(offered, ppm).scaled(98, 100) }];
    let name = "a third of the line is asked for".to_owned();
    Cell { name, data, returns, flows: vec![flow], length: seconds(20), bars }
}

/// Runs a cell, and gives the bars that it missed with what was measured.
fn missed(cell: &Cell) -> Vec<String> {
    let mut bottleneck = Bottleneck::new(cell.data.clone(), cell.returns.clone(), 1);
    let mut add = |flow: &Flow| {
        let controller: ControllerConfig = flow.controller.parse().unwrap();
        bottleneck.add(flow.config, controller.build(flow.memory))
    };
    let keys: Vec<FlowKey> = cell.flows.iter().map(&mut add).collect();
    let end = Instant::ZERO + cell.length;
    bottleneck.run_until(end);
    let check = |bar: &Bar| {
        let (is_met, measured) = judge(*bar, &bottleneck, &keys, end);
        (!is_met).then(|| format!("{}: {bar:?}: {measured}", cell.name))
    };
    cell.bars.iter().filter_map(check).collect()
}

fn judge(bar: Bar, bottleneck: &Bottleneck, keys: &[FlowKey], end: Instant) -> (bool, String) {
    let first = bottleneck.flow(keys[0]);
    let ready = first.ready.unwrap();
    match bar {
        Bar::Goodput { after, least } => {
            let rate = first.goodput(ready + after, end);
            (rate >= least, rate.to_string())
        }
        Bar::Startup { rate, within } => {
            let took = first.startup(rate, within / 8);
            (took.is_some_and(|took| took <= within), format!("{took:?}"))
        }
        Bar::Back { change, within, least } => {
            let from = Instant::ZERO + change + within;
            let rate = first.goodput(from, from + seconds(1));
            (rate >= least, rate.to_string())
        }
        Bar::Queue { after, median } => {
            let queue = bottleneck.queue_delays(ready + after, end).p50;
            (queue <= median, queue.to_string())
        }
        Bar::Dropped { thousandths } => {
            let dropped = first.queue_dropped + first.policed;
            (dropped * 1_000 <= first.sent * thousandths, format!("{dropped} of {}", first.sent))
        }
        Bar::Share { after, from, to } => {
            let of =
                |key: &FlowKey| bottleneck.flow(*key).goodput(Instant::ZERO + after, end).as_bps();
            let percent = of(&keys[0]) * 100 / keys.iter().map(of).sum::<u64>();
            ((from..=to).contains(&percent), format!("{percent} %"))
        }
    }
}

#[test]
fn every_bar_of_the_default_controller_is_met() {
    let cells = cells();
    assert!(cells.len() > 30, "{}", cells.len());
    let missed: Vec<String> = cells.iter().flat_map(missed).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

/// The receiver's host stands still for less than a silence that is taken for an outage, and its
/// socket overflows.
fn standing_still() -> Vec<Cell> {
    let cell = |(mbps, millis): (u64, u64)| {
        let rate = Rate::from_mbps(mbps);
        let (mut data, returns) = line(rate, Duration::from_micros(50));
        data.queue = rate * ms(10);
        data.outages = vec![Outage { start: ms(500), length: ms(millis) }];
        let bars = vec![Bar::Back {
            change: ms(500 + millis),
            within: ms(500),
            least: rate.scaled(9, 10),
        }];
        let name = format!("{rate}, nothing arrives for {millis} ms");
        Cell { name, data, returns, flows: vec![GREEDY], length: ms(2_100 + millis), bars }
    };
    [(1_000, 40), (8_000, 20), (8_000, 60), (8_000, 90)].into_iter().map(cell).collect()
}

#[test]
fn a_moment_in_which_nothing_arrives_does_not_end_the_flow() {
    let missed: Vec<String> = standing_still().iter().flat_map(missed).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn what_waits_for_its_host_is_neither_queued_nor_lost() {
    let missed: Vec<String> = on_busy_hosts().iter().flat_map(missed).collect();
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}
