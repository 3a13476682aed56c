//! Pages about measurements of modelled links: they are whole, need nothing from elsewhere, and
//! show what was found.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by failing")]

use crate::support::Virtual;
use skyhaul_link::{GilbertElliott, LinkConfig, Loss, Reordering};
use skyhaul_probe::losses::losses;
use skyhaul_probe::paths::{PathFlow, Routes};
use skyhaul_probe::report::{self, Minute, Subject};
use skyhaul_probe::stats::VlbiRule;
use skyhaul_probe::survey::{SurveyPlan, survey};
use skyhaul_probe::sweep::{SweepPlan, sweep};
use skyhaul_probe::{ProbeClient, Spec, StreamDirection};
use skyhaul_units::{ByteCount, Duration, Probability, Rate, Utc};

fn subject() -> Subject {
    Subject {
        far: "far.example.org <&>".to_owned(),
        began: Utc::from_micros(1_700_000_000_000_000),
        version: "1.2.3",
    }
}

/// A line with jitter, losses in bursts and datagrams out of order.
fn line() -> LinkConfig {
    let reordering = Reordering {
        probability: Probability::from_ppb(2_000_000),
        extra_delay: Duration::from_millis(3),
    };
    let bursts = GilbertElliott::with_bursts(
        Probability::from_ppb(10_000_000),
        core::num::NonZeroU32::new(3).unwrap(),
    );
    LinkConfig {
        loss: Loss::GilbertElliott(bursts.unwrap()),
        reordering: Some(reordering),
        jitter: Duration::from_millis(1),
        ..LinkConfig::line(Rate::from_mbps(40), Duration::from_millis(30))
    }
}

fn near(config: LinkConfig) -> ProbeClient<Virtual> {
    ProbeClient::open(Virtual::new(config.clone(), config, 3), 4).unwrap()
}

/// Asserts that a page is one, with these words in it, and gives it back.
#[track_caller]
fn whole(page: &str, name: &str, words: &[&str]) {
    assert!(page.starts_with("<!DOCTYPE html>") && page.ends_with("</html>\n"), "{name}");
    for banned in ["<script", "http", "src=", "href=", "@import", "url(", "NaN", "inf", "<&>"] {
        assert!(!page.contains(banned), "{banned} in {name}");
    }
    for element in ["figure", "section", "table", "svg", "ul", "li", "p", "g", "tr", "td", "th"] {
        let count = |mark: String| page.matches(&mark).count();
        let begun = count(format!("<{element}>")) + count(format!("<{element} "));
        assert_eq!(begun, count(format!("</{element}>")), "{element} in {name}");
    }
    for word in words {
        assert!(page.contains(word), "{word} is not in {name}");
    }
}

#[test]
fn a_survey_is_shown_with_rates_delays_intervals_and_the_account() {
    let mut near = near(line());
    let plan = SurveyPlan {
        time: Duration::from_secs(20),
        rate_max: Rate::from_mbps(400),
        payload_max: ByteCount::new(8_972),
        headers: ByteCount::new(28),
    };
    let found = survey(&mut near, &plan, &mut |_| {}).unwrap();
    let page = report::survey(&subject(), &found);
    let uncertainty = format!("± {:.3} ms", found.clocks.uncertainty_ms);
    let words = [
        "far.example.org &lt;&amp;&gt;",
        "Received against sent",
        "Intervals between losses up",
        "One-way delay down",
        "<td class=\"word\">unexplained</td><td>0</td><td>0</td>",
        "1500, 1500",
        &uncertainty,
    ];
    whole(&page, "survey", &words);
    assert_eq!(page, report::survey(&subject(), &found));
}

#[test]
fn a_sweep_is_shown_against_spacing_and_as_maps() {
    let mut near = near(LinkConfig { queue: ByteCount::kib(64), ..line() });
    let plan = SweepPlan {
        direction: StreamDirection::Up,
        payloads: [200, 600, 1_000, 1_400].map(ByteCount::new).to_vec(),
        spacings: [20, 50, 100, 200, 500, 1_000].map(Duration::from_micros).to_vec(),
        count: 2_000,
        rate_max: Rate::from_mbps(400),
        headers: ByteCount::new(28),
    };
    let found = sweep(&mut near, &plan, &mut |_| {}).unwrap();
    let page = report::sweep(&subject(), &found);
    let sent = found.points.iter().map(|point| point.sum.packets).sum::<u64>();
    let sum = format!("<td class=\"word\">sum: sent</td><td>{sent}</td>");
    let words = [
        "Throughput against spacing",
        "Loss against spacing",
        "Reordering against spacing",
        "Loss by size and spacing",
        "Received rate by size and spacing",
        "Time between arrivals",
        "streams above the allowed rate were skipped",
        &sum,
    ];
    whole(&page, "sweep", &words);
}

#[test]
fn losses_are_shown_with_the_fit_and_without_any() {
    let spec =
        Spec { payload: ByteCount::new(1_000), spacing: Duration::from_millis(1), count: 30_000 };
    let rule = VlbiRule { datagrams_a_frame: 1, frames_in_a_row: 3 };
    let found = losses(&mut near(line()), StreamDirection::Up, spec, rule).unwrap();
    let words =
        ["exponential", "Runs of losses", "Autocorrelation", "Gilbert-Elliott", "Kolmogorov"];
    whole(&report::losses(&subject(), &found), "loss", &words);
    let independent = Loss::Independent(Probability::from_ppb(20_000_000));
    let random = losses(
        &mut near(LinkConfig { loss: independent, ..line() }),
        StreamDirection::Up,
        spec,
        rule,
    )
    .unwrap();
    whole(&report::losses(&subject(), &random), "loss-random", &["these may be such"]);
    let none = losses(
        &mut near(LinkConfig { loss: Loss::None, ..line() }),
        StreamDirection::Down,
        spec,
        rule,
    )
    .unwrap();
    whole(
        &report::losses(&subject(), &none),
        "loss-none",
        &["Nothing is missing", "down from far"],
    );
}

#[test]
fn routes_are_shown_as_steps() {
    let flow = |n: u16| {
        let trip = |k: u64| {
            Duration::from_micros(
                if n.is_multiple_of(3) { 12_000 } else { 8_000 }
                    + (k * 7_919 + u64::from(n) * 31) % 1_000,
            )
        };
        PathFlow { port: 5_000 + n, round_trips: (0..50).map(trip).collect(), asked: 52 }
    };
    let found = Routes::of(&(0..16).map(flow).collect::<Vec<_>>());
    whole(&report::paths(&subject(), &found), "paths", &["route 2", "5003"]);
    whole(&report::paths(&subject(), &Routes::of(&[])), "paths-none", &["Routes"]);
}

#[test]
fn weeks_are_shown_with_their_alarms_however_many_there_are() {
    let minute = |n: i64| {
        let load = (n as f64 / 230.0).sin().powi(2) * 20.0;
        let is_gap = (3_000..3_100).contains(&n);
        Minute {
            began: Utc::from_micros(1_700_000_000_000_000 + n * 60_000_000),
            pings: if is_gap { [0, 0] } else { [60, u64::from(n % 97 == 0)] },
            round_trip_ms: (!is_gap).then_some([60.0, 60.5 + load, 62.0 + load * 2.0]),
            one_way_ms: (!is_gap).then_some([30.0 + load / 2.0, 30.5]),
            alarms: if is_gap { vec!["gap: no answer in 9 s".to_owned()] } else { Vec::new() },
        }
    };
    let minutes: Vec<Minute> = (0..20_160).map(minute).collect();
    let page = report::weeks(&subject(), &minutes);
    whole(&page, "long", &["days since 2023-11-14 22:13", "gap: no answer in 9 s", "Loss"]);
    assert!(page.len() < 400_000, "{}", page.len());
    whole(
        &report::weeks(&subject(), &minutes[..30]),
        "long-short",
        &["minutes since", "No alarm."],
    );
    whole(&report::weeks(&subject(), &[]), "long-none", &["none"]);
}
