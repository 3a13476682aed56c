//! Datagrams that came out of order (RFC 4737).

use serde::Serialize;

/// What is out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct ReorderingStats {
    /// Datagrams that came after one with a greater number (RFC 4737 3.3).
    pub reordered: u64,
    /// Of all that came, in parts per million.
    pub ppm: u64,
    /// The greatest extent: how many arrivals a reordered datagram lies behind the first that
    /// overtook it (RFC 4737 4.2.1).
    pub extent_max: u64,
}

impl ReorderingStats {
    /// Of sequence numbers in the order of their arrival, none twice.
    pub fn of(seqs: impl IntoIterator<Item = u32>) -> Self {
        let mut found = Self::default();
        // Places and numbers of those that were the greatest when they came: both rise.
        let mut greatest: Vec<(u64, u32)> = Vec::new();
        let mut count = 0;
        for seq in seqs {
            match greatest.last() {
                Some((_, last)) if *last > seq => {
                    found.reordered += 1;
                    let overtook = greatest.partition_point(|(_, earlier)| *earlier < seq);
                    let first = greatest.get(overtook).map_or(count, |(place, _)| *place);
                    found.extent_max = found.extent_max.max(count - first);
                }
                _ => greatest.push((count, seq)),
            }
            count += 1;
        }
        found.ppm = (found.reordered * 1_000_000).checked_div(count).unwrap_or(0);
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn extents_are_as_in_the_examples_of_rfc_4737() {
        // RFC 4737 10.1, tables 1 and 2: 4 arrives after 5, 6, 7, 8; 5, 6, 7 arrive after 8.
        let late = ReorderingStats::of([1, 2, 3, 5, 6, 7, 8, 4, 9, 10]);
        assert_eq!((late.reordered, late.extent_max), (1, 4));
        let early = ReorderingStats::of([1, 2, 3, 4, 8, 5, 6, 7, 9, 10]);
        assert_eq!((early.reordered, early.extent_max, early.ppm), (3, 3, 300_000));
    }

    #[test]
    fn gaps_are_no_reordering() {
        assert_eq!(ReorderingStats::of([0, 4, 9, 100]), ReorderingStats::default());
        assert_eq!(ReorderingStats::of([]), ReorderingStats::default());
    }
}
