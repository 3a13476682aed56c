//! `[[path]]`: the ways to the centre, and when they are known to be out.

use crate::name::{HostPort, InterfaceName, Name, from_text};
use crate::section::section;
use crate::time::ConfigTime;
use skyhaul_hints::{FeedCondition, FeedMap, FeedRow, FeedSource};
use skyhaul_units::{Duration, Probability, Rate};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

section! {
    /// One path to the centre. Several paths are used together. Without this table there is one
    /// path, from any local address.
    "[[path]]" LinePath applies at_once checked by LinePath::check {
        /// Its name in status output, in logs and for `skyhaul path`. Default: `path-1`, `path-2`
        /// and so on, by position.
        name: Name => optional,
        /// Its local IP address. Default: the system chooses.
        local: IpAddr => optional,
        /// Its network interface, in place of `local`: the path uses the interface's address of the
        /// remote's family.
        interface: InterfaceName => optional,
        /// The destination's host and port on this path. Default: the `addresses` of its
        /// `[[peer]]`.
        remote: HostPort => optional,
        /// The name of the only destination that this path goes to. Needed with `remote` where
        /// there are several destinations. Default: every destination.
        destination: Name => optional,
        /// The transport protocol: `udp`; `tcp`, where UDP is blocked; or `auto`: UDP, and TCP at
        /// the same host and port while UDP gets no answer.
        transport: Transport => "auto",
        /// The rate that the station may use on it. Default: that of `[line]`.
        rate: Rate => optional,
        /// Traffic on this path costs money: it carries only data that would be late on the other
        /// paths.
        metered: bool => "false",
        /// The path is used only while no other path works.
        standby: bool => "false",
        /// Its known outages: tables `[[path.outage]]`.
        outage: Outages => optional,
        /// Where a modem tells of it, a line of key=value pairs each second: `unix:PATH`, a socket
        /// that another program listens on; `file:PATH`, of which the last line counts; or
        /// `exec:COMMAND`, which is run again if it ends. `[[path.map]]` says what the lines mean.
        feed: FeedSource => optional,
        /// What the feed said holds for this long after its last line. Then an alarm is raised.
        feed_stale: Duration => "5 s",
        /// What lines of the feed mean: tables `[[path.map]]`.
        map: FeedRows => optional,
        /// A contact plan: a CSV or JSON file of the times in which the path carries data, with the
        /// rate of each. It is read again when it changes. Between them the path is out.
        plan: PathBuf => optional,
    }
}

section! {
    /// What lines of the feed above mean. For each line the first table counts whose condition
    /// holds, for the rate and for the loss separately. Up to 64 for each path.
    "[[path.map]]" FeedRowEntry applies at_once checked by FeedRowEntry::check {
        /// The condition: `snr>=8`, `modcod=QPSK-1/2`, `snr<3 and ber>1e-4`. Left out: it holds for
        /// every line.
        when: FeedCondition => optional,
        /// The rate of the path then. `0 bit/s`: the path is out.
        rate: Rate => optional,
        /// The loss that the path has then at least: FEC repair is sized for it.
        loss: Probability => optional,
    }
}

section! {
    /// A known outage of the path above, from a contact plan. The station leaves the path in time,
    /// raises no alarm, and uses it again at once afterwards. Up to 64 for each path.
    "[[path.outage]]" Outage applies at_once checked by Outage::check {
        /// Start of the outage in UTC, such as `2026-11-22T12:30:00Z`.
        from: ConfigTime => required,
        /// End of the outage.
        until: ConfigTime => required,
    }
}

/// What a path goes over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// UDP, and TCP while that brings no answer.
    Auto,
    /// QUIC over UDP.
    Udp,
    /// TLS over TCP.
    Tcp,
}

impl FromStr for Transport {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "udp" => Ok(Self::Udp),
            "tcp" => Ok(Self::Tcp),
            _ => Err(format!("`{text}` is not a transport of a path; write auto, udp or tcp")),
        }
    }
}
impl std::fmt::Display for Transport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        })
    }
}
from_text!(Transport);

/// The outages of a path.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct Outages(pub Vec<Outage>);

/// What lines of a feed mean.
#[derive(Debug, Clone, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(transparent)]
pub struct FeedRows(pub Vec<FeedRowEntry>);

impl LinePath {
    /// The one way of a station that names none.
    pub fn any() -> Self {
        crate::section::left_out()
    }

    /// The same path with a name: its own, or one from its `place`, counted from 0.
    pub fn named(&self, place: usize) -> Self {
        let name = self.name.clone().unwrap_or_else(|| Name::numbered("path", place + 1));
        Self { name: Some(name), ..self.clone() }
    }

    /// What it is called.
    pub fn title(&self) -> &str {
        self.name.as_ref().map_or("path", Name::as_str)
    }

    /// Its outages.
    pub fn outages(&self) -> &[Outage] {
        self.outage.as_ref().map_or(&[], |outages| &outages.0)
    }

    /// What lines of its feed mean.
    pub fn feed_map(&self) -> FeedMap {
        let rows = self.map.as_ref().map_or(&[][..], |rows| &rows.0).iter();
        let row = |row: &FeedRowEntry| FeedRow {
            when: row.when.clone().unwrap_or_default(),
            rate: row.rate,
            loss: row.loss,
        };
        FeedMap::new(rows.map(row).collect())
    }

    /// The same path without what is known of it from outside: its outages, feed and plan.
    pub fn without_hints(&self) -> Self {
        let Self { feed_stale, .. } = Self::any();
        Self { outage: None, feed: None, feed_stale, map: None, plan: None, ..self.clone() }
    }

    /// Relative file paths start at the configuration's folder.
    pub(super) fn resolve(&mut self, base: &Path) {
        if let Some(plan) = &mut self.plan {
            crate::from_base(base, plan);
        }
        if let Some(FeedSource::Unix(file) | FeedSource::File(file)) = &mut self.feed {
            crate::from_base(base, file);
        }
    }

    /// Where it goes from, in words.
    pub fn place(&self) -> String {
        match (&self.interface, self.local) {
            (Some(interface), _) => interface.to_string(),
            (None, Some(local)) => local.to_string(),
            (None, None) => "any address".to_owned(),
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.interface.is_some() && self.local.is_some() {
            return Err("a path has both `local` and `interface`; write one of them".to_owned());
        }
        if self.rate == Some(Rate::ZERO) {
            return Err(
                "a path of 0 bit/s carries nothing; write its rate like \"93 Mbit/s\"".to_owned()
            );
        }
        let rows = self.map.as_ref().map_or(0, |rows| rows.0.len());
        if rows > 0 && self.feed.is_none() {
            return Err("a path has [[path.map]] and no `feed`; add the feed".to_owned());
        }
        if rows > MAX_ROWS {
            return Err(format!("the path has {rows} [[path.map]]; write at most {MAX_ROWS}"));
        }
        if !(STALE_MIN..=STALE_MAX).contains(&self.feed_stale) {
            return Err(format!(
                "a `feed_stale` of {} is out of range; write {STALE_MIN} to {STALE_MAX}",
                self.feed_stale
            ));
        }
        if self.outages().len() > MAX_OUTAGES {
            let count = self.outages().len();
            return Err(format!(
                "the path has {count} outages; write at most {MAX_OUTAGES}, the earliest ones"
            ));
        }
        Ok(())
    }
}

impl FeedRowEntry {
    fn check(&self) -> Result<(), String> {
        if self.rate.is_none() && self.loss.is_none() {
            return Err("a [[path.map]] has neither `rate` nor `loss`; write one of them, or both"
                .to_owned());
        }
        let rate = self.rate.filter(|rate| *rate > Rate::ZERO);
        rate.map_or(Ok(()), skyhaul_hints::check_rate)?;
        self.loss.map_or(Ok(()), skyhaul_hints::check_loss)
    }
}

impl Outage {
    fn check(&self) -> Result<(), String> {
        if self.from < self.until {
            return Ok(());
        }
        Err(format!(
            "the outage ends at {} before it begins; write `until` after `from`",
            self.until
        ))
    }
}

/// What a session takes of hints for one path.
const MAX_OUTAGES: usize = 64;
/// One for each MODCOD of DVB-S2X, and some.
const MAX_ROWS: usize = 64;
/// Two lines that come a second apart.
const STALE_MIN: Duration = Duration::from_secs(2);
const STALE_MAX: Duration = Duration::from_secs(3_600);
