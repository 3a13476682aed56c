//! One pass: starts and joins both nodes, plays the recordings, and waits until all data is on the
//! centre's disk.

use super::backup::{Backup, BackupReport, PassPart};
use super::child::NodeProcess;
use super::customers::{Customers, DeliveriesReport};
use super::folder::{BACKUP, Folder};
use super::line::{DemoLine, LineFacts};
use super::page::{self, PageHold};
use super::player::Player;
use super::progress::{DemoProgress, DemoStatus, RateMeter, Work};
use super::screen::Screen;
use super::source::PassSource;
use super::truth::ExpectedContact;
use super::wait::pause;
use skyhaul_emulator::proxy::ProxyCounters;
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_node::status::{CentreStatus, ContactState, LineState, NodeStatus, StationStatus, ask};
use skyhaul_units::{ByteCount, Duration, Instant, Rate};
use std::io::Write;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How a demonstration runs.
#[derive(Debug, Clone, Copy)]
pub struct PassPlan {
    /// The line.
    pub facts: LineFacts,
    /// At which rate each recording is played.
    pub downlink_rate: Rate,
    /// The same seed loses the same packets.
    pub seed: u64,
}

/// Its result.
#[derive(Debug)]
pub struct PassResult {
    /// The station's last words.
    pub station: StationStatus,
    /// The centre's last words.
    pub centre: CentreStatus,
    /// What became of the backup centre.
    pub backup: BackupReport,
    /// The inputs, with what had to come out.
    pub passes: Vec<(String, ExpectedContact)>,
    /// What the line did.
    pub proxy: ProxyCounters,
    /// The delivered bytes, and the time that they took.
    pub work: Work,
    /// The line as planned.
    pub facts: LineFacts,
    /// How long the longest pass is at the downlink's rate.
    pub longest_pass: Duration,
    /// What was delivered to the consumers.
    pub deliveries: DeliveriesReport,
    /// Faults that are not differences of the data.
    pub troubles: Vec<String>,
}

/// What a demonstration is made of.
pub struct DemoSetting<'a> {
    /// Its folder.
    pub folder: &'a Folder,
    /// How it runs.
    pub plan: PassPlan,
    /// Whether it is to end.
    pub interrupted: Arc<AtomicBool>,
    /// Who gets the products.
    pub customers: Customers,
    /// What ends the nodes.
    pub hold: PageHold,
}

/// The nodes and the lines between them. Dropped, they end in this order.
pub struct DemoNodes<'a> {
    folder: &'a Folder,
    plan: PassPlan,
    clock: Clock,
    interrupted: Arc<AtomicBool>,
    station: NodeProcess,
    centre: NodeProcess,
    line: DemoLine,
    backup: Backup<'a>,
    customers: Customers,
    hold: PageHold,
    inputs: Vec<(String, SocketAddr)>,
}

impl<'a> DemoNodes<'a> {
    /// Starts two centres, a line to each, and a station with `inputs` inputs, and waits until they
    /// are joined.
    ///
    /// # Errors
    /// One of them does not start, or the line does not open in time.
    pub fn set(setting: DemoSetting<'a>, inputs: usize) -> Result<Self, Failure> {
        let DemoSetting { folder, plan, interrupted, mut customers, hold } = setting;
        let clock = Clock::start();
        folder.write_centre(customers.tables())?;
        let mut centre = NodeProcess::start("centre", folder)?;
        let patience = Patience { clock, until: clock.now() + START, interrupted: &interrupted };
        let address = patience.wait("the centre does not listen", || {
            centre.check()?;
            Ok(centre_status(folder, "centre").and_then(|status| status.address.parse().ok()))
        })?;
        customers.join(folder, address)?;
        let line = DemoLine::lay(address, plan.facts, plan.seed)?;
        folder.write_backup(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        let mut spare = NodeProcess::start(BACKUP, folder)?;
        let address = patience.wait("the backup centre does not listen", || {
            spare.check()?;
            Ok(centre_status(folder, BACKUP).and_then(|status| status.address.parse().ok()))
        })?;
        // It comes back at the same address.
        folder.write_backup(address)?;
        let spare_line = DemoLine::lay(address, plan.facts, plan.seed.wrapping_add(1))?;
        let lines = [line.address(), spare_line.address()];
        let names: Vec<String> = (1..=inputs).map(|number| format!("antenna-{number}")).collect();
        folder.write_station(lines, plan.facts.rate, &names)?;
        let mut station = NodeProcess::start("station", folder)?;
        let until = clock.now() + START + plan.facts.rtt * ROUND_TRIPS;
        let patience = Patience { until, ..patience };
        let inputs = patience.wait("the station's line does not open", || {
            centre.check()?;
            station.check()?;
            Ok(station_status(folder).and_then(|status| ready(&status)))
        })?;
        let backup = Backup::new(folder, spare, spare_line);
        let nodes = Self {
            folder,
            plan,
            clock,
            interrupted,
            station,
            centre,
            line,
            backup,
            customers,
            hold,
            inputs,
        };
        Ok(nodes)
    }

    /// Writes where browsers see the nodes.
    ///
    /// # Errors
    /// Standard output takes no more.
    pub fn write_pages(&self, out: &mut dyn Write) -> Result<(), Failure> {
        for name in ["centre", "station"] {
            if let Some(address) = page::address(&self.folder.socket(name)) {
                writeln!(out, "The {name} shows itself at {address}")?;
            }
        }
        Ok(out.flush()?)
    }

    /// Plays `sources`, one to each input, until everything is on the centre's disk, or nothing
    /// more can be expected; then ends both nodes.
    ///
    /// # Errors
    /// A node ended by itself, or the demonstration was interrupted.
    pub fn play(
        mut self,
        sources: Vec<PassSource>,
        screen: &mut Screen,
        out: &mut dyn Write,
    ) -> Result<PassResult, Failure> {
        let totals: Vec<ByteCount> = sources.iter().map(PassSource::left).collect();
        let players = sources.into_iter().zip(&self.inputs);
        let players = players
            .map(|(source, (_, input))| Player::start(source, *input, self.plan.downlink_rate));
        let players = players.collect::<Result<Vec<_>, Failure>>()?;
        let begun = self.clock.now();
        let longest = totals.iter().copied().max().unwrap_or(ByteCount::ZERO);
        let longest_pass = self.plan.downlink_rate.time_for(longest);
        let total: ByteCount = totals.iter().copied().sum();
        // Everything crosses the line twice.
        let deadline = begun + longest_pass + self.time_after(total + total);
        let mut meter = RateMeter::default();
        let (station, centre, is_complete) = loop {
            let (station, centre) = self.look()?;
            let now = self.clock.now();
            meter.look(now, &station, self.line.counters().up.link.forwarded_bytes);
            let played: Vec<_> =
                players.iter().map(Player::played).zip(totals.iter().copied()).collect();
            self.backup.look(now, part_of(&played))?;
            let backup = self.backup.progress(&station);
            let nodes = DemoStatus { station: &station, centre: &centre, backup };
            let progress = DemoProgress::new(now.since(begun), &nodes, &played, meter.rate());
            screen.show(now, &progress, out)?;
            let is_complete = players.iter().all(Player::has_ended)
                && is_complete(&self.inputs, &station, &centre)
                && self.backup.is_complete(&station, centre_status(self.folder, BACKUP).as_ref())
                && self.customers.has_all(self.folder);
            if is_complete || now >= deadline {
                screen.show_last(&progress, out)?;
                break (station, centre, is_complete);
            }
            pause(LOOK);
        };
        if self.hold == PageHold::Enter && is_complete {
            screen.end();
            page::wait_for_enter(&self.interrupted, out)?;
        }
        let mut troubles = Vec::new();
        if !is_complete {
            let waited = deadline.since(begun);
            troubles.push(format!(
                "not everything had arrived after {waited}: {}",
                what_waits(&station, &centre)
            ));
        }
        let proxy = self.line.counters();
        let mut passes = Vec::new();
        for (player, (input, _)) in players.into_iter().zip(&self.inputs) {
            if player.has_ended() {
                passes.push((input.clone(), player.truth()?));
            } else {
                troubles.push(format!("{input}: the station did not read the whole pass"));
            }
        }
        let (facts, work) = (self.plan.facts, meter.work());
        let deliveries = self.customers.report(self.folder, &mut troubles);
        let backup = self.end(begun, &mut troubles);
        Ok(PassResult {
            station,
            centre,
            backup,
            passes,
            proxy,
            work,
            facts,
            longest_pass,
            deliveries,
            troubles,
        })
    }

    /// The status of both nodes.
    fn look(&mut self) -> Result<(StationStatus, CentreStatus), Failure> {
        let until = self.clock.now() + SILENCE;
        let patience = Patience { clock: self.clock, until, interrupted: &self.interrupted };
        patience.wait("a node does not answer", || {
            self.station.check()?;
            self.centre.check()?;
            self.customers.check()?;
            Ok(station_status(self.folder).zip(centre_status(self.folder, "centre")))
        })
    }

    /// How long everything may take after the last bit: all of it over the line again, many round
    /// trips, and the disk.
    fn time_after(&self, total: ByteCount) -> Duration {
        self.plan.facts.goodput_limit().time_for(total) + self.plan.facts.rtt * ROUND_TRIPS + START
    }

    fn end(mut self, begun: Instant, troubles: &mut Vec<String>) -> BackupReport {
        for (name, node) in [("station", &mut self.station), ("centre", &mut self.centre)] {
            match node.end() {
                Some(status) if status.success() => {}
                Some(status) => {
                    troubles.push(format!("the {name} was told to stop and ended with {status}"));
                }
                None => {
                    troubles.push(format!("the {name} was told to stop, did not, and was killed"));
                }
            }
        }
        self.customers.end(troubles);
        self.backup.end(begun, troubles)
    }
}

/// Waits for something that another process does.
struct Patience<'a> {
    clock: Clock,
    until: Instant,
    interrupted: &'a AtomicBool,
}

impl Patience<'_> {
    fn wait<T>(
        &self,
        trouble: &str,
        mut probe: impl FnMut() -> Result<Option<T>, Failure>,
    ) -> Result<T, Failure> {
        loop {
            if self.interrupted.load(Ordering::Relaxed) {
                let help = "start it again; what was written is in its folder";
                return Err(Failure::new(
                    Exit::Interrupted,
                    "the demonstration was interrupted",
                    help,
                ));
            }
            if let Some(found) = probe()? {
                return Ok(found);
            }
            if self.clock.now() >= self.until {
                let help = "read centre.log and station.log in the demonstration's folder";
                return Err(Failure::new(Exit::Environment, trouble, help));
            }
            pause(LOOK);
        }
    }
}

/// A node that starts, or is busy for a moment, does not answer.
fn station_status(folder: &Folder) -> Option<StationStatus> {
    match ask(&folder.socket("station")) {
        Ok(NodeStatus { station, .. }) => station,
        Err(_) => None,
    }
}

fn centre_status(folder: &Folder, name: &str) -> Option<CentreStatus> {
    match ask(&folder.socket(name)) {
        Ok(NodeStatus { centre, .. }) => centre,
        Err(_) => None,
    }
}

/// How far the passes are played: bytes played and all bytes of each.
fn part_of(played: &[(ByteCount, ByteCount)]) -> PassPart {
    let sum =
        |of: fn(&(ByteCount, ByteCount)) -> ByteCount| -> ByteCount { played.iter().map(of).sum() };
    let (done, all) = (sum(|(done, _)| *done), sum(|(_, all)| *all));
    match done + done >= all {
        true => PassPart::SecondHalf,
        false => PassPart::FirstHalf,
    }
}

/// The inputs' addresses, once all are bound and the lines are open.
fn ready(status: &StationStatus) -> Option<Vec<(String, SocketAddr)>> {
    if status.destinations.iter().any(|destination| destination.line.state != LineState::Open) {
        return None;
    }
    let inputs = status.channels.iter();
    inputs
        .map(|channel| Some((channel.name.clone(), channel.address.as_ref()?.parse().ok()?)))
        .collect()
}

/// Whether each input had its contact, and all contacts have come to their end.
fn is_complete(
    inputs: &[(String, SocketAddr)],
    station: &StationStatus,
    centre: &CentreStatus,
) -> bool {
    let ended = |flow: u32| {
        let received = centre.contacts.iter().find(|contact| contact.flow == flow);
        received.is_some_and(|contact| {
            matches!(contact.state, ContactState::Done | ContactState::Failed)
        })
    };
    let had_contact = |input: &str| station.contacts.iter().any(|contact| contact.channel == input);
    station.spool.blocks == 0
        && inputs.iter().all(|(input, _)| had_contact(input))
        && station
            .contacts
            .iter()
            .all(|contact| contact.state != ContactState::Open && ended(contact.flow))
}

fn what_waits(station: &StationStatus, centre: &CentreStatus) -> String {
    let open =
        station.contacts.iter().filter(|contact| contact.state == ContactState::Open).count();
    let done = centre.contacts.iter().filter(|contact| contact.state == ContactState::Done).count();
    let alarms = station.alarms.iter().chain(&centre.alarms);
    let alarms: Vec<&str> = alarms.map(|alarm| &alarm.sentence[..]).collect();
    format!(
        "{} blocks wait at the station, {open} of {} contacts are open there, {done} are done at \
        the centre{}{}",
        station.spool.blocks,
        station.contacts.len(),
        if alarms.is_empty() { "" } else { "; " },
        alarms.join("; ")
    )
}

/// How long starting takes at the most, and everything that is done once after the last bit.
const START: Duration = Duration::from_secs(30);
/// Setting up, and repairs of repairs of the last blocks, at 10 % loss.
const ROUND_TRIPS: u64 = 40;
/// A node that does not answer for this long is stuck.
const SILENCE: Duration = Duration::from_secs(15);
const LOOK: Duration = Duration::from_millis(50);
