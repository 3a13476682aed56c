//! The encoder of FEC repair: numbers protected datagrams, keeps them until their group is
//! repaired, and computes repair symbols.

use super::group::Group;
use super::{LENGTH, REPAIR_HEADER, RepairPlan, RepairSymbol, Sid, UNDER_SYMBOL};
use bytes::Bytes;
use skyhaul_units::Instant;
use std::collections::VecDeque;

/// The encoder of one path.
///
/// It keeps at most 8,160 datagrams of closed groups and the 4,080 of an open one, by reference
/// count: their bytes take memory of their own only where nobody else holds them.
#[derive(Debug)]
pub struct Coder {
    next: u64,
    plan: RepairPlan,
    open: Option<Group>,
    /// Closed groups with a deadline whose repair symbols are still to be sent, the oldest first.
    timed: VecDeque<Group>,
    /// Closed groups without one: repaired when there is nothing else to send.
    untimed: VecDeque<Group>,
    /// Bytes of repair that may be sent now, times [`CREDIT_UNIT`].
    credit: u64,
    counters: CoderCounters,
}

/// Counters of an encoder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CoderCounters {
    /// Datagrams protected.
    pub sources: u64,
    /// Bytes of those.
    pub source_bytes: u64,
    /// Repair symbols made.
    pub repairs: u64,
    /// Bytes of those.
    pub repair_bytes: u64,
    /// Groups closed.
    pub groups: u64,
    /// Groups given up: their repair would be late, or newer ones needed the memory.
    pub abandoned: u64,
    /// Groups whose repair was cut short because the plan left no room for it.
    pub unaffordable: u64,
}

impl Coder {
    /// Without a plan: no repair is made until [`Self::adopt`].
    pub fn new() -> Self {
        Self {
            next: 0,
            plan: RepairPlan::default(),
            open: None,
            timed: VecDeque::new(),
            untimed: VecDeque::new(),
            credit: u64::MAX,
            counters: CoderCounters::default(),
        }
    }

    /// Follows this plan from the next group on.
    pub fn adopt(&mut self, plan: RepairPlan) {
        self.plan = plan;
    }

    /// The plan followed.
    pub fn plan(&self) -> &RepairPlan {
        &self.plan
    }

    /// Adds a datagram to the open group and returns its number; `content` is the datagram without
    /// that number. `due` is when its repair must be sent: deadline less one-way delay. Without it,
    /// repair waits until there is nothing else to send.
    ///
    /// # Panics
    /// A content of more than 65,535 bytes is no datagram.
    pub fn protect(&mut self, now: Instant, content: &Bytes, due: Option<Instant>) -> Sid {
        assert!(content.len() <= usize::from(u16::MAX), "a datagram has at most 65,535 bytes");
        let number = self.next;
        self.next += 1;
        self.counters.sources += 1;
        self.counters.source_bytes += content.len() as u64;
        let earned =
            ((content.len() + UNDER_SYMBOL) as u64).saturating_mul(u64::from(self.plan.spare));
        self.credit = self.credit.saturating_add(earned);
        let open = self.open.get_or_insert_with(|| Group::new(number, now, self.plan.clone()));
        open.add(content.clone(), due);
        if open.is_full() {
            self.close();
        }
        Sid::of(number)
    }

    /// The next repair symbol to send at `now`. Call it when the path has room, before new sources.
    pub fn poll(&mut self, now: Instant) -> Option<RepairSymbol> {
        if self.next_timeout().is_some_and(|at| at <= now) {
            self.close();
        }
        while let Some(group) = self.timed.front_mut() {
            let cost = ((group.repair_len() + UNDER_SYMBOL) as u64).saturating_mul(CREDIT_UNIT);
            self.credit = self.credit.min(cost.saturating_mul(CREDIT_SYMBOLS));
            if group.is_late(now) {
                self.counters.abandoned += 1;
            } else if self.credit < cost {
                self.counters.unaffordable += 1;
            } else if let Some(symbol) = group.next_repair() {
                self.credit -= cost;
                return Some(self.count(symbol));
            }
            self.timed.pop_front();
        }
        None
    }

    /// A repair symbol for sources without deadline. Closes their group: call it when there is
    /// nothing else to send.
    pub fn poll_tail(&mut self, now: Instant) -> Option<RepairSymbol> {
        self.close_tail();
        self.poll_closed_tail(now)
    }

    /// Closes the open group if it has no deadline: later datagrams go into another one.
    pub fn close_tail(&mut self) {
        if self.open.as_ref().is_some_and(Group::is_untimed) {
            self.close();
        }
    }

    /// As [`Self::poll_tail`], but only of groups that are closed.
    pub fn poll_closed_tail(&mut self, now: Instant) -> Option<RepairSymbol> {
        if let Some(symbol) = self.poll(now) {
            return Some(symbol);
        }
        loop {
            if let Some(symbol) = self.untimed.front_mut()?.next_repair() {
                return Some(self.count(symbol));
            }
            self.untimed.pop_front();
        }
    }

    /// Closes the open group now, where no further source is expected in time.
    pub fn close(&mut self) {
        let Some(group) = self.open.take() else { return };
        self.counters.groups += 1;
        let queue = if group.is_untimed() { &mut self.untimed } else { &mut self.timed };
        queue.push_back(group);
        while self.closed() > RETAINED_MAX {
            let oldest = self.untimed.pop_front().or_else(|| self.timed.pop_front());
            self.counters.abandoned += u64::from(oldest.is_some());
        }
    }

    /// Whether [`Self::poll`] has something, or has something that is too late.
    pub fn has_repair(&self) -> bool {
        !self.timed.is_empty()
    }

    /// Whether [`Self::poll_tail`] may have something.
    pub fn has_tail(&self) -> bool {
        !self.untimed.is_empty() || self.open.as_ref().is_some_and(Group::is_untimed)
    }

    /// Whether [`Self::poll_closed_tail`] may have something.
    pub fn has_closed_tail(&self) -> bool {
        !self.untimed.is_empty()
    }

    /// When the open group must be closed even if it is not full: call [`Self::poll`] then.
    pub fn next_timeout(&self) -> Option<Instant> {
        self.open.as_ref().and_then(Group::close_at)
    }

    /// A source has arrived, or is useless by now: it needs no repair.
    pub fn settled(&mut self, sid: Sid) {
        let Some(newest) = self.next.checked_sub(1) else { return };
        let full = sid.full(newest);
        let groups =
            self.open.iter_mut().chain(self.timed.iter_mut()).chain(self.untimed.iter_mut());
        for group in groups {
            if group.settle(full) {
                return;
            }
        }
    }

    /// The largest content whose repair symbol fits into a datagram of `payload` bytes too.
    pub const fn content_max(payload: usize) -> usize {
        payload.saturating_sub(REPAIR_HEADER + LENGTH)
    }

    /// What was done so far.
    pub fn counters(&self) -> &CoderCounters {
        &self.counters
    }

    /// Datagrams kept in closed groups and the open one.
    pub fn retained(&self) -> usize {
        self.closed() + self.open.as_ref().map_or(0, Group::len)
    }

    fn closed(&self) -> usize {
        self.timed.iter().chain(&self.untimed).map(Group::len).sum()
    }

    fn count(&mut self, symbol: RepairSymbol) -> RepairSymbol {
        self.counters.repairs += 1;
        self.counters.repair_bytes += symbol.bytes.len() as u64;
        symbol
    }
}

impl Default for Coder {
    fn default() -> Self {
        Self::new()
    }
}

/// Datagrams kept in closed groups: two sets of 16 groups of 255. Beyond, the oldest group is given
/// up.
pub const RETAINED_MAX: usize = 2 * 16 * 255;

/// Bound of the credit, in repair symbols: 16 groups with 64 each. The credit keeps a plan that
/// does not fit its traffic from taking more than the planned room.
const CREDIT_SYMBOLS: u64 = 1_024;

/// The unit of the plan's room for repair.
const CREDIT_UNIT: u64 = RepairPlan::SPARE_UNIT as u64;
