//! Random trees and sources: no ceiling is exceeded in any interval, and nothing waits without
//! need.

use super::sender::Departure;
use super::*;
use proptest::prelude::*;

/// A class as numbers, made into a tree that can hold by [`build`].
#[derive(Debug, Clone)]
struct Seed {
    parent: usize,
    /// Percent of what is around it.
    ceiling: Option<u64>,
    guaranteed: bool,
    priority: u8,
    quantum: u64,
}

fn seed() -> impl Strategy<Value = Seed> {
    let ceiling = proptest::option::of(1u64..=100);
    (any::<usize>(), ceiling, any::<bool>(), 0u8..8, 100u64..20_000).prop_map(
        |(parent, ceiling, guaranteed, priority, quantum)| Seed {
            parent,
            ceiling,
            guaranteed,
            priority,
            quantum,
        },
    )
}

/// A leaf's datagram size, and its rate in kbit/s if it isn't greedy.
fn load() -> impl Strategy<Value = (u64, Option<u64>)> {
    (40u64..9_000, proptest::option::of(1u64..20_000))
}

/// A tree of these classes on a line of `rate`: ceilings shrink inwards, and guarantees fit into
/// them.
fn build(rate: Rate, seeds: &[Seed]) -> ClassesConfig {
    let mut classes: Vec<ClassConfig> = Vec::new();
    let mut inner = vec![rate; seeds.len()];
    for (index, seed) in seeds.iter().enumerate() {
        let parent = Some(seed.parent % (index + 1)).filter(|parent| *parent < index);
        let outer = parent.map_or(rate, |parent| inner[parent]);
        let ceiling =
            seed.ceiling.map(|percent| outer.scaled(percent, 100).max(Rate::from_bps(1_000)));
        inner[index] = ceiling.unwrap_or(outer).min(outer);
        // Divided by all classes, the guarantees of some of them always fit.
        let guarantee =
            inner.iter().take(index + 1).min().map(|least| least.scaled(1, seeds.len() as u64));
        classes.push(ClassConfig {
            name: index.to_string(),
            parent: parent.map(|parent| parent.to_string()),
            ceiling: ceiling.map(|ceiling| ceiling.min(outer)),
            guarantee: guarantee.filter(|_| seed.guaranteed),
            priority: Some(seed.priority),
            quantum: Some(ByteCount::new(seed.quantum)),
            burst: None,
        });
    }
    // Only leaves keep a guarantee of their own; inner classes get the sum.
    for index in 0..classes.len() {
        if classes.iter().any(|class| class.parent.as_deref() == Some(classes[index].name.as_str()))
        {
            classes[index].guarantee = None;
        }
    }
    ClassesConfig { rate: None, default: None, classes }
}

/// The ceilings that hold back each leaf, by the class's number.
fn above(config: &ClassesConfig, leaf: &str) -> Vec<(usize, Rate)> {
    let mut found = Vec::new();
    let mut at = Some(leaf);
    while let Some(name) = at {
        let number: usize = name.parse().unwrap();
        found.extend(config.classes[number].ceiling.map(|ceiling| (number, ceiling)));
        at = config.classes[number].parent.as_deref();
    }
    found
}

/// The level of a bucket in billionths of a bit after `departures`, told step by step as a textbook
/// would.
fn level(ceiling: Rate, departures: &[Departure], now: Instant) -> i128 {
    let rate = i128::from(ceiling.as_bps());
    let full = rate * 20_000_000;
    let fill = |level: i128, from: Instant, to: Instant| {
        (level + rate * i128::from(to.since(from).as_nanos())).min(full)
    };
    let (mut level, mut at) = (0, Instant::ZERO);
    for departure in departures {
        level =
            fill(level, at, departure.at) - i128::from(departure.bytes.as_u64()) * 8_000_000_000;
        at = departure.at;
    }
    fill(level, at, now)
}

/// The most that any interval of `departures` is above `ceiling`, in billionths of a bit.
fn worst_excess(ceiling: Rate, departures: &[Departure]) -> i128 {
    let rate = i128::from(ceiling.as_bps());
    // The excess of the worst interval that ends here (Kadane's running maximum).
    let (mut running, mut worst, mut at) = (0_i128, 0_i128, Instant::ZERO);
    for departure in departures {
        running = (running - rate * i128::from(departure.at.since(at).as_nanos())).max(0);
        running += i128::from(departure.bytes.as_u64()) * 8_000_000_000;
        worst = worst.max(running);
        at = departure.at;
    }
    worst
}

fn below(sender: &Sender, config: &ClassesConfig, class: usize) -> Vec<Departure> {
    let names: Vec<&str> = sender.tree.leaves().map(|(_, name)| name).collect();
    let inside = |departure: &&Departure| {
        above(config, names[usize::from(departure.leaf.0)])
            .iter()
            .any(|(number, _)| *number == class)
    };
    sender.departures.iter().filter(inside).copied().collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn no_ceiling_is_exceeded_and_nothing_waits_without_need(
        mbps in 1u64..200,
        seeds in proptest::collection::vec(seed(), 1..14),
        loads in proptest::collection::vec(load(), 14),
    ) {
        let line = Rate::from_mbps(mbps);
        let config = build(line, &seeds);
        let mut sender = Sender::greedy(&config, line);
        for (source, (size, kbps)) in sender.sources.iter_mut().zip(&loads) {
            source.sizes = vec![*size, 1 + *size / 3];
            source.rate = kbps.map(|kbps| Rate::from_bps(kbps * 1_000));
        }
        let mut idle = 0;
        let end = Instant::from_nanos(300_000_000);
        sender.run(end, |sender| {
            // Looking back over all departures is slow: some of the waits are enough.
            idle += 1;
            if idle % 16 != 1 {
                return;
            }
            let names: Vec<&str> = sender.tree.leaves().map(|(_, name)| name).collect();
            for source in sender.sources.iter().filter(|source| source.has(sender.now)) {
                let ceilings = above(&config, names[usize::from(source.leaf.0)]);
                let closed = ceilings.iter().any(|(class, ceiling)| {
                    level(*ceiling, &below(sender, &config, *class), sender.now) < 0
                });
                assert!(closed, "class {} waits at {} for \
                                nothing", names[usize::from(source.leaf.0)], sender.now);
            }
        });
        let largest = loads.iter().map(|(size, _)| *size).max().unwrap_or(0);
        for (number, class) in config.classes.iter().enumerate() {
            let Some(ceiling) = class.ceiling else { continue };
            // The burst of 20 ms, one datagram that overdraws, and a nanosecond of rounding.
            let allowed = i128::from(ceiling.as_bps()) * 20_000_001 + i128::from(largest)
                * 8_000_000_000;
            let excess = worst_excess(ceiling, &below(&sender, &config, number));
            prop_assert!(excess <= allowed, "class {}: {} above, {} \
                                            allowed", number, excess, allowed);
        }
    }

    #[test]
    fn guarantees_of_random_trees_hold_against_greedy_neighbours(
        mbps in 5u64..200,
        seeds in proptest::collection::vec(seed(), 2..14),
    ) {
        let line = Rate::from_mbps(mbps);
        let config = build(line, &seeds);
        let mut sender = Sender::greedy(&config, line);
        sender.run(Instant::from_nanos(2_000_000_000), |_| ());
        for class in config.classes.iter().filter(|class| sender.tree.find(&class.name).is_some()) {
            let Some(guarantee) = class.guarantee else { continue };
            let due = (guarantee * Duration::from_secs(2)).as_u64();
            let leaf = sender.tree.find(&class.name).unwrap();
            let sent = sender.tree.counters(leaf).sent.as_u64();
            // Within 1 %, and the datagrams under way of everybody.
            prop_assert!(sent * 100 + 100 * 1_500 * 14 >= due * 99, "class {}: {sent} of \
                                                                    {due}", class.name);
        }
    }
}
