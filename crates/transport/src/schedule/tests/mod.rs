//! What holds for every policy, and how they compare.

mod simulation;

use super::*;
use proptest::prelude::*;
use simulation::{conversation, line_for, score, send};
use skyhaul_units::Rate;

fn policies() -> [PolicyConfig; 4] {
    [PolicyConfig::default(), PolicyConfig::Strict {}, PolicyConfig::Earliest {}, PolicyConfig::Fifo {}]
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
    let line = Line { rate: Rate::from_mbps(1), one_way_delay: Duration::ZERO };
    let block = |order, priority, deadline: Option<u64>| Candidate {
        size: Bytes::new(1_000),
        unsent: Bytes::new(1_000),
        priority,
        deadline: deadline.map(Instant::from_nanos),
        taken: Instant::ZERO,
        order,
        started: false,
    };
    let blocks = [block(0, 2, None), block(1, 1, Some(900)), block(2, 1, Some(500)), block(3, 0, None)];
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

#[test]
fn in_overload_urgency_beats_earliest_deadline_beats_fifo() {
    let mut sums = [0; 3];
    for seed in 0..6 {
        let offers = conversation(seed, 10);
        let line = line_for(&offers, 10, 150);
        let run = |policy: &dyn Policy| score(&send(policy, &line, offers.clone()), [3, 2, 1]);
        let scores = [run(&Urgency::new(UrgencyConfig::default())), run(&Earliest), run(&Fifo)];
        sums = std::array::from_fn(|policy| sums[policy] + scores[policy]);
    }
    let [urgency, earliest, fifo] = sums;
    assert!(urgency > earliest && earliest > fifo, "{urgency}, {earliest}, {fifo} thousandths in six runs");
}

#[test]
fn with_enough_line_everything_is_on_time() {
    for policy in [PolicyConfig::default(), PolicyConfig::Earliest {}] {
        let offers = conversation(7, 20);
        let line = line_for(&offers, 20, 80);
        assert_eq!(score(&send(policy.build().as_ref(), &line, offers), [3, 2, 1]), 1000, "{policy:?}");
    }
}

fn candidate() -> impl Strategy<Value = Candidate> {
    let times = (any::<u64>(), proptest::option::of(any::<u64>()));
    (times, any::<u64>(), any::<u64>(), any::<u8>(), any::<bool>()).prop_map(
        |((taken, deadline), size, unsent, priority, started)| Candidate {
            size: Bytes::new(size),
            unsent: Bytes::new(unsent),
            priority,
            deadline: deadline.map(Instant::from_nanos),
            taken: Instant::from_nanos(taken),
            order: 0,
            started,
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
        let line = Line { rate: Rate::from_bps(bps), one_way_delay: Duration::from_nanos(delay) };
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
