//! How one look is taken.

use super::rates::{NodeRates, RateCounter};
use crate::centre::CentreShared;
use crate::status::{GapReport, NodeStatus};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant, Utc};
use std::sync::Arc;

/// One look at a node. It never changes.
#[derive(Debug)]
pub(crate) struct NodeLook {
    /// Its number; each has a higher one than those before.
    pub number: u64,
    /// When it was taken.
    pub taken: Utc,
    /// The same, by the clock that nobody sets.
    pub begun: Instant,
    /// The status.
    pub status: NodeStatus,
    /// The gaps; none where nothing asks for them.
    pub gaps: Arc<GapReport>,
    /// Rates since the regular look before.
    pub rates: NodeRates,
}

/// Takes looks.
pub(crate) struct LookTaker {
    clock: Clock,
    status: Box<dyn Fn() -> NodeStatus + Send>,
    /// Whose gaps are looked at.
    centre: Option<Arc<CentreShared>>,
    number: u64,
    gaps: Arc<GapReport>,
    gaps_due: Instant,
    counter: RateCounter,
    rates: NodeRates,
}

/// The lock of the gaps is held for up to 10 ms while thousands of them are copied.
const GAPS_EVERY: Duration = Duration::from_secs(5);

impl LookTaker {
    /// Looks by `status`, and at the gaps of `centre`.
    pub(crate) fn new(
        clock: Clock,
        status: Box<dyn Fn() -> NodeStatus + Send>,
        centre: Option<Arc<CentreShared>>,
    ) -> Self {
        Self {
            clock,
            status,
            centre,
            number: 0,
            gaps: Arc::default(),
            gaps_due: Instant::ZERO,
            counter: RateCounter::default(),
            rates: NodeRates::default(),
        }
    }

    /// The clock.
    pub(crate) const fn clock(&self) -> Clock {
        self.clock
    }

    /// A look beside the regular ones.
    pub(crate) fn take(&mut self) -> NodeLook {
        self.number += 1;
        NodeLook {
            number: self.number,
            taken: self.clock.utc(),
            begun: self.clock.now(),
            status: (self.status)(),
            gaps: self.gaps.clone(),
            rates: self.rates,
        }
    }

    /// The look of this second.
    pub(crate) fn take_regular(&mut self) -> NodeLook {
        let now = self.clock.now();
        if let Some(centre) = self.centre.as_ref().filter(|_| now >= self.gaps_due) {
            self.gaps = Arc::new(centre.gaps().report());
            self.gaps_due = now + GAPS_EVERY;
        }
        let mut look = self.take();
        self.rates = self.counter.rates(now, &look.status);
        look.rates = self.rates;
        look
    }
}
