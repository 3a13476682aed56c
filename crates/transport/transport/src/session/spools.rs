//! From which spools the ends of a session send, and what this end has of the far end's.

use super::Event;
use crate::wire::{Custody, Resume};
use skyhaul_units::SpoolIdentity;

/// The spools of a session's ends.
#[derive(Debug, Default)]
pub(super) struct Spools {
    own: SpoolIdentity,
    peer: SpoolIdentity,
    /// What this end has, of whatever spool the far end may come with.
    custody: Vec<Custody>,
    /// What the far end said before this end had introduced itself: what of it is for this end's
    /// spool, is not known yet.
    early: Option<(String, Vec<Custody>)>,
    is_opened: bool,
}

impl Spools {
    /// This end introduces itself. Where the far end's flows go on, as far as it has said where
    /// they come from.
    pub fn opened(&mut self, own: SpoolIdentity, custody: &[Custody]) -> Resume {
        (self.own, self.is_opened) = (own, true);
        self.custody = custody.to_vec();
        self.resume()
    }

    /// The far end has introduced itself. Where its flows go on.
    pub fn greeted(&mut self, peer: SpoolIdentity) -> Resume {
        self.peer = peer;
        self.resume()
    }

    /// The far end of this name has said what it has; told again where this end has not introduced
    /// itself.
    pub fn told(&mut self, name: String, custody: Vec<Custody>) -> Option<Event> {
        if !self.is_opened {
            self.early = Some((name, custody));
            return None;
        }
        let custody = custody.into_iter().find(|custody| custody.spool.id == self.own.id);
        Some(Event::Greeted { name, spool: self.peer, custody })
    }

    /// What the far end had said before.
    pub fn told_early(&mut self) -> Option<Event> {
        let (name, custody) = self.early.take()?;
        self.told(name, custody)
    }

    fn resume(&self) -> Resume {
        let known = self.custody.iter().find(|custody| custody.spool.id == self.peer.id);
        known.map(|custody| custody.resume.clone()).unwrap_or_default()
    }
}
