//! Values that form groups: shortest round trips of flows that take routes of different length.

use serde::Serialize;
use skyhaul_units::Duration;

/// A group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cluster {
    /// Places of its values in what was given, the least value first.
    pub members: Vec<usize>,
    /// Its least value.
    #[serde(skip)]
    pub least: Duration,
    /// Its greatest value.
    #[serde(skip)]
    pub greatest: Duration,
}

/// Groups of `values`: where two neighbours are further apart than `gap`, another one begins. The
/// lowest group comes first.
pub fn clusters(values: &[Duration], gap: Duration) -> Vec<Cluster> {
    let mut order: Vec<usize> = (0..values.len()).collect();
    order.sort_by_key(|index| values[*index]);
    let mut found: Vec<Cluster> = Vec::new();
    for index in order {
        let value = values[index];
        match found.last_mut().filter(|last| value.saturating_sub(last.greatest) <= gap) {
            Some(last) => {
                last.members.push(index);
                last.greatest = value;
            }
            None => found.push(Cluster { members: vec![index], least: value, greatest: value }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_of_8_and_12_ms_are_two_groups() {
        let millis = |tenths: u64| Duration::from_micros(tenths * 100);
        let values = [80, 121, 81, 120, 80, 80, 122, 81].map(millis);
        let found = clusters(&values, Duration::from_millis(1));
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].members, [0, 4, 5, 2, 7]);
        assert_eq!((found[1].least, found[1].greatest), (millis(120), millis(122)));
        assert_eq!(clusters(&[], Duration::ZERO), []);
    }
}
