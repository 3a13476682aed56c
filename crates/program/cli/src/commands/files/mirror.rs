//! `skyhaul sync`: mirrors a local folder to a far one, once or after every change.

use super::copy::Flags;
use super::course::{FarNode, FileTransfer};
use super::screen::{TransferRole, TransferVerdict};
use super::spec::Named;
use crate::commands::far::ways;
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::{signals, stamped};
use skyhaul_exit::{Exit, Failure};
use skyhaul_files::wire::TransferHello;
use skyhaul_files_io::{Changes, TransferTask, TreeWatch};
use skyhaul_net::Clock;
use skyhaul_transport::ClassId;
use skyhaul_units::Duration;
use std::ffi::OsString;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

/// The arguments of `skyhaul sync`.
#[derive(clap::Args)]
#[command(after_help = "\
        The content of SRC is copied into NODE:DST, without the folder SRC itself. After an \
        interruption, the same command resumes. docs/how-to/files.md says more.

Example:
  skyhaul sync /data/products far:products --delete --node far=198.51.100.1:4740 --key here.key \
  --peer SHA256:…
  skyhaul sync /data/products far:products --watch --node far=198.51.100.1:4740 --key here.key \
  --peer SHA256:…")]
pub struct Sync {
    /// The local folder.
    #[arg(value_name = "SRC")]
    source: PathBuf,
    /// The far folder: `NODE:DST`, relative to the folder that the node serves. It is created if it
    /// does not exist.
    #[arg(value_name = "NODE:DST")]
    target: OsString,
    /// Deletes far files that do not exist here, except those that --exclude matches.
    #[arg(long)]
    delete: bool,
    /// Continues, and copies each change, until interrupted.
    #[arg(long)]
    watch: bool,
    #[command(flatten)]
    flags: Flags,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

impl Sync {
    /// Whether it runs until it is stopped.
    pub const fn is_service(&self) -> bool {
        self.watch
    }
}

/// Mirrors once, or until interrupted.
///
/// # Errors
/// As of copying; the folder cannot be watched.
pub fn run(command: &Sync, out: &mut dyn Write) -> Result<(), Failure> {
    let Named::There { node, path, .. } = Named::read(&command.target)? else {
        let what = format!("`{}` is not a far folder", command.target.display());
        return Err(Failure::new(Exit::Usage, &what, "write it like NODE:DST"));
    };
    if !command.source.is_dir() {
        let what = format!("`{}` is not a folder", command.source.display());
        return Err(Failure::new(
            Exit::Environment,
            &what,
            "give the folder to mirror; `skyhaul cp` copies files",
        ));
    }
    let mut hello = command.flags.hello()?;
    (hello.target, hello.options.delete) = (path, command.delete);
    let stop = signals::stop_flag()?;
    // The watch begins before the first pass, so that no change is missed.
    let watch = command.watch.then(|| {
        TreeWatch::new(&command.source).map_err(|error| unwatched(&command.source, error))
    });
    let mirror = Mirror { command, node, hello, stop: &stop };
    match watch.transpose()? {
        None => mirror.pass(&Changes::All, out)?.judge(),
        Some(watch) => mirror.follow(watch, out),
    }
}

struct Mirror<'a> {
    command: &'a Sync,
    node: String,
    hello: TransferHello,
    stop: &'a AtomicBool,
}

impl Mirror<'_> {
    /// Goes through what changed, once.
    fn pass(&self, changes: &Changes, out: &mut dyn Write) -> Result<TransferVerdict, Failure> {
        let Sync { flags, keys, line, watch, .. } = self.command;
        let (remotes, peer, setup) = flags.far(&self.node, keys, line)?;
        let call = FarNode { setup, ways: ways(&remotes), peer, node: self.node.clone() };
        let screen = flags.screen(peer)?;
        let again = *watch && *changes != Changes::All;
        let class = flags.own_class(&call.setup.session.classes)?;
        let course =
            FileTransfer { call, again: true, patient: again, role: TransferRole::Sending };
        course.run(self.stop, &|_| self.task(changes, class), screen, out)
    }

    fn task(&self, changes: &Changes, class: ClassId) -> Result<TransferTask, Failure> {
        let root = &self.command.source;
        let sources = changes.sources(root).map_err(|error| {
            let sentence = format!("{} cannot be copied: {error}", root.display());
            Failure::from_sentence(Exit::Environment, &sentence)
        })?;
        Ok(TransferTask { hello: self.hello.clone(), class, sources, into: None })
    }

    /// Copies changes until interrupted. A file that could not be copied is tried again later.
    fn follow(&self, mut watch: TreeWatch, out: &mut dyn Write) -> Result<(), Failure> {
        let clock = Clock::start();
        let mut changes = Changes::All;
        let mut is_first = true;
        loop {
            let mut retry = None;
            match self.pass(&changes, out).and_then(TransferVerdict::judge) {
                Ok(()) => {}
                Err(failure) if failure.exit() == Exit::Interrupted => return Ok(()),
                Err(failure) if is_first && failure.exit() == Exit::Usage => return Err(failure),
                Err(failure) => {
                    // The reason was printed; the mirror goes on.
                    stamped::say(&failure.to_string());
                    retry = Some(clock.now() + RETRY);
                }
            }
            is_first = false;
            changes = loop {
                if self.stop.load(Ordering::Relaxed) {
                    return Ok(());
                }
                let found = self.quiet(&mut watch)?;
                match found {
                    Changes::None if retry.is_some_and(|at| clock.now() >= at) => {
                        break Changes::All;
                    }
                    Changes::None => {}
                    // Earlier failures are retried together with the new changes.
                    _ if retry.is_some() => break Changes::All,
                    found => break found,
                }
            };
        }
    }

    /// What changed, once nothing has for a moment: who writes a file often writes the next one
    /// too.
    fn quiet(&self, watch: &mut TreeWatch) -> Result<Changes, Failure> {
        let mut all = Changes::None;
        for _ in 0..LOOKS_MAX {
            std::thread::park_timeout(LOOK);
            let found = watch.changes().map_err(|error| unwatched(&self.command.source, error))?;
            if found == Changes::None || self.stop.load(Ordering::Relaxed) {
                break;
            }
            all = all.and(found);
        }
        Ok(all)
    }
}

fn unwatched(folder: &Path, source: std::io::Error) -> Failure {
    let help = "raise fs.inotify.max_user_watches (sysctl) above the number of folders, or run it \
               periodically without --watch";
    Failure::io("the folder cannot be watched", &folder.display().to_string(), help, source)
}

/// Between two looks at what changed.
const LOOK: std::time::Duration = std::time::Duration::from_millis(200);
/// Changes that do not end are copied all the same: after 2 s.
const LOOKS_MAX: usize = 10;
/// What could not be copied is tried again.
const RETRY: Duration = Duration::from_secs(60);
