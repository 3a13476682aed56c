//! The widths of channels' windows, which together stay within a budget.

use super::{Carries, WindowRules};

/// Bytes that all channels together may have received and not taken.
#[derive(Debug)]
pub(super) struct Budget {
    total: u64,
    narrowest: u64,
    widest: u64,
    granted: u64,
}

/// The first channel has this part of the budget, or the widest window: before its rate is found,
/// three times what the line carries may be in transit, and a lost symbol holds back all behind it.
/// Each later one has less, by the third power of what is left: of 256 MiB the tenth 5 MiB, the
/// hundredth some 250 KiB, and after ten thousand there is still some for those that need more.
const BEGIN_PART: u128 = 8;
/// A window grows by at most this part of what is left.
const GROW_PART: u64 = 4;
/// The factor by which a window grows that holds a channel back, so that the channel fills the line
/// after a few round trips.
const GROWTH: u64 = 4;

impl Budget {
    pub const fn new(rules: &WindowRules) -> Self {
        Self {
            total: rules.budget.as_u64(),
            narrowest: rules.first_credit.as_u64(),
            widest: rules.widest.as_u64(),
            granted: 0,
        }
    }

    pub const fn granted(&self) -> u64 {
        self.granted
    }

    /// The window of a new channel.
    pub fn begin(&mut self, carries: Carries) -> u64 {
        if carries == Carries::Expendable {
            return 0;
        }
        let (left, total) = (u128::from(self.left()), u128::from(self.total.max(1)));
        let share = left.pow(3) / total.pow(2) / BEGIN_PART;
        let window = u64::try_from(share).unwrap_or(u64::MAX).clamp(self.narrowest, self.widest);
        self.granted += window;
        window
    }

    /// Widens a window, to [`GROWTH`] times its width at most. Returns by how much.
    pub fn grow(&mut self, window: u64) -> u64 {
        let more = (window * (GROWTH - 1))
            .min(self.left() / GROW_PART)
            .min(self.widest.saturating_sub(window));
        self.granted += more;
        more
    }

    /// A channel is gone.
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
    use skyhaul_units::ByteCount;

    const INITIAL_CREDIT: u64 = 16 << 10;
    const WINDOW_MAX: u64 = 32 << 20;

    fn budget(total: u64) -> Budget {
        Budget::new(&WindowRules {
            first_credit: ByteCount::new(INITIAL_CREDIT),
            widest: ByteCount::new(WINDOW_MAX),
            largest: ByteCount::new(1),
            budget: ByteCount::new(total),
        })
    }

    #[test]
    fn ten_thousand_channels_stay_within_the_budget_and_their_first_credit() {
        let total = 256 << 20;
        let mut budget = budget(total);
        let mut windows: Vec<u64> = (0..10_000).map(|_| budget.begin(Carries::Data)).collect();
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
    fn a_channel_grows_beside_a_thousand_that_are_idle() {
        let mut budget = budget(256 << 20);
        let mut window =
            (0..1_000).map(|_| budget.begin(Carries::Data)).last().expect("a thousand");
        (0..8).for_each(|_| window += budget.grow(window));
        assert!(window > 8 << 20, "{window}");
    }
}
