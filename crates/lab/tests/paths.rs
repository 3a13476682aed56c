//! Sessions over several paths, in virtual time.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use skyhaul_lab::PlainLine;
use skyhaul_lab::world::PathSet;

#[test]
fn one_path_is_used_to_the_full() {
    let result = PathSet::of(&[PlainLine::default()], 1).run().unwrap();
    assert!((0.985..1.01).contains(&result.over_best()), "{result:?}");
}

#[test]
fn several_paths_carry_what_they_can_together_however_unlike_they_are() {
    for seed in [0, 2, 5, 8, 10, 15, 19, 23] {
        let set = PathSet::random(seed);
        let result = set.run().unwrap();
        let (best, sum) = (result.over_best(), result.over_sum());
        println!("{best:.3} of the best, {sum:.3} of all: {set}");
        assert!(best >= 0.98 && sum >= 0.95 && sum < 1.02, "{best:.3} {sum:.3} {set}");
    }
}
