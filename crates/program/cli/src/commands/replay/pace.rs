//! When each piece of a replay is due.

use skyhaul_units::{ByteCount, Duration, Rate, Utc};
use std::str::FromStr;

/// How fast a replay goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speed {
    /// As received, this many thousandths of the original speed.
    Times(u64),
    /// At this rate.
    Rate(Rate),
    /// As fast as the receiver takes it.
    Max,
}

/// Computes when each piece is due.
#[derive(Debug)]
pub struct ReplayClock {
    speed: Speed,
    skip_silence: Option<Duration>,
    last: Option<Utc>,
    /// From the beginning of the recording to the last piece, as it is played.
    elapsed: Duration,
    bytes: ByteCount,
}

/// Why a speed was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a speed; write original, x2, x0.5, a rate such as 15mbit, or max")]
pub struct SpeedError(String);

/// A file is played in steps of this length, as a receiver gives out its bits.
const STEP: Duration = Duration::from_millis(5);
/// The least and most of a file that is played at once.
const STEPS: (u64, u64) = (64, 256 << 10);

impl Speed {
    /// As received.
    pub const ORIGINAL: Self = Self::Times(1_000);
}

impl ReplayClock {
    /// Begins.
    pub const fn new(speed: Speed, skip_silence: Option<Duration>) -> Self {
        Self { speed, skip_silence, last: None, elapsed: Duration::ZERO, bytes: ByteCount::ZERO }
    }

    /// How many bytes of a file are one piece.
    pub fn step(&self) -> usize {
        let (least, most) = STEPS;
        let step = match self.speed {
            Speed::Rate(rate) => (rate * STEP).as_u64().clamp(least, most),
            Speed::Times(_) | Speed::Max => most,
        };
        ByteCount::new(step).as_usize()
    }

    /// When the next piece is due, from the beginning of the replay: the time of its last byte.
    pub fn due(&mut self, received: Option<Utc>, length: ByteCount) -> Duration {
        if let Some(received) = received {
            let since = self.last.map_or(Duration::ZERO, |last| received.since(last));
            self.elapsed += self.skip_silence.map_or(since, |most| since.min(most));
            self.last = Some(received);
        }
        self.bytes += length;
        match self.speed {
            Speed::Times(thousandths) => self.elapsed.scaled(1_000, thousandths.max(1)),
            Speed::Rate(rate) => rate.time_for(self.bytes),
            Speed::Max => Duration::ZERO,
        }
    }
}

impl FromStr for Speed {
    type Err = SpeedError;
    fn from_str(text: &str) -> Result<Self, SpeedError> {
        let refuse = || SpeedError(text.to_owned());
        match text {
            "original" => return Ok(Self::ORIGINAL),
            "max" => return Ok(Self::Max),
            _ => {}
        }
        if let Some(times) = text.strip_prefix(['x', '×']) {
            return thousandths(times).map(Self::Times).ok_or_else(refuse);
        }
        text.parse().ok().filter(|rate| *rate != Rate::ZERO).map(Self::Rate).ok_or_else(refuse)
    }
}

/// A decimal number from 0.001 to 1,000,000.
fn thousandths(text: &str) -> Option<u64> {
    let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole)
        || !digits(fraction)
        || fraction.len() > 3
        || whole.is_empty()
        || whole.len() > 7
    {
        return None;
    }
    let fraction: u64 = format!("{fraction:0<3}").parse().ok()?;
    let value = whole.parse::<u64>().ok()? * 1_000 + fraction;
    (1..=1_000_000_000).contains(&value).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn speeds_are_parsed_and_anything_else_is_refused() {
        for (text, speed) in [
            ("original", Speed::ORIGINAL),
            ("x2", Speed::Times(2_000)),
            ("×0.25", Speed::Times(250)),
            ("15mbit", Speed::Rate(Rate::from_mbps(15))),
            ("max", Speed::Max),
        ] {
            assert_eq!(text.parse(), Ok(speed), "{text}");
        }
        for text in
            ["", "x", "x0", "x-1", "x1.2345", "15", "0 bit/s", "twice", "x99999999999999999999"]
        {
            assert!(text.parse::<Speed>().is_err(), "{text}");
        }
    }

    #[test]
    fn pieces_are_due_by_their_reception_times_scaled_by_the_speed_and_long_silence_is_shortened() {
        let at = |millis: i64| Some(Utc::from_micros(millis * 1_000));
        let due = |speed, skip| {
            let mut pace = ReplayClock::new(speed, skip);
            [50, 150, 10_150, 10_100]
                .map(|millis| pace.due(at(millis), ByteCount::new(1_000)).as_millis())
        };
        assert_eq!(
            due(Speed::ORIGINAL, None),
            [0, 100, 10_100, 10_100],
            "a clock set back holds nothing up"
        );
        assert_eq!(due(Speed::Times(2_000), None), [0, 50, 5_050, 5_050]);
        assert_eq!(due(Speed::ORIGINAL, Some(Duration::from_secs(1))), [0, 100, 1_100, 1_100]);
        assert_eq!(due(Speed::Rate(Rate::from_bps(80_000)), None), [100, 200, 300, 400]);
        assert_eq!(due(Speed::Max, None), [0; 4]);
    }
}
