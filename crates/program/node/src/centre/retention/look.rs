//! The products and contacts of a look: each is judged, and noted for the answer.

use super::desk::ArchiveRules;
use super::removal::{self, RemovalError};
use crate::centre::shared::CentreShared;
use crate::status::{ArchiveEviction, DueItem, DueObstacle};
use skyhaul_catalogue::{
    RetentionFigures, RetentionObstacle, RetentionReason, RetentionRun, RetentionShare,
    RetentionVerdict,
};
use skyhaul_catalogue_io::{
    CandidatePlace, CatalogueReader, ItemRemoval, RetentionCandidate, RetentionScope,
};
use skyhaul_units::{ByteCount, Utc};

/// Why a look is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookForm {
    /// It is time.
    Due,
    /// An operator wants to know; nothing leaves.
    Asked,
    /// An operator wants it, and says that clock and rules are right.
    Ordered,
}

/// A look under way.
pub struct RetentionLook<'a> {
    pub shared: &'a CentreShared,
    reader: CatalogueReader,
    pub form: LookForm,
    pub now: Utc,
    found: ArchiveEviction,
    /// Products that were looked at.
    judged: u64,
}

/// What was judged.
pub struct Judged {
    /// Its name.
    pub name: String,
    /// What it is.
    pub kind: &'static str,
    /// Its size.
    pub size: ByteCount,
    /// The rule that decides, from 1; 0 is `[store]`.
    pub rule: usize,
    /// When its time began.
    pub at: Utc,
}

/// Products of one page.
const PAGE: usize = 256;
/// Products that an answer judges: two seconds.
const ASKED_MAX: u64 = 20_000;
/// Products that leave by one order; the next one goes on.
const ORDERED_MAX: u64 = 5_000;
/// Rows that an answer has.
const SHOWN: usize = 10_000;

impl<'a> RetentionLook<'a> {
    /// That begins now, and goes on from what was found.
    pub const fn new(
        shared: &'a CentreShared,
        reader: CatalogueReader,
        form: LookForm,
        found: ArchiveEviction,
        now: Utc,
    ) -> Self {
        Self { shared, reader, form, now, found, judged: 0 }
    }

    /// What was found.
    pub fn found(self) -> ArchiveEviction {
        self.found
    }

    /// Looks at the products of one rule. Returns how many are due beyond the share of the day.
    ///
    /// # Errors
    /// The catalogue or the disk refuses.
    pub fn rule(
        &mut self,
        place: usize,
        rules: &ArchiveRules,
        scope: RetentionScope<'_>,
        share: &mut RetentionShare,
    ) -> Result<u64, RemovalError> {
        let rule = &rules.rules[place];
        let figures = self.reader.archive().figures(scope, self.now)?;
        let room = match self.form {
            LookForm::Ordered => u64::MAX,
            LookForm::Due | LookForm::Asked => share.room(self.shared.now(), figures),
        };
        let mut run = RetentionRun::new(rule, self.now, figures, room);
        let mut after = None;
        loop {
            let page = self.reader.archive().candidates(scope, after, PAGE)?;
            let (is_last, mut is_over) = (page.len() < PAGE, false);
            let mut leaving = Vec::new();
            for candidate in page {
                after = Some(CandidatePlace { at: candidate.at, id: candidate.row.id });
                self.judged += 1;
                let verdict = self.judge(&mut run, candidate, place + 1);
                match verdict {
                    Some(Ok((item, reason))) => {
                        let reason = format!("[[retention]] table {}: {reason}", place + 1);
                        leaving.push(ItemRemoval { item, leaves: rule.leaves, reason });
                    }
                    Some(Err(_)) => {}
                    None => {
                        is_over = true;
                        break;
                    }
                }
            }
            share.took(self.remove(leaving)?);
            let is_enough = match self.form {
                LookForm::Due => false,
                LookForm::Asked => self.judged >= ASKED_MAX,
                LookForm::Ordered => self.found.leaves >= ORDERED_MAX,
            };
            self.found.has_more |= is_enough && !is_last && !is_over;
            if is_last || is_over || is_enough || self.shared.shutdown.is_requested() {
                return Ok(run.beyond());
            }
        }
    }

    /// Judges one product: its number with the reason where it leaves, why it stays, or none where
    /// it is not due.
    fn judge(
        &mut self,
        run: &mut RetentionRun<'_>,
        candidate: RetentionCandidate,
        rule: usize,
    ) -> Option<Result<(u64, RetentionReason), RetentionObstacle>> {
        let RetentionCandidate { row, at, mut standing } = candidate;
        standing.absent = removal::absent(self.shared.deliveries().products(), &row.item);
        let size = ByteCount::new(row.item.size());
        let (name, kind) = (row.item.versioned_id(), row.item.form.name());
        let judged = Judged { name, kind, size, rule, at };
        match run.judge(at, size, &standing) {
            RetentionVerdict::Stays => None,
            RetentionVerdict::Leaves(reason) => {
                self.note(judged, reason, None);
                Some(Ok((row.id, reason)))
            }
            RetentionVerdict::IsKept(reason, obstacle) => {
                self.note(judged, reason, Some(&obstacle));
                Some(Err(obstacle))
            }
        }
    }

    /// Notes what was judged, for the answer.
    pub fn note(
        &mut self,
        judged: Judged,
        reason: RetentionReason,
        obstacle: Option<&RetentionObstacle>,
    ) {
        match obstacle {
            Some(obstacle) => {
                *self.found.kept.entry(obstacle.name().to_owned()).or_default() += 1;
            }
            None => {
                self.found.leaves += 1;
                self.found.bytes += judged.size.as_u64();
            }
        }
        if self.form == LookForm::Asked && self.found.due.len() < SHOWN {
            self.found.due.push(DueItem {
                name: judged.name,
                kind: judged.kind.to_owned(),
                bytes: judged.size.as_u64(),
                rule: judged.rule,
                at: judged.at.to_string(),
                cause: reason.name().to_owned(),
                reason: reason.to_string(),
                stays: obstacle.map(|obstacle| DueObstacle {
                    name: obstacle.name().to_owned(),
                    reason: obstacle.to_string(),
                }),
            });
        }
    }

    /// Removes products. Returns how many left.
    fn remove(&self, leaving: Vec<ItemRemoval>) -> Result<u64, RemovalError> {
        if self.form == LookForm::Asked || leaving.is_empty() {
            return Ok(0);
        }
        let ledger = self.shared.deliveries();
        let marked = removal::mark(ledger.catalogue(), leaving, self.now)?;
        removal::finish(ledger.catalogue(), ledger.products())?;
        let count = marked.len() as u64;
        if count > 0 {
            tracing::info!("{count} products left the archive");
        }
        Ok(count)
    }
}

/// What contacts are together, for a rule.
pub fn figures_of(sizes: impl Iterator<Item = ByteCount>) -> RetentionFigures {
    sizes.fold(RetentionFigures::default(), |figures, size| RetentionFigures {
        items: figures.items + 1,
        bytes: figures.bytes + size.as_u64(),
        recent: 0,
    })
}
