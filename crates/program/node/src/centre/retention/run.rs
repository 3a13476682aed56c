//! One look at products and contacts: what is due, why, and what of it leaves.

use super::contacts;
use super::desk::RetentionWork;
use super::look::{LookForm, RetentionLook};
use super::removal::{self, RemovalError};
use crate::centre::shared::CentreShared;
use crate::status::ArchiveEviction;
use skyhaul_catalogue::{Filter, RetentionClock, RetentionShare};
use skyhaul_catalogue_io::{CatalogueReader, RetentionScope};
use skyhaul_events::AlarmKind;
use skyhaul_units::Duration;

/// How long the alarm about contacts that were removed for room stays.
const EARLY: Duration = Duration::from_secs(3_600);

const CLOCK: &str = "products and contacts";
const SHARE: &str = "more products";
const FAILED: &str = "products or contacts";
const STORE: &str = "the store";

/// Looks, as it is time.
pub fn look(shared: &CentreShared) {
    match run(shared, LookForm::Due) {
        Ok(_) => _ = shared.alarms.clear(AlarmKind::RemovalFailed, FAILED),
        Err(error) => shared.alarms.raise(AlarmKind::RemovalFailed, FAILED, &error.to_string()),
    }
    early(shared, &mut shared.deliveries().archive().work());
}

/// Looks at all products and contacts.
///
/// # Errors
/// The catalogue or the disk refuses: what is marked is finished by the next look.
pub fn run(shared: &CentreShared, form: LookForm) -> Result<ArchiveEviction, RemovalError> {
    let ledger = shared.deliveries();
    let mut work = ledger.archive().work();
    let (reader, rules) = (ledger.reader()?, ledger.archive().rules());
    let mut found = ArchiveEviction::default();
    if form != LookForm::Asked {
        removal::finish(ledger.catalogue(), ledger.products())?;
    }
    if !is_believed(shared, &mut work, &reader, form, &mut found)? {
        return Ok(found);
    }
    work.shares.resize(rules.rules.len(), RetentionShare::default());
    let filters: Vec<Option<Filter>> = rules.rules.iter().map(|rule| rule.filter.clone()).collect();
    let mut look = RetentionLook::new(shared, reader, form, found, shared.utc());
    let mut beyond = None;
    for (place, rule) in rules.rules.iter().enumerate() {
        if rule.is_for_contacts() || shared.shutdown.is_requested() {
            continue;
        }
        let (before, own) = (&filters[..place], rule.filter.as_ref());
        let scope = RetentionScope { before, own, from: rule.from };
        let left = look.rule(place, &rules, scope, &mut work.shares[place])?;
        beyond = beyond.or((left > 0).then_some((place + 1, left)));
    }
    contacts::look(&mut look, &rules)?;
    if form == LookForm::Due {
        match beyond {
            Some((rule, left)) => shared.alarms.raise(
                AlarmKind::RemovalBehind,
                SHARE,
                &format!(
                    "{left} more of [[retention]] table {rule} are due; check the table and the \
                     clock, see `skyhaul archive evict --dry-run`; `skyhaul archive evict` removes \
                     them"
                ),
            ),
            None => _ = shared.alarms.clear(AlarmKind::RemovalBehind, SHARE),
        }
    }
    Ok(look.found())
}

/// Whether the clock can be right.
fn is_believed(
    shared: &CentreShared,
    work: &mut RetentionWork,
    reader: &CatalogueReader,
    form: LookForm,
    found: &mut ArchiveEviction,
) -> Result<bool, RemovalError> {
    let now = shared.utc();
    if work.clock.is_none() {
        work.clock = Some(RetentionClock::new(reader.archive().looked()?));
    }
    let Some(clock) = &mut work.clock else { return Ok(true) };
    let looked = match form {
        LookForm::Ordered => {
            clock.confirm(now);
            Ok(())
        }
        LookForm::Due | LookForm::Asked => clock.look(now),
    };
    let Err(jump) = looked else {
        if form != LookForm::Asked {
            shared.deliveries().catalogue().archive().looked(now)?;
            shared.alarms.clear(AlarmKind::RemovalHeld, CLOCK);
        }
        return Ok(true);
    };
    let reason = format!(
        "{jump}; if the clock is wrong, set it and restart the node; if it is right, `skyhaul \
         archive evict` removes what is due"
    );
    if form == LookForm::Due {
        shared.alarms.raise(AlarmKind::RemovalHeld, CLOCK, &reason);
    }
    found.stopped = Some(reason);
    // An operator sees what would leave.
    Ok(form == LookForm::Asked)
}

/// Raises an alarm where the store had to remove contacts for room.
fn early(shared: &CentreShared, work: &mut RetentionWork) {
    let (count, last) = {
        let store = shared.store();
        (store.stats().removed_early, store.kept().removed_early().cloned())
    };
    let now = shared.now();
    if count > work.early {
        (work.early, work.early_at) = (count, Some(now));
    }
    let is_new = work.early_at.is_some_and(|at| now.since(at) < EARLY);
    match last.filter(|_| is_new) {
        Some(last) => {
            let reason = format!(
                "{count} since the start, the last was {}-{}, finished at {}; raise max_size in \
                 [store], or shorten its retention",
                last.station, last.flow, last.finished
            );
            shared.alarms.raise(AlarmKind::StoreEvicted, STORE, &reason);
        }
        None => _ = shared.alarms.clear(AlarmKind::StoreEvicted, STORE),
    }
}
