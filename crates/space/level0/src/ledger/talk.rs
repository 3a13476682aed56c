//! The messages between centre and station about what the centre lacks: questions for missing
//! frames, and what it has of another station's contacts, as JSON.
//!
//! ```text
//! {"say":"ask","number":7,"contact":3,"channel":"x-band","mission":"jpss1","damaged":false,
//!  "last":false,"spans":[[157,16,4101,12,1730000000000000,1730000000020000,80000,200000]]}
//! {"say":"answer","number":7,"outcomes":[[9,"not-decodable"]]}
//! {"say":"stand-by","of":"station-1","since":1730000000000000}
//! {"say":"delivered","of":"station-1","known":true,"whole":true,"contacts":[["station-1-3",
//!  "jpss1","x-band",[1730000000000000,11],[1730000060000000,12],false,80,
//!  [[1730000000000000,1730000000020000]]]]}
//! ```
//!
//! A span is: spacecraft, virtual channel, frame count of the first missing frame, number of
//! frames; reception times of the frames around them (microseconds since 1970), and their positions
//! in the station's input (bits). An outcome, one for each span in the same order, is the number of
//! frames that were found and sent, and the reason for the others.
//!
//! A delivered contact is: its name, its mission and its channel; its first and its last good
//! frame, each as reception time and mark; whether it has ended; milliseconds since its last frame
//! came; the reception times of the frames around each time in which frames are missing.

use super::position::Place;
use crate::standby::{
    DeliveredContact, EdgeFrame, FrameMark, LACKS_MAX, LackingTime, StandbyReport, StandbyRequest,
    TOLD_MAX,
};
use serde::{Deserialize, Serialize};
use skyhaul_ccsds::id::{Channel, Scid, Vcid};
use skyhaul_ccsds::quality::BitPosition;
use skyhaul_units::{Duration, FlowId, Utc};

/// Something said about what a centre has and lacks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Talk {
    /// The centre asks a station for frames.
    Ask(Ask),
    /// The station has looked for them.
    Answer(GapAnswer),
    /// A standby asks the centre what it has from another station.
    StandBy(StandbyRequest),
    /// What the centre has from there.
    Delivered(StandbyReport),
}

/// A question: frames of one contact that are missing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The question's number, for the answer.
    pub number: u64,
    /// The contact.
    pub contact: FlowId,
    /// The station's name for the input of the contact.
    pub channel: String,
    /// The name of its mission.
    pub mission: String,
    /// Blocks of the contact were lost at the centre or on the station's disk: the spool may have
    /// them.
    pub is_damaged: bool,
    /// There will be no more requests for this contact.
    pub is_last: bool,
    /// What is missing; at most [`SPANS_MAX`].
    pub spans: Vec<Span>,
}

/// Consecutive frames of one virtual channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Spacecraft and virtual channel.
    pub channel: Channel,
    /// Frame count of the first one.
    pub first: u64,
    /// How many.
    pub count: u64,
    /// The frame before the gap.
    pub from: Place,
    /// The frame after the gap.
    pub to: Place,
}

/// What became of a question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GapAnswer {
    /// The question's number.
    pub number: u64,
    /// For each span: the number of frames on their way, and the reason for the others.
    pub outcomes: Vec<(u64, UnavailableReason)>,
}

/// Why frames are not available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum UnavailableReason {
    /// All of them were found.
    Found,
    /// The station neither has the contact in its spool nor keeps a recording of the channel.
    NoRecording,
    /// The recording has nothing of that time (any more).
    NotCovered,
    /// The recording has the bits, but they gave no frame with the settings of `[refill]`.
    NotDecodable,
    /// The station's configuration disables the search.
    Disabled,
    /// The station has no such channel (any more).
    NoChannel,
    /// The station's disk refused.
    Refused,
    /// The recording has packets of a receiver (VITA 49), in which positions of the stream cannot
    /// be found again.
    Packets,
    /// The channel has several inputs: frames that all of them lost are not searched in their
    /// recordings.
    SeveralInputs,
    /// The station was asked several times and did not answer.
    NoAnswer,
    /// The station is not in the centre's configuration (any more).
    NoStation,
    /// For packets only: all frames of the channel arrived; the spacecraft did not send the
    /// packets.
    NotSent,
    /// The frame count jumped: more frames are missing than a request may have.
    TooMany,
}

impl UnavailableReason {
    /// In words.
    pub const fn text(self) -> &'static str {
        match self {
            Self::Found => "all of it was found",
            Self::NoRecording => "the station keeps no recording of the channel (record_raw)",
            Self::NotCovered => "the station's recording has nothing of that time",
            Self::NotDecodable => "the recording gives no good frames there either",
            Self::Disabled => "the station does not refill ([refill] enabled = false)",
            Self::NoChannel => "the station has no such channel any more",
            Self::Refused => "the station's disk refused",
            Self::Packets => "the recording holds VITA 49 packets; play it again (skyhaul replay)",
            Self::SeveralInputs => {
                "none of the channel's inputs had it; their recordings are not looked through"
            }
            Self::NoAnswer => "the station does not answer",
            Self::NoStation => "the centre's configuration names no such station",
            Self::NotSent => "all frames came: the spacecraft did not send it",
            Self::TooMany => "the frame count went on from somewhere else",
        }
    }
}

/// Why a message cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a message about gaps cannot be read ({0}); install the same release at both ends")]
pub struct TalkError(String);

/// Spans of one question: 100 bytes each at the most, 50 KiB together.
pub const SPANS_MAX: usize = 512;
/// The longest name of a channel or mission.
const NAME_MAX: usize = 255;

#[derive(Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
enum Wire {
    Ask {
        number: u64,
        contact: u32,
        channel: String,
        mission: String,
        damaged: bool,
        last: bool,
        spans: Vec<WireSpan>,
    },
    Answer {
        number: u64,
        outcomes: Vec<(u64, UnavailableReason)>,
    },
    StandBy {
        of: String,
        since: i64,
    },
    Delivered {
        of: String,
        known: bool,
        whole: bool,
        contacts: Vec<WireContact>,
    },
}

/// Microseconds since 1970, and the mark.
#[derive(Serialize, Deserialize)]
struct WireFrame(i64, u64);

#[derive(Serialize, Deserialize)]
struct WireContact(String, String, String, WireFrame, WireFrame, bool, u64, Vec<(i64, i64)>);

#[derive(Serialize, Deserialize)]
struct WireSpan(u16, u8, u64, u64, i64, i64, u64, u64);

impl Talk {
    /// As bytes; at most 64 KiB.
    pub fn encode(&self) -> Vec<u8> {
        let wire = match self {
            Self::Ask(ask) => Wire::Ask {
                number: ask.number,
                contact: ask.contact.0,
                channel: ask.channel.clone(),
                mission: ask.mission.clone(),
                damaged: ask.is_damaged,
                last: ask.is_last,
                spans: ask.spans.iter().take(SPANS_MAX).map(Span::wire).collect(),
            },
            Self::Answer(GapAnswer { number, outcomes }) => Wire::Answer {
                number: *number,
                outcomes: outcomes.iter().take(SPANS_MAX).copied().collect(),
            },
            Self::StandBy(StandbyRequest { of, since }) => {
                Wire::StandBy { of: of.clone(), since: since.as_micros() }
            }
            Self::Delivered(StandbyReport { of, is_known, is_whole, contacts }) => {
                Wire::Delivered {
                    of: of.clone(),
                    known: *is_known,
                    whole: *is_whole,
                    contacts: contacts.iter().take(TOLD_MAX).map(DeliveredContact::wire).collect(),
                }
            }
        };
        serde_json::to_vec(&wire).unwrap_or_default()
    }

    /// From bytes of the far end.
    ///
    /// # Errors
    /// The bytes are not a message about gaps that this release reads.
    pub fn decode(bytes: &[u8]) -> Result<Self, TalkError> {
        let wire = serde_json::from_slice(bytes).map_err(|error| TalkError(error.to_string()))?;
        let refused = |field: &str| TalkError(format!("`{field}` has a value it cannot have"));
        match wire {
            Wire::Ask { number, contact, channel, mission, damaged, last, spans } => {
                if spans.len() > SPANS_MAX || channel.len().max(mission.len()) > NAME_MAX {
                    return Err(refused("spans"));
                }
                let spans = spans.iter().map(|span| span.read().ok_or_else(|| refused("spans")));
                let (contact, spans) = (FlowId(contact), spans.collect::<Result<_, _>>()?);
                Ok(Self::Ask(Ask {
                    number,
                    contact,
                    channel,
                    mission,
                    is_damaged: damaged,
                    is_last: last,
                    spans,
                }))
            }
            Wire::Answer { outcomes, .. } if outcomes.len() > SPANS_MAX => Err(refused("outcomes")),
            Wire::Answer { number, outcomes } => Ok(Self::Answer(GapAnswer { number, outcomes })),
            Wire::StandBy { of, .. } | Wire::Delivered { of, .. } if of.len() > NAME_MAX => {
                Err(refused("of"))
            }
            Wire::StandBy { of, since } => {
                let since = time(since).ok_or_else(|| refused("since"))?;
                Ok(Self::StandBy(StandbyRequest { of, since }))
            }
            Wire::Delivered { contacts, .. } if contacts.len() > TOLD_MAX => {
                Err(refused("contacts"))
            }
            Wire::Delivered { of, known, whole, contacts } => {
                let read = contacts.into_iter().map(WireContact::read).collect::<Option<_>>();
                let contacts = read.ok_or_else(|| refused("contacts"))?;
                Ok(Self::Delivered(StandbyReport {
                    of,
                    is_known: known,
                    is_whole: whole,
                    contacts,
                }))
            }
        }
    }
}

impl Span {
    fn wire(&self) -> WireSpan {
        let Channel { scid, vcid } = self.channel;
        let us = |place: Place| place.received.as_micros();
        let bits = |place: Place| place.position.as_bits();
        let (from, to) = (self.from, self.to);
        WireSpan(
            scid.value(),
            vcid.value(),
            self.first,
            self.count,
            us(from),
            us(to),
            bits(from),
            bits(to),
        )
    }
}

impl WireSpan {
    /// The decoded message; none if a field is too wide, or the positions are not in order.
    fn read(&self) -> Option<Span> {
        let Self(scid, vcid, first, count, from_us, to_us, from_bit, to_bit) = *self;
        let channel = Channel { scid: Scid::new(scid)?, vcid: Vcid::new(vcid)? };
        let place = |us, bits| Place {
            received: Utc::from_micros(us),
            position: BitPosition::from_bits(bits),
        };
        let is_sane = count > 0
            && count < 1 << 56
            && first < 1 << 56
            && from_us <= to_us
            && from_bit <= to_bit;
        is_sane.then(|| Span {
            channel,
            first,
            count,
            from: place(from_us, from_bit),
            to: place(to_us, to_bit),
        })
    }
}

impl DeliveredContact {
    fn wire(&self) -> WireContact {
        let frame =
            |EdgeFrame { received, mark }: EdgeFrame| WireFrame(received.as_micros(), mark.0);
        let lack = |LackingTime { from, to }: &LackingTime| (from.as_micros(), to.as_micros());
        WireContact(
            self.name.clone(),
            self.mission.clone(),
            self.channel.clone(),
            frame(self.first),
            frame(self.last),
            self.is_ended,
            self.idle.as_millis(),
            self.lacks.iter().take(LACKS_MAX).map(lack).collect(),
        )
    }
}

impl WireContact {
    /// The decoded contact; none if a field is too wide, or times are not in order.
    fn read(self) -> Option<DeliveredContact> {
        let Self(name, mission, channel, first, last, is_ended, idle, lacks) = self;
        let frame = |WireFrame(received, mark)| {
            Some(EdgeFrame { received: time(received)?, mark: FrameMark(mark) })
        };
        let (first, last) = (frame(first)?, frame(last)?);
        let lack = |(from, to)| Some(LackingTime { from: time(from)?, to: time(to)? });
        let lacks: Vec<LackingTime> = lacks.into_iter().map(lack).collect::<Option<_>>()?;
        let ascends = |pair: &[LackingTime]| pair[0].to <= pair[1].from;
        let is_sane = name.len() <= 2 * NAME_MAX
            && mission.len().max(channel.len()) <= NAME_MAX
            && lacks.len() <= LACKS_MAX
            && idle < 1 << 40
            && first.received <= last.received
            && lacks.iter().all(|lack| lack.from <= lack.to)
            && lacks.windows(2).all(ascends);
        let idle = Duration::from_millis(idle);
        is_sane.then_some(DeliveredContact {
            name,
            mission,
            channel,
            first,
            last,
            is_ended,
            idle,
            lacks,
        })
    }
}

/// A time of 1970 to 2200.
fn time(micros: i64) -> Option<Utc> {
    (0..7_258_118_400_000_000).contains(&micros).then(|| Utc::from_micros(micros))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASK: &str = concat!(
        r#"{"say":"ask","number":7,"contact":3,"channel":"x-band","mission":"jpss1","#,
        r#""damaged":false,"last":false,"#,
        r#""spans":[[157,16,4101,12,1730000000000000,1730000000020000,80000,200000]]}"#
    );
    const ANSWER: &str = r#"{"say":"answer","number":7,"outcomes":[[9,"not-decodable"]]}"#;
    const STAND_BY: &str = r#"{"say":"stand-by","of":"station-1","since":1730000000000000}"#;
    const DELIVERED: &str = concat!(
        r#"{"say":"delivered","of":"station-1","known":true,"whole":true,"#,
        r#""contacts":[["station-1-3","jpss1","x-band",[1730000000000000,11],"#,
        r#"[1730000060000000,12],false,80,[[1730000000000000,1730000000020000]]]]}"#
    );

    #[test]
    fn what_is_said_reads_as_it_was_written() {
        for text in [ASK, ANSWER, STAND_BY, DELIVERED] {
            let talk = Talk::decode(text.as_bytes()).unwrap();
            assert_eq!(String::from_utf8(talk.encode()).unwrap(), text);
        }
    }

    #[test]
    fn the_longest_question_fits_one_message() {
        let Talk::Ask(mut ask) = Talk::decode(ASK.as_bytes()).unwrap() else {
            panic!("a question")
        };
        let far = Place {
            received: Utc::from_micros(i64::MAX / 1000),
            position: BitPosition::from_bits(u64::MAX),
        };
        let widest =
            Span { first: (1 << 56) - 1, count: (1 << 56) - 1, from: far, to: far, ..ask.spans[0] };
        (ask.number, ask.channel, ask.spans) =
            (u64::MAX, "x".repeat(NAME_MAX), vec![widest; SPANS_MAX]);
        let said = Talk::Ask(ask.clone()).encode();
        assert!(said.len() <= 64 << 10, "{}", said.len());
        assert_eq!(Talk::decode(&said), Ok(Talk::Ask(ask)));
        let answer = Talk::Answer(GapAnswer {
            number: u64::MAX,
            outcomes: vec![(u64::MAX, UnavailableReason::NotDecodable); SPANS_MAX],
        });
        assert!(answer.encode().len() <= 64 << 10);
    }

    #[test]
    fn the_longest_report_fits_one_message() {
        let Talk::Delivered(mut report) = Talk::decode(DELIVERED.as_bytes()).unwrap() else {
            panic!("a report")
        };
        let name = "x".repeat(NAME_MAX);
        let mut contact = report.contacts[0].clone();
        (contact.name, contact.mission) = (name.clone() + &name, name.clone());
        contact.channel.clone_from(&name);
        contact.lacks =
            vec![LackingTime { from: contact.last.received, to: contact.last.received }; LACKS_MAX];
        (report.of, report.contacts) = (name, vec![contact; TOLD_MAX]);
        let said = Talk::Delivered(report.clone()).encode();
        assert!(said.len() <= 64 << 10, "{}", said.len());
        assert_eq!(Talk::decode(&said), Ok(Talk::Delivered(report)));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        for (from, to) in [
            ("157,16,", "157000,16,"),
            (",16,", ",64,"),
            ("4101,12", "4101,0"),
            ("80000,200000", "9,8"),
        ] {
            let text = ASK.replacen(from, to, 1);
            assert!(Talk::decode(text.as_bytes()).is_err(), "{text}");
        }
        for (from, to) in [
            ("1730000060000000", "1729999999999999"),
            ("1730000000020000", "1729999999999999"),
            ("1730000060000000", "-1"),
            (",80,", ",1099511627776,"),
        ] {
            let text = DELIVERED.replacen(from, to, 1);
            assert!(Talk::decode(text.as_bytes()).is_err(), "{text}");
        }
        assert!(Talk::decode(b"").unwrap_err().to_string().contains("same release"));
    }
}
