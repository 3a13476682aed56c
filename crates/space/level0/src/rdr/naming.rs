//! Names of Raw Data Record files (CDFCB volume I 3.4.1).

use super::attributes::FileFacts;
use super::calendar::{clock, date};
use super::granule::GranuleSpan;
use super::iet::Iet;
use super::plan::Satellite;

/// The name of the file with these products, from the start of the first granule to the end of the
/// last: `RNSCA-RVIRS_npp_d20241206_t1735000_e1738440_b00000_c20241206174000000000_skyu_ops.h5`.
pub fn file_name(
    product_ids: &[&str],
    satellite: &Satellite,
    span: GranuleSpan,
    facts: &FileFacts,
) -> String {
    let mut ids = product_ids.to_vec();
    ids.sort_unstable();
    let (start, end) = (tenths(span.start), tenths(span.end));
    format!(
        "{}_{}_d{}_t{}_e{}_b{:05}_c{}{}_{}u_{}.h5",
        ids.join("-"),
        satellite.id,
        date(span.start.utc()),
        start,
        end,
        facts.orbit,
        date(facts.created),
        clock(facts.created).replace('.', ""),
        facts.origin.as_str(),
        facts.mode.as_str(),
    )
}

fn tenths(time: Iet) -> String {
    clock(time.utc()).replace('.', "")[..7].to_owned()
}
