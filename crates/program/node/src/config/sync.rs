//! `[sync]`: when the frame synchroniser believes a marker.

use super::section::section;
use skyhaul_ccsds::sync::SyncConfig;

section! {
    /// When the frame synchroniser of every channel believes a marker.
    "[sync]" Sync checked by Sync::check {
        /// Wrong bits allowed in a marker that is searched for, at most 7. One is a false candidate every 65 million bits.
        search_errors: u8 => "1",
        /// Wrong bits allowed in the markers that prove a candidate, and in one with a slip or another polarity, at most
        /// 7. Two are passed by chance once in four million times.
        check_errors: u8 => "2",
        /// Wrong bits allowed in a marker where one is due, at most 12. Six are passed by chance once in 2000 times, at a
        /// place that is already likely.
        lock_errors: u8 => "6",
        /// Markers that must follow a candidate at the block's distance where error control cannot prove it, at most 16.
        check_frames: u8 => "1",
        /// Blocks without a marker after which lock is lost, at most 64. Four are 2 ms at 15 Mbit/s.
        flywheel_frames: u8 => "4",
        /// Bits by which a marker may come early or late and still be the one that is due, at most 8. Two are what bit
        /// synchronisers usually slip.
        slip_bits: u8 => "2",
    }
}

impl Sync {
    /// As the capture takes them.
    pub const fn thresholds(&self) -> SyncConfig {
        let Self { search_errors, check_errors, lock_errors, check_frames, flywheel_frames, slip_bits } =
            *self;
        SyncConfig { search_errors, check_errors, lock_errors, check_frames, flywheel_frames, slip_bits }
    }

    pub(super) fn check(&self) -> Result<(), String> {
        let most = [
            ("search_errors", self.search_errors, 7),
            ("check_errors", self.check_errors, 7),
            ("lock_errors", self.lock_errors, 12),
            ("check_frames", self.check_frames, 16),
            ("flywheel_frames", self.flywheel_frames, 64),
            ("slip_bits", self.slip_bits, 8),
        ];
        match most.iter().find(|(_, given, most)| given > most) {
            Some((key, given, most)) => {
                Err(format!("{key} = {given} accepts random data as markers; write 0 to {most}"))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn left_out_the_thresholds_are_the_synchronisers_own() {
        let sync: Sync = crate::config::section::left_out();
        assert_eq!(sync.thresholds(), SyncConfig::default());
    }

    #[test]
    fn thresholds_are_taken_one_by_one_and_refused_past_chance() {
        let sync: Sync = toml::from_str("lock_errors = 0\nflywheel_frames = 9\n").unwrap();
        let wanted = SyncConfig { lock_errors: 0, flywheel_frames: 9, ..SyncConfig::default() };
        assert_eq!(sync.thresholds(), wanted);
        let refused = toml::from_str::<Sync>("search_errors = 8\n").unwrap_err().to_string();
        assert!(refused.contains("search_errors = 8") && refused.contains("write 0 to 7"), "{refused}");
    }
}
