//! The symbols of one stream, from its packets: in order, with the time at which they were
//! received, what is missing counted.

use crate::context::{Context, ItemFormat, PayloadFormat, SampleKind};
use crate::error::PacketError;
use crate::packet::{Contents, PacketKind, Vita49Packet};
use skyhaul_units::{ByteCount, Rate, Utc};

/// What symbols are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SymbolForm {
    /// A bit each, the first in the highest bit.
    Hard,
    /// A signed byte each: positive for one, the size is how sure it is.
    Signed,
    /// An unsigned byte each: above 127 for one, the distance from there is how sure it is.
    Offset,
}

/// Symbols that came in one datagram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatagramSymbols {
    /// When the last of them was received: as the packet says, or when the datagram came.
    pub received: Utc,
    /// The time is the packet's own.
    pub is_stamped: bool,
    /// What they are.
    pub form: SymbolForm,
    /// The symbols. Bits that do not fill a byte wait for the next packet.
    pub bytes: Vec<u8>,
}

/// What became of the packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct StreamCounters {
    /// Data packets of the stream that were taken.
    pub data: u64,
    /// Context packets of the stream.
    pub context: u64,
    /// Data packets that are missing by their count. The count goes to 16: of more that are lost in
    /// a row, the multiple of 16 is not seen.
    pub lost: u64,
    /// Data packets that came after a later one, or twice; left out.
    pub reordered: u64,
    /// Packets that say that samples are missing in them.
    pub lossy: u64,
    /// Packets of other streams, and of kinds that hold no symbols; left out.
    pub other: u64,
    /// Data packets whose payload is no symbols; left out.
    pub samples: u64,
    /// Datagrams that are no packets.
    pub damaged: u64,
}

/// Why a datagram gave no symbols.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// It is no packet.
    #[error("{0}; see whether the sender speaks VITA 49 and its datagrams arrive whole")]
    Packet(#[from] PacketError),
    /// The payload is samples.
    #[error(
        "the VITA 49 packets carry {0} samples, not symbols; put a demodulator in front, or let \
        the receiver send its demodulated bits"
    )]
    Samples(&'static str),
    /// The payload is of numbers that are no symbols.
    #[error(
        "the VITA 49 packets carry numbers of {item} bits in fields of {field}; symbols are \
        numbers of 1 bit, or of 8 bits"
    )]
    Items {
        /// Bits of a number.
        item: u8,
        /// Bits of the field that it is in.
        field: u8,
    },
}

/// Takes the datagrams of a socket, and gives the symbols of the first stream that it sees.
#[derive(Debug, Default)]
pub struct Depacketiser {
    /// The stream taken; the inner is none where packets name none.
    stream: Option<Option<u32>>,
    context: Context,
    /// The stream that this was said of.
    context_of: Option<Option<u32>>,
    /// The count that the next data packet should have.
    next: Option<u8>,
    /// Bits that did not fill a byte, at the right, and how many.
    bits: (u8, u32),
    counters: StreamCounters,
}

/// The payload of a data packet.
struct SymbolPayload<'a> {
    form: SymbolForm,
    bytes: &'a [u8],
    /// Bits at the end that belong to no symbol.
    pad_bits: u8,
}

impl Depacketiser {
    /// Before the first packet.
    pub fn new() -> Self {
        Self::default()
    }

    /// What became of the packets so far.
    pub const fn counters(&self) -> StreamCounters {
        self.counters
    }

    /// What is known of the signal.
    pub const fn context(&self) -> &Context {
        &self.context
    }

    /// Takes a datagram that came at `arrived`: one packet, or several one behind the other. `None`
    /// where it holds no symbols of the stream.
    ///
    /// # Errors
    /// [`Refused`]; the symbols of packets before the one refused are lost with it. The next
    /// datagram may be well.
    pub fn push(
        &mut self,
        arrived: Utc,
        datagram: &[u8],
    ) -> Result<Option<DatagramSymbols>, Refused> {
        let mut rest = datagram;
        let mut symbols: Option<DatagramSymbols> = None;
        loop {
            let (packet, after) =
                Vita49Packet::parse(rest).inspect_err(|_| self.counters.damaged += 1)?;
            if let Some(more) = self.take(arrived, &packet)? {
                match &mut symbols {
                    Some(symbols) if symbols.form == more.form => {
                        symbols.bytes.extend_from_slice(&more.bytes);
                        symbols.received = more.received;
                        symbols.is_stamped = more.is_stamped;
                    }
                    _ => symbols = Some(more),
                }
            }
            rest = after;
            if rest.is_empty() {
                return Ok(symbols);
            }
        }
    }

    fn take(
        &mut self,
        arrived: Utc,
        packet: &Vita49Packet<'_>,
    ) -> Result<Option<DatagramSymbols>, Refused> {
        let is_ours = self.stream.is_none_or(|stream| stream == packet.stream);
        match (&packet.contents, packet.kind) {
            (Contents::Context(context), _) if is_ours => {
                self.counters.context += 1;
                let is_same = self.context_of == Some(packet.stream);
                self.context = if is_same { context.after(self.context) } else { **context };
                self.context_of = Some(packet.stream);
                Ok(None)
            }
            (Contents::Data { payload, pad_bits, trailer }, PacketKind::SignalData) if is_ours => {
                self.stream = Some(packet.stream);
                if self.context_of != self.stream {
                    self.context = Context::default();
                }
                let form = self.form().inspect_err(|_| self.counters.samples += 1)?;
                if !self.is_next(packet.count) {
                    return Ok(None);
                }
                self.counters.data += 1;
                let is_lossy = trailer.is_some_and(|trailer| trailer.is_lossy == Some(true));
                self.counters.lossy += u64::from(is_lossy);
                Ok(Some({
                    let payload = SymbolPayload { form, bytes: payload, pad_bits: *pad_bits };
                    self.symbols(arrived, packet, payload)
                }))
            }
            _ => {
                self.counters.other += 1;
                Ok(None)
            }
        }
    }

    /// Whether a data packet with this count is not older than what came.
    fn is_next(&mut self, count: u8) -> bool {
        let ahead = self.next.map_or(0, |next| count.wrapping_sub(next) & 0xF);
        if ahead > FURTHEST {
            self.counters.reordered += 1;
            return false;
        }
        if ahead > 0 {
            // What follows a gap does not go on from the bits before it.
            self.bits = (0, 0);
        }
        self.counters.lost += u64::from(ahead);
        self.next = Some((count + 1) & 0xF);
        true
    }

    /// What the payload is, as the context says; bits where it says nothing.
    fn form(&self) -> Result<SymbolForm, Refused> {
        let Some(format) = self.context.payload_format else { return Ok(SymbolForm::Hard) };
        let PayloadFormat { kind, format, field_bits: field, item_bits: item, .. } = format;
        match (kind, format, item, field) {
            (SampleKind::ComplexCartesian, ..) => Err(Refused::Samples("in-phase and quadrature")),
            (SampleKind::ComplexPolar, ..) => Err(Refused::Samples("amplitude and phase")),
            (SampleKind::Reserved, ..) => Err(Refused::Samples("undefined")),
            (_, ItemFormat::Other(_), ..) => Err(Refused::Samples("floating-point")),
            (_, _, 1, 1) => Ok(SymbolForm::Hard),
            (_, ItemFormat::Signed, 8, 8) => Ok(SymbolForm::Signed),
            (_, ItemFormat::Unsigned, 8, 8) => Ok(SymbolForm::Offset),
            _ => Err(Refused::Items { item, field }),
        }
    }

    fn symbols(
        &mut self,
        arrived: Utc,
        packet: &Vita49Packet<'_>,
        payload: SymbolPayload<'_>,
    ) -> DatagramSymbols {
        let SymbolPayload { form, bytes: payload, pad_bits } = payload;
        let bits = 8 * payload.len() - usize::from(pad_bits);
        let (bytes, count) = match form {
            SymbolForm::Hard => (self.join(payload, bits), bits),
            SymbolForm::Signed | SymbolForm::Offset => (payload[..bits / 8].to_vec(), bits / 8),
        };
        let rate = self.context.sample_rate.filter(|rate| *rate != Rate::ZERO);
        let stamped = packet.time.utc(rate).map(|first| {
            // The rate counts symbols where its own arithmetic counts eight a byte.
            rate.map_or(first, |rate| first + rate.time_for(ByteCount::of(count)) / 8)
        });
        DatagramSymbols {
            received: stamped.unwrap_or(arrived),
            is_stamped: stamped.is_some(),
            form,
            bytes,
        }
    }

    /// The first `count` bits of a payload behind those that wait, as far as they fill bytes.
    fn join(&mut self, payload: &[u8], count: usize) -> Vec<u8> {
        let (mut held, mut waiting) = self.bits;
        let mut bytes = Vec::with_capacity(payload.len() + 1);
        for byte in &payload[..count / 8] {
            let joined = u16::from(held) << 8 | u16::from(*byte);
            bytes.push((joined >> waiting) as u8);
            held = *byte;
        }
        for place in 0..count % 8 {
            held = held << 1 | payload[count / 8] >> (7 - place) & 1;
            waiting += 1;
            if waiting == 8 {
                bytes.push(held);
                waiting = 0;
            }
        }
        self.bits = (held, waiting);
        bytes
    }
}

/// A count that is further ahead of the one expected is behind it.
const FURTHEST: u8 = 8;
