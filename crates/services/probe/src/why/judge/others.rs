//! Rules about what others do on the line, and about the order and spacing of datagrams.

use super::share::{JITTER_MS, against, foreign_queue, has_all, shared, usage};
use super::{Finding, percent, rate};
use crate::why::cause::Cause;
use crate::why::evidence::{Evidence, LineFound, Transfer};

/// What the figures speak for.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let Some(line) = &evidence.line else { return Vec::new() };
    let transfer = evidence.transfer.as_ref();
    [other_traffic(line, transfer), reordering(line, transfer), jitter(line, transfer)]
        .into_iter()
        .flatten()
        .collect()
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
    // A transfer with nearly all of the line is not held back by others.
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

/// Part of the line's rate. The estimate of others' share is off by up to a tenth, so that a fifth
/// is no error.
const OTHERS_PLAIN: f64 = 0.2;

/// Part of the datagrams. One in two hundred taken for lost slows Reno down as much as loss of that
/// part does: to 1.3 Mbit/s at a round trip of 160 ms (Mathis and others 1997).
const REORDERED_MUCH: f64 = 0.005;
/// Datagrams. A sender takes a datagram for lost when three later ones have arrived (RFC 5681 3.2,
/// RFC 9002 6.1.1).
const REORDERED_BY: u64 = 3;
/// Part of the round trip. QUIC waits an eighth beyond the round trip before it takes a datagram
/// for lost (RFC 9002 6.1.2); half of that already disturbs a sender that goes by delay.
const JITTER_PART: f64 = 0.06;
/// Weight. A fault that does not keep the transfer from the line's rate stands beside the verdict,
/// below every cause that does.
const BORNE: f64 = 0.5;
/// Part of what the line carries. A transfer that uses this much has lost no more to the fault than
/// headers and the start explain.
const BORNE_FROM: f64 = 0.88;
