//! The report of the latency account: who got what on time, how long each element took, and why
//! what was late was late.
//!
//! One row is a product at one consumer. A cell is what one station brought of one product of a
//! mission. Quantiles are of the rows themselves (nearest rank), not of a model of them.

use crate::item::ItemForm;
use crate::latency::{AccountRow, ContactTimes, LatencyElement, between};
use serde::Serialize;
use skyhaul_units::{Duration, Utc};
use std::collections::BTreeMap;

/// By when a product is to be handed over after its observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LatencyBudget {
    /// Of this mission; of every one where none is named.
    pub mission: Option<String>,
    /// Of this form; of every one where none is named.
    pub form: Option<ItemForm>,
    /// The longest time.
    pub within: Duration,
}

/// The report of a period.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyReport {
    /// What was published from this time on.
    pub from: String,
    /// And before this one.
    pub to: String,
    /// Over everything.
    pub whole: LatencyFigures,
    /// By mission.
    pub missions: Vec<LatencyMission>,
    /// By mission, product, form and station.
    pub cells: Vec<LatencyCell>,
    /// Of the frames of all contacts that ended in the period, by mission.
    pub frames: Vec<FrameFigures>,
}

/// Counts and quantiles of some rows. Times are in seconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct LatencyFigures {
    /// Products handed over, each to one consumer.
    pub handed: u64,
    /// Of these: in time.
    pub on_time: u64,
    /// Late, or still to come when the time was over.
    pub late: u64,
    /// Still to come, in time so far.
    pub open: u64,
    /// Not handed over: replaced by a newer version, or cancelled.
    pub given_up: u64,
    /// Rows without a budget; they are neither in time nor late.
    pub without_budget: u64,
    /// The share in time, of those in time and late; none without both.
    pub share_on_time: Option<f64>,
    /// The median from the observation to the hand-over.
    pub p50_s: Option<f64>,
    /// 95 of 100 took no longer.
    pub p95_s: Option<f64>,
    /// 99 of 100.
    pub p99_s: Option<f64>,
    /// The longest.
    pub worst: Option<WorstProduct>,
}

/// The product that took longest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct WorstProduct {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: u32,
    /// The contact that brought its last packet, where that is known.
    pub contact: Option<String>,
    /// Its consumer.
    pub consumer: Option<String>,
    /// How long it took, in seconds.
    pub took_s: f64,
}

/// A mission.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyMission {
    /// Its name.
    pub mission: String,
    /// Its rows.
    #[serde(flatten)]
    pub figures: LatencyFigures,
    /// Its elements, in the order of the way. Their means add up to the mean of the totals.
    pub elements: Vec<ElementFigures>,
    /// From the hand-over to the acceptance, where consumers accept.
    pub acceptance: Option<ElementFigures>,
}

/// How long an element took, in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ElementFigures {
    /// The element; none of the acceptance.
    pub element: Option<LatencyElement>,
    /// Rows that have it.
    pub count: u64,
    /// Its sum over all rows, over their number: also of those that do not have it.
    pub mean_s: f64,
    /// The median of those that have it.
    pub p50_s: f64,
    /// 95 of 100 took no longer.
    pub p95_s: f64,
    /// 99 of 100.
    pub p99_s: f64,
    /// The longest.
    pub worst_s: f64,
}

/// What one station brought of one product.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyCell {
    /// The mission.
    pub mission: String,
    /// Its product.
    pub product: String,
    /// The form.
    pub kind: &'static str,
    /// The station; several with a plus between them.
    pub station: String,
    /// The budget, in seconds.
    pub budget_s: Option<f64>,
    /// Its rows.
    #[serde(flatten)]
    pub figures: LatencyFigures,
    /// Why the worst row was late; none where nothing was.
    pub cause: Option<LatencyCause>,
}

/// Why a product was late: the element that took most beyond what it usually takes, or, where all
/// took as long as usual, the longest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyCause {
    /// The element.
    pub element: LatencyElement,
    /// How long it took, in seconds.
    pub took_s: f64,
    /// How long it usually takes in this mission: its median.
    pub usual_s: f64,
}

/// How long frames took, each counted by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FrameFigures {
    /// The mission.
    pub mission: String,
    /// Its contacts.
    pub contacts: u64,
    /// Their frames.
    pub frames: u64,
    /// The elements from the last bit of a block's last frame until it was sorted in.
    pub elements: Vec<ElementFigures>,
}

/// Takes rows and makes the report.
#[derive(Debug)]
pub struct LatencyReporter {
    from: Utc,
    to: Utc,
    now: Utc,
    budgets: Vec<LatencyBudget>,
    whole: Tally,
    missions: BTreeMap<String, MissionTally>,
    cells: BTreeMap<CellKey, CellTally>,
    frames: BTreeMap<String, FrameTally>,
}

/// What the rows of a cell have in common.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CellKey {
    mission: String,
    product: String,
    form: ItemForm,
    station: String,
}

/// Rows of which figures are made.
#[derive(Debug, Default)]
struct Tally {
    totals: Vec<i64>,
    on_time: u64,
    late: u64,
    open: u64,
    given_up: u64,
    without_budget: u64,
    worst: Option<(i64, WorstProduct)>,
}

#[derive(Debug, Default)]
struct MissionTally {
    tally: Tally,
    elements: BTreeMap<LatencyElement, Vec<i64>>,
    acceptance: Vec<i64>,
}

#[derive(Debug, Default)]
struct CellTally {
    tally: Tally,
    within: Option<Duration>,
    /// The latest of the late rows: how late it was, and its elements.
    latest: Option<(i64, Vec<(LatencyElement, i64)>)>,
}

#[derive(Debug, Default)]
struct FrameTally {
    contacts: u64,
    frames: u64,
    /// How long, and for how many frames.
    elements: BTreeMap<LatencyElement, Vec<(i64, u32)>>,
}

/// What became of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Punctuality {
    OnTime,
    Late,
    Open,
    GivenUp,
    WithoutBudget,
}

impl LatencyReporter {
    /// Of a period, as it is seen now.
    pub fn new(from: Utc, to: Utc, now: Utc, budgets: Vec<LatencyBudget>) -> Self {
        let (missions, cells, frames) = Default::default();
        Self { from, to, now, budgets, whole: Tally::default(), missions, cells, frames }
    }

    /// The budget of a product: that of the first entry that fits.
    pub fn budget(&self, mission: &str, form: ItemForm) -> Option<Duration> {
        let fits = |budget: &&LatencyBudget| {
            budget.mission.as_deref().is_none_or(|name| name == mission)
                && budget.form.is_none_or(|named| named == form)
        };
        self.budgets.iter().find(fits).map(|budget| budget.within)
    }

    /// Adds a product at a consumer.
    pub fn add(&mut self, row: &AccountRow) {
        let within = self.budget(&row.mission, row.form);
        let punctuality = self.punctuality(row, within);
        self.whole.add(row, punctuality);
        let mission = self.missions.entry(row.mission.clone()).or_default();
        mission.tally.add(row, punctuality);
        let elements = row.elements();
        if row.total().is_some() {
            for (element, took) in &elements {
                mission.elements.entry(*element).or_default().push(*took);
            }
        }
        mission.acceptance.extend(row.acceptance());
        let key = CellKey {
            mission: row.mission.clone(),
            product: row.product.clone(),
            form: row.form,
            station: row.stations.join("+"),
        };
        let cell = self.cells.entry(key).or_default();
        cell.within = within;
        cell.tally.add(row, punctuality);
        if punctuality == Punctuality::Late {
            // What is still to come is the later the longer it takes.
            let took = row.begin().map(|begin| between(begin, row.end().unwrap_or(self.now)));
            let took = took.unwrap_or_default();
            if cell.latest.as_ref().is_none_or(|(latest, _)| *latest < took) {
                let mut elements = elements;
                if row.end().is_none() {
                    let waits = between(row.published, self.now);
                    elements.push((LatencyElement::Deliver, waits));
                }
                cell.latest = Some((took, elements));
            }
        }
    }

    /// Adds the blocks of a contact that ended in the period.
    pub fn contact(&mut self, times: &ContactTimes) {
        let tally = self.frames.entry(times.mission.clone()).or_default();
        tally.contacts += 1;
        for block in times.blocks() {
            tally.frames += u64::from(block.frames);
            for (element, took) in block.elements(block.last_received) {
                tally.elements.entry(element).or_default().push((took, block.frames));
            }
        }
    }

    fn punctuality(&self, row: &AccountRow, within: Option<Duration>) -> Punctuality {
        let is_given_up = row.consumer.as_ref().is_some_and(|consumer| consumer.is_given_up);
        if is_given_up && row.end().is_none() {
            return Punctuality::GivenUp;
        }
        let (Some(within), Some(begin)) = (within, row.begin()) else {
            return Punctuality::WithoutBudget;
        };
        let most = i64::try_from(within.as_micros()).unwrap_or(i64::MAX);
        match row.end() {
            Some(end) if between(begin, end) <= most => Punctuality::OnTime,
            None if between(begin, self.now) <= most => Punctuality::Open,
            Some(_) | None => Punctuality::Late,
        }
    }

    /// The report.
    pub fn finish(self) -> LatencyReport {
        let usual: BTreeMap<(String, LatencyElement), i64> = self
            .missions
            .iter()
            .flat_map(|(name, mission)| {
                let medians = mission.elements.iter().map(|(element, took)| {
                    let mut took = took.clone();
                    took.sort_unstable();
                    ((name.clone(), *element), quantile(&took, 50))
                });
                medians.collect::<Vec<_>>()
            })
            .collect();
        let cells = self.cells.into_iter().map(|(key, cell)| cell.finish(key, &usual));
        LatencyReport {
            from: self.from.to_string(),
            to: self.to.to_string(),
            whole: self.whole.finish(),
            cells: cells.collect(),
            missions: self.missions.into_iter().map(|(name, tally)| tally.finish(name)).collect(),
            frames: self.frames.into_iter().map(|(name, tally)| tally.finish(name)).collect(),
        }
    }
}

impl Tally {
    fn add(&mut self, row: &AccountRow, punctuality: Punctuality) {
        let count = match punctuality {
            Punctuality::OnTime => &mut self.on_time,
            Punctuality::Late => &mut self.late,
            Punctuality::Open => &mut self.open,
            Punctuality::GivenUp => &mut self.given_up,
            Punctuality::WithoutBudget => &mut self.without_budget,
        };
        *count += 1;
        let Some(total) = row.total() else { return };
        self.totals.push(total);
        if self.worst.as_ref().is_none_or(|(worst, _)| *worst < total) {
            let worst = WorstProduct {
                name: row.name.clone(),
                version: row.version,
                contact: row.times.as_ref().map(|times| times.contact.clone()),
                consumer: row.consumer.as_ref().map(|consumer| consumer.name.clone()),
                took_s: seconds(total),
            };
            self.worst = Some((total, worst));
        }
    }

    fn finish(mut self) -> LatencyFigures {
        self.totals.sort_unstable();
        let at = |hundredth| {
            (!self.totals.is_empty()).then(|| seconds(quantile(&self.totals, hundredth)))
        };
        let judged = self.on_time + self.late;
        LatencyFigures {
            handed: self.totals.len() as u64,
            on_time: self.on_time,
            late: self.late,
            open: self.open,
            given_up: self.given_up,
            without_budget: self.without_budget,
            share_on_time: (judged > 0).then(|| self.on_time as f64 / judged as f64),
            p50_s: at(50),
            p95_s: at(95),
            p99_s: at(99),
            worst: self.worst.map(|(_, worst)| worst),
        }
    }
}

impl MissionTally {
    fn finish(self, mission: String) -> LatencyMission {
        let (rows, accepted) = (self.tally.totals.len(), self.acceptance.len());
        let elements = self.elements.into_iter();
        let figures = elements.map(|(element, took)| figures_of(Some(element), took, rows));
        LatencyMission {
            mission,
            elements: figures.collect(),
            acceptance: (accepted > 0).then(|| figures_of(None, self.acceptance, accepted)),
            figures: self.tally.finish(),
        }
    }
}

impl CellTally {
    fn finish(self, key: CellKey, usual: &BTreeMap<(String, LatencyElement), i64>) -> LatencyCell {
        let CellKey { mission, product, form, station } = key;
        let usually = |element: LatencyElement| {
            usual.get(&(mission.clone(), element)).copied().unwrap_or_default()
        };
        let cause = self.latest.and_then(|(_, elements)| {
            let beyond =
                |(element, took): &(LatencyElement, i64)| took.saturating_sub(usually(*element));
            let total: i64 = elements.iter().map(|(_, took)| took).sum();
            let most = *elements.iter().max_by_key(|element| beyond(element))?;
            // Where all took as long as usual, it is the longest that makes the product late.
            let is_usual = beyond(&most).saturating_mul(USUAL_SHARE) < total;
            let longest = elements.iter().copied().max_by_key(|(_, took)| *took);
            let (element, took) = longest.filter(|_| is_usual).unwrap_or(most);
            let (took_s, usual_s) = (seconds(took), seconds(usually(element)));
            Some(LatencyCause { element, took_s, usual_s })
        });
        let budget_s = self.within.map(Duration::as_secs_f64);
        let figures = self.tally.finish();
        LatencyCell { mission, product, kind: form.name(), station, budget_s, figures, cause }
    }
}

impl FrameTally {
    fn finish(self, mission: String) -> FrameFigures {
        let Self { contacts, frames, elements } = self;
        let figures = elements.into_iter().map(|(element, mut took)| {
            took.sort_unstable();
            let sum: f64 =
                took.iter().map(|(took, frames)| *took as f64 * f64::from(*frames)).sum();
            let at = |hundredth| seconds(weighted(&took, frames, hundredth));
            ElementFigures {
                element: Some(element),
                count: frames,
                mean_s: if frames == 0 { 0.0 } else { sum / frames as f64 / 1e6 },
                p50_s: at(50),
                p95_s: at(95),
                p99_s: at(99),
                worst_s: took.last().map_or(0.0, |(took, _)| seconds(*took)),
            }
        });
        FrameFigures { mission, contacts, frames, elements: figures.collect() }
    }
}

fn figures_of(element: Option<LatencyElement>, mut took: Vec<i64>, rows: usize) -> ElementFigures {
    took.sort_unstable();
    let sum: i128 = took.iter().map(|took| i128::from(*took)).sum();
    let at = |hundredth| seconds(quantile(&took, hundredth));
    ElementFigures {
        element,
        count: took.len() as u64,
        mean_s: if rows == 0 { 0.0 } else { sum as f64 / rows as f64 / 1e6 },
        p50_s: at(50),
        p95_s: at(95),
        p99_s: at(99),
        worst_s: took.last().map_or(0.0, |worst| seconds(*worst)),
    }
}

/// An element that took less than the total divided by this beyond the usual took the usual time.
const USUAL_SHARE: i64 = 100;

/// The smallest value that so many of a hundred do not exceed (nearest rank); 0 of none.
fn quantile(sorted: &[i64], hundredth: usize) -> i64 {
    let rank = (sorted.len() * hundredth).div_ceil(100).max(1);
    sorted.get(rank - 1).copied().unwrap_or_default()
}

/// The same where each value stands for several.
fn weighted(sorted: &[(i64, u32)], all: u64, hundredth: u64) -> i64 {
    let rank = (all * hundredth).div_ceil(100).max(1);
    let mut passed = 0;
    let reached = sorted.iter().find(|(_, count)| {
        passed += u64::from(*count);
        passed >= rank
    });
    reached.or(sorted.last()).map_or(0, |(value, _)| *value)
}

fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests;
