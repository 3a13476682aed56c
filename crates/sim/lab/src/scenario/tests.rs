//! Scenarios as a whole: what is refused and how, what is repeatable, what the outputs hold.

use super::*;
use core::num::NonZeroUsize;
use proptest::prelude::*;

const TINY: &str = r#"
name = "tiny"
title = "a small sweep <for> tests"
source = "nowhere"
kind = "flow"
seeds = [1, 2]
columns = ["ratio", "queue_delay_p50_s"]

[parameters]
rate = "8 Mbit/s"
rtt = "40 ms"
duration = "4 s"
warm_up = "1 s"

[[axis]]
name = "sender"
values = [{ label = "declared", set = { controller = "line" } }, { label = "half", set = { controller = { kind = "line", rate = "4 Mbit/s" } } }]

[[axis]]
name = "loss"
values = ["0 %", "10 %"]

[[table]]
rows = ["sender"]
columns = "loss"
metric = "ratio"

[[plot]]
title = "Goodput against loss"
shape = "lines"
x = "loss"
metric = "ratio"
by = ["sender"]

[[plot]]
title = "Goodput"
shape = "heat-map"
x = "loss"
y = "sender"
metric = "goodput_bps"

[[plot]]
title = "Arrivals"
shape = "series"
series = "rate"

[[bar]]
text = "the declared rate is used"
metric = "ratio"
at_least = 0.97
cells = { sender = "declared" }

[[bar]]
text = "half a rate is half of the line"
metric = "ratio"
at_least = 0.4
at_most = 0.6
over = "median"
cells = { sender = "half" }

[[bar]]
text = "a bar that is missed"
metric = "ratio"
at_least = 0.97

[published]
source = "a paper"
metric = "goodput_bps"
values = [{ cells = { sender = "half", loss = "0 %" }, value = 4e6 }]
"#;

fn scenario(text: &str) -> Scenario {
    Scenario::parse(text, "test.toml").unwrap_or_else(|error| panic!("{error}"))
}

fn jobs(count: usize) -> NonZeroUsize {
    NonZeroUsize::new(count).unwrap()
}

#[test]
fn a_run_is_the_same_whatever_runs_beside_it_but_for_its_time() {
    let scenarios = [scenario(TINY)];
    let json = |count| {
        let outcomes = run(&scenarios, &CellSelection::default(), jobs(count), &Silent);
        let mut json = serde_json::to_value(&outcomes[0]).unwrap();
        assert!(json["wall_seconds"].take().as_f64().unwrap() > 0.0);
        (
            serde_json::to_string(&json).unwrap(),
            OutcomeText(&outcomes[0]).to_string().lines().count(),
        )
    };
    assert_eq!(json(1), json(3));
}

#[test]
fn the_json_has_the_keys_that_programs_rely_on() {
    let scenarios = [scenario(TINY)];
    let outcomes = run(&scenarios, &CellSelection::default(), jobs(2), &Silent);
    let json = serde_json::to_value(&outcomes[0]).unwrap();
    assert_eq!((json["name"].as_str(), json["seed"].as_u64()), (Some("tiny"), Some(1)));
    assert_eq!(json["virtual_seconds"].as_f64(), Some(32.0));
    assert_eq!(json["parameters"]["rtt"].as_str(), Some("40 ms"));
    let cells = json["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 8);
    let cell = &cells[4];
    assert_eq!(
        (cell["sender"].as_str(), cell["loss"].as_str(), cell["seed"].as_u64()),
        (Some("half"), Some("0 %"), Some(1))
    );
    for key in
        ["goodput_bps", "limit_bps", "ratio", "startup_s", "queue_delay_p50_s", "of_published"]
    {
        assert!(cell.get(key).is_some(), "{key} is not in {cell}");
    }
    assert!(cell["packets"]["sent"].as_u64() >= cell["packets"]["delivered"].as_u64());
    assert!((cell["of_published"].as_f64().unwrap() - 0.95).abs() < 0.1, "{cell}");
    assert!(cells[0]["published"].is_null());
    let bars: Vec<_> = json["bars"]
        .as_array()
        .unwrap()
        .iter()
        .map(|bar| bar["outcome"].as_str().unwrap())
        .collect();
    assert_eq!(bars, ["pass", "pass", "FAIL"]);
}

#[test]
fn the_text_is_as_it_was_reviewed() {
    let scenarios = [scenario(TINY)];
    let text =
        OutcomeText(&run(&scenarios, &CellSelection::default(), jobs(2), &Silent)[0]).to_string();
    let steady: Vec<_> = text.lines().filter(|line| !line.contains("run time")).collect();
    insta::assert_snapshot!(steady.join("\n"));
}

#[test]
fn the_report_holds_every_cell_bar_and_plot_and_nothing_from_elsewhere() {
    let scenarios = [scenario(TINY)];
    let outcomes = run(&scenarios, &CellSelection::default(), jobs(2), &Silent);
    let page = report::page(&outcomes);
    for run in &outcomes[0].runs {
        let ratio = Unit::Share.show(run.figure("ratio").unwrap());
        let labels = outcomes[0].labels(run);
        let row = format!(
            "{}</td><td class=\"word\">{}</td><td class=\"word\">{}</td><td>{ratio}",
            labels[0], labels[1], run.seed
        );
        assert!(page.contains(&row), "{row}");
    }
    for bar in &outcomes[0].scenario.bars {
        assert!(page.contains(&bar.text));
    }
    assert_eq!(page.matches("<figure>").count(), 3);
    assert!(page.contains("&lt;for&gt;") && !page.contains("<for>"));
    assert!(page.contains("skyhaul lab run tiny"));
    assert!(!page.contains("http") && !page.contains("<script"), "the page must stand alone");
    assert!(!page.contains("NaN") && !page.contains("inf"));
}

#[test]
fn selected_cells_alone_are_run_and_judged() {
    let scenarios = [scenario(TINY)];
    let outcomes = run(&scenarios, &"sender=declared,loss=10%".parse().unwrap(), jobs(2), &Silent);
    assert_eq!(outcomes[0].runs.len(), 2);
    assert_eq!(outcomes[0].verdicts[1].outcome, BarResult::NotRun);
    assert_eq!(outcomes[0].score(), (2, 2));
}

/// What stands in the scenario, what is written in its place, and what the error tells.
const MISTAKES: &[(&str, &str, &str)] = &[
    (
        "kind = \"flow\"",
        "kind = \"flaw\"",
        "no kind of experiment is called `flaw`, test.toml:5; help: the kinds are `flow`",
    ),
    (
        "kind = \"flow\"",
        "kind = \"flow\"\nspeed = 3",
        "unknown key `speed`, test.toml:6; help: the keys here are",
    ),
    (
        "rtt = \"40 ms\"",
        "rtt = \"40 ms\"\nrttt = \"1 s\"",
        "unknown key `rttt`, test.toml:12; help: the keys here are",
    ),
    (
        "rtt = \"40 ms\"",
        "rtt = 40",
        "integer `40` stands where something else belongs, test.toml:11; help: write it in \
        quotes",
    ),
    ("rtt = \"40 ms\"", "", "the key `rtt` is missing, test.toml:9; help: add `rtt`"),
    ("rtt = \"40 ms\"", "rtt = \"40 m/s\"", "`40 m/s` is not a duration"),
    ("values = [\"0 %\", \"10 %\"]", "values = [\"0 %\", \"ten\"]", "`ten` is not a probability"),
    (
        "values = [\"0 %\", \"10 %\"]",
        "values = [\"0 %\", \"0 %\"]",
        "`0 %` stands twice on the axis, test.toml:21",
    ),
    ("values = [\"0 %\", \"10 %\"]", "values = []", "axis `loss` has no values, test.toml:21"),
    ("name = \"loss\"", "name = \"losss\"", "unknown key `losss`"),
    (
        "name = \"loss\"",
        "name = \"rtt\"",
        "parameter `rtt` is set twice, test.toml:21; help: set each parameter",
    ),
    (
        "controller = \"line\"",
        "controller = \"lime\"",
        "`lime` is not known here, test.toml:17; help: write one of",
    ),
    (
        "label = \"half\"",
        "lable = \"half\"",
        "a table as a value of an axis needs a label, test.toml:17",
    ),
    (
        "seeds = [1, 2]",
        "seeds = { from = 1, count = 100000 }",
        "more than 10000 seeds, test.toml:6",
    ),
    ("seeds = [1, 2]", "seeds = []", "there is no seed, test.toml:6"),
    (
        "columns = [\"ratio\"",
        "columns = [\"ration\"",
        "`flow` experiments have no figure `ration`, test.toml:7; help: the figures are",
    ),
    (
        "over = \"median\"",
        "over = \"mostly\"",
        "says not over which runs a bar is judged, test.toml:58",
    ),
    ("at_most = 0.6", "at_most = 0.2", "no figure is within the bar, test.toml:54"),
    (
        "cells = { sender = \"half\" }",
        "cells = { sender = \"third\" }",
        "axis `sender` has no `third`, test.toml:59; help: it has `declared`, `half`",
    ),
    ("x = \"loss\"\nmetric", "metric", "the plot lacks a key"),
    ("kind = \"flow\"", "kind = flow", "test.toml:5"),
];

#[test]
fn what_is_wrong_is_told_with_its_place_and_what_to_do() {
    let mut otherwise = Vec::new();
    for (right, wrong, told) in MISTAKES {
        let text = TINY.replacen(right, wrong, 1);
        assert_ne!(text, TINY, "{right}");
        let error = Scenario::parse(&text, "test.toml")
            .err()
            .map_or("it was read".to_owned(), |e| e.to_string());
        otherwise.extend((!error.contains(told)).then(|| format!("{wrong}: {error}")));
    }
    assert!(otherwise.is_empty(), "{}", otherwise.join("\n"));
}

#[test]
fn too_many_cells_are_refused_before_they_are_made() {
    let values: Vec<_> = (0..200).map(|n| format!("\"{n} ms\"")).collect();
    let axis =
        |name: &str| format!("\n[[axis]]\nname = \"{name}\"\nvalues = [{}]\n", values.join(", "));
    let text = format!("{TINY}{}{}{}", axis("jitter"), axis("queue"), axis("offered"));
    let error = Scenario::parse(&text, "test.toml").unwrap_err();
    assert!(error.to_string().contains("more than 10000 cells"), "{error}");
}

#[test]
fn every_scenario_of_the_program_can_be_run_and_is_called_after_its_file() {
    for (file, text) in BUILTIN {
        let scenario = Scenario::parse(text, file).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(Some(scenario.name.as_str()), file.strip_suffix(".toml"));
        assert!(!scenario.bars.is_empty(), "{file} has nothing to reach");
        assert!(
            !scenario.cells.is_empty() && scenario.virtual_time() > skyhaul_units::Duration::ZERO
        );
        assert!(scenario.title.len() < 120, "{file}: the title is more than a line");
    }
}

#[test]
fn every_scenario_file_is_in_the_program() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../scenarios");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.ends_with(".toml"))
        .collect();
    let mut known: Vec<String> = BUILTIN.iter().map(|(file, _)| (*file).to_owned()).collect();
    files.sort();
    known.sort();
    assert_eq!(files, known);
}

#[test]
fn the_documentation_names_every_kind_with_every_figure() {
    let text = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../docs/how-to/lab.md"
    ))
    .unwrap();
    for kind in kind::KINDS {
        let row = text.lines().find(|line| line.starts_with(&format!("| `{}` | `", kind.name())));
        let row = row.unwrap_or_else(|| panic!("there is no row for `{}`", kind.name()));
        let told: Vec<&str> = row.split('`').skip(3).step_by(2).collect();
        let figures: Vec<&str> = kind.metrics().iter().map(|metric| metric.key).collect();
        assert_eq!(told, figures, "write: | `{}` | `{}` |", kind.name(), figures.join("`, `"));
    }
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,200}") {
        let _ = Scenario::parse(&text, "any.toml");
    }

    #[test]
    fn any_damage_is_read_or_refused(at in 0..TINY.len(), with in "[ \
                                                                  -~]{0,3}", count in 0usize..20) {
        prop_assume!(TINY.is_char_boundary(at)
            && TINY.is_char_boundary((at + count).min(TINY.len())));
        let text = format!("{}{with}{}", &TINY[..at], &TINY[(at + count).min(TINY.len())..]);
        if let Err(error) = Scenario::parse(&text, "any.toml") {
            prop_assert!(error.place().starts_with("any.toml"), "{error}");
        }
    }
}
