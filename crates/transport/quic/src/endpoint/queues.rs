//! What waits for the endpoint's owner: events, and datagrams outside connections.

use skyhaul_sessions::{EndpointEvent, Transmit};
use std::collections::VecDeque;

/// Events for the owner. At the bound the oldest is dropped, and counted.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    events: VecDeque<EndpointEvent>,
    dropped: u64,
}

impl EventQueue {
    pub(super) fn push(&mut self, event: EndpointEvent) {
        if self.events.len() >= MAX_EVENTS {
            self.events.pop_front();
            self.dropped += 1;
        }
        self.events.push_back(event);
    }

    pub(super) fn pop(&mut self) -> Option<EndpointEvent> {
        self.events.pop_front()
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

/// Datagrams outside connections: Retry, refusals, version negotiation, stateless resets. At the
/// bound more are dropped, and counted.
#[derive(Debug, Default)]
pub(super) struct StatelessAnswers {
    answers: VecDeque<(Transmit, Vec<u8>)>,
    dropped: u64,
}

impl StatelessAnswers {
    pub(super) fn push(&mut self, transmit: Transmit, bytes: Vec<u8>) {
        if self.answers.len() >= MAX_ANSWERS {
            self.dropped += 1;
            return;
        }
        self.answers.push_back((transmit, bytes));
    }

    /// Appends the next one to `out`.
    pub(super) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let (transmit, bytes) = self.answers.pop_front()?;
        out.extend_from_slice(&bytes);
        Some(transmit)
    }

    pub(super) const fn dropped(&self) -> u64 {
        self.dropped
    }
}

const MAX_EVENTS: usize = 4_096;

const MAX_ANSWERS: usize = 64;
