//! What a node captures and sends: its channels, its spool, and the line to its destination.

use crate::channel::Channel;
use crate::destination::{Destination, DestinationUse};
use crate::error::{ConfigError, ConfigText, KeyPlace};
use crate::folders::{FolderEntry, FolderUse};
use crate::forwards::ForwardEntry;
use crate::mirrors::MirrorEntry;
use crate::name::{Mtu, Name, from_text};
use crate::node::Node;
use crate::path::LinePath;
use crate::refill::Refill;
use crate::section::section;
use crate::sending::{Class, PolicyName};
use crate::streams::StreamEntry;
use crate::subscription::{KnownNames, SubscriptionEntry};
use crate::sync::Sync;
use skyhaul_congestion::ControllerConfig;
use skyhaul_forward_io::{FarRules, Forwarding};
use skyhaul_units::{ByteCount, Duration, Rate};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What a node captures and sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StationConfig {
    /// Mission files, or folders of them, beside those that the program holds.
    pub missions: Vec<PathBuf>,
    /// Who this node is.
    pub node: Node,
    /// Where the data goes, at least one.
    pub destinations: Vec<Destination>,
    /// Which contacts go where.
    pub subscription: Vec<SubscriptionEntry>,
    /// The other nodes whose contacts can be subscribed to; none where that may be any, because
    /// nodes that connect here pass on what others captured.
    pub stations: Option<Vec<Name>>,
    /// What is known about the line to there.
    pub line: Line,
    /// The durable store that data waits in.
    pub spool: Spool,
    /// When a marker is believed.
    pub sync: Sync,
    /// What is done about frames that the destination misses.
    pub refill: Refill,
    /// The ways to the destination; none is one, from any local address.
    pub path: Vec<LinePath>,
    /// How the line is shared.
    pub class: Vec<Class>,
    /// Where data comes in.
    pub channel: Vec<Channel>,
    /// Applications that share the session with the destination.
    pub forward: Vec<ForwardEntry>,
    /// Folders whose files the destination gets.
    pub folders: LocalFolders,
    /// Streams that the destination gets.
    pub stream: Vec<StreamEntry>,
}

section! {
    /// The line to the destination.
    "[line]" Line applies at_once(policy) checked by Line::check {
        /// The rate that the node may use, counted in IP packets with their headers. Default:
        /// congestion control finds the rate and shares the line with other traffic.
        rate: Rate => optional,
        /// The largest IP packet that the line carries without fragmentation.
        mtu: Mtu => "1500 B",
        /// Congestion control: `line` uses the declared rate at any loss and gives way to a
        /// standing queue; `adaptive` finds the rate. Default: `line` if a rate is declared,
        /// otherwise `adaptive`.
        controller: RateControl => optional,
        /// The order of blocks within a class: `urgency` (small, important and nearly due blocks
        /// first), `draft` (the weights of draft-shi-quic-dtp), `strict` (by the channels'
        /// priority), `earliest` (by deadline) or `fifo`.
        policy: PolicyName => "urgency",
    }
}

section! {
    /// The spool, which keeps captured data until the destination has it on disk.
    "[spool]" Spool applies at_once(max_size, retention) checked by Spool::check {
        /// The largest size of the spool on disk. A full spool applies backpressure to the inputs.
        /// 64 GB: a day of 6 Mbit/s.
        max_size: ByteCount => "64 GB",
        /// The size of one spool file. Space is freed in whole files.
        segment_size: ByteCount => "64 MiB",
        /// The longest time that a frame waits for the disk. One flush serves all frames that
        /// arrived in this time.
        sync_interval: Duration => "100 ms",
        /// How long data stays in the spool after the destination has it on disk.
        retention: Duration => "0 s",
    }
}

/// Folders of the node whose files the destination gets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LocalFolders {
    /// Those whose files are handed over, each once.
    pub dropped: Vec<FolderEntry>,
    /// Those that the destination has equal ones of.
    pub mirrored: Vec<MirrorEntry>,
}

/// How the sending rate is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RateControl {
    /// The declared rate, whatever the random loss; gives way to a standing queue.
    Line,
    /// What the line carries, found out, whatever the random loss; gives way to a growing queue.
    Adaptive,
}

impl StationConfig {
    pub(super) fn check(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let ConfigText { text, file } = config;
        if self.channel.len() > MAX_CHANNELS {
            let count = self.channel.len();
            return Err(ConfigError::many(config, "[[channel]]", count, MAX_CHANNELS));
        }
        if self.path.len() > MAX_PATHS {
            return Err(ConfigError::many(config, "[[path]]", self.path.len(), MAX_PATHS));
        }
        let mut seen = BTreeSet::new();
        for channel in &self.channel {
            if !seen.insert(&channel.name) {
                return Err(ConfigError::twice(text, file, "channel", channel.name.as_str()));
            }
        }
        let mut seen = BTreeSet::new();
        for path in self.paths() {
            if !seen.insert(path.title().to_owned()) {
                return Err(ConfigError::twice(text, file, "path", path.title()));
            }
        }
        self.check_paths(config)?;
        self.check_standby(config)?;
        let nodes = self.destinations.iter().filter(|one| one.takes_contacts());
        let destinations: Vec<&str> = nodes.map(Destination::name).collect();
        let channels: Vec<&str> = self.channel.iter().map(|one| one.name.as_str()).collect();
        let with_own = |others: &Vec<Name>| -> Vec<String> {
            [&self.node.name].into_iter().chain(others).map(ToString::to_string).collect()
        };
        let stations = self.stations.as_ref().map(with_own);
        let stations: Option<Vec<&str>> =
            stations.as_ref().map(|names| names.iter().map(String::as_str).collect());
        let known = KnownNames {
            destinations: &destinations,
            channels: &channels,
            stations: stations.as_deref(),
        };
        crate::subscription::check(config, &self.subscription, &known)?;
        self.check_sharing(config)
    }

    /// Checks that each path names destinations that are there, and that an address is of one
    /// destination.
    fn check_paths(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        for (nth, path) in self.path.iter().enumerate() {
            let place_of = |key| KeyPlace { heading: "[[path]]", nth, key };
            match &path.destination {
                Some(name) if !self.destinations.iter().any(|one| one.peer.name == *name) => {
                    let what = format!("there is no destination `{name}` for a path");
                    let known: Vec<&str> =
                        self.destinations.iter().map(Destination::name).collect();
                    let help = format!("write one of {}", known.join(", "));
                    return Err(ConfigError::at(config, place_of("destination"), what, &help));
                }
                None if path.remote.is_some() && self.destinations.len() > 1 => {
                    let what =
                        "a path has a `remote`, and there are several destinations".to_owned();
                    let help = "add `destination` with the name of the one that has this address";
                    return Err(ConfigError::at(config, place_of("remote"), what, help));
                }
                _ => {}
            }
        }
        for destination in &self.destinations {
            if self.paths_to(destination.name()).is_empty() {
                let what = format!("no path goes to the destination `{}`", destination.name());
                let place = KeyPlace { heading: "[[path]]", nth: 0, key: "destination" };
                let help = "add a [[path]] for it, or one without `destination`";
                return Err(ConfigError::at(config, place, what, help));
            }
        }
        Ok(())
    }

    /// Checks that a standby captures something, and stands by for another node.
    fn check_standby(&self, config: ConfigText<'_>) -> Result<(), ConfigError> {
        let Some(of) = &self.node.standby_of else { return Ok(()) };
        let place = KeyPlace { heading: "[node]", nth: 0, key: "standby_of" };
        if *of == self.node.name {
            let what = format!("node `{of}` cannot stand by for itself");
            let help = "write the name of the node that captures the same feed";
            return Err(ConfigError::at(config, place, what, help));
        }
        if self.destinations.iter().any(|one| one.name() == of.as_str()) {
            let what = format!("node `{of}` is a destination, this node cannot stand by for it");
            let help = "write the name of the node that captures the same feed";
            return Err(ConfigError::at(config, place, what, help));
        }
        if self.channel.is_empty() {
            let what = format!("a standby of `{of}` captures nothing");
            let help = "add the [[channel]] of the feed that both nodes have, or remove the key";
            return Err(ConfigError::at(config, place, what, help));
        }
        Ok(())
    }

    /// The ways to one destination.
    pub fn paths_to(&self, destination: &str) -> Vec<LinePath> {
        let is_to = |path: &LinePath| {
            path.destination.as_ref().is_none_or(|name| name.as_str() == destination)
        };
        self.paths().into_iter().filter(is_to).collect()
    }

    /// The ways to the destination, each with its name: one from any address where none is written.
    pub fn paths(&self) -> Vec<LinePath> {
        let any = [LinePath::any()];
        let paths: &[LinePath] = if self.path.is_empty() { &any } else { &self.path };
        paths.iter().enumerate().map(|(place, path)| path.named(place)).collect()
    }

    /// What is forwarded to and from the destinations, by their order here.
    pub fn forwarding(&self) -> Forwarding {
        let nodes = self.destinations.iter().map(|one| one.name().to_owned()).collect();
        crate::forwards::forwarding(&self.forward, nodes)
    }

    /// Whether anything but contacts may go through the sessions with the destinations.
    pub fn has_guests(&self) -> bool {
        let sends = !self.forward.is_empty()
            || !self.folders.mirrored.is_empty()
            || !self.stream.is_empty();
        let allows = |one: &Destination| {
            one.peer.rules() != FarRules::default()
                || one.peer.files.is_some()
                || one.usage != DestinationUse::Contacts
        };
        let files = self.folders.dropped.iter().any(|folder| folder.r#as == FolderUse::Files);
        sends || files || self.destinations.iter().any(allows)
    }

    pub(super) fn resolve(&mut self, base: &Path) {
        self.destinations.iter_mut().for_each(|one| one.peer.resolve(base));
        self.path.iter_mut().for_each(|path| path.resolve(base));
        self.channel.iter_mut().for_each(|channel| channel.resolve(base));
        self.folders.dropped.iter_mut().for_each(|folder| folder.resolve(base));
        self.folders
            .mirrored
            .iter_mut()
            .for_each(|mirror| crate::from_base(base, &mut mirror.source));
        self.stream.iter_mut().for_each(|stream| stream.resolve(base));
    }
}

impl Line {
    fn check(&self) -> Result<(), String> {
        match (self.rate, self.controller) {
            (Some(Rate::ZERO), _) => {
                Err("a line of 0 bit/s carries nothing; write its rate like \"93 \
                    Mbit/s\""
                    .to_owned())
            }
            (None, Some(RateControl::Line)) => {
                Err("the controller `line` needs the line's rate; write it like \"93 \
                    Mbit/s\""
                    .to_owned())
            }
            (Some(_), Some(RateControl::Adaptive)) => {
                Err("the controller `adaptive` finds the rate by itself; remove `rate`, or write \
                    \"line\""
                    .to_owned())
            }
            _ => Ok(()),
        }
    }

    /// How the sending rate is kept.
    pub const fn controller(&self) -> ControllerConfig {
        match self.rate {
            Some(rate) => ControllerConfig::declared(rate),
            None => ControllerConfig::Adaptive,
        }
    }
}

impl Spool {
    fn check(&self) -> Result<(), String> {
        if self.segment_size < MIN_SEGMENT
            || self.segment_size.as_u64() > self.max_size.as_u64() / 4
        {
            let largest = ByteCount::new(self.max_size.as_u64() / 4);
            return Err(format!(
                "a segment of {} does not fit a spool of {}; write a segment_size from \
                {MIN_SEGMENT} to {largest}",
                self.segment_size, self.max_size
            ));
        }
        Ok(())
    }
}

impl FromStr for RateControl {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "line" => Ok(Self::Line),
            "adaptive" => Ok(Self::Adaptive),
            _ => Err(format!("`{text}` is not a controller; write line or adaptive")),
        }
    }
}
impl std::fmt::Display for RateControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Line => "line",
            Self::Adaptive => "adaptive",
        })
    }
}
from_text!(RateControl);

/// A station has a handful of ways out; each costs a socket.
const MAX_PATHS: usize = 8;
/// A station has a handful of receivers; the bound keeps memory and threads bounded.
const MAX_CHANNELS: usize = 64;
/// Smaller files cost more in flushes of the folder than they give back early.
const MIN_SEGMENT: ByteCount = ByteCount::mib(1);
