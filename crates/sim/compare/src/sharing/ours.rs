//! Skyhaul's sharing: one session with two senders, each under its own class. The line's rate is
//! declared, as it is to the kernel's HTB.

use super::course::{RateSeries, laid_out, steps};
use super::{MissionClass, Sharing, Tree};
use crate::bench::Bench;
use crate::gone::Gone;
use crate::tool_run::{PORT, own_program};
use serde_json::Value;

/// Runs all phases of one tree.
pub fn run(bench: &Bench<'_>, experiment: &Sharing, tree: &Tree) -> Result<RateSeries, Gone> {
    let at = format!("{}:{PORT}", bench.far(0));
    let program = own_program();
    let (test, beyond) = ("--insecure-test", "--insecure-beyond-loopback");
    let serve =
        [&program, "perf", "serve", test, beyond, "--once", "--bind", &at].map(str::to_owned);
    let mut serving = bench.serve(&serve, "udp", PORT)?;
    let phase = experiment.sharing.phase;
    let class = |name: &str, class: MissionClass, quantum: u64| {
        let (guarantee, priority) = (class.guarantee.as_bps(), class.priority);
        format!("{name}:guarantee={guarantee} bit/s,priority={priority},quantum={quantum} B")
    };
    let [one, other] = tree.quanta();
    let (first, second) = (class("first", tree.first, one), class("second", tree.second, other));
    let nanos = |times: u64| format!("{} ns", phase.scaled(times, 1).as_nanos());
    let second = format!("{second},from={},until={}", nanos(1), nanos(2));
    let rate = format!("{} bit/s", experiment.rate().as_bps());
    let send = [
        &program,
        "perf",
        "send",
        test,
        beyond,
        "--json",
        "--to",
        &at,
        "--cc",
        "line",
        "--rate",
        &rate,
        "--block",
        BLOCK,
        "--duration",
        &nanos(3),
        "--class",
        &first,
        "--class",
        &second,
    ]
    .map(str::to_owned);
    let said = bench.send(&send, &mut serving)?;
    let read = said.lines().last().and_then(|line| serde_json::from_str(line).ok());
    read.and_then(|read| course(&read, steps(phase.scaled(3, 1))))
        .ok_or_else(|| Gone::Failed("what `skyhaul perf send` found cannot be read".to_owned()))
}

/// The two classes in its JSON form.
fn course(found: &Value, count: usize) -> Option<RateSeries> {
    let of = |name: &str| {
        let class = found["classes"].as_array()?.iter().find(|class| class["name"] == name)?;
        let tenths =
            class["tenths"].as_array()?.iter().map(Value::as_f64).collect::<Option<Vec<_>>>()?;
        let spans: Vec<(f64, f64, f64)> = tenths
            .iter()
            .enumerate()
            .map(|(at, bytes)| (at as f64 / 10.0, (at + 1) as f64 / 10.0, bytes * 80.0))
            .collect();
        Some(laid_out(&spans, count))
    };
    Some(RateSeries { first: of("first")?, second: of("second")? })
}

/// Small beside what a tenth of a second holds, so that blocks in order do not make the course
/// jump.
const BLOCK: &str = "16 KiB";

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_classes_in_the_output_of_perf_are_read() {
        let found = json!({ "classes": [
            { "name": "first", "tenths": [125_000, 250_000] },
                { "name": "second", "tenths": [0, 0, 125_000] },
        ] });
        let course = course(&found, 3).unwrap();
        let near = |one: f64, other: f64| (one - other).abs() < 1.0;
        assert!(
            near(course.first[0], 10e6)
                && near(course.first[1], 20e6)
                && near(course.second[2], 10e6)
        );
        assert_eq!(super::course(&json!({ "classes": [] }), 3), None);
    }
}
