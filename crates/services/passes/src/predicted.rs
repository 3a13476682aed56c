//! Passes that are computed from orbital elements.

mod search;

use crate::elements::OrbitElements;
use crate::plan::{PlannedPass, PlannedPasses};
use crate::site::AntennaSite;
use search::SatelliteSky;
use skyhaul_units::{Duration, Utc};

/// Passes of some satellites over an antenna, computed by SGP4 (Spacetrack Report 3, as revised by
/// Vallado et al., AIAA 2006-6753).
#[derive(Debug)]
pub struct PredictedPasses {
    wanted: PredictionRequest,
    passes: Vec<PlannedPass>,
    faults: Vec<String>,
    made: Option<Utc>,
}

/// What passes are computed.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictionRequest {
    /// Missions, with the catalogue numbers of their satellites.
    pub satellites: Vec<(String, u64)>,
    /// Where the antenna stands.
    pub site: AntennaSite,
    /// The node that captures the passes.
    pub station: Option<String>,
    /// The input that captures them.
    pub channel: Option<String>,
}

/// Passes are shown for a day behind and ahead: this is how far they are known before they are
/// computed anew.
const AHEAD: Duration = Duration::from_secs(2 * 86_400);
const BEHIND: Duration = Duration::from_secs(86_400);
/// Four times a day, so that a day ahead is always known.
const RENEWED_AFTER: Duration = Duration::from_secs(6 * 3_600);
/// Elements of a low orbit are wrong by some seconds after two weeks; a pass may be two minutes
/// early or late before it is taken for another.
const OLD_AFTER: Duration = Duration::from_secs(14 * 86_400);
/// Beyond this nothing is computed: the pass would be anywhere.
const USELESS_AFTER: Duration = Duration::from_secs(60 * 86_400);

impl PredictedPasses {
    /// Nothing is computed yet.
    pub const fn new(wanted: PredictionRequest) -> Self {
        Self { wanted, passes: Vec::new(), faults: Vec::new(), made: None }
    }

    /// Whether passes are to be computed anew at `now`, though the elements are the same.
    pub fn is_due(&self, now: Utc) -> bool {
        self.made.is_none_or(|made| now < made || now.since(made) >= RENEWED_AFTER)
    }

    /// Computes the passes anew. A pass that has begun stays as it was: what became of it is known
    /// under its start.
    pub fn renew(&mut self, elements: &OrbitElements, now: Utc) {
        self.made = Some(now);
        self.faults.clear();
        let from = now - BEHIND;
        self.passes.retain(|pass| pass.start <= now && pass.end >= from);
        let begun = self.passes.len();
        for (mission, number) in &self.wanted.satellites {
            let is_new = |pass: &PlannedPass| {
                let mut same = self.passes[..begun].iter().filter(|begun| {
                    begun.mission.as_ref() == Some(mission)
                        && begun.start < pass.end
                        && pass.start < begun.end
                });
                same.next().is_none()
            };
            match self.wanted.passes_of(mission, *number, elements, now) {
                Ok(computed) => {
                    let computed: Vec<_> = computed.into_iter().filter(is_new).collect();
                    self.passes.extend(computed);
                }
                Err(fault) => self.faults.push(fault),
            }
            self.faults.extend(old(mission, *number, elements, now));
        }
    }

    /// What was computed, in the order of its start.
    pub fn plan(&self) -> PlannedPasses {
        PlannedPasses::of(self.passes.clone())
    }

    /// What could not be computed, or is likely to be wrong, and what to do.
    pub fn faults(&self) -> &[String] {
        &self.faults
    }
}

impl PredictionRequest {
    fn passes_of(
        &self,
        mission: &str,
        number: u64,
        elements: &OrbitElements,
        now: Utc,
    ) -> Result<Vec<PlannedPass>, String> {
        let named = |what: &str| format!("satellite {number} ({mission}): {what}");
        let set = elements
            .of(number)
            .ok_or_else(|| named("the file has no elements of it; add them, or remove it"))?;
        let epoch = epoch(set);
        if age(epoch, now) > USELESS_AFTER {
            return Err(named(&format!(
                "its elements are of {}, more than 60 days from now; get new ones",
                day(epoch)
            )));
        }
        let sky = SatelliteSky::new(set, epoch, self.site).map_err(|what| named(&what))?;
        let seen = sky.passes(now - BEHIND, now + AHEAD).map_err(|what| named(&what))?;
        let planned = seen.into_iter().map(|seen| PlannedPass {
            start: seen.rise,
            end: seen.set,
            mission: Some(mission.to_owned()),
            station: self.station.clone(),
            channel: self.channel.clone(),
            name: None,
            peak: Some(seen.peak),
        });
        Ok(planned.collect())
    }
}

/// That the elements of a satellite are old.
fn old(mission: &str, number: u64, elements: &OrbitElements, now: Utc) -> Option<String> {
    let epoch = epoch(elements.of(number)?);
    let days = age(epoch, now).as_millis() / 86_400_000;
    let is_old = age(epoch, now) > OLD_AFTER && age(epoch, now) <= USELESS_AFTER;
    is_old.then(|| {
        format!(
            "satellite {number} ({mission}): its elements are of {}, {days} days from now, and \
             its passes may be wrong; get new ones",
            day(epoch)
        )
    })
}

fn age(epoch: Utc, now: Utc) -> Duration {
    if now > epoch { now.since(epoch) } else { epoch.since(now) }
}

fn day(epoch: Utc) -> String {
    let (year, month, day) = epoch.date();
    format!("{year}-{month:02}-{day:02}")
}

/// When elements were right. Years that no clock of ours has are those of its ends.
fn epoch(set: &sgp4::Elements) -> Utc {
    let nanos = set.datetime.and_utc().timestamp_nanos_opt();
    Utc::from_nanos(nanos.unwrap_or(i64::MIN / 2))
}

#[cfg(test)]
mod tests;
