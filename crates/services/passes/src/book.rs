//! Which contacts came of planned passes.

use crate::plan::{PlannedPass, PlannedPasses};
use serde::{Deserialize, Serialize};
use skyhaul_units::{Duration, Utc};
use std::collections::{BTreeMap, VecDeque};

/// Compares planned passes with the contacts that came.
#[derive(Debug)]
pub struct PassBook {
    /// What ended before is not known.
    began: Utc,
    /// How late a lock may come.
    grace: Duration,
    plan: PlannedPasses,
    /// What is known of passes that began, by their place in the plan.
    known: BTreeMap<usize, KnownPass>,
    news: VecDeque<PassNews>,
}

/// What has become of a pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassState {
    /// It has not begun.
    Ahead,
    /// It has begun, and a lock may still come in time.
    Due,
    /// It goes on, and nothing comes.
    NoLock,
    /// Its contact goes on.
    UnderWay,
    /// It is over, and had a contact.
    Came,
    /// It is over, and nothing came.
    Missed,
    /// It was over when the node started, and the node has no contact of it.
    Unknown,
}

/// A contact, as far as a pass needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SeenContact<'a> {
    /// What names it.
    pub id: &'a str,
    /// The node that captures it.
    pub station: &'a str,
    /// The input.
    pub channel: &'a str,
    /// The mission; empty while it is not known.
    pub mission: &'a str,
    /// When its first frame came.
    pub opened: Utc,
    /// When its last frame came; none while it goes on.
    pub closed: Option<Utc>,
}

/// A pass, and what has become of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShownPass {
    /// The pass.
    pub planned: PlannedPass,
    /// What has become of it.
    pub state: PassState,
    /// The contacts that came of it, in their order.
    pub contacts: Vec<String>,
    /// When the first frame came.
    pub locked: Option<Utc>,
}

/// What a look at the passes brought.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PassNews {
    /// A pass has begun.
    Due(PlannedPass),
    /// Nothing comes of a pass that has begun.
    NoLock(PlannedPass),
    /// Something comes of it now, or it is over.
    Locked(PlannedPass),
    /// A pass is over, and nothing came.
    Missed(PlannedPass),
    /// A contact of a pass that was missed came after all, or it was missed long ago.
    Found(PlannedPass),
}

#[derive(Debug, Clone)]
struct KnownPass {
    state: PassState,
    /// When each contact was opened, and when it was closed.
    contacts: BTreeMap<String, (Utc, Option<Utc>)>,
    is_told: bool,
}

/// What is shown: passes of a day, behind and ahead.
pub const SHOWN_WITHIN: Duration = Duration::from_secs(86_400);
/// A contact this long before and behind a pass is of it: clocks and orbits are never exact.
const AROUND: Duration = Duration::from_secs(120);
/// A pass that was missed is an alarm for so long.
const MISSED_FOR: Duration = Duration::from_secs(3_600);
/// Contacts of one pass: more are counted no more.
const CONTACTS_MAX: usize = 64;

impl PassBook {
    /// Of a node that began at `began`. A lock may be late by `grace`.
    pub fn new(began: Utc, grace: Duration) -> Self {
        Self {
            began,
            grace,
            plan: PlannedPasses::default(),
            known: BTreeMap::new(),
            news: VecDeque::new(),
        }
    }

    /// Takes another plan. What is known of passes that are in both stays.
    pub fn adopt(&mut self, plan: PlannedPasses) {
        let mut known = BTreeMap::new();
        for (place, pass) in core::mem::take(&mut self.known) {
            let Some(planned) = self.plan.passes().get(place) else { continue };
            let found = plan.passes().iter().position(|other| other == planned);
            match found.filter(|place| !known.contains_key(place)) {
                Some(place) => drop(known.insert(place, pass)),
                // It is planned no more: its alarm ends.
                None if pass.state == PassState::NoLock => {
                    self.news.push_back(PassNews::Locked(planned.clone()));
                }
                None if pass.is_told && pass.state == PassState::Missed => {
                    self.news.push_back(PassNews::Found(planned.clone()));
                }
                None => {}
            }
        }
        (self.plan, self.known) = (plan, known);
    }

    /// Compares the plan with contacts that are there, and returns the passes of a day behind and
    /// ahead of `now`, in the order of their start.
    pub fn look(&mut self, now: Utc, contacts: &[SeenContact<'_>]) -> Vec<ShownPass> {
        let passes = self.plan.passes();
        let from = now - SHOWN_WITHIN;
        // No pass is longer than a day.
        let first = passes.partition_point(|pass| pass.start < from - SHOWN_WITHIN);
        let last = passes.partition_point(|pass| pass.start < now + SHOWN_WITHIN);
        self.known = self.known.split_off(&first);
        let mut shown = Vec::new();
        for (place, planned) in (first..last).zip(&passes[first..last]) {
            if planned.end < from {
                continue;
            }
            if planned.start > now + AROUND {
                shown.push(ShownPass {
                    planned: planned.clone(),
                    state: PassState::Ahead,
                    contacts: Vec::new(),
                    locked: None,
                });
                continue;
            }
            let known = self.known.entry(place).or_insert_with(|| KnownPass {
                state: PassState::Ahead,
                contacts: BTreeMap::new(),
                is_told: false,
            });
            known.note(planned, now, contacts);
            let state = known.judged(planned, now, self.grace, self.began);
            known.tell(planned, state, now, &mut self.news);
            let mut of: Vec<_> = known.contacts.iter().collect();
            of.sort_by_key(|(_, (opened, _))| *opened);
            shown.push(ShownPass {
                planned: planned.clone(),
                state,
                locked: of.first().map(|(_, (opened, _))| *opened),
                contacts: of.into_iter().map(|(id, _)| id.clone()).collect(),
            });
        }
        shown
    }

    /// What the looks brought, oldest first.
    pub fn poll(&mut self) -> Option<PassNews> {
        self.news.pop_front()
    }
}

impl KnownPass {
    /// Notes the contacts that are of this pass.
    fn note(&mut self, planned: &PlannedPass, now: Utc, contacts: &[SeenContact<'_>]) {
        // One that is not there any more was closed.
        self.contacts.values_mut().for_each(|(_, closed)| *closed = closed.or(Some(now)));
        for contact in contacts.iter().filter(|contact| is_of(contact, planned, now)) {
            if self.contacts.len() < CONTACTS_MAX || self.contacts.contains_key(contact.id) {
                self.contacts.insert(contact.id.to_owned(), (contact.opened, contact.closed));
            }
        }
    }

    fn judged(&self, planned: &PlannedPass, now: Utc, grace: Duration, began: Utc) -> PassState {
        if self.contacts.values().any(|(_, closed)| closed.is_none()) {
            return PassState::UnderWay;
        }
        let last = self.contacts.values().filter_map(|(_, closed)| *closed).max();
        let is_over = now >= planned.end;
        match last {
            // The last seconds before it sets are often without a lock.
            Some(last) if now + grace < planned.end && last + grace < now => PassState::NoLock,
            Some(_) if is_over => PassState::Came,
            Some(_) => PassState::UnderWay,
            None if now < planned.start => PassState::Ahead,
            None if is_over && began >= planned.end => PassState::Unknown,
            // The contact itself may be seen a little later.
            None if now >= planned.end + grace => PassState::Missed,
            None if now < planned.start + grace || is_over => PassState::Due,
            None => PassState::NoLock,
        }
    }

    /// Tells what has changed.
    fn tell(
        &mut self,
        planned: &PlannedPass,
        state: PassState,
        now: Utc,
        news: &mut VecDeque<PassNews>,
    ) {
        let before = core::mem::replace(&mut self.state, state);
        let mut say = |of: fn(PlannedPass) -> PassNews| news.push_back(of(planned.clone()));
        if before == PassState::Ahead && !matches!(state, PassState::Ahead | PassState::Unknown) {
            say(PassNews::Due);
        }
        if before == PassState::NoLock && state != PassState::NoLock {
            say(PassNews::Locked);
        }
        let is_missed = state == PassState::Missed && now < planned.end + MISSED_FOR;
        if before != PassState::NoLock && state == PassState::NoLock {
            say(PassNews::NoLock);
        }
        if is_missed && !self.is_told {
            say(PassNews::Missed);
        }
        if !is_missed && self.is_told {
            say(PassNews::Found);
        }
        self.is_told = is_missed;
    }
}

/// Whether a contact is of a pass.
fn is_of(contact: &SeenContact<'_>, planned: &PlannedPass, now: Utc) -> bool {
    let fits = |wanted: &Option<String>, found: &str| {
        wanted.as_deref().is_none_or(|wanted| found.is_empty() || wanted == found)
    };
    let end = contact.closed.unwrap_or(now).max(contact.opened);
    fits(&planned.station, contact.station)
        && fits(&planned.channel, contact.channel)
        && fits(&planned.mission, contact.mission)
        && contact.opened <= planned.end + AROUND
        && end + AROUND >= planned.start
}

#[cfg(test)]
mod tests;
