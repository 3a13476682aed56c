//! All programs of a node: bounded memory, turns, rates, expiry.

use crate::head::{BadBlock, BlockFate, BlockRefusal, BlockRequest};
use crate::program::{Program, ProgramCounters, QueuedBlock};
use crate::rules::{AllowRule, ProgramLimits, RuleState};
use bytes::Bytes;
use skyhaul_transport::cost;
use skyhaul_units::Instant;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

/// A program that is connected; no two in the life of a node have the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProgramId(pub u64);

/// A block that is due to be handed over to the session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DepartingBlock {
    /// Whose it is.
    pub program: ProgramId,
    /// Its number.
    pub number: u64,
    /// What its program says of it.
    pub head: BlockRequest,
    /// When its deadline passes.
    pub until: Option<Instant>,
    /// What it carries.
    pub bytes: Bytes,
}

/// Why a program is not admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum AdmissionError {
    /// No rule names its user.
    #[error("user {0} may not use this node's block service; add a [[blocks.allow]] for this user")]
    User(u32),
    /// There are as many as there may be.
    #[error("the block service has {0} programs, its limit; end one of them")]
    Full(usize),
    /// The same of its user.
    #[error("user {uid} has {most} programs at the block service, the limit; end one of them")]
    UserFull {
        /// The user.
        uid: u32,
        /// The limit.
        most: usize,
    },
}

/// The programs of a node.
///
/// A block is held from when it is offered until its program has taken its fate: a program that
/// does not read its fates is not read either. A program may hold as much as is left of the whole,
/// up to its own limit, so that any number of greedy ones leaves room for a further one.
#[derive(Debug)]
pub struct Programs {
    limits: ProgramLimits,
    rules: Vec<RuleState>,
    programs: BTreeMap<ProgramId, Program>,
    /// The cost of all that is held.
    held: u64,
    /// The cost of large blocks that wait for room.
    wanted: BTreeMap<ProgramId, u64>,
    /// Queued expendable blocks by the end of their deadline.
    expiring: BTreeSet<(Instant, ProgramId, u64)>,
    /// The program that had the last turn.
    last: Option<ProgramId>,
    next: u64,
    /// Programs whose rate held them back.
    waits: bool,
}

/// What a program sends in a turn, beside the rest of its last block.
const QUANTUM: i64 = 64 << 10;

impl Programs {
    /// None yet, and nobody is allowed.
    pub const fn new(limits: ProgramLimits) -> Self {
        Self {
            limits,
            rules: Vec::new(),
            programs: BTreeMap::new(),
            held: 0,
            wanted: BTreeMap::new(),
            expiring: BTreeSet::new(),
            last: None,
            next: 0,
            waits: false,
        }
    }

    /// Sets who is allowed. Returns the programs whose user is not any more: tell them, and let
    /// them [`Programs::leave`].
    pub fn allow(&mut self, rules: Vec<AllowRule>) -> Vec<ProgramId> {
        let mut before = core::mem::take(&mut self.rules);
        for rule in rules {
            // A rate that stays the same is not given a new burst.
            let kept = before.iter().position(|old| old.rule == rule);
            self.rules.push(match kept {
                Some(place) => before.swap_remove(place),
                None => RuleState::new(rule, Instant::ZERO),
            });
        }
        let programs = self.programs.iter();
        programs
            .filter(|(_, program)| self.rule(program.uid).is_none())
            .map(|(id, _)| *id)
            .collect()
    }

    /// The rule of a user: the first one that names it.
    pub fn rule(&self, uid: u32) -> Option<&AllowRule> {
        self.rules.iter().map(|state| &state.rule).find(|rule| rule.uid == uid)
    }

    /// Admits a program of a user.
    ///
    /// # Errors
    /// The user is not allowed, or there are too many programs.
    pub fn admit(&mut self, uid: u32) -> Result<ProgramId, AdmissionError> {
        self.rule(uid).ok_or(AdmissionError::User(uid))?;
        if self.programs.len() >= self.limits.programs {
            return Err(AdmissionError::Full(self.limits.programs));
        }
        let its = self.programs.values().filter(|program| program.uid == uid).count();
        if its >= self.limits.per_user {
            return Err(AdmissionError::UserFull { uid, most: self.limits.per_user });
        }
        self.next += 1;
        let id = ProgramId(self.next);
        self.programs.insert(id, Program::new(uid));
        Ok(id)
    }

    /// A program is gone. Its blocks that wait here are dropped.
    pub fn leave(&mut self, id: ProgramId) {
        let Some(program) = self.programs.remove(&id) else { return };
        self.wanted.remove(&id);
        self.held -= program.counters.held;
        for (number, block) in &program.queue {
            if let Some(until) = block.until {
                self.expiring.remove(&(until, id, *number));
            }
        }
    }

    /// The cost of what a program may hand over now.
    pub fn room(&self, id: ProgramId) -> u64 {
        let Some(program) = self.programs.get(&id) else { return 0 };
        let others = self.wanted.iter().filter(|(other, _)| **other != id);
        let wanted: u64 = others.map(|(_, cost)| *cost).sum();
        let left = self.limits.total.as_u64().saturating_sub(self.held + wanted);
        left.min(self.limits.each.as_u64()).saturating_sub(program.counters.held)
    }

    /// Whether there is room for a block of this cost, which is ready to be taken. Where there is
    /// none, the others get no more until there is.
    pub fn claim(&mut self, id: ProgramId, cost: u64) -> bool {
        let Some(program) = self.programs.get(&id) else { return false };
        let has_room = self.held + cost <= self.limits.total.as_u64()
            && program.counters.held + cost <= self.limits.each.as_u64();
        if has_room {
            self.wanted.remove(&id);
        } else {
            self.wanted.insert(id, cost);
        }
        has_room
    }

    /// Takes a block that there is [`Programs::room`] for. One that is refused has its fate at
    /// once.
    ///
    /// # Errors
    /// The program breaks the rules: its connection ends.
    pub fn offer(
        &mut self,
        now: Instant,
        id: ProgramId,
        head: BlockRequest,
        bytes: Bytes,
    ) -> Result<(), BadBlock> {
        let program = self.taken(id, head, bytes.len())?;
        if let Some(refusal) = Program::check(&head, bytes.len()) {
            program.settle(head.number, BlockFate::Refused(refusal));
        } else if program.is_in_vain(&head) {
            program.give_up(head.number);
        } else {
            let until = head.deadline.map(|deadline| now + deadline);
            program.queue.insert(head.number, QueuedBlock { head, bytes, until });
            let gives_up = until.filter(|_| head.expendable);
            self.expiring.extend(gives_up.map(|until| (until, id, head.number)));
        }
        Ok(())
    }

    /// Takes only the number of a block, which has the fate of a refused one at once.
    ///
    /// # Errors
    /// The program breaks the rules: its connection ends.
    pub fn refuse(
        &mut self,
        id: ProgramId,
        head: BlockRequest,
        refusal: BlockRefusal,
    ) -> Result<(), BadBlock> {
        self.taken(id, head, 0)?.settle(head.number, BlockFate::Refused(refusal));
        Ok(())
    }

    fn taken(
        &mut self,
        id: ProgramId,
        head: BlockRequest,
        len: usize,
    ) -> Result<&mut Program, BadBlock> {
        let program = self.programs.get_mut(&id).ok_or(BadBlock::Gone)?;
        let (number, expected) = (head.number, program.due_number());
        if number != expected {
            return Err(BadBlock::Number { number, expected });
        }
        self.held += program.take(head, len);
        Ok(program)
    }

    /// The next block to hand over, of those programs whose session is `ready` to take one: in
    /// turns of the same number of bytes.
    pub fn next(
        &mut self,
        now: Instant,
        mut ready: impl FnMut(ProgramId) -> bool,
    ) -> Option<DepartingBlock> {
        self.expire(now);
        self.waits = false;
        let mut able = Vec::new();
        for id in self.in_turn() {
            let Some(program) = self.programs.get(&id).filter(|one| !one.queue.is_empty()) else {
                continue;
            };
            let rule = self.rules.iter_mut().find(|state| state.rule.uid == program.uid);
            if !rule.is_some_and(|rule| rule.may_send(now)) {
                self.waits = true;
            } else if ready(id) {
                able.push(id);
            }
        }
        while let Some(id) = self.turn_of(&able) {
            if let Some(block) = self.depart(id) {
                return Some(block);
            }
            // It waited for a block that was given up, and it was the last one of its program.
            able.retain(|id| self.programs.get(id).is_some_and(|one| !one.queue.is_empty()));
        }
        None
    }

    /// All programs, beginning with the one whose turn it is.
    fn in_turn(&self) -> Vec<ProgramId> {
        let from = self.last.map_or(Bound::Unbounded, Bound::Included);
        let first = self.programs.range((from, Bound::Unbounded)).map(|(id, _)| *id);
        let rest = self.programs.keys().copied();
        first.chain(rest.take_while(|id| self.last.is_some_and(|last| *id < last))).collect()
    }

    /// The first of these that has something left of its turn. Where none has, each has another
    /// one.
    fn turn_of(&mut self, able: &[ProgramId]) -> Option<ProgramId> {
        let deficit = |programs: &BTreeMap<ProgramId, Program>, id: &ProgramId| {
            programs.get(id).map_or(0, |program| program.deficit)
        };
        if let Some(id) = able.iter().find(|id| deficit(&self.programs, id) > 0) {
            return Some(*id);
        }
        // As many turns as the first one needs that gets there.
        let best = able.iter().map(|id| deficit(&self.programs, id)).max()?;
        let turns = -best / QUANTUM + 1;
        for id in able {
            if let Some(program) = self.programs.get_mut(id) {
                program.deficit = (program.deficit + turns * QUANTUM).min(QUANTUM);
            }
        }
        let behind = able.iter().skip_while(|id| Some(**id) <= self.last);
        let mut order = behind.chain(able);
        order.find(|id| deficit(&self.programs, id) > 0).copied()
    }

    fn depart(&mut self, id: ProgramId) -> Option<DepartingBlock> {
        self.last = Some(id);
        let program = self.programs.get_mut(&id)?;
        let (number, QueuedBlock { head, bytes, until }) = program.queue.pop_first()?;
        if let Some(until) = until {
            self.expiring.remove(&(until, id, number));
        }
        if program.is_in_vain(&head) {
            program.give_up(number);
            return None;
        }
        program.deficit -= i64::try_from(cost(bytes.len())).unwrap_or(i64::MAX);
        if program.queue.is_empty() {
            // What a program does not use it does not save.
            program.deficit = program.deficit.min(0);
        }
        let rule = self.rules.iter_mut().find(|state| state.rule.uid == program.uid);
        rule.into_iter().for_each(|rule| rule.sent(bytes.len()));
        Some(DepartingBlock { program: id, number, head, until, bytes })
    }

    /// Gives up what is too late.
    pub fn expire(&mut self, now: Instant) {
        while let Some((_, id, number)) = self.expiring.first().copied().filter(|one| one.0 <= now)
        {
            self.expiring.pop_first();
            let Some(program) = self.programs.get_mut(&id) else { continue };
            program.give_up(number);
        }
    }

    /// The fate of a block is known.
    pub fn settle(&mut self, id: ProgramId, number: u64, fate: BlockFate) {
        if let Some(program) = self.programs.get_mut(&id) {
            program.settle(number, fate);
        }
    }

    /// Fates for a program, in the order in which they became known: no more than `most`.
    pub fn take_fates(&mut self, id: ProgramId, most: usize) -> Vec<(u64, BlockFate)> {
        let Some(program) = self.programs.get_mut(&id) else { return Vec::new() };
        let mut fates = Vec::new();
        while fates.len() < most
            && let Some((number, fate, cost)) = program.next_fate()
        {
            self.held -= cost;
            fates.push((number, fate));
        }
        fates
    }

    /// Whether a program has fates to hear.
    pub fn has_fates(&self, id: ProgramId) -> bool {
        self.programs.get(&id).is_some_and(Program::has_fates)
    }

    /// When [`Programs::next`] is to be called again though nothing has happened: a deadline
    /// passes, or a rate allows more.
    pub fn poll_timeout(&self) -> Option<Instant> {
        let expiry = self.expiring.first().map(|(until, ..)| *until);
        let rates = self.rules.iter().filter(|_| self.waits).filter_map(RuleState::due).min();
        expiry.into_iter().chain(rates).min()
    }

    /// What a program has done.
    pub fn counters(&self, id: ProgramId) -> ProgramCounters {
        self.programs.get(&id).map_or_else(ProgramCounters::default, |program| program.counters)
    }

    /// The cost of all that is held.
    pub const fn held(&self) -> u64 {
        self.held
    }
}

#[cfg(test)]
mod tests;
