//! Which frames of video depend on which: found when they are read, and looked up when they are
//! sent.

use skyhaul::BlockId;
use skyhaul_rtp::RtpFrameKind;
use skyhaul_streams::FrameRole;
use skyhaul_units::{Duration, Instant};

/// Finds the role of each frame, in their order.
#[derive(Debug, Default)]
pub(super) struct FrameRoles {
    /// The last frame that the next ones need, while it is known.
    needed: Option<u64>,
    /// When the last key frame came.
    key: Option<Instant>,
}

/// Frames this long behind the last key frame depend on none: a stream may have no further one
/// (gradual refresh of the picture), and one frame that was lost would else end it.
const KEY_FRAME_WAIT: Duration = Duration::from_secs(10);

impl FrameRoles {
    /// The next frame.
    pub fn next(&mut self, now: Instant, number: u64, kind: RtpFrameKind) -> FrameRole {
        let is_key = kind == RtpFrameKind::Alone;
        if is_key {
            self.key = Some(now);
        }
        if self.key.is_none_or(|key| now.since(key) > KEY_FRAME_WAIT) {
            self.needed = None;
        }
        let needs = self.needed.filter(|_| !is_key && kind != RtpFrameKind::Unknown);
        let is_needed =
            self.key.is_some() && matches!(kind, RtpFrameKind::Alone | RtpFrameKind::Dependent);
        if is_needed {
            self.needed = Some(number);
        }
        FrameRole { number, needs, is_key, is_needed }
    }
}

/// The last frame that others need, as the session knows it.
#[derive(Debug, Default)]
pub(super) struct SentFrames(Option<(u64, Option<BlockId>)>);

impl SentFrames {
    /// The block that a frame depends on, if it does; `None` where that frame was not sent, and
    /// this one is worth nothing.
    pub fn needed_by(&self, role: Option<FrameRole>) -> Option<Option<BlockId>> {
        let Some(needs) = role.and_then(|role| role.needs) else { return Some(None) };
        self.0.filter(|(number, _)| *number == needs).map(|(_, name)| name)
    }

    /// A frame that others need was handed over. Its `name` is `Some(None)` where the session did
    /// not take it, and `None` where it is not known yet.
    pub fn add(&mut self, number: u64, name: Option<Option<BlockId>>) {
        self.0 = match name {
            Some(None) => None,
            Some(Some(name)) => Some((number, Some(name))),
            None => Some((number, None)),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul::{FlowId, Seq};

    fn roles(frames: &[(u64, RtpFrameKind)]) -> Vec<(Option<u64>, bool)> {
        let mut roles = FrameRoles::default();
        let mut next = |number, (millis, kind): &(u64, RtpFrameKind)| {
            let role = roles.next(Instant::ZERO + Duration::from_millis(*millis), number, *kind);
            assert_eq!((role.number, role.is_key), (number, *kind == RtpFrameKind::Alone));
            (role.needs, role.is_needed)
        };
        (0..).zip(frames).map(|(number, frame)| next(number, frame)).collect()
    }

    #[test]
    fn a_frame_needs_the_last_one_that_is_not_disposable_and_a_key_frame_none() {
        use RtpFrameKind::{Alone, Dependent, Disposable, Unknown};
        let kinds =
            [Dependent, Alone, Dependent, Disposable, Disposable, Dependent, Alone, Unknown];
        let frames: Vec<(u64, RtpFrameKind)> = (0..).step_by(40).zip(kinds).collect();
        assert_eq!(
            roles(&frames),
            [
                (None, false),
                (None, true),
                (Some(1), true),
                (Some(2), false),
                (Some(2), false),
                (Some(2), true),
                (None, true),
                (None, false),
            ]
        );
    }

    #[test]
    fn without_a_further_key_frame_frames_depend_on_none_after_a_while() {
        use RtpFrameKind::{Alone, Dependent};
        let frames = [(0, Alone), (9_990, Dependent), (10_010, Dependent), (10_020, Dependent)];
        let needs: Vec<Option<u64>> = roles(&frames).into_iter().map(|(needs, _)| needs).collect();
        assert_eq!(needs, [None, Some(0), None, None]);
    }

    #[test]
    fn a_frame_whose_needed_frame_was_not_sent_is_not_sent() {
        let name = BlockId { flow: FlowId(1), seq: Seq(5) };
        let needing = |needs| Some(FrameRole { number: 9, needs, ..FrameRole::default() });
        let mut sent = SentFrames::default();
        assert_eq!(sent.needed_by(None), Some(None));
        assert_eq!(sent.needed_by(needing(None)), Some(None));
        assert_eq!(sent.needed_by(needing(Some(7))), None);
        sent.add(7, Some(Some(name)));
        assert_eq!(sent.needed_by(needing(Some(7))), Some(Some(name)));
        assert_eq!(sent.needed_by(needing(Some(8))), None);
        sent.add(8, None);
        assert_eq!(sent.needed_by(needing(Some(8))), Some(None), "its name is not known yet");
        sent.add(9, Some(None));
        assert_eq!(sent.needed_by(needing(Some(9))), None);
    }
}
