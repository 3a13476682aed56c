//! The inputs of a channel, to the channel as one: a single receiver, or several that are joined.

mod joined;
mod joined_input;

use super::board::InputIndex;
use super::channel_context::ChannelContext;
use super::handed_reads::HandedState;
use super::input::InputRead;
use super::receiver::{After, InputReceiver};
use crate::fault::Fault;
use crate::status::ChannelStatus;
use crate::upgrade::HandedInput;
use joined::JoinedInputs;
use skyhaul_ccsds::capture::{CaptureEvent, CaptureOptions};
use skyhaul_ccsds::identify::{Identification, InputLayout, Unidentified};
use skyhaul_ccsds::mission::Mission;
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_ccsds::sync::SyncCounts;
use skyhaul_records::Record;
use skyhaul_records::payload::BlockHead;
use skyhaul_units::Duration;
use std::io;

/// The inputs of one channel.
#[derive(Debug)]
pub enum Inputs {
    /// The only one.
    Single(Box<InputReceiver>),
    /// Several of the same downlink.
    Joined(Box<JoinedInputs>),
}

/// Where one contact ends in the inputs, and the next begins.
#[derive(Debug)]
pub struct ContactChange {
    /// What each of several inputs gave in the contact that ends.
    pub account: Option<Record>,
    /// The byte of each input that the next contact is to be read from.
    pub next: Vec<u64>,
}

impl Inputs {
    /// Opens the inputs of channel number `index`; each begins with what `start` says for it. Live
    /// ones may be among those that were `handed`.
    ///
    /// # Errors
    /// As [`InputReceiver::open`].
    pub fn open(
        index: usize,
        config: &skyhaul_config::Channel,
        context: &ChannelContext,
        handed: Vec<Option<HandedInput>>,
        start: impl Fn(usize, Option<&HandedInput>) -> BitPosition,
    ) -> Result<Self, Fault> {
        let open = |(input, handed): (usize, Option<HandedInput>)| {
            let of = InputIndex { channel: index, input };
            InputReceiver::open(of, config, context, start(input, handed.as_ref()), handed)
        };
        let all = handed.into_iter().enumerate();
        let receivers = all.map(open).collect::<Result<Vec<_>, Fault>>()?;
        Ok(match <[InputReceiver; 1]>::try_from(receivers) {
            Ok([single]) => Self::Single(Box::new(single)),
            Err(several) => Self::Joined(Box::new(JoinedInputs::new(several, config, context))),
        })
    }

    fn receivers(&self) -> Box<dyn Iterator<Item = &InputReceiver> + '_> {
        match self {
            Self::Single(single) => Box::new(std::iter::once(&**single)),
            Self::Joined(joined) => Box::new(joined.receivers()),
        }
    }

    /// Whether they can be read again from any byte: all of them, or none.
    pub fn is_file(&self) -> bool {
        self.receivers().all(InputReceiver::is_file)
    }

    /// Whether any of them was read elsewhere, and not all of that is taken.
    pub fn handed(&self) -> HandedState {
        self.receivers().map(InputReceiver::handed).max().unwrap_or(HandedState::Taken)
    }

    /// The frames before `position` of a single input of this layout are in the contact.
    pub fn forget_before(&mut self, layout: InputLayout, position: BitPosition) {
        if let Self::Single(single) = self {
            single.forget_before(CaptureOptions::read_from(layout, position).byte());
        }
    }

    /// Each, to be left.
    pub fn receivers_mut(&mut self) -> Box<dyn Iterator<Item = &mut InputReceiver> + '_> {
        match self {
            Self::Single(single) => Box::new(std::iter::once(&mut **single)),
            Self::Joined(joined) => Box::new(joined.receivers_mut()),
        }
    }

    /// Whether they wait for the station, instead of going on without it.
    pub fn waits(&self) -> bool {
        self.receivers().all(InputReceiver::waits)
    }

    /// Whether frames that are durable already are being skipped.
    pub const fn is_catching_up(&self) -> bool {
        match self {
            Self::Single(_) => false,
            Self::Joined(joined) => joined.is_catching_up(),
        }
    }

    /// Reads what is there, waiting up to `patience` for something. Then poll, even where it gave
    /// nothing: frames may be due.
    ///
    /// # Errors
    /// The file or pipe failed; of several, all of them.
    pub fn read(&mut self, patience: Duration) -> io::Result<InputRead> {
        match self {
            Self::Single(single) => single.read(patience),
            Self::Joined(joined) => joined.read(patience),
        }
    }

    /// The next event; `None` where more has to be read, or frames are not due.
    pub fn poll(&mut self) -> Option<CaptureEvent> {
        match self {
            Self::Single(single) => single.poll(),
            Self::Joined(joined) => joined.poll(),
        }
    }

    /// Another downlink came without a break, at `position` of a single input: the contact ended
    /// before it.
    pub fn change(&mut self, position: BitPosition) -> ContactChange {
        match self {
            Self::Single(single) => {
                single.capture_mut().goes_on_from(position);
                single.forget_before(position.byte());
                ContactChange { account: None, next: vec![position.byte()] }
            }
            Self::Joined(joined) => {
                let account = joined.change();
                ContactChange { account, next: self.capture_from() }
            }
        }
    }

    /// The contact is over: poll for what is still held, then [`Self::begin_anew`].
    pub fn finish(&mut self) {
        match self {
            Self::Single(single) => single.capture_mut().finish(),
            Self::Joined(joined) => joined.finish(),
        }
    }

    /// Begins to look for another downlink from the next bytes on; after a pause, from the part of
    /// a frame on that came before it.
    pub fn begin_anew(&mut self, after: After) {
        match self {
            Self::Single(single) => single.begin_anew(after),
            Self::Joined(joined) => joined.begin_anew(after),
        }
    }

    /// Resumes a contact of which `head` says what is durable.
    pub fn resume(&mut self, head: &BlockHead, mission: Mission, format: InputLayout) {
        match self {
            Self::Single(single) => single.capture_mut().resume(head.position, mission, format),
            Self::Joined(joined) => joined.resume(head),
        }
    }

    /// The present downlink, once it is identified.
    pub fn identified(&self) -> Option<&Identification> {
        match self {
            Self::Single(single) => single.capture().identified(),
            Self::Joined(joined) => joined.identified(),
        }
    }

    /// The first input with something odd in which no downlink was found so far: its title and what
    /// is odd.
    pub fn doubt(&self) -> Option<(String, Unidentified)> {
        self.receivers()
            .find_map(|receiver| Some((receiver.title().to_owned(), receiver.capture().doubt()?)))
    }

    /// Whether any synchroniser has lock.
    pub fn is_locked(&self) -> bool {
        match self {
            Self::Single(single) => single.capture().is_locked(),
            Self::Joined(joined) => joined.is_locked(),
        }
    }

    /// What the synchronisers counted in the present contact, together.
    pub fn sync_counts(&self) -> SyncCounts {
        match self {
            Self::Single(single) => single.capture().sync_counts(),
            Self::Joined(joined) => joined.sync_counts(),
        }
    }

    /// The byte of each input that the present contact began with.
    pub fn capture_from(&self) -> Vec<u64> {
        self.receivers().map(|receiver| receiver.capture().from()).collect()
    }

    /// Whether anything came in since the present captures began.
    pub fn has_heard(&self) -> bool {
        self.receivers().any(InputReceiver::has_heard)
    }

    /// The address that a single input listens on.
    pub fn address(&self) -> Option<String> {
        match self {
            Self::Single(single) => single.address().map(|address| address.to_string()),
            Self::Joined(_) => None,
        }
    }

    /// What each of several inputs gave in the present contact. Raises an alarm where one comes too
    /// late.
    pub fn account(&mut self) -> Option<Record> {
        match self {
            Self::Single(_) => None,
            Self::Joined(joined) => joined.account(),
        }
    }

    /// Shows the bytes read, the packets of a single input, and each of several inputs.
    pub fn show(&self, shown: &mut ChannelStatus) {
        shown.bytes = self.receivers().map(InputReceiver::offset).sum();
        match self {
            Self::Single(single) => shown.vita49 = single.packets(),
            Self::Joined(joined) => joined.show(&mut shown.inputs),
        }
    }

    /// Shows the datagrams that the kernel dropped before they were read.
    pub fn show_drops(&self, shown: &mut ChannelStatus) {
        let drops: Vec<u64> = self.receivers().map(InputReceiver::kernel_drops).collect();
        shown.dropped_datagrams = drops.iter().sum();
        for (drops, shown) in drops.into_iter().zip(&mut shown.inputs) {
            shown.dropped_datagrams = drops;
        }
    }
}
