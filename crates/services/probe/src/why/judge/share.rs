//! Who has how much of the line: the transfer, and others.

use super::rate;
use crate::why::evidence::{LineFound, OtherTraffic, Transfer};

/// What others offer without giving way, where that is enough to matter.
pub(super) fn shared(line: &LineFound) -> Option<OtherTraffic> {
    line.shared
        .filter(|_| !is_gathered(line))
        .filter(|shared| shared.others_bps as f64 >= shared.line_bps as f64 * OTHERS_LEAST)
}

/// Whether others fill the line's queue. Below the line's rate the delay then comes and goes
/// slowly, or losses come where it is longest; or the delay wavers at rest. Jitter is different: it
/// has no memory, and spreads far wider than its floor wavers.
pub(super) fn foreign_queue(line: &LineFound) -> bool {
    let (gentle, rest) = (line.gentle, line.rest);
    let varies = gentle.delay.wavers_ms.max(gentle.delay.jitter_ms);
    let slowly = varies >= FOREIGN_MS && gentle.delay.follows >= FOLLOWS;
    let overflows = varies >= FOREIGN_MS
        && gentle.drops.lost_on_path >= LOSSES_MIN
        && gentle.losses.lost_in_queue >= IN_QUEUE;
    let idle = rest.wavers_ms >= FOREIGN_MS && rest.wavers_ms >= rest.spread_ms * FLOOR_PART;
    // Delay that varies at rest, and not beside a steady stream, comes from others' bursts.
    let bursts =
        rest.spread_ms >= JITTER_MS && gentle.delay.jitter_ms < rest.spread_ms * BURST_PART;
    slowly || overflows || (idle || bursts) && !is_gathered(line)
}

/// Whether jitter that keeps the order gathers the datagrams of a stream: their gaps, the longest
/// left out, become shorter.
pub(super) fn is_gathered(line: &LineFound) -> bool {
    line.gentle.stretch < GATHERED
        && line.gentle.delay.follows < FOLLOWS
        && line.gentle.drops.lost_on_path < LOSSES_MIN
}

/// Whether the transfer has nearly all of the line, whatever others send.
pub(super) fn has_all(line: &LineFound, transfer: &Transfer) -> bool {
    let whole =
        shared(line).map_or(line.available_bps, |shared| shared.line_bps.max(line.available_bps));
    transfer.reached_bps() as f64 >= whole as f64 * HAS_ALL
}

/// Whether others hold the transfer back: it has what they leave.
pub(super) fn is_contended(line: &LineFound, transfer: &Transfer) -> bool {
    (shared(line).is_some() || foreign_queue(line)) && !has_all(line, transfer)
}

/// The part of the line's rate that the transfer used, at most all of it; `None` where one of both
/// is not known.
pub(super) fn usage(line: Option<&LineFound>, transfer: Option<&Transfer>) -> Option<f64> {
    let (line, transfer) = line.zip(transfer)?;
    (line.available_bps > 0).then(|| transfer.reached_bps() as f64 / carries(line, transfer) as f64)
}

/// UDP payload that the line has for a sender that gives way to others, in bit/s.
pub(super) fn free(line: &LineFound) -> u64 {
    let left = shared(line).map(|shared| shared.line_bps.saturating_sub(shared.others_bps));
    left.map_or(line.available_bps, |left| left.min(line.available_bps)).max(1)
}

/// UDP payload that the line carries, in bit/s: what is free, or what the transfer had where that
/// is more.
fn carries(line: &LineFound, transfer: &Transfer) -> u64 {
    free(line).max(transfer.reached_bps())
}

/// What the transfer had against what the line has, in words.
pub(super) fn against(line: &LineFound, transfer: &Transfer) -> String {
    let reached = transfer.reached_bps();
    if reached > free(line) {
        return format!("goodput {}; the probe found {}", goodput(transfer), rate(free(line)));
    }
    format!("goodput {} where the line carries {}", goodput(transfer), rate(free(line)))
}

/// The goodput in words, with that after the start where the two differ.
pub(super) fn goodput(transfer: &Transfer) -> String {
    let (all, steady) = (transfer.goodput_bps, transfer.reached_bps());
    if steady as f64 > all as f64 * START {
        format!("{} ({} once started)", rate(all), rate(steady))
    } else {
        rate(all)
    }
}

/// Part of the line's rate. On a line that nobody else uses, two streams above its rate seem to
/// leave up to a tenth to others by chance.
const OTHERS_LEAST: f64 = 0.1;
/// Milliseconds. Three packets of 1,500 bytes at 10 Mbit/s take 3.6: single packets of other
/// programs delay ours by less, a queue by more.
const FOREIGN_MS: f64 = 4.0;
/// Part of the spread of round trips at rest. The shortest of each ten, which jitter makes, lie
/// within a tenth of the spread; floors that waver by a third of it are lifted by a queue.
const FLOOR_PART: f64 = 0.35;
/// Part of the spread at rest that is left as jitter beside a stream. Jitter of the line that keeps
/// datagrams in order gathers those of a stream, which leaves two fifths of it; half of that means
/// that the spread at rest came from others' bursts.
const BURST_PART: f64 = 0.2;
/// Correlation. Delays 60 ms apart have none by chance, and a queue that others fill gives them
/// more than a half.
pub(super) const FOLLOWS: f64 = 0.3;
/// Datagrams. Fewer losses may all be near the longest delay by chance.
const LOSSES_MIN: u64 = 5;
/// Part of the losses that come near the longest delay. A queue that overflows loses nearly all of
/// them there, chance four in ten.
const IN_QUEUE: f64 = 0.85;
/// Factor on the gaps. Below a line's rate gaps stay as they were sent, to a hundredth or two.
const GATHERED: f64 = 0.92;
/// Part of what a probe brings through. The probe pushes others aside, so that a transfer with
/// nine tenths of it has nothing left to gain.
const HAS_ALL: f64 = 0.9;
/// Milliseconds. The timers of hosts and the frames of radio links make less.
pub(super) const JITTER_MS: f64 = 10.0;
/// Factor. From here on the slow start of a controller has cost so much of the run that both rates
/// are shown.
const START: f64 = 1.05;
