//! What a station captured, what each node behind it read, and how long each hop took.

use super::node::taken;
use super::{Moment, name};
use rand::Rng;
use rand_chacha::ChaCha8Rng;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_node::custody::StoredContact;
use skyhaul_records::payload::{BlockContent, BlockHead};
use skyhaul_records::{Close, Record, RecordWriter, ends_contact};
use skyhaul_store::{Seq, Spool};
use skyhaul_units::{Duration, FlowId, Utc};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Default)]
pub struct Truth {
    pub flows: BTreeMap<FlowId, Captured>,
    /// What each node read, by the contact's number at the station.
    read: BTreeMap<(usize, StoredContact), Got>,
    /// When blocks came to a node, by node, flow and place.
    arrivals: BTreeMap<(usize, FlowId, u64), Utc>,
    /// What each hop added to each block: from its arrival at a node until it was taken for the
    /// next one.
    pub added: Vec<Duration>,
    pub is_ending: bool,
    /// What the sync under way covers.
    covers: BTreeMap<FlowId, usize>,
}

#[derive(Default, Clone)]
pub struct Captured {
    pub blocks: Vec<Vec<u8>>,
    durable: usize,
    is_whole: bool,
}

#[derive(Default)]
struct Got {
    of: Option<FlowId>,
    blocks: Vec<Vec<u8>>,
    is_finished: bool,
}

impl Truth {
    /// The station's spool was opened again.
    pub fn restarted(&mut self, spool: &Spool) {
        let open: BTreeMap<FlowId, usize> = spool
            .queue()
            .open_flows()
            .into_iter()
            .map(|open| (open.flow, open.next.0 as usize))
            .collect();
        for (flow, known) in &mut self.flows {
            let kept = open.get(flow).copied().unwrap_or(known.blocks.len());
            assert!((known.durable..=known.blocks.len()).contains(&kept), "{flow:?}: {kept}");
            if kept < known.blocks.len() {
                known.is_whole = false;
            }
            known.blocks.truncate(kept);
            known.durable = kept;
        }
        self.covers.clear();
    }

    pub fn is_whole(&self, flow: FlowId) -> bool {
        self.flows.get(&flow).is_some_and(|known| known.is_whole)
    }

    pub fn is_durable(&self, flow: FlowId) -> bool {
        self.flows.get(&flow).is_some_and(|known| known.durable == known.blocks.len())
    }

    /// The next block of a flow, as a station closes it.
    pub fn block(&mut self, at: Moment, flow: FlowId, rng: &mut ChaCha8Rng) -> Vec<u8> {
        let place = self.flows.entry(flow).or_default().blocks.len();
        let is_last = rng.random_bool(if self.is_ending { 1.0 } else { 0.03 });
        let mut records = Vec::new();
        if is_last {
            let close = Close {
                closed: at.utc(),
                last_bit: at.utc(),
                set_aside: 0,
                corrected_symbols: 0,
                frames: Vec::new(),
            };
            RecordWriter::new().write(&Record::Close(close), &mut records);
        } else {
            // No record has this version.
            records = vec![0xFF; [40, 700, 1_500][rng.random_range(0..3)]];
            records[1..9].copy_from_slice(&rng.random::<u64>().to_be_bytes());
        }
        assert_eq!(ends_contact(&records), is_last);
        let head = BlockHead {
            closed: at.utc(),
            position: BitPosition::from_bits(place as u64),
            set_aside: 0,
            corrected_symbols: 0,
            channel: "x".to_owned(),
            mission: "m".to_owned(),
            frames: Vec::new(),
            hops: Vec::new(),
        };
        let mut payload = Vec::new();
        head.encode(BlockContent::Records(&records), &mut payload);
        payload
    }

    pub fn appended(&mut self, flow: FlowId, seq: Seq, payload: Vec<u8>) {
        let known = self.flows.entry(flow).or_default();
        assert_eq!(seq.0, known.blocks.len() as u64);
        let (_, content) = BlockHead::decode(&payload).unwrap();
        known.is_whole = ends_contact(&content.records().unwrap());
        known.blocks.push(payload);
    }

    pub fn syncing(&mut self, place: usize) {
        if place == 0 {
            let counts = self.flows.iter().map(|(flow, known)| (*flow, known.blocks.len()));
            self.covers = counts.collect();
        }
    }

    pub fn synced(&mut self, place: usize) {
        if place > 0 {
            return;
        }
        for (flow, count) in std::mem::take(&mut self.covers) {
            let known = self.flows.get_mut(&flow).unwrap();
            known.durable = known.durable.max(count);
        }
    }

    /// A block came to a node that did not have it.
    pub fn arrived(&mut self, at: Moment, place: usize, bytes: &[u8]) {
        let (taken, head) = taken(bytes);
        let Some(flow) = head.hops.first().map(|hop| hop.flow).or_else(|| self.of(&head, bytes))
        else {
            return;
        };
        let number = head.position.as_bits();
        if let Some(came) = self.arrivals.remove(&(place - 1, flow, number)) {
            self.added.push(taken.since(came));
        }
        self.arrivals.insert((place, flow, number), at.utc());
    }

    /// Whose a block is that came from the station straight: it does not say.
    fn of(&self, head: &BlockHead, bytes: &[u8]) -> Option<FlowId> {
        let at = head.position.as_bits() as usize;
        let payload = &bytes[8..];
        let is_its = |known: &Captured| known.blocks.get(at).is_some_and(|own| own == payload);
        self.flows.iter().find(|(_, known)| is_its(known)).map(|(flow, _)| *flow)
    }

    /// A node reads a contact from its beginning.
    pub fn reading(&mut self, place: usize, contact: &StoredContact) {
        let got = self.read.entry((place, contact.clone())).or_default();
        assert!(!got.is_finished, "{contact} begins again at {place}");
        got.blocks.clear();
    }

    /// A node read a durable block; returns whether it is the last.
    pub fn read(&mut self, place: usize, contact: &StoredContact, payload: &[u8]) -> bool {
        let (head, content) = BlockHead::decode(payload).unwrap();
        let nodes: Vec<&str> = head.hops.iter().map(|hop| hop.node.as_str()).collect();
        let expected: Vec<String> = (0..place - 1).map(name).collect();
        assert_eq!(nodes, expected, "the way to node {place}");
        let of = head.hops.first().map_or(contact.flow, |hop| hop.flow);
        let records = content.records().unwrap();
        let mut plain = Vec::new();
        BlockHead { hops: Vec::new(), ..head }.encode(BlockContent::Records(&records), &mut plain);
        let got = self.read.get_mut(&(place, contact.clone())).unwrap();
        assert_eq!(*got.of.get_or_insert(of), of, "a contact of several");
        got.blocks.push(plain);
        ends_contact(&records)
    }

    pub fn finished(&mut self, place: usize, contact: &StoredContact) {
        self.read.get_mut(&(place, contact.clone())).unwrap().is_finished = true;
    }

    /// A node began again: a whole contact that is no longer open was finished just before the node
    /// died, and the node did not learn it (found by seed 88 of one relay).
    pub fn reopened(&mut self, place: usize, open: &BTreeSet<StoredContact>) {
        for ((at, contact), got) in &mut self.read {
            let whole = |of: &FlowId| self.flows.get(of).is_some_and(|it| it.blocks == got.blocks);
            if *at == place && !open.contains(contact) && got.of.as_ref().is_some_and(whole) {
                got.is_finished = true;
            }
        }
    }

    /// What a node lacks, or has twice.
    pub fn differs(&self, place: usize) -> Option<String> {
        for (flow, known) in self.flows.iter().filter(|(_, known)| !known.blocks.is_empty()) {
            let its =
                self.read.iter().filter(|((at, _), got)| *at == place && got.of == Some(*flow));
            let its: Vec<&Got> = its.map(|(_, got)| got).collect();
            let [got] = its[..] else { return Some(format!("{flow:?}: {} times", its.len())) };
            if got.blocks != known.blocks || !got.is_finished {
                return Some(format!(
                    "{flow:?}: {} of {} blocks, finished {}",
                    got.blocks.len(),
                    known.blocks.len(),
                    got.is_finished
                ));
            }
        }
        None
    }
}
