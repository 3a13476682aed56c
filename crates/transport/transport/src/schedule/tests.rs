//! What holds for every policy, and how they compare.

mod simulation;

use super::*;
use proptest::prelude::*;
use simulation::{conversation, line_for, mixture, score, send};
use skyhaul_units::Rate;

fn policies() -> [PolicyConfig; 5] {
    let draft = PolicyConfig::Draft(DraftConfig::default());
    [
        PolicyConfig::default(),
        draft,
        PolicyConfig::Strict {},
        PolicyConfig::Earliest {},
        PolicyConfig::Fifo {},
    ]
}

#[test]
fn policies_are_chosen_by_name() {
    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct File {
        schedule: PolicyConfig,
    }
    for schedule in policies() {
        let text = toml::to_string(&File { schedule }).unwrap();
        assert_eq!(toml::from_str::<File>(&text).unwrap(), File { schedule }, "{text}");
    }
    let short: File = toml::from_str("schedule = { policy = \"urgency\" }").unwrap();
    assert_eq!(short.schedule, PolicyConfig::default());
    for (text, reason) in [
        ("{ policy = \"lifo\" }", "unknown variant `lifo`"),
        ("{ policy = \"fifo\", depth = 2 }", "unknown field `depth`"),
        ("{ policy = \"urgency\", a = \"1 %\" }", "unknown field `a`"),
        ("{ policy = \"urgency\", lowest_priority = 0 }", "nonzero"),
    ] {
        let error = toml::from_str::<File>(&format!("schedule = {text}")).unwrap_err().to_string();
        assert!(error.contains(reason), "{text}: {error}");
    }
}

#[test]
fn the_simple_policies_order_by_what_they_are_named_after() {
    let line = LineEstimate { rate: Rate::from_mbps(1), one_way_delay: Duration::ZERO };
    let block = |order, priority, deadline: Option<u64>| Candidate {
        size: ByteCount::new(1_000),
        unsent: ByteCount::new(1_000),
        priority,
        deadline: deadline.map(Instant::from_nanos),
        taken: Instant::ZERO,
        order,
        started: false,
        followers: Followers::default(),
    };
    let blocks =
        [block(0, 2, None), block(1, 1, Some(900)), block(2, 1, Some(500)), block(3, 0, None)];
    let sorted = |policy: &dyn Policy| {
        let mut orders: Vec<_> =
            blocks.iter().map(|b| (policy.key(Instant::ZERO, b, &line), b.order)).collect();
        orders.sort_unstable();
        orders.into_iter().map(|(_, order)| order).collect::<Vec<_>>()
    };
    assert_eq!(sorted(&Fifo), [0, 1, 2, 3]);
    assert_eq!(sorted(&Earliest), [2, 1, 0, 3]);
    assert_eq!(sorted(&Strict), [3, 2, 1, 0]);
}

/// Thousandths of the worth that is on time at `percent` of load, summed over twelve seeds:
/// urgency, draft, earliest, fifo.
fn on_time(workload: fn(u64, u64) -> Vec<simulation::Offer>, percent: u64) -> [u64; 4] {
    let mut sums = [0; 4];
    for seed in 0..12 {
        let offers = workload(seed, 10);
        let line = line_for(&offers, 10, percent);
        let run = |policy: &dyn Policy| score(&send(policy, &line, offers.clone()), [3, 2, 1]);
        let urgency = run(&Urgency::new(UrgencyConfig::default()));
        let scores =
            [urgency, run(&Draft::new(DraftConfig::default())), run(&Earliest), run(&Fifo)];
        sums = std::array::from_fn(|policy| sums[policy] + scores[policy]);
    }
    sums
}

#[test]
fn in_overload_urgency_beats_earliest_deadline_beats_fifo() {
    for percent in [150, 200, 300] {
        for workload in [conversation, mixture] {
            let [urgency, _, earliest, fifo] = on_time(workload, percent);
            assert!(
                urgency > earliest && earliest > fifo,
                "{percent} %: {urgency}, {earliest}, {fifo}"
            );
        }
    }
}

#[test]
fn urgency_keeps_more_than_the_draft_where_importance_and_deadline_disagree() {
    for (percent, gain) in [(150, 2), (200, 5)] {
        let [urgency, draft, ..] = on_time(mixture, percent);
        assert!(urgency * 100 >= draft * (100 + gain), "{percent} %: {urgency}, {draft}");
    }
    // And no less to speak of where they agree.
    for percent in [120, 150, 200, 300] {
        let [urgency, draft, ..] = on_time(conversation, percent);
        assert!(urgency * 200 >= draft * 199, "{percent} %: {urgency}, {draft}");
    }
}

#[test]
fn with_enough_line_everything_is_on_time() {
    for policy in [PolicyConfig::default(), PolicyConfig::Earliest {}] {
        let offers = conversation(7, 20);
        let line = line_for(&offers, 20, 80);
        assert_eq!(
            score(&send(policy.build().as_ref(), &line, offers), [3, 2, 1]),
            1000,
            "{policy:?}"
        );
    }
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let times = (any::<u64>(), proptest::option::of(any::<u64>()));
    (times, any::<u64>(), any::<u64>(), any::<u8>(), any::<bool>()).prop_map(
        |((taken, deadline), size, unsent, priority, started)| Candidate {
            size: ByteCount::new(size),
            unsent: ByteCount::new(unsent),
            priority,
            deadline: deadline.map(Instant::from_nanos),
            taken: Instant::from_nanos(taken),
            order: 0,
            started,
            followers: Followers::default(),
        },
    )
}

proptest! {
    #[test]
    fn every_policy_orders_anything_and_ties_go_by_hand_over(
        first in candidate(),
        now in any::<u64>(),
        bps in any::<u64>(),
        delay in any::<u64>(),
    ) {
        let line = LineEstimate { rate: Rate::from_bps(bps),
            one_way_delay: Duration::from_nanos(delay) };
        let now = Instant::from_nanos(now);
        let second = Candidate { order: 1, ..first };
        for config in policies() {
            let policy = config.build();
            let key = policy.key(now, &first, &line);
            prop_assert!(key < policy.key(now, &second, &line));
            prop_assert_eq!(key, policy.key(now, &first, &line));
        }
        let _ = can_arrive(now, &first, &line);
        let _ = forecast(now, &line, [(skyhaul_units::FlowId(0), &first)]);
    }
}
