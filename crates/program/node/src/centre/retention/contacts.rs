//! Contacts in the store, by the same rules.

use super::desk::ArchiveRules;
use super::look::{Judged, LookForm, RetentionLook, figures_of};
use super::removal::RemovalError;
use skyhaul_catalogue::{
    CopyRule, Item, ItemForm, ItemState, RetentionLeaves, RetentionObstacle, RetentionRule,
    RetentionRun, RetentionStanding, RetentionStart, RetentionVerdict,
};
use skyhaul_store::KeptContact;
use skyhaul_units::Utc;
use std::collections::BTreeSet;

/// Looks at all contacts: those that no rule takes stay as long as `[store]` says.
///
/// # Errors
/// The disk refuses.
pub fn look(look: &mut RetentionLook<'_>, rules: &ArchiveRules) -> Result<(), RemovalError> {
    let kept: Vec<KeptContact> = look.shared.store().kept().all().collect();
    let (items, held) = {
        let journal = look.shared.journal();
        let item = |contact: &KeptContact| {
            let key = (contact.station.as_str().to_owned(), contact.flow.0);
            let noted = journal.noted(&key);
            let span = noted.and_then(|note| note.span_us);
            item_of(contact, noted.map_or("", |note| note.mission.as_str()), span)
        };
        let items: Vec<Item> = kept.iter().map(item).collect();
        (items, journal.held())
    };
    let usual = RetentionRule {
        filter: None,
        keep: Some(rules.contacts),
        from: RetentionStart::Published,
        max_size: None,
        leaves: RetentionLeaves::Nothing,
        copies: CopyRule::None,
    };
    let of = |item: &Item| rules.rules.iter().position(|rule| rule.takes(item));
    let places: Vec<Option<usize>> = items.iter().map(of).collect();
    let distinct: BTreeSet<Option<usize>> = places.iter().copied().collect();
    for place in distinct {
        let rule = place.map_or(&usual, |place| &rules.rules[place]);
        let mut its: Vec<(Utc, usize)> = (0..kept.len())
            .filter(|at| places[*at] == place)
            .map(|at| (rule.start(&items[at], None), at))
            .collect();
        its.sort_unstable();
        let figures = figures_of(its.iter().map(|(_, at)| kept[*at].size));
        let mut run = RetentionRun::new(rule, look.now, figures, u64::MAX);
        let mut leaving = Vec::new();
        for (begun, at) in its {
            let contact = &kept[at];
            let judged = Judged {
                name: items[at].name.clone(),
                kind: ItemForm::Contact.name(),
                size: contact.size,
                rule: place.map_or(0, |place| place + 1),
                at: begun,
            };
            match run.judge(begun, contact.size, &RetentionStanding::default()) {
                RetentionVerdict::Stays => break,
                RetentionVerdict::IsKept(reason, obstacle) => {
                    look.note(judged, reason, Some(&obstacle));
                }
                RetentionVerdict::Leaves(reason) => {
                    let key = (contact.station.as_str().to_owned(), contact.flow.0);
                    if held.contains(&key) {
                        look.note(judged, reason, Some(&RetentionObstacle::Needed));
                        continue;
                    }
                    look.note(judged, reason, None);
                    leaving.push((contact.station.clone(), contact.flow));
                }
            }
        }
        if look.form != LookForm::Asked {
            // One at a time: blocks that arrive wait for the lock of the store.
            for contact in leaving {
                let released = look.shared.store().release(&[contact]);
                released.map_err(|error| RemovalError::Store(error.to_string()))?;
            }
        }
    }
    Ok(())
}

/// A contact as filters see it.
fn item_of(contact: &KeptContact, mission: &str, span_us: Option<(i64, i64)>) -> Item {
    Item {
        name: format!("{}-{}", contact.station, contact.flow),
        version: 1,
        form: ItemForm::Contact,
        mission: mission.to_owned(),
        product: String::new(),
        stations: vec![contact.station.to_string()],
        apids: Vec::new(),
        start: span_us.map(|(from, _)| Utc::from_micros(from)),
        end: span_us.map(|(_, to)| Utc::from_micros(to)),
        published: contact.finished,
        packets: 0,
        missing: 0,
        state: ItemState::Present,
        files: Vec::new(),
    }
}
