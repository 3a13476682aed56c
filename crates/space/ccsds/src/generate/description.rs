//! The description of a synthetic downlink: a TOML text, or defaults.

use super::ErrorPlan;
use crate::id::Vcid;
use crate::mission::{ApidRange, Content, FrameKind, Mission};
use crate::packet::SpaceHeader;
use serde::Deserialize;
use skyhaul_units::{Duration, Rate, Utc};
use toml::value::Datetime;

/// The contents of a synthetic downlink. Every key is optional.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Description {
    /// The mission: a name, or the path of a mission file. The caller finds it.
    pub mission: Option<String>,
    /// Rate of the downlink's bits, markers and check symbols included. It sets the advance of
    /// packet times. Default 15 Mbit/s.
    pub rate: Rate,
    /// Time of the first packets. Default 2026-01-01T00:00:00Z.
    pub start: Option<Datetime>,
    /// Spacecraft id. Default: the first of the mission's.
    pub scid: Option<u16>,
    /// Octets of the virtual channel frame count of USLP frames, 0 to 7: without a count, lost
    /// frames cannot be detected. Default 3.
    pub vc_count_octets: u8,
    /// Errors of the channel. Default: none.
    pub errors: ErrorPlan,
    /// The packets. Default: some of each product of the mission, as many as the downlink has room
    /// for.
    pub packets: Vec<PacketPlan>,
}

/// Packets of some applications on one virtual channel.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketPlan {
    /// The virtual channel.
    pub vcid: u8,
    /// Access point of USLP frames; one for each virtual channel.
    #[serde(default)]
    pub map: u8,
    /// The applications, as "64" or "404-417".
    pub apids: Vec<String>,
    /// Interval between packets, or groups, of an application. Default: as many as there is room
    /// for.
    #[serde(default)]
    pub every: Option<Duration>,
    /// Bytes of the shortest packet. Default 200.
    #[serde(default = "shortest")]
    pub shortest: usize,
    /// Bytes of the longest packet. Default 1400.
    #[serde(default = "longest")]
    pub longest: usize,
    /// Packets of a group: the first has the time, if the mission defines it. Default 1: single
    /// packets.
    #[serde(default = "group")]
    pub group: u16,
}

const fn shortest() -> usize {
    200
}
const fn longest() -> usize {
    1_400
}
const fn group() -> u16 {
    1
}

/// Why a description cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DescriptionError(pub(super) String);

/// Most applications of a description.
pub(super) const MAX_APPLICATIONS: usize = 512;
/// Most products of a mission for which packets are made by default.
const DEFAULT_PRODUCTS: usize = 16;
/// Most applications of each.
const DEFAULT_APPLICATIONS: u16 = 4;
/// 2026-01-01, in days since 1970.
const DEFAULT_START: i64 = 20_454;

impl Default for Description {
    fn default() -> Self {
        Self {
            mission: None,
            rate: Rate::from_mbps(15),
            start: None,
            scid: None,
            vc_count_octets: 3,
            errors: ErrorPlan::default(),
            packets: Vec::new(),
        }
    }
}

impl Description {
    /// Reads a description from TOML.
    ///
    /// # Errors
    /// Names the line and what is wrong there.
    pub fn from_toml(text: &str) -> Result<Self, DescriptionError> {
        toml::from_str(text).map_err(|error| {
            let before = error.span().map_or(0, |span| span.start.min(text.len()));
            let line = 1 + text.as_bytes()[..before].iter().filter(|byte| **byte == b'\n').count();
            DescriptionError(format!("line {line}: {}", error.message().trim().replace('\n', " ")))
        })
    }

    /// Time of the first packets.
    pub(super) fn first_time(&self) -> Result<Utc, DescriptionError> {
        let Some(start) = self.start else {
            return Ok(Utc::from_day(DEFAULT_START, Duration::ZERO));
        };
        let wrong = || {
            DescriptionError(format!(
                "`start` is {start}; write a time in UTC, like 2026-11-22T12:00:00Z"
            ))
        };
        let (date, time) = start.date.zip(start.time).ok_or_else(wrong)?;
        if start.offset.is_some_and(|offset| offset != toml::value::Offset::Z) {
            return Err(wrong());
        }
        let seconds = 3_600 * u64::from(time.hour)
            + 60 * u64::from(time.minute)
            + u64::from(time.second.unwrap_or(0));
        let in_day =
            Duration::from_nanos(seconds * 1_000_000_000 + u64::from(time.nanosecond.unwrap_or(0)));
        Ok(Utc::from_day(
            day_number(i64::from(date.year), i64::from(date.month), i64::from(date.day)),
            in_day,
        ))
    }

    /// The packets to send: those described, or some of each product of the mission.
    pub(super) fn plans(&self, mission: &Mission) -> Vec<PacketPlan> {
        if !self.packets.is_empty() {
            return self.packets.clone();
        }
        let plan = |vcid: Vcid, apids: Vec<String>| PacketPlan {
            vcid: vcid.value(),
            map: 0,
            apids,
            every: None,
            shortest: shortest().min(mission.longest_packet()).max(SpaceHeader::LEN + 20),
            longest: longest().min(mission.longest_packet()),
            group: group(),
        };
        let mut plans: Vec<PacketPlan> = Vec::new();
        for product in mission.products().iter().take(DEFAULT_PRODUCTS) {
            let vcid = product.vcids.first().copied().unwrap_or(DEFAULT_VCID);
            if !carries_packets(mission, vcid) {
                continue;
            }
            let apids = if product.apids.is_empty() {
                let first = 100 + 10 * plans.len();
                vec![format!("{first}-{}", first + 1)]
            } else {
                product.apids.iter().map(first_of).collect()
            };
            plans.push(plan(vcid, apids));
        }
        if plans.is_empty() && carries_packets(mission, DEFAULT_VCID) {
            plans.push(plan(DEFAULT_VCID, vec!["100-103".to_owned()]));
        }
        plans
    }
}

/// The channel of packets where the mission names none.
pub(super) const DEFAULT_VCID: Vcid = Vcid::from_bits(1);

/// Whether packets can be sent on a channel.
pub(super) fn carries_packets(mission: &Mission, vcid: Vcid) -> bool {
    let kind = mission.frame().kind;
    mission.content(vcid) == Content::Packets
        && vcid <= kind.last_vcid()
        && (kind == FrameKind::Tm || vcid != Vcid::MAX)
}

/// The first applications of a range.
fn first_of(range: &ApidRange) -> String {
    let last = range.last.value().min(range.first.value() + DEFAULT_APPLICATIONS - 1);
    format!("{}-{last}", range.first)
}

/// Days since 1970-01-01 of a date of the Gregorian calendar.
const fn day_number(year: i64, month: i64, day: i64) -> i64 {
    // Years that begin in March have their leap day at the end.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_start_is_a_time_in_utc() {
        let at =
            |text: &str| Description::from_toml(&format!("start = {text}")).unwrap().first_time();
        assert_eq!(
            at("2024-02-29T12:30:01.5Z").unwrap().to_string(),
            "2024-02-29T12:30:01.500000Z"
        );
        assert_eq!(at("1970-01-01T00:00:00Z").unwrap(), Utc::from_nanos(0));
        assert!(at("2024-02-29").is_err() && at("2024-02-29T12:00:00+02:00").is_err());
        let default = Description::default().first_time().unwrap();
        assert!(default.to_string().starts_with("2026-01-01T00:00:00"), "{default}");
    }

    #[test]
    fn a_wrong_key_is_named_with_its_line() {
        let error = Description::from_toml(
            "rate = \"1 Mbit/s\"\n[[packets]]\nvcid = 1\napids = []\nsize = 3\n",
        );
        let sentence = error.unwrap_err().to_string();
        assert!(sentence.starts_with("line 5: ") && sentence.contains("`size`"), "{sentence}");
    }
}
