//! CCSDS channel coding, which stands between a received block of bytes and a transfer frame, and
//! the erasure code that stands between datagrams and the line.
//!
//! - [`crc`]: the frame error control field, a CRC-16 that only detects.
//! - [`ReedSolomon`]: (255,223) and (255,239) over GF(256), interleaved, with virtual fill, in the
//!   dual or the conventional basis; corrects up to 16 or 8 symbols a codeword. One block at a
//!   time.
//! - [`BatchDecoder`] and [`BatchEncoder`]: the same for many blocks at once, on the vector
//!   instructions of the processor; faster by about ten times where these are wide.
//! - [`marker`]: the search for a synchronisation marker at every bit.
//! - [`align`]: bytes out of a bit stream from any bit on.
//! - [`convolutional`]: the code of constraint length 7, its punctured rates, and its Viterbi
//!   decoder.
//! - [`ldpc`]: the low-density parity-check codes and their decoder.
//! - [`nrzm`]: differential coding.
//! - [`Randomiser`]: the two pseudo-random sequences that keep the modulator busy.
//! - [`fhec`]: the (10,6) code over GF(16) on the AOS frame header.
//! - [`erasure`]: repair symbols for lost datagrams.
//! - [`gf`]: which vector instructions the processor has, and sums of products on them.
//!
//! Turbo codes are left out: demodulators undo those.
//!
//! ```
//! use skyhaul_coding::{Basis, Correction, Parameters, ReedSolomon};
//! let (correction, basis) = (Correction::E16, Basis::Dual);
//! let parameters = Parameters { correction, basis, interleave: 4, virtual_fill: 0 };
//! let code = ReedSolomon::new(parameters)?;
//! let mut block = vec![0x5A; code.block_len()];
//! let (frame, check) = block.split_at_mut(code.data_len());
//! code.encode(frame, check);
//! block[100] ^= 0xFF;
//! let decoded = code.decode(&mut block);
//! assert_eq!(decoded.corrected_symbols(), 1);
//! assert_eq!(block[100], 0x5A);
//! # Ok::<(), skyhaul_coding::ParameterError>(())
//! ```

pub mod align;
mod batch;
pub mod convolutional;
pub mod crc;
mod division;
pub mod erasure;
pub mod fhec;
mod field;
pub mod gf;
mod interleave;
mod key_equation;
pub mod ldpc;
pub mod marker;
#[cfg(test)]
mod noise;
pub mod nrzm;
mod parameters;
mod randomiser;
mod vector;

pub use batch::{BatchDecoder, BatchEncoder};
pub use interleave::{Codeword, Decoded, ReedSolomon};
pub use parameters::{Basis, Correction, MAX_INTERLEAVE, ParameterError, Parameters};
pub use randomiser::{Randomiser, Sequence};
