//! Several series of packets, each in order, into one.

use crate::entry::{Entry, Source};
use crate::files::Error;
use crate::order::{Held, Meeting, Run, Slot};
use skyhaul_units::Utc;
use std::io::Read;

/// What comes out of a merge.
pub(crate) enum Merged {
    /// The next run.
    Run(Slot, Run),
    /// A packet that was there twice.
    Duplicate,
    /// A packet of this time, whose place another has.
    Differs(Utc, Held),
}

/// Hands the packets of all sources to `sink`, run by run in the order of slots.
///
/// A run is gathered in memory up to [`LONGEST_RUN`] bytes: more packets of one APID with one time stamp come out in
/// several runs, in sequence only within each.
pub(crate) fn merge<R: Read>(
    mut sources: Vec<Source<R>>,
    sink: &mut impl FnMut(Merged) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut heads = Vec::with_capacity(sources.len());
    for source in &mut sources {
        heads.push(source.next()?);
    }
    while let Some(slot) = heads.iter().flatten().map(|entry| entry.slot).min() {
        let mut run = Run::default();
        for (head, source) in heads.iter_mut().zip(&mut sources) {
            while let Some(Entry { held, .. }) = head.take_if(|entry| entry.slot == slot) {
                *head = source.next()?;
                match run.insert(held) {
                    Meeting::New => {}
                    Meeting::Duplicate => sink(Merged::Duplicate)?,
                    Meeting::Differs(held) => sink(Merged::Differs(slot.time, held))?,
                }
                if run.cost() > LONGEST_RUN {
                    sink(Merged::Run(slot, core::mem::take(&mut run)))?;
                }
            }
        }
        sink(Merged::Run(slot, run))?;
    }
    Ok(())
}

/// 8 MiB: a hundred times the longest packet group of an instrument in orbit.
const LONGEST_RUN: usize = 8 << 20;
