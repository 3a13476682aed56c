//! Packets that came after their place in the product was written: held, spilled to run files, merged at the end.

use crate::entry::{self, Source};
use crate::files::{Error, Files};
use crate::merge::{Merged, merge};
use crate::order::{Held, Meeting, Runs, Slot};
use crate::packet_file::{WRITE_BUFFER, flushed};
use std::io::{BufWriter, Write};

/// The late packets of one product.
pub(crate) struct Late {
    prefix: String,
    runs: Runs,
    spilled: Vec<String>,
    serial: u32,
    /// Packets that came late.
    pub(crate) packets: u64,
}

impl Late {
    pub fn new(prefix: String) -> Self {
        Self { prefix, runs: Runs::default(), spilled: Vec::new(), serial: 0, packets: 0 }
    }

    pub fn insert(&mut self, slot: Slot, held: Held) -> Meeting {
        self.packets += 1;
        self.runs.insert(slot, held)
    }

    /// Memory held, in bytes.
    pub const fn cost(&self) -> usize {
        self.runs.cost()
    }

    pub fn is_empty(&self) -> bool {
        self.runs.is_empty() && self.spilled.is_empty()
    }

    /// Moves what is held in memory to a run file. When there are [`RUN_FILES`], they become one;
    /// `sink` gets the duplicates found then.
    pub fn spill<F: Files>(
        &mut self,
        files: &mut F,
        sink: &mut impl FnMut(&mut F, Merged) -> Result<(), Error>,
    ) -> Result<(), Error> {
        if self.spilled.len() >= RUN_FILES {
            self.compact(files, sink)?;
        }
        let name = self.next_name();
        let mut out = create(files, &name)?;
        while let Some((slot, run)) = self.runs.pop_first() {
            entry::write_run(&mut out, slot, run).map_err(Error::on("write", &name))?;
        }
        flushed(out, &name)?;
        self.spilled.push(name);
        Ok(())
    }

    fn compact<F: Files>(
        &mut self,
        files: &mut F,
        sink: &mut impl FnMut(&mut F, Merged) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let spilled = core::mem::take(&mut self.spilled);
        let sources = spilled.iter().map(|name| open(files, name)).collect::<Result<_, _>>()?;
        let name = self.next_name();
        let mut out = create(files, &name)?;
        merge(sources, &mut |merged| match merged {
            Merged::Run(slot, run) => {
                entry::write_run(&mut out, slot, run).map_err(Error::on("write", &name))
            }
            other => sink(files, other),
        })?;
        flushed(out, &name)?;
        for name in &spilled {
            files.remove(name).map_err(Error::on("remove", name))?;
        }
        self.spilled.push(name);
        Ok(())
    }

    /// All late packets in order, to merge with the packet file.
    pub fn sources<F: Files>(&mut self, files: &mut F) -> Result<Vec<Source<F::Reader>>, Error> {
        let mut sources = self.spilled.iter().map(|name| open(files, name)).collect::<Result<Vec<_>, _>>()?;
        sources.push(Source::memory(core::mem::take(&mut self.runs)));
        Ok(sources)
    }

    /// The run files, to be removed after merging.
    pub fn run_files(&self) -> &[String] {
        &self.spilled
    }

    fn next_name(&mut self) -> String {
        self.serial += 1;
        format!("{}.run{}", self.prefix, self.serial)
    }
}

fn open<F: Files>(files: &mut F, name: &str) -> Result<Source<F::Reader>, Error> {
    Ok(Source::file(name, files.open(name).map_err(Error::on("open", name))?, None))
}

fn create<F: Files>(files: &mut F, name: &str) -> Result<BufWriter<impl Write + use<F>>, Error> {
    let out = files.create(name).map_err(Error::on("create", name))?;
    Ok(BufWriter::with_capacity(WRITE_BUFFER, out))
}

/// Run files of one product, all open in a merge: 32 of at least 64 KiB of buffer each are 2 MiB.
const RUN_FILES: usize = 32;
