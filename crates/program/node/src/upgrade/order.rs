//! The order to go on in another process, from who gives it to the node's main thread.

use crate::fault::Fault;
use skyhaul_units::Duration;
use std::path::PathBuf;
use std::sync::mpsc::{RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};

/// An order, and where its answer goes.
#[derive(Debug)]
pub struct UpgradeOrder {
    /// The program; none: the file that the present one was started from.
    pub binary: Option<PathBuf>,
    /// How long the new process may take until it is ready, and again until its node runs. Before
    /// that, the inputs may catch up for half of it.
    pub patience: Duration,
    /// Takes the sentence once the new process is ready, or cannot be.
    pub answer: SyncSender<Result<String, Fault>>,
}

/// Where an order waits: one at a time.
#[derive(Debug, Default)]
pub struct UpgradeDesk {
    waiting: Mutex<Desk>,
}

#[derive(Debug, Default)]
struct Desk {
    order: Option<UpgradeOrder>,
    /// From the order until the node goes on as before.
    is_under_way: bool,
}

/// The longest that a new process may take for a step.
pub const LONGEST: Duration = Duration::from_secs(600);
/// Beyond what an order may take: the main thread may be reading a large configuration.
const BEYOND: Duration = Duration::from_secs(5);

impl UpgradeOrder {
    /// The longest that an order of this patience waits for inputs that the last upgrade handed
    /// over.
    pub(crate) fn catching_up(patience: Duration) -> Duration {
        patience.min(LONGEST) / 2
    }

    /// The longest until the new process is ready.
    pub(crate) fn longest(patience: Duration) -> Duration {
        patience.min(LONGEST) + Self::catching_up(patience)
    }
}

impl UpgradeDesk {
    /// Gives an order, and waits until the new process is ready. The node ends in this process
    /// after that.
    ///
    /// # Errors
    /// An upgrade is under way, or the new process cannot take over: the node goes on as before.
    pub fn give(&self, binary: Option<PathBuf>, patience: Duration) -> Result<String, Fault> {
        let (answer, answered) = sync_channel(1);
        let patience = patience.min(LONGEST);
        {
            let mut desk = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
            if std::mem::replace(&mut desk.is_under_way, true) {
                let help = "wait until that one has ended, then look at `skyhaul status`";
                return Err(Fault::configuration("an upgrade is under way", "this node", help));
            }
            desk.order = Some(UpgradeOrder { binary, patience, answer });
        }
        let wait = (UpgradeOrder::longest(patience) + BEYOND).to_std();
        let late = |_: RecvTimeoutError| {
            let help = "look at the node's log";
            Err(Fault::environment("the node does not take up the order", "this node", help))
        };
        answered.recv_timeout(wait).unwrap_or_else(late)
    }

    /// The order that waits.
    pub(crate) fn next(&self) -> Option<UpgradeOrder> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).order.take()
    }

    /// The upgrade has ended, and the node goes on in this process.
    pub(crate) fn over(&self) {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).is_under_way = false;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn a_second_order_is_refused_until_the_first_has_ended() {
        let desk = Arc::new(UpgradeDesk::default());
        let first = desk.clone();
        #[allow(clippy::disallowed_methods, reason = "who orders is another thread")]
        let first = std::thread::spawn(move || first.give(None, Duration::from_secs(60)));
        let order = loop {
            match desk.next() {
                Some(order) => break order,
                None => std::thread::yield_now(),
            }
        };
        let second = desk.give(None, Duration::from_secs(60)).unwrap_err();
        assert!(second.to_string().contains("an upgrade is under way"), "{second}");
        order.answer.send(Ok("it takes over".to_owned())).unwrap();
        assert_eq!(first.join().unwrap(), Ok("it takes over".to_owned()));
        assert!(desk.give(None, Duration::ZERO).is_err(), "it has not ended");
        desk.over();
        assert!(!desk.waiting.lock().unwrap().is_under_way && desk.next().is_none());
    }
}
