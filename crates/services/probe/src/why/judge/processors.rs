//! Rules about processors: a thread at its limit, and one that is ready to run and gets no
//! processor.

use super::{Finding, percent, rate};
use crate::why::cause::Cause;
use crate::why::evidence::{Lack, Transfer};

/// What keeps a thread from running.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// The quota of its control group.
    Quota,
    /// The hypervisor.
    Host,
    /// Other programs of its machine.
    Programs,
}

/// What keeps a thread from running for as long that it matters.
pub(super) fn held(lack: Option<Lack>) -> Option<Held> {
    let lack = lack?;
    if lack.throttled >= THROTTLED_MUCH {
        return Some(Held::Quota);
    }
    if lack.stolen >= STOLEN_MUCH {
        return Some(Held::Host);
    }
    (lack.ready >= READY_MUCH).then_some(Held::Programs)
}

/// What becomes of the socket that a thread reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SocketState {
    /// It overflows.
    Overflowing,
    /// It does not, or that is not known.
    Keeping,
}

/// The busiest thread of one end.
struct BusiestThread<'a> {
    cause: Cause,
    end: &'a str,
    share: Option<f64>,
    lack: Option<Lack>,
    socket: SocketState,
}

/// A thread that runs all the time is at its limit; so is one that is ready to run and gets no
/// processor, and one that runs most of the time while its socket overflows.
pub(super) fn findings(transfer: &Transfer, receiving_socket: SocketState) -> Vec<Finding> {
    let threads = &transfer.threads;
    let ends = [
        BusiestThread {
            cause: Cause::SenderProcessor,
            end: "sender",
            share: threads.sender_share,
            lack: threads.sender_lack,
            socket: SocketState::Keeping,
        },
        BusiestThread {
            cause: Cause::ReceiverProcessor,
            end: "receiver",
            share: threads.receiver_share,
            lack: threads.receiver_lack,
            socket: receiving_socket,
        },
    ];
    ends.into_iter().filter_map(|thread| finding(transfer, thread)).collect()
}

fn finding(transfer: &Transfer, thread: BusiestThread<'_>) -> Option<Finding> {
    let BusiestThread { cause, end, share, lack, socket } = thread;
    let share = share.unwrap_or(0.0);
    let weight = weight(share, lack, socket)?;
    let mut figures = vec![
        format!("busiest thread of the {end}: {} of a core", percent(share)),
        format!("goodput {}", rate(transfer.goodput_bps)),
    ];
    if socket == SocketState::Overflowing {
        figures.push("its socket overflows meanwhile".to_owned());
    }
    let by = held(lack);
    if let Some(lack) = lack.filter(|_| by.is_some()) {
        figures.push(format!(
            "it was ready and did not run {} of the time; quota used up {}, processors taken by \
            the machine's host {}",
            percent(lack.ready),
            percent(lack.throttled),
            percent(lack.stolen)
        ));
    }
    Some(Finding::new(cause, weight, sentence(end, share, by), figures))
}

fn weight(share: f64, lack: Option<Lack>, socket: SocketState) -> Option<f64> {
    let above = |value: f64, from: f64, to: f64| ((value - from) / (to - from)).clamp(0.0, 1.0);
    let lack = lack.unwrap_or_default();
    let throttled = (lack.throttled >= THROTTLED_MUCH)
        .then(|| 0.72 + 0.25 * above(lack.throttled, THROTTLED_MUCH, THROTTLED_PLAIN));
    // What it ran and what it would have run.
    let wanted = share + lack.ready;
    let busy = match share {
        _ if socket == SocketState::Overflowing
            && (share >= BUSY_OFTEN || held(Some(lack)).is_some()) =>
        {
            Some(0.94)
        }
        _ if share >= BUSY => Some(0.82 + 0.15 * above(share, BUSY, 1.0)),
        _ if wanted >= BUSY && lack.ready >= READY_MUCH => {
            Some(0.75 + 0.2 * above(wanted, BUSY, 1.0))
        }
        _ if share >= BUSY_OFTEN => Some(0.55 + 0.25 * above(share, BUSY_OFTEN, BUSY)),
        _ => None,
    };
    throttled.into_iter().chain(busy).reduce(f64::max)
}

fn sentence(end: &str, share: f64, by: Option<Held>) -> String {
    match by {
        Some(Held::Quota) => {
            format!(
                "the {end} has used up its processor quota: its control group was stopped again \
                and again"
            )
        }
        Some(Held::Host) => {
            format!(
                "the {end}'s machine does not get its processors: the host that it runs on gives \
                them to others"
            )
        }
        Some(Held::Programs) if share < BUSY => {
            format!("the {end} waits for a processor that other programs of its machine use")
        }
        _ => format!(
            "the {end}'s processor is at its limit: its busiest thread ran {} of the time",
            percent(share)
        ),
    }
}

/// Part of the time. A thread that waits for datagrams in batches rests at least a tenth of the
/// time while it keeps up.
pub(super) const BUSY: f64 = 0.9;
/// Part of the time. Data arrives in bursts: a thread that runs four fifths of the time on average
/// lets some of it wait.
pub(super) const BUSY_OFTEN: f64 = 0.8;
/// Part of the time. A thread that keeps up waits some hundredths of the time for a processor;
/// several times that is a lack of processors.
const READY_MUCH: f64 = 0.15;
/// Part of the time. A control group that is stopped in one of ten periods, for a part of it, loses
/// nothing that a buffer does not bear.
const THROTTLED_MUCH: f64 = 0.08;
/// Part of the time. A group that is stopped for a third of it needs no other explanation.
const THROTTLED_PLAIN: f64 = 0.35;
/// Part of all processors' time. Where the physical host takes less, the machine's threads still
/// get what they need.
const STOLEN_MUCH: f64 = 0.1;
