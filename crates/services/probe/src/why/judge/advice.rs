//! Advice on a cause, where figures of the transfer make the usual advice void or more precise.

use super::processors::{Held, held};
use crate::why::cause::Cause;
use crate::why::evidence::{Evidence, SourceKind, Transfer};

/// What an operator does about `cause`, and has not done already.
pub(super) fn of(cause: Cause, evidence: &Evidence) -> &'static str {
    let Some(transfer) = &evidence.transfer else { return cause.what_to_do() };
    let better = match cause {
        Cause::Application => source(transfer.feed.source),
        Cause::SenderProcessor => held(transfer.threads.sender_lack).map(processor),
        Cause::ReceiverProcessor => held(transfer.threads.receiver_lack).map(processor),
        Cause::DeclaredRate if transfer.waited.classes >= CLASSES_MUCH => Some(
            "give the class a greater share or no upper rate (`skyhaul config classes` shows the \
            tree)",
        ),
        _ => control(cause, transfer),
    };
    better.unwrap_or(cause.what_to_do())
}

const fn source(kind: SourceKind) -> Option<&'static str> {
    match kind {
        SourceKind::Live => Some(
            "nothing: what the receiver brings goes out at once; where more was to come, look at \
            the antenna and its demodulator",
        ),
        SourceKind::File => Some(
            "see whether the disk that the source reads from is slow, or whether its `rate` is \
            meant",
        ),
        SourceKind::Offered => {
            Some("offer more (`--offer`), where more is wanted: the line was not tried")
        }
        SourceKind::Program => None,
    }
}

const fn processor(held: Held) -> &'static str {
    match held {
        Held::Quota => {
            "raise the processor quota of the service or container that it runs in (`CPUQuota=` in \
            its unit, `cpu.max` of its \
             control group)"
        }
        Held::Host => {
            "give the virtual machine processors of its own, or move it to a host that is less full"
        }
        Held::Programs => {
            "see with top which programs take the processors; give this one a higher priority \
            (`Nice=`, `CPUWeight=`) or a \
             machine of its own"
        }
    }
}

/// Of the controller in use: what it does already needs no advice.
fn control(cause: Cause, transfer: &Transfer) -> Option<&'static str> {
    let (is_adaptive, is_line) = (transfer.controller == "adaptive", transfer.controller == "line");
    let bears_loss = is_adaptive || is_line || transfer.controller.starts_with("bbr");
    match cause {
        Cause::RandomLoss if bears_loss => Some(
            "have the line mended; the controller in use does not take loss for congestion, so \
            that nothing is left to change here",
        ),
        Cause::Controller if is_adaptive => Some(
            "use `line` with the line's rate where the line is your own; look again: what others \
            sent meanwhile may be over",
        ),
        Cause::Controller if is_line => Some(
            "look again: the controller keeps to the declared rate and gives way to queues alone; \
            what others sent meanwhile may be over",
        ),
        Cause::Queueing if is_adaptive => {
            Some("declare a rate just below the line's, or shape before the modem (fq_codel, cake)")
        }
        Cause::Queueing if is_line => {
            Some("declare a rate just below the line's: now more is declared than it carries")
        }
        Cause::Policer if is_line => Some(
            "ask the provider for the rate that was agreed on; until then declare less: a rate \
            just below the policer's",
        ),
        Cause::DeclaredRate if is_adaptive => Some("declare the rate that the line has, or none"),
        _ => None,
    }
}

/// As in the rule of the line.
const CLASSES_MUCH: f64 = 0.3;
