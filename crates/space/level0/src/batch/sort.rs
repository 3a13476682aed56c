//! Sorts a list that is nearly in order: items out of order are taken out, sorted and merged back.

/// Puts `items` in order, of which the first `sorted` are. `aside` is for memory only; it is left
/// empty.
pub(super) fn sort<T: Ord + Copy>(items: &mut [T], sorted: usize, aside: &mut Vec<T>) {
    aside.clear();
    let tail = &mut items[sorted..];
    let kept = keep_ascending(tail, aside);
    aside.sort();
    merge_behind(tail, kept, aside);
    aside.clear();
    let Some(least) = items.get(sorted).copied() else { return };
    // Of the items in order, only those greater than the least of the others must move.
    let moving = items[..sorted].partition_point(|item| *item <= least);
    aside.extend_from_slice(&items[moving..sorted]);
    let (mut to, mut from) = (moving, sorted);
    for item in aside.drain(..) {
        while from < items.len() && items[from] < item {
            items[to] = items[from];
            (to, from) = (to + 1, from + 1);
        }
        items[to] = item;
        to += 1;
    }
}

/// Leaves an ascending series at the front of `items`, puts the others `aside`, and returns how
/// many stayed.
fn keep_ascending<T: Ord + Copy>(items: &mut [T], aside: &mut Vec<T>) -> usize {
    // The items that stay and those aside are together all that were checked: the others have not
    // moved.
    let (mut kept, mut at, mut in_a_row) = (0, 0, 0);
    while let Some(item) = items.get(at).copied() {
        if kept == 0 || items[kept - 1] <= item {
            items[kept] = item;
            (kept, at, in_a_row) = (kept + 1, at + 1, 0);
        } else if in_a_row == 0 && kept > 1 && items[kept - 2] <= item {
            // The item before it was too early.
            aside.push(items[kept - 1]);
            items[kept - 1] = item;
            at += 1;
        } else if in_a_row < RECENT {
            aside.push(item);
            (at, in_a_row) = (at + 1, in_a_row + 1);
        } else if aside.len() > FEW.max(at / 2) {
            // It is not nearly in order.
            aside.extend_from_slice(&items[at..]);
            break;
        } else {
            // It is better to take out the few that were too early than all after them.
            aside.truncate(aside.len() - RECENT);
            (at, in_a_row) = (at - RECENT, 0);
            let greatest = items[at..at + RECENT].iter().copied().max();
            while kept > 0 && Some(items[kept - 1]) > greatest {
                kept -= 1;
                aside.push(items[kept]);
            }
        }
    }
    kept
}

/// Merges `others`, in order, into `items`, of which the first `kept` are in order and the rest is
/// room for them.
fn merge_behind<T: Ord + Copy>(items: &mut [T], mut kept: usize, others: &[T]) {
    let mut to = items.len();
    for other in others.iter().rev() {
        while kept > 0 && items[kept - 1] > *other {
            (to, kept) = (to - 1, kept - 1);
            items[to] = items[kept];
        }
        to -= 1;
        items[to] = *other;
    }
}

/// If this many in a row are below those before them, the earlier ones were out of order.
const RECENT: usize = 8;
/// This many items out of order do not end the fast path.
const FEW: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_sorts_whatever_the_order(
            mut items in proptest::collection::vec(0u16..400, 0..900), sorted in 0usize..900,
                turns in 0usize..900,
        ) {
            let sorted = sorted.min(items.len());
            // From any order to nearly in order.
            let turns = turns.min(items.len());
            items[turns..].sort_unstable();
            items[..sorted].sort_unstable();
            let mut expected = items.clone();
            expected.sort_unstable();
            let mut aside = Vec::new();
            sort(&mut items, sorted, &mut aside);
            prop_assert_eq!(items, expected);
            prop_assert!(aside.is_empty());
        }

        #[test]
        fn it_sorts_what_changed_places(count in 1usize..2_000,
            swaps in proptest::collection::vec((0usize..2_000, 0usize..60), 0..200)) {
            let mut items: Vec<usize> = (0..count).collect();
            for (at, by) in swaps {
                items.swap(at % count, (at % count + by).min(count - 1));
            }
            sort(&mut items, 0, &mut Vec::new());
            prop_assert!(items.is_sorted() && items.len() == count);
        }
    }
}
