//! Contacts that a destination finished before they ended: what it lacks of one, and what follows,
//! goes there in a flow of its own. A far centre that is wrong about a contact must cost neither
//! the node nor the other destinations anything.
//!
//! The copy begins with the first block of the contact, if the spool still has it, because that has
//! the opening record. The centre makes a contact of its own of it, which may repeat frames of the
//! first, and lacks none. After a restart of the node, what the destination then says of the
//! contact counts anew.

use super::appending::{Put, put, sync};
use super::shared::StationShared;
use skyhaul_events::AlarmKind;
use skyhaul_net::Clock;
use skyhaul_store::{DestinationId, FlowRoute, Seq, Settle, SpoolError};
use skyhaul_units::{FlowId, Utc};
use std::collections::BTreeMap;

/// The contacts that go on in other flows.
#[derive(Debug, Default)]
pub struct Continuations {
    /// By the flow that their channel fills: at most the open flows.
    of: BTreeMap<FlowId, Vec<Continuation>>,
}

/// A contact that goes on in another flow.
#[derive(Debug, Clone, Copy)]
struct Continuation {
    flow: FlowId,
    /// How many flows it was in before.
    nth: usize,
}

/// What a destination finished too early: a flow of a contact.
#[derive(Debug, Clone, Copy)]
struct Finish {
    contact: FlowId,
    one: Continuation,
    to: DestinationId,
}

/// How often a contact goes on in another flow: a centre that finishes that too keeps finishing.
const CONTINUED_MAX: usize = 4;

impl Continuations {
    /// The flows that a block of `flow` goes to too, before it is appended. Returns none where the
    /// station ends.
    pub fn before(
        &mut self,
        shared: &StationShared,
        flow: FlowId,
        clock: Clock,
    ) -> Option<Vec<FlowId>> {
        let own = Continuation { flow, nth: 0 };
        let known = self.of.get(&flow).cloned().unwrap_or_default();
        for one in [own].into_iter().chain(known) {
            for to in shared.early.take(one.flow).into_keys() {
                self.go_on(shared, Finish { contact: flow, one, to }, clock)?;
            }
        }
        Some(self.of.get(&flow).into_iter().flatten().map(|one| one.flow).collect())
    }

    /// A contact has ended: what a destination finished before it had all goes on first. Returns
    /// the flows that are to be closed too; none where the station ends.
    pub fn ended(
        &mut self,
        shared: &StationShared,
        flow: FlowId,
        clock: Clock,
    ) -> Option<Vec<FlowId>> {
        let known = self.of.get(&flow).cloned().unwrap_or_default();
        for one in [Continuation { flow, nth: 0 }].into_iter().chain(known) {
            for (to, sent) in shared.early.take(one.flow) {
                let extent = shared.spool().queue().extent(to, one.flow);
                // Where it was sent everything, it was right: its custody counts with the next turn
                // of the line.
                if extent.is_some_and(|extent| sent < extent.next) {
                    self.go_on(shared, Finish { contact: flow, one, to }, clock)?;
                }
            }
        }
        let flows = self.of.remove(&flow).unwrap_or_default();
        Some(flows.into_iter().map(|one| one.flow).collect())
    }

    /// Copies what a destination lacks of a flow into another one for it alone, and lets the
    /// flow go without it; none where the station ends.
    fn go_on(&mut self, shared: &StationShared, finish: Finish, clock: Clock) -> Option<()> {
        let Finish { contact, one, to } = finish;
        let known = shared.routing.destinations();
        let name = known.iter().find(|known| known.id == to).map_or("", |known| &known.name[..]);
        let subject = format!("contact {contact} for {name}");
        let Some(extent) = shared.spool().queue().extent(to, one.flow) else {
            return Some(());
        };
        if one.nth >= CONTINUED_MAX {
            let reason = "it finished the contact before its end again and again; it gets no more \
                          of it; update that centre";
            shared.alarms.raise(AlarmKind::ContactContinued, &subject, reason);
            return Some(());
        }
        let route = FlowRoute { settle: Settle::All, to: vec![to] };
        let new = match shared.open_flow(clock.utc(), &route) {
            Ok(new) => new,
            Err(error) => {
                let reason = format!(
                    "it finished the contact before its end, and no other flow can be opened for \
                     the rest ({error}); free space on the disk of the node"
                );
                shared.alarms.raise(AlarmKind::ContactContinued, &subject, &reason);
                return Some(());
            }
        };
        let reason = format!(
            "it finished the contact before its end; what it lacks, and what follows, goes there \
             as contact {new}; update that centre if this happens again"
        );
        shared.alarms.raise(AlarmKind::ContactContinued, &subject, &reason);
        sync(shared);
        let mut reader = shared.spool().queue().recall_reader(one.flow, Utc::from_micros(0));
        loop {
            let record = shared.spool().queue_mut().recall(&mut reader);
            let record = match record {
                Ok(Some(record)) => record,
                Ok(None) => break,
                Err(error) => {
                    shared.alarms.raise(
                        AlarmKind::SpoolUnreadable,
                        "the spool",
                        &error.to_string(),
                    );
                    return Some(());
                }
            };
            if record.seq == Seq::FIRST || record.seq >= extent.custody {
                match put(shared, new, &record.payload, clock) {
                    Put::Done => {}
                    Put::Closed => return Some(()),
                    Put::Ends => return None,
                }
            }
        }
        shared.spool().destinations_mut().leave(one.flow, to);
        let list = self.of.entry(contact).or_default();
        list.retain(|other| other.flow != one.flow);
        list.push(Continuation { flow: new, nth: one.nth + 1 });
        Some(())
    }

    /// A block came for a flow that takes no more: it goes on in another one, for all destinations
    /// of such contacts. Returns that; none where there can be none.
    pub fn closed(
        &mut self,
        shared: &StationShared,
        flow: FlowId,
        clock: Clock,
    ) -> Result<FlowId, SpoolError> {
        let label = shared.board.label_of(flow);
        let route = match &label {
            Some(label) => shared.routing.route(label),
            None => FlowRoute {
                settle: Settle::All,
                to: shared.routing.destinations().iter().map(|one| one.id).collect(),
            },
        };
        let new = shared.open_flow(clock.utc(), &route)?;
        let reason = format!(
            "its flow in the spool is closed, although it goes on; what follows goes to its \
             destinations as contact {new}"
        );
        let subject = format!("contact {flow}");
        shared.alarms.raise(AlarmKind::ContactContinued, subject, &reason);
        self.of.entry(flow).or_default().push(Continuation { flow: new, nth: 0 });
        Ok(new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::station::board::StationBoard;
    use crate::station::routing::Routing;
    use crate::station::spooler::{self, SpoolBlock, ToSpool};
    use skyhaul_net::Waker;
    use skyhaul_store::{Spool, SpoolConfig, SpoolDraw, sim::SimDisk};
    use skyhaul_units::ByteCount;
    use std::sync::Arc;
    use std::sync::mpsc::{SyncSender, sync_channel};
    use std::thread::JoinHandle;

    /// The spool's thread at work, for the destinations `a` and `b`.
    struct Bench {
        shared: Arc<StationShared>,
        to: [DestinationId; 2],
        blocks: SyncSender<ToSpool>,
        thread: JoinHandle<()>,
    }

    impl Bench {
        fn new() -> Self {
            let clock = Clock::start();
            let peer = |name: &str| {
                let key = name.repeat(64);
                format!(
                    "[[peer]]\nname = \"{name}\"\naddresses = [\"127.0.0.1:9\"]\nfingerprints = \
                     [\"SHA256:{key}\"]\n[[destination]]\nto = \"node:{name}\"\n"
                )
            };
            let text = format!(
                "[node]\nname = \"s\"\nkey = \"k\"\nstate = \"s\"\n{}{}",
                peer("a"),
                peer("b")
            );
            let config = skyhaul_config::parse(&text, "node.toml".as_ref()).unwrap();
            let config = config.station.unwrap();
            let disk = Arc::new(SimDisk::new(ByteCount::mib(256)));
            let settings = SpoolConfig {
                max_size: ByteCount::mib(8),
                segment_size: ByteCount::mib(1),
                ..SpoolConfig::default()
            };
            let mut spool = Spool::open(disk, settings, clock.utc(), SpoolDraw([7; 24])).unwrap();
            let routing = Routing::declare(&config, &mut spool).unwrap();
            let known = routing.destinations();
            let to = [known[0].id, known[1].id];
            let board = StationBoard::new("s".to_owned(), Vec::new(), Vec::new());
            let waker = Waker::new().unwrap();
            let shared = Arc::new(StationShared::new(
                board,
                routing,
                spool,
                crate::alarms::Alarms::quiet(clock),
                waker,
            ));
            let (blocks, queue) = sync_channel(spooler::QUEUE);
            let of = shared.clone();
            let run = move || spooler::run(&of, &queue, clock);
            let thread = crate::services::thread("spool", run).unwrap();
            Self { shared, to, blocks, thread }
        }

        fn open(&self) -> FlowId {
            let route = FlowRoute { settle: Settle::All, to: self.to.to_vec() };
            self.shared.open_flow(Utc::from_micros(1), &route).unwrap()
        }

        fn append(&self, flow: FlowId, payload: &str) {
            let payload = payload.as_bytes().to_vec();
            self.blocks.send(ToSpool::Block(SpoolBlock { flow, payload })).unwrap();
        }

        /// Waits until the spool's thread has taken all that came before.
        fn settle(&self) {
            let marker = self.open();
            self.close(marker);
        }

        fn close(&self, flow: FlowId) {
            let (done, is_done) = sync_channel(1);
            self.blocks.send(ToSpool::CloseFlow(flow, done)).unwrap();
            is_done.recv().unwrap();
        }

        /// What the spool has for a destination, by flow.
        fn kept(&self, to: DestinationId) -> BTreeMap<FlowId, Vec<String>> {
            let mut spool = self.shared.spool();
            let mut found = BTreeMap::new();
            for flow in spool.queue().flows_to(to) {
                let mut reader = spool.queue().recall_reader(flow, Utc::from_micros(0));
                let mut all = Vec::new();
                while let Some(record) = spool.queue_mut().recall(&mut reader).unwrap() {
                    all.push(String::from_utf8(record.payload).unwrap());
                }
                if !all.is_empty() {
                    found.insert(flow, all);
                }
            }
            found
        }

        fn end(self) {
            assert!(!self.shared.shutdown.is_requested(), "the node goes on");
            drop(self.blocks);
            self.thread.join().unwrap();
        }
    }

    /// Regression: the station ended with "the spool cannot be used".
    #[test]
    fn a_contact_that_a_centre_finishes_too_early_goes_on_there_alone_and_nothing_is_lost() {
        let bench = Bench::new();
        let [a, b] = bench.to;
        let (flow, other) = (bench.open(), bench.open());
        for payload in ["0", "1", "2", "3"] {
            bench.append(flow, payload);
        }
        bench.append(other, "x");
        bench.settle();
        // It has two on its disk, was sent three, and says that this is all.
        bench.shared.spool().custody(a, flow, Seq(2));
        bench.shared.early.note(flow, a, Seq(3));
        bench.append(flow, "4");
        bench.append(other, "y");
        bench.settle();
        let told = bench.shared.alarms.conditions();
        assert!(told[0].contains("for a: it finished the contact before its end"), "{told:?}");
        bench.append(flow, "5");
        let open = |bench: &Bench| bench.shared.spool().queue().open_flows().len();
        assert_eq!(open(&bench), 3, "the contact, its copy and the other one");
        bench.close(flow);
        assert_eq!(open(&bench), 1, "its copy is closed with it");
        let (kept_a, kept_b) = (bench.kept(a), bench.kept(b));
        let of =
            |kept: &BTreeMap<FlowId, Vec<String>>, flow| kept.get(&flow).map(|all| all.concat());
        assert_eq!(of(&kept_a, flow), None);
        let copy = kept_a.keys().max().copied().unwrap();
        assert_eq!(of(&kept_a, copy).as_deref(), Some("02345"), "the opening, and what it lacked");
        assert_eq!(of(&kept_b, flow).as_deref(), Some("012345"), "the other one has it whole");
        assert_eq!(of(&kept_b, copy), None);
        assert_eq!(of(&kept_a, other).as_deref(), Some("xy"));
        bench.end();
    }

    #[test]
    fn a_contact_that_ends_as_its_centre_says_is_not_copied() {
        let bench = Bench::new();
        let flow = bench.open();
        bench.append(flow, "0");
        bench.settle();
        bench.shared.early.note(flow, bench.to[0], Seq(1));
        bench.close(flow);
        assert_eq!(bench.kept(bench.to[0]).len(), 1);
        assert_eq!(bench.shared.alarms.conditions(), Vec::<String>::new());
        bench.end();
    }

    #[test]
    fn a_centre_that_finishes_every_copy_too_gets_no_more_of_them_and_the_data_is_kept() {
        let bench = Bench::new();
        let a = bench.to[0];
        let flow = bench.open();
        bench.append(flow, "0");
        bench.settle();
        for _ in 0..=CONTINUED_MAX {
            let newest = bench.kept(a).keys().max().copied().unwrap();
            bench.shared.early.note(newest, a, Seq(1));
            bench.append(flow, "+");
            bench.settle();
        }
        let told = bench.shared.alarms.conditions();
        assert!(told[0].contains("again and again"), "{told:?}");
        let newest = bench.kept(a).values().last().unwrap().concat();
        assert_eq!(newest.len(), CONTINUED_MAX + 2, "{newest}");
        bench.end();
    }

    #[test]
    fn a_block_of_a_flow_that_is_closed_goes_on_in_another_one() {
        let bench = Bench::new();
        let flow = bench.open();
        bench.append(flow, "0");
        bench.settle();
        bench.shared.spool().close_flow(flow).unwrap();
        bench.append(flow, "1");
        bench.append(flow, "2");
        bench.close(flow);
        for to in bench.to {
            let kept: Vec<String> = bench.kept(to).into_values().map(|all| all.concat()).collect();
            assert_eq!(kept, ["0", "12"]);
        }
        assert!(bench.shared.alarms.conditions()[0].contains("its flow in the spool is closed"));
        bench.end();
    }
}
