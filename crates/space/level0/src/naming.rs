//! Names of product files, 40 characters in the EDOS manner.
//!
//! ```text
//! P 159 0011 AAAAAAAAAAAAAT 21099051420 5 00 .PDS
//! │ │   │    │              │           │ │  └ suffix
//! │ │   │    │              │           │ └ file number: 00 construction record, 01 on packets
//! │ │   │    │              │           └ uniqueness digit
//! │ │   │    │              └ creation time yyDDDhhmmss, UTC
//! │ │   │    └ further SCID+APID pairs, or a product text that ends in T (time based) or
//! │ │   │      S (session based)
//! │ │   └ first APID
//! │ └ spacecraft id, decimal
//! └ P production, E expedited data set; X, Y their delivery records
//! ```

use skyhaul_ccsds::id::Scid;
use skyhaul_ccsds::mission::{Mission, MissionSet};
use skyhaul_units::{Duration, Utc};

/// The name of a product's file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProductName {
    /// Kind of product set and of file.
    pub series: Series,
    /// Spacecraft id as the name has it: three decimal digits.
    scid: u16,
    /// First APID and product text.
    pub label: Label,
    created: Utc,
    uniqueness: Digit,
    number: FileNumber,
}

/// The meaning of the first letter and the suffix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    /// Production data set.
    Pds,
    /// Expedited data set.
    Eds,
    /// Delivery record of a production data set.
    PdsDelivery,
    /// Delivery record of an expedited data set.
    EdsDelivery,
}

/// The first APID and the 14 characters after it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Label {
    apid: u16,
    text: [u8; 14],
}

/// A decimal digit that distinguishes products of the same second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Digit(u8);

/// The number of a file within its product set, 0 to 99.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileNumber(u8);

/// Why a text is not the name or label of a product.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a product {kind}: {reason}; it is like {example}")]
pub struct ProductNameError {
    text: String,
    kind: &'static str,
    reason: &'static str,
    example: &'static str,
}

/// The mission by the name of a packet file: of a product, or of packets that `skyhaul decode`
/// wrote.
pub fn mission_of_file<'a>(name: &str, known: &'a MissionSet) -> Option<&'a Mission> {
    let product = ProductName::parse(name).ok().and_then(|name| Scid::new(name.scid()));
    let decoded = || {
        let (_, after) = name.rsplit_once("-scid")?;
        let (scid, _) = after.split_once("-vcid")?;
        Scid::new(scid.parse().ok()?)
    };
    let scid = product.or_else(decoded)?;
    known.iter().find(|mission| mission.scids().contains(&scid))
}

impl ProductName {
    /// The name of the construction record (file 00) of a product.
    ///
    /// `scid` above 999 is named by its low 8 bits, as the construction record does. `created` is
    /// cut to the second and must lie in 1970 to 2069, because the name has two digits for the
    /// year; a time outside becomes the nearer end.
    pub fn construction_record(scid: u16, label: Label, created: Utc, uniqueness: Digit) -> Self {
        let scid = if scid > 999 { scid & 0xFF } else { scid };
        let last = Utc::from_day(day_of(2070, 1), Duration::ZERO) - Duration::from_secs(1);
        let created = created.clamp(Utc::default(), last);
        let created =
            Utc::from_day(created.day(), Duration::from_secs(created.in_day().as_millis() / 1_000));
        Self {
            series: Series::Pds,
            scid,
            label,
            created,
            uniqueness,
            number: FileNumber::CONSTRUCTION_RECORD,
        }
    }

    /// The name of a file of the same product set, of another series.
    pub const fn in_series(self, series: Series) -> Self {
        Self { series, ..self }
    }
    /// The name of another file of the same product set.
    pub const fn file(self, number: FileNumber) -> Self {
        Self { number, ..self }
    }
    /// The spacecraft id in the name.
    pub const fn scid(&self) -> u16 {
        self.scid
    }
    /// Creation time, whole seconds.
    pub const fn created(&self) -> Utc {
        self.created
    }
    /// The digit that distinguishes products of the same second.
    pub const fn uniqueness(&self) -> Digit {
        self.uniqueness
    }
    /// The file's number within the product set.
    pub const fn number(&self) -> FileNumber {
        self.number
    }
    /// The name without its suffix: 36 characters.
    pub fn stem(&self) -> String {
        let mut name = self.to_string();
        name.truncate(STEM);
        name
    }

    /// Reads a name. Never panics; a name that is returned prints as the text it was read from.
    pub fn parse(text: &str) -> Result<Self, ProductNameError> {
        let refuse = |reason| ProductNameError {
            text: shortened(text),
            kind: "file name",
            reason,
            example: EXAMPLE_NAME,
        };
        if text.len() != LENGTH || !text.is_ascii() {
            return Err(refuse("it is not 40 ASCII characters long"));
        }
        let series = Series::ALL
            .into_iter()
            .find(|series| text.starts_with(series.letter()) && text.ends_with(series.suffix()))
            .ok_or_else(|| {
                refuse("first letter and suffix are none of P .PDS, E .EDS, X .PDR, Y .EDR")
            })?;
        let scid =
            digits(&text[1..4]).ok_or_else(|| refuse("the spacecraft id is not three digits"))?;
        let label = Label::parse(&text[4..22])?;
        let created =
            stamp(&text[22..33]).ok_or_else(|| refuse("the creation time is not yyDDDhhmmss"))?;
        let uniqueness =
            digits(&text[33..34]).ok_or_else(|| refuse("the uniqueness digit is not a digit"))?;
        let number =
            digits(&text[34..36]).ok_or_else(|| refuse("the file number is not two digits"))?;
        Ok(Self {
            series,
            scid,
            label,
            created,
            uniqueness: Digit(uniqueness as u8),
            number: FileNumber(number as u8),
        })
    }
}

impl Series {
    const ALL: [Self; 4] = [Self::Pds, Self::Eds, Self::PdsDelivery, Self::EdsDelivery];

    const fn letter(self) -> char {
        match self {
            Self::Pds => 'P',
            Self::Eds => 'E',
            Self::PdsDelivery => 'X',
            Self::EdsDelivery => 'Y',
        }
    }
    const fn suffix(self) -> &'static str {
        match self {
            Self::Pds => ".PDS",
            Self::Eds => ".EDS",
            Self::PdsDelivery => ".PDR",
            Self::EdsDelivery => ".EDR",
        }
    }
}

impl Label {
    /// Reads the 18 characters of a label, such as `0826VIIRSSCIENCEAS`: four digits and 14 of A-Z,
    /// 0-9, `_`, `-`.
    pub fn parse(text: &str) -> Result<Self, ProductNameError> {
        let refuse = |reason| ProductNameError {
            text: shortened(text),
            kind: "label",
            reason,
            example: EXAMPLE_LABEL,
        };
        if text.len() != LABEL || !text.is_ascii() {
            return Err(refuse("it is not 18 ASCII characters long"));
        }
        let apid = digits(&text[..4]).filter(|apid| *apid <= 2047);
        let apid = apid
            .ok_or_else(|| refuse("it does not start with an APID of four digits, at most 2047"))?;
        let rest = &text.as_bytes()[4..];
        if !rest
            .iter()
            .all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, b'_' | b'-'))
        {
            return Err(refuse("it has characters other than A-Z, 0-9, _ and -"));
        }
        Ok(Self { apid, text: rest.try_into().expect("18 characters less 4 are 14") })
    }

    /// The label of a session-based product that has no text of its own: the APID, filled with `A`,
    /// then `S`.
    pub const fn session(apid: u16) -> Self {
        Self { apid: apid & 0x7FF, text: *b"AAAAAAAAAAAAAS" }
    }

    /// The label of a time-based product: its last character is `T`.
    #[must_use]
    pub const fn time_based(self) -> Self {
        let mut text = self.text;
        text[13] = b'T';
        Self { text, ..self }
    }

    /// The first APID.
    pub const fn apid(&self) -> u16 {
        self.apid
    }
}

impl Digit {
    /// The last.
    pub const NINE: Self = Self(9);

    /// `None` above 9.
    pub const fn new(digit: u8) -> Option<Self> {
        if digit > 9 { None } else { Some(Self(digit)) }
    }
    /// 0 to 9.
    pub const fn as_u8(self) -> u8 {
        self.0
    }
    /// The digit `steps` later; `None` past 9.
    pub fn after(self, steps: usize) -> Option<Self> {
        Self::new(self.0.saturating_add(u8::try_from(steps).ok()?))
    }
}

impl FileNumber {
    /// 00.
    pub const CONSTRUCTION_RECORD: Self = Self(0);
    /// 01.
    pub const PACKETS: Self = Self(1);

    /// 0 to 99.
    pub const fn as_u8(self) -> u8 {
        self.0
    }
}

impl core::fmt::Display for Label {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let text = core::str::from_utf8(&self.text).expect("made from ASCII only");
        write!(f, "{:04}{text}", self.apid)
    }
}

impl core::fmt::Display for ProductName {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let seconds = self.created.in_day().as_millis() / 1_000;
        write!(
            f,
            "{}{:03}{}{:02}{:03}{:02}{:02}{:02}{}{:02}{}",
            self.series.letter(),
            self.scid,
            self.label,
            self.created.date().0.rem_euclid(100),
            self.created.day_of_year(),
            seconds / 3_600,
            seconds / 60 % 60,
            seconds % 60,
            self.uniqueness.0,
            self.number.0,
            self.series.suffix(),
        )
    }
}

const LENGTH: usize = 40;
const STEM: usize = 36;
const LABEL: usize = 18;
const EXAMPLE_NAME: &str = "P1570826VIIRSSCIENCEAS15286023813501.PDS";
const EXAMPLE_LABEL: &str = "0826VIIRSSCIENCEAS";

/// Decimal digits only: no sign.
fn digits(text: &str) -> Option<u16> {
    text.bytes().all(|c| c.is_ascii_digit()).then(|| text.parse().ok())?
}

/// `yyDDDhhmmss`; years 70 to 99 are of the twentieth century.
fn stamp(text: &str) -> Option<Utc> {
    let field = |from: usize, to: usize| digits(&text[from..to]).map(i64::from);
    let (yy, day) = (field(0, 2)?, field(2, 5)?);
    let (hour, minute, second) = (field(5, 7)?, field(7, 9)?, field(9, 11)?);
    let year = if yy < 70 { 2000 + yy } else { 1900 + yy };
    if day < 1
        || day_of(year, day) >= day_of(year + 1, 1)
        || hour > 23
        || minute > 59
        || second > 59
    {
        return None;
    }
    let in_day = Duration::from_secs((hour * 3_600 + minute * 60 + second).unsigned_abs());
    Some(Utc::from_day(day_of(year, day), in_day))
}

/// Days from 1970-01-01 to day `day_of_year` (from 1) of a Gregorian year.
const fn day_of(year: i64, day_of_year: i64) -> i64 {
    let before = year - 1;
    let leap_days = before.div_euclid(4) - before.div_euclid(100) + before.div_euclid(400);
    // 477 leap days lie before 1970.
    365 * (year - 1970) + leap_days - 477 + day_of_year - 1
}

/// Enough of a text to recognise it in a message.
fn shortened(text: &str) -> String {
    text.chars().take(2 * LENGTH).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_name_of_a_product_or_of_decoded_packets_tells_the_mission() {
        let known = MissionSet::built_in();
        let mission = |name: &str| mission_of_file(name, &known).map(Mission::name);
        assert_eq!(mission("P1590011AAAAAAAAAAAAAT21099051420501.PDS"), Some("noaa-20"));
        assert_eq!(mission("npp.dat-scid157-vcid16.packets"), Some("suomi-npp"));
        for unknown in
            ["packets.dat", "x-scid1-vcid2.packets", "x-scid999999-vcid2.packets", "-", "P157.PDS"]
        {
            assert_eq!(mission(unknown), None, "{unknown}");
        }
    }

    #[test]
    fn names_of_real_products_are_read_and_printed() {
        let cases = [
            ("P1590011AAAAAAAAAAAAAT21099051420500.PDS", 159, "2021-04-09T05:14:20.000000Z", 5, 0),
            ("P1540064AAAAAAAAAAAAAA14219032341001.PDS", 154, "2014-08-07T03:23:41.000000Z", 0, 1),
            ("P1570826VIIRSSCIENCEAS15286023813501.PDS", 157, "2015-10-13T02:38:13.000000Z", 5, 1),
            ("P15409571540958154095903221023813000.PDS", 154, "2003-08-09T02:38:13.000000Z", 0, 0),
        ];
        for (text, scid, created, uniqueness, number) in cases {
            let name = ProductName::parse(text).unwrap();
            assert_eq!(name.to_string(), text);
            assert_eq!((name.scid(), name.created().to_string()), (scid, created.to_owned()));
            assert_eq!((name.uniqueness().as_u8(), name.number().as_u8()), (uniqueness, number));
        }
    }

    #[test]
    fn a_name_is_built_from_its_parts() {
        let label = Label::parse("0826VIIRSSCIENCEAS").unwrap();
        let created = Utc::from_day(day_of(2024, 341), Duration::from_millis(63_495_999));
        let name = ProductName::construction_record(157, label, created, Digit::default());
        assert_eq!(name.to_string(), "P1570826VIIRSSCIENCEAS24341173815000.PDS");
        assert_eq!(
            name.file(FileNumber::PACKETS).to_string(),
            "P1570826VIIRSSCIENCEAS24341173815001.PDS"
        );
        assert_eq!(name.stem(), "P1570826VIIRSSCIENCEAS24341173815000");
        assert_eq!(Label::session(64).to_string(), "0064AAAAAAAAAAAAAS");
        assert_eq!(Label::session(64).time_based().to_string(), "0064AAAAAAAAAAAAAT");
        assert_eq!(label.time_based().to_string(), "0826VIIRSSCIENCEAT");
        let expedited = name.in_series(Series::Eds).to_string();
        assert_eq!(expedited, "E1570826VIIRSSCIENCEAS24341173815000.EDS");
    }

    #[test]
    fn what_is_wrong_with_a_name_is_said() {
        let good = "P1570826VIIRSSCIENCEAS15286023813501.PDS";
        for (at, with, reason) in [
            (0, "Q", "first letter and suffix"),
            (36, ".PDR", "first letter and suffix"),
            (1, "+15", "spacecraft id"),
            (4, "2048", "APID"),
            (8, "../../", "characters other than"),
            (24, "367", "creation time"),
            (24, "366", "creation time"),
            (27, "24", "creation time"),
            (33, "A", "uniqueness"),
            (34, "-1", "file number"),
        ] {
            let mut bad = good.to_owned();
            bad.replace_range(at..at + with.len(), with);
            let error = ProductName::parse(&bad).unwrap_err().to_string();
            assert!(error.contains(reason), "{bad}: {error}");
        }
    }

    #[test]
    fn days_are_counted_as_the_calendar_does() {
        for (year, day) in [(1970, 1), (1999, 365), (2000, 366), (2024, 366), (2069, 365)] {
            let utc = Utc::from_day(day_of(year, day), Duration::ZERO);
            assert_eq!((utc.date().0, i64::from(utc.day_of_year())), (year, day));
        }
    }

    proptest! {
        #[test]
        fn any_text_is_refused_or_prints_the_same(
            text in prop_oneof![".{0,44}", "[PEXY][0-9]{7}[A-Z0-9]{14}[0-9]{14}\\.[PE]D[SR]"]
        ) {
            if let Ok(name) = ProductName::parse(&text) {
                prop_assert_eq!(name.to_string(), text);
            }
        }

        #[test]
        fn a_name_that_was_built_is_read_back(scid: u16, apid in 0u16..2048, created: i64,
            digit in 0u8..10) {
            let name = ProductName::construction_record(
                scid, Label::session(apid), Utc::from_nanos(created), Digit::new(digit).unwrap());
            prop_assert_eq!(ProductName::parse(&name.to_string()).unwrap(), name);
        }
    }
}
