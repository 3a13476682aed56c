//! Rules about a line that carries nothing, for a time or at all.

use super::ends::waits;
use super::processors::{BUSY_OFTEN, held};
use super::{Finding, percent, rate};
use crate::why::cause::Cause;
use crate::why::evidence::{Evidence, LineFound, ObservedEnd, Silence, Transfer};

/// What the figures speak for.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let (line, transfer) = (evidence.line.as_ref(), evidence.transfer.as_ref());
    if let Some(transfer) = transfer.filter(|transfer| is_dead(transfer)) {
        return vec![dead(line, transfer)];
    }
    outage(line, transfer).into_iter().collect()
}

/// There is something to send, and nothing of it arrives.
pub(super) fn is_dead(transfer: &Transfer) -> bool {
    transfer.seen_from == ObservedEnd::Sender
        && transfer.goodput_bps == 0
        && transfer.waited.application < IDLE
}

/// The silence of a transfer, where it is none of the line's round trip and of what is lost anyway.
fn silence(transfer: Option<&Transfer>) -> Option<Silence> {
    let transfer = transfer?;
    let trip = transfer
        .line
        .round_trip_ms
        .unwrap_or(0.0)
        .max(transfer.line.shortest_round_trip_ms.unwrap_or(0.0))
        / 1e3;
    transfer.silence.filter(|silence| {
        silence.seconds >= SILENT_LEAST.max(SILENT_TRIPS * trip) && silence.of_s > 0.0
    })
}

fn dead(line: Option<&LineFound>, transfer: &Transfer) -> Finding {
    let lost = format!(
        "{} of the datagrams sent or sent again are known to be lost",
        percent(transfer.line.loss)
    );
    let mut figures = vec![format!("goodput {}", rate(0)), waits(transfer), lost];
    let heard = transfer.silence.filter(|silence| silence.seconds < silence.of_s * HEARD);
    if let Some(silence) = heard {
        // Short datagrams come and go, those with data do not: unless the probe says that long ones
        // pass.
        let payload = transfer.line.payload.unwrap_or(0);
        let passes = line.is_some_and(|line| line.payload_max >= payload);
        figures.push(format!(
            "the far end was heard all the while, but for {:.1} s; full datagrams have {payload} \
            bytes of payload",
            silence.seconds
        ));
        if payload > 0 && !passes {
            let sentence = format!(
                "short datagrams arrive and full ones of {payload} bytes do not: packets longer \
                than the path MTU are dropped without a message"
            );
            return Finding::new(Cause::MtuBlackHole, 0.92, sentence, figures);
        }
    }
    if let Some(silence) = transfer.silence.filter(|_| heard.is_none()) {
        figures.push(format!(
            "nothing was heard of the far end for {:.1} of {:.1} s",
            silence.seconds, silence.of_s
        ));
    }
    let sentence =
        "nothing arrives at the far end: the line is out, or something on the way drops all of it"
            .to_owned();
    Finding::new(Cause::Outage, if heard.is_none() { 0.95 } else { 0.7 }, sentence, figures)
}

fn outage(line: Option<&LineFound>, transfer: Option<&Transfer>) -> Option<Finding> {
    let probed = line.map(|line| line.outage_ms / 1e3).filter(|seconds| *seconds >= SILENT_LEAST);
    let silent = silence(transfer);
    let part = silent.map_or(0.0, |silence| silence.seconds / silence.of_s);
    let weight = match (silent, probed, transfer) {
        // A host that has no time answers late.
        (Some(_), None, Some(transfer)) if is_busy(transfer) => 0.35,
        (Some(silence), None, Some(transfer)) if is_held(transfer, silence) => 0.45,
        (Some(_), Some(_), _) => 0.95,
        (Some(_), None, _) => 0.7 + 0.25 * (part / PART_PLAIN).min(1.0),
        (None, Some(_), None) => 0.85,
        // The transfer saw none: it was later.
        (None, Some(_), Some(transfer)) if transfer.silence.is_some() => 0.45,
        (None, Some(_), Some(_)) => 0.75,
        (None, None, _) => return None,
    };
    let mut figures = Vec::new();
    if let Some(silence) = silent {
        figures.push(format!(
            "nothing was heard of the far end for {:.1} s, from {:.1} s on, of {:.1} s",
            silence.seconds, silence.at_s, silence.of_s
        ));
    }
    figures.extend(
        probed.map(|seconds| format!("nothing of the probe came through for {seconds:.1} s")),
    );
    if let Some(transfer) = transfer {
        figures.push(format!("goodput {}, the outage included", rate(transfer.goodput_bps)));
    }
    let seconds = silent.map_or(0.0, |silence| silence.seconds).max(probed.unwrap_or(0.0));
    Some(Finding::new(
        Cause::Outage,
        weight,
        format!("the line was out for {seconds:.1} s"),
        figures,
    ))
}

/// Either end has no processor time left.
fn is_busy(transfer: &Transfer) -> bool {
    let shares = [transfer.threads.sender_share, transfer.threads.receiver_share];
    shares.into_iter().flatten().any(|share| share >= BUSY_OFTEN)
        || [transfer.threads.sender_lack, transfer.threads.receiver_lack]
            .into_iter()
            .any(|lack| held(lack).is_some())
}

/// The receiver lets nothing more be under way, and speaks again when its disk has taken some.
fn is_held(transfer: &Transfer, silence: Silence) -> bool {
    transfer.waited.window >= HELD && silence.seconds < HELD_SILENT_LEAST
}

/// Part of the time. A sender with nothing to send for half of it and more does not need the line,
/// so that nothing arriving proves nothing.
const IDLE: f64 = 0.5;
/// Part of the time of silence below which the far end counts as heard. The last answers to what
/// was sent before an outage come within a round trip; a far end that is heard for two fifths of
/// the time does more than that.
const HEARD: f64 = 0.6;
/// Seconds. A host's pauses are shorter, and so is what a processor quota stops.
const SILENT_LEAST: f64 = 0.5;
/// Part of the time that the sender waits for flow control.
const HELD: f64 = 0.5;
/// Seconds. A disk pauses for less between two writes.
const HELD_SILENT_LEAST: f64 = 2.0;
/// Round trips. A few reports lost in a row make a shorter silence.
const SILENT_TRIPS: f64 = 4.0;
/// Part of the time. An outage that takes a fifth of it is the first thing to report.
const PART_PLAIN: f64 = 0.2;
