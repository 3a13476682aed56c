//! Which packets are wanted.

use skyhaul_ccsds::id::Apid;
use skyhaul_ccsds::packet::Header;
use skyhaul_units::Utc;
use std::str::FromStr;

/// Which packets are wanted: those that fit everything that is given.
pub struct Selection {
    /// Applications.
    pub apids: Option<Apids>,
    /// The earliest time.
    pub from: Option<Utc>,
    /// The time that all packets come before.
    pub to: Option<Utc>,
}

/// Application process ids, by number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Apids(Box<[bool]>);

impl Selection {
    /// Whether packets are wanted by their times.
    pub fn needs_times(&self) -> bool {
        self.from.is_some() || self.to.is_some()
    }

    /// Whether everything is wanted.
    pub fn is_all(&self) -> bool {
        self.apids.is_none() && !self.needs_times()
    }

    /// Whether a packet of this header and time is wanted. One without a time is not, where times are asked for.
    pub fn covers(&self, header: &Header, time: Option<Utc>) -> bool {
        let apid = match (&self.apids, header) {
            (None, _) => true,
            (Some(apids), Header::Space(header)) => apids.0[usize::from(header.apid.value())],
            (Some(_), Header::Encapsulation(_)) => false,
        };
        let from = self.from.is_none_or(|from| time.is_some_and(|time| time >= from));
        let to = self.to.is_none_or(|to| time.is_some_and(|time| time < to));
        apid && from && to
    }
}

impl FromStr for Apids {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!("`{text}` lists no applications: write numbers of 0 to {}, as in 11,800-825", Apid::MAX)
        };
        let number = |text: &str| text.trim().parse().ok().and_then(Apid::new).ok_or_else(wrong);
        let mut apids = vec![false; usize::from(Apid::MAX.value()) + 1];
        for range in text.split(',') {
            let (first, last) = range.split_once('-').unwrap_or((range, range));
            let (first, last) = (number(first)?, number(last)?);
            if last < first {
                return Err(wrong());
            }
            apids[usize::from(first.value())..=usize::from(last.value())].fill(true);
        }
        Ok(Self(apids.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn applications_are_listed_by_number_and_range() {
        let apids: Apids = "11, 800-825,2047".parse().unwrap();
        let listed: Vec<usize> = (0..2048).filter(|apid| apids.0[*apid]).collect();
        assert_eq!((listed.len(), listed[0], listed[1], listed[27]), (28, 11, 800, 2047));
        for wrong in ["", "1,", "a", "2048", "-1", "9-3", "1-2-3"] {
            assert!(wrong.parse::<Apids>().unwrap_err().contains("0 to 2047"), "{wrong}");
        }
    }
}
