//! `[refill]`: what a station does when its centre asks for frames that did not come.

use super::name::Name;
use super::section::section;
use super::sync::Sync;
use skyhaul_ccsds::sync::SyncConfig;

section! {
    /// Frames that the centre misses: they are looked for in the spool and in the recordings (`record_raw` of a channel), decoded
    /// once more with these thresholds, which allow more than those of `[sync]`: where the frame count is known, a marker that is
    /// believed wrongly does no harm.
    "[refill]" Refill checked by Refill::check {
        /// Whether frames are looked for; otherwise the centre is told that they are not.
        enabled: bool => "true",
        /// The class that they are sent under; left out: the first that has no parts.
        class: Name => optional,
        /// How important they are among the contacts of that class, 0 (the most) to 7: live data goes first.
        priority: u8 => "7",
        /// Wrong bits allowed in a marker that is searched for, at most 7.
        search_errors: u8 => "3",
        /// Wrong bits allowed in the markers that prove a candidate, at most 7.
        check_errors: u8 => "5",
        /// Wrong bits allowed in a marker where one is due, at most 12.
        lock_errors: u8 => "12",
        /// Markers that must follow a candidate where error control cannot prove it, at most 16.
        check_frames: u8 => "1",
        /// Blocks without a marker after which lock is lost, at most 64.
        flywheel_frames: u8 => "32",
        /// Bits by which a marker may come early or late, at most 8.
        slip_bits: u8 => "6",
    }
}

impl Refill {
    /// As the capture takes them.
    pub const fn thresholds(&self) -> SyncConfig {
        self.sync().thresholds()
    }

    const fn sync(&self) -> Sync {
        let Self {
            search_errors, check_errors, lock_errors, check_frames, flywheel_frames, slip_bits, ..
        } = *self;
        Sync { search_errors, check_errors, lock_errors, check_frames, flywheel_frames, slip_bits }
    }

    fn check(&self) -> Result<(), String> {
        if self.priority > 7 {
            return Err(format!("priority = {} is past the least important; write 0 to 7", self.priority));
        }
        self.sync().check()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::section::left_out;

    #[test]
    fn left_out_it_is_on_and_allows_more_than_live_data() {
        let (refill, live) = (left_out::<Refill>(), left_out::<Sync>().thresholds());
        let thresholds = refill.thresholds();
        assert!(refill.enabled && refill.priority == 7);
        assert!(thresholds.search_errors > live.search_errors && thresholds.slip_bits > live.slip_bits);
        assert!(
            thresholds.lock_errors > live.lock_errors && thresholds.flywheel_frames > live.flywheel_frames
        );
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for text in ["priority = 8\n", "slip_bits = 9\n", "clas = \"x\"\n"] {
            assert!(toml::from_str::<Refill>(text).is_err(), "{text}");
        }
    }
}
