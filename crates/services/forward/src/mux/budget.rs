//! The widths of streams' windows, which together stay within a budget.

use super::{INITIAL_CREDIT, WINDOW_MAX};

/// Bytes that all streams together may have received and not taken.
#[derive(Debug)]
pub(super) struct Budget {
    total: u64,
    granted: u64,
}

/// The first stream has this part of the budget, the widest window: before its rate is found, three
/// times what the line carries may be in transit, and a lost symbol holds back all behind it. Each
/// later one has less, by the third power of what is left: the tenth 5 MiB, the hundredth some
/// 250 KiB, and after ten thousand there is still some for those that need more.
const BEGIN_PART: u128 = 8;
/// A window grows by at most this part of what is left.
const GROW_PART: u64 = 4;
/// The factor by which a window grows that holds a stream back, so that the stream fills the line
/// after a few round trips.
const GROWTH: u64 = 4;

impl Budget {
    pub const fn new(total: u64) -> Self {
        Self { total, granted: 0 }
    }

    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// The window of a new stream.
    pub fn begin(&mut self) -> u64 {
        let (left, total) = (u128::from(self.left()), u128::from(self.total.max(1)));
        let share = left.pow(3) / total.pow(2) / BEGIN_PART;
        let window = u64::try_from(share).unwrap_or(u64::MAX).clamp(INITIAL_CREDIT, WINDOW_MAX);
        self.granted += window;
        window
    }

    /// Widens a window, to [`GROWTH`] times its width at most. Returns by how much.
    pub fn grow(&mut self, window: u64) -> u64 {
        let more = (window * (GROWTH - 1))
            .min(self.left() / GROW_PART)
            .min(WINDOW_MAX.saturating_sub(window));
        self.granted += more;
        more
    }

    /// A stream is gone.
    pub const fn end(&mut self, window: u64) {
        self.granted = self.granted.saturating_sub(window);
    }

    const fn left(&self) -> u64 {
        self.total.saturating_sub(self.granted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_streams_stay_within_the_budget_and_their_first_credit() {
        let total = 256 << 20;
        let mut budget = Budget::new(total);
        let mut windows: Vec<u64> = (0..10_000).map(|_| budget.begin()).collect();
        assert_eq!(windows[0], WINDOW_MAX);
        assert!(windows[9] > 4 << 20, "{}", windows[9]);
        assert!(windows[99] > 200 << 10, "{}", windows[99]);
        assert!(windows.iter().all(|window| *window >= INITIAL_CREDIT));
        for _ in 0..20 {
            windows.iter_mut().for_each(|window| *window += budget.grow(*window));
        }
        assert_eq!(budget.granted(), windows.iter().sum());
        assert!(budget.granted() <= total + 10_000 * INITIAL_CREDIT);
        windows.into_iter().for_each(|window| budget.end(window));
        assert_eq!(budget.granted(), 0);
    }

    #[test]
    fn a_stream_grows_beside_a_thousand_that_are_idle() {
        let mut budget = Budget::new(256 << 20);
        let mut window = (0..1_000).map(|_| budget.begin()).last().expect("a thousand");
        (0..8).for_each(|_| window += budget.grow(window));
        assert!(window > 8 << 20, "{window}");
    }
}
