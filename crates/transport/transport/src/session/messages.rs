//! The control messages of the far end: what each does to the state of the session.

use super::config::{CloseReason, Event};
use super::control::{ControlStream, closed};
use super::multipath::Multipath;
use super::state::Greeting;
use crate::path::PathId;
use crate::wire::{Control, RefusalCause};
use skyhaul_units::printable;

/// What is kept of a far end's name or reason, made printable: both end in logs and on terminals.
const SHOWN_MAX: usize = 1024;

/// The far end's messages, and what they change.
#[derive(Debug)]
pub struct Messages<'a> {
    pub control: &'a mut ControlStream,
    pub multipath: &'a mut Multipath,
}

impl Messages<'_> {
    /// Bytes of the control stream arrived on a path.
    pub fn received(&mut self, path: PathId, bytes: &[u8]) {
        if let Some(attached) = self.multipath.paths.attached.get_mut(&path) {
            attached.control_in.push(bytes);
        }
        while let Some(attached) = self.multipath.paths.attached.get_mut(&path) {
            match attached.control_in.next_message() {
                Ok(Some(message)) => self.message(message),
                Ok(None) => return,
                Err(error) => {
                    let reason = error.to_string();
                    return self.broken(&reason, &reason);
                }
            }
        }
    }

    fn message(&mut self, message: Control) {
        let state = self.control.state_mut();
        let events = &mut self.multipath.events;
        match message {
            // Said again where the path on which it was said first may not have brought it over.
            Control::Hello { window, flow_base, .. } if state.has_peer() => {
                let Multipath { sender, receiver, .. } = &self.multipath;
                if (window, flow_base) != (sender.peer_window, receiver.flow_base) {
                    let reason = "it introduced itself twice, not as the same";
                    self.broken("a second greeting", reason);
                }
            }
            Control::Hello { .. } if state.is_over() => {}
            Control::Hello { name, window, flow_base, spool, custody } => {
                self.multipath.sender.greeted(window);
                self.multipath.receiver.flow_base = flow_base;
                let greeting = Greeting { name: printable(&name, SHOWN_MAX), spool, custody };
                if let Some((resume, event)) = state.hello_received(greeting) {
                    self.multipath.receiver.resume_at(resume);
                    events.push(event);
                }
            }
            Control::Join { .. } => {
                self.broken("a path joined twice", "it joined a path to a session twice");
            }
            Control::Receipt { flow, next } => events.push(Event::Custody { flow, next }),
            Control::Application { body } => events.push_message(body),
            Control::Refuse { cause: RefusalCause::Told, reason } => {
                let reason = CloseReason::Refused(printable(&reason, SHOWN_MAX));
                closed(state.end(), reason, events);
            }
            Control::Refuse { cause: RefusalCause::Replaced, reason } => {
                let ended = state.end_and_close("it calls again later".to_owned());
                closed(ended, CloseReason::Replaced(printable(&reason, SHOWN_MAX)), events);
            }
        }
    }

    /// The far end broke the protocol: `told` is what it hears when its path is closed.
    fn broken(&mut self, told: &str, reason: &str) {
        let ended = self.control.state_mut().end_and_close(told.to_owned());
        closed(ended, CloseReason::Peer(reason.to_owned()), &mut self.multipath.events);
    }
}
