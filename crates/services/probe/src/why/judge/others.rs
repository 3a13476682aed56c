//! Rules about what others do on the line, and about the order and spacing of datagrams.

use super::line::{against, usage};
use super::{Finding, percent, rate};
use crate::why::cause::Cause;
use crate::why::evidence::{Evidence, LineFound, OtherTraffic, Transfer};

/// What the figures speak for.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let Some(line) = &evidence.line else { return Vec::new() };
    let transfer = evidence.transfer.as_ref();
    [other_traffic(line, transfer), reordering(line, transfer), jitter(line, transfer)]
        .into_iter()
        .flatten()
        .collect()
}

/// What others offer without giving way, where it is a part that counts.
pub(super) fn shared(line: &LineFound) -> Option<OtherTraffic> {
    line.shared
        .filter(|_| !is_gathered(line))
        .filter(|shared| shared.others_bps as f64 >= shared.line_bps as f64 * OTHERS_LEAST)
}

/// A queue that is not ours: below the line's rate the delay comes and goes slowly, or losses come
/// where it is longest; or it wavers at rest. Jitter has no memory, and spreads far wider than its
/// floor wavers.
pub(super) fn foreign_queue(line: &LineFound) -> bool {
    let (gentle, rest) = (line.gentle, line.rest);
    let varies = gentle.delay.wavers_ms.max(gentle.delay.jitter_ms);
    let slowly = varies >= FOREIGN_MS && gentle.delay.follows >= FOLLOWS;
    let overflows = varies >= FOREIGN_MS
        && gentle.drops.lost_on_path >= LOSSES_MIN
        && gentle.losses.lost_in_queue >= IN_QUEUE;
    let idle = rest.wavers_ms >= FOREIGN_MS && rest.wavers_ms >= rest.spread_ms * FLOOR_PART;
    // What varies at rest and not beside a steady stream comes in bursts.
    let bursts =
        rest.spread_ms >= JITTER_MS && gentle.delay.jitter_ms < rest.spread_ms * BURST_PART;
    slowly || overflows || (idle || bursts) && !is_gathered(line)
}

/// Jitter that keeps the order gathers the datagrams of a stream: their gaps, the longest left out,
/// become shorter.
pub(super) fn is_gathered(line: &LineFound) -> bool {
    line.gentle.stretch < GATHERED
        && line.gentle.delay.follows < FOLLOWS
        && line.gentle.drops.lost_on_path < LOSSES_MIN
}

fn other_traffic(line: &LineFound, transfer: Option<&Transfer>) -> Option<Finding> {
    let (shared, queue) = (shared(line), foreign_queue(line));
    let weight = match (shared, queue) {
        (Some(_), true) => 0.95,
        (Some(shared), false)
            if shared.others_bps as f64 >= shared.line_bps as f64 * OTHERS_PLAIN =>
        {
            0.92
        }
        (Some(_), false) => 0.75,
        (None, true) => 0.9,
        (None, false) => return None,
    };
    // Who has nearly all of the line is not held back by others.
    let has_all = transfer.is_some_and(|transfer| has_all(line, transfer));
    let sentence = match shared {
        Some(shared) => format!(
            "others use the line: of the {} that it carries they take {}",
            rate(shared.line_bps),
            rate(shared.others_bps)
        ),
        None => format!(
            "others use the line: a queue that is not ours comes and goes, by {:.0} ms",
            line.gentle.delay.wavers_ms.max(line.rest.wavers_ms)
        ),
    };
    let mut figures = vec![
        format!(
            "at rest the delay wavers by {:.1} ms, and stands {:.1} ms above the shortest",
            line.rest.wavers_ms, line.rest.queue_ms
        ),
        format!(
            "with {} of ours it wavers by {:.1} ms",
            rate(line.gentle.offered_bps),
            line.gentle.delay.wavers_ms
        ),
    ];
    if let (Some(_), Some(load)) = (shared, line.overload) {
        figures.push(format!(
            "of {} offered {} came through; of more, more",
            rate(load.offered_bps),
            rate(load.received_bps)
        ));
    }
    figures.extend(transfer.map(|transfer| against(line, transfer)));
    Some(Finding::new(Cause::OtherTraffic, if has_all { BORNE } else { weight }, sentence, figures))
}

/// The transfer has the line to itself, whatever others may send.
fn has_all(line: &LineFound, transfer: &Transfer) -> bool {
    let whole =
        shared(line).map_or(line.available_bps, |shared| shared.line_bps.max(line.available_bps));
    transfer.reached_bps() as f64 >= whole as f64 * HAS_ALL
}

/// Others hold the transfer back: what it has is what they leave.
pub(super) fn is_contended(line: &LineFound, transfer: &Transfer) -> bool {
    (shared(line).is_some() || foreign_queue(line)) && !has_all(line, transfer)
}

/// Datagrams that are overtaken by so many that programs take them for lost.
fn reordering(line: &LineFound, transfer: Option<&Transfer>) -> Option<Finding> {
    let gentle = line.gentle;
    if gentle.reordered < REORDERED_MUCH || gentle.reordered_by < REORDERED_BY {
        return None;
    }
    let weight = match (transfer, is_borne(line, transfer)) {
        (None, _) => 0.93,
        (Some(_), true) => BORNE,
        (Some(_), false) => 0.94,
    };
    let mut figures = vec![format!(
        "at {}: {} of the datagrams come after one that was sent later, behind {} others at most; \
        {} lost",
        rate(gentle.offered_bps),
        percent(gentle.reordered),
        gentle.reordered_by,
        percent(gentle.loss())
    )];
    if let Some(transfer) = transfer {
        figures.push(format!("the transfer took {} for lost", percent(transfer.line.loss)));
        figures.push(against(line, transfer));
    }
    let sentence = format!(
        "datagrams overtake each other on the way ({}): a sender takes what is late for lost, and \
        slows down",
        percent(gentle.reordered)
    );
    Some(Finding::new(Cause::Reordering, weight, sentence, figures))
}

/// Delay that varies from one datagram to the next, without a queue.
fn jitter(line: &LineFound, transfer: Option<&Transfer>) -> Option<Finding> {
    let (gentle, rest) = (line.gentle, line.rest);
    let varies = gentle.delay.jitter_ms.max(rest.spread_ms);
    let is_queue = foreign_queue(line);
    let is_much = varies >= JITTER_MS.max(line.idle_round_trip_ms * JITTER_PART);
    if !is_much
        || is_queue
        || gentle.reordered >= REORDERED_MUCH && gentle.reordered_by >= REORDERED_BY
    {
        return None;
    }
    let weight = match (transfer, is_borne(line, transfer)) {
        (None, _) => 0.8,
        (Some(_), true) => BORNE,
        (Some(_), false) => 0.88,
    };
    let mut figures = vec![format!(
        "delay varies by {varies:.0} ms from one datagram to the next; the shortest ones stay as \
        they are, within {:.1} ms: that is no queue",
        gentle.delay.wavers_ms
    )];
    figures.extend(transfer.map(|transfer| against(line, transfer)));
    let sentence = format!(
        "the delay varies by {varies:.0} ms from one datagram to the next: a sender that goes by \
        delay takes that for a queue"
    );
    Some(Finding::new(Cause::Jitter, weight, sentence, figures))
}

/// The transfer has what the line carries all the same.
fn is_borne(line: &LineFound, transfer: Option<&Transfer>) -> bool {
    usage(Some(line), transfer).is_some_and(|usage| usage >= BORNE_FROM)
}

/// Streams above a line's rate that nobody else uses differ by less.
const OTHERS_LEAST: f64 = 0.1;
/// Nothing of chance does that.
const OTHERS_PLAIN: f64 = 0.2;
/// Three full packets at 10 Mbit/s: other programs' single packets delay ours by less.
const FOREIGN_MS: f64 = 4.0;
/// Of ten round trips by chance, the shortest lies within a tenth of their spread.
const FLOOR_PART: f64 = 0.35;
/// Jitter that keeps datagrams in order gathers those of a stream: two fifths of it are left.
const BURST_PART: f64 = 0.2;
/// Of chance, delays 60 ms apart have nothing in common.
const FOLLOWS: f64 = 0.3;
/// Fewer losses may be near the longest delay by chance, and nearly all of more are not.
const LOSSES_MIN: u64 = 5;
const IN_QUEUE: f64 = 0.85;
/// Below a line's rate, gaps stay as they were.
const GATHERED: f64 = 0.92;
/// Of what a probe brings through when it pushes others aside.
const HAS_ALL: f64 = 0.9;

/// One datagram in two hundred, as in the loss that slows Reno down.
const REORDERED_MUCH: f64 = 0.005;
/// What is three behind counts as lost (RFC 5681 3.2, RFC 9002 6.1.1).
const REORDERED_BY: u64 = 3;
/// Timers of hosts and of radio links' frames are below it.
const JITTER_MS: f64 = 10.0;
/// And of the round trip: an eighth is what QUIC waits beyond it (RFC 9002 6.1.2), half of that is
/// felt.
const JITTER_PART: f64 = 0.06;
/// What does not keep a transfer from the line's rate is told beside what does.
const BORNE: f64 = 0.5;
/// Of what the line carries.
const BORNE_FROM: f64 = 0.88;
