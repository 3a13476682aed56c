//! The encoder of the spacecraft.

use super::Code;

/// Encodes a stream.
#[derive(Debug, Clone)]
pub struct ConvolutionalEncoder {
    code: Code,
    /// The last six bits and the next one, the newest the lowest.
    register: u8,
    /// Bits since the pattern of symbols sent began.
    phase: usize,
}

impl ConvolutionalEncoder {
    /// Begins with zeros in the register.
    pub const fn new(code: Code) -> Self {
        Self { code, register: 0, phase: 0 }
    }

    /// Encodes the stream's next bits, the highest bit of a byte first; `symbol` takes each that is
    /// sent.
    pub fn encode(&mut self, data: &[u8], mut symbol: impl FnMut(bool)) {
        let pattern = self.code.rate.sent();
        for byte in data {
            for bit in (0..8).rev() {
                self.register = self.register << 1 & 0x7F | byte >> bit & 1;
                let outputs = self.code.outputs(self.register);
                let sent = outputs.into_iter().zip(pattern[self.phase]);
                sent.filter(|(_, is_sent)| *is_sent).for_each(|(output, _)| symbol(output));
                self.phase = (self.phase + 1) % pattern.len();
            }
        }
    }
}
