//! The tree against a line of fixed rate in virtual time.

mod random;
mod sender;

use super::*;
use sender::{Sender, Source};
use skyhaul_units::Duration;

const TEN_SECONDS: Instant = Instant::from_nanos(10_000_000_000);

fn config(text: &str) -> ClassesConfig {
    toml::from_str(text).unwrap()
}

/// Runs all leaves of `text` greedily for 10 s on a line of `mbps`.
fn run(text: &str, mbps: u64) -> Sender {
    let mut sender = Sender::greedy(&config(text), Rate::from_mbps(mbps));
    sender.run(TEN_SECONDS, |_| ());
    sender
}

/// That each leaf got that many thousandths of a Mbit/s, within 1 %.
fn assert_rates(sender: &Sender, expected: &[(&str, u64)]) {
    for (name, kbps) in expected {
        let got = sender.permille(name, Rate::from_mbps(1));
        assert!(got.abs_diff(*kbps) * 100 <= *kbps, "{name}: {got} kbit/s, expected {kbps}");
    }
}

/// Two inner levels, guarantees and ceilings at each.
const STATION: &str = r#"
    class = [
        { name = "voice", guarantee = "1 Mbit/s", ceiling = "2 Mbit/s", priority = 0 },
        { name = "science", guarantee = "60 Mbit/s" },
        { name = "level0", parent = "science", guarantee = "40 Mbit/s" },
        { name = "products", parent = "science", guarantee = "10 Mbit/s", ceiling = "20 Mbit/s" },
        { name = "bulk", guarantee = "5 Mbit/s", priority = 7 },
    ]
"#;

#[test]
fn guarantees_and_ceilings_hold_and_the_rest_goes_by_priority() {
    // voice borrows first, up to its ceiling. The class science lends the 10 Mbit/s that its
    // children are not promised, and after that they borrow from the root; 5 Mbit/s are left to
    // bulk by right.
    let sender = run(STATION, 93);
    assert_rates(
        &sender,
        &[("voice", 2_000), ("products", 20_000), ("bulk", 5_000), ("level0", 66_000)],
    );
}

#[test]
fn guarantees_hold_at_depth_four_with_any_mix_of_sizes() {
    let text = r#"
        class = [
            { name = "a", guarantee = "50 Mbit/s" },
            { name = "b", parent = "a", guarantee = "40 Mbit/s", ceiling = "45 Mbit/s" },
            { name = "c", parent = "b", guarantee = "20 Mbit/s", ceiling = "30 Mbit/s" },
            { name = "thin", parent = "c", guarantee = "300 kbit/s", priority = 7 },
            { name = "fat", parent = "c", guarantee = "19 Mbit/s", priority = 0 },
            { name = "beside", parent = "b", guarantee = "20 Mbit/s", priority = 7 },
            { name = "near", parent = "a", guarantee = "10 Mbit/s", priority = 7 },
            { name = "outside", priority = 0 },
        ]
    "#;
    for (small, large) in [(1_500, 1_500), (60, 9_000), (9_000, 60), (200, 65_000)] {
        let mut sender = Sender::greedy(&config(text), Rate::from_mbps(100));
        for source in &mut sender.sources {
            source.sizes = vec![large, large / 2];
        }
        sender.source("thin").sizes = vec![small];
        sender.source("near").sizes = vec![small, 1_500, 700];
        sender.run(TEN_SECONDS, |_| ());
        // fat borrows from the root beside outside, up to the ceiling of b: 45 - 0.3 - 20.
        assert_rates(
            &sender,
            &[("thin", 300), ("beside", 20_000), ("fat", 24_700), ("near", 10_000)],
        );
        assert_rates(&sender, &[("outside", 45_000)]);
    }
}

#[test]
fn guarantees_hold_for_256_leaves_of_unequal_size() {
    // One leaf is promised half of the line, the other 255 the rest; who borrows first is the
    // smallest.
    let mut text =
        String::from("class = [{ name = \"half\", guarantee = \"50 Mbit/s\", priority = 7 },");
    for number in 0..255 {
        text += &format!(
            "{{ name = \"{number}\", guarantee = \"190 kbit/s\", priority = {} }},",
            number % 8
        );
    }
    text += "]";
    let sender = run(&text, 100);
    assert!(sender.permille("half", Rate::from_mbps(50)) >= 990);
    for number in 0..255 {
        let got = sender.permille(&number.to_string(), Rate::from_bps(190_000));
        assert!(got >= 990, "{number}: {got}");
    }
}

#[test]
fn a_lone_sender_gets_the_whole_line() {
    // 64 levels, with ever smaller guarantees.
    let mut deep =
        String::from("rate = \"93 Mbit/s\"\nclass = [{ name = \"0\", guarantee = \"64 kbit/s\" },");
    for level in 1..64 {
        let (outer, guarantee) = (level - 1, 64 - level);
        deep += &format!(
            "{{ name = \"{level}\", parent = \"{outer}\", guarantee = \"{guarantee} kbit/s\" }},"
        );
    }
    deep += "]";
    let wide = r#"
        class = [
            { name = "first", guarantee = "60 Mbit/s", priority = 0 },
            { name = "inside", parent = "first", guarantee = "1 Mbit/s", quantum = "100 B" },
            { name = "beside", parent = "first", guarantee = "1 Mbit/s", burst = "9 kB" },
            { name = "last", priority = 7 },
        ]
    "#;
    let trees = [String::new(), "rate = \"93 Mbit/s\"".to_owned(), wide.to_owned(), deep];
    for text in trees {
        for declared in [false, true] {
            let line = Rate::from_mbps(93);
            let names: Vec<String> = {
                let tree = ClassTree::new(&config(&text)).unwrap();
                tree.leaves().map(|(_, name)| name.to_owned()).collect()
            };
            for name in names {
                let mut sender = Sender::new(&config(&text), line);
                if declared {
                    sender.tree.set_line_rate(Instant::ZERO, line);
                }
                sender.sources = vec![Source::greedy(sender.tree.find(&name).unwrap())];
                sender.run(TEN_SECONDS, |_| ());
                let got = sender.permille(&name, line);
                assert!((995..=1005).contains(&got), "{name} of {text}: {got}");
            }
        }
    }
}

#[test]
fn priorities_cost_no_throughput() {
    let text = |first, last| {
        format!(
            r#"rate = "93 Mbit/s"
            class = [{{ name = "a", priority = {first}, guarantee = "10 Mbit/s", ceiling = "60 Mbit/s" }},
                     {{ name = "b", priority = 3, ceiling = "30 Mbit/s" }},
                     {{ name = "c", priority = {last} }}]"#
        )
    };
    for sizes in [vec![1_500], vec![100, 1_500, 9_000]] {
        let total = |text: &str| {
            let mut sender = Sender::greedy(&config(text), Rate::from_mbps(100));
            sender.sources.iter_mut().for_each(|source| source.sizes.clone_from(&sizes));
            sender.run(TEN_SECONDS, |_| ());
            sender.total().as_bps()
        };
        let (without, with) = (total(&text(3, 3)), total(&text(0, 7)));
        assert!(without.abs_diff(with) * 1000 <= without * 5, "{without} and {with}");
        assert!(with.abs_diff(93_000_000) * 1000 <= 93_000_000 * 5, "{with}");
    }
}

#[test]
fn what_is_over_is_shared_by_quantum_whatever_the_sizes() {
    let text = r#"class = [{ name = "a", quantum = "1 kB" }, { name = "b", quantum = "3 kB" },
                           { name = "c", quantum = "6 kB", guarantee = "10 Mbit/s" }]"#;
    let mut sender = Sender::greedy(&config(text), Rate::from_mbps(110));
    sender.source("a").sizes = vec![9_000];
    sender.source("b").sizes = vec![100, 1_400];
    sender.run(TEN_SECONDS, |_| ());
    // c gets its guarantee and its share: what it has by right isn't held against it.
    assert_rates(&sender, &[("a", 10_000), ("b", 30_000), ("c", 70_000)]);
    let leaf = sender.tree.find("c").unwrap();
    let counters = sender.tree.counters(leaf);
    let borrowed = counters.borrowed.as_u64() * 1000 / counters.sent.as_u64();
    assert!((850..=864).contains(&borrowed), "{borrowed} of 1000 borrowed, expected 6 of 7");
}

#[test]
fn who_borrows_from_near_goes_before_who_borrows_from_far() {
    let text = r#"class = [{ name = "a", guarantee = "40 Mbit/s" }, { name = "inside", parent = "a", priority = 7 },
                           { name = "outside", priority = 0 }]"#;
    assert_rates(&run(text, 60), &[("inside", 40_000), ("outside", 20_000)]);
}

#[test]
fn guarantees_that_the_line_cannot_carry_are_served_by_priority() {
    let text = r#"class = [{ name = "a", guarantee = "40 Mbit/s", priority = 0 },
                           { name = "b", guarantee = "40 Mbit/s", priority = 1 },
                           { name = "c", guarantee = "40 Mbit/s", priority = 2 }]"#;
    let sender = run(text, 60);
    assert_rates(&sender, &[("a", 40_000), ("b", 20_000)]);
    assert_eq!(sender.permille("c", Rate::from_mbps(1)), 0);
}

#[test]
fn a_returning_leaf_has_its_guarantee_at_once() {
    let text = r#"class = [
        { name = "voice", guarantee = "10 Mbit/s", priority = 7 },
        { name = "bulk", priority = 0 },
    ]"#;
    let mut sender = Sender::greedy(&config(text), Rate::from_mbps(50));
    let start = Instant::from_nanos(5_000_000_000);
    sender.source("voice").active = (start, Instant::FAR_FUTURE);
    sender.run(TEN_SECONDS, |_| ());
    let voice = sender.tree.find("voice").unwrap();
    let first = sender.departures.iter().find(|departure| departure.leaf == voice).unwrap();
    assert!(first.at.since(start) <= sender.line.time_for(ByteCount::new(1_500)));
    assert_rates(&sender, &[("voice", 5_000), ("bulk", 45_000)]);
}

#[test]
fn one_that_is_held_back_is_woken_once_a_tick() {
    let sender = run("class = [{ name = \"a\", ceiling = \"500 Mbit/s\" }]", 1_000);
    assert_rates(&sender, &[("a", 500_000)]);
    assert!((2_000..=5_100).contains(&sender.wakes), "{} wakes in 10 s", sender.wakes);
}

#[test]
fn the_line_rate_is_a_ceiling_only_where_none_is_configured() {
    let mut sender = Sender::greedy(&ClassesConfig::default(), Rate::from_mbps(100));
    sender.tree.set_line_rate(Instant::ZERO, Rate::from_mbps(40));
    sender.run(Instant::from_nanos(5_000_000_000), |_| ());
    sender.tree.set_line_rate(sender.now, Rate::from_mbps(20));
    sender.run(TEN_SECONDS, |_| ());
    assert_rates(&sender, &[("default", 30_000)]);
    let now = sender.now;
    sender.tree.set_line_rate(now, Rate::ZERO);
    assert_eq!(sender.tree.next_timeout(now, |_| true), None);
    let mut configured = ClassTree::new(&config("rate = \"1 Mbit/s\"")).unwrap();
    configured.set_line_rate(now, Rate::ZERO);
    configured.charge(now, ClassId(0), ByteCount::mib(1));
    assert_eq!(configured.pick(now, |_| true), None);
}

#[test]
fn what_leaves_without_being_picked_is_paid_for() {
    let mut tree =
        ClassTree::new(&config("class = [{ name = \"a\", ceiling = \"8 Mbit/s\" }]")).unwrap();
    tree.charge(Instant::ZERO, ClassId(0), ByteCount::new(100_000));
    assert_eq!(tree.pick(Instant::ZERO, |_| true), None);
    let wake = tree.next_timeout(Instant::ZERO, |_| true).unwrap();
    assert_eq!(wake, Instant::ZERO + Duration::from_millis(102));
    assert_eq!(tree.pick(Instant::ZERO + Duration::from_millis(100), |_| true), Some(ClassId(0)));
    // A number of another tree does no harm.
    tree.charge(wake, ClassId(9), ByteCount::new(1));
    assert_eq!(tree.counters(ClassId(9)), ClassCounters::default());
}

#[test]
fn nothing_is_picked_where_nothing_waits() {
    for text in ["", STATION] {
        let mut tree = ClassTree::new(&config(text)).unwrap();
        assert_eq!(tree.pick(Instant::ZERO, |_| false), None);
        assert_eq!(tree.next_timeout(Instant::ZERO, |_| false), None);
        assert_eq!(tree.default_leaf(), ClassId(0));
    }
}
