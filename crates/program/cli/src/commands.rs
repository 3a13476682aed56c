//! The subcommands, one a file.

mod centre;
mod classes;
mod config;
mod decode;
mod demo;
mod far;
mod files;
mod forward;
mod gaps;
mod generate;
mod keygen;
mod lab;
mod one_way;
mod packets;
mod path;
mod perf;
mod probe;
mod rate;
mod rdr;
mod relay;
mod replay;
mod signals;
mod stamped;
mod station;
mod status;
mod stream;
mod tune;
mod why;

use crate::failure::Failure;
use std::io::Write;

/// What the program can do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Receives from stations, keeps it, and writes Level-0 products.
    Centre(centre::CentreCommand),
    /// Checks and explains configuration files.
    #[command(subcommand)]
    Config(config::Config),
    /// Copies files and folders to or from a far node: whole, verified, and going on after whatever
    /// interrupted it.
    Cp(Box<files::copy::Cp>),
    /// Decodes capture files to frames and packets, with the full account.
    Decode(decode::Decode),
    /// Runs the whole chain on this machine over an emulated long line, and judges the result.
    Demo(demo::Demo),
    /// The far end of copying files.
    #[command(subcommand)]
    Files(files::FilesCommand),
    /// Carries applications' connections to a far site and from there over one session.
    Forward(Box<forward::ForwardCommand>),
    /// Shows what is missing at a running centre, and what is being done about it.
    Gaps(gaps::GapsCommand),
    /// Simulates a spacecraft: a downlink of any mission, with errors if wanted, and what can be
    /// got out of it.
    Generate(generate::Generate),
    /// Makes a node's private key and prints its fingerprint.
    Keygen(keygen::Keygen),
    /// Runs experiments over emulated lines in virtual time, and judges them.
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Shows what is in packet files, or writes it as JSON, comma-separated values or Parquet.
    Packets(packets::PacketsCommand),
    /// Lists, adds, removes the paths of a running station, and tells it what is known of them
    /// beforehand.
    #[command(subcommand)]
    Path(path::PathCommand),
    /// Sends and receives files over a path from which nothing ever comes back: a data diode, a
    /// broadcast.
    #[command(subcommand)]
    OneWay(one_way::OneWay),
    /// Measures what a line carries, with the transport that the nodes use.
    #[command(subcommand)]
    Perf(perf::Perf),
    /// Measures a line with plain datagrams: round trip, rate, loss, order, path MTU, and where
    /// datagrams are dropped.
    Probe(probe::Probe),
    /// Makes, explains and takes apart JPSS Raw Data Records (HDF5).
    #[command(subcommand)]
    Rdr(rdr::Rdr),
    /// Relays UDP over an emulated line: rate, delay, loss, queue. Needs no root.
    Relay(relay::RelayCommand),
    /// Plays what a station recorded, or a capture file, with its original timing or at any rate.
    Replay(replay::Replay),
    /// Captures downlinks and sends them to its centre.
    Station(station::Station),
    /// Asks a running station or centre how it is.
    Status(status::Status),
    /// Carries a constant-rate stream (VDIF, Mark 5B, datagrams) to a far node: each frame in time,
    /// or an invalid one for it.
    Stream(Box<stream::StreamCommand>),
    /// Makes a far folder like one here: once, or after every change.
    Sync(Box<files::mirror::Sync>),
    /// Says what the settings of this host allow over a line, what the line needs, and how to
    /// change them.
    Tune(tune::Tune),
    /// Says what holds a transfer or a line back, how sure that is, on what evidence, and what to
    /// do about it.
    Why(why::WhyCommand),
}

impl Command {
    /// Whether it runs until it is stopped: what it writes must not hold it up.
    pub fn is_service(&self) -> bool {
        match self {
            Self::Centre(_)
            | Self::Station(_)
            | Self::Forward(_)
            | Self::Files(_)
            | Self::Stream(_)
            | Self::Relay(_)
            | Self::Perf(perf::Perf::Serve(_))
            | Self::OneWay(one_way::OneWay::Receive(_)) => true,
            Self::Probe(probe) => probe.is_service(),
            Self::Sync(sync) => sync.is_service(),
            _ => false,
        }
    }
}

/// Carries out `command`; its result goes to `out`.
///
/// # Errors
/// What could not be done, where, and what to do about it.
pub fn run(command: Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Centre(command) => centre::run(&command),
        Command::Config(command) => config::run(command, out),
        Command::Cp(command) => files::copy::run(&command, out),
        Command::Decode(command) => decode::run(&command, out),
        Command::Demo(command) => demo::run(&command, out),
        Command::Files(command) => files::run(&command, out),
        Command::Forward(command) => forward::run(&command, out),
        Command::Gaps(command) => gaps::run(&command, out),
        Command::Generate(command) => generate::run(&command, out),
        Command::Keygen(command) => keygen::run(&command, out),
        Command::Lab(command) => lab::run(&command, out),
        Command::Packets(command) => packets::run(&command, out),
        Command::Path(command) => path::run(command, out),
        Command::OneWay(command) => one_way::run(command, out),
        Command::Perf(command) => perf::run(command, out),
        Command::Probe(command) => probe::run(command, out),
        Command::Rdr(command) => rdr::run(command, out),
        Command::Relay(command) => relay::run(&command, out),
        Command::Replay(command) => replay::run(&command, out),
        Command::Station(command) => station::run(&command),
        Command::Status(command) => status::run(&command, out),
        Command::Stream(command) => stream::run(&command, out),
        Command::Sync(command) => files::mirror::run(&command, out),
        Command::Tune(command) => tune::run(&command, out),
        Command::Why(command) => why::run(&command, out),
    }
}
