//! Builds one product: packets in, a packet file in order out.

use crate::batch::{Batch, Part, Settled};
use crate::entry::Source;
use crate::files::{Error, Files};
use crate::late::Late;
use crate::limits::Limits;
use crate::merge::merge;
use crate::naming::Label;
use crate::order::{ApidOrder, Frontier, Held, Slot};
use crate::packet_file::{PacketFile, Written};
use crate::set_aside::{SetAsideFile, SetAsideReason, Shelved};
use skyhaul_units::Utc;

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

/// The order of a product's packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SortedBy {
    /// Packet time, APID, sequence count; duplicates are removed. APIDs that share a counter count
    /// as one.
    PacketTime,
    /// Reception: the mission has no time code for the packets. Duplicates cannot be detected.
    Reception,
}

/// The results for the packets that were offered to a product. Each counts once.
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
    pub set_aside: SetAsideFile<F::Writer>,
    window: Batch,
    /// Packets in the window at which it is searched for those that are old enough to be written.
    look_at: usize,
    frontier: Frontier,
    /// The last slot that was written: packets of this slot or earlier ones are late.
    written: Option<Slot>,
    late: Late,
    file: PacketFile<F::Writer>,
}

/// A product whose packet file is complete.
pub(crate) struct Finished<F: Files> {
    pub plan: Plan,
    pub tally: Tally,
    pub set_aside: SetAsideFile<F::Writer>,
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
            set_aside: SetAsideFile::new(format!("{}.aside", plan.prefix), limits.set_aside),
            window: Batch::default(),
            look_at: LOOK_AT,
            frontier: Frontier::default(),
            written: None,
            late: Late::new(plan.prefix.clone()),
            file,
            plan,
        })
    }

    /// Takes a packet that belongs at `time`.
    pub fn place(
        &mut self,
        files: &mut F,
        limits: &Limits,
        time: Utc,
        held: Held<'_>,
    ) -> Result<(), Error> {
        let slot = Slot { time, rank: self.plan.order.rank(held.apid) };
        if self.written.is_some_and(|written| slot <= written) {
            self.late.push(slot, held);
            self.file.make_provisional();
            return Ok(());
        }
        self.frontier.pass(time);
        self.window.push(slot, held);
        if self.window.len() >= self.look_at {
            let end = Slot { time: self.frontier.time() - limits.window_span, rank: 0 };
            self.write(files, Part::Before(end))?;
            // What stays is as long again before it is sorted again.
            self.look_at = LOOK_AT.max(2 * self.window.len());
        }
        Ok(())
    }

    /// Takes a packet without a time, which is next in the file.
    pub fn append(&mut self, held: &Held<'_>) -> Result<(), Error> {
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

    /// Writes the first half of the window.
    pub fn write_half(&mut self, files: &mut F) -> Result<(), Error> {
        self.write(files, Part::Half)
    }

    /// Writes a part of the window, and remembers its last slot.
    fn write(&mut self, files: &mut F, part: Part) -> Result<(), Error> {
        let (file, tally, set_aside) = (&mut self.file, &mut self.tally, &mut self.set_aside);
        let last = self.window.drain(part, &mut |settled| match settled {
            Settled::Packet(slot, held) => file.put(slot, &held, Some(slot.time)),
            other => shed(tally, set_aside, files, other),
        })?;
        self.written = last.or(self.written);
        Ok(())
    }

    /// Moves the late packets from memory to a file.
    pub fn spill(&mut self, files: &mut F) -> Result<(), Error> {
        let (tally, set_aside) = (&mut self.tally, &mut self.set_aside);
        self.late.spill(files, &mut |files, settled| shed(tally, set_aside, files, settled))
    }

    /// Writes the packets held. If packets were late, the packet file is written again with them in
    /// place.
    pub fn finish(mut self, files: &mut F) -> Result<Finished<F>, Error> {
        self.write(files, Part::All)?;
        let late_packets = self.late.packets;
        let (mut written, index) = self.file.close()?;
        if let Some(index) = index {
            if !self.late.is_empty() {
                let mut sources = self.late.sources(files)?;
                let heads = files.open(&index).map_err(Error::on("open", &index))?;
                let packets =
                    files.open(&written.working).map_err(Error::on("open", &written.working))?;
                sources.push(Source::file(&index, heads, Some(packets))?);
                let working = format!("{}.merged", self.plan.prefix);
                let mut file =
                    PacketFile::create(files, working, None, self.plan.order.counters())?;
                merge(sources, &mut |settled| match settled {
                    Settled::Packet(slot, held) => file.put(slot, &held, Some(slot.time)),
                    other => shed(&mut self.tally, &mut self.set_aside, files, other),
                })?;
                let (merged, _) = file.close()?;
                let before = core::mem::replace(&mut written, merged).working;
                for name in self.late.run_files().chain([before.as_str()]) {
                    files.remove(name).map_err(Error::on("remove", name))?;
                }
            }
            files.remove(&index).map_err(Error::on("remove", &index))?;
        }
        Ok(Finished {
            plan: self.plan,
            tally: self.tally,
            set_aside: self.set_aside,
            packets: written,
            late_packets,
        })
    }
}

/// Accounts for a packet that has no place in the product.
fn shed<F: Files>(
    tally: &mut Tally,
    set_aside: &mut SetAsideFile<F::Writer>,
    files: &mut F,
    settled: Settled<'_>,
) -> Result<(), Error> {
    match settled {
        Settled::Packet(..) => Ok(()),
        Settled::Duplicate => {
            tally.duplicates += 1;
            Ok(())
        }
        Settled::Differs(time, held) => keep_differing(set_aside, files, time, &held),
    }
}

fn keep_differing<F: Files>(
    set_aside: &mut SetAsideFile<F::Writer>,
    files: &mut F,
    time: Utc,
    held: &Held<'_>,
) -> Result<(), Error> {
    let packet = Shelved {
        vcid: held.vcid,
        apid: Some(held.apid),
        count: Some(held.count),
        time: Some(time),
        received: held.received,
        bytes: held.bytes,
    };
    set_aside.put(files, packet, SetAsideReason::Differs)
}

/// 4096 packets, or twice those that stayed last time, because a search of the window sorts it.
const LOOK_AT: usize = 4_096;
