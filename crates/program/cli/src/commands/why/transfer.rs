//! A transfer by `skyhaul perf send`, read from its JSON.

use crate::commands::perf::report::{Busiest, ControlSummary, HostShortage, Report, WaitSeconds};
use serde::Deserialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_probe::why::{
    BusyThreads, DiskBacklog, LoadedLine, ReceiverLoad, Silence, SourceKind, Transfer,
    TransferFeed, Waited as Parts,
};
use std::path::Path;

/// The parts of a report that are needed; others are ignored.
#[derive(Debug, Deserialize)]
struct Run {
    goodput_bps: u64,
    steady_bps: Option<u64>,
    waited_s: WaitSeconds,
    busiest_thread: Busiest,
    /// Earlier releases do not have it.
    #[serde(default)]
    disk_share: Option<f64>,
    #[serde(default)]
    lack: HostShortage,
    #[serde(default)]
    backlog: Option<DiskBacklog>,
    #[serde(default)]
    silence: Option<Silence>,
    #[serde(default)]
    offered_bps: Option<u64>,
    control: ControlSummary,
    paths: Vec<RunPath>,
    losses: RunLosses,
}

#[derive(Debug, Deserialize)]
struct RunPath {
    loaded_rtt_s: f64,
    min_rtt_s: f64,
}

#[derive(Debug, Deserialize)]
struct RunLosses {
    sent: u64,
    path: u64,
    receive_socket: Option<u64>,
}

/// Reads a file that holds a report: the last line that is an object.
///
/// # Errors
/// The file cannot be read, holds none, or one of a release that told less.
pub fn read(path: &Path) -> Result<Transfer, Failure> {
    let place = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|source| {
        let help = "give a file with what `skyhaul perf send --json` printed";
        Failure::io("the transfer cannot be read", &place, help, source)
    })?;
    let line =
        text.lines().rev().find(|line| line.trim_start().starts_with('{')).unwrap_or_default();
    parse(line).map_err(|error| {
        let what = format!("this is not what `skyhaul perf send --json` prints ({error})");
        Failure::new(Exit::Usage, &what, "run it again with this release").at(&place)
    })
}

/// The same of a run just made.
///
/// # Errors
/// None but for a release whose parts do not fit each other.
pub fn of(report: &Report) -> Result<Transfer, Failure> {
    let text = serde_json::to_string(report).expect("a report is plain data");
    parse(&text)
        .map_err(|error| Failure::new(Exit::Environment, &error.to_string(), "install one release"))
}

fn parse(text: &str) -> Result<Transfer, serde_json::Error> {
    let run: Run = serde_json::from_str(text)?;
    let waited = run.waited_s;
    let seconds = waited.application + waited.window + waited.buffer + waited.classes + waited.path;
    let part = |wait: f64| if seconds > 0.0 { wait / seconds } else { 0.0 };
    // Of several paths, the one with the shortest round trip.
    let millis = |of: fn(&RunPath) -> f64| {
        run.paths.iter().map(of).reduce(f64::min).map(|seconds| seconds * 1e3)
    };
    Ok(Transfer {
        goodput_bps: run.goodput_bps,
        steady_bps: run.steady_bps,
        waited: Parts {
            application: part(waited.application),
            window: part(waited.window),
            buffer: part(waited.buffer),
            classes: part(waited.classes),
            path: part(waited.path),
        },
        line: LoadedLine {
            round_trip_ms: millis(|path| path.loaded_rtt_s),
            shortest_round_trip_ms: millis(|path| path.min_rtt_s),
            loss: if run.losses.sent == 0 {
                0.0
            } else {
                run.losses.path as f64 / run.losses.sent as f64
            },
            payload: Some(run.control.payload),
            payload_shrunk: run.control.payload_shrunk,
        },
        declared_bps: run.control.declared_bps,
        controller: run.control.name,
        threads: BusyThreads {
            sender_share: run.busiest_thread.send,
            receiver_share: run.busiest_thread.receive,
            sender_lack: run.lack.send,
            receiver_lack: run.lack.receive,
        },
        receiver: ReceiverLoad {
            disk_share: run.disk_share,
            backlog: run.backlog,
            socket_drops: run.losses.receive_socket,
            datagrams: run.losses.sent,
            ..ReceiverLoad::default()
        },
        silence: run.silence,
        feed: TransferFeed {
            source: if run.offered_bps.is_some() {
                SourceKind::Offered
            } else {
                SourceKind::Program
            },
            ..TransferFeed::default()
        },
        ..Transfer::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_gives_the_shares_of_the_time() {
        let text = r#"{"goodput_bps":9,"steady_bps":8,"seconds":4.0,"waited_s":{"application":1.0,"window":0.0,"buffer":0.0,
            "classes":0.0,"path":3.0},"busiest_thread":{"send":0.5,"receive":null},"control":{"name":"line","declared_bps":10,
            "payload":1472},"paths":[{"loaded_rtt_s":0.2,"min_rtt_s":0.1,"over":"udp"}],
            "losses":{"sent":100,"path":5,"receive_socket":null,"repeated":4}}"#;
        let transfer = parse(text).unwrap();
        assert_eq!(
            (
                transfer.goodput_bps,
                transfer.steady_bps,
                transfer.declared_bps,
                transfer.line.payload
            ),
            (9, Some(8), Some(10), Some(1_472))
        );
        assert!(
            (transfer.waited.path - 0.75).abs() < 1e-9 && (transfer.line.loss - 0.05).abs() < 1e-9
        );
        assert_eq!(
            (transfer.line.round_trip_ms, transfer.threads.receiver_share),
            (Some(200.0), None)
        );
        assert!(parse(r#"{"goodput_bps":9}"#).is_err() && parse("").is_err());
    }
}
