//! One end of the world: its session, and what it made and was given.

use super::*;

impl Side {
    pub(super) fn new(setup: &Setup) -> Self {
        Self {
            session: Session::new(config(setup)),
            durable: BTreeMap::new(),
            waiting: VecDeque::new(),
            given: BTreeMap::new(),
            order: Vec::new(),
            stored: BTreeMap::new(),
            last: BTreeMap::new(),
            greeted: false,
            holds: false,
            kept: Vec::new(),
            custody: BTreeMap::new(),
            received: 0,
            settled: 0,
        }
    }

    pub(super) fn renew(&mut self, setup: &Setup, resume: Resume, epoch: u32) {
        self.session = Session::new(config(setup));
        let custody = vec![Custody { resume, ..Custody::default() }];
        let flow_base = FlowId(LOOSE * epoch);
        self.session.open(Opening {
            name: "a node".to_owned(),
            custody,
            flow_base,
            ..Opening::default()
        });
        self.given.clear();
        self.order.clear();
        self.last.clear();
        self.kept.clear();
        self.custody.clear();
        (self.received, self.settled, self.greeted) = (0, 0, false);
    }

    /// What the far end has is known: durable flows go on from there.
    pub(super) fn greeted(&mut self, resume: &Resume) {
        self.greeted = true;
        self.waiting.retain(|made| !made.wanted.durable);
        for (flow, blocks) in self.durable.iter().rev() {
            let next = resume.next(FlowId(*flow)).expect("no flow is finished");
            self.session.sender_mut().start_flow(FlowId(*flow), next);
            for made in blocks[next.0 as usize..].iter().rev() {
                self.waiting.push_front(*made);
            }
        }
    }

    pub(super) fn hold(&mut self, holds: bool) {
        self.holds = holds;
        if !holds {
            for len in self.kept.drain(..) {
                self.session.release(len);
            }
        }
    }

    pub(super) fn receipts(&mut self) {
        for (flow, next) in &self.stored {
            self.session.control_mut().receipt(FlowId(*flow), Seq(*next));
        }
    }

    /// Whether the session took it.
    pub(super) fn hand_over(&mut self, now: Instant, made: Made, epoch: u32) -> bool {
        let wanted = made.wanted;
        let flow = FlowId(if wanted.durable { wanted.flow } else { LOOSE * epoch + wanted.flow });
        let depends = wanted.depends.and_then(|back| {
            let index = self.order.len().checked_sub(1 + back as usize)?;
            self.order.get(index).copied()
        });
        let tree = self.session.sender().classes();
        let class =
            tree.find(["a", "b", "c"][wanted.class as usize]).unwrap_or(tree.default_leaf());
        let block = Block {
            flow,
            class,
            priority: wanted.priority,
            deadline: wanted.deadline,
            depends_on: depends,
            useful_alone: wanted.alone,
            mode: if wanted.expendable { Mode::Expendable } else { Mode::Reliable },
            redundant: wanted.redundant,
            bytes: content(made),
        };
        match self.session.send(now, block) {
            Ok(id) => {
                let fails = |id: &BlockId| {
                    self.given
                        .get(id)
                        .is_some_and(|given| given.may_fail || given.made.wanted.expendable)
                };
                let may_fail = !wanted.alone && depends.as_ref().is_some_and(fails);
                self.given.insert(id, Given { made, may_fail, outcome: None, received: false });
                self.order.push(id);
                true
            }
            Err(SendError::Full { .. } | SendError::NotOpen) => false,
            Err(error) => panic!("{error}"),
        }
    }

    /// What depends on a block that may fail may fail too.
    pub(super) fn spoil_dependents(&mut self) {
        for index in 0..self.order.len() {
            let wanted = self.given[&self.order[index]].made.wanted;
            let needed = wanted.depends.and_then(|back| index.checked_sub(1 + back as usize));
            if let Some(needed) = needed.filter(|_| !wanted.alone) {
                let needed = &self.given[&self.order[needed]];
                let fails = needed.may_fail || needed.made.wanted.expendable;
                self.given.get_mut(&self.order[index]).expect("given").may_fail |= fails;
            }
        }
    }

    pub(super) fn settled(&mut self, id: BlockId, outcome: Outcome) {
        self.settled += 1;
        let Some(given) = self.given.get_mut(&id) else {
            panic!("{id:?} settled, and was never sent")
        };
        assert_eq!(given.outcome.replace(outcome), None, "{id:?} settled twice");
        match outcome {
            // A reliable block is whole there, and may wait for those before it.
            Outcome::Delivered => {
                assert!(given.received || !given.made.wanted.expendable, "{id:?}");
            }
            Outcome::Sent => panic!("{id:?}: a session finds out more"),
            Outcome::Expired | Outcome::Cancelled => {
                assert!(given.may_fail || given.made.wanted.expendable, "{id:?} {outcome:?}");
            }
        }
    }

    /// What must hold at any time. Gives the bytes held.
    pub(super) fn check(&self, setup: &Setup) -> u64 {
        let stats = self.session.stats();
        assert!(stats.balances(), "{stats:?}");
        let settled =
            stats.sent.blocks_reported + stats.sent.blocks_given_up + stats.sent.blocks_cancelled;
        assert_eq!(stats.sent.blocks_taken, self.order.len() as u64, "{stats:?}");
        assert_eq!(
            settled, self.settled,
            "taken = delivered + expired + cancelled + open: {stats:?}"
        );
        assert_eq!(
            stats.received.blocks_delivered + stats.received.blocks_repaired,
            self.received,
            "{stats:?}"
        );
        let most = setup.send_buffer.max(skyhaul_transport::cost(70_000));
        assert!(stats.sent.buffer <= most, "{stats:?}");
        let most = config(setup).memory_max(self.session.paths().iter().count(), 1438);
        let held = self.session.stats().memory;
        assert!(held <= most.as_u64(), "{held} of {most}: {stats:?}");
        held
    }

    pub(super) fn is_quiet(&self, peer: &Self) -> bool {
        let stats = self.session.stats();
        let told = peer.stored.iter().all(|(flow, next)| {
            let known = self.custody.get(&FlowId(*flow)).copied().unwrap_or(Seq(0));
            known.0 == *next
        });
        let idle = self.session.next_timeout().is_none();
        stats.sent.buffer == 0 && stats.received.blocks_in_flight == 0 && idle && told
    }
}

pub(super) fn content(made: Made) -> Bytes {
    let mut chance = Chance::new(made.serial);
    let mut bytes = Vec::with_capacity(made.wanted.len + 8);
    while bytes.len() < made.wanted.len {
        bytes.extend_from_slice(&chance.next().to_be_bytes());
    }
    bytes.truncate(made.wanted.len);
    Bytes::from(bytes)
}
