//! Who may use the service, and within which limits.

use skyhaul_transport::{MAX_BLOCK, cost};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// What the programs of one user may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowRule {
    /// The user.
    pub uid: u32,
    /// The classes that the user's blocks may have; none is all of them.
    pub classes: Option<Vec<String>>,
    /// What all programs of the user together may send; none is without a limit.
    pub rate: Option<Rate>,
    /// Whether the user's programs may say what the paths carry. That changes what all have of the
    /// line.
    pub hints: bool,
}

/// Bounds of what the service holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProgramLimits {
    /// The cost of all programs' blocks without a fate that was told.
    pub total: ByteCount,
    /// The same of one program.
    pub each: ByteCount,
    /// Programs at a time.
    pub programs: usize,
    /// Programs of one user at a time.
    pub per_user: usize,
}

impl Default for ProgramLimits {
    /// 256 MiB in all and 64 MiB for each program: eight round trips of 660 ms at 93 Mbit/s.
    fn default() -> Self {
        Self { total: ByteCount::mib(256), each: ByteCount::mib(64), programs: 128, per_user: 64 }
    }
}

impl AllowRule {
    /// Everything, without a limit of the rate: for the node's own user, who commands the node too.
    pub const fn all(uid: u32) -> Self {
        Self { uid, classes: None, rate: None, hints: true }
    }

    /// Whether blocks may be of this class.
    pub fn allows(&self, class: &str) -> bool {
        self.classes.as_ref().is_none_or(|classes| classes.iter().any(|one| one == class))
    }
}

/// A rule at work: what its programs have sent against their rate.
#[derive(Debug)]
pub(crate) struct RuleState {
    pub rule: AllowRule,
    /// Bytes that may be sent at once; below zero after a block that was larger than the rest.
    tokens: i64,
    at: Instant,
}

/// A program may send what it saved in this time at once.
const BURST: Duration = Duration::from_millis(100);

impl RuleState {
    pub fn new(rule: AllowRule, now: Instant) -> Self {
        let mut state = Self { rule, tokens: 0, at: now };
        state.tokens = state.burst();
        state
    }

    fn burst(&self) -> i64 {
        let bytes = self.rule.rate.map_or(0, |rate| rate.as_bps() / 8_000 * BURST.as_millis());
        // At least one datagram, so that the lowest rate sends at all.
        i64::try_from(bytes.max(1_500)).unwrap_or(i64::MAX)
    }

    /// Whether a block may be sent now.
    pub fn may_send(&mut self, now: Instant) -> bool {
        let Some(rate) = self.rule.rate else { return true };
        let nanos = u128::from(now.since(self.at).as_nanos());
        let earned = u128::from(rate.as_bps()) * nanos / 8_000_000_000;
        if earned > 0 {
            let earned = i64::try_from(earned).unwrap_or(i64::MAX);
            self.tokens = self.tokens.saturating_add(earned).min(self.burst());
            self.at = now;
        }
        self.tokens > 0
    }

    /// A block was sent.
    pub fn sent(&mut self, len: usize) {
        if self.rule.rate.is_some() {
            self.tokens = self.tokens.saturating_sub(i64::try_from(len).unwrap_or(i64::MAX));
        }
    }

    /// When a block may be sent again; none where one may be now.
    pub fn due(&self) -> Option<Instant> {
        let rate = self.rule.rate.filter(|_| self.tokens <= 0)?;
        let owed = ByteCount::new(self.tokens.unsigned_abs() + 1);
        // A nanosecond more, as the time is rounded down.
        Some(self.at + rate.time_for(owed) + Duration::from_micros(1))
    }
}

// A program's part holds the largest block.
const _: () = assert!(cost(MAX_BLOCK) < 64 << 20);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_is_kept_whatever_the_sizes_of_blocks() {
        for len in [100, 1_500, 1 << 20] {
            let rule = AllowRule { rate: Some(Rate::from_mbps(8)), ..AllowRule::all(1) };
            let (mut now, mut sent) = (Instant::ZERO, 0);
            let mut state = RuleState::new(rule, now);
            while now < Instant::ZERO + Duration::from_secs(20) {
                while state.may_send(now) {
                    state.sent(len);
                    sent += len;
                }
                let due = state.due().expect("it waits");
                assert!(due > now, "{due} is not after {now}");
                now = due;
            }
            // 1 MB a second, and a block more at the end.
            assert!((20_000_000..20_200_000 + len).contains(&sent), "{sent} of {len}");
        }
    }
}
