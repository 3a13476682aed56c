//! `[[plan]]`: planned passes.

use crate::section::section;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::str::FromStr;

section! {
    /// Planned passes, which are compared with the contacts that come: a pass that has begun and
    /// has no lock, and one that was missed, are alarms, and the page shows what is next. Up to
    /// 16. Either `file` lists the passes, or they are computed from `elements`.
    "[[plan]]" PlanEntry applies at_once checked by PlanEntry::check {
        /// A CSV file with the headings `start`, `end` and perhaps `mission`, `station`, `channel`
        /// and `name`; or a JSON list of objects with such members. Times are in UTC:
        /// `2026-11-22T12:30:00Z`. It is read again when it changes.
        file: PathBuf => optional,
        /// A file of orbital elements: two-line element sets, or orbit mean-elements messages as
        /// JSON. Passes are computed for two days, four times a day and when it changes.
        elements: PathBuf => optional,
        /// With `elements`: the missions, with the catalogue numbers (NORAD) of their satellites:
        /// `{ noaa-21 = 54234 }`. Up to 64.
        satellites: BTreeMap<String, u64> => optional,
        /// With `elements`: where the antenna stands, in degrees of WGS 84, north positive.
        latitude: Degrees => optional,
        /// With `elements`: in degrees, east positive.
        longitude: Degrees => optional,
        /// With `elements`: metres above the ellipsoid.
        altitude: i32 => "0",
        /// With `elements`: a pass begins and ends at this elevation, in degrees.
        elevation: Degrees => "5",
        /// With `elements`: the node that captures the passes; any, where it is left out.
        station: String => optional,
        /// With `elements`: the input that captures them; any, where it is left out.
        channel: String => optional,
    }
}

/// An angle, in millionths of a degree: a tenth of a metre on the ground.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Degrees(i32);

/// Where the passes of a plan come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanSource<'a> {
    /// A list of passes.
    List(&'a PathBuf),
    /// Orbital elements, and the antenna's latitude and longitude.
    Elements(&'a PathBuf, Degrees, Degrees),
}

/// Each is a file that is looked at all the time.
pub const PLANS_MAX: usize = 16;
const SATELLITES_MAX: usize = 64;

impl PlanEntry {
    /// Where the passes come from.
    pub fn source(&self) -> PlanSource<'_> {
        match (&self.file, &self.elements, self.latitude, self.longitude) {
            (None, Some(file), Some(latitude), Some(longitude)) => {
                PlanSource::Elements(file, latitude, longitude)
            }
            (file, elements, ..) => {
                let file = file.as_ref().or(elements.as_ref());
                PlanSource::List(file.expect("a plan that was checked has a file"))
            }
        }
    }

    /// The file that is read again when it changes.
    pub fn path(&self) -> &PathBuf {
        match self.source() {
            PlanSource::List(path) | PlanSource::Elements(path, ..) => path,
        }
    }

    pub(super) fn paths_mut(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        self.file.iter_mut().chain(&mut self.elements)
    }

    fn check(&self) -> Result<(), String> {
        let Some(file) = &self.elements else { return self.check_list() };
        let of = format!("the plan of {}", file.display());
        if self.file.is_some() {
            return Err(format!("{of} has a `file` too; write two plans"));
        }
        if self.latitude.is_none() || self.longitude.is_none() {
            return Err(format!("{of} needs `latitude` and `longitude` of the antenna in degrees"));
        }
        let count = self.satellites.as_ref().map_or(0, BTreeMap::len);
        if !(1..=SATELLITES_MAX).contains(&count) {
            return Err(format!(
                "{of} names {count} satellites; write 1 to {SATELLITES_MAX} like \
                 satellites = {{ noaa-21 = 54234 }}"
            ));
        }
        let within = |name: &str, value: Option<Degrees>, least: i32, most: i32| match value {
            Some(Degrees(angle)) if angle < least * MILLION || angle > most * MILLION => {
                Err(format!("`{name}` is from {least} to {most} degrees"))
            }
            _ => Ok(()),
        };
        within("latitude", self.latitude, -90, 90)?;
        within("longitude", self.longitude, -180, 360)?;
        within("elevation", Some(self.elevation), 0, 80)?;
        match (-500..=9_000).contains(&self.altitude) {
            true => Ok(()),
            false => Err("`altitude` is from -500 to 9000 m".to_owned()),
        }
    }

    fn check_list(&self) -> Result<(), String> {
        let Some(file) = &self.file else {
            return Err("a plan needs a `file` of passes, or `elements` of orbits".to_owned());
        };
        let needless = [
            ("satellites", self.satellites.is_some()),
            ("latitude", self.latitude.is_some()),
            ("longitude", self.longitude.is_some()),
            ("station", self.station.is_some()),
            ("channel", self.channel.is_some()),
        ];
        match needless.iter().find(|(_, is_there)| *is_there) {
            Some((name, _)) => Err(format!(
                "the plan of {} lists passes: `{name}` belongs to a plan with `elements`",
                file.display()
            )),
            None => Ok(()),
        }
    }
}

const MILLION: i32 = 1_000_000;

impl Degrees {
    /// The number of degrees.
    pub fn to_f64(self) -> f64 {
        f64::from(self.0) / f64::from(MILLION)
    }

    fn of(value: f64) -> Result<Self, String> {
        if !(-360.0..=360.0).contains(&value) {
            return Err("write degrees from -360 to 360".to_owned());
        }
        #[expect(clippy::cast_possible_truncation, reason = "its range was checked")]
        let angle = (value * f64::from(MILLION)).round() as i32;
        Ok(Self(angle))
    }
}

impl FromStr for Degrees {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        Self::of(text.parse().map_err(|_| format!("`{text}` is not a number of degrees"))?)
    }
}

impl<'de> Deserialize<'de> for Degrees {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::of(f64::deserialize(deserializer)?).map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<PlanEntry, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| error.message().to_owned())
    }

    #[test]
    fn a_plan_lists_passes_or_has_elements_of_orbits() {
        let entry = read("file = \"passes.csv\"").unwrap();
        assert_eq!(entry.source(), PlanSource::List(&"passes.csv".into()));
        let entry = read(
            "elements = \"noaa.tle\"\nsatellites = { noaa-21 = 54234 }\n\
             latitude = 78.230592\nlongitude = 15",
        )
        .unwrap();
        let PlanSource::Elements(file, latitude, longitude) = entry.source() else { panic!() };
        assert_eq!(file, entry.path());
        assert_eq!((latitude.to_f64(), longitude.to_f64()), (78.230_592, 15.0));
        assert_eq!((entry.elevation.to_f64(), entry.altitude), (5.0, 0));
    }

    #[test]
    fn a_plan_that_cannot_be_is_refused_with_what_to_do() {
        let site = "elements = \"e\"\nsatellites = { a = 1 }\n";
        for (text, told) in [
            (String::new(), "needs a `file` of passes, or `elements` of orbits"),
            ("file = \"f\"\nlatitude = 1".to_owned(), "`latitude` belongs to a plan with"),
            ("elements = \"e\"".to_owned(), "needs `latitude` and `longitude`"),
            ("elements = \"e\"\nlatitude = 1\nlongitude = 1".to_owned(), "names 0 satellites"),
            (format!("{site}latitude = 1\nlongitude = 1\nfile = \"f\""), "write two plans"),
            (format!("{site}latitude = 91\nlongitude = 1"), "`latitude` is from -90 to 90"),
            (format!("{site}latitude = nan\nlongitude = 1"), "write degrees from -360 to 360"),
            (
                format!("{site}latitude = 1\nlongitude = 1\naltitude = 9001"),
                "`altitude` is from -500 to 9000 m",
            ),
        ] {
            let error = read(&text).unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
