//! Times as HTTP writes them (RFC 9110 5.6.7): `Sun, 06 Nov 1994 08:49:37 GMT`.

use skyhaul_units::Utc;

const DAYS: [&str; 7] = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"];
const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// A time, cut to its second.
pub fn http_date(time: Utc) -> String {
    let (year, month, day) = time.date();
    let second = time.in_day().as_secs_f64() as u64;
    // 1 January 1970 was a Thursday.
    let weekday = usize::try_from((time.day() + 3).rem_euclid(7)).unwrap_or(0);
    let month = MONTHS[(month as usize + 11) % 12];
    format!(
        "{}, {day:02} {month} {year:04} {:02}:{:02}:{:02} GMT",
        DAYS[weekday],
        second / 3_600,
        second / 60 % 60,
        second % 60
    )
}

/// A time with milliseconds (RFC 3339).
pub fn milliseconds(time: Utc) -> String {
    let text = time.to_string();
    let cut = text.find('.').map_or(text.len(), |dot| (dot + 4).min(text.len()));
    format!("{}Z", text[..cut].trim_end_matches('Z'))
}

/// The time that a header has; none where it is written in another way. The two obsolete forms are
/// not read: no client of this century sends them.
pub fn from_http_date(text: &str) -> Option<Utc> {
    let (_, rest) = text.trim().split_once(", ")?;
    let mut words = rest.split(' ');
    let (day, month, year) = (words.next()?, words.next()?, words.next()?);
    let (time, zone) = (words.next()?, words.next()?);
    let month = 1 + MONTHS.iter().position(|known| *known == month)?;
    let is_plain = zone == "GMT" && words.next().is_none() && time.len() == 8;
    is_plain.then(|| Utc::from_rfc3339(&format!("{year}-{month:02}-{day}T{time}Z")))?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_standard_is_read_and_written() {
        let text = "Sun, 06 Nov 1994 08:49:37 GMT";
        let time = Utc::from_rfc3339("1994-11-06T08:49:37Z").unwrap();
        assert_eq!(from_http_date(text), Some(time));
        assert_eq!(http_date(time), text);
        let last = Utc::from_rfc3339("2026-12-31T23:59:59.999999Z").unwrap();
        assert_eq!(http_date(last), "Thu, 31 Dec 2026 23:59:59 GMT");
        for text in ["", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994", "x, y"] {
            assert_eq!(from_http_date(text), None, "{text}");
        }
    }
}
