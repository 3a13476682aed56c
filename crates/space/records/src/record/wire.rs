//! Fields of contact records: varints, texts and a frame's annotations.

use super::{Base, LONGEST_BODY, RecordError, damaged};
use bytes::Bytes;
use skyhaul_ccsds::frame::Check;
use skyhaul_ccsds::quality::{
    BitPosition, CapturedFrame, CorrectedSymbols, FrameVerdict, Iterations, Quality, Reason,
};
use skyhaul_coding::MAX_INTERLEAVE;
use skyhaul_units::Utc;
use skyhaul_units::wire::{ByteReader, ByteWriter};

pub(super) fn put_text(text: &str, out: &mut ByteWriter) {
    out.leb128(text.len() as u64);
    out.bytes(text.as_bytes());
}

pub(super) fn take_text(input: &mut ByteReader<'_>) -> Option<String> {
    let len = usize::try_from(input.leb128()?).ok().filter(|len| *len <= LONGEST_BODY)?;
    String::from_utf8(input.take(len)?.to_vec()).ok()
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

const fn unzigzag(value: u64) -> i64 {
    (value >> 1) as i64 ^ -((value & 1) as i64)
}

fn take_signed(input: &mut ByteReader<'_>) -> Option<i64> {
    input.leb128().map(unzigzag)
}

/// Whether a record's frame is good.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Acceptance {
    Good,
    SetAside,
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
    out: &mut ByteWriter,
) -> Base {
    let quality = &frame.quality;
    let sync = (quality.marker_errors, quality.slip, quality.inverted, quality.flywheel)
        != (0, 0, false, false);
    let checks = (quality.fhec, quality.fecf) != (Check::None, Check::None);
    let corrected = !quality.corrected.by_codeword().is_empty();
    let flag = |set: bool, flag: u8| if set { flag } else { 0 };
    out.u8(verdict_code(quality.verdict)
        | flag(sync, FLAG_SYNC)
        | flag(corrected, FLAG_CORRECTED)
        | flag(!frame.check_symbols.is_empty(), FLAG_CHECK_SYMBOLS)
        | flag(checks, FLAG_CHECKS)
        | flag(base.is_none(), FLAG_BASE)
        | flag(quality.iterations.is_some(), FLAG_ITERATIONS));
    let received_us = frame.received.as_micros();
    let position = frame.position.as_bits();
    let step = match base {
        None => {
            out.i64(received_us);
            out.u64(position);
            0
        }
        Some(base) => {
            let step = position.wrapping_sub(base.position);
            out.leb128(zigzag(received_us.wrapping_sub(base.received_us)));
            out.leb128(zigzag(step.wrapping_sub(base.step) as i64));
            step
        }
    };
    if sync {
        let bits = u8::from(quality.inverted) | u8::from(quality.flywheel) << 1;
        out.bytes(&[quality.marker_errors, quality.slip as u8, bits]);
    }
    if corrected {
        let symbols = quality.corrected.by_codeword();
        out.u8(symbols.len() as u8);
        out.bytes(symbols);
    }
    if !frame.check_symbols.is_empty() {
        out.leb128(frame.check_symbols.len() as u64);
    }
    if checks {
        out.u8(check_code(quality.fhec) << 2 | check_code(quality.fecf));
    }
    if let Some(iterations) = quality.iterations {
        out.leb128(u64::from(iterations.count));
        out.leb128(u64::from(iterations.corrected_symbols));
    }
    Base { received_us, position, step }
}

/// Reads a frame's body and returns where the next frame's differences start.
pub(super) fn take_annotations(
    input: &mut ByteReader<'_>,
    acceptance: Acceptance,
    base: Option<Base>,
) -> Result<(CapturedFrame, Base), RecordError> {
    let record = match acceptance {
        Acceptance::Good => "frame",
        Acceptance::SetAside => "set-aside",
    };
    let fault = |field| move || damaged(record, field);
    let set_aside = match acceptance {
        Acceptance::Good => None,
        Acceptance::SetAside => Some(match input.u8() {
            Some(1) => Reason::ReedSolomon,
            Some(2) => Reason::FrameErrorControl,
            Some(3) => Reason::Header,
            Some(4) => Reason::Ldpc,
            _ => return Err(damaged(record, "reason")),
        }),
    };
    let flags = input.u8().ok_or_else(fault("flags"))?;
    let next = match flags & FLAG_BASE {
        0 => take_differences(input, base.ok_or(RecordError::NoBase)?),
        _ => take_base(input),
    };
    let next = next.ok_or_else(fault("time and position"))?;
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
        let length = input.leb128().and_then(|length| usize::try_from(length).ok());
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

fn take_iterations(input: &mut ByteReader<'_>) -> Option<Iterations> {
    let count = u16::try_from(input.leb128()?).ok()?;
    Some(Iterations { count, corrected_symbols: u32::try_from(input.leb128()?).ok()? })
}

/// Time and position as they are.
fn take_base(input: &mut ByteReader<'_>) -> Option<Base> {
    let (received_us, position) = (input.i64()?, input.u64()?);
    Some(Base { received_us, position, step: 0 })
}

/// Time and position as differences from the frame before.
fn take_differences(input: &mut ByteReader<'_>, base: Base) -> Option<Base> {
    let (time, position) = (take_signed(input)?, take_signed(input)?);
    let step = base.step.wrapping_add(position as u64);
    Some(Base {
        received_us: base.received_us.wrapping_add(time),
        position: base.position.wrapping_add(step),
        step,
    })
}
