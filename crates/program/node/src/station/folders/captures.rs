//! Files of a drop folder as contacts: each is read by a channel of its own making, from where it
//! was read to when the station ended.

use crate::fault::Fault;
use crate::station::channel::{ChannelEnd, ChannelRunner, ChannelTotals, InputEnd};
use crate::station::channel_context::ChannelContext;
use crate::station::memo::{ChannelPosition, Memo};
use skyhaul_config::{Channel, Input};
use skyhaul_files::{RelPath, shown};
use skyhaul_units::FlowId;
use std::path::{Path, PathBuf};

/// Makes contacts of files.
#[derive(Debug)]
pub struct CaptureOutlet {
    /// The index of the channel in the configuration.
    index: usize,
    channel: Channel,
    state: PathBuf,
    context: ChannelContext,
    memo: Memo,
    totals: ChannelTotals,
}

/// The end of a file as contacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaptureOutcome {
    /// All of it was read, and frames were found.
    Captured,
    /// All of it was read, and no frames were found, for this reason.
    Nothing(String),
    /// It could not be read to its end, for this reason; its contact is still open.
    Broken(String),
    /// The station ends; the file is resumed at its next start.
    Stopped,
}

impl CaptureOutlet {
    /// For channel number `index`.
    ///
    /// # Errors
    /// The mission of the channel cannot be read.
    pub fn new(
        index: usize,
        channel: Channel,
        state: &Path,
        context: ChannelContext,
    ) -> Result<Self, Fault> {
        // Read now, so that a wrong mission is reported before the first file comes.
        crate::station::mission_of(&channel, &context.missions)?;
        let memo = Memo::of(state, channel.name.as_str());
        let (state, totals) = (state.to_owned(), ChannelTotals::default());
        Ok(Self { index, channel, state, context, memo, totals })
    }

    /// The flow of the contact that was open when the station ended.
    pub fn flow(&self) -> Option<FlowId> {
        self.memo.flow()
    }

    /// The next file is read from its beginning.
    ///
    /// # Errors
    /// The disk refuses: no other file may be read.
    pub fn begin(&self) -> std::io::Result<()> {
        self.memo.remember(&ChannelPosition::Between(vec![0]))
    }

    /// Reads the file `name` at `path` from where it was read to before.
    pub fn capture(&mut self, name: &RelPath, path: &Path) -> CaptureOutcome {
        let was_read = self.memo.recall() != ChannelPosition::Between(vec![0]);
        let mut config = self.channel.clone();
        config.input = Some(Input::File(path.to_owned()));
        let before = self.totals.clone();
        let opened = ChannelRunner::open(self.index, config, &self.state, self.context.clone());
        let runner = match opened {
            Ok(runner) => runner.of_file(shown(name.as_bytes()), before),
            Err(fault) => return CaptureOutcome::Broken(fault.what),
        };
        let contacts = self.totals.contacts;
        let ChannelEnd { why, totals } = runner.run();
        self.totals = totals;
        match why {
            InputEnd::Stopped => CaptureOutcome::Stopped,
            InputEnd::Failed(error) => {
                CaptureOutcome::Broken(format!("it cannot be read ({error})"))
            }
            InputEnd::Exhausted if self.memo.flow().is_some() => {
                CaptureOutcome::Broken("the end of its contact cannot be saved".to_owned())
            }
            InputEnd::Exhausted if was_read || self.totals.contacts > contacts => {
                CaptureOutcome::Captured
            }
            InputEnd::Exhausted => {
                let doubt = self.totals.doubt.clone();
                CaptureOutcome::Nothing(doubt.unwrap_or_else(|| NO_FRAME.to_owned()))
            }
        }
    }

    /// Ends the contact of a file that cannot be read on: it has what was read.
    pub fn abandon(&mut self, name: &RelPath) -> CaptureOutcome {
        if self.memo.flow().is_none() {
            return CaptureOutcome::Captured;
        }
        self.capture(name, Path::new("/dev/null"))
    }
}

const NO_FRAME: &str = "no frame was found in it; check the channel's `mission` and `format`";
