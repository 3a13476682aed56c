//! Another node under this station's key: the centre keeps one of the two, and this one calls ever
//! more seldom.

use skyhaul_units::{Duration, Instant};

/// How long to wait for the other one to go.
#[derive(Debug, Default)]
pub struct Rivals {
    /// None while nobody else is known of.
    wait: Option<Duration>,
}

/// What the alarm is about.
pub const SHARED_KEY: &str = "another node uses this station's key";
/// Before the first call after another node was preferred, ...
const FIRST: Duration = Duration::from_secs(5);
/// ... and at most between two.
const LONGEST: Duration = Duration::from_secs(300);

impl Rivals {
    /// The centre keeps another node; when to call again.
    pub fn replaced(&mut self, now: Instant) -> Instant {
        let wait = self.wait.map_or(FIRST, |wait| (wait + wait).min(LONGEST));
        self.wait = Some(wait);
        now + wait
    }

    /// The session ended for another reason, after it had stood.
    pub const fn gone(&mut self) {
        self.wait = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_station_that_is_not_wanted_calls_ever_more_seldom_until_it_is() {
        let mut rivals = Rivals::default();
        let waits =
            [0; 8].map(|_| rivals.replaced(Instant::ZERO).since(Instant::ZERO).as_secs_f64());
        assert_eq!(waits, [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0]);
        rivals.gone();
        assert_eq!(rivals.replaced(Instant::ZERO).since(Instant::ZERO), FIRST);
    }
}
