//! The subcommands, one a file.

mod alarms;
mod archive;
mod audit;
mod book;
mod catalogue;
mod classes;
mod completions;
mod config;
mod decode;
mod deliveries;
mod demo;
mod destination;
mod emulate;
mod events;
mod far;
mod files;
mod forward;
mod gaps;
mod generate;
mod history;
mod ip;
mod key;
mod keygen;
mod knock;
mod lab;
mod log_format;
mod man;
mod node;
mod node_socket;
mod nodes;
mod one_way;
mod output;
mod packets;
mod pair;
mod passes;
mod password;
mod path;
mod pdr;
mod perf;
mod probe;
mod rate;
mod rdr;
mod replay;
mod report;
mod reprocess;
mod run;
mod secret_file;
mod serve;
mod service;
mod signals;
mod stamped;
mod status;
mod stream;
mod subscription;
mod tune;
mod upgrade;
mod web;
mod why;

use skyhaul_exit::Failure;
use std::io::Write;

/// What the program can do.
#[derive(clap::Subcommand)]
pub enum Command {
    /// Shows what an operator must act on, and notes who does.
    #[command(subcommand)]
    Alarms(alarms::AlarmsCommand),
    /// Shows and removes what is over its time; holds products.
    #[command(subcommand)]
    Archive(archive::ArchiveCommand),
    /// Shows who ordered what at a node, and checks that record.
    #[command(subcommand)]
    Audit(audit::AuditCommand),
    /// Prints the completion of command lines for a shell.
    Completions(completions::Completions),
    /// Checks and explains configuration files.
    #[command(subcommand)]
    Config(config::Config),
    /// Searches and exports what a running node has.
    #[command(subcommand)]
    Catalogue(catalogue::CatalogueCommand),
    /// Copies files and folders to or from a far node.
    ///
    /// Every file arrives complete and verified. An interrupted copy resumes where it stopped.
    Cp(Box<files::copy::Cp>),
    /// Decodes capture files to frames and packets, with a full account.
    Decode(decode::Decode),
    /// Shows which destination has what, by whose proof; sends again.
    #[command(subcommand)]
    Deliveries(deliveries::DeliveriesCommand),
    /// Runs the whole chain on this machine over an emulated long line.
    ///
    /// Compares the products with what was sent, and measures the transfer.
    Demo(demo::Demo),
    /// Shows destinations of products, and tests what they can do.
    #[command(subcommand)]
    Destination(destination::DestinationCommand),
    /// Serves one folder to `cp` and `sync` of other nodes.
    #[command(subcommand)]
    Files(files::FilesCommand),
    /// Shows what happened at a running node, and follows it.
    Events(events::EventsCommand),
    /// Shows the figures of a running node over time.
    History(history::HistoryCommand),
    /// Carries applications' TCP and UDP over one session.
    ///
    /// Applications connect to local ports, to a SOCKS proxy, or through a router's rules.
    /// `skyhaul forward serve` is the far end.
    Forward(Box<forward::ForwardCommand>),
    /// Shows missing data at a running node, and how it is recovered.
    Gaps(gaps::GapsCommand),
    /// Simulates a spacecraft's downlink, with errors if requested.
    ///
    /// Also tells what a receiver can recover from it.
    Generate(generate::Generate),
    /// Shows and changes the key of a running node; revokes keys.
    #[command(subcommand)]
    Key(key::KeyCommand),
    /// Makes a node's private key and prints its fingerprint.
    Keygen(keygen::Keygen),
    /// Runs experiments over emulated lines and checks their figures.
    #[command(subcommand)]
    Lab(lab::Lab),
    /// Writes the manual pages of all commands and files.
    Man(man::WriteManual),
    /// Keeps the address book: far nodes, their addresses and keys.
    #[command(subcommand)]
    Node(node::NodeCommand),
    /// Shows what other nodes report of themselves.
    Nodes(nodes::Nodes),
    /// Shows packet files, or exports them as JSON, CSV or Parquet.
    Packets(packets::PacketsCommand),
    /// Makes two nodes known to each other by a short code.
    ///
    /// Both ends then have each other's key and name in their address books.
    Pair(pair::Pair),
    /// Shows planned passes at a running node, and what came of them.
    Passes(passes::Passes),
    /// Lists and changes the paths of a running node.
    #[command(subcommand)]
    Path(path::PathCommand),
    /// Checks delivery records and notices as the other side does.
    #[command(subcommand)]
    Pdr(pdr::PdrCommand),
    /// Sends and receives files without a return path (data diode).
    #[command(subcommand)]
    OneWay(one_way::OneWay),
    /// Measures the capacity of a line with the nodes' own transport.
    #[command(subcommand)]
    Perf(perf::Perf),
    /// Measures a line with datagrams: delay, rate, loss, path MTU.
    ///
    /// Measures each direction, and finds where datagrams are dropped.
    Probe(probe::Probe),
    /// Makes, explains and unpacks JPSS Raw Data Records (HDF5).
    #[command(subcommand)]
    Rdr(rdr::Rdr),
    /// Passes UDP over an emulated line: rate, delay, loss, queue.
    ///
    /// Needs no root.
    Emulate(emulate::EmulateCommand),
    /// Plays a station's recording or a capture file.
    ///
    /// Plays it with its original timing or at any rate.
    Replay(replay::Replay),
    /// Shows which products were on time in a week, and why not.
    Report(report::ReportArguments),
    Reprocess(reprocess::ReprocessArguments),
    /// Runs a node: captures, sends and receives, as its file says.
    Run(run::RunNode),
    /// Keeps the accounts of customers who come for products.
    #[command(subcommand)]
    Serve(serve::ServeCommand),
    /// Shows the state of a running node.
    Status(status::Status),
    /// Carries a constant-rate stream: VDIF, Mark 5B, datagrams.
    ///
    /// Each frame arrives in time, or an invalid frame takes its place. `skyhaul stream serve` is
    /// the far end.
    Stream(Box<stream::StreamCommand>),
    /// Says what a subscription takes, and delivers earlier products.
    #[command(subcommand)]
    Subscription(subscription::SubscriptionCommand),
    /// Mirrors a local folder to a far node, once or continuously.
    Sync(Box<files::mirror::Sync>),
    /// Compares this host's settings with the needs of a line.
    ///
    /// Shows how to change the settings that are too small.
    Tune(tune::Tune),
    /// Lets a running node go on in a new process, in mid-pass.
    Upgrade(upgrade::Upgrade),
    /// Keeps the users and tokens of a node's page.
    #[command(subcommand)]
    Web(web::WebCommand),
    /// Finds what limits a transfer or a line.
    ///
    /// Prints the cause, its confidence, the evidence and the remedy.
    Why(why::WhyCommand),
}

impl Command {
    /// Whether it runs until it is stopped. Its output then goes through a thread, so that a slow
    /// reader does not stall it.
    pub fn is_service(&self) -> bool {
        match self {
            Self::Run(_)
            | Self::Forward(_)
            | Self::Files(_)
            | Self::Stream(_)
            | Self::Emulate(_)
            | Self::Perf(perf::Perf::Serve(_))
            | Self::OneWay(one_way::OneWay::Receive(_)) => true,
            Self::Probe(probe) => probe.is_service(),
            Self::Sync(sync) => sync.is_service(),
            _ => false,
        }
    }
}

/// Carries out `command`; its result goes to `out`. `program` declares all commands, for those that
/// describe them.
///
/// # Errors
/// What could not be done, where, and what to do about it.
pub fn run(command: Command, program: clap::Command, out: &mut dyn Write) -> Result<(), Failure> {
    match command {
        Command::Alarms(command) => alarms::run(&command, out),
        Command::Archive(command) => archive::run(&command, out),
        Command::Audit(command) => audit::run(&command, out),
        Command::Completions(command) => completions::run(&command, program, out),
        Command::Config(command) => config::run(command, out),
        Command::Catalogue(command) => catalogue::run(&command, out),
        Command::Cp(command) => files::copy::run(&command, out),
        Command::Decode(command) => decode::run(&command, out),
        Command::Deliveries(command) => deliveries::run(&command, out),
        Command::Demo(command) => demo::run(&command, out),
        Command::Destination(command) => destination::run(&command, out),
        Command::Events(command) => events::run(&command, out),
        Command::History(command) => history::run(&command, out),
        Command::Files(command) => files::run(&command, out),
        Command::Forward(command) => forward::run(&command, out),
        Command::Gaps(command) => gaps::run(&command, out),
        Command::Generate(command) => generate::run(&command, out),
        Command::Key(command) => key::run(&command, out),
        Command::Keygen(command) => keygen::run(&command, out),
        Command::Lab(command) => lab::run(&command, out),
        Command::Man(command) => man::run(&command, program, out),
        Command::Node(command) => node::run(&command, out),
        Command::Nodes(command) => nodes::run(&command, out),
        Command::Packets(command) => packets::run(&command, out),
        Command::Pair(command) => pair::run(&command, out),
        Command::Passes(command) => passes::run(&command, out),
        Command::Path(command) => path::run(command, out),
        Command::Pdr(command) => pdr::run(&command, out),
        Command::OneWay(command) => one_way::run(command, out),
        Command::Perf(command) => perf::run(command, out),
        Command::Probe(command) => probe::run(command, out),
        Command::Rdr(command) => rdr::run(command, out),
        Command::Emulate(command) => emulate::run(&command, out),
        Command::Replay(command) => replay::run(&command, out),
        Command::Report(command) => report::run(&command, out),
        Command::Reprocess(command) => reprocess::run(&command, out),
        Command::Run(command) => run::run(&command),
        Command::Serve(command) => serve::run(&command, out),
        Command::Status(command) => status::run(&command, out),
        Command::Stream(command) => stream::run(&command, out),
        Command::Subscription(command) => subscription::run(&command, out),
        Command::Sync(command) => files::mirror::run(&command, out),
        Command::Tune(command) => tune::run(&command, out),
        Command::Upgrade(command) => upgrade::run(&command, out),
        Command::Web(command) => web::run(&command, out),
        Command::Why(command) => why::run(&command, out),
    }
}
