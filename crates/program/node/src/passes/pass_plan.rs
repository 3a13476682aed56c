//! The file of a plan: passes that it lists, or that are computed from its orbits.

use crate::watched_file::WatchedFile;
use skyhaul_config::{PlanEntry, PlanSource};
use skyhaul_passes::{
    AntennaSite, ORBIT_FILE_BYTES_MAX, OrbitElements, PASS_PLAN_BYTES_MAX, PlannedPasses,
    PredictedPasses, PredictionRequest,
};
use skyhaul_units::Utc;

/// A plan, whose file is read again when it changes.
#[derive(Debug)]
pub struct PassPlanFile {
    read: Read,
}

#[derive(Debug)]
enum Read {
    Listed(WatchedFile<PlannedPasses>),
    Computed(Box<WatchedFile<OrbitElements>>, PredictedPasses),
}

impl PassPlanFile {
    /// Of this table; nothing is read yet.
    pub fn new(entry: &PlanEntry) -> Self {
        let read = match entry.source() {
            PlanSource::List(path) => Read::Listed(WatchedFile::new(
                path.clone(),
                PASS_PLAN_BYTES_MAX,
                |bytes: &[u8]| PlannedPasses::parse(bytes).map_err(|error| error.to_string()),
            )),
            PlanSource::Elements(path, latitude, longitude) => {
                let site = AntennaSite::new(
                    latitude.to_f64(),
                    longitude.to_f64(),
                    f64::from(entry.altitude),
                    entry.elevation.to_f64(),
                );
                let satellites = entry.satellites.iter().flatten();
                let wanted = PredictionRequest {
                    satellites: satellites.map(|(name, number)| (name.clone(), *number)).collect(),
                    site,
                    station: entry.station.clone(),
                    channel: entry.channel.clone(),
                };
                let parse =
                    |bytes: &[u8]| OrbitElements::parse(bytes).map_err(|error| error.to_string());
                let file = WatchedFile::new(path.clone(), ORBIT_FILE_BYTES_MAX, parse);
                Read::Computed(Box::new(file), PredictedPasses::new(wanted))
            }
        };
        Self { read }
    }

    /// Looks at the file, and computes passes where it is time. Returns whether another plan is in
    /// force.
    pub fn look(&mut self, now: Utc) -> bool {
        match &mut self.read {
            Read::Listed(file) => file.look(),
            Read::Computed(file, passes) => {
                let is_other = file.look();
                match file.content() {
                    Some(elements) if is_other || passes.is_due(now) => {
                        passes.renew(elements, now);
                        true
                    }
                    _ => false,
                }
            }
        }
    }

    /// What is wrong with the file as it is, and what to do.
    pub fn fault(&self) -> Option<String> {
        match &self.read {
            Read::Listed(file) => file.fault().map(str::to_owned),
            Read::Computed(file, passes) => file.fault().map(str::to_owned).or_else(|| {
                let path = file.path().display();
                let (first, more) = passes.faults().split_first()?;
                let more = match more.len() {
                    0 => String::new(),
                    count => format!("; and so {count} more"),
                };
                Some(format!("{path}, {first}{more}"))
            }),
        }
    }

    /// What a fault leaves in force.
    pub fn what_stays(&self) -> &'static str {
        let (is_read, is_whole) = match &self.read {
            Read::Listed(file) => (file.content().is_some(), file.fault().is_none()),
            Read::Computed(file, _) => (file.content().is_some(), file.fault().is_none()),
        };
        match (is_read, is_whole) {
            (false, _) => "none of its passes is watched",
            (true, false) => "the plan that was read before stays in force",
            (true, true) => "its other passes are watched",
        }
    }

    /// The plan that is in force, if one was read.
    pub fn plan(&self) -> Option<PlannedPasses> {
        match &self.read {
            Read::Listed(file) => file.content().cloned(),
            Read::Computed(file, passes) => file.content().map(|_| passes.plan()),
        }
    }
}
