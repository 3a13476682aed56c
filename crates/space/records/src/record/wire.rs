//! Fields of contact records: varints, texts and a frame's annotations.

use super::{Base, LONGEST_BODY, RecordError, damaged};
use bytes::Bytes;
use skyhaul_ccsds::frame::Check;
use skyhaul_ccsds::quality::{
    BitPosition, CapturedFrame, CorrectedSymbols, FrameVerdict, Iterations, Quality, Reason,
};
use skyhaul_coding::MAX_INTERLEAVE;
use skyhaul_units::Utc;

pub(super) fn put_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub(super) fn put_i64(value: i64, out: &mut Vec<u8>) {
    out.extend(value.to_be_bytes());
}

pub(super) fn put_text(text: &str, out: &mut Vec<u8>) {
    put_varint(text.len() as u64, out);
    out.extend(text.as_bytes());
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

/// What a length at the start of a record is.
pub(super) enum Length {
    /// Not all of it is there.
    Incomplete,
    /// Longer than a varint can be.
    Invalid,
    Of(u64),
}

/// Bytes being read; every method returns `None` where they do not suffice.
pub(super) struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    pub const fn new(rest: &'a [u8]) -> Self {
        Self { rest }
    }
    pub const fn rest(&self) -> &'a [u8] {
        self.rest
    }
    pub fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(taken)
    }
    pub fn u8(&mut self) -> Option<u8> {
        self.take(1).map(|bytes| bytes[0])
    }
    pub fn u16(&mut self) -> Option<u16> {
        self.take(2).map(|bytes| u16::from_be_bytes([bytes[0], bytes[1]]))
    }
    pub fn u32(&mut self) -> Option<u32> {
        self.take(4)?.first_chunk::<4>().map(|bytes| u32::from_be_bytes(*bytes))
    }
    pub fn i64(&mut self) -> Option<i64> {
        let bytes = self.take(8)?.first_chunk::<8>()?;
        Some(i64::from_be_bytes(*bytes))
    }
    pub fn varint(&mut self) -> Option<u64> {
        match self.length() {
            Length::Of(value) => Some(value),
            Length::Incomplete | Length::Invalid => None,
        }
    }
    pub fn signed(&mut self) -> Option<i64> {
        self.varint().map(unzigzag)
    }
    pub fn text(&mut self) -> Option<String> {
        let len = usize::try_from(self.varint()?).ok().filter(|len| *len <= LONGEST_BODY)?;
        String::from_utf8(self.take(len)?.to_vec()).ok()
    }
    pub fn length(&mut self) -> Length {
        let mut value = 0u64;
        for place in 0..10 {
            let Some(byte) = self.u8() else { return Length::Incomplete };
            let bits = u64::from(byte & 0x7F);
            if place == 9 && bits > 1 {
                return Length::Invalid;
            }
            value |= bits << (7 * place);
            if byte & 0x80 == 0 {
                return Length::Of(value);
            }
        }
        Length::Invalid
    }
}

const FLAG_SYNC: u8 = 1 << 2;
const FLAG_CORRECTED: u8 = 1 << 3;
const FLAG_CHECK_SYMBOLS: u8 = 1 << 4;
const FLAG_CHECKS: u8 = 1 << 5;
const FLAG_BASE: u8 = 1 << 6;
const FLAG_ITERATIONS: u8 = 1 << 7;

pub(super) const fn reason_code(reason: Reason) -> u8 {
    match reason {
        Reason::ReedSolomon => 1,
        Reason::FrameErrorControl => 2,
        Reason::Header => 3,
        Reason::Ldpc => 4,
    }
}

const fn verdict_code(verdict: FrameVerdict) -> u8 {
    match verdict {
        FrameVerdict::Clean => 0,
        FrameVerdict::Corrected => 1,
        FrameVerdict::Uncorrectable => 2,
        FrameVerdict::NotChecked => 3,
    }
}

const fn check_code(check: Check) -> u8 {
    match check {
        Check::None => 0,
        Check::Good => 1,
        Check::Corrected => 2,
        Check::Bad => 3,
    }
}

const CHECKS: [Check; 4] = [Check::None, Check::Good, Check::Corrected, Check::Bad];
const VERDICTS: [FrameVerdict; 4] = [
    FrameVerdict::Clean,
    FrameVerdict::Corrected,
    FrameVerdict::Uncorrectable,
    FrameVerdict::NotChecked,
];

/// Writes a frame's annotations and returns where the next frame's differences start.
pub(super) fn put_annotations(
    frame: &CapturedFrame,
    base: Option<Base>,
    out: &mut Vec<u8>,
) -> Base {
    let quality = &frame.quality;
    let sync = (quality.marker_errors, quality.slip, quality.inverted, quality.flywheel)
        != (0, 0, false, false);
    let checks = (quality.fhec, quality.fecf) != (Check::None, Check::None);
    let corrected = !quality.corrected.by_codeword().is_empty();
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.push(
        verdict_code(quality.verdict)
            | flag(sync, FLAG_SYNC)
            | flag(corrected, FLAG_CORRECTED)
            | flag(!frame.check_symbols.is_empty(), FLAG_CHECK_SYMBOLS)
            | flag(checks, FLAG_CHECKS)
            | flag(base.is_none(), FLAG_BASE)
            | flag(quality.iterations.is_some(), FLAG_ITERATIONS),
    );
    let received_us = frame.received.as_micros();
    let position = frame.position.as_bits();
    let step = match base {
        None => {
            put_i64(received_us, out);
            out.extend(position.to_be_bytes());
            0
        }
        Some(base) => {
            let step = position.wrapping_sub(base.position);
            put_varint(zigzag(received_us.wrapping_sub(base.received_us)), out);
            put_varint(zigzag(step.wrapping_sub(base.step) as i64), out);
            step
        }
    };
    if sync {
        let bits = u8::from(quality.inverted) | u8::from(quality.flywheel) << 1;
        out.extend([quality.marker_errors, quality.slip as u8, bits]);
    }
    if corrected {
        let symbols = quality.corrected.by_codeword();
        out.push(symbols.len() as u8);
        out.extend(symbols);
    }
    if !frame.check_symbols.is_empty() {
        put_varint(frame.check_symbols.len() as u64, out);
    }
    if checks {
        out.push(check_code(quality.fhec) << 2 | check_code(quality.fecf));
    }
    if let Some(iterations) = quality.iterations {
        put_varint(u64::from(iterations.count), out);
        put_varint(u64::from(iterations.corrected_symbols), out);
    }
    Base { received_us, position, step }
}

/// Reads a frame's body and returns where the next frame's differences start.
pub(super) fn take_annotations(
    input: &mut Input<'_>,
    is_set_aside: bool,
    base: Option<Base>,
) -> Result<(CapturedFrame, Base), RecordError> {
    let record = if is_set_aside { "set-aside" } else { "frame" };
    let fault = |field| move || damaged(record, field);
    let set_aside = match is_set_aside {
        false => None,
        true => Some(match input.u8() {
            Some(1) => Reason::ReedSolomon,
            Some(2) => Reason::FrameErrorControl,
            Some(3) => Reason::Header,
            Some(4) => Reason::Ldpc,
            _ => return Err(damaged(record, "reason")),
        }),
    };
    let flags = input.u8().ok_or_else(fault("flags"))?;
    let next = take_base(input, flags & FLAG_BASE != 0, base, record)?;
    let mut quality = Quality { verdict: VERDICTS[usize::from(flags & 3)], ..Quality::NOT_CHECKED };
    if flags & FLAG_SYNC != 0 {
        let sync = input.take(3).filter(|sync| sync[2] < 4).ok_or_else(fault("sync detail"))?;
        quality.marker_errors = sync[0];
        quality.slip = sync[1] as i8;
        quality.inverted = sync[2] & 1 != 0;
        quality.flywheel = sync[2] & 2 != 0;
    }
    if flags & FLAG_CORRECTED != 0 {
        let codewords = input.u8().map(usize::from).filter(|count| *count <= MAX_INTERLEAVE);
        let symbols =
            codewords.and_then(|count| input.take(count)).ok_or_else(fault("corrected symbols"))?;
        quality.corrected = CorrectedSymbols::new(symbols);
    }
    let mut check_len = 0;
    if flags & FLAG_CHECK_SYMBOLS != 0 {
        let length = input.varint().and_then(|length| usize::try_from(length).ok());
        check_len = length.filter(|length| *length > 0).ok_or_else(fault("check symbols"))?;
    }
    if flags & FLAG_CHECKS != 0 {
        let checks = input.u8().filter(|checks| *checks < 16).ok_or_else(fault("check fields"))?;
        quality.fhec = CHECKS[usize::from(checks >> 2)];
        quality.fecf = CHECKS[usize::from(checks & 3)];
    }
    if flags & FLAG_ITERATIONS != 0 {
        quality.iterations = Some(take_iterations(input).ok_or_else(fault("iterations"))?);
    }
    let frame_len = input.rest().len().checked_sub(check_len).ok_or_else(fault("check symbols"))?;
    let (bytes, check_symbols) = input.rest().split_at(frame_len);
    let frame = CapturedFrame {
        received: Utc::from_micros(next.received_us),
        position: BitPosition::from_bits(next.position),
        quality,
        set_aside,
        bytes: Bytes::copy_from_slice(bytes),
        check_symbols: Bytes::copy_from_slice(check_symbols),
    };
    Ok((frame, next))
}

fn take_iterations(input: &mut Input<'_>) -> Option<Iterations> {
    let count = u16::try_from(input.varint()?).ok()?;
    Some(Iterations { count, corrected_symbols: u32::try_from(input.varint()?).ok()? })
}

fn take_base(
    input: &mut Input<'_>,
    is_base: bool,
    base: Option<Base>,
    record: &'static str,
) -> Result<Base, RecordError> {
    if is_base {
        let fields = input.i64().zip(input.i64());
        let (received_us, position) = fields.ok_or(damaged(record, "time and position"))?;
        return Ok(Base { received_us, position: position as u64, step: 0 });
    }
    let base = base.ok_or(RecordError::NoBase)?;
    let differences = input.signed().zip(input.signed());
    let (time, position) = differences.ok_or(damaged(record, "time and position"))?;
    let step = base.step.wrapping_add(position as u64);
    Ok(Base {
        received_us: base.received_us.wrapping_add(time),
        position: base.position.wrapping_add(step),
        step,
    })
}
