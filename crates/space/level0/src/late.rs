//! Packets that arrive after their place in the product was written: they are held, spilled to run
//! files, and merged at the end.

use crate::batch::{Batch, Part, Settled};
use crate::entry::{Source, head};
use crate::files::{Error, Files};
use crate::merge::merge;
use crate::order::{Held, Slot};
use crate::packet_file::Output;

/// The late packets of one product.
pub(crate) struct Late {
    prefix: String,
    held: Batch,
    spilled: Vec<RunFile>,
    serial: u32,
    /// Packets that came late.
    pub(crate) packets: u64,
}

/// Packets in order in a file.
struct RunFile {
    name: String,
    /// The number of times its packets were merged with others.
    tier: u8,
}

impl Late {
    pub fn new(prefix: String) -> Self {
        Self { prefix, held: Batch::default(), spilled: Vec::new(), serial: 0, packets: 0 }
    }

    pub fn push(&mut self, slot: Slot, held: Held<'_>) {
        self.packets += 1;
        self.held.push(slot, held);
    }

    /// Memory held, in bytes.
    pub const fn cost(&self) -> usize {
        self.held.cost()
    }

    pub const fn is_empty(&self) -> bool {
        self.packets == 0
    }

    /// Moves what is held in memory to a run file. [`RUN_FILES`] files that were merged the same
    /// number of times become one, so that each packet is moved only a few times. `sink` gets the
    /// duplicates found during the merge.
    pub fn spill<F: Files>(
        &mut self,
        files: &mut F,
        sink: &mut impl FnMut(&mut F, Settled<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut out = self.create(files)?;
        self.held.drain(Part::All, &mut |settled| {
            write(&mut out, settled, &mut |other| sink(files, other))
        })?;
        self.spilled.push(RunFile { name: out.close()?.working, tier: 0 });
        let mut tier = 0;
        while self.spilled.iter().filter(|file| file.tier == tier).count() >= RUN_FILES {
            self.compact(files, tier, sink)?;
            tier = (tier + 1).min(LAST_TIER);
        }
        Ok(())
    }

    fn compact<F: Files>(
        &mut self,
        files: &mut F,
        tier: u8,
        sink: &mut impl FnMut(&mut F, Settled<'_>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let spilled = core::mem::take(&mut self.spilled);
        let (merged, kept): (Vec<_>, _) = spilled.into_iter().partition(|file| file.tier == tier);
        let sources =
            merged.iter().map(|file| open(files, &file.name)).collect::<Result<_, _>>()?;
        let mut out = self.create(files)?;
        merge(sources, &mut |settled| write(&mut out, settled, &mut |other| sink(files, other)))?;
        let name = out.close()?.working;
        for file in merged {
            files.remove(&file.name).map_err(Error::on("remove", &file.name))?;
        }
        self.spilled = kept;
        self.spilled.push(RunFile { name, tier: (tier + 1).min(LAST_TIER) });
        Ok(())
    }

    /// All late packets in order, to merge with the packet file.
    pub fn sources<F: Files>(&mut self, files: &mut F) -> Result<Vec<Source<F::Reader>>, Error> {
        let mut sources = self
            .spilled
            .iter()
            .map(|file| open(files, &file.name))
            .collect::<Result<Vec<_>, _>>()?;
        sources.push(Source::memory(core::mem::take(&mut self.held)));
        Ok(sources)
    }

    /// The run files, to be removed after merging.
    pub fn run_files(&self) -> impl Iterator<Item = &str> {
        self.spilled.iter().map(|file| file.name.as_str())
    }

    fn create<F: Files>(&mut self, files: &mut F) -> Result<Output<F::Writer>, Error> {
        self.serial += 1;
        Output::create(files, format!("{}.run{}", self.prefix, self.serial))
    }
}

/// Writes a packet with its head, for a [`Source`]; passes on everything else.
fn write<W: std::io::Write>(
    out: &mut Output<W>,
    settled: Settled<'_>,
    sink: &mut impl FnMut(Settled<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    match settled {
        Settled::Packet(slot, held) => {
            out.put(&head(slot, &held))?;
            out.put(held.bytes)
        }
        other => sink(other),
    }
}

fn open<F: Files>(files: &mut F, name: &str) -> Result<Source<F::Reader>, Error> {
    Source::file(name, files.open(name).map_err(Error::on("open", name))?, None)
}

/// Run files of one tier that become one of the next: of the 8 MiB that all products' late packets
/// may take, 128 MiB, then 2 GiB, then 32 GiB.
const RUN_FILES: usize = 16;
/// Run files of this tier become one of the same: no more than 61 are there when a product is
/// finished, with 8 MiB of buffers.
const LAST_TIER: u8 = 3;
