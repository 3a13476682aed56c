//! The calls by which a program says what it knows of the paths of its session.

use crate::channel::AppChannel;
use crate::hint::{HintError, OwnHint};
use crate::state::{ChannelId, ChannelState, Shared};
use skyhaul_transport::PathId;
use skyhaul_units::{Duration, Probability, Rate};
use std::future::poll_fn;

/// Somebody waits for the answer to a hint. Dropping it leaves nothing behind.
struct AwaitedHint<'a> {
    shared: &'a Shared,
    channel: ChannelId,
    number: u64,
}

impl Drop for AwaitedHint<'_> {
    fn drop(&mut self) {
        let mut state = self.shared.state();
        if let Some(channel) = state.channels.get_mut(&self.channel) {
            channel.terms.hints.forget(self.number);
        }
    }
}

impl AppChannel {
    /// Says which rate a path of the session has from now on, counted in IP packets: from a modem,
    /// or an operator. Congestion control begins with it, and with `lasts` the path gets no more
    /// until then, whatever it measures.
    ///
    /// The paths of a session of this process have the numbers of [`AppChannel::paths`]. Those of a
    /// session of the node on this host are numbered as its status shows them, from 0, and the hint
    /// is for all that the node sends there: it has to allow that.
    ///
    /// # Errors
    /// It is out of range, there is no such path, or the node does not take the hint.
    pub async fn hint_rate(
        &self,
        path: PathId,
        rate: Rate,
        lasts: Option<Duration>,
    ) -> Result<(), HintError> {
        self.hint(path, OwnHint::Rate(rate, lasts)).await
    }

    /// Says which share of its datagrams a path loses at least, for so long: FEC repair is sized
    /// for it before it was measured.
    ///
    /// # Errors
    /// As [`Self::hint_rate`].
    pub async fn hint_loss(
        &self,
        path: PathId,
        loss: Probability,
        lasts: Duration,
    ) -> Result<(), HintError> {
        self.hint(path, OwnHint::Loss(loss, lasts)).await
    }

    /// Withdraws what this program said of a path.
    ///
    /// # Errors
    /// As [`Self::hint_rate`].
    pub async fn withdraw_hints(&self, path: PathId) -> Result<(), HintError> {
        self.hint(path, OwnHint::Withdraw).await
    }

    async fn hint(&self, path: PathId, hint: OwnHint) -> Result<(), HintError> {
        hint.check()?;
        let waiter = self.shared().waiter(Some(self.id()));
        let number = waiter.number();
        {
            let mut state = self.shared().state();
            let channel = state.channels.get_mut(&self.id()).ok_or(HintError::Closed)?;
            if channel.closed.is_some() {
                return Err(HintError::Closed);
            }
            if !channel.terms.hints.put(number, path, hint) {
                return Err(HintError::TooMany(path));
            }
        }
        let _awaited = AwaitedHint { shared: self.shared(), channel: self.id(), number };
        self.shared().wake();
        poll_fn(|context| {
            let answered = |channel: &mut ChannelState| channel.terms.hints.answered(number);
            waiter.poll_for(context, answered, |_| Err(HintError::Closed))
        })
        .await
    }
}
