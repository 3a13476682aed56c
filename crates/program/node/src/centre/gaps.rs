//! The ledger of missing frames at the centre: it follows every durable frame, is kept in the state
//! folder, and gives the questions for the stations.

mod news;
mod watch;

pub use watch::ContactWatch;

use crate::fault::Fault;
use crate::journal::EventNote;
use crate::status::{GapCounts, GapFilter, GapProgress, GapReport, GapStatus, GapsAsked};
use news::GapNews;
use skyhaul_level0::ledger::{
    AskedAgain, ContactId, ContactStart, GapState, KnownContact, Ledger, MissingFrames, PacketGap,
    PacketGapState, PacketLoss,
};
use skyhaul_store::{Disk, LedgerError, RealDisk, RecordDirectory as Records};
use skyhaul_units::{Duration, Instant};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

/// The ledger, and its records on disk.
#[derive(Debug)]
pub struct GapLedger {
    ledger: Ledger,
    records: Records,
    damaged: Vec<String>,
    saved_at: Instant,
    news: GapNews,
}

/// Between two saves: after a kill, blocks since the last one are read again.
const SAVE: Duration = Duration::from_secs(2);
/// The most gaps in one report.
const TOLD_MAX: usize = 8_192;
const FOLDER: &str = "level0/gaps";

impl GapLedger {
    /// Opens the ledger in the state folder. `first_ask` is above the number of every earlier
    /// question; `stations` are those that can be asked.
    ///
    /// # Errors
    /// The disk refuses.
    pub fn open(
        disk: &Arc<dyn Disk>,
        first_ask: u64,
        stations: &BTreeSet<String>,
    ) -> Result<Self, LedgerError> {
        let records = Records::open(disk.clone(), FOLDER)?;
        let mended = records.mend(&records.load()?)?;
        let mut gaps = Self::load(records, first_ask)?;
        gaps.damaged.extend(mended);
        gaps.ledger.stations(stations);
        Ok(gaps)
    }

    fn load(records: Records, first_ask: u64) -> Result<Self, LedgerError> {
        let loaded = records.load()?;
        let (mut ledger, mut damaged) = (Ledger::new(first_ask), loaded.damaged);
        for (name, body) in &loaded.records {
            if let Err(error) = ledger.restore(body) {
                damaged.push(format!("{name}: {error}"));
            }
        }
        let news = GapNews::of(&ledger);
        Ok(Self { ledger, records, damaged, saved_at: Instant::ZERO, news })
    }

    /// Records that were damaged on disk.
    pub fn damaged(&self) -> &[String] {
        &self.damaged
    }

    /// The ledger.
    pub const fn ledger(&mut self) -> &mut Ledger {
        &mut self.ledger
    }

    /// Requests unrecoverable frames again.
    ///
    /// # Errors
    /// No gap of frames matches the filter.
    pub fn ask_again(&mut self, which: &GapFilter) -> Result<GapsAsked, Fault> {
        let AskedAgain { contacts, gaps, frames, left } =
            self.ledger.ask_again(|id, opened, gap| {
                which.takes(&id.station, id.flow.0, &opened.mission, Some(gap.channel.scid.value()))
            });
        let is_filtered = *which != GapFilter::default();
        if contacts == 0 && is_filtered {
            let help = "list the stations, contacts and spacecraft with `skyhaul gaps`";
            return Err(Fault::configuration(
                "no gap of frames is known for this contact",
                "skyhaul gaps ask",
                help,
            ));
        }
        Ok(GapsAsked { contacts, gaps, frames, left })
    }

    /// The changes since the last save; none where that was not long ago.
    pub fn changes(&mut self, now: Instant) -> Option<LedgerWrites> {
        if now < self.saved_at + SAVE {
            return None;
        }
        self.saved_at = now;
        Some(self.all_changes())
    }

    /// The changes since the last save.
    pub fn all_changes(&mut self) -> LedgerWrites {
        let changed = self.ledger.changed();
        let record = |id: ContactId| Some((name(&id), self.ledger.record(&id)?));
        let written = changed.iter().cloned().filter_map(record).collect();
        let forgotten = self.ledger.forgotten();
        let removed = forgotten.iter().map(name).collect();
        let news = self.news.changes(&self.ledger, &changed);
        self.news.forget(&forgotten);
        LedgerWrites { records: self.records.clone(), changed, written, removed, news }
    }

    /// Changes could not be saved: they are saved with the next ones.
    pub fn not_kept(&mut self, changes: LedgerWrites) {
        self.ledger.not_kept(changes.changed);
    }

    /// The numbers of gaps.
    pub fn counts(&self) -> GapCounts {
        let totals = self.ledger.totals();
        let mut counts = GapCounts {
            overflow: totals.overflow,
            unfollowed: totals.unfollowed,
            asks: totals.asks,
            ..GapCounts::default()
        };
        for gap in self.ledger.contacts().flat_map(|known| known.gaps) {
            counts.missing_frames += gap.missing();
            match gap.state {
                GapState::Open => counts.open += 1,
                GapState::Requested { .. } => counts.requested += 1,
                GapState::Filled => counts.filled += 1,
                GapState::Unrecoverable(_) => counts.unrecoverable += 1,
            }
        }
        counts
    }

    /// All gaps.
    pub fn report(&self) -> GapReport {
        let mut gaps = Vec::new();
        for KnownContact { id, opened, gaps: frames, .. } in self.ledger.contacts() {
            gaps.extend(frames.map(|gap| of_frames(id, opened, gap)));
            gaps.extend(
                self.ledger.packets(id).map(|(gap, state)| of_packets(id, opened, gap, state)),
            );
        }
        let older = gaps.len().saturating_sub(TOLD_MAX);
        gaps.drain(..older);
        GapReport { counts: self.counts(), gaps }
    }
}

/// Reads the gaps from a centre's state folder, whether the centre runs or not, and names records
/// that cannot be read. Open questions are not saved: their gaps show as open.
///
/// # Errors
/// It is not a centre's state folder, or cannot be read.
pub fn kept(state: &Path) -> Result<(GapReport, Vec<String>), Fault> {
    let help = "give the folder that `state` of a centre's configuration names";
    let refused = |error: &dyn core::fmt::Display| {
        Fault::environment(
            format!("the ledger of gaps cannot be read ({error})"),
            state.display(),
            help,
        )
    };
    if !state.join(FOLDER).is_dir() {
        return Err(refused(&"it has no folder level0/gaps"));
    }
    let records = Records::as_it_is(Arc::new(RealDisk::look(state)), FOLDER);
    let gaps = GapLedger::load(records, 0).map_err(|error| refused(&error))?;
    Ok((gaps.report(), gaps.damaged))
}

/// Changes to be written without holding the lock of the ledger, which the line needs.
#[derive(Debug)]
pub struct LedgerWrites {
    records: Records,
    changed: BTreeSet<ContactId>,
    written: Vec<(String, Vec<u8>)>,
    removed: Vec<String>,
    news: Vec<EventNote>,
}

impl LedgerWrites {
    /// What became of gaps.
    pub fn news(&self) -> impl Iterator<Item = &EventNote> {
        self.news.iter()
    }

    /// Writes the changes; they are durable when this returns.
    ///
    /// # Errors
    /// The disk refuses: after a restart, the blocks are read again, as far as the store has them.
    pub fn write(&self) -> Result<(), LedgerError> {
        self.written.iter().try_for_each(|(name, record)| self.records.put(name, record))?;
        self.removed.iter().try_for_each(|name| self.records.remove(name))
    }
}

fn name(id: &ContactId) -> String {
    format!("{}-{}", id.station, id.flow)
}

fn of_frames(id: &ContactId, opened: &ContactStart, gap: &MissingFrames) -> GapStatus {
    let (state, why) = match gap.state {
        GapState::Open => (GapProgress::Open, None),
        GapState::Requested { .. } => (GapProgress::Requested, None),
        GapState::Filled => (GapProgress::Filled, None),
        GapState::Unrecoverable(why) => (GapProgress::Unrecoverable, Some(why.text().to_owned())),
    };
    GapStatus {
        station: id.station.clone(),
        flow: id.flow.0,
        channel: opened.channel.clone(),
        mission: opened.mission.clone(),
        scid: Some(gap.channel.scid.value()),
        vcids: vec![gap.channel.vcid.value()],
        apid: None,
        first: gap.first,
        missed: gap.missed,
        missing: Some(gap.missing()),
        asked: gap.asked,
        from: gap.before.received.to_string(),
        to: gap.after.received.to_string(),
        state,
        why,
    }
}

fn of_packets(
    id: &ContactId,
    opened: &ContactStart,
    gap: &PacketGap,
    state: PacketGapState,
) -> GapStatus {
    let (state, why) = match state {
        PacketGapState::Filled => (GapProgress::Filled, None),
        PacketGapState::Requested => (GapProgress::Requested, None),
        PacketGapState::Open => (GapProgress::Open, None),
        PacketGapState::Unrecoverable(PacketLoss::Frames) => {
            (GapProgress::Unrecoverable, Some("frames are missing that no recording has"))
        }
        PacketGapState::Unrecoverable(PacketLoss::NotSent) => (
            GapProgress::Unrecoverable,
            Some("no frame is missing: the spacecraft did not send the packets"),
        ),
    };
    GapStatus {
        station: id.station.clone(),
        flow: id.flow.0,
        channel: opened.channel.clone(),
        mission: opened.mission.clone(),
        scid: None,
        vcids: gap.vcids.iter().map(|vcid| vcid.value()).collect(),
        apid: Some(gap.apid.value()),
        first: u64::from(gap.first),
        missed: u64::from(gap.missed),
        missing: None,
        asked: 0,
        from: gap.from.to_string(),
        to: gap.to.to_string(),
        state,
        why: why.map(str::to_owned),
    }
}
