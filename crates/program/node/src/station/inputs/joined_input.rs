//! One of several joined inputs.

use crate::station::receiver::InputReceiver;
use crate::status::{ChannelState, InputFrames};
use skyhaul_ccsds::capture::CaptureEvent;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::select::InputAccount;
use skyhaul_ccsds::sync::SyncCounts;
use std::collections::VecDeque;

/// One of several inputs of a downlink.
#[derive(Debug)]
pub struct JoinedInput {
    /// The input.
    pub receiver: InputReceiver,
    /// How it ended; none while it is read.
    pub ended: Option<InputEnd>,
    /// What the synchroniser counted in earlier transmissions of the same contact.
    pub sync_before: SyncCounts,
    /// The frames of earlier contacts.
    before: FramesBefore,
    /// Frames that had come too late at the last look.
    pub late: u64,
    /// The next downlink, where the input changed to it before the others did.
    pub next: Option<NextDownlink>,
}

/// How an input ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputEnd {
    /// It is exhausted.
    Exhausted,
    /// It cannot be read.
    Failed,
}

/// A downlink that an input changed to. Its events wait until the other inputs change too.
#[derive(Debug)]
pub struct NextDownlink {
    /// Where it begins in the input.
    pub at: BitPosition,
    /// Its events so far.
    pub events: VecDeque<CaptureEvent>,
}

#[derive(Debug, Default)]
struct FramesBefore {
    account: InputAccount,
    foreign: u64,
}

impl JoinedInput {
    /// An input that is read from now on.
    pub fn new(receiver: InputReceiver) -> Self {
        Self {
            receiver,
            ended: None,
            sync_before: SyncCounts::default(),
            before: FramesBefore::default(),
            late: 0,
            next: None,
        }
    }

    /// Events of the next downlink that wait.
    pub fn waiting(&self) -> usize {
        self.next.as_ref().map_or(0, |next| next.events.len())
    }

    /// What the synchroniser counted in the present contact.
    pub fn sync_counts(&self) -> SyncCounts {
        self.sync_before.plus(self.receiver.capture().sync_counts())
    }

    /// Whether the synchroniser has lock.
    pub fn is_locked(&self) -> bool {
        self.ended.is_none() && self.receiver.capture().is_locked()
    }

    /// The contact has ended with this account of the input, and `foreign` frames of another
    /// downlink.
    pub fn end_contact(&mut self, account: InputAccount, foreign: u64) {
        self.before.account = self.before.account.plus(account);
        self.before.foreign += foreign;
        (self.sync_before, self.late) = (SyncCounts::default(), 0);
    }

    /// What became of its frames, with this account of the present contact.
    pub fn frames(&self, account: InputAccount, foreign: u64) -> InputFrames {
        InputFrames::of(&self.before.account.plus(account), self.before.foreign + foreign)
    }

    /// Its state for status output.
    pub fn state(&self) -> ChannelState {
        match self.ended {
            Some(InputEnd::Exhausted) => ChannelState::Ended,
            Some(InputEnd::Failed) => ChannelState::Failed,
            None if self.receiver.capture().identified().is_some() && self.is_locked() => {
                ChannelState::Lock
            }
            None if self.receiver.has_heard() => ChannelState::Search,
            None => ChannelState::Waiting,
        }
    }
}
