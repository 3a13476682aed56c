//! What a node needs of its host, from its configuration: files and folders, ports, capabilities,
//! programs.

use skyhaul_config::{
    AfterHandover, CentreConfig, ForwardEntry, Input, LinePath, MissionRef, NodeConfig,
    NoticesConfig, PeerEntry, StationConfig, StreamEntry,
};
use skyhaul_forward::{Forward, Local, Target, What};
use skyhaul_hints::FeedSource;
use skyhaul_streams_io::{SinkSpec, SourceSpec};
use std::path::{Path, PathBuf};

/// What a node does with a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum PathUse {
    /// Reads it, or connects to it.
    Read,
    /// Writes into this folder.
    Write,
}

/// Something that a node needs, and the key of the configuration because of which it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Need {
    /// A file or folder.
    Path(PathBuf, PathUse),
    /// A port that it listens on.
    Port(u16),
    /// The right to take diverted connections.
    Diverted,
    /// Memory that other programs share with it.
    SharedMemory,
    /// A program that it runs.
    Program(String),
    /// A program that takes mail.
    Sendmail(PathBuf),
    /// So many open files at a time.
    OpenFiles(u64),
}

/// The needs of a node, in the order of the documentation.
#[derive(Debug, Default)]
pub struct NodeNeeds {
    found: Vec<(String, Need)>,
}

impl NodeNeeds {
    /// All that `config` needs.
    pub fn of(config: &NodeConfig) -> Self {
        let NodeConfig {
            node,
            station,
            centre,
            blocks,
            serve,
            web,
            history: _,
            status: _,
            notices,
            plans,
        } = config;
        let mut needs = Self::default();
        needs.reads("[node] key", &node.key);
        needs.writes("[node] state", &node.state);
        needs.holds_socket("[node] status_socket", &node.status_socket());
        if let Some(station) = station {
            needs.of_station(station);
        }
        if let Some(centre) = centre {
            needs.of_centre(centre);
        }
        if let Some(blocks) = blocks {
            needs.holds_socket("[blocks] socket", &blocks.socket);
        }
        if let Some(serve) = serve {
            needs.push("[serve] bind", Need::Port(serve.bind.port()));
            let tls = serve.tls().map(|pair| [pair.certificate, pair.key]);
            let files = tls.into_iter().flatten().chain(&serve.accounts);
            files.for_each(|file| needs.reads("[serve]", file));
            // A connection, its file, and the node's own.
            let files = 2 * u64::from(serve.connections) + OWN_FILES;
            needs.push("[serve] connections", Need::OpenFiles(files));
        }
        if let Some(web) = web {
            needs.push("[web] bind", Need::Port(web.bind.port()));
            let tls = web.tls().map(|pair| [pair.certificate, pair.key]);
            let files = tls.into_iter().flatten().chain(&web.users);
            files.for_each(|file| needs.reads("[web]", file));
        }
        needs.of_notices(notices);
        plans.iter().for_each(|plan| needs.reads("[[plan]]", plan.path()));
        needs
    }

    /// Each with the key because of which it is needed.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Need)> {
        self.found.iter().map(|(why, need)| (&**why, need))
    }

    fn push(&mut self, why: &str, need: Need) {
        self.found.push((why.to_owned(), need));
    }

    fn reads(&mut self, why: &str, path: &Path) {
        self.push(why, Need::Path(path.to_owned(), PathUse::Read));
    }

    fn writes(&mut self, why: &str, path: &Path) {
        self.push(why, Need::Path(path.to_owned(), PathUse::Write));
    }

    /// The folder of a socket that the node makes.
    fn holds_socket(&mut self, why: &str, socket: &Path) {
        self.writes(why, socket.parent().unwrap_or(socket));
    }

    fn of_station(&mut self, station: &StationConfig) {
        station.missions.iter().for_each(|path| self.reads("missions", path));
        for destination in &station.destinations {
            self.of_peer(&destination.peer);
        }
        station.path.iter().for_each(|path| self.of_path(path));
        for channel in &station.channel {
            let why = format!("[[channel]] {}", channel.name);
            if let Some(MissionRef::File(path)) = &channel.mission {
                self.reads(&why, path);
            }
            for feed in channel.feeds() {
                match feed.input {
                    Input::TcpListen(address) | Input::Udp(address) => {
                        self.push(&why, Need::Port(address.port()));
                    }
                    Input::File(path) => self.reads(&why, &path),
                    Input::Tcp(_) | Input::Stdin | Input::Folder => {}
                }
            }
        }
        self.of_forwards(&station.forward);
        for folder in &station.folders.dropped {
            // Files that cannot be read go to `failed` there.
            let why = format!("[[folder]] {}", folder.name);
            self.writes(&why, &folder.path);
            if let AfterHandover::Move(to) = &folder.done {
                self.writes(&why, to);
            }
        }
        for mirror in &station.folders.mirrored {
            self.reads("[[mirror]] source", &mirror.source);
        }
        station.stream.iter().for_each(|stream| self.of_stream(stream));
    }

    fn of_path(&mut self, path: &LinePath) {
        let why = format!("[[path]] {}", path.title());
        match &path.feed {
            Some(FeedSource::Unix(file) | FeedSource::File(file)) => self.reads(&why, file),
            Some(FeedSource::Exec(command)) => self.push(&why, Need::Program(command.clone())),
            None => {}
        }
        path.plan.iter().for_each(|plan| self.reads(&why, plan));
    }

    fn of_stream(&mut self, stream: &StreamEntry) {
        let why = "[[stream]] from";
        match &stream.from.0 {
            SourceSpec::File(path) => self.reads(why, path),
            SourceSpec::Udp { address, .. } => self.listens(why, address),
            SourceSpec::Rtp(source) => self.listens(why, &source.address),
            SourceSpec::Ring(_) => self.push(why, Need::SharedMemory),
            SourceSpec::Pipe | SourceSpec::Zero(_) | SourceSpec::Vdif { .. } => {}
        }
    }

    /// The port of `HOST:PORT`.
    fn listens(&mut self, why: &str, address: &str) {
        let port = address.rsplit(':').next().and_then(|port| port.parse().ok());
        port.into_iter().for_each(|port| self.push(why, Need::Port(port)));
    }

    fn of_forwards(&mut self, forwards: &[ForwardEntry]) {
        let why = "[[forward]]";
        for entry in forwards {
            let local = match entry.what() {
                What::Local(Forward { local, .. }) => local,
                What::Socks(entrance) => entrance.local,
                What::Transparent(entrance) => {
                    self.push(why, Need::Diverted);
                    entrance.local
                }
                What::Remote(Forward { target, .. }) => {
                    if let Target::Unix(path) = target {
                        self.reads(why, Path::new(&path));
                    }
                    continue;
                }
            };
            match local {
                Local::Tcp(address) | Local::Udp(address) => {
                    self.push(why, Need::Port(address.port()));
                }
                Local::Unix(path) => self.holds_socket(why, Path::new(&path)),
            }
        }
    }

    fn of_peer(&mut self, peer: &PeerEntry) {
        let why = |key: &str| format!("[[peer]] {} {key}", peer.name);
        if let Some(files) = &peer.files {
            let (why, root) = (why("files"), &files.root);
            if files.write { self.writes(&why, root) } else { self.reads(&why, root) }
        }
        if let Some(streams) = &peer.streams {
            let why = why("streams");
            streams.root.iter().for_each(|root| self.writes(&why, root));
            if streams.allow.0.iter().any(|sink| matches!(sink, SinkSpec::Ring(..))) {
                self.push(&why, Need::SharedMemory);
            }
        }
        let sockets = peer.allow.0.iter().filter_map(|rule| rule.socket_file());
        sockets.for_each(|path| self.reads(&why("allow"), Path::new(path)));
        for rule in &peer.allow_listen.0 {
            let why = why("allow_listen");
            rule.socket_file().into_iter().for_each(|path| {
                self.holds_socket(&why, Path::new(path));
            });
            rule.ports().into_iter().for_each(|ports| {
                self.push(&why, Need::Port(*ports.start()));
            });
        }
    }

    fn of_centre(&mut self, centre: &CentreConfig) {
        centre.missions.iter().for_each(|path| self.reads("missions", path));
        for listen in &centre.listen {
            self.push("[[listen]] bind", Need::Port(listen.bind.port()));
        }
        centre.peer.iter().for_each(|peer| self.of_peer(peer));
        if let Some(products) = &centre.products {
            self.writes("[products] dir", &products.dir);
            let library = products.hdf5_library.iter();
            library.for_each(|path| self.reads("[products] hdf5_library", path));
        }
        for destination in &centre.outlets.destinations {
            let why = format!("[[destination]] {}", destination.name);
            destination.folder().into_iter().for_each(|folder| self.writes(&why, folder));
            let entry = &destination.entry;
            for file in [&entry.key, &entry.password, &entry.ca, &entry.profile_file] {
                file.iter().for_each(|file| self.reads(&why, file));
            }
        }
        self.of_forwards(&centre.forward);
    }

    fn of_notices(&mut self, notices: &NoticesConfig) {
        for hook in &notices.webhooks {
            let files = hook.secret_file.iter().chain(&hook.ca);
            files.for_each(|file| self.reads("[[webhook]]", file));
        }
        for entry in &notices.commands {
            let program = entry.command.first();
            program.into_iter().for_each(|path| self.reads("[[exec]] command", Path::new(path)));
            self.push("[[exec]] command", Need::Program(entry.command.join(" ")));
        }
        for mail in &notices.mails {
            self.push("[[mail]] sendmail", Need::Sendmail(PathBuf::from(&mail.sendmail)));
        }
    }
}

/// Sockets, logs and products that a node has open beside the connections of its servers.
const OWN_FILES: u64 = 8192;
