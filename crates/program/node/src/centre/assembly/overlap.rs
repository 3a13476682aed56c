//! Finds contacts that overlap: in a window, those with packets of the same ten minutes; with a
//! contact, those with packets of its span. The reception time does not matter: recordings are
//! played back later.

use super::forms::{ContactKey, ContactSummary};
use skyhaul_ccsds::select::MAX_INPUTS;
use skyhaul_level0::{TimeWindow, WindowCell};
use std::collections::BTreeSet;

/// Groups the contacts that overlap each other in the window, in an order of their own, whatever
/// the order of `notes`. Refill contacts are left out: they have frames only here and there. A
/// group has at most [`MAX_INPUTS`] contacts; the others form another group.
pub fn groups<'a>(
    notes: impl Iterator<Item = &'a ContactSummary>,
    window: &TimeWindow,
) -> Vec<Vec<ContactKey>> {
    let mut groups: Vec<(BTreeSet<WindowCell>, BTreeSet<ContactKey>)> = Vec::new();
    for note in notes.filter(|note| note.completes.is_none()) {
        let cells =
            note.cells.values().flatten().copied().filter(|cell| window.contains(cell.from()));
        let mut joined = (cells.collect::<BTreeSet<_>>(), BTreeSet::from([note.contact()]));
        let (overlapping, others) =
            groups.into_iter().partition(|(cells, _)| !cells.is_disjoint(&joined.0));
        groups = others;
        let overlapping: Vec<(BTreeSet<WindowCell>, BTreeSet<ContactKey>)> = overlapping;
        for (cells, contacts) in overlapping {
            joined.0.extend(cells);
            joined.1.extend(contacts);
        }
        groups.push(joined);
    }
    let sorted: BTreeSet<Vec<ContactKey>> =
        groups.into_iter().map(|(_, contacts)| contacts.into_iter().collect()).collect();
    let parts = sorted.iter().flat_map(|contacts| contacts.chunks(MAX_INPUTS));
    parts.filter(|part| part.len() > 1).map(<[ContactKey]>::to_vec).collect()
}

/// A contact and the others that are joined with it, which are in an order of their own; none where
/// it is alone. Beyond [`MAX_INPUTS`], contacts are not joined.
pub fn group_of<'a>(
    own: &ContactKey,
    others: impl Iterator<Item = &'a ContactSummary>,
) -> Option<Vec<ContactKey>> {
    let others = others.filter(|note| note.completes.is_none() && note.contact() != *own);
    let others: BTreeSet<ContactKey> = others.map(ContactSummary::contact).collect();
    let group: Vec<ContactKey> =
        core::iter::once(own.clone()).chain(others).take(MAX_INPUTS).collect();
    (group.len() > 1).then_some(group)
}

/// Appends the refill contacts of a group to it: their frames are merged into its own.
pub fn with_completing<'a>(
    mut group: Vec<ContactKey>,
    notes: impl Iterator<Item = &'a ContactSummary>,
) -> Vec<ContactKey> {
    let is_of = |note: &&ContactSummary| {
        note.completed().is_some_and(|completed| group.contains(&completed))
    };
    let completing: BTreeSet<ContactKey> =
        notes.filter(is_of).map(ContactSummary::contact).collect();
    group.extend(completing);
    group
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use skyhaul_units::{Duration, Utc};
    use std::collections::BTreeMap;

    const WINDOW: TimeWindow =
        TimeWindow { from: Utc::from_nanos(0), to: Utc::from_micros(7_200_000_000) };

    /// A contact with packets of these tenths of an hour.
    fn note(flow: u32, cells: &[u64]) -> ContactSummary {
        let cell =
            |cell: &u64| WindowCell::containing(WINDOW.from + Duration::from_secs(600 * cell));
        ContactSummary {
            station: format!("station-{}", flow % 3),
            flow,
            mission: "suomi-npp".to_owned(),
            scid: 157,
            noted_us: 0,
            completes: None,
            origin: None,
            cells: BTreeMap::from([("imager".to_owned(), cells.iter().map(cell).collect())]),
            versions: BTreeMap::new(),
            span_us: None,
        }
    }

    fn flows(notes: &[ContactSummary]) -> Vec<Vec<u32>> {
        let groups = groups(notes.iter(), &WINDOW);
        groups.iter().map(|group| group.iter().map(|(_, flow)| *flow).collect()).collect()
    }

    #[test]
    fn what_overlaps_in_the_window_is_one_group() {
        assert_eq!(flows(&[note(0, &[1, 2]), note(1, &[3, 4])]), Vec::<Vec<u32>>::new());
        assert_eq!(flows(&[note(0, &[1, 2]), note(1, &[4]), note(2, &[2, 3])]), [[0, 2]]);
        assert_eq!(flows(&[note(0, &[1, 2]), note(1, &[3, 4]), note(2, &[2, 3])]), [[0, 1, 2]]);
        assert_eq!(
            flows(&[note(0, &[12]), note(1, &[12])]),
            Vec::<Vec<u32>>::new(),
            "in the next window"
        );
        let completing = ContactSummary { completes: Some(0), ..note(1, &[1]) };
        assert_eq!(flows(&[note(0, &[1]), completing]), Vec::<Vec<u32>>::new());
    }

    #[test]
    fn no_group_is_larger_than_what_is_joined() {
        let many: Vec<ContactSummary> = (0..40).map(|flow| note(flow, &[1])).collect();
        let sizes: Vec<usize> = flows(&many).iter().map(Vec::len).collect();
        assert_eq!(sizes, [16, 16, 8]);
    }

    #[test]
    fn a_contact_is_joined_with_so_many_others_and_what_completes_any_of_them() {
        let notes: Vec<ContactSummary> = (0..20).map(|flow| note(flow, &[1])).collect();
        let own = notes[7].contact();
        let group = group_of(&own, notes.iter()).unwrap();
        assert_eq!((group.len(), &group[0]), (MAX_INPUTS, &own));
        assert_eq!(group_of(&own, notes[7..8].iter()), None, "alone");
        let of = |flow: u32, completes| ContactSummary {
            station: "station-1".to_owned(),
            completes,
            ..note(flow, &[1])
        };
        let completing = [of(40, Some(7)), of(41, Some(8))];
        let group =
            with_completing(vec![own.clone(), notes[0].contact()], notes.iter().chain(&completing));
        assert_eq!(group, [own, notes[0].contact(), completing[0].contact()]);
    }

    proptest! {
        #[test]
        fn the_order_of_arrival_does_not_matter(
            cells in proptest::collection::vec(proptest::collection::vec(0u64..14, 0..4), 0..12),
            turn in 0usize..12,
        ) {
            let mut notes: Vec<ContactSummary> =
                (0..).zip(&cells).map(|(flow, cells)| note(flow, cells)).collect();
            let before = flows(&notes);
            let turn = turn.min(notes.len());
            notes.rotate_left(turn);
            prop_assert_eq!(&flows(&notes), &before);
            notes.reverse();
            prop_assert_eq!(&flows(&notes), &before);
        }
    }
}
