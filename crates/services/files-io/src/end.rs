//! Why a transfer ended before it was complete.

use skyhaul::{Session, Wait};
use skyhaul_files::TransferRefusal;
use skyhaul_files::wire::{Message, WireError};

/// Why a transfer ended before it was complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TransferEnd {
    /// The far end refuses it.
    Refused(TransferRefusal),
    /// This end cannot do it; the reason.
    Here(TransferRefusal),
    /// The session has ended.
    Lost(String),
    /// Protocol error of the far end.
    Malformed(String),
    /// It was cancelled.
    Cancelled,
}

impl TransferEnd {
    pub(crate) fn lost(link: &Session) -> Self {
        let Some(reason) = link.closed() else {
            return Self::Lost("the session has ended".to_owned());
        };
        // Who refuses a transfer closes next: what came before the end may be the refusal.
        while let Some(incoming) = link.recv().wait() {
            if let Ok(Message::Refused(refusal)) = Message::decode(&incoming.bytes) {
                return Self::Refused(refusal);
            }
        }
        Self::Lost(reason)
    }
}

impl From<WireError> for TransferEnd {
    fn from(error: WireError) -> Self {
        Self::Malformed(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cancel::Cancel;
    use crate::session::decline;
    use crate::talk::say;
    use skyhaul::{Identity, Node, Path};
    use skyhaul_files::RefusalReason;
    use skyhaul_files::wire::Naming;

    /// A busy host says what it asks for only after the far end has refused and closed.
    #[test]
    fn a_refusal_that_came_before_the_end_of_the_session_is_what_ended_it() {
        let (near, far) = (Identity::generate().unwrap(), Identity::generate().unwrap());
        let (near_key, far_key) = (near.fingerprint(), far.fingerprint());
        let address = "127.0.0.1:0".parse().unwrap();
        let called = Node::named("far", far).bind(address).trust(near_key).start().unwrap();
        let calling = Node::named("near", near).start().unwrap();
        let to = Path::to(called.addresses()[0]);
        let link = calling.connect([to], far_key).wait().unwrap();
        let cancel = Cancel::default();
        let refusing = called.accept().wait().unwrap();
        decline(&refusing, RefusalReason::Busy, "64 transfers run", &cancel).unwrap();
        drop(refusing);
        let end = loop {
            if let Err(end) = say(&link, &cancel, &Message::Welcome(Naming::Into)) {
                break end;
            }
        };
        assert!(
            matches!(&end, TransferEnd::Refused(refused) if refused.reason == RefusalReason::Busy),
            "{end:?}"
        );
        assert!(matches!(TransferEnd::lost(&link), TransferEnd::Lost(_)), "nothing else came");
    }
}
