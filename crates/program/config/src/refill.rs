//! `[refill]`: what a station does when its centre asks for frames that did not come.

use crate::name::Name;
use crate::section::section;
use crate::sync::Sync;
use skyhaul_ccsds::sync::SyncConfig;

section! {
    /// The retrieval of frames that the centre misses, from the spool and from the recordings
    /// (`record_raw` of a channel). The station decodes a recording up to three times: first it
    /// trusts no marker because of its position, then it uses these thresholds, then the defaults
    /// of `[sync]`. It combines the results of all three, and accepts only frames that a code
    /// proves.
    "[refill]" Refill applies at_once(class, priority) checked by Refill::check {
        /// Whether the station retrieves missing frames. If not, it reports that to the centre.
        enabled: bool => "true",
        /// The class of the retrieved frames. Default: the first leaf class.
        class: Name => optional,
        /// Their priority among the contacts of that class, 0 (the most important) to 7: live data
        /// goes first.
        priority: u8 => "7",
        /// Bit errors allowed in a marker during search, at most 7. With five, a false candidate
        /// occurs every 9,000 bits, and each costs a decoding.
        search_errors: u8 => "5",
        /// Bit errors allowed in the markers that confirm a candidate, at most 7.
        check_errors: u8 => "3",
        /// Bit errors allowed in a marker at its expected position, at most 12.
        lock_errors: u8 => "6",
        /// Markers that must follow a candidate if error control cannot confirm it, at most 16.
        check_frames: u8 => "1",
        /// Blocks without a marker after which lock is lost, at most 64.
        flywheel_frames: u8 => "32",
        /// Bits by which a marker may be early or late, at most 8.
        slip_bits: u8 => "8",
    }
}

impl Refill {
    /// The thresholds of one decoding of a recording after the other.
    pub fn attempts(&self) -> [SyncConfig; 3] {
        let own = self.sync().thresholds();
        // A marker that is believed for its place can lead away from the frames: here each is
        // searched for, and proved.
        let surely = SyncConfig {
            check_errors: 0,
            lock_errors: 0,
            check_frames: CHECKED,
            slip_bits: 0,
            ..own
        };
        [surely, own, SyncConfig::default()]
    }

    const fn sync(&self) -> Sync {
        let Self {
            search_errors,
            check_errors,
            lock_errors,
            check_frames,
            flywheel_frames,
            slip_bits,
            ..
        } = *self;
        Sync { search_errors, check_errors, lock_errors, check_frames, flywheel_frames, slip_bits }
    }

    fn check(&self) -> Result<(), String> {
        if self.priority > 7 {
            return Err(format!("priority = {} is above the limit; write 0 to 7", self.priority));
        }
        self.sync().check()
    }
}

/// So many markers without a wrong bit follow noise by no chance.
const CHECKED: u8 = 3;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::section::left_out;

    #[test]
    fn left_out_it_is_on_and_searches_for_more_than_live_data_does() {
        let (refill, live) = (left_out::<Refill>(), left_out::<Sync>().thresholds());
        assert!(refill.enabled && refill.priority == 7);
        let [surely, own, usual] = refill.attempts();
        assert_eq!(usual, live);
        assert!(
            own.search_errors > live.search_errors && own.flywheel_frames > live.flywheel_frames
        );
        assert_eq!((surely.search_errors, surely.lock_errors), (own.search_errors, 0));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in ["priority = 8\n", "slip_bits = 9\n", "clas = \"x\"\n"] {
            assert!(toml::from_str::<Refill>(text).is_err(), "{text}");
        }
    }
}
