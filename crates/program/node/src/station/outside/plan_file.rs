//! The file of a contact plan, which is read again when it changes.

use super::board::KnownPlan;
use crate::status::{PlanStatus, seconds};
use crate::watched_file::WatchedFile;
use skyhaul_hints::{ContactPlan, PLAN_BYTES_MAX};
use skyhaul_units::Utc;
use std::path::PathBuf;

/// The file of a plan, and what was read of it last.
#[derive(Debug)]
pub struct PlanFile(WatchedFile<ContactPlan>);

/// Windows that the session is told of ahead: two days of a low orbit over one station.
const AHEAD_MAX: usize = 24;

impl PlanFile {
    /// A file that was not read yet.
    pub const fn new(file: PathBuf) -> Self {
        let parse = |bytes: &[u8]| ContactPlan::parse(bytes).map_err(|error| error.to_string());
        Self(WatchedFile::new(file, PLAN_BYTES_MAX, parse))
    }

    /// Looks at the file. Returns whether another plan is in force.
    pub fn look(&mut self) -> bool {
        self.0.look()
    }

    fn plan(&self) -> Option<&ContactPlan> {
        self.0.content()
    }

    /// Windows of the plan in force.
    pub fn count(&self) -> usize {
        self.plan().map_or(0, |plan| plan.windows().len())
    }

    /// What is wrong, a sentence: with the file as it is now, or because the plan is over.
    pub fn fault(&self, now: Utc) -> Option<String> {
        let stays = match self.plan() {
            Some(_) => "the plan that was read before stays in force",
            None => "the path is used as if it had no plan",
        };
        if let Some(fault) = self.0.fault() {
            return Some(format!("{fault}; {stays}"));
        }
        let over = self.plan().filter(|plan| plan.ahead(now).is_empty())?;
        let end = over.last_end(now).map(seconds).unwrap_or_default();
        let file = self.0.path().display();
        Some(format!(
            "{file}: its last window ended at {end}; the path is used as if it had no plan: write \
            the next windows"
        ))
    }

    /// What it says from `now` on.
    pub fn known(&self, now: Utc) -> KnownPlan {
        let ahead = self.plan().map_or(&[][..], |plan| plan.ahead(now));
        let next = ahead.first();
        let last_end = self.plan().and_then(|plan| plan.last_end(now));
        KnownPlan {
            ahead: ahead[..ahead.len().min(AHEAD_MAX)].to_vec(),
            gone_since: last_end.unwrap_or(Utc::from_nanos(0)),
            status: PlanStatus {
                file: self.0.path().display().to_string(),
                windows: self.count() as u64,
                ahead: ahead.len() as u64,
                start: next.map(|window| seconds(window.start)),
                end: next.map(|window| seconds(window.end)),
                reason: self.0.fault().map(str::to_owned),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Duration;

    const FIRST: &str = "2026-11-22T12:30:00Z,2026-11-22T12:38:00Z,80 Mbit/s\n";
    const SECOND: &str = "2026-11-22T14:10:00Z,2026-11-22T14:18:00Z,20 Mbit/s\n";

    #[test]
    fn a_changed_file_is_read_again_and_a_broken_one_changes_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("plan.csv");
        let mut plan = PlanFile::new(file.clone());
        let now = Utc::from_rfc3339("2026-11-22T12:00:00Z").expect("a time");
        assert!(!plan.look() && plan.fault(now).is_some_and(|why| why.contains("as if it had no")));
        std::fs::write(&file, FIRST).expect("written");
        assert!(plan.look() && plan.fault(now).is_none());
        let broken = format!("{FIRST}{SECOND}nonsense\n");
        std::fs::write(&file, broken).expect("written");
        assert!(!plan.look() && plan.fault(now).is_none(), "it may still be written");
        assert!(!plan.look());
        let fault = plan.fault(now).expect("it is broken");
        assert!(fault.contains("plan.csv, line 3") && fault.contains("stays in force"), "{fault}");
        assert_eq!(plan.known(now).status.windows, 1);
        std::fs::write(&file, format!("{FIRST}{SECOND}")).expect("written");
        assert!(!plan.look() && plan.look() && plan.fault(now).is_none());
        let known = plan.known(now + Duration::from_secs(3_600));
        assert_eq!((known.ahead.len(), known.status.windows), (1, 2));
        assert_eq!(known.status.start.as_deref(), Some("2026-11-22T14:10:00Z"));
        assert_eq!(seconds(known.gone_since), "2026-11-22T12:38:00Z");
        std::fs::remove_file(&file).expect("removed");
        assert!(!plan.look() && plan.fault(now).is_some_and(|why| why.contains("stays in force")));
        let later = now + Duration::from_secs(86_400);
        std::fs::write(&file, SECOND).expect("written");
        assert!(!plan.look() && plan.look());
        assert!(plan.fault(later).is_some_and(|why| why.contains("ended at 2026-11-22T14:18:00Z")));
    }
}
