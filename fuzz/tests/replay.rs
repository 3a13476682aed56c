//! The stable half of fuzzing: every corpus is replayed, then a bounded number of seeded mutations
//! of it.
//!
//! A failing input is written to `artifacts/`, and its path is in the failure's text; put it into
//! the corpus.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;
use skyhaul_fuzz::{TARGETS, Target};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn every_corpus_replays() {
    for target in TARGETS {
        for (path, input) in corpus(target) {
            let origin = path.display().to_string();
            attempt(target, &input, &origin);
        }
    }
}

/// A sixteenth as often as each target says; in `make test-all`, or with `SKYHAUL_FUZZ_FACTOR=N`,
/// as often or N times that; with `SKYHAUL_FUZZ_TARGETS=a,b` those alone.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "a test has no configuration file: how much is asked for"
)]
fn mutated_inputs_are_read_or_refused() {
    let is_all = std::env::var("SKYHAUL_RUNG").is_ok_and(|rung| rung == "all");
    let parts = match std::env::var("SKYHAUL_FUZZ_FACTOR") {
        Ok(text) => 16 * text.parse::<u64>().expect("SKYHAUL_FUZZ_FACTOR is a number"),
        Err(_) if is_all => 16,
        Err(_) => 1,
    };
    let rounds = |target: &Target| u64::from(target.rounds) * parts / 16 / SHARES;
    let wanted = std::env::var("SKYHAUL_FUZZ_TARGETS").ok();
    let is_wanted = |target: &&Target| {
        wanted.as_ref().is_none_or(|wanted| wanted.split(',').any(|name| name == target.name))
    };
    let targets: Vec<&Target> = TARGETS.iter().filter(is_wanted).collect();
    assert!(!targets.is_empty(), "SKYHAUL_FUZZ_TARGETS names no target");
    // Shares of the rounds, so that no thread is left with the longest target.
    let shares: Vec<(&Target, u64)> =
        targets.iter().flat_map(|target| (0..SHARES).map(move |share| (*target, share))).collect();
    let next = AtomicUsize::new(0);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some((target, share)) = shares.get(next.fetch_add(1, Ordering::Relaxed)) {
                    mutations(target, *share, rounds(target));
                }
            });
        }
    });
    for target in targets {
        println!("{}: {} executions", target.name, rounds(target) * SHARES);
    }
}

fn mutations(target: &Target, share: u64, rounds: u64) {
    let corpus: Vec<Vec<u8>> = corpus(target).into_iter().map(|(_, input)| input).collect();
    assert!(!corpus.is_empty(), "corpus/{} is empty: put a good input there", target.name);
    let mut random = ChaCha8Rng::seed_from_u64(SEED + share);
    for round in 0..rounds {
        let input = mutated(&corpus, &mut random);
        attempt(target, &input, &format!("seed {SEED} + {share}, round {round}"));
    }
}

#[test]
fn every_target_has_its_program_and_corpus_and_nothing_else_does() {
    let manifest = std::fs::read_to_string(folder("Cargo.toml")).unwrap();
    for target in TARGETS {
        let program = format!("name = \"{0}\"\npath = \"fuzz_targets/{0}.rs\"", target.name);
        assert!(manifest.contains(&program), "Cargo.toml has no [[bin]] for {}", target.name);
        let text =
            std::fs::read_to_string(folder(&format!("fuzz_targets/{}.rs", target.name))).unwrap();
        assert!(text.contains(&format!("skyhaul_fuzz::{}(", target.name)));
    }
    let programs = manifest.matches("[[bin]]").count();
    assert_eq!(programs, TARGETS.len(), "a program in Cargo.toml is not in TARGETS");
    for entry in std::fs::read_dir(folder("corpus")).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(
            TARGETS.iter().any(|target| name == target.name),
            "no target uses corpus/{}",
            name.display()
        );
    }
}

/// Runs the target's body; a panic keeps the input and names it.
fn attempt(target: &Target, input: &[u8], origin: &str) {
    let outcome = catch_unwind(AssertUnwindSafe(|| (target.body)(input)));
    if outcome.is_err() {
        let artifacts = folder("artifacts");
        std::fs::create_dir_all(&artifacts).unwrap();
        let kept = artifacts.join(format!("{}-{}", target.name, input.len()));
        std::fs::write(&kept, input).unwrap();
        panic!("{} failed on {origin}; the input is in {}", target.name, kept.display());
    }
}

/// The target's good inputs, sorted by name.
fn corpus(target: &Target) -> Vec<(PathBuf, Vec<u8>)> {
    let folder = folder("corpus").join(target.name);
    let mut inputs: Vec<(PathBuf, Vec<u8>)> = std::fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    inputs.sort();
    inputs
}

/// One to eight changes of one input of the corpus.
fn mutated(corpus: &[Vec<u8>], random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut input = corpus.choose(random).expect("the corpus is not empty").clone();
    for _ in 0..random.random_range(1..=8) {
        mutate(&mut input, corpus, random);
    }
    input.truncate(MAX_INPUT);
    input
}

fn mutate(input: &mut Vec<u8>, corpus: &[Vec<u8>], random: &mut ChaCha8Rng) {
    let at = random.random_range(0..=input.len());
    let end = (at + random.random_range(1..=64)).min(input.len());
    match random.random_range(0..9) {
        0 if at < input.len() => input[at] ^= 1 << random.random_range(0..8),
        1 if at < input.len() => input[at] = random.random(),
        2 if at < input.len() => {
            input[at] = *[0x00, 0x01, 0x7f, 0x80, 0xff].choose(random).expect("not empty")
        }
        3 => drop(input.drain(at..end)),
        4 => drop(
            input.splice(at..at, (0..random.random_range(1..=16)).map(|_| random.random::<u8>())),
        ),
        5 => {
            let copy = input[at..end].to_vec();
            let to = random.random_range(0..=input.len());
            drop(input.splice(to..to, copy));
        }
        6 => input.truncate(at),
        7 => {
            let other = corpus.choose(random).expect("the corpus is not empty");
            let from = random.random_range(0..=other.len());
            drop(input.splice(at.., other[from..].iter().copied()));
        }
        _ => {
            let length = *[0u32, 1, 0xffff, 0x1_0000, 0x7fff_ffff, u32::MAX]
                .choose(random)
                .expect("not empty");
            let bytes = length.to_be_bytes();
            let width = random.random_range(1..=4).min(input.len() - at);
            input[at..at + width].copy_from_slice(&bytes[4 - width..]);
        }
    }
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

const SEED: u64 = 0x5379_6861_756c;
/// Parts that a target's rounds are run in, each with a seed of its own.
const SHARES: u64 = 10;
/// 64 KiB: dozens of frames, hundreds of messages.
const MAX_INPUT: usize = 1 << 16;
