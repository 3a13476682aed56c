//! `skyhaul stream --from … --to …`: the source's end.

use super::course::StreamRun;
use super::screen::{Screen, by_budget};
use crate::commands::classes::ClassFlags;
use crate::commands::far::{FarName, OwnEnd, far, ways};
use crate::commands::perf::keys::Keys;
use crate::commands::perf::line::LineFlags;
use crate::commands::signals;
use core::str::FromStr;
use skyhaul_exit::{Exit, Failure};
use skyhaul_streams::{FormatError, StreamFormat};
use skyhaul_streams_io::{FarSink, Holds, Options, SourcePace, SourceSpec, StreamSource, groups};
use skyhaul_transport::{ClassTree, SessionConfig};
use skyhaul_units::{ByteCount, Duration, Probability};
use std::io::Write;
use std::path::PathBuf;

/// The arguments of `skyhaul stream`.
#[derive(clap::Args)]
pub struct StreamArguments {
    /// The source: a file, `-`, `udp://HOST:PORT` (datagrams numbered as by VTP and jive5ab;
    /// `?plain` without numbers), `rtp://HOST:PORT` (`?codec=h264`, `&clock=90000`), `shm:/NAME`,
    /// `zero:RATE` or `vdif:RATE`.
    #[arg(long, value_name = "SOURCE", required = true)]
    from: Option<String>,
    /// The far node and the sink, which the far node must permit: a file (`{utc}` in its name
    /// becomes the time at which the stream begins), `-`, `udp://HOST:PORT`, `rtp://HOST:PORT`,
    /// `shm:/NAME` or `null`.
    #[arg(long, value_name = "NODE:SINK", required = true)]
    to: Option<String>,
    /// The far node: its name here, and its address. Repeat it with the same name for further
    /// addresses: the session uses all of them. Default: as in the address book.
    #[arg(long, value_name = "NAME=ADDR")]
    node: Vec<String>,
    /// The format: `vdif`, `mark5b` or `datagrams`. VDIF and Mark 5B are detected without this
    /// flag.
    #[arg(long, value_name = "NAME")]
    format: Option<String>,
    /// How much later than the fastest frames a frame can arrive at the sink.
    #[arg(long, value_name = "DURATION", default_value = "500 ms")]
    lateness: Duration,
    /// The share of frames that can be missing at the sink. Above it, the exit code is 1.
    #[arg(long, value_name = "SHARE")]
    budget: Option<Probability>,
    #[command(flatten)]
    pacing: PacingFlags,
    #[command(flatten)]
    share: ClassFlags,
    /// Writes the frames that are missing at the sink to this file, a line of JSON for each run of
    /// frames.
    #[arg(long, value_name = "FILE")]
    loss_map: Option<PathBuf>,
    /// This node's name, for the other end's log.
    #[arg(long, value_name = "NAME", default_value = "stream")]
    name: String,
    /// Prints events as lines of JSON to standard output.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// How fast the source is read.
#[derive(clap::Args)]
struct PacingFlags {
    /// How fast the source is read: `frames` by the times in its frames (files), `live` as it
    /// arrives, `line` as fast as the line carries it, or a rate.
    #[arg(long, value_name = "PACE")]
    pace: Option<String>,
    /// Frames of each thread in a second, if the first second of the stream does not show it.
    #[arg(long, value_name = "N")]
    frames_per_second: Option<u32>,
    /// Frames are sent in groups of at most this size; a lost group loses all its frames.
    #[arg(long, value_name = "SIZE", default_value = "64 KiB")]
    group: ByteCount,
}

/// Sends the stream to its end; an interrupt ends it in order. When the session is lost, a source
/// that can continues as a further stream.
///
/// # Errors
/// The command line or the source cannot be used, the far node does not answer or refuses, or more
/// was lost than the budget.
pub fn run(command: &StreamArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let spec: SourceSpec = command
        .from
        .as_deref()
        .unwrap_or_default()
        .parse()
        .map_err(|error| super::unread(&error))?;
    let (node, sink) = command.target()?;
    // An error in the name of the far sink is reported before connecting.
    let sink: FarSink = sink.parse().map_err(|error| super::unread(&error))?;
    let format = command.format()?;
    let pace = command.pace()?;
    spec.check(sink.spec(), format, pace)
        .map_err(|sentence| Failure::from_sentence(Exit::Usage, sentence))?;
    let classes = command.share.tree()?;
    let options = command.options(&spec, format, &classes)?;
    let session = SessionConfig { classes, ..super::session() };
    let (remotes, peer, setup) = far(
        FarName { known: &command.node, name: node },
        &command.keys,
        &command.line,
        OwnEnd { name: &command.name, session },
    )?;
    let course = StreamRun {
        spec,
        format,
        sink,
        options,
        node: node.to_owned(),
        ways: ways(&remotes),
        peer,
        setup,
    };
    let (source, stop) = (course.open()?, signals::stop_flag()?);
    let map = command.loss_map.as_deref().map(super::screen::create).transpose()?;
    let screen = Screen::new(command.json.into(), command.budget);
    let (summary, lost) = course.run(source, &stop, &screen)?;
    screen.finish(&summary, map, out)?;
    match command.budget.filter(|_| lost > 0) {
        None => by_budget(&summary, command.budget),
        Some(budget) => {
            let what = format!(
                "the session was lost {lost} times: losses of the earlier streams are in no account"
            );
            let help = format!(
                "the budget of {budget} cannot be verified; the far end's accounts list the \
                content of each file"
            );
            Err(Failure::new(Exit::Result, &what, &help))
        }
    }
}

impl StreamArguments {
    /// The node and the sink.
    fn target(&self) -> Result<(&str, &str), Failure> {
        let to = self.to.as_deref().unwrap_or_default();
        to.split_once(':').filter(|(node, sink)| !node.is_empty() && !sink.is_empty()).ok_or_else(
            || {
                let what = format!("`{to}` is not a far node with a sink");
                Failure::new(
                    Exit::Usage,
                    &what,
                    "write it like centre:pass17.vdif, centre:udp://10.0.0.5:2630 or centre:null",
                )
            },
        )
    }

    fn format(&self) -> Result<Option<StreamFormat>, Failure> {
        let read = |name: &String| {
            StreamFormat::from_str(name).map_err(|error: FormatError| {
                Failure::from_sentence(Exit::Usage, &format!("`{name}` is {error}"))
            })
        };
        self.format.as_ref().map(read).transpose()
    }

    /// The pace that was given.
    fn pace(&self) -> Result<Option<SourcePace>, Failure> {
        let pace = self.pacing.pace.as_deref().map(str::parse::<SourcePace>).transpose();
        pace.map_err(|error| Failure::from_sentence(Exit::Usage, &error.to_string()))
    }

    fn options(
        &self,
        spec: &SourceSpec,
        format: Option<StreamFormat>,
        classes: &ClassTree,
    ) -> Result<Options, Failure> {
        let pace = self.pace()?.unwrap_or_else(|| StreamSource::pace(spec));
        if self.pacing.frames_per_second == Some(0) {
            let what = "a stream of 0 frames per second is not possible";
            return Err(Failure::new(
                Exit::Usage,
                what,
                "give --frames-per-second 1 at least, or omit it",
            ));
        }
        let packing = groups(self.pacing.group).ok_or_else(|| {
            Failure::new(
                Exit::Usage,
                &format!("groups of {} are not possible", self.pacing.group),
                "give 1 B to 8 MiB",
            )
        })?;
        let frames_per_second = match (self.pacing.frames_per_second, spec, pace) {
            (None, SourceSpec::File(path), SourcePace::Frames) => Some(learnt(path, format)?),
            (given, ..) => given,
        };
        let class = self.share.find(classes, "a stream")?;
        let priority = self.share.priority;
        Ok(Options { lateness: self.lateness, pace, frames_per_second, packing, priority, class })
    }
}

/// Frames of a thread in a second, of a file that is played by them.
fn learnt(path: &std::path::Path, format: Option<StreamFormat>) -> Result<u32, Failure> {
    let found = StreamSource::frames_per_second(path, format).map_err(|source| {
        let help = "give an existing file that this user can read";
        Failure::io("the source cannot be read", &path.display().to_string(), help, source)
    })?;
    found.ok_or_else(|| {
        let name = path.display();
        let (what, help) = match StreamSource::holds(path, format) {
            Ok(Holds::Mark4) => (
                format!("{name} is a Mark 4 recording; streams carry VDIF and Mark 5B only"),
                "copy it with `skyhaul cp`, or convert it to VDIF first",
            ),
            Ok(Holds::Unknown) => (
                format!("{name} has neither VDIF nor Mark 5B frames"),
                "give a recording that has, or copy the file with `skyhaul cp`",
            ),
            Ok(Holds::Frames) | Err(_) => (
                format!("the recording rate of {name} cannot be found from its first frames"),
                "give --frames-per-second, or --pace with a rate, or --pace line",
            ),
        };
        Failure::new(Exit::Usage, &what, help)
    })
}
