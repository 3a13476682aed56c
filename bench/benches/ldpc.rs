//! The low-density parity-check codes by set of instructions, beside labrador-ldpc where it has the
//! code: one table.
//!
//! Mbit/s count information bits, decoded from soft symbols in noise of the ratio that is said, of
//! which every codeword comes out; and encoded. All candidates of a line take turns, and the
//! fastest turn of each counts: other work of the machine makes a turn slower, never faster.

#![allow(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "wall-clock figures, to be read"
)]

use labrador_ldpc::LDPCCode;
use skyhaul_coding::gf::Kernel;
use skyhaul_coding::ldpc::{
    Code, Decoded, Information, LdpcDecoder, LdpcEncoder, MAX_ITERATIONS, Rate,
};
use std::time::{Duration, Instant};

/// Energy in an information bit to noise density, in decibel, of each code of [`Code::ALL`].
const DECIBEL: [f64; 10] = [4.2, 4.4, 3.3, 2.3, 3.6, 2.5, 1.6, 3.3, 2.2, 1.3];
/// Time for all turns of a candidate.
const PATIENCE: Duration = Duration::from_millis(400);
/// Fewest turns of a candidate.
const TURNS: usize = 3;
/// Codewords of a turn: lanes are taken several times.
const CODEWORDS: usize = 256;
/// Of these labrador-ldpc decodes so many, one by one.
const ONE_BY_ONE: usize = 16;

/// Codewords in noise.
struct Received {
    code: Code,
    frames: Vec<u8>,
    symbols: Vec<i8>,
}

/// Who takes turns: says how many information bits it dealt with.
struct Candidate<'a> {
    turn: Box<dyn FnMut() -> usize + 'a>,
    spent: Duration,
    best: f64,
}

fn main() {
    let kernels: Vec<Kernel> = Kernel::available().collect();
    let names: Vec<&str> = kernels.iter().map(|kernel| kernel.name()).collect();
    println!(
        "| Mbit/s | Eb/N0, dB | iterations | {} | labrador-ldpc | ÷ | encode | labrador-ldpc | ÷ |",
        names.join(" | ")
    );
    println!("|---|---|---|{}---|---|---|---|---|", "---|".repeat(kernels.len()));
    for (code, decibel) in Code::ALL.into_iter().zip(DECIBEL) {
        let received = Received::new(code, decibel);
        let mut frames = Vec::new();
        let decoded = LdpcDecoder::new(code).decode(&received.symbols, &mut frames);
        assert!(frames == received.frames, "every codeword comes out");
        let iterations = decoded.iter().map(|decoded| f64::from(decoded.iterations())).sum::<f64>();
        let mut decoders: Vec<Candidate<'_>> =
            kernels.iter().map(|kernel| ours(&received, *kernel)).collect();
        decoders.extend(theirs(&received));
        let mut encoders = vec![our_encoder(&received)];
        encoders.extend(their_encoder(&received));
        let [decoders, encoders] =
            [(decoders, kernels.len()), (encoders, 1)].map(|(candidates, ours)| {
                let best = measure(candidates);
                let mut cells: Vec<String> = best.iter().map(|mbps| figure(*mbps)).collect();
                match best.get(ours) {
                    Some(theirs) => cells.push(figure(best[0] / theirs)),
                    None => cells.extend([String::new(), String::new()]),
                }
                cells.join(" | ")
            });
        let iterations = iterations / CODEWORDS as f64;
        println!("| {} | {decibel} | {iterations:.1} | {decoders} | {encoders} |", code.name());
    }
}

impl Received {
    fn new(code: Code, decibel: f64) -> Self {
        let mut draw = skyhaul_bench::draw();
        let frames: Vec<u8> = (0..CODEWORDS * code.frame_len()).map(|_| draw(256) as u8).collect();
        let rate = code.information_bits() as f64 / code.codeword_bits() as f64;
        let deviation = (2.0 * rate * 10f64.powf(decibel / 10.0)).sqrt().recip();
        let mut uniform = || (draw(1 << 30) as f64 + 1.0) / f64::from(1 << 30);
        let mut symbols = Vec::with_capacity(CODEWORDS * code.codeword_bits());
        let encoder = LdpcEncoder::new(code);
        let mut codeword = vec![0; code.codeword_len()];
        for frame in frames.chunks_exact(code.frame_len()) {
            encoder.encode(frame, &mut codeword);
            let bits =
                codeword.iter().flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1 == 1));
            symbols.extend(bits.map(|bit| {
                // Box and Muller.
                let noise =
                    (-2.0 * uniform().ln()).sqrt() * (std::f64::consts::TAU * uniform()).cos();
                // What labrador-ldpc advises for bytes: at most 31. The scale makes no difference
                // to us.
                (12.0 * (if bit { 1.0 } else { -1.0 } + deviation * noise))
                    .round()
                    .clamp(-31.0, 31.0) as i8
            }));
        }
        Self { code, frames, symbols }
    }

    /// The same code as labrador-ldpc has it.
    fn labrador(&self) -> Option<LDPCCode> {
        let Code::Ar4ja { information, rate } = self.code else { return None };
        match (information, rate) {
            (Information::K1024, Rate::FourFifths) => Some(LDPCCode::TM1280),
            (Information::K1024, Rate::TwoThirds) => Some(LDPCCode::TM1536),
            (Information::K1024, Rate::Half) => Some(LDPCCode::TM2048),
            (Information::K4096, Rate::FourFifths) => Some(LDPCCode::TM5120),
            (Information::K4096, Rate::TwoThirds) => Some(LDPCCode::TM6144),
            (Information::K4096, Rate::Half) => Some(LDPCCode::TM8192),
            (Information::K16384, _) => None,
        }
    }
}

impl<'a> Candidate<'a> {
    fn new(turn: impl FnMut() -> usize + 'a) -> Self {
        Self { turn: Box::new(turn), spent: Duration::ZERO, best: 0.0 }
    }
}

/// The best rates of candidates, in Mbit/s.
fn measure(mut candidates: Vec<Candidate<'_>>) -> Vec<f64> {
    let mut turns = 0;
    while turns < TURNS || candidates.iter().any(|candidate| candidate.spent < PATIENCE) {
        for candidate in
            candidates.iter_mut().filter(|candidate| turns < TURNS || candidate.spent < PATIENCE)
        {
            let begun = Instant::now();
            let bits = (candidate.turn)();
            let spent = begun.elapsed();
            candidate.spent += spent;
            candidate.best = candidate.best.max(bits as f64 / spent.as_secs_f64() / 1e6);
        }
        turns += 1;
    }
    candidates.iter().map(|candidate| candidate.best).collect()
}

fn ours(received: &Received, kernel: Kernel) -> Candidate<'_> {
    let mut decoder = LdpcDecoder::with_kernel(received.code, kernel);
    let mut frames = Vec::new();
    Candidate::new(move || {
        frames.clear();
        let decoded = decoder.decode(&received.symbols, &mut frames);
        assert!(decoded.iter().all(Decoded::is_good));
        8 * frames.len()
    })
}

fn theirs(received: &Received) -> Option<Candidate<'_>> {
    let code = received.labrador()?;
    // Positive for zero, as against ours.
    let symbols: Vec<i8> =
        received.symbols[..ONE_BY_ONE * code.n()].iter().map(|symbol| -symbol).collect();
    let mut output = vec![0; code.output_len()];
    let (mut working, mut bytes) =
        (vec![0; code.decode_ms_working_len()], vec![0; code.decode_ms_working_u8_len()]);
    Some(Candidate::new(move || {
        let mut good = 0;
        for symbols in symbols.chunks_exact(code.n()) {
            let limit = MAX_ITERATIONS.into();
            let (is_good, _) =
                code.decode_ms(symbols, &mut output, &mut working, &mut bytes, limit);
            good += usize::from(is_good);
        }
        assert!(2 * good > ONE_BY_ONE, "{good} of {ONE_BY_ONE} codewords came out");
        ONE_BY_ONE * code.k()
    }))
}

fn our_encoder(received: &Received) -> Candidate<'_> {
    let encoder = LdpcEncoder::new(received.code);
    let mut codeword = vec![0; received.code.codeword_len()];
    let frames = &received.frames[..ONE_BY_ONE * received.code.frame_len()];
    Candidate::new(move || {
        frames
            .chunks_exact(received.code.frame_len())
            .for_each(|frame| encoder.encode(frame, &mut codeword));
        8 * frames.len()
    })
}

fn their_encoder(received: &Received) -> Option<Candidate<'_>> {
    let code = received.labrador()?;
    let frames = &received.frames[..ONE_BY_ONE * code.k() / 8];
    let mut codeword = vec![0u8; code.n() / 8];
    Some(Candidate::new(move || {
        for frame in frames.chunks_exact(code.k() / 8) {
            code.copy_encode(frame, &mut codeword);
        }
        8 * frames.len()
    }))
}

/// With as many places as say something.
fn figure(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}
