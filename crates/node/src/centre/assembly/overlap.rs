//! Which contacts of a window overlap: their packets were made in the same ten minutes. When they were received does not tell, as
//! recordings are played later.

use super::forms::{Contact, Note};
use skyhaul_ccsds::select::MAX_INPUTS;
use skyhaul_level0::{Cell, Window};
use std::collections::BTreeSet;

/// Contacts that overlap others in the window, with those that these overlap; in an order of their own, whatever that of the notes.
/// Those that complete others are none: they have frames here and there only. Of more than [`MAX_INPUTS`] together, the next ones
/// are a group of their own.
pub fn groups<'a>(notes: impl Iterator<Item = &'a Note>, window: &Window) -> Vec<Vec<Contact>> {
    let mut groups: Vec<(BTreeSet<Cell>, BTreeSet<Contact>)> = Vec::new();
    for note in notes.filter(|note| note.completes.is_none()) {
        let cells = note.cells.values().flatten().copied().filter(|cell| window.contains(cell.from()));
        let mut joined = (cells.collect::<BTreeSet<_>>(), BTreeSet::from([note.contact()]));
        let (overlapping, others) = groups.into_iter().partition(|(cells, _)| !cells.is_disjoint(&joined.0));
        groups = others;
        let overlapping: Vec<(BTreeSet<Cell>, BTreeSet<Contact>)> = overlapping;
        for (cells, contacts) in overlapping {
            joined.0.extend(cells);
            joined.1.extend(contacts);
        }
        groups.push(joined);
    }
    let sorted: BTreeSet<Vec<Contact>> =
        groups.into_iter().map(|(_, contacts)| contacts.into_iter().collect()).collect();
    let parts = sorted.iter().flat_map(|contacts| contacts.chunks(MAX_INPUTS));
    parts.filter(|part| part.len() > 1).map(<[Contact]>::to_vec).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_units::{Duration, Utc};
    use std::collections::BTreeMap;

    const WINDOW: Window = Window { from: Utc::from_nanos(0), to: Utc::from_micros(7_200_000_000) };

    /// A contact with packets of these tenths of an hour.
    fn note(flow: u32, cells: &[u64]) -> Note {
        let cell = |cell: &u64| Cell::containing(WINDOW.from + Duration::from_secs(600 * cell));
        Note {
            station: format!("station-{}", flow % 3),
            flow,
            mission: "suomi-npp".to_owned(),
            scid: 157,
            noted_us: 0,
            completes: None,
            cells: BTreeMap::from([("imager".to_owned(), cells.iter().map(cell).collect())]),
            versions: BTreeMap::new(),
        }
    }

    fn flows(notes: &[Note]) -> Vec<Vec<u32>> {
        let groups = groups(notes.iter(), &WINDOW);
        groups.iter().map(|group| group.iter().map(|(_, flow)| *flow).collect()).collect()
    }

    #[test]
    fn what_overlaps_in_the_window_is_one_group() {
        assert_eq!(flows(&[note(0, &[1, 2]), note(1, &[3, 4])]), Vec::<Vec<u32>>::new());
        assert_eq!(flows(&[note(0, &[1, 2]), note(1, &[4]), note(2, &[2, 3])]), [[0, 2]]);
        assert_eq!(flows(&[note(0, &[1, 2]), note(1, &[3, 4]), note(2, &[2, 3])]), [[0, 1, 2]]);
        assert_eq!(flows(&[note(0, &[12]), note(1, &[12])]), Vec::<Vec<u32>>::new(), "in the next window");
        let completing = Note { completes: Some(0), ..note(1, &[1]) };
        assert_eq!(flows(&[note(0, &[1]), completing]), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn no_group_is_larger_than_what_is_joined() {
        let many: Vec<Note> = (0..40).map(|flow| note(flow, &[1])).collect();
        let sizes: Vec<usize> = flows(&many).iter().map(Vec::len).collect();
        assert_eq!(sizes, [16, 16, 8]);
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            cells in proptest::collection::vec(proptest::collection::vec(0u64..14, 0..4), 0..12),
            turn in 0usize..12,
        ) {
            let mut notes: Vec<Note> = (0..).zip(&cells).map(|(flow, cells)| note(flow, cells)).collect();
            let before = flows(&notes);
            let turn = turn.min(notes.len());
            notes.rotate_left(turn);
            prop_assert_eq!(&flows(&notes), &before);
            notes.reverse();
            prop_assert_eq!(&flows(&notes), &before);
        }
    }
}
