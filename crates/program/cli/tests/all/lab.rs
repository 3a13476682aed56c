//! `skyhaul lab` as a user runs it: results, the page, exit codes, and what is refused.

use crate::support::process::{run, text};
use crate::support::refusal::assert_refused;
use serde_json::Value;
use std::path::Path;
use std::process::Output;

const TINY: &str = r#"
name = "tiny"
title = "a declared line"
source = "a test"
kind = "flow"

[parameters]
rate = "8 Mbit/s"
rtt = "40 ms"
duration = "3 s"
warm_up = "1 s"
controller = "line"

[[axis]]
name = "loss"
values = ["0 %", "5 %"]

[[bar]]
text = "the line is used"
metric = "ratio"
at_least = 0.97
"#;

fn lab(arguments: &[&str], folder: &Path) -> Output {
    run(&[&["lab"], arguments].concat(), folder)
}

/// A folder with a scenario in it.
fn folder(scenario: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().expect("a folder for the test");
    std::fs::write(folder.path().join("tiny.toml"), scenario).expect("a fresh folder takes a file");
    folder
}

#[test]
fn a_scenario_file_runs_and_its_page_is_written() {
    let folder = folder(TINY);
    let output = lab(&["run", "tiny.toml", "--report", "out/of/it"], folder.path());
    assert!(output.status.success(), "{}", text(&output.stderr));
    assert!(text(&output.stdout).contains("pass  the line is used"));
    let page = std::fs::read_to_string(folder.path().join("out/of/it/lab.html")).unwrap();
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("the line is used"));
    assert!(output.stderr.is_empty(), "a run of a moment tells nothing of its progress");
}

#[test]
fn json_is_the_same_in_each_run_except_for_the_time_taken() {
    let folder = folder(TINY);
    let run = |jobs| {
        let output = lab(&["run", "tiny.toml", "--json", "--jobs", jobs], folder.path());
        let text = text(&output.stdout);
        assert_eq!(text.lines().count(), 1);
        let mut json: Value = serde_json::from_str(&text).unwrap();
        assert!(json["wall_seconds"].take().is_number());
        json
    };
    let json = run("1");
    assert_eq!(json["cells"].as_array().unwrap().len(), 2);
    assert_eq!(json["bars"][0]["outcome"], "pass");
    assert_eq!(json, run("2"));
}

#[test]
fn a_missed_bar_ends_with_exit_code_1_and_the_result_is_still_shown() {
    let folder = folder(&TINY.replace("0.97", "1.5"));
    let output = lab(&["run", "tiny.toml"], folder.path());
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stdout).contains("FAIL  the line is used"));
    let error = text(&output.stderr);
    assert!(error.starts_with("error: 1 of 1 bars are missed, tiny; help: "), "{error}");
}

#[test]
fn cells_are_selected_by_their_labels() {
    let folder = folder(TINY);
    let output = lab(&["run", "tiny.toml", "--json", "--cells", "loss=5%"], folder.path());
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["cells"].as_array().unwrap().len(), 1);
    assert_eq!(json["cells"][0]["loss"], "5 %");
}

#[test]
fn what_cannot_be_run_is_reported_in_one_sentence() {
    let folder = folder(&TINY.replace("rtt =", "rrt ="));
    std::fs::write(folder.path().join("right.toml"), TINY).unwrap();
    std::fs::write(folder.path().join("binary.toml"), [0xff, 0xfe]).unwrap();
    let cases: [(&[&str], i32, [&str; 2]); 6] = [
        (&["run", "tiny.toml"], 2, ["unknown key `rrt`, tiny.toml:9", "the keys here are"]),
        (&["run", "lines"], 2, ["there is no scenario `lines`", "skyhaul lab list"]),
        (&["run", "absent.toml"], 3, ["cannot be read", "absent.toml"]),
        (&["run", "binary.toml"], 2, ["is not text, binary.toml", "UTF-8"]),
        (
            &["run", "right.toml", "--cells", "loss=7%"],
            2,
            ["axis `loss` has no `7%`", "it has `0 %`, `5 %`"],
        ),
        (
            &["run", "right.toml", "--report", "right.toml"],
            3,
            ["the report cannot be written", "--report"],
        ),
    ];
    for (arguments, exit, parts) in cases {
        assert_refused(&lab(arguments, folder.path()), exit, &parts);
    }
}

#[test]
fn the_list_shows_each_scenario_with_its_duration_and_each_kind_with_its_figures() {
    let list = text(&lab(&["list"], Path::new(".")).stdout);
    for name in ["line", "adaptive", "over-quic"] {
        assert!(
            list.lines().any(|line| line.starts_with(name) && line.contains(" runs ")),
            "{list}"
        );
    }
    let kinds = text(&lab(&["kinds"], Path::new(".")).stdout);
    assert!(kinds.contains("flow: ") && kinds.contains("  goodput_bps "), "{kinds}");
}
