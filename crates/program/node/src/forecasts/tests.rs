//! Which of several forecasts counts, and what is refused.

use super::*;
use crate::station::outside::board::{KnownFeed, KnownPlan, SeenHint};
use skyhaul_config::ConfigTime;
use skyhaul_hints::FeedValues;

fn at(secs: u64) -> Utc {
    Utc::from_nanos(0) + Duration::from_secs(1_000 + secs)
}

fn time(secs: u64) -> ConfigTime {
    at(secs).to_string().parse().expect("a time")
}

fn feed(rate: u64, until: u64) -> KnownFeed {
    let values = FeedValues { rate: Some(Rate::from_mbps(rate)), loss: percent(1) };
    KnownFeed {
        hint: Some(SeenHint { values, since: at(0), until: at(until) }),
        ..KnownFeed::default()
    }
}

fn percent(percent: u32) -> Option<Probability> {
    Some(Probability::from_ppb(percent * 10_000_000))
}

fn plan(windows: &[[u64; 3]]) -> KnownPlan {
    let window = |[start, end, rate]: &[u64; 3]| PlanWindow {
        start: at(*start),
        end: at(*end),
        rate: Rate::from_mbps(*rate),
        loss: percent(3),
    };
    KnownPlan { ahead: windows.iter().map(window).collect(), ..KnownPlan::default() }
}

const fn by_operator(says: PathHint) -> GivenHint {
    GivenHint { by: HintGiver::Operator, says }
}

fn by_program(name: &str, says: PathHint) -> GivenHint {
    GivenHint { by: HintGiver::Program(name.into()), says }
}

fn forecasts() -> PathForecasts {
    PathForecasts::of(&toml::from_str("").expect("a path"))
}

/// What is in force: by whom, rate in Mbit/s, loss in per cent.
fn in_force(forecasts: &mut PathForecasts, secs: u64) -> Vec<(HintOrigin, u64)> {
    let knowledge = forecasts.knowledge.clone();
    let _ = forecasts.learn(knowledge, at(secs));
    let shown = forecasts.outlook(at(secs)).hints;
    let value = |hint: &HintStatus| match hint.says {
        HintSays::Outage => 0,
        HintSays::Rate { rate_bps } => rate_bps / 1_000_000,
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a test")]
        HintSays::Loss { loss } => (loss * 100.0).round() as u64,
    };
    shown.iter().map(|hint| (hint.by, value(hint))).collect()
}

#[test]
fn the_operator_counts_before_the_feed_and_the_feed_before_the_plan() {
    use HintOrigin::{Feed, Operator, Plan};
    let mut forecasts = forecasts();
    let plan = plan(&[[10, 100, 50], [200, 300, 60]]);
    forecasts.learn(PathKnowledge { feed: Some(feed(20, 30)), plan: Some(plan) }, at(0));
    assert_eq!(in_force(&mut forecasts, 5), [(Feed, 20), (Feed, 1), (Plan, 0)], "out until 10");
    assert_eq!(forecasts.out_until(at(5)), Some(at(10)));
    assert_eq!(in_force(&mut forecasts, 15), [(Feed, 20), (Feed, 1)]);
    let rate = Rate::from_mbps(5);
    let hint = PathHint::Rate { from: None, until: Some(time(20)), rate };
    forecasts.apply("a", &by_operator(hint), at(15)).expect("taken");
    assert_eq!(in_force(&mut forecasts, 15), [(Operator, 5), (Feed, 1)]);
    assert_eq!(forecasts.ceiling(at(15)), Some(rate));
    assert_eq!(in_force(&mut forecasts, 25), [(Feed, 20), (Feed, 1)]);
    assert_eq!(in_force(&mut forecasts, 30), [(Plan, 50), (Plan, 3)], "the feed is stale");
    assert_eq!(in_force(&mut forecasts, 150), [(Plan, 0)]);
    assert_eq!(in_force(&mut forecasts, 250), [(Plan, 60), (Plan, 3)]);
    assert_eq!(in_force(&mut forecasts, 300), [], "the plan is over");
}

#[test]
fn only_what_differs_is_sent_again() {
    let mut forecasts = forecasts();
    let knowledge =
        |until| PathKnowledge { feed: Some(feed(20, until)), plan: Some(plan(&[[10, 90, 50]])) };
    assert!(forecasts.learn(knowledge(30), at(1)));
    assert!(!forecasts.learn(knowledge(30), at(2)));
    assert!(forecasts.learn(knowledge(31), at(3)), "it holds for longer");
    assert!(forecasts.learn(PathKnowledge::default(), at(4)));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let mut forecasts = forecasts();
    let loss = |from, until, percent: u32| PathHint::Loss {
        from: Some(time(from)),
        until: time(until),
        loss: Probability::from_ppb(percent * 10_000_000),
    };
    let rate = |bps| PathHint::Rate { from: None, until: None, rate: Rate::from_bps(bps) };
    for (hint, words) in [
        (loss(10, 20, 91), "out of range"),
        (loss(20, 20, 5), "the loss would end before it begins"),
        (loss(1, 2, 5), "the loss is over"),
        (rate(0), "out of range"),
        (rate(u64::MAX), "out of range"),
        (PathHint::Outage { from: time(9), until: time(8) }, "the outage would end before"),
    ] {
        let refused = forecasts.apply("a", &by_operator(hint), at(5)).expect_err("refused");
        assert!(refused.reason.contains(words), "{refused:?}");
    }
    for _ in 0..64 {
        forecasts.apply("a", &by_operator(loss(10, 20, 5)), at(5)).expect("taken");
    }
    let more = forecasts.apply("a", &by_operator(loss(10, 20, 5)), at(5));
    assert!(more.is_err(), "there are many");
    forecasts.apply("a", &by_operator(PathHint::Withdraw), at(5)).expect("taken");
    assert!(forecasts.is_empty());
}

#[test]
fn of_programs_the_newest_counts_before_the_feed_and_each_withdraws_its_own() {
    use HintOrigin::{Feed, Operator, Program};
    let rate = |mbps, until| PathHint::Rate {
        from: None,
        until: Some(time(until)),
        rate: Rate::from_mbps(mbps),
    };
    let mut forecasts = forecasts();
    forecasts.learn(PathKnowledge { feed: Some(feed(20, 900)), plan: None }, at(0));
    let give = |forecasts: &mut PathForecasts, hint: GivenHint, secs| {
        forecasts.apply("a", &hint, at(secs)).expect("taken")
    };
    give(&mut forecasts, by_program("modem", rate(7, 500)), 1);
    give(&mut forecasts, by_program("camera", rate(8, 400)), 2);
    let shown = [(Program, 7), (Program, 8), (Feed, 1)];
    assert_eq!(in_force(&mut forecasts, 3), shown);
    assert_eq!(forecasts.ceiling(at(3)), Some(Rate::from_mbps(8)), "the newest");
    give(&mut forecasts, by_program("modem", rate(9, 500)), 4);
    assert_eq!(in_force(&mut forecasts, 5), [(Program, 8), (Program, 9), (Feed, 1)]);
    assert_eq!(forecasts.outlook(at(5)).hints[1].program.as_deref(), Some("modem"));
    give(&mut forecasts, by_operator(rate(3, 100)), 6);
    assert_eq!(in_force(&mut forecasts, 6), [(Operator, 3), (Feed, 1)]);
    assert_eq!(in_force(&mut forecasts, 100), [(Program, 8), (Program, 9), (Feed, 1)]);
    give(&mut forecasts, by_program("modem", PathHint::Withdraw), 101);
    assert_eq!(in_force(&mut forecasts, 101), [(Program, 8), (Feed, 1)]);
    assert_eq!(in_force(&mut forecasts, 400), [(Feed, 20), (Feed, 1)], "it is over");
    // Names without end shut nobody out.
    for number in 0..100 {
        give(&mut forecasts, by_program(&number.to_string(), rate(1, 800)), 500);
    }
    assert_eq!(forecasts.programs.len(), 16);
    give(&mut forecasts, by_program("last", rate(2, 800)), 501);
    assert_eq!(forecasts.ceiling(at(502)), Some(Rate::from_mbps(2)));
    give(&mut forecasts, by_operator(PathHint::Withdraw), 503);
    assert_eq!(in_force(&mut forecasts, 503), [(Feed, 20), (Feed, 1)]);
}
