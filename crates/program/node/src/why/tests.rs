use super::*;
use crate::status::DestinationStatus;
use crate::status::{ChannelStatus, PathControl, ProcessStatus, StoreStatus, WaitedStatus};

/// A station `seconds` after its line was set up, which waited for a path all the time.
fn station(seconds: f64) -> StationStatus {
    let waited_s = WaitedStatus { path: seconds, ..WaitedStatus::default() };
    let path = LinePath {
        state: "active".to_owned(),
        over: "udp".to_owned(),
        control: PathControl {
            controller: "line".to_owned(),
            declared_bps: Some(8_000_000),
            payload: 1_472,
            payload_configured: 0,
        },
        rtt_s: 0.3,
        min_rtt_s: 0.2,
        ..LinePath::default()
    };
    let thread = |name: &str, share| ThreadStatus {
        id: 1,
        name: name.to_owned(),
        cpu_s: share * seconds,
        ready_s: share * seconds / 5.0,
    };
    StationStatus {
        name: "s".to_owned(),
        process: ProcessStatus { uptime_s: 100.0 + seconds, ..ProcessStatus::default() },
        threads: vec![
            ThreadStatus { id: 2, ..thread("line", 0.25) },
            ThreadStatus { id: 3, ..thread("channel", 1.0) },
        ],
        channels: vec![ChannelStatus { bytes: (seconds * 2e6) as u64, ..ChannelStatus::default() }],
        destinations: vec![DestinationStatus {
            line: LineStatus {
                state: LineState::Open,
                connects: 1,
                peer: "192.0.2.7:4710".to_owned(),
                bytes_reported: (seconds * 8e5) as u64,
                symbols_sent: (seconds * 900.0) as u64,
                symbols_repeated: (seconds * 100.0) as u64,
                symbols_lost: (seconds * 50.0) as u64,
                session: Some(SessionStatus { waited_s, window_bytes: 1 << 26, share: None }),
                paths: vec![
                    // A tenth of all symbols is retransmitted.
                    LinePath { rtt_s: 0.5, bytes_sent: (seconds * 7e5) as u64, ..path.clone() },
                    LinePath { bytes_sent: (seconds * 3e5) as u64, ..path },
                ],
                ..LineStatus::default()
            },
            ..DestinationStatus::default()
        }],
        ..StationStatus::default()
    }
}

fn looked(looks: Vec<StationStatus>) -> Result<WatchedSession, Fault> {
    let whole = |look| NodeStatus { station: Some(look), ..NodeStatus::default() };
    let looks: Vec<NodeStatus> = looks.into_iter().map(whole).collect();
    judged(&looks.iter().collect::<Vec<_>>(), None)
}

#[test]
fn two_observations_of_a_station_give_the_rates_and_shares_between_them() {
    let watched = looked(vec![station(2.0), station(6.0)]).unwrap();
    assert_eq!(watched.name, "of station s to 192.0.2.7:4710");
    let transfer = watched.transfer;
    assert_eq!((transfer.goodput_bps, transfer.feed.source_bps), (7_200_000, Some(16_000_000)));
    assert_eq!((transfer.receiver.datagrams, transfer.line.payload), (4_000, Some(1_472)));
    assert_eq!((transfer.controller.as_str(), transfer.declared_bps), ("line", Some(16_000_000)));
    let near = |figure: Option<f64>, wanted: f64| (figure.unwrap() - wanted).abs() < 1e-6;
    assert!(near(Some(transfer.line.loss), 0.05) && near(Some(transfer.waited.path), 1.0));
    assert!(
        near(transfer.line.round_trip_ms, 300.0)
            && near(transfer.line.shortest_round_trip_ms, 200.0)
    );
    // The decoding thread was busy all the time, but the line did not wait for it.
    assert!(near(transfer.threads.sender_share, 0.25));
}

#[test]
fn a_silent_centre_and_an_exhausted_quota_are_causes() {
    let out = |seconds: f64| {
        let mut station = station(seconds);
        // Its threads go on, and what is sent from 3 s on is never answered.
        let heard = seconds.min(3.0);
        station.destinations[0].line.paths.iter_mut().for_each(|path| path.rtt_s += heard / 1e3);
        station.destinations[0].line.bytes_reported = (heard * 8e5) as u64;
        station.shortage =
            ShortageStatus { throttled_s: seconds / 4.0, stolen_ticks: 10, ticks: 1_000 };
        station
    };
    let watched = looked((0..=20u32).map(|n| out(2.0 + f64::from(n) / 4.0)).collect()).unwrap();
    let silence = watched.transfer.silence.unwrap();
    assert!(
        (silence.seconds - 4.0).abs() < 1e-6 && (silence.at_s - 1.0).abs() < 1e-6,
        "{silence:?}"
    );
    assert!(watched.transfer.goodput_bps > 0);
    let lack = watched.transfer.threads.sender_lack.unwrap();
    assert!((lack.throttled - 0.25).abs() < 1e-6 && (lack.ready - 0.05).abs() < 1e-6, "{lack:?}");
    // There is no answer from the first observation on: no data arrives.
    let dead =
        looked((0..=8u32).map(|n| out(4.0 + f64::from(n) / 4.0)).collect()).unwrap().transfer;
    assert_eq!(dead.goodput_bps, 0);
    let verdict = skyhaul_probe::why::judge(&skyhaul_probe::why::Evidence {
        line: None,
        transfer: Some(dead),
    });
    assert_eq!(verdict.cause.name(), "outage", "{verdict:?}");
}

#[test]
fn a_slow_decoder_counts_if_there_was_nothing_to_send() {
    let idle = |seconds| {
        let mut station = station(seconds);
        if let Some(session) = &mut station.destinations[0].line.session {
            session.waited_s = WaitedStatus { application: seconds, ..WaitedStatus::default() };
        }
        station
    };
    let transfer = looked(vec![idle(2.0), idle(6.0)]).unwrap().transfer;
    assert_eq!((transfer.waited.application, transfer.threads.sender_share), (1.0, Some(1.0)));
}

#[test]
fn a_line_that_is_down_or_reconnected_is_not_judged() {
    let down = StationStatus {
        destinations: vec![DestinationStatus {
            line: LineStatus {
                reason: Some("no answer from the far end".to_owned()),
                ..LineStatus::default()
            },
            ..DestinationStatus::default()
        }],
        ..station(6.0)
    };
    let refusal = looked(vec![station(2.0), down]).err().unwrap().to_string();
    assert!(
        refusal.contains("no session") && refusal.contains("no answer from the far end"),
        "{refusal}"
    );
    let mut anew = station(6.0);
    anew.destinations[0].line.connects = 2;
    assert!(looked(vec![station(2.0), anew]).is_err());
    assert!(
        looked(vec![station(2.0)]).is_err() && looked(vec![station(2.0), station(2.0)]).is_err()
    );
}

#[test]
fn a_centre_shows_how_long_its_window_was_closed_and_its_disk_busy() {
    let centre = |seconds: f64, held: u64| {
        let peer = |name: &str, rate: f64, held_bytes| StationPeer {
            name: name.to_owned(),
            bytes_delivered: (seconds * rate) as u64,
            symbols_received: (seconds * 100.0) as u64,
            held_bytes,
            window_bytes: 1_000,
            ..StationPeer::default()
        };
        let centre = CentreStatus {
            name: "c".to_owned(),
            process: ProcessStatus { uptime_s: seconds, ..ProcessStatus::default() },
            stations: vec![peer("a", 1e3, 0), peer("b", 1e6, held)],
            store: StoreStatus { disk_busy_s: seconds * 0.75, ..StoreStatus::default() },
            socket_drops: Some((seconds * 3.0) as u64),
            ..CentreStatus::default()
        };
        NodeStatus { centre: Some(centre), ..NodeStatus::default() }
    };
    let looks = [centre(2.0, 0), centre(3.0, 900), centre(4.0, 990), centre(6.0, 999)];
    let looks: Vec<&NodeStatus> = looks.iter().collect();
    let watched = judged(&looks, None).unwrap();
    assert_eq!(watched.name, "of station b to centre c");
    let transfer = watched.transfer;
    assert_eq!((transfer.seen_from, transfer.goodput_bps), (ObservedEnd::Receiver, 8_000_000));
    assert_eq!((transfer.waited.window, transfer.receiver.disk_share), (0.75, Some(0.75)));
    assert_eq!((transfer.receiver.socket_drops, transfer.receiver.datagrams), (Some(12), 400));
    assert_eq!(judged(&looks, Some("a")).unwrap().transfer.goodput_bps, 8_000);
    assert!(judged(&looks, Some("x")).is_err());
}
