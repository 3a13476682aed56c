//! Illinois: loss decides when the window shrinks; delay decides by how much, and how fast it grows
//! (Liu, Başar and Srikant, "TCP-Illinois", 2008; tcp_illinois.c). Without queueing it adds ten
//! segments a round trip and gives up an eighth; with a full queue it adds 0.3 and gives up half.

use crate::segments::Segments;
use crate::window::{Law, Seen, Windowed, full_packet};
use serde::{Deserialize, Serialize};
use skyhaul_units::{ByteCount, Duration};

/// Parameters of `illinois`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct IllinoisConfig {
    /// What the window is counted in. Default 1500 bytes.
    pub segment: ByteCount,
}

impl Default for IllinoisConfig {
    fn default() -> Self {
        Self { segment: full_packet() }
    }
}

/// The law of Illinois.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Illinois {
    /// Segments added a round trip.
    increase: Segments,
    /// 64ths of the window given up at a loss.
    decrease: u64,
    least: Duration,
    most: Duration,
    sum: Duration,
    samples: u64,
    round_ends: ByteCount,
    /// The delay was above the lowest threshold since it was low for [`THETA`] round trips.
    was_above: bool,
    low_rounds: u32,
}

impl Illinois {
    /// A controller by this law.
    pub(crate) const fn controller(config: IllinoisConfig) -> Windowed<Self> {
        Windowed::with(Self::new(), config.segment)
    }

    const fn new() -> Self {
        Self {
            increase: INCREASE_MOST,
            decrease: DECREASE_MOST,
            least: Duration::MAX,
            most: Duration::ZERO,
            sum: Duration::ZERO,
            samples: 0,
            round_ends: ByteCount::ZERO,
            was_above: false,
            low_rounds: 0,
        }
    }

    /// A round trip is over: takes its delays.
    fn judge(&mut self, window: Segments) {
        if window < WINDOW_LEAST {
            (self.increase, self.decrease) = (Segments::ONE, DECREASE_MOST);
        } else if self.samples > 0 {
            let most = self.most - self.least;
            let average = self.sum / self.samples - self.least;
            self.increase = self.increase_at(average, most);
            self.decrease = decrease_at(average, most);
        }
        (self.sum, self.samples) = (Duration::ZERO, 0);
    }

    fn increase_at(&mut self, average: Duration, most: Duration) -> Segments {
        let low = most / 100;
        if average <= low {
            if !self.was_above {
                return INCREASE_MOST;
            }
            self.low_rounds += 1;
            if self.low_rounds < THETA {
                return self.increase;
            }
            (self.was_above, self.low_rounds) = (false, 0);
            return INCREASE_MOST;
        }
        self.was_above = true;
        let (most, above) = ((most - low).as_nanos(), average - low);
        // (most - least increase) ÷ least increase = (10 - 0.3) ÷ 0.3.
        let slowed = above.scaled(97, 3).as_nanos();
        INCREASE_MOST.scaled(most, most.saturating_add(slowed).max(1))
    }
}

impl Law for Illinois {
    fn observe(&mut self, seen: &Seen<'_>) {
        if let Some(rtt) = seen.ack.rtt.map(|rtt| rtt.min(LONGEST)) {
            self.least = self.least.min(rtt);
            self.most = self.most.max(rtt);
            self.sum += rtt;
            self.samples += 1;
        }
        if seen.ack.sample.prior >= self.round_ends {
            self.round_ends = seen.ack.sample.total;
            self.judge(seen.window);
        }
    }

    fn avoidance(&mut self, seen: &Seen<'_>) -> Segments {
        seen.share(self.increase)
    }

    fn decreased(&mut self, window: Segments) -> Segments {
        window.minus(window.scaled(self.decrease, 64))
    }

    fn timed_out(&mut self) {
        (self.increase, self.decrease) = (Segments::ONE, DECREASE_MOST);
        (self.was_above, self.low_rounds) = (false, 0);
    }
}

/// 64ths given up: an eighth up to a tenth of the largest delay, half from eight tenths on.
fn decrease_at(average: Duration, most: Duration) -> u64 {
    let (low, high) = (most / 10, most.scaled(8, 10));
    if average <= low {
        return DECREASE_LEAST;
    }
    if average >= high || high <= low {
        return DECREASE_MOST;
    }
    let (way, done) = ((high - low).as_nanos(), (average - low).as_nanos());
    DECREASE_LEAST + done.saturating_mul(DECREASE_MOST - DECREASE_LEAST) / way
}

const INCREASE_MOST: Segments = Segments::whole(10);
const DECREASE_LEAST: u64 = 8;
const DECREASE_MOST: u64 = 32;

/// Below 15 segments it is Reno.
const WINDOW_LEAST: Segments = Segments::whole(15);

/// Round trips with a low delay before it counts as low again.
const THETA: u32 = 5;

/// Bound of a round trip in the arithmetic: longer ones do not occur.
const LONGEST: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::window::drive::{Drive, close};

    #[test]
    fn without_queueing_it_adds_ten_segments_and_gives_up_an_eighth() {
        let mut drive = Drive::avoiding(Illinois::new(), 200);
        drive.round(Duration::from_millis(100));
        assert!(close(drive.segments(), 210.0, 0.003), "{}", drive.segments());
        drive.lose();
        assert!(close(drive.segments(), 210.0 * 0.875, 0.003), "{}", drive.segments());
    }

    #[test]
    fn increase_and_decrease_follow_the_delay() {
        let most = Duration::from_millis(100);
        // d1 = 1 ms, d2 = 10 ms, d3 = 80 ms; at 50.5 ms: 10 x 99 / (99 + 49.5 x 32.33) = 0.582.
        let cases = [
            (1_000, 10.0, 8),
            (10_000, 2.538, 8),
            (45_000, 0.6506, 20),
            (80_000, 0.373, 32),
            (100_000, 0.3, 32),
        ];
        for (micros, increase, decrease) in cases {
            let average = Duration::from_micros(micros);
            let value = Illinois::new().increase_at(average, most).steps() as f64
                / Segments::ONE.steps() as f64;
            assert!(close(value, increase, 0.005), "{average}: +{value}");
            assert_eq!(decrease_at(average, most), decrease, "{average}");
        }
    }

    #[test]
    fn after_a_queue_five_good_round_trips_bring_the_full_increase_back() {
        let mut law = Illinois::new();
        let most = Duration::from_millis(100);
        law.increase = law.increase_at(Duration::from_millis(50), most);
        let slow = law.increase;
        for _ in 0..4 {
            assert_eq!(law.increase_at(Duration::ZERO, most), slow);
        }
        assert_eq!(law.increase_at(Duration::ZERO, most), INCREASE_MOST);
    }

    #[test]
    fn a_small_window_behaves_as_reno_s() {
        let mut drive = Drive::avoiding(Illinois::new(), 10);
        let rtt = Duration::from_millis(100);
        drive.round(rtt);
        drive.windowed.reset_to(12);
        drive.round(rtt);
        assert!(close(drive.segments(), 13.0, 0.01), "{}", drive.segments());
        drive.lose();
        assert!(close(drive.segments(), 6.5, 0.01), "{}", drive.segments());
    }
}
