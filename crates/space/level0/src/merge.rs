//! Merges several sorted series of packets into one.

use crate::batch::{Batch, Part, Settled};
use crate::entry::Source;
use crate::files::Error;
use crate::order::Slot;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::Read;

/// Passes the packets of all sources to `sink`, run by run in the order of slots.
///
/// A run is collected in memory up to [`LONGEST_RUN`] bytes: more packets of one APID with one time
/// stamp form several runs, which are in sequence only within each.
pub(crate) fn merge<R: Read>(
    mut sources: Vec<Source<R>>,
    sink: &mut impl FnMut(Settled<'_>) -> Result<(), Error>,
) -> Result<(), Error> {
    // The first slot of each source except the one being read.
    let mut heads = BinaryHeap::with_capacity(sources.len());
    for (place, source) in sources.iter().enumerate() {
        heads.extend(source.slot().map(|slot| Reverse((slot, place))));
    }
    let mut run = Batch::default();
    let mut next: Option<Reverse<(Slot, usize)>> = heads.pop();
    while let Some(Reverse((slot, place))) = next {
        let source = &mut sources[place];
        if run.len() == 0 {
            let others = heads.peek().map(|Reverse((other, _))| *other);
            source.pass(others, sink)?;
        }
        while source.slot() == Some(slot) {
            source.take(&mut run)?;
            if run.cost() > LONGEST_RUN {
                run.drain(Part::All, sink)?;
            }
        }
        next = following(&mut heads, source.slot().map(|slot| Reverse((slot, place))));
        if next.is_none_or(|Reverse((next, _))| next != slot) {
            run.drain(Part::All, sink)?;
        }
    }
    Ok(())
}

/// The least of the heads and `own`, which is not in the heap: `own` usually stays the least.
fn following<T: Ord>(
    heads: &mut BinaryHeap<Reverse<T>>,
    own: Option<Reverse<T>>,
) -> Option<Reverse<T>> {
    let Some(mut own) = own else { return heads.pop() };
    if let Some(mut least) = heads.peek_mut().filter(|least| **least > own) {
        core::mem::swap(&mut *least, &mut own);
    }
    Some(own)
}

/// 8 MiB: a hundred times the longest packet group of an instrument in orbit.
const LONGEST_RUN: usize = 8 << 20;
