//! Rules about the line, and about what a controller makes of it.

use super::ends::waits;
use super::{Finding, percent, rate};
use crate::why::cause::Cause;
use crate::why::evidence::{Evidence, LineFound, Load, Transfer};

/// What the line's figures speak for.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let (line, transfer) = (evidence.line.as_ref(), evidence.transfer.as_ref());
    let mut found = Vec::new();
    if let Some(line) = line {
        found.extend(black_hole(line, transfer));
        found.extend(random_loss(line, transfer));
        found.extend(policer(line));
        found.extend(steps(line));
    }
    found.extend(queueing(line, transfer));
    if let Some(transfer) = transfer {
        found.extend(declared(line, transfer));
        found.extend(controller(line, transfer));
    }
    if line.is_some() {
        found.push(full(evidence));
    }
    found
}

/// Datagrams that this host's interface takes, and that do not arrive.
fn black_hole(line: &LineFound, transfer: Option<&Transfer>) -> Option<Finding> {
    let is_short = line.payload_max < PAYLOAD_ETHERNET;
    let is_taken = line.payload_refused.is_none_or(|refused| refused > line.payload_max + 1);
    let payload = transfer.and_then(|transfer| transfer.payload);
    let is_hit = payload.is_none_or(|payload| payload > line.payload_max);
    (is_short && is_taken && is_hit).then(|| {
        let sends = payload.map_or(String::new(), |payload| format!(", and the transfer sends {payload}"));
        Finding::new(
            Cause::MtuBlackHole,
            if payload.is_some() { 0.98 } else { 0.9 },
            format!(
                "datagrams of more than {} bytes of payload vanish on the way, and nobody says so",
                line.payload_max
            ),
            vec![format!(
                "longest payload that arrives: {} bytes; this host's interface takes longer ones{sends}",
                line.payload_max
            )],
        )
    })
}

/// Loss well below the line's rate, where neither its queue nor a policer loses anything.
fn random_loss(line: &LineFound, transfer: Option<&Transfer>) -> Option<Finding> {
    let gentle = line.gentle;
    let loss = gentle.loss();
    if gentle.lost_on_path < LOSSES_MIN || loss < LOSS_MUCH {
        return None;
    }
    // A controller that keeps its rate through loss loses no more than what is lost.
    let bears = transfer.zip(usage(Some(line), transfer)).is_some_and(|(_, usage)| usage > 0.9);
    let weight = if bears && loss < LOSS_HARD { 0.5 } else { 0.93 };
    let kind = if gentle.in_bursts { "in bursts" } else { "one by one" };
    let mut figures = vec![format!(
        "{} of {} datagrams lost at {}, {} of what the line carries; {kind}",
        gentle.lost_on_path,
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
    // What a queue that is busy all the time would stretch to, and what would then be lost once it is full.
    let queued = left / load.received_bps.max(1) as f64;
    let excess = 1.0 - 1.0 / queued.max(1.0);
    let drops = load.loss() - line.gentle.loss();
    let is_policed = queued > QUEUED_LEAST
        && drops > excess / 2.0
        && load.stretch < 1.0 + (queued - 1.0) * STRETCH_POLICED;
    is_policed.then(|| {
        Finding::new(
            Cause::Policer,
            0.94,
            format!(
                "something on the way drops what exceeds {}: a policer, since nothing queues before it does",
                rate(load.received_bps)
            ),
            vec![
                format!(
                    "at {}: {} lost, delay at most {:.1} ms longer, spacing kept (factor {:.2})",
                    rate(load.offered_bps),
                    percent(load.loss()),
                    load.queue_ms,
                    load.stretch
                ),
                format!("at {}: {} lost", rate(line.gentle.offered_bps), percent(line.gentle.loss())),
            ],
        )
    })
}

/// A queue so long that whoever fills it waits for it.
fn queueing(line: Option<&LineFound>, transfer: Option<&Transfer>) -> Option<Finding> {
    let idle = line.map(|line| line.idle_round_trip_ms);
    let idle = idle.or(transfer.and_then(|transfer| transfer.shortest_round_trip_ms))?;
    let most = (QUEUE_LONG_MS).max(idle);
    let depth = line.and_then(|line| line.overload).map(|load| load.queue_ms);
    let stands = transfer.and_then(|transfer| transfer.round_trip_ms).map(|loaded| loaded - idle);
    // The transfer itself must fill it; a long queue that stays empty harms nobody.
    let weight = match (depth, stands) {
        (Some(depth), Some(stands)) if depth >= most && stands >= most / 2.0 => 0.9,
        (None, Some(stands)) if stands >= most => 0.8,
        (Some(depth), None) if depth >= most => 0.75,
        (Some(depth), Some(_)) if depth >= most => 0.3,
        _ => return None,
    };
    let figures = [
        Some(format!("round trip at rest {idle:.1} ms")),
        depth.map(|depth| format!("above the line's rate the delay grows by {depth:.0} ms")),
        stands.map(|stands| format!("during the transfer the round trip was {stands:.0} ms longer")),
    ];
    Some(Finding::new(
        Cause::Queueing,
        weight,
        format!(
            "a queue of {:.0} ms fills before the line (bufferbloat), at a round trip of {idle:.0} ms",
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
    if route.abs() > noise.max(ROUTE_STEP_MS).max(line.idle_round_trip_ms * ROUTE_STEP_PART) {
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
            format!("a clock was set: the far end's jumped {way} by {:.1} ms against ours", clock.abs()),
            vec![format!(
                "step of {clock:+.1} ms, {:.1} s after the beginning, while the round trip stayed as it was",
                line.clock_step_at_s
            )],
        ));
    }
    found
}

/// The sender keeps to the rate that it was told, and the line has more.
fn declared(line: Option<&LineFound>, transfer: &Transfer) -> Option<Finding> {
    let classes = transfer.waited.classes;
    if classes >= 0.3 {
        let sentence =
            format!("the rates given to classes hold the transfer back {} of the time", percent(classes));
        return Some(Finding::new(
            Cause::DeclaredRate,
            0.6 + 0.35 * classes,
            sentence,
            vec![waits(transfer)],
        ));
    }
    let declared = transfer.declared_bps.filter(|declared| *declared > 0)?;
    let goodput = transfer.goodput_bps as f64;
    let uses = goodput / declared as f64;
    // Headers, reports and repair take up to a fifth of a declared rate.
    if uses < DECLARED_USED || transfer.waited.path < 0.3 {
        return None;
    }
    let weight = match line {
        Some(line) if line.available_bps as f64 > declared as f64 * DECLARED_LEFT => 0.93,
        Some(_) => return None,
        None => 0.6,
    };
    let mut figures = vec![format!("declared {}, goodput {}", rate(declared), rate(transfer.goodput_bps))];
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
    let name =
        if transfer.controller.is_empty() { "the congestion controller" } else { &*transfer.controller };
    let Some(usage) = usage(line, Some(transfer)) else {
        return Some(Finding::new(
            Cause::Controller,
            0.4,
            format!(
                "the congestion controller ({name}) lets no more go; whether the line has more, only a probe of it can say"
            ),
            vec![
                waits(transfer),
                format!("goodput {}, loss {}", rate(transfer.goodput_bps), percent(transfer.loss)),
            ],
        ));
    };
    (usage < USED).then(|| {
        let waited = transfer.waited;
        // A sender that waits for something else too is not held by its controller alone.
        let alone = waited.application + waited.window + waited.buffer < OTHER_WAITS;
        let mut figures =
            vec![waits(transfer), format!("controller {name}, loss {}", percent(transfer.loss))];
        figures.extend(line.map(|line| against(line, transfer)));
        Finding::new(
            Cause::Controller,
            if alone { 0.55 + 0.3 * (1.0 - usage) } else { 0.4 },
            format!("the congestion controller ({name}) uses {} of what the line carries", percent(usage)),
            figures,
        )
    })
}

/// The line carries what it can.
pub(super) fn full(evidence: &Evidence) -> Finding {
    let (line, transfer) = (evidence.line.as_ref(), evidence.transfer.as_ref());
    let (weight, sentence) = match (line, usage(line, transfer)) {
        (_, Some(usage)) => (
            0.5 + 0.35 * ((usage - USED) / (1.0 - USED)).clamp(-2.0, 1.0),
            format!(
                "nothing holds the transfer back: it uses {} of what the line carries",
                percent(usage.min(1.0))
            ),
        ),
        (Some(line), None) if line.is_at_least => (
            0.5,
            format!(
                "nothing was found that would hold a transfer back up to {}; nothing faster was tried",
                rate(line.available_bps)
            ),
        ),
        (Some(line), None) => (
            0.6,
            format!(
                "nothing was found that would hold a transfer back: the line carries {}",
                rate(line.available_bps)
            ),
        ),
        (None, None) => {
            (0.25, "nothing speaks for any cause; measure the line too (give its far end)".to_owned())
        }
    };
    let mut figures = Vec::new();
    if let Some(line) = line {
        figures.push(format!("the line carries {} of UDP payload", rate(line.available_bps)));
        figures.extend(line.overload.map(|load: Load| {
            format!(
                "above that, {} are lost and the delay grows by {:.0} ms",
                percent(load.loss()),
                load.queue_ms
            )
        }));
    }
    if let Some(transfer) = transfer {
        figures.push(format!("goodput {}", rate(transfer.goodput_bps)));
        figures.push(waits(transfer));
    }
    Finding::new(Cause::LineFull, weight, sentence, figures)
}

/// The part of the line's rate that the transfer used; `None` where one of both is not known.
fn usage(line: Option<&LineFound>, transfer: Option<&Transfer>) -> Option<f64> {
    let (line, transfer) = line.zip(transfer)?;
    (line.available_bps > 0).then(|| transfer.goodput_bps as f64 / line.available_bps as f64)
}

fn against(line: &LineFound, transfer: &Transfer) -> String {
    format!("goodput {} where the line carries {}", rate(transfer.goodput_bps), rate(line.available_bps))
}

/// 1,500 bytes of Ethernet less the headers of IPv6 and UDP: what programs take for granted.
const PAYLOAD_ETHERNET: u64 = 1_452;

/// One lost in a thousand: Reno then carries 22 Mbit/s at a round trip of 20 ms and 2.8 at 160 (Mathis and others 1997).
const LOSS_MUCH: f64 = 0.001;
/// Fewer losses may be chance.
const LOSSES_MIN: u64 = 3;
/// What every transfer feels, whatever its controller.
const LOSS_HARD: f64 = 0.03;

/// A queue stretches by all that is offered beyond what passes, a policer by nothing; half lies between.
const STRETCH_POLICED: f64 = 0.5;
/// Offered so much more than passed, or else the two are too near to each other to be told apart.
const QUEUED_LEAST: f64 = 1.15;

/// Longer than what speech bears one way without harm, 150 ms (ITU-T G.114), and than the queues that routers are given on
/// purpose, a round trip of 100 ms.
const QUEUE_LONG_MS: f64 = 200.0;

/// Steps must exceed so many times what pings at rest vary by.
const NOISE: f64 = 4.0;
/// 200 km of fibre there and back: no route within a town.
const ROUTE_STEP_MS: f64 = 2.0;
/// And so much of the whole.
const ROUTE_STEP_PART: f64 = 0.03;
/// NTP steps a clock only from 128 ms on (RFC 5905 11.3), but operators and virtual machines do from a few.
const CLOCK_STEP_MS: f64 = 5.0;

/// Of a declared rate, headers, reports and repair taken off.
const DECLARED_USED: f64 = 0.75;
/// What the line must have beyond a declared rate for that to be what holds it back; the one is payload, the other IP packets.
const DECLARED_LEFT: f64 = 1.1;

/// As in the rules of the ends: a fifth of the time is no accident.
const OTHER_WAITS: f64 = 0.2;

/// Goodput over what a probe finds: headers and reports take a twentieth; what is missing beyond a tenth more, the controller
/// leaves.
const USED: f64 = 0.85;
