//! The thread of the line: the uplinks to all destinations, and what they share.

use super::line_plan::LinePlan;
use super::order::{LineChange, StationOrder};
use super::uplink::{Served, Uplink, UplinkNews, destination};
use crate::fault::Fault;
use crate::status::ForwardsStatus;
use skyhaul_channels_io::Tenants;
use skyhaul_events::AlarmKind;
use skyhaul_net::{AnyEndpoint, LastWord, Service, SessionManager};
use skyhaul_sessions::{SessionId, SessionManagerEvent, SocketId};
use skyhaul_units::{Duration, Instant};
use std::os::fd::BorrowedFd;

/// The uplinks to all destinations.
#[derive(Debug)]
pub struct Uplinks {
    guests: Tenants,
    list: Vec<Uplink>,
    plan: LinePlan,
    /// The uplink whose endpoint was handed out last.
    opening: Option<usize>,
    free_at: Instant,
    update_at: Instant,
}

/// Between two times that the spool frees segments.
const FREE: Duration = Duration::from_secs(1);
/// Between two updates of the status of forwards.
const UPDATE: Duration = Duration::from_millis(200);

impl Uplinks {
    /// Of these uplinks, which `plan` made, and which share their sessions with `guests`.
    pub const fn new(list: Vec<Uplink>, plan: LinePlan, guests: Tenants) -> Self {
        let (free_at, update_at) = (Instant::ZERO, Instant::ZERO);
        Self { guests, list, plan, opening: None, free_at, update_at }
    }

    /// Carries out an order at each uplink that it concerns.
    fn carry_out(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        order: StationOrder,
    ) -> Result<String, Fault> {
        let served = Served { manager: &mut *manager, guests: &mut self.guests };
        let changes_paths = !matches!(order, StationOrder::Hint(..));
        let outcome = match order {
            StationOrder::Add(path)
                if path.remote.is_some() && path.destination.is_none() && self.list.len() > 1 =>
            {
                let help = "name the destination that has this address, with --destination";
                let what = "a path has a remote address, and there are several destinations";
                return Err(Fault::configuration(what, "the new path", help));
            }
            StationOrder::Add(path) => {
                let only = path.destination.clone();
                let is_to = |uplink: &&mut Uplink| {
                    only.as_ref().is_none_or(|only| destination(uplink) == only.as_str())
                };
                let to = self.list.iter_mut().filter(is_to);
                first_of(to.map(|uplink| uplink.orders().add_path((*path).clone())))
            }
            StationOrder::Remove(name) => first_of(
                self.list
                    .iter_mut()
                    .filter(|uplink| has(uplink, &name))
                    .map(|uplink| uplink.orders().remove_path(now, served.manager, &name)),
            ),
            StationOrder::Hint(name, hint) => first_of(
                self.list
                    .iter_mut()
                    .filter(|uplink| has(uplink, &name))
                    .map(|uplink| uplink.orders().hint(served.manager, &name, &hint)),
            ),
            StationOrder::Adopt(change) => Some(self.adopt(now, manager, *change)),
        };
        let mut served = Served { manager, guests: &mut self.guests };
        for uplink in self.list.iter_mut().filter(|_| changes_paths) {
            uplink.orders().ordered(now, &mut served);
        }
        outcome.unwrap_or_else(|| Err(self.no_such_path()))
    }

    /// Uses the destinations of a configuration that was read again: the sessions of those that
    /// stay go on.
    fn adopt(
        &mut self,
        now: Instant,
        manager: &mut SessionManager,
        change: LineChange,
    ) -> Result<String, Fault> {
        let LineChange { config, added } = change;
        let adopted = self.plan.shared.routing.adopt(&config, &mut self.plan.shared.spool());
        adopted.map_err(|error| super::spool_fault(&error))?;
        let mut served = Served { manager, guests: &mut self.guests };
        let mut said = Vec::new();
        let stays = |uplink: &Uplink| {
            config.destinations.iter().any(|one| one.name() == destination(uplink))
        };
        let (stay, gone): (Vec<Uplink>, Vec<Uplink>) =
            core::mem::take(&mut self.list).into_iter().partition(stays);
        self.list = stay;
        for mut uplink in gone {
            said.push(format!("destination {} removed", destination(&uplink)));
            uplink.orders().leave(now, &mut served);
        }
        self.plan.adopt(config, added.len() + self.list.len());
        self.plan.show();
        for uplink in &mut self.list {
            uplink.orders().share_line(&mut served, self.plan.line.as_ref());
        }
        for new in added {
            said.push(format!("destination {} added", new.name));
            self.list.extend(self.plan.uplink(&new.name, new.paths));
        }
        for change in LineChange::uplinks(&self.plan.config) {
            let mut all = self.list.iter_mut();
            let Some(uplink) = all.find(|uplink| destination(uplink) == change.name) else {
                continue;
            };
            let changed = uplink.orders().adopt(now, &mut served, change.paths, change.sharing);
            let news: Vec<String> = changed.into_iter().filter(|one| !said.contains(one)).collect();
            said.extend(news);
        }
        Ok(said.join("; "))
    }

    fn no_such_path(&self) -> Fault {
        let mut known: Vec<&str> = Vec::new();
        for title in self.list.iter().flat_map(Uplink::path_titles) {
            if !known.contains(&title) {
                known.push(title);
            }
        }
        let help = format!("the paths are {}", known.join(", "));
        Fault::configuration("there is no such path", "the path", help)
    }

    /// The uplink of a session.
    fn of(&mut self, id: SessionId) -> Option<usize> {
        self.list.iter().position(|uplink| uplink.owns(id))
    }
}

fn has(uplink: &Uplink, path: &str) -> bool {
    uplink.path_titles().any(|title| title == path)
}

/// The first refusal of several outcomes, or the first success; none where there is none.
fn first_of(
    outcomes: impl Iterator<Item = Result<String, Fault>>,
) -> Option<Result<String, Fault>> {
    let mut first = None;
    for outcome in outcomes {
        if outcome.is_err() {
            return Some(outcome);
        }
        first.get_or_insert(outcome);
    }
    first
}

const fn session_of(event: &SessionManagerEvent) -> Option<SessionId> {
    match event {
        SessionManagerEvent::Connected { id, .. }
        | SessionManagerEvent::Session { id, .. }
        | SessionManagerEvent::Disconnected { id, .. }
        | SessionManagerEvent::PathRefused { id, .. } => Some(*id),
        SessionManagerEvent::Refused { id, .. } => *id,
    }
}

impl Service for Uplinks {
    fn event(&mut self, now: Instant, manager: &mut SessionManager, event: SessionManagerEvent) {
        let Some(place) = session_of(&event).and_then(|id| self.of(id)) else { return };
        let mut served = Served { manager, guests: &mut self.guests };
        if self.list[place].event(now, &mut served, event) == UplinkNews::SpoolRenewed {
            for (other, uplink) in self.list.iter_mut().enumerate() {
                if other != place {
                    uplink.call_again(&mut served, "the spool has a new identity");
                }
            }
        }
    }

    fn work(&mut self, now: Instant, manager: &mut SessionManager) -> Option<Instant> {
        while let Some((order, done)) = self.plan.shared.orders.next() {
            // The sender of the order may not wait any more.
            let _ = done.try_send(self.carry_out(now, manager, order));
        }
        let mut served = Served { manager, guests: &mut self.guests };
        let due = self.list.iter_mut().filter_map(|uplink| uplink.work(now, &mut served)).min();
        let guests_due = self.guests.work(now, manager);
        if now >= self.update_at {
            self.update_at = now + UPDATE;
            self.plan.shared.board.forwards(ForwardsStatus::of(self.guests.forwards()));
        }
        if now >= self.free_at {
            self.free_at = now + FREE;
            let freed = self.plan.shared.spool().free(self.plan.clock.utc_of(now));
            if let Err(error) = freed {
                let alarms = &self.plan.shared.alarms;
                alarms.raise(AlarmKind::SpoolUnfreed, "the spool", &error.to_string());
            }
        }
        [Some(self.free_at), Some(self.update_at), Some(guests_due), due]
            .into_iter()
            .flatten()
            .min()
    }

    fn next_socket(&mut self) -> Option<AnyEndpoint> {
        let mut found = self.list.iter_mut().enumerate();
        let (place, endpoint) =
            found.find_map(|(place, uplink)| Some((place, uplink.orders().next_socket()?)))?;
        self.opening = Some(place);
        Some(endpoint)
    }

    fn socket_added(&mut self, id: SocketId) {
        if let Some(uplink) = self.opening.take().and_then(|place| self.list.get_mut(place)) {
            uplink.orders().socket_added(id);
        }
    }

    fn fd(&self) -> Option<BorrowedFd<'_>> {
        self.guests.fd()
    }

    fn last_word(&self) -> LastWord {
        self.plan.shared.shutdown.last_word()
    }
}
