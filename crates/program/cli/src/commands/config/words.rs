//! Durations of a configuration in words.

use skyhaul_units::Duration;

/// `7 days`, `90 s`, `10 ms`: days, hours and minutes in words, what is shorter in units.
pub fn spoken(time: Duration) -> String {
    let whole = |unit: u64, one: &str, least: u64| {
        let count = time.as_nanos() / (unit * SECOND);
        let fits = time.as_nanos().is_multiple_of(unit * SECOND) && count >= least;
        let plural = if count == 1 { "" } else { "s" };
        fits.then(|| format!("{count} {one}{plural}"))
    };
    if time == Duration::ZERO {
        return "0 s".to_owned();
    }
    whole(86_400, "day", 1)
        .or_else(|| whole(3_600, "hour", 1))
        .or_else(|| whole(60, "minute", 2))
        .unwrap_or_else(|| time.to_string())
}

/// How long something stays `after` an event.
pub fn kept(time: Duration, after: &str) -> String {
    match time {
        Duration::ZERO => format!("freed with {after}"),
        time => format!("kept {} after {after}", spoken(time)),
    }
}

/// How often something goes to disk.
pub fn to_disk(interval: Duration) -> String {
    match interval {
        Duration::ZERO => "to disk at once".to_owned(),
        interval => format!("to disk every {}", spoken(interval)),
    }
}

const SECOND: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_in_words() {
        for (written, said) in [
            ("7 d", "7 days"),
            ("1 d", "1 day"),
            ("36 h", "36 hours"),
            ("30 min", "30 minutes"),
            ("1 min", "60 s"),
            ("90 s", "90 s"),
            ("10 ms", "10 ms"),
            ("0 s", "0 s"),
        ] {
            assert_eq!(spoken(written.parse().unwrap()), said);
        }
        assert_eq!(kept(Duration::ZERO, "custody"), "freed with custody");
        assert_eq!(to_disk(Duration::ZERO), "to disk at once");
    }
}
