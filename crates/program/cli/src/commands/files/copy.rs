//! `skyhaul cp`: the end that connects.

use super::course::{FarNode, FileTransfer};
use super::receipts::Receipts;
use super::screen::{RunKind, Screen, TransferVerdict};
use super::spec::Copy;
use crate::commands::classes::ClassFlags;
use crate::commands::far::{self, FarName, OwnEnd, ways};
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::signals;
use skyhaul_channels_io::ClientSetup;
use skyhaul_exit::{Exit, Failure};
use skyhaul_files::wire::{Naming, Options, TransferDirection, TransferHello};
use skyhaul_files::{RelPath, Rule, Selection};
use skyhaul_files_io::{Directory, FileSource, Inside, TransferTask};
use skyhaul_quic::Fingerprint;
use skyhaul_transport::{ClassId, ClassTree, SessionConfig};
use skyhaul_units::{Duration, Rate};
use std::ffi::OsString;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// The arguments of `skyhaul cp`.
#[derive(clap::Args)]
#[command(after_help = "\
        A file appears under its name when it is complete, has the hash that was sent, and is on \
        disk. After an interruption, the same command resumes the copy. docs/how-to/files.md says \
        more.

Example:
  skyhaul cp pass-17/ notes.txt far:incoming
  skyhaul cp pass-17/ notes.txt far:incoming --node far=198.51.100.1:4740 --key here.key --peer \
  SHA256:…
  skyhaul cp 'far:products/*.h5' . --node far=198.51.100.1:4740 --key here.key --peer SHA256:…
  tar c raw | skyhaul cp - far:raw.tar --node far=198.51.100.1:4740 --key here.key \
  --peer SHA256:…")]
pub struct Cp {
    /// Sources and destination: `FILE… NODE:DIR`, `NODE:PATH… DIR`, or `- NODE:DIR/NAME` for
    /// standard input. A single file is copied to `NODE:DIR/NAME`, or to NAME here, unless a folder
    /// has that name. Far paths are relative to the folder that the far node serves, and can be
    /// patterns.
    #[arg(value_name = "SRC… DEST", required = true, num_args = 2..)]
    paths: Vec<OsString>,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// How it is copied.
#[derive(clap::Args)]
pub struct Flags {
    /// The far node: its name here, and its address. Repeat it with the same name for further
    /// addresses: the session uses all of them. Default: as in the address book.
    #[arg(long, value_name = "NAME=ADDR")]
    node: Vec<String>,
    /// Limits the rate of the file contents.
    #[arg(long, value_name = "RATE")]
    limit: Option<Rate>,
    #[command(flatten)]
    share: ClassFlags,
    /// The time from reading a block to its delivery. Blocks with the earliest deadline are sent
    /// first.
    #[arg(long, value_name = "DURATION")]
    deadline: Option<Duration>,
    /// Copies files that match, even if --exclude matches them too. Without --exclude, only these
    /// are copied.
    #[arg(long, value_name = "PATTERN")]
    include: Vec<String>,
    /// Does not copy files that match.
    #[arg(long, value_name = "PATTERN")]
    exclude: Vec<String>,
    /// Compares existing files by their contents instead of their length and time.
    #[arg(long)]
    checksum: bool,
    /// Changes nothing, and prints what would be copied.
    #[arg(long)]
    dry_run: bool,
    /// Appends a receipt to this file, a line of JSON, for each file that is complete and on disk
    /// at the receiving end. Default: `skyhaul/receipts.jsonl` in `$XDG_STATE_HOME`
    /// (`~/.local/state`).
    #[arg(long, value_name = "FILE")]
    receipts: Option<PathBuf>,
    /// This node's name, for the other end's log.
    #[arg(long, value_name = "NAME", default_value = "files")]
    name: String,
    /// Prints events as lines of JSON to standard output.
    #[arg(long)]
    json: bool,
}

/// Copies to the end; connects again when the session is lost.
///
/// # Errors
/// The command line or a source cannot be used, the far node does not answer or refuses, or
/// something was not copied.
pub fn run(command: &Cp, out: &mut dyn Write) -> Result<(), Failure> {
    let copy = Copy::read(&command.paths)?;
    let flags = &command.flags;
    let (remotes, peer, setup) = flags.far(copy.node(), &command.keys, &command.line)?;
    let base = flags.hello()?;
    let class = match copy {
        Copy::Get { .. } => ClassId::default(),
        Copy::Put { .. } | Copy::PutPipe { .. } => flags.own_class(&setup.session.classes)?,
    };
    let task = |attempt: usize| task(&copy, &base, class, attempt);
    // Errors of this end are reported before connecting.
    drop(task(0)?);
    let screen = flags.screen(peer)?;
    let call = FarNode { setup, ways: ways(&remotes), peer, node: copy.node().to_owned() };
    let again = !matches!(copy, Copy::PutPipe { .. });
    let course = FileTransfer { call, again, patient: false, role: copy.role() };
    let stop = signals::stop_flag()?;
    course.run(&stop, &task, screen, out).and_then(TransferVerdict::judge)
}

/// The task of the `attempt`th connection.
fn task(
    copy: &Copy,
    base: &TransferHello,
    class: ClassId,
    attempt: usize,
) -> Result<TransferTask, Failure> {
    let mut hello = base.clone();
    match copy {
        Copy::Put { sources, target, naming, .. } => {
            hello.target = target.clone();
            // Folders keep their names: run again, the same command must not find itself in the
            // way.
            let is_file = sources.iter().all(|source| !source.is_dir());
            hello.naming = if is_file { *naming } else { Naming::Into };
            let source = |path: &PathBuf| {
                FileSource::local(path, Inside::Itself).map_err(|error| {
                    let sentence = format!("{} cannot be copied: {error}", path.display());
                    Failure::from_sentence(Exit::Environment, &sentence)
                })
            };
            let sources = sources.iter().map(source).collect::<Result<_, _>>()?;
            Ok(TransferTask { hello, class, sources, into: None })
        }
        Copy::PutPipe { file, .. } => {
            let name = file.split().map_or(&[][..], |(_, name)| name);
            let target = file.split().map_or(RelPath::here(), |(above, _)| above);
            let name = RelPath::new(name)
                .map_err(|error| Failure::new(Exit::Usage, &error.to_string(), "give a name"))?;
            hello.target = target;
            // Its bytes can be read once: by the first connection, not by the check before it.
            let pipe = (attempt > 0).then(|| Box::new(std::io::stdin()) as _);
            Ok(TransferTask {
                hello,
                class,
                sources: vec![FileSource::Pipe(name, pipe)],
                into: None,
            })
        }
        Copy::Get { sources, into, naming, .. } => {
            hello.direction = TransferDirection::Get;
            hello.sources.clone_from(sources);
            let mut into = into.as_path();
            // An existing folder, or a path without a file name, is the folder to copy into.
            if let (Naming::As, false, Some(name)) = (naming, into.is_dir(), into.file_name()) {
                let name = RelPath::new(name.as_bytes());
                hello.target = name.map_err(|error| {
                    Failure::new(Exit::Usage, &error.to_string(), "give a name")
                })?;
                hello.naming = Naming::As;
                into = into
                    .parent()
                    .filter(|above| !above.as_os_str().is_empty())
                    .unwrap_or(Path::new("."));
            }
            if !hello.options.dry_run {
                std::fs::create_dir_all(into).map_err(|source| into_failure(into, source))?;
            }
            let place = match Directory::open(into) {
                Err(error)
                    if hello.options.dry_run && error.kind() == std::io::ErrorKind::NotFound =>
                {
                    None
                }
                other => Some(other.map_err(|source| into_failure(into, source))?),
            };
            Ok(TransferTask { hello, class, sources: Vec::new(), into: place })
        }
    }
}

fn into_failure(into: &Path, source: std::io::Error) -> Failure {
    let help = "give a writable folder, or a path where one can be created";
    Failure::io("cannot copy to the folder", &into.display().to_string(), help, source)
}

impl Flags {
    /// The far node's addresses and key, and this end's sockets.
    ///
    /// # Errors
    /// The node is not known, or the keys cannot be used.
    pub fn far(
        &self,
        node: &str,
        keys: &Keys,
        line: &LineFlags,
    ) -> Result<(Vec<SocketAddr>, Fingerprint, ClientSetup), Failure> {
        let session = SessionConfig { classes: self.share.tree()?, ..super::session() };
        far::far(
            FarName { known: &self.node, name: node },
            keys,
            line,
            OwnEnd { name: &self.name, session },
        )
    }

    /// The class of what this end sends.
    ///
    /// # Errors
    /// There is none of this name.
    pub fn own_class(&self, tree: &ClassTree) -> Result<ClassId, Failure> {
        self.share.find(tree, "a copy")
    }

    /// Where a copy with the node whose key is `peer` is shown.
    ///
    /// # Errors
    /// The receipts cannot be written.
    pub fn screen(&self, peer: Fingerprint) -> Result<Screen, Failure> {
        let receipts = match self.dry_run {
            true => None,
            false => Receipts::kept(self.receipts.as_deref())?,
        };
        let run = if self.dry_run { RunKind::DryRun } else { RunKind::Copy };
        Ok(Screen::new(self.json.into(), run, receipts, &peer.to_string()))
    }

    /// What the far end is told, but for what is copied.
    ///
    /// # Errors
    /// A pattern is none.
    pub fn hello(&self) -> Result<TransferHello, Failure> {
        let rule = |include| move |pattern: &String| Rule { include, pattern: pattern.clone() };
        let included = self.include.iter().map(rule(true));
        let rules: Vec<Rule> = included.chain(self.exclude.iter().map(rule(false))).collect();
        Selection::new(rules.clone())
            .map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))?;
        let options = Options {
            dry_run: self.dry_run,
            checksum: self.checksum,
            delete: false,
            keep: false,
            limit: self.limit.filter(|limit| *limit > Rate::ZERO),
            deadline: self.deadline,
            priority: self.share.priority,
        };
        let (class, target, sources) =
            (self.share.class.clone().unwrap_or_default(), RelPath::here(), Vec::new());
        let (direction, naming) = (TransferDirection::Put, Naming::Into);
        Ok(TransferHello { direction, options, class, naming, target, sources, rules })
    }
}
