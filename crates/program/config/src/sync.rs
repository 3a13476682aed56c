//! `[sync]`: when the frame synchroniser believes a marker.

use crate::section::section;
use skyhaul_ccsds::sync::SyncConfig;

section! {
    /// The thresholds at which the frame synchroniser of every channel accepts a marker.
    "[sync]" Sync checked by Sync::check {
        /// Bit errors allowed in a marker during search, at most 7. With one, a false candidate
        /// occurs every 65 million bits.
        search_errors: u8 => "1",
        /// Bit errors allowed in the markers that confirm a candidate, and in a marker with a bit
        /// slip or inverted polarity, at most 7. With two, random bits pass once in four million
        /// times.
        check_errors: u8 => "2",
        /// Bit errors allowed in a marker at its expected position, at most 12. With six, random
        /// bits pass once in 2000 times, at a position that is already likely.
        lock_errors: u8 => "6",
        /// Markers that must follow a candidate at the block's distance if error control cannot
        /// confirm it, at most 16.
        check_frames: u8 => "1",
        /// Blocks without a marker after which lock is lost, at most 64. Four are 2 ms at 15
        /// Mbit/s.
        flywheel_frames: u8 => "4",
        /// Bits by which a marker may be early or late and still count as the expected one, at most
        /// 8. Bit synchronisers usually slip by up to two.
        slip_bits: u8 => "2",
    }
}

impl Sync {
    /// As the capture takes them.
    pub const fn thresholds(&self) -> SyncConfig {
        let Self {
            search_errors,
            check_errors,
            lock_errors,
            check_frames,
            flywheel_frames,
            slip_bits,
        } = *self;
        SyncConfig {
            search_errors,
            check_errors,
            lock_errors,
            check_frames,
            flywheel_frames,
            slip_bits,
        }
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
        let sync: Sync = crate::section::left_out();
        assert_eq!(sync.thresholds(), SyncConfig::default());
    }

    #[test]
    fn thresholds_are_taken_one_by_one_and_refused_past_chance() {
        let sync: Sync = toml::from_str("lock_errors = 0\nflywheel_frames = 9\n").unwrap();
        let wanted = SyncConfig { lock_errors: 0, flywheel_frames: 9, ..SyncConfig::default() };
        assert_eq!(sync.thresholds(), wanted);
        let refused = toml::from_str::<Sync>("search_errors = 8\n").unwrap_err().to_string();
        assert!(
            refused.contains("search_errors = 8") && refused.contains("write 0 to 7"),
            "{refused}"
        );
    }
}
