//! How a node goes on in another process: the new process is started while the node runs, the node
//! ends here, and starts there. If it cannot start there, it starts here again, with the same
//! inputs.

use super::{EventKind, Node, NodeStart, ServiceState, Signals};
use crate::fault::Fault;
use crate::keys;
use crate::services;
use crate::station::{self, KeptInput, Station};
use crate::upgrade::{
    FromOld, HandedInputs, KeptSocket, NewProgram, NewSide, ProgramCommand, UpgradeDesk,
    UpgradeOrder, note_failure,
};
use skyhaul_config::NodeConfig;
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::sync::Arc;
use std::sync::mpsc::SyncSender;

/// The upgrade that was ordered, until the new process is ready.
pub struct Upgrading<'a> {
    desk: &'a UpgradeDesk,
    program: &'a ProgramCommand,
    /// The inputs of the last upgrade.
    handed: &'a HandedInputs,
    clock: Clock,
    waiting: Option<Waiting>,
    starting: Option<Starting>,
}

/// An order that waits until the inputs of the last upgrade have caught up: at once, the next
/// process would be given what this one has not decoded, and more, and so on.
struct Waiting {
    order: UpgradeOrder,
    /// No longer than that: an input may bring more than can be decoded.
    due: Instant,
}

struct Starting {
    new: Box<NewProgram>,
    answer: SyncSender<Result<String, Fault>>,
}

/// What goes on of a node that has ended.
pub struct KeptNode {
    /// Its live inputs.
    pub inputs: Vec<KeptInput>,
    /// The sockets on which it waits for calls.
    pub sockets: Vec<KeptSocket>,
}

const HELP: &str = "the node goes on as before; correct this, and order the upgrade again";

impl<'a> Upgrading<'a> {
    /// None yet.
    pub const fn new(
        desk: &'a UpgradeDesk,
        program: &'a ProgramCommand,
        handed: &'a HandedInputs,
        clock: Clock,
    ) -> Self {
        Self { desk, program, handed, clock, waiting: None, starting: None }
    }

    /// Looks for an order, and at the process that was started for one. Returns it once it is
    /// ready.
    pub fn turn(&mut self) -> Option<Box<NewProgram>> {
        if let Some(order) = self.next_order() {
            let UpgradeOrder { binary, patience, answer } = order;
            let started = NewProgram::start(self.program, binary.as_deref(), patience, self.clock);
            match started {
                Ok(new) => self.starting = Some(Starting { new: Box::new(new), answer }),
                Err(why) => self.refuse(&why, &answer),
            }
        }
        let Starting { mut new, answer } = self.starting.take()?;
        match new.step(Duration::ZERO) {
            Ok(false) => self.starting = Some(Starting { new, answer }),
            Ok(true) => {
                let (id, version) = (new.id(), new.version());
                let said = format!("process {id}, version {version}, is ready, and takes over");
                tracing::info!("{said}");
                let _ = answer.try_send(Ok(said));
                return Some(new);
            }
            Err(why) => {
                drop(new);
                self.refuse(&why, &answer);
            }
        }
        None
    }

    /// The order that is to be carried out now.
    fn next_order(&mut self) -> Option<UpgradeOrder> {
        if let Some(order) = self.desk.next() {
            let due = self.clock.now() + UpgradeOrder::catching_up(order.patience);
            if self.handed.is_behind() {
                tracing::info!("the upgrade waits until the inputs of the last one caught up");
            }
            self.waiting = Some(Waiting { order, due });
        }
        let is_due = |one: &mut Waiting| !self.handed.is_behind() || self.clock.now() >= one.due;
        self.waiting.take_if(is_due).map(|one| one.order)
    }

    fn refuse(&self, why: &str, answer: &SyncSender<Result<String, Fault>>) {
        tracing::error!("upgrade failed, the node goes on as before: {why}");
        // Who hears of it may order the next one at once.
        self.desk.over();
        note_failure(why);
        let _ = answer.try_send(Err(Fault::environment(why, "the new program", HELP)));
    }
}

/// What can be known of a configuration before the node's resources are free.
///
/// # Errors
/// What is wrong.
pub fn check(config: &NodeConfig) -> Result<(), Fault> {
    services::identity(&config.node)?;
    keys::known_keys(&config.node.state)?;
    config.station.as_deref().map_or(Ok(()), Station::check)
}

/// Starts the node in this process, in place of the old one.
pub fn take_over(config: &NodeConfig, start: &mut NodeStart, old: NewSide) -> Result<Node, Fault> {
    old.say_ready()?;
    let (handed, slots) = old.inputs()?;
    start.handed = Arc::new(handed);
    let node = Node::start(config, start).inspect_err(|fault| old.refuse(&fault.to_string()))?;
    // Where the old process is gone, the inputs are opened again.
    let _ = old.say_running();
    old.sources(&slots);
    Ok(node)
}

/// Ends the node here, and lets the new process take over. If that cannot, the node starts here
/// again, and is returned.
///
/// # Errors
/// The node cannot go on in either process.
pub fn hand_over(
    node: Node,
    mut new: Box<NewProgram>,
    start: &mut NodeStart,
    signals: Signals<'_>,
) -> Result<Option<Node>, Fault> {
    let read = node.read.clone();
    let KeptNode { inputs: mut kept, sockets } = node.hand_over()?;
    let lacks = |error: std::io::Error| {
        let help = "raise this user's limit of open files (ulimit -n)";
        Fault::environment(format!("the inputs cannot be kept ({error})"), "this process", help)
    };
    let (handed, slots) = station::handed(&kept).map_err(&lacks)?;
    let again = sockets.iter().map(KeptSocket::handed).collect::<Result<_, _>>().map_err(lacks)?;
    let Err(why) = give(&mut new, &mut kept, &sockets, signals) else {
        (signals.tell)(ServiceState::GoesOnIn(new.id()));
        return Ok(None);
    };
    // It is gone before the inputs and the state folder are used again.
    drop(new);
    station::read_on(&mut kept);
    tracing::error!("upgrade failed, the node goes on in this process: {why}");
    start.handed = Arc::new(HandedInputs::new(handed, again));
    let node = Node::start(&read, start)?;
    station::give(kept, &slots);
    let sentence = format!("the upgrade failed, the node goes on in process {}: {why}", own_id());
    node.log.sink().tell(EventKind::NodeStarted, "the node", sentence);
    // Who hears of the failure may order the next one at once.
    start.desk.over();
    note_failure(&why);
    Ok(Some(node))
}

fn own_id() -> u32 {
    std::process::id()
}

/// Gives the new process everything that the node needs there.
fn give(
    new: &mut NewProgram,
    kept: &mut [KeptInput],
    sockets: &[KeptSocket],
    signals: Signals<'_>,
) -> Result<(), String> {
    let is_alive = || {
        if signals.pulse.is_some() {
            (signals.tell)(ServiceState::Alive);
        }
    };
    let (inputs, mut descriptors) = station::passed(kept);
    descriptors.extend(sockets.iter().flat_map(KeptSocket::descriptors));
    let passed = sockets.iter().map(KeptSocket::passed).collect();
    new.give_inputs(&FromOld::Inputs { inputs, sockets: passed }, &descriptors)?;
    new.wait(&is_alive)?;
    station::stop_reading(kept);
    let (sources, descriptors) = station::sources(kept);
    new.go(sources, &descriptors)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upgrade::{HandedInput, PassedInput};

    /// The inputs of an upgrade of which one is not caught up.
    fn behind() -> HandedInputs {
        let passed = PassedInput {
            channel: "x".to_owned(),
            input: "udp:127.0.0.1:9".to_owned(),
            address: None,
            flow: None,
            undecoded_from: 0,
            offset: 0,
            reads_from: 0,
        };
        let [undecoded, reads] = [(); 2].map(|()| tempfile::tempfile().unwrap());
        let slot = Arc::default();
        HandedInputs::new(vec![HandedInput { passed, undecoded, reads, slot }], Vec::new())
    }

    #[allow(clippy::disallowed_methods, reason = "who orders is another thread")]
    fn order(
        desk: &Arc<UpgradeDesk>,
        patience: Duration,
    ) -> std::thread::JoinHandle<Result<String, Fault>> {
        let desk = desk.clone();
        std::thread::spawn(move || desk.give(None, patience))
    }

    fn nowhere() -> ProgramCommand {
        ProgramCommand { file: "/no/such/program".into(), arguments: Vec::new() }
    }

    /// Regression: of twenty upgrades at once, each took over what the last one left, and more,
    /// until more was kept than may be, and datagrams were lost.
    #[test]
    fn an_order_waits_until_the_inputs_of_the_last_upgrade_have_caught_up() {
        let (desk, program, handed) = (Arc::default(), nowhere(), behind());
        let mut upgrading = Upgrading::new(&desk, &program, &handed, Clock::start());
        let ordered = order(&desk, Duration::from_secs(600));
        while upgrading.waiting.is_none() {
            assert!(upgrading.turn().is_none());
            std::thread::yield_now();
        }
        for _ in 0..10 {
            assert!(upgrading.turn().is_none());
            assert!(upgrading.waiting.is_some() && !ordered.is_finished());
        }
        // Who takes the input takes what came before; then it is gone.
        let input = handed.take("x", "udp:127.0.0.1:9").unwrap();
        assert!(upgrading.turn().is_none() && upgrading.waiting.is_some());
        drop(input);
        assert!(upgrading.turn().is_none() && upgrading.waiting.is_none());
        let refused = ordered.join().unwrap().unwrap_err().to_string();
        assert!(refused.contains("/no/such/program cannot be run"), "{refused}");
    }

    /// Regression: who heard that an upgrade had failed and ordered the next one at once was told
    /// that one was under way.
    #[test]
    fn an_order_may_follow_at_once_on_one_that_failed() {
        let (desk, program) = (Arc::new(UpgradeDesk::default()), nowhere());
        let handed = HandedInputs::default();
        let mut upgrading = Upgrading::new(&desk, &program, &handed, Clock::start());
        let orders = desk.clone();
        #[allow(clippy::disallowed_methods, reason = "who orders is another thread")]
        let ordered = std::thread::spawn(move || {
            let one = |_| orders.give(None, Duration::from_secs(600)).unwrap_err().to_string();
            (0..100).map(one).collect::<Vec<_>>()
        });
        while !ordered.is_finished() {
            assert!(upgrading.turn().is_none());
            std::thread::yield_now();
        }
        for refused in ordered.join().unwrap() {
            assert!(refused.contains("/no/such/program cannot be run"), "{refused}");
        }
    }

    #[test]
    fn an_order_waits_for_inputs_no_longer_than_half_of_its_patience() {
        let (desk, program, handed) = (Arc::default(), nowhere(), behind());
        let mut upgrading = Upgrading::new(&desk, &program, &handed, Clock::start());
        let ordered = order(&desk, Duration::from_millis(20));
        while !ordered.is_finished() {
            assert!(upgrading.turn().is_none());
            std::thread::yield_now();
        }
        let refused = ordered.join().unwrap().unwrap_err().to_string();
        assert!(refused.contains("/no/such/program cannot be run"), "{refused}");
        assert!(handed.is_behind());
    }
}
