//! The metrics of a node. Labels are what the configuration bounds: stations, inputs, paths,
//! destinations; never a contact, a product, a file or a user.

mod families;
mod nodes;
mod receiving;
mod sending;

use super::words::word;
use crate::looks::{NodeLook, NodeRates};
use crate::status::{NodeStatus, ThreadStatus};
use families::{count, counter, gauge};
use skyhaul_units::{Instant, Utc};
use skyhaul_web::MetricFamily;
use std::collections::BTreeMap;
use std::sync::Arc;

/// All families.
pub(super) fn all(look: &NodeLook) -> Vec<MetricFamily> {
    let status = &look.status;
    let mut families = of_process(look);
    if let Some(station) = &status.station {
        families.extend(sending::all(station));
    }
    if let Some(centre) = &status.centre {
        families.extend(receiving::all(centre));
    }
    families.extend(of_alarms(status));
    families.extend(of_passes(status));
    families.extend(nodes::all(&status.nodes));
    families.extend(of_paths(status));
    families.extend(of_servers(status));
    families
}

/// The metrics of a node with this status, with rates of zero. A node makes those of its own
/// looks; benchmarks and tests make a status of more stations than a machine has room for.
pub fn metrics_of(status: NodeStatus) -> Vec<MetricFamily> {
    all(&look_of(status))
}

/// A look at a node with this status, with rates of zero.
pub(super) fn look_of(status: NodeStatus) -> NodeLook {
    NodeLook {
        number: 1,
        taken: Utc::default(),
        status,
        gaps: Arc::default(),
        begun: Instant::ZERO,
        rates: NodeRates::default(),
    }
}

/// The alarms that stand, by kind: a rule can ask for one.
fn of_alarms(status: &NodeStatus) -> Option<MetricFamily> {
    let mut standing = gauge("alarms_standing", "Alarms that stand, by kind.");
    let mut by_kind: BTreeMap<&str, u64> = BTreeMap::new();
    for alarm in status.standing_alarms() {
        *by_kind.entry(alarm.kind.name()).or_default() += 1;
    }
    for (kind, number) in &by_kind {
        standing.add(&[("kind", kind)], count(*number));
    }
    (!by_kind.is_empty()).then_some(standing)
}

fn of_passes(status: &NodeStatus) -> Option<MetricFamily> {
    let mut passes = gauge("passes", "Planned passes of a day behind and ahead, by state.");
    let mut by_state: BTreeMap<String, u64> = BTreeMap::new();
    for pass in &status.passes {
        *by_state.entry(word(&pass.state)).or_default() += 1;
    }
    for (state, number) in &by_state {
        passes.add(&[("state", state)], count(*number));
    }
    (!by_state.is_empty()).then_some(passes)
}

fn of_process(look: &NodeLook) -> Vec<MetricFamily> {
    let status = &look.status;
    let process = status.station.as_ref().map(|part| &part.process);
    let process = process.or(status.centre.as_ref().map(|part| &part.process));
    let threads = status.station.as_ref().map(|part| &part.threads);
    let threads = threads.or(status.centre.as_ref().map(|part| &part.threads));
    let taken = seconds_of(look);
    let mut build = gauge("build_info", "The release that the node runs; always 1.");
    build.add(&[("version", env!("CARGO_PKG_VERSION"))], 1.0);
    let mut families = vec![
        build,
        gauge("look_timestamp_seconds", "When these figures were taken.").value(taken),
        gauge(
            "alarms_active",
            "Alarms that an operator must act on, without those that others explain.",
        )
        .value(count(status.unexplained_alarms() as u64)),
    ];
    if let Some(process) = process {
        families.extend([
            gauge("node_start_time_seconds", "When the node started.")
                .value(taken - process.uptime_s),
            gauge("node_resident_memory_bytes", "Memory resident now.")
                .value(count(process.rss_bytes)),
            counter("log_dropped_lines", "Lines of the log that nobody read in time.")
                .value(count(process.log_dropped)),
        ]);
    }
    families.extend(threads.map(|threads| of_threads(threads)).into_iter().flatten());
    families
}

#[allow(clippy::cast_precision_loss, reason = "a report")]
fn seconds_of(look: &NodeLook) -> f64 {
    look.taken.as_micros() as f64 / 1e6
}

/// Threads by their names: those of one name are one.
fn of_threads(threads: &[ThreadStatus]) -> [MetricFamily; 2] {
    let mut by_name: BTreeMap<&str, (f64, f64)> = BTreeMap::new();
    for thread in threads {
        let (cpu, ready) = by_name.entry(&thread.name).or_default();
        *cpu += thread.cpu_s;
        *ready += thread.ready_s;
    }
    let mut cpu = counter("thread_cpu_seconds", "Processor time of the threads of a name.");
    let mut ready =
        counter("thread_ready_seconds", "Time in which these threads could have run and did not.");
    for (name, (ran, waited)) in by_name.into_iter().take(THREADS_MAX) {
        cpu.add(&[("thread", name)], ran);
        ready.add(&[("thread", name)], waited);
    }
    [cpu, ready]
}

/// Names of threads; a node has about thirty.
const THREADS_MAX: usize = 64;

/// The paths of all sessions.
fn of_paths(status: &NodeStatus) -> Vec<MetricFamily> {
    let mut up = gauge("path_up", "Whether the path carries data, or can.");
    let mut rtt = gauge("path_round_trip_seconds", "Smoothed round trip.");
    let mut loss = gauge("path_loss_ratio", "Share of datagrams lost.");
    let mut allowed =
        gauge("path_allowed_bytes_per_second", "What the congestion controller allows now.");
    let mut sent = counter("path_sent_bytes", "Bytes of blocks sent, retransmissions included.");
    let mut stalls = counter("path_stalls", "How often the path stopped answering.");
    let mut repair = counter("path_repair_symbols", "FEC repair symbols by their fate.");
    let sending = status.station.iter().flat_map(|part| &part.destinations);
    let sending = sending.map(|one| (one.name.as_str(), &one.line.paths));
    let receiving = status.centre.iter().flat_map(|part| &part.stations);
    let receiving = receiving.map(|one| (one.name.as_str(), &one.paths));
    for (node, paths) in sending.chain(receiving) {
        for path in paths {
            let of = [("node", node), ("path", &*path.name), ("over", &*path.over)];
            let is_up = matches!(&*path.state, "active" | "standby" | "probing");
            up.add(&of, count(u64::from(is_up)));
            rtt.add(&of, path.rtt_s);
            loss.add(&of, path.loss);
            allowed.add(&of, count(path.rate_bps) / 8.0);
            sent.add(&of, count(path.bytes_sent));
            stalls.add(&of, count(path.stalls));
            for (fate, symbols) in [("used", path.repair.used), ("wasted", path.repair.wasted)] {
                repair.add(&[of[0], of[1], of[2], ("fate", fate)], count(symbols));
            }
        }
    }
    vec![up, rtt, loss, allowed, sent, stalls, repair]
}

/// The servers of products and of the page.
fn of_servers(status: &NodeStatus) -> Vec<MetricFamily> {
    let mut connections = gauge("server_connections", "Connections now, by server.");
    let mut requests = counter("server_requests", "Requests by server and outcome.");
    let mut refused =
        counter("server_refused_connections", "Connections closed at once: too many.");
    if let Some(serve) = &status.serve {
        connections.add(&[("server", "products")], f64::from(serve.connections));
        refused.add(&[("server", "products")], count(serve.refused_connections));
        for (outcome, value) in [
            ("answered", serve.answered),
            ("refused", serve.refused),
            ("unauthorized", serve.unauthorized),
            ("over_budget", serve.over_budget),
        ] {
            requests.add(&[("server", "products"), ("outcome", outcome)], count(value));
        }
    }
    if let Some(web) = &status.web {
        connections.add(&[("server", "web")], f64::from(web.connections));
        refused.add(&[("server", "web")], count(web.refused_connections));
        for (outcome, value) in [
            ("answered", web.answered),
            ("refused", web.refused),
            ("unauthorized", web.unauthorized),
        ] {
            requests.add(&[("server", "web"), ("outcome", outcome)], count(value));
        }
    }
    vec![connections, requests, refused]
}

#[cfg(test)]
mod tests;
