//! What stands between an input's bytes and the capture: packets are opened, and symbols brought to
//! the convention that the capture has (a signed byte, positive for a one).

use crate::status::Vita49Status;
use skyhaul_ccsds::identify::InputLayout;
use skyhaul_config::SoftForm;
use skyhaul_units::Utc;
use skyhaul_vita49::{Depacketiser, Refused, SymbolForm};
use std::borrow::Cow;

/// Opens what an input brings.
#[derive(Debug)]
pub struct Front {
    kind: Kind,
    /// What the capture gets, where that is known.
    format: Option<InputLayout>,
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

/// What the capture is to have.
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
        Self { kind, format: feed.format.known() }
    }

    /// What the capture gets; `None` where it has to find out. Packets may say it anew.
    pub const fn format(&self) -> Option<InputLayout> {
        self.format
    }

    /// Takes what was read at once, and gives what the capture is to have; `None` where that is
    /// nothing.
    ///
    /// # Errors
    /// [`Refused`]: it holds nothing that the capture could have.
    pub fn take<'a>(
        &mut self,
        received: Utc,
        bytes: &'a [u8],
    ) -> Result<Option<CaptureInput<'a>>, Refused> {
        match &mut self.kind {
            Kind::Plain => Ok(Some(CaptureInput { received, bytes: Cow::Borrowed(bytes) })),
            Kind::Offset => Ok(Some(CaptureInput { received, bytes: Cow::Owned(signed(bytes)) })),
            Kind::Vita49(packets) => {
                let Some(symbols) = packets.push(received, bytes)? else { return Ok(None) };
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

    /// What became of packets, where packets come.
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

/// The same symbols with the middle at zero.
fn signed(symbols: &[u8]) -> Vec<u8> {
    symbols.iter().map(|symbol| symbol ^ 0x80).collect()
}
