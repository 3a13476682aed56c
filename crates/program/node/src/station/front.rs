//! Prepares an input's bytes for the capture: opens packets, and converts symbols to the convention
//! of the capture (a signed byte, positive for a one).

use crate::status::Vita49Status;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_config::SoftForm;
use skyhaul_units::Utc;
use skyhaul_vita49::{Depacketiser, Refused, SymbolForm};
use std::borrow::Cow;

/// The preparation of an input's bytes.
#[derive(Debug)]
pub struct Front {
    kind: Kind,
    /// The layout of the prepared bytes, where it is known.
    format: Option<InputLayout>,
    /// The last packet without symbols: it says how those after it are to be read.
    description: Vec<u8>,
}

#[derive(Debug)]
enum Kind {
    /// Bytes are taken as they come.
    Plain,
    /// Unsigned symbols.
    Offset,
    /// Packets.
    Vita49(Box<Depacketiser>),
}

/// Prepared bytes.
#[derive(Debug)]
pub struct CaptureInput<'a> {
    /// When the last bit was received.
    pub received: Utc,
    /// Bits, packed, or symbols.
    pub bytes: Cow<'a, [u8]>,
}

impl Front {
    /// For an input of a channel.
    pub fn of(feed: &skyhaul_config::ResolvedInput) -> Self {
        let kind = match (feed.format, feed.soft) {
            (skyhaul_config::InputFormat::Vita49, _) => Kind::Vita49(Box::default()),
            (skyhaul_config::InputFormat::Soft, SoftForm::Offset) => Kind::Offset,
            _ => Kind::Plain,
        };
        Self { kind, format: feed.format.known(), description: Vec::new() }
    }

    /// The layout of the prepared bytes; `None` where the capture has to identify it. Packets may
    /// change it.
    pub const fn format(&self) -> Option<InputLayout> {
        self.format
    }

    /// Prepares the bytes of one read; `None` where they give nothing.
    ///
    /// # Errors
    /// [`Refused`]: the packet cannot be used.
    pub fn take<'a>(
        &mut self,
        received: Utc,
        bytes: &'a [u8],
    ) -> Result<Option<CaptureInput<'a>>, Refused> {
        match &mut self.kind {
            Kind::Plain => Ok(Some(CaptureInput { received, bytes: Cow::Borrowed(bytes) })),
            Kind::Offset => Ok(Some(CaptureInput { received, bytes: Cow::Owned(signed(bytes)) })),
            Kind::Vita49(packets) => {
                let contexts = packets.counters().context;
                let Some(symbols) = packets.push(received, bytes)? else {
                    if packets.counters().context > contexts {
                        bytes.clone_into(&mut self.description);
                    }
                    return Ok(None);
                };
                self.format = match symbols.form {
                    SymbolForm::Hard => None,
                    SymbolForm::Signed | SymbolForm::Offset => Some(InputLayout::Soft),
                };
                let bytes = match symbols.form {
                    SymbolForm::Hard | SymbolForm::Signed => symbols.bytes,
                    SymbolForm::Offset => signed(&symbols.bytes),
                };
                Ok(Some(CaptureInput { received: symbols.received, bytes: Cow::Owned(bytes) }))
            }
        }
    }

    /// The last packet that says how those after it are to be read; empty where none came.
    pub fn description(&self) -> &[u8] {
        &self.description
    }

    /// The counters of packets, where the input brings packets.
    pub fn packets(&self) -> Option<Vita49Status> {
        let Kind::Vita49(packets) = &self.kind else { return None };
        let (counters, context) = (packets.counters(), packets.context());
        Some(Vita49Status {
            data: counters.data,
            lost: counters.lost,
            reordered: counters.reordered,
            lossy: counters.lossy,
            refused: counters.samples + counters.damaged,
            other: counters.other,
            rf_frequency_hz: context.rf_frequency_hz,
            symbol_rate_bps: context.sample_rate.map(|rate| rate.as_bps()),
            reference_level_dbm: context
                .reference_level_128th_dbm
                .map(|level| f64::from(level) / 128.0),
        })
    }
}

/// Converts unsigned symbols to signed ones.
fn signed(symbols: &[u8]) -> Vec<u8> {
    symbols.iter().map(|symbol| symbol ^ 0x80).collect()
}
