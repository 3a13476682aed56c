//! Spans of time and shares as people read them.

/// A span in the two largest units that it has.
pub fn span(seconds: f64) -> String {
    if seconds <= -0.005 {
        return format!("-{}", span(-seconds));
    }
    let seconds = seconds.max(0.0);
    if seconds < 9.995 {
        return format!("{seconds:.2} s");
    }
    if seconds < 59.95 {
        return format!("{seconds:.1} s");
    }
    let whole = seconds.round() as u64;
    let (minutes, hours) = (whole / 60, whole / 3_600);
    let (large, small) = match (hours, minutes) {
        (0, minutes) => ((minutes, "min"), (whole % 60, "s")),
        (1..48, _) => ((hours, "h"), (minutes % 60, "min")),
        _ => ((hours / 24, "d"), (hours % 24, "h")),
    };
    match small.0 {
        0 => format!("{} {}", large.0, large.1),
        rest => format!("{} {} {rest} {}", large.0, large.1, small.1),
    }
}

/// The same, or a dash.
pub fn maybe(seconds: Option<f64>) -> String {
    seconds.map_or_else(|| "-".to_owned(), span)
}

/// A share in per cent. What is not all is never shown as all.
pub fn share(share: Option<f64>) -> String {
    match share {
        None => "-".to_owned(),
        Some(1.0) => "100 %".to_owned(),
        Some(share) => format!("{:.2} %", (share * 100.0).min(99.99)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_shares_are_short() {
        for (seconds, wanted) in [
            (0.0, "0.00 s"),
            (0.354, "0.35 s"),
            (59.9, "59.9 s"),
            (59.97, "1 min"),
            (245.4, "4 min 5 s"),
            (3_599.7, "1 h"),
            (11_520.0, "3 h 12 min"),
            (183_600.0, "2 d 3 h"),
            (-2.0, "-2.00 s"),
            (-0.004, "0.00 s"),
        ] {
            assert_eq!(span(seconds), wanted);
        }
        assert_eq!(
            [share(Some(1.0)), share(Some(0.999_999)), share(None)],
            ["100 %", "99.99 %", "-"]
        );
    }
}
