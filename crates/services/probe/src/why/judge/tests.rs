use super::*;
use crate::why::evidence::{
    BusyThreads, DelayShape, DiskBacklog, DropPlaces, LineFound, LoadedLine, LossShape,
    ObservedEnd, ReceiverLoad, Silence, StreamResult, Transfer, TransferFeed, Waited,
};
use proptest::prelude::*;

/// A line of 20 Mbit/s and 80 ms with nothing wrong with it.
fn line() -> LineFound {
    LineFound {
        available_bps: 20_000_000,
        idle_round_trip_ms: 80.0,
        payload_max: 1_472,
        payload_refused: Some(1_473),
        gentle: StreamResult {
            offered_bps: 6_000_000,
            left: 1.0,
            datagrams: 8_000,
            stretch: 1.0,
            ..StreamResult::default()
        },
        overload: Some(StreamResult {
            offered_bps: 30_000_000,
            left: 1.0,
            received_bps: 20_000_000,
            datagrams: 5_000,
            drops: DropPlaces { lost_on_path: 1_500, ..DropPlaces::default() },
            delay: DelayShape { queue_ms: 90.0, late_queue_ms: 90.0, ..DelayShape::default() },
            stretch: 1.5,
            ..StreamResult::default()
        }),
        ..LineFound::default()
    }
}

fn threads(sender: f64, receiver: f64) -> BusyThreads {
    BusyThreads {
        sender_share: Some(sender),
        receiver_share: Some(receiver),
        ..BusyThreads::default()
    }
}

/// A transfer that fills it.
fn transfer() -> Transfer {
    Transfer {
        goodput_bps: 18_500_000,
        waited: Waited { path: 0.98, application: 0.02, ..Waited::default() },
        controller: "adaptive".to_owned(),
        line: LoadedLine {
            round_trip_ms: Some(85.0),
            payload: Some(1_472),
            ..LoadedLine::default()
        },
        threads: threads(0.2, 0.2),
        receiver: ReceiverLoad {
            disk_share: Some(0.0),
            socket_drops: Some(0),
            datagrams: 10_000,
            ..ReceiverLoad::default()
        },
        ..Transfer::default()
    }
}

#[test]
fn a_session_with_nothing_to_send_is_told_so_with_what_its_source_brought() {
    let waited = Waited { application: 0.97, path: 0.03, ..Waited::default() };
    let figures = |transfer| Transfer {
        waited,
        feed: TransferFeed {
            source_bps: Some(3_000_000),
            waiting_bytes: Some(0),
            ..TransferFeed::default()
        },
        ..transfer
    };
    let idle = figures(Transfer { goodput_bps: 2_500_000, ..transfer() });
    let verdict = judge(&Evidence { line: Some(line()), transfer: Some(idle.clone()) });
    assert_eq!(verdict.cause, Cause::Application);
    let told = "nothing waits to be sent: the source is slow; it supplied 2.50 Mbit/s";
    assert!(verdict.sentence.starts_with(told), "{}", verdict.sentence);
    let source = "3.00 Mbit/s came in; 0.0 MB are not at the receiver yet";
    assert!(verdict.evidence.iter().any(|figure| figure == source), "{:?}", verdict.evidence);
    // Where the thread that decodes what comes in has no time left, that is the cause.
    let busy = Transfer { threads: threads(0.99, 0.2), ..idle };
    assert_eq!(cause(Some(line()), Some(busy)), Cause::SenderProcessor);
}

#[test]
fn a_shut_window_that_is_long_enough_speaks_for_the_receivers_disk_where_that_is_not_told() {
    let waited = Waited { window: 0.8, path: 0.2, ..Waited::default() };
    // 5 Mbit/s at 85 ms are 53 KB.
    let told = |disk_share, window_bytes| Transfer {
        waited,
        goodput_bps: 5_000_000,
        receiver: ReceiverLoad { disk_share, window_bytes, ..transfer().receiver },
        ..transfer()
    };
    for (disk, window, wanted) in [
        (None, Some(64 << 20), Cause::ReceiverDisk),
        (None, Some(100 << 10), Cause::FlowWindow),
        (None, None, Cause::FlowWindow),
        (Some(0.01), Some(64 << 20), Cause::FlowWindow),
        (Some(0.9), Some(100 << 10), Cause::ReceiverDisk),
    ] {
        assert_eq!(cause(None, Some(told(disk, window))), wanted, "{disk:?} {window:?}");
    }
}

/// A centre whose disk took 1 MB/s was silent for 561 ms between two writes, while its shut window
/// held the station back.
#[test]
fn a_pause_of_a_receiver_that_holds_the_sender_back_is_no_outage_of_the_line() {
    let silence = |seconds| Some(Silence { seconds, at_s: 0.0, of_s: 3.0 });
    let held = |seconds| Transfer {
        waited: Waited { window: 0.986, path: 0.014, ..Waited::default() },
        goodput_bps: 8_426_664,
        line: LoadedLine { round_trip_ms: Some(8.2), ..transfer().line },
        receiver: ReceiverLoad {
            disk_share: None,
            window_bytes: Some(1 << 20),
            ..transfer().receiver
        },
        silence: silence(seconds),
        ..transfer()
    };
    assert_eq!(cause(None, Some(held(0.561))), Cause::ReceiverDisk);
    assert_eq!(cause(None, Some(held(2.4))), Cause::Outage);
    let flowing = Transfer { silence: silence(0.561), ..transfer() };
    assert_eq!(cause(None, Some(flowing)), Cause::Outage);
}

#[test]
fn from_the_receiving_end_its_own_faults_are_seen_and_others_left_to_the_sender() {
    let seen = |window, disk| Transfer {
        seen_from: ObservedEnd::Receiver,
        goodput_bps: 5_000_000,
        waited: Waited { window, ..Waited::default() },
        threads: BusyThreads { receiver_share: Some(0.1), ..BusyThreads::default() },
        receiver: ReceiverLoad { disk_share: Some(disk), ..ReceiverLoad::default() },
        ..Transfer::default()
    };
    assert_eq!(cause(None, Some(seen(0.0, 0.05))), Cause::OtherEnd);
    assert_eq!(cause(None, Some(seen(0.9, 0.95))), Cause::ReceiverDisk);
    assert_eq!(cause(None, Some(seen(0.0, 0.99))), Cause::ReceiverDisk);
    // Syncs of half a second and pauses of a fifth between them: no look met a shut window.
    assert_eq!(cause(None, Some(seen(0.0, 0.71))), Cause::ReceiverDisk);
    assert_eq!(cause(None, Some(seen(0.0, 0.45))), Cause::OtherEnd);
    assert_eq!(cause(None, Some(seen(0.9, 0.05))), Cause::FlowWindow);
    let receiver = BusyThreads { receiver_share: Some(0.98), ..BusyThreads::default() };
    let busy = Transfer { threads: receiver, ..seen(0.0, 0.05) };
    assert_eq!(cause(None, Some(busy)), Cause::ReceiverProcessor);
    let silent = Transfer { goodput_bps: 0, ..seen(0.0, 0.0) };
    let verdict = judge(&Evidence { line: None, transfer: Some(silent) });
    assert!(verdict.sentence.starts_with("nothing comes"), "{}", verdict.sentence);
    assert!(verdict.what_to_do.contains("sending end"));
}

fn cause(line: Option<LineFound>, transfer: Option<Transfer>) -> Cause {
    judge(&Evidence { line, transfer }).cause
}

#[test]
fn a_full_line_is_held_back_by_nothing_and_one_change_makes_another_cause_of_it() {
    assert_eq!(cause(Some(line()), Some(transfer())), Cause::LineFull);
    let slow = || Transfer { goodput_bps: 5_000_000, ..transfer() };
    let of = |waited| Some(Transfer { waited, ..slow() });
    let path = Waited { path: 0.95, ..Waited::default() };
    let cases = [
        (
            Cause::Application,
            line(),
            of(Waited { application: 0.7, path: 0.3, ..Waited::default() }),
        ),
        (Cause::FlowWindow, line(), of(Waited { window: 0.8, ..Waited::default() })),
        (Cause::SocketBuffer, line(), of(Waited { buffer: 0.8, ..Waited::default() })),
        (Cause::DeclaredRate, line(), of(Waited { classes: 0.8, ..Waited::default() })),
        (Cause::Controller, line(), of(path)),
        (Cause::SenderProcessor, line(), Some(Transfer { threads: threads(0.97, 0.2), ..slow() })),
        (
            Cause::ReceiverProcessor,
            line(),
            Some(Transfer { threads: threads(0.2, 0.97), ..slow() }),
        ),
        (Cause::RouteChange, LineFound { route_step_ms: 14.0, ..line() }, Some(transfer())),
        (Cause::ClockStep, LineFound { clock_step_ms: -30.0, ..line() }, Some(transfer())),
        (
            Cause::MtuBlackHole,
            LineFound { payload_max: 1_372, payload_refused: None, ..line() },
            Some(slow()),
        ),
    ];
    for (expected, line, transfer) in cases {
        assert_eq!(cause(Some(line), transfer), expected);
    }
}

#[test]
fn a_disk_that_does_not_keep_up_shuts_the_window() {
    let waited = Waited { window: 0.9, ..Waited::default() };
    let receiver = ReceiverLoad { disk_share: Some(0.9), ..transfer().receiver };
    let transfer = Transfer { waited, receiver, goodput_bps: 5_000_000, ..transfer() };
    assert_eq!(cause(None, Some(transfer.clone())), Cause::ReceiverDisk);
    // What is not written yet fills the window, and hides nothing.
    let waited = Waited { window: 0.3, ..Waited::default() };
    let backlog = Some(DiskBacklog { bytes: 2_000_000, disk_bps: 4_000_000 });
    let receiver = ReceiverLoad { backlog, ..receiver };
    let transfer = Transfer { waited, receiver, ..transfer };
    let verdict = judge(&Evidence { line: None, transfer: Some(transfer) });
    assert!(
        verdict.sentence.starts_with("the receiver's disk takes no more"),
        "{}",
        verdict.sentence
    );
}

#[test]
fn a_declared_rate_is_the_cause_only_where_the_line_has_more() {
    let of = |declared: u64, goodput| Transfer {
        declared_bps: Some(declared),
        goodput_bps: goodput,
        ..transfer()
    };
    assert_eq!(cause(Some(line()), Some(of(10_000_000, 9_300_000))), Cause::DeclaredRate);
    assert_eq!(cause(Some(line()), Some(of(20_000_000, 18_600_000))), Cause::LineFull);
}

#[test]
fn where_datagrams_go_missing_decides_who_drops_them() {
    let gentle = line().gentle;
    let lossy = |drops| LineFound { gentle: StreamResult { drops, ..gentle }, ..line() };
    let slow = || Some(Transfer { goodput_bps: 3_000_000, ..transfer() });
    assert_eq!(
        cause(Some(lossy(DropPlaces { lost_on_path: 80, ..DropPlaces::default() })), slow()),
        Cause::RandomLoss
    );
    assert_eq!(
        cause(Some(lossy(DropPlaces { dropped_by_host: 80, ..DropPlaces::default() })), slow()),
        Cause::HostDrops
    );
    assert_eq!(
        cause(Some(lossy(DropPlaces { dropped_by_socket: 80, ..DropPlaces::default() })), slow()),
        Cause::SocketBuffer
    );
}

#[test]
fn a_policer_and_a_long_queue_are_told_apart_by_delay_and_spacing() {
    let over = |queue_ms, stretch| {
        let overload = line().overload.map(|load| StreamResult {
            delay: DelayShape { queue_ms, late_queue_ms: queue_ms, ..DelayShape::default() },
            stretch,
            ..load
        });
        LineFound { overload, ..line() }
    };
    assert_eq!(cause(Some(over(0.4, 1.0)), None), Cause::Policer);
    assert_eq!(cause(Some(over(900.0, 1.5)), None), Cause::Queueing);
    let loaded = LoadedLine { round_trip_ms: Some(700.0), ..transfer().line };
    let filled = Transfer { line: loaded, ..transfer() };
    assert_eq!(cause(Some(over(900.0, 1.5)), Some(filled)), Cause::Queueing);
    assert_eq!(cause(Some(over(900.0, 1.5)), Some(transfer())), Cause::LineFull);
}

#[test]
fn without_any_evidence_nothing_is_claimed() {
    let verdict = judge(&Evidence::default());
    assert!(verdict.cause == Cause::LineFull && verdict.confidence <= 0.25, "{verdict:?}");
}

proptest! {
    #[test]
    fn any_figures_are_judged(figures in proptest::array::uniform16(proptest::num::f64::ANY),
        counts in any::<[u64; 8]>()) {
        let [available_bps, payload_max, datagrams, lost, host, socket, goodput_bps, offered] =
            counts;
        let load = StreamResult {
            offered_bps: offered, left: figures[0], received_bps: offered, datagrams,
            drops: DropPlaces {
                lost_on_path: lost, dropped_by_host: host % 1_000_000,
                dropped_by_socket: socket % 1_000_000,
            },
            delay: DelayShape {
                queue_ms: figures[1], late_queue_ms: figures[10], jitter_ms: figures[6],
                wavers_ms: figures[4], follows: figures[5],
            },
            stretch: figures[2],
            losses: LossShape {
                in_bursts: lost % 2 == 0, burst_mean: figures[9], burst_longest: lost,
                lost_in_queue: figures[7],
            },
            reordered: figures[8], reordered_by: socket,
        };
        let line = LineFound {
            available_bps, payload_max, gentle: load, overload: Some(load),
                route_step_ms: figures[3],
            clock_step_ms: figures[4], step_noise_ms: figures[5], idle_round_trip_ms: figures[6],
                ..LineFound::default()
        };
        let waited = Waited {
            application: figures[7], window: figures[8], buffer: figures[9], classes: figures[10],
                path: figures[11],
        };
        let transfer = Transfer {
            goodput_bps, waited,
            line: LoadedLine { round_trip_ms: Some(figures[12]), ..LoadedLine::default() },
            threads: threads(figures[13], figures[14]),
            receiver: ReceiverLoad {
                disk_share: Some(figures[15]), socket_drops: Some(socket),
                ..ReceiverLoad::default()
            },
            ..Transfer::default()
        };
        let verdict = judge(&Evidence { line: Some(line), transfer: Some(transfer) });
        prop_assert!((0.0..=1.0).contains(&verdict.confidence), "{verdict:?}");
        prop_assert!(!verdict.sentence.is_empty() && verdict.others.len() <= 3);
    }
}
