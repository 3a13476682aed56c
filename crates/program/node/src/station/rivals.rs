//! Another node uses this station's key: the centre keeps one of the two, and this one connects
//! ever less often.

use skyhaul_units::{Duration, Instant};

/// The pause before the next call.
#[derive(Debug, Default)]
pub struct Rivals {
    /// None while no other node is known.
    wait: Option<Duration>,
}

/// The subject of the alarm.
pub const SHARED_KEY: &str = "this station's key";
/// The first pause after the centre preferred the other node.
const FIRST: Duration = Duration::from_secs(5);
/// The longest pause.
const LONGEST: Duration = Duration::from_secs(300);

impl Rivals {
    /// The centre keeps the other node. Returns when to call again.
    pub fn replaced(&mut self, now: Instant) -> Instant {
        let wait = self.wait.map_or(FIRST, |wait| (wait + wait).min(LONGEST));
        self.wait = Some(wait);
        now + wait
    }

    /// The session ended for another reason: the conflict is over.
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
