//! Warns of late data in advance: decides from the forecasts of contacts when to raise and clear an
//! alarm.
//!
//! A forecast fluctuates with the rate. An alarm is raised once the forecast has been late for one
//! second, and cleared once it has been on time for five, with a margin. In between it is repeated
//! only when the lateness has changed by half.

use crate::status::ContactForecast;
use skyhaul_transport::{Candidate, Forecast, Outlook};
use skyhaul_units::{ByteCount, Duration, FlowId, Instant};
use std::collections::BTreeMap;

/// Data of a contact that waits in the spool, behind the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitingData {
    /// The contact.
    pub flow: FlowId,
    /// Its bytes.
    pub bytes: ByteCount,
    /// Its priority; 0 is the most important.
    pub priority: u8,
    /// When the oldest and the newest of it are due at the centre, where it has a deadline.
    pub due: Option<(Instant, Instant)>,
}

/// A change of a contact's forecast that is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ForecastChange {
    /// It will miss its deadline by so much.
    Late(Duration),
    /// It will be on time again, with this margin.
    OnTime(Duration),
    /// It is delivered or gone; its alarm is over.
    Over,
}

/// Contacts whose forecast is or was late. Bounded by the contacts that wait.
#[derive(Debug, Default)]
pub struct LatenessWatch {
    contacts: BTreeMap<FlowId, ContactLateness>,
}

#[derive(Debug, Default)]
struct ContactLateness {
    late_since: Option<Instant>,
    well_since: Option<Instant>,
    /// The lateness that was reported last, and when.
    reported: Option<(Duration, Instant)>,
}

/// A forecast that is late for so long is not a fluctuation of the rate.
const LATE: Duration = Duration::from_secs(1);
/// A forecast must be on time for so long before its alarm is cleared.
const WELL: Duration = Duration::from_secs(5);
/// The margin to the deadline that an alarm needs to be cleared.
const SPARE: Duration = Duration::from_millis(500);
/// A changed lateness is reported again this often.
const AGAIN: Duration = Duration::from_secs(10);
/// The oldest data counts as one block of the largest size that channels make.
const FIRST: ByteCount = ByteCount::kib(256);

/// The candidates that represent the data behind the session: the oldest block of a contact, and
/// the rest, which is delivered with the newest.
pub fn candidates(now: Instant, behind: &[WaitingData]) -> Vec<(FlowId, Candidate)> {
    let mut found = Vec::new();
    for waiting in behind.iter().filter(|waiting| waiting.bytes > ByteCount::ZERO) {
        let first = waiting.bytes.min(FIRST);
        let parts = [
            (first, waiting.due.map(|due| due.0)),
            (waiting.bytes - first, waiting.due.map(|due| due.1)),
        ];
        for (bytes, deadline) in parts.into_iter().filter(|(bytes, _)| *bytes > ByteCount::ZERO) {
            let order = u64::MAX - (behind.len() * 2 - found.len().min(behind.len() * 2)) as u64;
            let candidate = Candidate {
                size: bytes,
                unsent: bytes,
                priority: waiting.priority,
                deadline,
                taken: now,
                order,
                started: false,
                followers: Default::default(),
            };
            found.push((waiting.flow, candidate));
        }
    }
    found
}

/// The forecast for status output.
pub fn shown(now: Instant, forecast: &Forecast, channel: &str) -> ContactForecast {
    let spare_s = match forecast.outlook {
        Outlook::OnTime(Duration::MAX) | Outlook::Unknown => None,
        Outlook::OnTime(spare) => Some(spare.as_secs_f64()),
        Outlook::LateBy(late) => Some(-late.as_secs_f64()),
    };
    ContactForecast {
        flow: forecast.flow.0,
        channel: channel.to_owned(),
        unsent_bytes: forecast.unsent.as_u64(),
        done_s: forecast.done.map(|done| done.since(now).as_secs_f64()),
        spare_s,
    }
}

impl LatenessWatch {
    /// The changes to report after these forecasts. A contact without a forecast is delivered.
    pub fn update(
        &mut self,
        now: Instant,
        forecasts: &[Forecast],
    ) -> Vec<(FlowId, ForecastChange)> {
        let mut told = Vec::new();
        self.contacts.retain(|flow, watch| {
            let waits = forecasts.iter().any(|forecast| forecast.flow == *flow);
            if !waits && watch.reported.is_some() {
                told.push((*flow, ForecastChange::Over));
            }
            waits
        });
        for forecast in forecasts {
            let reported = match forecast.outlook {
                Outlook::Unknown => None,
                Outlook::LateBy(late) => {
                    self.contacts.entry(forecast.flow).or_default().late(now, late)
                }
                Outlook::OnTime(spare) => {
                    self.contacts.get_mut(&forecast.flow).and_then(|watch| watch.well(now, spare))
                }
            };
            told.extend(reported.map(|reported| (forecast.flow, reported)));
        }
        told
    }
}

impl ContactLateness {
    fn late(&mut self, now: Instant, late: Duration) -> Option<ForecastChange> {
        self.well_since = None;
        let since = *self.late_since.get_or_insert(now);
        let is_news = match self.reported {
            None => now.since(since) >= LATE,
            Some((reported, at)) => {
                now.since(at) >= AGAIN
                    && (late > reported.scaled(3, 2) || reported > late.scaled(3, 2))
            }
        };
        if is_news {
            self.reported = Some((late, now));
        }
        is_news.then_some(ForecastChange::Late(late))
    }

    fn well(&mut self, now: Instant, spare: Duration) -> Option<ForecastChange> {
        self.late_since = None;
        if spare < SPARE {
            self.well_since = None;
            return None;
        }
        let since = *self.well_since.get_or_insert(now);
        if now.since(since) < WELL {
            return None;
        }
        self.reported.take().map(|_| ForecastChange::OnTime(spare))
    }
}

/// A time span for people: whole seconds from ten on.
pub fn in_words(span: Duration) -> String {
    let seconds = span.as_secs_f64();
    match seconds {
        ..9.95 => format!("{seconds:.1} s"),
        ..600.0 => format!("{seconds:.0} s"),
        ..36_000.0 => format!("{:.0} min", seconds / 60.0),
        _ => format!("{:.1} h", seconds / 3_600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_transport::{LineEstimate, forecast};
    use skyhaul_units::Rate;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn of(outlook: Outlook) -> [Forecast; 1] {
        [Forecast { flow: FlowId(7), unsent: ByteCount::new(1), done: None, outlook, late: 0 }]
    }

    fn late(seconds: u64) -> [Forecast; 1] {
        of(Outlook::LateBy(Duration::from_secs(seconds)))
    }

    fn well(millis: u64) -> [Forecast; 1] {
        of(Outlook::OnTime(Duration::from_millis(millis)))
    }

    #[test]
    fn an_alarm_waits_for_a_second_and_ends_after_five_with_something_to_spare() {
        let mut foresight = LatenessWatch::default();
        let mut see = |millis, forecasts: &[Forecast]| {
            let told = foresight.update(at(millis), forecasts);
            told.first().map(|(_, reported)| *reported)
        };
        assert_eq!(see(0, &late(40)), None);
        assert_eq!(see(900, &late(40)), None);
        assert_eq!(see(950, &well(9_000)), None, "it wavers");
        assert_eq!(see(1_000, &late(40)), None);
        assert_eq!(see(2_000, &late(41)), Some(ForecastChange::Late(Duration::from_secs(41))));
        assert_eq!(see(4_000, &late(400)), None, "reported two seconds ago");
        assert_eq!(see(12_000, &late(45)), None, "about the same");
        assert_eq!(see(13_000, &late(90)), Some(ForecastChange::Late(Duration::from_secs(90))));
        assert_eq!(see(14_000, &well(400)), None, "hardly");
        assert_eq!(see(15_000, &well(2_000)), None);
        assert_eq!(see(17_000, &late(1)), None, "it wavers");
        assert_eq!(see(18_000, &well(3_000)), None);
        assert_eq!(see(22_999, &well(3_000)), None);
        assert_eq!(see(23_000, &well(3_000)), Some(ForecastChange::OnTime(Duration::from_secs(3))));
        assert_eq!(see(40_000, &well(3_000)), None, "told once");
    }

    #[test]
    fn what_is_through_is_over_where_it_was_late() {
        let mut foresight = LatenessWatch::default();
        foresight.update(at(0), &late(1));
        assert_eq!(foresight.update(at(1_000), &late(1)).len(), 1);
        assert_eq!(foresight.update(at(1_200), &[]), [(FlowId(7), ForecastChange::Over)]);
        assert_eq!(foresight.update(at(1_400), &[]), []);
        foresight.update(at(2_000), &late(1));
        assert_eq!(foresight.update(at(2_500), &[]), [], "nothing was reported of it");
        assert!(foresight.contacts.is_empty());
    }

    #[test]
    fn what_waits_behind_is_late_by_its_oldest_or_its_newest() {
        let line = LineEstimate { rate: Rate::from_mbps(8), one_way_delay: Duration::ZERO };
        let outlook = |due| {
            let behind = WaitingData {
                flow: FlowId(1),
                bytes: ByteCount::new(10_000_000),
                priority: 1,
                due,
            };
            let queue = candidates(Instant::ZERO, &[behind]);
            assert_eq!(
                queue.iter().map(|(_, candidate)| candidate.unsent.as_u64()).sum::<u64>(),
                10_000_000
            );
            forecast(Instant::ZERO, &line, queue.iter().map(|(flow, candidate)| (*flow, candidate)))
                [0]
            .outlook
        };
        // The first 256 KiB are there after 262 ms, all of it after 10 s.
        assert_eq!(
            outlook(Some((at(1_000), at(12_000)))),
            Outlook::OnTime(Duration::from_micros(737_856))
        );
        assert_eq!(outlook(Some((at(1_000), at(8_000)))), Outlook::LateBy(Duration::from_secs(2)));
        assert_eq!(
            outlook(Some((at(0), at(12_000)))),
            Outlook::LateBy(Duration::from_micros(262_144))
        );
        assert_eq!(outlook(None), Outlook::OnTime(Duration::MAX));
    }

    #[test]
    fn spans_in_words() {
        let spans = [400, 9_900, 40_400, 3_000_000, 90_000_000]
            .map(|ms| in_words(Duration::from_millis(ms)));
        assert_eq!(spans, ["0.4 s", "9.9 s", "40 s", "50 min", "25.0 h"]);
    }
}
