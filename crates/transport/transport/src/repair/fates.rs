//! Brings the fates of datagrams into the order of sending, as [`super::LossMeter`] needs them:
//! what was lost is known later than what arrived.

use std::collections::VecDeque;

/// Datagrams of one path whose fate is open, numbered in the order of sending.
#[derive(Debug, Default)]
pub struct FateOrder {
    first: u64,
    /// Whether it was lost, once that is known.
    fates: VecDeque<Option<bool>>,
}

/// Datagrams that wait for their fate at most: 0.6 s of 5 Gbit/s. Beyond, the oldest goes by
/// without one.
pub const OPEN_MAX: usize = 1 << 18;

impl FateOrder {
    /// With nothing sent.
    pub fn new() -> Self {
        Self::default()
    }

    /// A datagram was sent: its number.
    pub fn sent(&mut self) -> u64 {
        self.fates.push_back(None);
        if self.fates.len() > OPEN_MAX {
            self.fates.pop_front();
            self.first += 1;
        }
        self.first + self.fates.len() as u64 - 1
    }

    /// The fate of a datagram is known. What is said of it first counts.
    pub fn known(&mut self, number: u64, lost: bool) {
        let at = number.checked_sub(self.first).and_then(|at| usize::try_from(at).ok());
        if let Some(fate) = at.and_then(|at| self.fates.get_mut(at)) {
            fate.get_or_insert(lost);
        }
    }

    /// The next fate in the order of sending, if it is known: whether the datagram was lost.
    pub fn poll(&mut self) -> Option<bool> {
        let lost = self.fates.front().copied().flatten()?;
        self.fates.pop_front();
        self.first += 1;
        Some(lost)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fates_come_out_in_the_order_of_sending() {
        let mut order = FateOrder::new();
        let numbers: Vec<u64> = (0..4).map(|_| order.sent()).collect();
        assert_eq!(numbers, [0, 1, 2, 3]);
        order.known(0, false);
        order.known(2, false);
        order.known(3, false);
        assert_eq!((order.poll(), order.poll()), (Some(false), None));
        order.known(1, true);
        order.known(1, false);
        assert_eq!(
            [order.poll(), order.poll(), order.poll(), order.poll()],
            [Some(true), Some(false), Some(false), None]
        );
        order.known(1, true);
        order.known(77, true);
        assert_eq!((order.poll(), order.sent()), (None, 4));
    }

    #[test]
    fn what_never_gets_a_fate_holds_up_no_more_than_the_bound() {
        let mut order = FateOrder::new();
        for _ in 0..OPEN_MAX + 10 {
            let number = order.sent();
            if number > 0 {
                order.known(number, number.is_multiple_of(2));
            }
        }
        assert_eq!(order.poll(), Some(true));
    }
}
