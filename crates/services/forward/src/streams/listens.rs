//! Requests that the other end listens, and their answers.

use crate::spec::Local;
use crate::wire::{ConnectRefusal, ForwardRefusal, Listen, ListenMessage};
use bytes::Bytes;
use std::collections::VecDeque;

/// Those on their way to the session.
#[derive(Debug, Default)]
pub struct ListenRequests {
    out: VecDeque<Bytes>,
}

impl ListenRequests {
    /// Asks the far end to listen. The answer comes as an event with this number; for what comes in
    /// there the far end opens streams to the request's target.
    pub fn ask(&mut self, number: u32, listen: Listen) {
        self.say(number, &ListenMessage::Listen(listen));
    }

    /// This end listens, as the far end has asked.
    pub fn grant(&mut self, number: u32, at: Local) {
        self.say(number, &ListenMessage::Listening(at));
    }

    /// This end does not listen.
    pub fn refuse(&mut self, number: u32, reason: ConnectRefusal, sentence: &str) {
        let sentence = sentence.to_owned();
        let refusal = ForwardRefusal { reason, sentence };
        self.say(number, &ListenMessage::NotListening(refusal));
    }

    fn say(&mut self, number: u32, message: &ListenMessage) {
        self.out.push_back(message.encode(number));
    }

    pub(super) fn poll(&mut self) -> Option<Bytes> {
        self.out.pop_front()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.out.is_empty()
    }
}
