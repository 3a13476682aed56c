//! What became of the gaps of contacts since the last look, as events: one for each contact and
//! kind, so that a line that loses much does not fill the event log.

use crate::journal::EventNote;
use skyhaul_events::EventKind;
use skyhaul_level0::ledger::{ContactId, GapState, KnownContact, Ledger};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the gaps that were reported.
#[derive(Debug, Default)]
pub struct GapNews {
    reported: BTreeMap<ContactId, GapTotals>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct GapTotals {
    gaps: usize,
    filled: usize,
    unrecoverable: usize,
    missing_frames: u64,
}

impl GapNews {
    /// What the ledger has is known.
    pub fn of(ledger: &Ledger) -> Self {
        let known = ledger.contacts().map(|known| (known.id.clone(), totals(known.gaps)));
        Self { reported: known.collect() }
    }

    /// The contacts are not in the ledger any more.
    pub fn forget(&mut self, contacts: &[ContactId]) {
        for id in contacts {
            self.reported.remove(id);
        }
    }

    /// What is new about these contacts.
    pub fn changes(&mut self, ledger: &Ledger, changed: &BTreeSet<ContactId>) -> Vec<EventNote> {
        let mut news = Vec::new();
        if changed.is_empty() {
            return news;
        }
        for KnownContact { id, opened, gaps, .. } in ledger.contacts() {
            if !changed.contains(id) {
                continue;
            }
            let now = totals(gaps);
            let before = self.reported.insert(id.clone(), now).unwrap_or_default();
            let contact = format!("contact {}-{}", id.station, id.flow.0);
            let mut tell = |kind, count: usize, what: &str| {
                if count > 0 {
                    let left = now.missing_frames;
                    let sentence =
                        format!("{contact}: {count} gaps {what}; {left} frames are missing");
                    let note = EventNote::new(kind, contact.clone(), sentence);
                    let note = note.with("gaps", count).with("missing_frames", left);
                    news.push(note.with("mission", opened.mission.clone()));
                }
            };
            let more = |now: usize, before: usize| now.saturating_sub(before);
            tell(EventKind::GapFound, more(now.gaps, before.gaps), "found");
            tell(EventKind::GapFilled, more(now.filled, before.filled), "filled");
            let lost = more(now.unrecoverable, before.unrecoverable);
            tell(EventKind::GapUnrecoverable, lost, "cannot be filled");
        }
        news
    }
}

fn totals<'a>(gaps: impl Iterator<Item = &'a skyhaul_level0::ledger::MissingFrames>) -> GapTotals {
    let mut totals = GapTotals::default();
    for gap in gaps {
        totals.gaps += 1;
        totals.missing_frames += gap.missing();
        match gap.state {
            GapState::Open | GapState::Requested { .. } => {}
            GapState::Filled => totals.filled += 1,
            GapState::Unrecoverable(_) => totals.unrecoverable += 1,
        }
    }
    totals
}
