//! One product in the making: packets in, a packet file in order out.

use crate::aside::{Aside, Reason, Shelved};
use crate::contact::Limits;
use crate::entry::Source;
use crate::files::{Error, Files};
use crate::late::Late;
use crate::merge::{Merged, merge};
use crate::naming::Label;
use crate::order::{ApidOrder, Frontier, Held, Meeting, Run, Runs, Slot};
use crate::packet_file::{PacketFile, Written};
use skyhaul_units::Utc;
use std::io::Write;

/// What a product is to be.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// The mission's name for it.
    pub name: String,
    pub label: Option<Label>,
    pub order: ApidOrder,
    pub sorted_by: SortedBy,
    /// Begins the names of working files.
    pub prefix: String,
}

/// What a product's packets are in the order of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SortedBy {
    /// Packet time, APID, sequence count; duplicates are removed. APIDs that share a counter count as one.
    PacketTime,
    /// Reception: the packets have no time code that the mission knows. Duplicates cannot be told.
    Reception,
}

/// Where the packets that were offered to a product went. Each is counted once.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    pub received: u64,
    pub duplicates: u64,
    pub outside_window: u64,
}

/// A product in the making.
pub(crate) struct ProductBuilder<F: Files> {
    pub plan: Plan,
    pub tally: Tally,
    pub aside: Aside<F::Writer>,
    window: Runs,
    frontier: Frontier,
    /// The last slot that was written: what belongs there or before is late.
    written: Option<Slot>,
    late: Late,
    file: PacketFile<F::Writer>,
}

/// A product whose packet file is complete.
pub(crate) struct Finished<F: Files> {
    pub plan: Plan,
    pub tally: Tally,
    pub aside: Aside<F::Writer>,
    pub packets: Written<F::Writer>,
    pub late_packets: u64,
}

impl<F: Files> ProductBuilder<F> {
    pub fn new(plan: Plan, limits: &Limits, files: &mut F) -> Result<Self, Error> {
        let index = match plan.sorted_by {
            SortedBy::PacketTime => Some(format!("{}.index", plan.prefix)),
            SortedBy::Reception => None,
        };
        let packets = format!("{}.packets", plan.prefix);
        let file = PacketFile::create(files, packets, index, plan.order.counters())?;
        Ok(Self {
            tally: Tally::default(),
            aside: Aside::new(format!("{}.aside", plan.prefix), limits.set_aside),
            window: Runs::default(),
            frontier: Frontier::default(),
            written: None,
            late: Late::new(plan.prefix.clone()),
            file,
            plan,
        })
    }

    /// Takes a packet that belongs at `time`.
    pub fn place(&mut self, files: &mut F, limits: &Limits, time: Utc, held: Held) -> Result<(), Error> {
        let slot = Slot { time, rank: self.plan.order.rank(held.apid) };
        let meeting = if self.written.is_some_and(|written| slot <= written) {
            self.late.insert(slot, held)
        } else {
            self.frontier.pass(time);
            self.window.insert(slot, held)
        };
        match meeting {
            Meeting::New => {}
            Meeting::Duplicate => self.tally.duplicates += 1,
            Meeting::Differs(held) => set_aside(&mut self.aside, files, time, &held)?,
        }
        while self
            .window
            .first()
            .is_some_and(|slot| self.frontier.time().since(slot.time) > limits.window_span)
        {
            self.write_first()?;
        }
        Ok(())
    }

    /// Takes a packet that has no time: next in the file.
    pub fn append(&mut self, held: &Held) -> Result<(), Error> {
        let slot = Slot { time: held.received, rank: 0 };
        self.file.put(slot, held, None)
    }

    /// Memory held for the window, in bytes.
    pub const fn window_cost(&self) -> usize {
        self.window.cost()
    }

    /// Memory held for late packets, in bytes.
    pub const fn late_cost(&self) -> usize {
        self.late.cost()
    }

    /// Writes the first run of the window.
    pub fn write_first(&mut self) -> Result<(), Error> {
        let Some((slot, run)) = self.window.pop_first() else { return Ok(()) };
        self.written = Some(slot);
        put_run(&mut self.file, slot, run)
    }

    /// Moves the late packets from memory to a file.
    pub fn spill(&mut self, files: &mut F) -> Result<(), Error> {
        let (tally, aside) = (&mut self.tally, &mut self.aside);
        self.late.spill(files, &mut |files, merged| shed(tally, aside, files, merged))
    }

    /// Writes what is held. Where packets came late, the packet file is written anew with them in place.
    pub fn finish(mut self, files: &mut F) -> Result<Finished<F>, Error> {
        while !self.window.is_empty() {
            self.write_first()?;
        }
        let late_packets = self.late.packets;
        let (mut written, index) = self.file.close()?;
        if let Some(index) = index {
            if !self.late.is_empty() {
                let mut sources = self.late.sources(files)?;
                let heads = files.open(&index).map_err(Error::on("open", &index))?;
                let packets = files.open(&written.working).map_err(Error::on("open", &written.working))?;
                sources.push(Source::file(&index, heads, Some(packets)));
                let working = format!("{}.merged", self.plan.prefix);
                let mut file = PacketFile::create(files, working, None, self.plan.order.counters())?;
                merge(sources, &mut |merged| match merged {
                    Merged::Run(slot, run) => put_run(&mut file, slot, run),
                    other => shed(&mut self.tally, &mut self.aside, files, other),
                })?;
                let (merged, _) = file.close()?;
                let before = core::mem::replace(&mut written, merged).working;
                for name in self.late.run_files().iter().chain([&before]) {
                    files.remove(name).map_err(Error::on("remove", name))?;
                }
            }
            files.remove(&index).map_err(Error::on("remove", &index))?;
        }
        Ok(Finished { plan: self.plan, tally: self.tally, aside: self.aside, packets: written, late_packets })
    }
}

fn put_run<W: Write>(file: &mut PacketFile<W>, slot: Slot, run: Run) -> Result<(), Error> {
    for held in run.into_sequence() {
        file.put(slot, &held, Some(slot.time))?;
    }
    Ok(())
}

/// Accounts for a packet that a merge found no place for.
fn shed<F: Files>(
    tally: &mut Tally,
    aside: &mut Aside<F::Writer>,
    files: &mut F,
    merged: Merged,
) -> Result<(), Error> {
    match merged {
        Merged::Run(..) => Ok(()),
        Merged::Duplicate => {
            tally.duplicates += 1;
            Ok(())
        }
        Merged::Differs(time, held) => set_aside(aside, files, time, &held),
    }
}

fn set_aside<F: Files>(
    aside: &mut Aside<F::Writer>,
    files: &mut F,
    time: Utc,
    held: &Held,
) -> Result<(), Error> {
    let packet = Shelved {
        vcid: held.vcid,
        apid: Some(held.apid),
        count: Some(held.count),
        time: Some(time),
        received: held.received,
        bytes: &held.bytes,
    };
    aside.put(files, packet, Reason::Differs)
}
