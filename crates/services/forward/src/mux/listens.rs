//! Wishes that the other end listens, and their answers.

use super::Mux;
use crate::spec::Local;
use crate::wire::{ConnectRefusal, Listen, Message};
use skyhaul_units::FlowId;

impl Mux {
    /// Asks the far end to listen. The answer comes as an event with this number; for what comes in
    /// there the far end opens streams, with the wish's target.
    pub fn listen(&mut self, number: u32, listen: Listen) {
        self.say_of_listening(number, &Message::Listen(listen));
    }

    /// This end listens, as the far end has asked.
    pub fn listening(&mut self, number: u32, at: Local) {
        self.say_of_listening(number, &Message::Listening(at));
    }

    /// This end does not listen.
    pub fn not_listening(&mut self, number: u32, reason: ConnectRefusal, sentence: &str) {
        self.say_of_listening(
            number,
            &Message::NotListening { reason, sentence: sentence.to_owned() },
        );
    }

    fn say_of_listening(&mut self, number: u32, message: &Message) {
        let block = self.urgent().block(FlowId(0), message.encode(number));
        self.out.push_back(block);
    }
}
