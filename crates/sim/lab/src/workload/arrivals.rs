//! The receiving application.

use crate::world::User;
use skyhaul_transport::{BlockId, Event, Session};
use skyhaul_units::Instant;

/// Notes what arrives and gives it back at once.
#[derive(Debug, Default)]
pub struct Arrivals {
    /// Bounded by what the scenario hands over.
    blocks: Vec<(BlockId, Instant)>,
}

impl Arrivals {
    /// What arrived and when, in the order of arrival.
    pub fn blocks(&self) -> &[(BlockId, Instant)] {
        &self.blocks
    }
}

impl User for Arrivals {
    fn event(&mut self, now: Instant, session: &mut Session, event: Event) {
        if let Event::Block(received) = event {
            session.release(received.bytes.len());
            self.blocks.push((received.id, now));
        }
    }

    fn work(&mut self, _: Instant, _: &mut Session) -> Option<Instant> {
        None
    }
}
