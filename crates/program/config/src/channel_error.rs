//! Why a channel of a configuration is refused.

use crate::name::Name;
use skyhaul_ccsds::select::MAX_INPUTS;
use skyhaul_units::{ByteCount, Duration};

/// Why an input, format or mission was refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChannelError {
    /// Not one of the forms of an input.
    #[error(
        "`{0}` is not an input; write tcp-listen:192.0.2.1:5000, tcp:host:5000, udp:0.0.0.0:5000, \
        file:PATH, stdin or folder"
    )]
    Input(String),
    /// Not one of the formats.
    #[error("`{0}` is not a format; write auto, bits, cadus, frames, symbols, soft or vita49")]
    Format(String),
    /// Not one of the conventions.
    #[error("`{0}` is not a convention of soft symbols; write signed or offset")]
    Soft(String),
    /// Packets that do not come in datagrams.
    #[error(
        "channel `{0}` has format vita49 but no udp: input; these packets come in datagrams, write \
        udp:0.0.0.0:4991"
    )]
    NoDatagrams(Name),
    /// Not one of the efforts.
    #[error("`{0}` is not a compression effort; write auto, off, fast, normal or thorough")]
    Compress(String),
    /// Neither a name nor a file.
    #[error("a mission's name is empty; write a name such as suomi-npp, or a file ending in .toml")]
    Mission,
    /// Inputs in two places.
    #[error(
        "channel `{0}` has both `input` and `inputs`; write only one of them: a list for several \
        inputs, or a single input"
    )]
    BothInputs(Name),
    /// Nothing to read.
    #[error(
        "channel `{0}` has neither `input` nor `inputs`; write input = \
        \"tcp-listen:127.0.0.1:5000\" or the like"
    )]
    NoInput(Name),
    /// No inputs, or more than are selected from.
    #[error("channel `{0}` has {1} inputs; write 1 to {MAX_INPUTS}")]
    InputCount(Name, usize),
    /// An input that is in the list twice.
    #[error("channel `{0}` has the input `{1}` twice; write each once")]
    SameInput(Name, String),
    /// Two inputs that are called the same.
    #[error("channel `{0}` has two inputs named `{1}`; write another name for one of them")]
    SameName(Name, String),
    /// A file that would have to keep up with a receiver.
    #[error(
        "channel `{0}` has a file beside a live input; write files only, or a channel for the file"
    )]
    FileBesideLive(Name),
    /// A folder among several inputs.
    #[error(
        "channel `{0}` has a folder in `inputs`; write it only as `input` = \"folder\", each file \
        is a contact of its own"
    )]
    FolderAmongInputs(Name),
    /// A recording of what is in files already.
    #[error(
        "channel `{0}` has record_raw and reads a folder; remove `record_raw`, the files are the \
        recording"
    )]
    RecordedFolder(Name),
    /// A window that no antennas need.
    #[error(
        "channel `{0}` has a select_window of {1}; write at most {LONGEST_SELECT_WINDOW}: every \
        frame may wait that long"
    )]
    LongSelectWindow(Name, Duration),
    /// A replay rate where nothing is replayed.
    #[error(
        "channel `{0}` has a rate but is not read from a file; remove `rate`, the sender sets the \
        pace"
    )]
    RateOfLiveInput(Name),
    /// A recording that has no room for two files.
    #[error(
        "channel `{0}` has raw_size {1}; write \"128 MiB\" or more: the recording's files have 64 \
        MiB"
    )]
    SmallRecording(Name, ByteCount),
    /// A replay that would never move.
    #[error(
        "channel `{0}` would be played at 0 bit/s; write a rate such as \"15 Mbit/s\", or remove it"
    )]
    StandingStill(Name),
}

/// Two files of a recording.
pub(super) const LEAST_RECORDING: ByteCount = ByteCount::mib(128);
/// A frame that waits longer is not live any more.
pub(super) const LONGEST_SELECT_WINDOW: Duration = Duration::from_secs(10);
