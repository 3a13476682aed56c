//! The kernel's sharing: two TCP connections by iperf3, distinguished by their ports, under HTB on
//! the sender's device.

use super::course::{RateSeries, laid_out, steps};
use super::{MissionClass, Sharing, Tree};
use crate::bench::Bench;
use crate::gone::Gone;
use crate::program::Program;
use crate::wait::pause;
use serde_json::Value;
use skyhaul_emulator::LinkEnd;
use skyhaul_units::{ByteCount, Duration};
use std::process::Command;
use std::time::Instant;

/// Of `tc`; otherwise why not, and what to do.
pub fn version() -> Result<String, String> {
    let output = Command::new("tc")
        .arg("-V")
        .output()
        .map_err(|_| "there is no `tc`; install iproute2".to_owned())?;
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let version = said.split_whitespace().find_map(|word| word.strip_prefix("iproute2-"));
    Ok(format!("iproute2 {}", version.unwrap_or("of unknown version").trim_end_matches(',')))
}

/// Runs all phases of one tree.
pub fn run(bench: &Bench<'_>, experiment: &Sharing, tree: &Tree) -> Result<RateSeries, Gone> {
    shape(bench, experiment, tree)?;
    let (phase, control) = (experiment.sharing.phase, experiment.sharing.control.as_str());
    let serve = |port: u16| {
        let words =
            ["iperf3", "-s", "-1", "-J", "-i", "0.1", "-B", &bench.far(0), "-p", &port.to_string()];
        bench.serve(&words.map(str::to_owned), "tcp", port)
    };
    let (mut first_end, mut second_end) = (serve(FIRST)?, serve(SECOND)?);
    let begin = |port: u16, span: Duration| {
        let seconds = span.as_secs_f64().round().to_string();
        let words = [
            "iperf3",
            "-c",
            &bench.far(0),
            "-C",
            control,
            "-t",
            &seconds,
            "-i",
            "0",
            "-p",
            &port.to_string(),
        ];
        bench.begin(&words.map(str::to_owned))
    };
    let began = now();
    let first = begin(FIRST, phase.scaled(3, 1))?;
    while began.elapsed() < phase.to_std() {
        if bench.is_interrupted() {
            return Err(Gone::Interrupted);
        }
        pause(STEP);
    }
    let later = began.elapsed().as_secs_f64();
    let second = begin(SECOND, phase)?;
    bench.finish(second, &mut second_end)?;
    bench.finish(first, &mut first_end)?;
    let count = steps(phase.scaled(3, 1));
    Ok(RateSeries {
        first: received(bench, first_end, 0.0, count)?,
        second: received(bench, second_end, later, count)?,
    })
}

/// What a serving iperf3 received, `later` seconds after the course's beginning.
fn received(
    bench: &Bench<'_>,
    serving: Program,
    later: f64,
    count: usize,
) -> Result<Vec<f64>, Gone> {
    // It ends by itself after one connection.
    let said = serving.finish(bench.site.patience, bench.site.stop, None)?;
    let read: Value = serde_json::from_str(&said).unwrap_or_default();
    let spans = read["intervals"].as_array().map(|intervals| {
        let of = |interval: &Value, key: &str| interval["sum"][key].as_f64();
        let span = |interval: &Value| {
            Some((
                later + of(interval, "start")?,
                later + of(interval, "end")?,
                of(interval, "bits_per_second")?,
            ))
        };
        intervals.iter().filter_map(span).collect::<Vec<_>>()
    });
    match spans.filter(|spans| !spans.is_empty()) {
        Some(spans) => Ok(laid_out(&spans, count)),
        None => {
            let why = read["error"].as_str().unwrap_or("its result cannot be read");
            Err(Gone::Failed(format!("iperf3: {why}")))
        }
    }
}

/// Puts the tree on the sender's device.
fn shape(bench: &Bench<'_>, experiment: &Sharing, tree: &Tree) -> Result<(), Gone> {
    let device = &bench.line.links[0].name;
    for command in commands(experiment, tree, device) {
        let words: Vec<String> = command.split_whitespace().map(str::to_owned).collect();
        let namespace = bench.namespace(LinkEnd::A);
        let output =
            Command::new("ip").args(["netns", "exec", namespace.name()]).args(&words).output();
        let output = output
            .map_err(|error| Gone::Failed(format!("`ip netns exec` cannot be run ({error})")))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            let said = said
                .lines()
                .find(|line| line.contains("rror"))
                .unwrap_or("it does not say why")
                .trim()
                .to_owned();
            return Err(Gone::Failed(format!("{NO_HTB} (`{command}`: {said})")));
        }
    }
    Ok(())
}

/// The tree in the words of `tc`. Queues of the classes are as long as the line's.
fn commands(experiment: &Sharing, tree: &Tree, device: &str) -> Vec<String> {
    let line = experiment.rate().as_bps();
    let queue =
        experiment.line.links.first().map_or(ByteCount::ZERO, |link| link.up.queue).as_u64();
    let quanta = tree.quanta();
    let class = |number: u32, class: MissionClass, quantum: u64| {
        let (guarantee, priority) = (class.guarantee.as_bps(), class.priority);
        format!(
            "tc class add dev {device} parent 1:1 classid 1:{number} htb rate {guarantee}bit ceil \
            {line}bit prio {priority} quantum {quantum}"
        )
    };
    let leaf = |number: u32| {
        format!("tc qdisc add dev {device} parent 1:{number} handle {number}: bfifo limit {queue}")
    };
    vec![
        format!("tc qdisc add dev {device} root handle 1: htb default 11"),
        format!(
            "tc class add dev {device} parent 1: classid 1:1 htb rate {line}bit ceil {line}bit"
        ),
        class(11, tree.first, quanta[0]),
        class(12, tree.second, quanta[1]),
        leaf(11),
        leaf(12),
        format!(
            "tc filter add dev {device} parent 1: protocol ip u32 match ip dport {SECOND} 0xffff \
            flowid 1:12"
        ),
    ]
}

#[allow(clippy::disallowed_methods, reason = "programs are started so long after each other")]
fn now() -> Instant {
    Instant::now()
}

/// The error of a kernel without the queueing discipline.
pub const NO_HTB: &str = "the kernel does not take the tree";

/// Where the receivers of the two missions listen.
const FIRST: u16 = 5201;
const SECOND: u16 = 5202;

/// How often an interruption is looked for.
const STEP: Duration = Duration::from_millis(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::text_of;

    #[test]
    fn the_tree_is_that_of_the_file() {
        let experiment = Sharing::parse(&text_of("qos").unwrap(), "qos").unwrap();
        let said = commands(&experiment, &experiment.sharing.trees[0], "line").join("\n");
        for part in [
            "classid 1:1 htb rate 50000000bit ceil 50000000bit",
            "classid 1:11 htb rate 13500000bit ceil 50000000bit prio 0 quantum 3000",
            "classid 1:12 htb rate 31500000bit ceil 50000000bit prio 0 quantum 7000",
            "dport 5202 0xffff flowid 1:12",
        ] {
            assert!(said.contains(part), "{part} in\n{said}");
        }
    }
}
