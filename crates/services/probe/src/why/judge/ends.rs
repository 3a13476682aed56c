//! Rules about the two ends: application, processors, disk, windows, buffers, and what a host
//! drops.

use super::processors::{self, BUSY, BUSY_OFTEN, SocketState, held};
use super::{Finding, percent, rate};
use crate::why::cause::Cause;
use crate::why::evidence::{Evidence, LineFound, ObservedEnd, SourceKind, StreamResult, Transfer};

/// What the ends' figures speak for.
pub(super) fn findings(evidence: &Evidence) -> Vec<Finding> {
    let mut found = Vec::new();
    if let Some(transfer) = &evidence.transfer {
        let socket = if socket_part(evidence) >= DROPS_MUCH {
            SocketState::Overflowing
        } else {
            SocketState::Keeping
        };
        found.extend(processors::findings(transfer, socket));
        found.extend(application(transfer));
        found.extend(window(transfer));
        found.extend(send_buffer(transfer));
        found.extend(slow_disk(transfer));
        found.extend(other_end(transfer));
    }
    if let Some(line) = &evidence.line {
        found.extend(host_drops(line));
        found.extend(slow_sender(line));
    }
    found.extend(socket_drops(evidence));
    found
}

fn application(transfer: &Transfer) -> Option<Finding> {
    let share = transfer.waited.application;
    if share < WAIT_MUCH {
        return None;
    }
    let (goodput, part) = (rate(transfer.goodput_bps), percent(share));
    let sentence = if share >= WAIT_ALL && transfer.feed.source == SourceKind::Live {
        format!(
            "nothing waits to be sent: all that the receiver brings, {goodput}, goes out at once"
        )
    } else if share >= WAIT_ALL {
        format!(
            "nothing waits to be sent: the source is slow; it supplied {goodput}, and {part} of \
            the time there was nothing to send"
        )
    } else {
        format!(
            "the application supplies only {goodput}: the transport had nothing to send {part} of \
            the time"
        )
    };
    // A source whose own processor is at its limit is a matter of that processor.
    let is_busy = transfer.threads.sender_share.is_some_and(|share| share >= BUSY);
    let weight = if is_busy { BESIDE } else { 1.0 } * (0.55 + 0.4 * share);
    let figures = [Some(waits(transfer)), source(transfer)];
    Some(Finding::new(
        Cause::Application,
        weight,
        sentence,
        figures.into_iter().flatten().collect(),
    ))
}

/// What comes in, and what of it is still here.
fn source(transfer: &Transfer) -> Option<String> {
    let (brought, waiting) = transfer.feed.source_bps.zip(transfer.feed.waiting_bytes)?;
    Some(format!(
        "{} came in; {:.1} MB are not at the receiver yet",
        rate(brought),
        waiting as f64 / 1e6
    ))
}

/// A receiver that keeps up knows nothing of what the sender waits for.
fn other_end(transfer: &Transfer) -> Option<Finding> {
    if transfer.seen_from != ObservedEnd::Receiver {
        return None;
    }
    let goodput = rate(transfer.goodput_bps);
    let sentence = if transfer.goodput_bps == 0 {
        "nothing comes, and nothing at this end keeps it from coming".to_owned()
    } else {
        format!("nothing at this end holds the transfer back: it takes all that comes, {goodput}")
    };
    let busy = |share: Option<f64>| share.map_or("not known".to_owned(), percent);
    let figures = format!(
        "busiest thread of the receiver: {}; in its disk: {}",
        busy(transfer.threads.receiver_share),
        busy(transfer.receiver.disk_share)
    );
    Some(Finding::new(Cause::OtherEnd, WEIGHT_ELSEWHERE, sentence, vec![waits(transfer), figures]))
}

/// What holds the window shut: a disk or processor that does not keep up, or else the window
/// itself.
fn window(transfer: &Transfer) -> Option<Finding> {
    let share = transfer.waited.window;
    if share < WAIT_MUCH {
        return None;
    }
    let weight = 0.6 + 0.35 * share;
    Some(match transfer.receiver.disk_share {
        Some(disk) if disk >= DISK_BUSY => Finding::new(
            Cause::ReceiverDisk,
            weight + 0.02,
            format!(
                "the receiver's disk takes no more: it was waited for {} of the time",
                percent(disk)
            ),
            vec![waits(transfer), format!("receiver in its disk: {}", percent(disk))],
        ),
        None if is_window_long(transfer) => Finding::new(
            Cause::ReceiverDisk,
            weight * BESIDE,
            format!(
                "the receiver does not keep up, though its window is long enough: its disk or its \
                processor is slow; the sender waited for it {} of the time",
                percent(share)
            ),
            [Some(waits(transfer)), window_size(transfer), window_told(transfer)]
                .into_iter()
                .flatten()
                .collect(),
        ),
        _ => Finding::new(
            Cause::FlowWindow,
            weight,
            format!(
                "the receiver's window is too small for this round trip: the sender waited for it \
                {} of the time",
                percent(share)
            ),
            [Some(waits(transfer)), window_size(transfer)].into_iter().flatten().collect(),
        ),
    })
}

/// A disk that works most of the time shows also while the window is open: one sync may outlast the
/// look, and a window holds what comes in many seconds. From the sender's end what is not written
/// yet must say so too.
fn slow_disk(transfer: &Transfer) -> Option<Finding> {
    let disk = transfer.receiver.disk_share.filter(|disk| *disk >= DISK_BUSY)?;
    let mut figures = vec![waits(transfer), format!("receiver in its disk: {}", percent(disk))];
    // A window that is shut hides nothing: `window` names the disk.
    let hides = transfer.waited.window < WAIT_MUCH;
    let behind = transfer.receiver.backlog.filter(|_| hides).filter(|backlog| {
        backlog.bytes as f64 * 8.0 > backlog.disk_bps as f64 * BEHIND_SECONDS
            && (backlog.disk_bps as f64) < transfer.goodput_bps as f64
    });
    if let Some(backlog) = behind {
        figures.push(format!(
            "{:.1} MB were received and not written yet",
            backlog.bytes as f64 / 1e6
        ));
        let sentence = format!(
            "the receiver's disk is slow: it takes {} where {} come; the window hides that until \
            it is full",
            rate(backlog.disk_bps),
            rate(transfer.goodput_bps)
        );
        return Some(Finding::new(Cause::ReceiverDisk, 0.7 + 0.25 * disk, sentence, figures));
    }
    let sentence =
        format!("the receiver's disk is slow: it was waited for {} of the time", percent(disk));
    (transfer.seen_from == ObservedEnd::Receiver)
        .then(|| Finding::new(Cause::ReceiverDisk, WEIGHT_DISK * disk, sentence, figures))
}

/// What the receiver lets be under way would carry several times as much at this round trip.
fn is_window_long(transfer: &Transfer) -> bool {
    let needed =
        transfer.line.round_trip_ms.map(|millis| transfer.goodput_bps as f64 / 8e3 * millis);
    transfer
        .receiver
        .window_bytes
        .zip(needed)
        .is_some_and(|(told, needed)| told as f64 >= WINDOW_LONG * needed)
}

fn window_told(transfer: &Transfer) -> Option<String> {
    let told = transfer.receiver.window_bytes?;
    Some(format!("the receiver lets {:.0} KB be under way", told as f64 / 1e3))
}

fn window_size(transfer: &Transfer) -> Option<String> {
    let millis = transfer.line.round_trip_ms?;
    let bytes = transfer.goodput_bps as f64 / 8.0 * millis / 1e3;
    Some(format!(
        "goodput {} at a round trip of {millis:.1} ms is a window of {:.0} KB",
        rate(transfer.goodput_bps),
        bytes / 1e3
    ))
}

fn send_buffer(transfer: &Transfer) -> Option<Finding> {
    let share = transfer.waited.buffer;
    (share >= WAIT_MUCH).then(|| {
        Finding::new(
            Cause::SocketBuffer,
            0.6 + 0.35 * share,
            format!(
                "the sending socket's buffer is too small: the sender waited for room in it {} of \
                the time",
                percent(share)
            ),
            [Some(waits(transfer)), window_size(transfer)].into_iter().flatten().collect(),
        )
    })
}

/// Datagrams dropped between the card and the socket.
fn host_drops(line: &LineFound) -> Option<Finding> {
    let loads = loads(line);
    let all = sum(&loads, |load| load.datagrams);
    let dropped = sum(&loads, |load| load.drops.dropped_by_host);
    let path = sum(&loads, |load| load.drops.lost_on_path);
    let part = dropped as f64 / all.max(1) as f64;
    (part >= DROPS_MUCH).then(|| {
        // Overload drops on the line too; what counts is whether the host drops without it.
        let plain = line.gentle.host_drops() >= DROPS_MUCH || dropped >= path;
        Finding::new(
            Cause::HostDrops,
            if plain { 0.95 } else { 0.6 },
            format!(
                "the receiving host drops {} of what arrives, before the \
                    socket",
                percent(part)
            ),
            vec![
                format!(
                    "card and processor backlog dropped {dropped} of {all} datagrams; the path \
                    lost {path}"
                ),
                format!("well below the line's rate: {}", percent(line.gentle.host_drops())),
            ],
        )
    })
}

/// A socket's queue that overflows while its owner has processor time to spare is too short.
fn socket_drops(evidence: &Evidence) -> Option<Finding> {
    let most = socket_part(evidence);
    if most < DROPS_MUCH {
        return None;
    }
    let share = evidence.transfer.as_ref().and_then(|transfer| transfer.threads.receiver_share);
    let lack = evidence.transfer.as_ref().and_then(|transfer| transfer.threads.receiver_lack);
    let is_busy = share.is_some_and(|share| share >= BUSY_OFTEN) || held(lack).is_some();
    let (of_line, of_transfer) = socket_counts(evidence);
    let told = |counts: Option<Drops>, what: &str| {
        counts.map(|(dropped, all)| {
            format!("{what}: the socket dropped {dropped} of {all} datagrams")
        })
    };
    Some(Finding::new(
        Cause::SocketBuffer,
        match share {
            _ if is_busy => 0.5,
            Some(_) => 0.92,
            // Too short a buffer or too slow a program: the probe's end does not tell.
            None => 0.5,
        },
        format!(
            "the receiving socket's buffer overflows: {} of the datagrams are dropped there",
            percent(most)
        ),
        [told(of_line, "probe"), told(of_transfer, "transfer")].into_iter().flatten().collect(),
    ))
}

/// Datagrams dropped, and all.
type Drops = (u64, u64);

/// At the receiving socket: of the probe, and of the transfer.
fn socket_counts(evidence: &Evidence) -> (Option<Drops>, Option<Drops>) {
    let of_line = evidence.line.as_ref().map(|line| {
        let loads = loads(line);
        (sum(&loads, |load| load.drops.dropped_by_socket), sum(&loads, |load| load.datagrams))
    });
    let transfer = evidence.transfer.as_ref();
    (
        of_line,
        transfer.and_then(|transfer| {
            Some((transfer.receiver.socket_drops?, transfer.receiver.datagrams))
        }),
    )
}

/// The greater part of both.
fn socket_part(evidence: &Evidence) -> f64 {
    let part = |counts: Option<(u64, u64)>| {
        counts.map_or(0.0, |(dropped, all)| dropped as f64 / all.max(1) as f64)
    };
    let (of_line, of_transfer) = socket_counts(evidence);
    part(of_line).max(part(of_transfer))
}

/// A probe that cannot send as fast as it means to is on a machine that is too slow.
fn slow_sender(line: &LineFound) -> Option<Finding> {
    let load = line.overload.filter(|load| load.left < LEFT_MIN)?;
    Some(Finding::new(
        Cause::SenderProcessor,
        0.7,
        format!(
            "the sending host cannot send faster: of {} offered, {} left",
            rate(load.offered_bps),
            percent(load.left)
        ),
        vec![format!("planned {}, left {} of it", rate(load.offered_bps), percent(load.left))],
    ))
}

fn loads(line: &LineFound) -> Vec<StreamResult> {
    core::iter::once(line.gentle).chain(line.overload).collect()
}

fn sum(loads: &[StreamResult], of: fn(&StreamResult) -> u64) -> u64 {
    loads.iter().fold(0, |sum, load| sum.saturating_add(of(load)))
}

/// All the waits in one line.
pub(super) fn waits(transfer: &Transfer) -> String {
    let waited = transfer.waited;
    if transfer.seen_from == ObservedEnd::Receiver {
        return format!("the receiver's window was shut {} of the time", percent(waited.window));
    }
    format!(
        "waited for the application {}, flow control {}, send buffer {}, classes {}, the path {}",
        percent(waited.application),
        percent(waited.window),
        percent(waited.buffer),
        percent(waited.classes),
        percent(waited.path)
    )
}

/// Part of the time. A sender at the line's pace waits for the path nearly always and for anything
/// else hardly ever; a fifth is no accident.
const WAIT_MUCH: f64 = 0.2;

/// Part of the time. With nothing to send for nine tenths of it, all that came in went out at once.
const WAIT_ALL: f64 = 0.9;

/// Factor on what is under way. The blocks of a window that wait behind a missing one make a round
/// trip's worth or two, and those being written as much; four times that is long enough for any
/// line.
const WINDOW_LONG: f64 = 4.0;

/// Factor on the weight of a cause that another one explains, or that was inferred and not
/// reported.
const BESIDE: f64 = 0.9;

/// Weight. Above the least that is shown, and below every cause that figures speak for.
const WEIGHT_ELSEWHERE: f64 = 0.3;

/// Part of the time. A disk that keeps up answers a group commit in some milliseconds of each tenth
/// of a second; half of the time is ten times that.
const DISK_BUSY: f64 = 0.5;

/// Seconds of the disk's rate. A group commit is written within a fraction of a second; more
/// unwritten data means that the disk is behind.
const BEHIND_SECONDS: f64 = 0.5;

/// Weight for a disk that was busy all the time. Less than where the window is shut as well,
/// because data may be on its way to the disk that nobody waits for.
const WEIGHT_DISK: f64 = 0.6;

/// Part of the datagrams. At one in five hundred, Reno carries 3 Mbit/s at a round trip of 100 ms
/// (Mathis and others 1997).
const DROPS_MUCH: f64 = 0.002;

/// Part of what was to be sent. A machine that keeps up sends all but a few hundredths; where a
/// seventh is missing, it is too slow.
const LEFT_MIN: f64 = 0.85;
