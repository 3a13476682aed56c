//! The events that wait for the application.

use super::config::Event;
use bytes::Bytes;
use std::collections::VecDeque;

/// Events in the order in which they happened. Blocks are not among them: the inbox holds those.
#[derive(Debug, Default)]
pub struct Events {
    queue: VecDeque<Event>,
    /// Bytes of the application messages in the queue, each counted with [`MESSAGE_COST`].
    messages: usize,
    /// The far end's greeting is in the queue.
    greeting: bool,
}

/// Application messages that the application has not taken are kept up to this many bytes. Further
/// ones are dropped, as if a path had failed.
pub const MESSAGES_MAX: usize = 1 << 20;
/// What keeping one message costs beside its bytes.
const MESSAGE_COST: usize = 128;

impl Events {
    pub fn push(&mut self, event: Event) {
        self.greeting |= matches!(event, Event::Greeted { .. });
        self.queue.push_back(event);
    }

    /// Keeps a message of the far end's application, where there is room.
    pub fn push_message(&mut self, body: Bytes) {
        let cost = body.len() + MESSAGE_COST;
        if self.messages + cost <= MESSAGES_MAX {
            self.messages += cost;
            self.push(Event::Application { body });
        }
    }

    pub fn pop(&mut self) -> Option<Event> {
        let event = self.queue.pop_front();
        if let Some(Event::Application { body }) = &event {
            self.messages -= body.len() + MESSAGE_COST;
        }
        self.greeting &= !matches!(event, Some(Event::Greeted { .. }));
        event
    }

    /// Whether the application has not yet learnt who the far end is.
    pub const fn greeting_waits(&self) -> bool {
        self.greeting
    }

    /// Bytes held for application messages.
    pub const fn held(&self) -> usize {
        self.messages
    }
}
