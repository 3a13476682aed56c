//! The position of a channel, saved for a restart: one small file a channel, replaced as a whole.
//!
//! | field | size | what |
//! |---|---|---|
//! | format | 4 | `SKP` and the version, 1; the format before began with the next field |
//! | state | u8 | 0 between contacts, 1 contact open, 2 contact closing |
//! | format | u8 | of the input: 0 bits, 1 CADUs, 2 frames, 3 symbols, 4 soft symbols; 0 between contacts |
//! | place | u64 | byte of the input: open: where the contact's capture began; otherwise: where the next one begins |
//! | flow, opening record | u32 + record | of the contact, open or closing |
//! | further places | u64 each | of the other inputs, in their order; of several inputs in a contact that is closing, then where its capture began in each |

use crate::fault::Fault;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_records::{Open, Record, RecordReader, RecordWriter};
use skyhaul_units::FlowId;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The file of one channel.
#[derive(Debug)]
pub struct Memo {
    path: PathBuf,
}

/// The position of a channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChannelPosition {
    /// Between contacts; each input is read on from its byte.
    Between(Vec<u64>),
    /// In a contact whose capture began at these bytes.
    Open {
        /// The byte of each input that its capture began with.
        from: Vec<u64>,
        /// The layout of the input.
        format: InputLayout,
        /// Its flow.
        flow: FlowId,
        /// Its opening record.
        open: Open,
    },
    /// At the end of a contact: its closing record is about to be written; the inputs are read on
    /// from the bytes `next`.
    Closing {
        /// The byte that each input is read on from.
        next: Vec<u64>,
        /// The byte of each of several inputs that its capture began with; empty for a single one.
        from: Vec<u64>,
        /// What the input was found to be.
        format: InputLayout,
        /// Its flow.
        flow: FlowId,
        /// Its opening record.
        open: Open,
    },
}

impl Memo {
    /// The memo of `channel` in the folder `state`.
    pub fn of(state: &Path, channel: &str) -> Self {
        Self { path: state.join(format!("channel-{channel}.place")) }
    }

    /// The memo of the refill contacts of `channel` for destination number `to`.
    pub fn of_refill(state: &Path, channel: &str, to: usize) -> Self {
        Self { path: state.join(format!("refill{to}-{channel}.place")) }
    }

    /// Saves a position; it is durable when this returns.
    ///
    /// # Errors
    /// The disk refuses; the position before it is still saved.
    pub fn remember(&self, place: &ChannelPosition) -> io::Result<()> {
        let (state, format, at, contact) = match place {
            ChannelPosition::Between(at) => (0, InputLayout::Bits, at, None),
            ChannelPosition::Open { from, format, flow, open } => {
                (1, *format, from, Some((flow, open)))
            }
            ChannelPosition::Closing { next, format, flow, open, .. } => {
                (2, *format, next, Some((flow, open)))
            }
        };
        let further = at.iter().skip(1).chain(match place {
            ChannelPosition::Closing { next, from, .. } if next.len() > 1 => from,
            _ => &[][..],
        });
        let format = FORMATS.iter().position(|known| *known == format).unwrap_or_default();
        let mut bytes = [&HEAD[..], &[state, format as u8]].concat();
        bytes.extend_from_slice(&at.first().copied().unwrap_or(0).to_be_bytes());
        if let Some((flow, open)) = contact {
            bytes.extend_from_slice(&flow.0.to_be_bytes());
            RecordWriter::new().write(&Record::Open(open.clone()), &mut bytes);
        }
        further.for_each(|place| bytes.extend_from_slice(&place.to_be_bytes()));
        self.replace(&bytes).map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", self.path.display()))
        })
    }

    fn replace(&self, bytes: &[u8]) -> io::Result<()> {
        let new = self.path.with_extension("new");
        let mut file =
            File::options().create(true).write(true).truncate(true).mode(0o600).open(&new)?;
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&new, &self.path)?;
        self.path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
    }

    /// The flow of the contact that it is in, as of the position saved last.
    pub fn flow(&self) -> Option<FlowId> {
        match self.recall() {
            ChannelPosition::Between(_) => None,
            ChannelPosition::Open { flow, .. } | ChannelPosition::Closing { flow, .. } => {
                Some(flow)
            }
        }
    }

    /// The position saved last; the input's start where there is none, or the file is damaged.
    pub fn recall(&self) -> ChannelPosition {
        fs::read(&self.path)
            .ok()
            .and_then(|bytes| parse(&bytes))
            .unwrap_or(ChannelPosition::Between(vec![0]))
    }
}

/// Checks that no memo in the folder `state` is of a later version: with such a place unknown, an
/// input would be read again from its beginning.
///
/// # Errors
/// The first that is.
pub fn check(state: &Path) -> Result<(), Fault> {
    let listed = fs::read_dir(state).into_iter().flatten().filter_map(Result::ok);
    let mut memos: Vec<PathBuf> = listed.map(|entry| entry.path()).collect();
    memos.retain(|path| path.extension().is_some_and(|ending| ending == ENDING));
    memos.sort_unstable();
    for path in memos {
        let Some(found) = fs::read(&path).ok().and_then(|bytes| other_version(&bytes)) else {
            continue;
        };
        let known = HEAD[3];
        let what = format!("it has format version {found}, this program reads version {known}");
        let help = "run the release that wrote it, or a later one";
        return Err(Fault::environment(what, path.display(), help));
    }
    Ok(())
}

/// The version of a memo, where it is another one.
fn other_version(bytes: &[u8]) -> Option<u8> {
    let [magic @ .., known] = HEAD;
    let found = *bytes.strip_prefix(&magic)?.first()?;
    (found != known).then_some(found)
}

const HEAD: [u8; 4] = *b"SKP\x01";
const ENDING: &str = "place";

/// In the order of their numbers in the file.
const FORMATS: [InputLayout; 5] = [
    InputLayout::Bits,
    InputLayout::Cadus,
    InputLayout::Frames,
    InputLayout::Symbols,
    InputLayout::Soft,
];

fn parse(bytes: &[u8]) -> Option<ChannelPosition> {
    // The format before has a state in place of the letter S.
    let bytes = bytes.strip_prefix(&HEAD).unwrap_or(bytes);
    let ([state, format], rest) = bytes.split_first_chunk::<2>()?;
    let format = *FORMATS.get(usize::from(*format))?;
    let (at, rest) = rest.split_first_chunk::<8>()?;
    let mut places = vec![u64::from_be_bytes(*at)];
    if *state == 0 {
        places.extend(further(rest)?);
        return Some(ChannelPosition::Between(places));
    }
    let (flow, mut record) = rest.split_first_chunk::<4>()?;
    let flow = FlowId(u32::from_be_bytes(*flow));
    let Ok(Some(Record::Open(open))) = RecordReader::new().read(&mut record) else { return None };
    places.extend(further(record)?);
    match state {
        1 => Some(ChannelPosition::Open { from: places, format, flow, open }),
        2 => {
            let from = places.split_off(places.len().div_ceil(2));
            let is_whole = from.is_empty() || from.len() == places.len();
            is_whole.then_some(ChannelPosition::Closing { next: places, from, format, flow, open })
        }
        _ => None,
    }
}

/// The positions up to the end of the file.
fn further(bytes: &[u8]) -> Option<Vec<u64>> {
    let (places, rest) = bytes.as_chunks::<8>();
    rest.is_empty().then(|| places.iter().map(|place| u64::from_be_bytes(*place)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use skyhaul_units::Utc;

    #[test]
    fn the_newest_place_is_recalled() {
        let folder = tempfile::tempdir().unwrap();
        let memo = Memo::of(folder.path(), "x-band");
        assert_eq!(memo.recall(), ChannelPosition::Between(vec![0]));
        let open = Open {
            channel: "x-band".to_owned(),
            mission: "name = \"aqua\"".to_owned(),
            also_fits: vec!["my-aqua".to_owned()],
            scid: None,
            opened: Utc::from_micros(1_733_507_806_000_000),
            keeps_check_symbols: false,
            completes: None,
            file: None,
        };
        let flow = FlowId(7);
        for place in [
            ChannelPosition::Open {
                from: vec![3],
                format: InputLayout::Frames,
                flow,
                open: open.clone(),
            },
            ChannelPosition::Open {
                from: vec![3, 0, 9],
                format: InputLayout::Frames,
                flow,
                open: open.clone(),
            },
            ChannelPosition::Closing {
                next: vec![1 << 40],
                from: vec![],
                format: InputLayout::Cadus,
                flow,
                open: open.clone(),
            },
            ChannelPosition::Closing {
                next: vec![8, 9],
                from: vec![0, 1],
                format: InputLayout::Soft,
                flow,
                open,
            },
            ChannelPosition::Between(vec![9]),
            ChannelPosition::Between(vec![9, 1 << 50]),
        ] {
            memo.remember(&place).unwrap();
            assert_eq!(memo.recall(), place);
            let bytes = fs::read(&memo.path).unwrap();
            fs::write(&memo.path, bytes.strip_prefix(&HEAD).unwrap()).unwrap();
            assert_eq!(memo.recall(), place, "in the format before");
        }
        fs::write(&memo.path, [1, 2, 0, 0, 0, 0, 0, 0, 0, 7, 0xff]).unwrap();
        assert_eq!(
            memo.recall(),
            ChannelPosition::Between(vec![0]),
            "a damaged memo tells nothing"
        );
    }

    #[test]
    fn a_memo_of_a_later_version_is_refused_with_what_to_do_and_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let memo = Memo::of(folder.path(), "x-band");
        memo.remember(&ChannelPosition::Between(vec![9])).unwrap();
        check(folder.path()).unwrap();
        let mut bytes = fs::read(&memo.path).unwrap();
        bytes[3] += 1;
        fs::write(&memo.path, &bytes).unwrap();
        let said = check(folder.path()).unwrap_err().to_string();
        assert!(said.contains("channel-x-band.place"), "{said}");
        assert!(said.contains("version 2, this program reads version 1"), "{said}");
        assert!(said.contains("run the release that wrote it"), "{said}");
        assert_eq!(fs::read(&memo.path).unwrap(), bytes);
    }
}
