//! What a centre tells a standby station of another station's contacts.

use super::shared::CentreShared;
use skyhaul_level0::ledger::{ContactId, GapState};
use skyhaul_level0::standby::{
    DeliveredContact, EdgeFrame, FrameMark, LACKS_MAX, LackingTime, StandbyReport, StandbyRequest,
    TOLD_MAX, joined,
};
use skyhaul_store::{FlowStatus, StationName};
use skyhaul_units::{Duration, Instant, Utc};
use std::collections::BTreeMap;

/// Between two reports to a standby.
const REPORT: Duration = Duration::from_millis(250);

/// Tells one standby what the centre has.
#[derive(Debug)]
pub struct StandbyTeller {
    request: StandbyRequest,
    /// What was told of each contact: its last frame, whether it has ended, times that lack frames.
    told: BTreeMap<String, (Utc, bool, usize)>,
    due: Instant,
}

impl StandbyTeller {
    /// For a standby that asked.
    pub const fn new(request: StandbyRequest) -> Self {
        Self { request, told: BTreeMap::new(), due: Instant::ZERO }
    }

    /// The standby asked again: what it was told stays told.
    pub fn asked(&mut self, request: StandbyRequest) {
        if self.request != request {
            *self = Self::new(request);
        }
    }

    /// The next report, where one is due; `is_known` says whether the station may connect here.
    pub fn report(
        &mut self,
        now: Instant,
        shared: &CentreShared,
        is_known: impl Fn(&str) -> bool,
    ) -> Option<StandbyReport> {
        if now < self.due {
            return None;
        }
        self.due = now + REPORT;
        let StandbyRequest { of, since } = self.request.clone();
        let mut report =
            StandbyReport { is_known: is_known(&of), of, is_whole: true, contacts: Vec::new() };
        let mut live = Vec::new();
        let contacts = delivered(&report.of, since, now, shared);
        self.told.retain(|name, _| contacts.iter().any(|contact| contact.name == *name));
        for contact in contacts {
            let news = (contact.last.received, contact.is_ended, contact.lacks.len());
            let is_told = self.told.get(&contact.name) == Some(&news);
            if is_told {
                live.extend((!contact.is_ended).then_some(contact));
            } else if report.contacts.len() < TOLD_MAX {
                self.told.insert(contact.name.clone(), news);
                report.contacts.push(contact);
            } else {
                report.is_whole = false;
            }
        }
        let room = TOLD_MAX - report.contacts.len();
        report.contacts.extend(live.into_iter().take(room));
        Some(report)
    }

    /// The line did not take the report: all is told anew.
    pub fn not_told(&mut self) {
        self.told.clear();
    }
}

/// The contacts of a station that have frames of `since` or later.
fn delivered(
    station: &str,
    since: Utc,
    now: Instant,
    shared: &CentreShared,
) -> Vec<DeliveredContact> {
    let Ok(station) = StationName::new(station) else { return Vec::new() };
    let spaces = shared.store().spaces().of(&station);
    let is_its = |id: &ContactId| spaces.iter().any(|space| space.as_str() == id.station);
    let name = |id: &ContactId| format!("{}-{}", id.station, id.flow);
    let mut found: BTreeMap<ContactId, DeliveredContact> = BTreeMap::new();
    {
        let mut gaps = shared.gaps();
        for known in gaps.ledger().contacts().filter(|known| is_its(known.id)) {
            let Some(last) = known.newest.filter(|_| known.opened.completes.is_none()) else {
                continue;
            };
            let lacks = known.gaps.filter(|gap| gap.state != GapState::Filled);
            let mut lacks: Vec<LackingTime> = lacks
                .map(|gap| LackingTime {
                    from: gap.before.received.min(gap.after.received),
                    to: gap.before.received.max(gap.after.received),
                })
                .collect();
            lacks.sort_unstable_by_key(|lack| lack.from);
            let edge = |received| EdgeFrame { received, mark: FrameMark::default() };
            let contact = DeliveredContact {
                name: name(known.id),
                mission: known.opened.mission.clone(),
                channel: known.opened.channel.clone(),
                first: edge(known.opened.at.min(last)),
                last: edge(last),
                is_ended: known.is_closed,
                idle: now.since(Instant::ZERO),
                lacks: joined(lacks.into_iter(), LACKS_MAX),
            };
            found.insert(known.id.clone(), contact);
        }
    }
    let read = shared.delivered.of(is_its);
    let store = shared.store();
    for (id, read) in read {
        let Some(contact) = found.get_mut(&id) else { continue };
        contact.mission = read.mission;
        (contact.first, contact.last) = (read.frames.first, read.frames.last);
        contact.last.received = contact.last.received.max(contact.first.received);
        contact.is_ended = read.is_ended;
        contact.idle = now.since(read.came.unwrap_or(Instant::ZERO));
        // What is durable and not read yet came just now: the products wait, not the station.
        let space = spaces.iter().find(|space| space.as_str() == id.station);
        let status = space.map(|space| store.spaces().status(space, id.flow));
        if let Some(FlowStatus::Open { durable, .. }) = status
            && durable > read.next
        {
            contact.idle = Duration::ZERO;
        }
    }
    found.into_values().filter(|contact| contact.last.received >= since).collect()
}
