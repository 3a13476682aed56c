//! Rules about the line, and about what a controller makes of it.

use super::ends::waits;
use super::outage::is_dead;
use super::share::{against, foreign_queue, free, goodput, is_contended, is_gathered, usage};
use super::{Finding, percent, rate};
use crate::why::cause::Cause;
use crate::why::evidence::{Evidence, LineFound, StreamResult, Transfer};

/// What the line's figures speak for.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let (line, transfer) = (evidence.line.as_ref(), evidence.transfer.as_ref());
    let mut found = Vec::new();
    found.extend(shrunk(line, transfer));
    if let Some(line) = line {
        found.extend(black_hole(line, transfer));
        found.extend(random_loss(line, transfer));
        found.extend(policer(line));
        found.extend(steps(line));
    }
    found.extend(queueing(line, transfer));
    let is_dead = transfer.is_some_and(is_dead);
    if let Some(transfer) = transfer.filter(|_| !is_dead) {
        found.extend(declared(line, transfer));
        found.extend(controller(line, transfer));
    }
    if line.is_some() && !is_dead {
        found.push(full(evidence));
    }
    found
}

/// Datagrams that this host's interface takes, and that do not arrive.
fn black_hole(line: &LineFound, transfer: Option<&Transfer>) -> Option<Finding> {
    let is_short = line.payload_max < PAYLOAD_ETHERNET;
    let is_taken = line.payload_refused.is_none_or(|refused| refused > line.payload_max + 1);
    let payload = transfer.and_then(|transfer| transfer.line.payload);
    let is_hit = payload.is_none_or(|payload| payload > line.payload_max);
    (is_short && is_taken && is_hit).then(|| {
        let sends = payload.map_or(String::new(), |payload| {
            format!(
                ", and the transfer sends \
                                                                    {payload}"
            )
        });
        Finding::new(
            Cause::MtuBlackHole,
            if payload.is_some() { 0.98 } else { 0.9 },
            format!(
                "datagrams of more than {} bytes of payload are dropped on the way without a \
                message",
                line.payload_max
            ),
            vec![format!(
                "longest payload that arrives: {} bytes; this host's interface takes longer \
                ones{sends}",
                line.payload_max
            )],
        )
    })
}

/// Without a probe: the transfer itself found that its full datagrams are dropped.
fn shrunk(line: Option<&LineFound>, transfer: Option<&Transfer>) -> Option<Finding> {
    let transfer = transfer.filter(|_| line.is_none())?;
    let (full, now) = (transfer.line.payload?, transfer.line.payload_shrunk?);
    (now < full).then(|| {
        Finding::new(
            Cause::MtuBlackHole,
            0.8,
            format!(
                "full datagrams of {full} bytes of payload are dropped on the way without a \
                message: {now} are sent now"
            ),
            vec![format!("goodput {}, loss {}", goodput(transfer), percent(transfer.line.loss))],
        )
    })
}

/// Loss well below the line's rate, where neither its queue nor a policer loses anything.
fn random_loss(line: &LineFound, transfer: Option<&Transfer>) -> Option<Finding> {
    let gentle = line.gentle;
    let loss = gentle.loss();
    if gentle.drops.lost_on_path < LOSSES_MIN || loss < LOSS_MUCH {
        return None;
    }
    // One long run of them is an outage.
    if line.outage_ms >= OUTAGE_MS
        && gentle.losses.burst_longest as f64 >= gentle.drops.lost_on_path as f64 * ONE_RUN
    {
        return None;
    }
    // A controller that keeps its rate through loss loses no more than what is lost.
    let bears = transfer.zip(usage(Some(line), transfer)).is_some_and(|(_, usage)| usage > 0.9);
    // What is lost while others fill the queue is lost by that.
    let is_queue = foreign_queue(line) && gentle.losses.lost_in_queue >= IN_QUEUE;
    let weight = if is_queue || bears && loss < LOSS_HARD { 0.5 } else { 0.93 };
    let kind = if gentle.losses.in_bursts {
        format!(
            "in bursts of {:.1} on average, the longest of {}",
            gentle.losses.burst_mean, gentle.losses.burst_longest
        )
    } else {
        "one by one".to_owned()
    };
    let mut figures = vec![format!(
        "{} of {} datagrams lost at {}, {} of what the line carries; {kind}",
        gentle.drops.lost_on_path,
        gentle.datagrams,
        rate(gentle.offered_bps),
        percent(gentle.offered_bps as f64 / line.available_bps.max(1) as f64)
    )];
    figures.extend(transfer.map(|transfer| against(line, transfer)));
    Some(Finding::new(
        Cause::RandomLoss,
        weight,
        format!("the line loses {} of all datagrams, at any rate", percent(loss)),
        figures,
    ))
}

/// Loss that sets in at a rate, while nothing queues and what passes keeps the sender's pace.
fn policer(line: &LineFound) -> Option<Finding> {
    let load = line.overload?;
    let left = load.offered_bps as f64 * load.left;
    // What a queue that is busy all the time would stretch to, and what would then be lost once it
    // is full.
    let queued = left / load.received_bps.max(1) as f64;
    let excess = 1.0 - 1.0 / queued.max(1.0);
    let drops = load.loss() - line.gentle.loss();
    // Where jitter gathers datagrams, spacing is compared with that of the stream below the rate.
    let spacing = if is_gathered(line) { line.gentle.stretch.max(0.1) } else { 1.0 };
    // What queues is no policer's, but for what a burst of one makes of it.
    let is_policed = queued > QUEUED_LEAST
        && load.delay.late_queue_ms < POLICED_QUEUE_MS + line.gentle.delay.queue_ms
        && !foreign_queue(line)
        && drops > excess / 2.0
        && load.stretch / spacing < 1.0 + (queued - 1.0) * STRETCH_POLICED;
    is_policed.then(|| {
        Finding::new(
            Cause::Policer,
            0.94,
            format!(
                "something on the way drops what exceeds {}: a policer, since nothing queues \
                before it does",
                rate(load.received_bps)
            ),
            vec![
                format!(
                    "at {}: {} lost, delay at most {:.1} ms longer, spacing kept (factor {:.2})",
                    rate(load.offered_bps),
                    percent(load.loss()),
                    load.delay.queue_ms,
                    load.stretch
                ),
                format!(
                    "at {}: {} \
                        lost",
                    rate(line.gentle.offered_bps),
                    percent(line.gentle.loss())
                ),
            ],
        )
    })
}

/// A queue so long that it delays the sender that fills it.
fn queueing(line: Option<&LineFound>, transfer: Option<&Transfer>) -> Option<Finding> {
    let idle = line.map(|line| line.idle_round_trip_ms);
    let idle = idle.or(transfer.and_then(|transfer| transfer.line.shortest_round_trip_ms))?;
    let most = (QUEUE_LONG_MS).max(idle);
    let depth = line.and_then(|line| line.overload).map(|load| load.delay.queue_ms);
    // What varies or stands without our doing is no queue of ours.
    let foreign = line.map_or(0.0, |line| line.rest.spread_ms.max(line.rest.queue_ms));
    let stands = transfer
        .and_then(|transfer| transfer.line.round_trip_ms)
        .map(|loaded| loaded - idle - foreign);
    // The transfer itself must fill it; a long queue that stays empty does no harm.
    let weight = match (depth, stands) {
        (Some(depth), Some(stands)) if depth >= most && stands >= most / 2.0 => 0.9,
        // Without a probe, jitter and others' queues look alike.
        (None, Some(stands)) if stands >= most => 0.7,
        (Some(depth), None) if depth >= most => 0.75,
        (Some(depth), Some(_)) if depth >= most => 0.3,
        _ => return None,
    };
    let figures = [
        Some(format!("round trip at rest {idle:.1} ms")),
        depth.map(|depth| format!("above the line's rate the delay grows by {depth:.0} ms")),
        stands
            .map(|stands| format!("during the transfer the round trip was {stands:.0} ms longer")),
    ];
    Some(Finding::new(
        Cause::Queueing,
        weight,
        format!(
            "a queue of {:.0} ms fills before the line (bufferbloat), at a round trip of {idle:.0} \
            ms",
            depth.or(stands).unwrap_or(0.0)
        ),
        figures.into_iter().flatten().collect(),
    ))
}

/// What happened during the measurement.
fn steps(line: &LineFound) -> Vec<Finding> {
    let noise = line.step_noise_ms * NOISE;
    let mut found = Vec::new();
    let route = line.route_step_ms;
    // Others' queues make steps too, but then the delay wavers on either side.
    let wavers = line.rest.wavers_ms.max(line.gentle.delay.wavers_ms);
    if wavers < route.abs() * STEP_WAVERS
        && route.abs() > noise.max(ROUTE_STEP_MS).max(line.idle_round_trip_ms * ROUTE_STEP_PART)
    {
        let way = if route > 0.0 { "longer" } else { "shorter" };
        found.push(Finding::new(
            Cause::RouteChange,
            0.87,
            format!(
                "the route changed: the round trip at rest became {:.1} ms {way}, and stays so",
                route.abs()
            ),
            vec![format!(
                "step of {route:+.1} ms, {:.1} s after the beginning; the noise is {:.2} ms",
                line.route_step_at_s, line.step_noise_ms
            )],
        ));
    }
    let clock = line.clock_step_ms;
    if clock.abs() > noise.max(CLOCK_STEP_MS) {
        let way = if clock > 0.0 { "forward" } else { "back" };
        found.push(Finding::new(
            Cause::ClockStep,
            0.86,
            format!(
                "a clock was set: the far end's jumped {way} by {:.1} ms against \
                    ours",
                clock.abs()
            ),
            vec![format!(
                "step of {clock:+.1} ms, {:.1} s after the beginning, while the round trip stayed \
                as it was",
                line.clock_step_at_s
            )],
        ));
    }
    found
}

/// The sender keeps to its declared rate, and the line has more.
fn declared(line: Option<&LineFound>, transfer: &Transfer) -> Option<Finding> {
    let classes = transfer.waited.classes;
    if classes >= 0.3 {
        let sentence = format!(
            "the rates given to classes hold the transfer back {} of the time",
            percent(classes)
        );
        return Some(Finding::new(
            Cause::DeclaredRate,
            0.6 + 0.35 * classes,
            sentence,
            vec![waits(transfer)],
        ));
    }
    let declared = transfer.declared_bps.filter(|declared| *declared > 0)?;
    let uses = transfer.reached_bps() as f64 / declared as f64;
    // Headers, reports and repair take up to a fifth of a declared rate.
    if uses < DECLARED_USED || transfer.waited.path < 0.3 {
        return None;
    }
    let weight = match line {
        Some(line) if free(line) as f64 > declared as f64 * DECLARED_LEFT => 0.93,
        Some(_) => return None,
        // The line may have no more.
        None => 0.5,
    };
    let mut figures = vec![format!("declared {}, goodput {}", rate(declared), goodput(transfer))];
    figures.extend(line.map(|line| against(line, transfer)));
    Some(Finding::new(
        Cause::DeclaredRate,
        weight,
        format!("the declared rate of {} holds the transfer back", rate(declared)),
        figures,
    ))
}

/// Nothing else is wrong, and still the line is not used.
fn controller(line: Option<&LineFound>, transfer: &Transfer) -> Option<Finding> {
    if transfer.waited.path < 0.3 || transfer.declared_bps.is_some() {
        return None;
    }
    let name = if transfer.controller.is_empty() {
        "the congestion controller"
    } else {
        &*transfer.controller
    };
    let Some(usage) = usage(line, Some(transfer)) else {
        return Some(Finding::new(
            Cause::Controller,
            // Whatever makes a controller cautious looks like this from the transfer's end.
            0.22,
            format!(
                "the congestion controller ({name}) allows no more; only a probe can say whether \
                the line carries more"
            ),
            vec![
                waits(transfer),
                format!("goodput {}, loss {}", goodput(transfer), percent(transfer.line.loss)),
            ],
        ));
    };
    (usage < USED).then(|| {
        let waited = transfer.waited;
        // A sender that waits for something else too is not held by its controller alone.
        let alone = waited.application + waited.window + waited.buffer < OTHER_WAITS;
        let mut figures = vec![
            waits(transfer),
            format!("controller {name}, loss {}", percent(transfer.line.loss)),
        ];
        figures.extend(line.map(|line| against(line, transfer)));
        Finding::new(
            Cause::Controller,
            if alone { 0.55 + 0.3 * (1.0 - usage) } else { 0.4 },
            format!(
                "the congestion controller ({name}) uses {} of what the line carries",
                percent(usage)
            ),
            figures,
        )
    })
}

/// The line carries what it can.
pub(super) fn full(evidence: &Evidence) -> Finding {
    let (line, transfer) = (evidence.line.as_ref(), evidence.transfer.as_ref());
    let contended = line.zip(transfer).is_some_and(|(line, transfer)| is_contended(line, transfer));
    let (weight, sentence) = match (line, usage(line, transfer), transfer) {
        (Some(line), Some(usage), _) if contended => (
            0.3,
            format!(
                "the transfer uses {} of the {} that others leave",
                percent(usage),
                rate(free(line))
            ),
        ),
        (Some(line), Some(_), Some(transfer))
            if transfer.reached_bps() as f64 > line.available_bps as f64 * MORE =>
        {
            (
                0.5,
                format!(
                    "nothing was found that holds the transfer back: it had {}, more than the \
                    probe brought through",
                    rate(transfer.reached_bps())
                ),
            )
        }
        (Some(line), Some(usage), _) if line.is_at_least && usage >= USED => (
            0.5,
            format!(
                "nothing was found that holds the transfer back: it uses {} of what was tried, and \
                nothing faster was",
                percent(usage)
            ),
        ),
        (_, Some(usage), _) => (
            0.5 + 0.35 * ((usage - USED) / (1.0 - USED)).clamp(-2.0, 1.0),
            format!(
                "nothing holds the transfer back: it uses {} of what the line carries",
                percent(usage)
            ),
        ),
        // Of a transfer over it, nothing is known.
        (Some(line), None, _) if line.is_at_least => (
            0.2,
            format!(
                "nothing was found that would hold a transfer back up to {}; nothing faster was \
                tried",
                rate(line.available_bps)
            ),
        ),
        (Some(line), None, _) => (
            0.2,
            format!(
                "nothing was found that would hold a transfer back: the line carries {}",
                rate(line.available_bps)
            ),
        ),
        (None, None, _) => (
            0.25,
            "nothing speaks for any cause; measure the line too (give its far end)".to_owned(),
        ),
    };
    Finding::new(Cause::LineFull, weight, sentence, line_figures(line, transfer))
}

/// What was measured of the line, and of the transfer over it.
fn line_figures(line: Option<&LineFound>, transfer: Option<&Transfer>) -> Vec<String> {
    let mut figures = Vec::new();
    if let Some(line) = line {
        figures
            .push(format!("the probe brought {} of UDP payload through", rate(line.available_bps)));
        figures.extend(line.overload.map(|load: StreamResult| {
            format!(
                "above that, {} are lost and the delay grows by {:.0} ms",
                percent(load.loss()),
                load.delay.queue_ms
            )
        }));
    }
    if let Some(transfer) = transfer {
        figures.push(format!("goodput {}", goodput(transfer)));
        figures.push(waits(transfer));
    }
    figures
}

/// Bytes. 1,500 bytes of Ethernet less the headers of IPv6 and UDP: programs take a payload of this
/// size for granted.
const PAYLOAD_ETHERNET: u64 = 1_452;

/// Part of the datagrams. At one in a thousand, Reno carries 22 Mbit/s at a round trip of 20 ms and
/// 2.8 Mbit/s at 160 ms (Mathis and others 1997); less loss holds few transfers back.
const LOSS_MUCH: f64 = 0.001;
/// Datagrams. Two losses in a stream of thousands come by chance on any line.
const LOSSES_MIN: u64 = 3;
/// Part of the datagrams. From three in a hundred on, every transfer pays for loss, whatever its
/// controller: it must send that much again.
const LOSS_HARD: f64 = 0.03;

/// Part of the stretch that a busy queue would cause. A queue stretches gaps by all that is offered
/// beyond what passes, a policer not at all; the limit is half-way.
const STRETCH_POLICED: f64 = 0.5;
/// Milliseconds. A policer delays by no more than a burst of some tens of kilobytes takes at the
/// line's rate (64 KiB at 50 Mbit/s: 10.5); a queue before a line holds more.
const POLICED_QUEUE_MS: f64 = 10.0;
/// Factor. Where less than this was offered for what passed, a queue and a policer stretch gaps too
/// nearly alike to be told apart.
const QUEUED_LEAST: f64 = 1.15;

/// Milliseconds. Speech bears 150 one way without harm (ITU-T G.114), and routers are given queues
/// of a round trip of 100 on purpose; a longer queue harms.
const QUEUE_LONG_MS: f64 = 200.0;

/// Milliseconds, as in the rule of outages: a host's own pauses are shorter.
const OUTAGE_MS: f64 = 500.0;
/// Part of all losses. Where one run holds more than half of them, the rest is too little to call
/// the line lossy.
const ONE_RUN: f64 = 0.6;
/// Part of the losses. Of losses by chance, four in ten follow a long delay; eight in ten are a
/// queue's.
const IN_QUEUE: f64 = 0.8;

/// Part of a step. A route has one length before and one after, so that the delay wavers by far
/// less than the step; a third leaves room for jitter.
const STEP_WAVERS: f64 = 0.3;
/// Factor on what a probe found. A transfer may exceed it so far by chance; beyond, the probe found
/// too little.
const MORE: f64 = 1.15;

/// Factor on what pings at rest vary by. Twice that comes by chance now and then, four times hardly
/// ever.
const NOISE: f64 = 4.0;
/// Milliseconds. 200 km of fibre there and back: no route within a town changes by as much.
const ROUTE_STEP_MS: f64 = 2.0;
/// Part of the round trip. A smaller change makes no difference to a transfer.
const ROUTE_STEP_PART: f64 = 0.03;
/// Milliseconds. NTP steps a clock only from 128 on (RFC 5905 11.3), but operators and virtual
/// machines do so from a few.
const CLOCK_STEP_MS: f64 = 5.0;

/// Part of a declared rate. Headers, reports and FEC repair take up to a fifth of it, and chance
/// some more; a transfer that reaches the rest is held by the declared rate.
const DECLARED_USED: f64 = 0.75;
/// Factor. The line must have so much beyond a declared rate for that rate to be the cause; a tenth
/// covers the difference of payload and IP packets.
const DECLARED_LEFT: f64 = 1.1;

/// Part of the time, as in the rules of the ends: waits for a fifth of it are no accident.
const OTHER_WAITS: f64 = 0.2;

/// Part of what a probe finds. Headers and reports take a twentieth of it, and chance a tenth; what
/// is missing beyond both, the controller leaves unused.
const USED: f64 = 0.85;
