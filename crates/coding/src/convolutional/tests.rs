//! The code against its definition, the decoder against a plain one and against published error rates.

use super::*;
use crate::gf::Kernel;
use proptest::prelude::*;

/// Numbers that look random (xorshift64*), and normally distributed ones made of them.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// From 0, exclusive, to 1.
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 1.0) / (1u64 << 53) as f64
    }

    /// Mean 0, deviation 1 (Box and Muller).
    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (core::f64::consts::TAU * self.uniform()).cos()
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| (self.next() >> 40) as u8).collect()
    }
}

fn encode(code: Code, data: &[u8]) -> Vec<bool> {
    let mut symbols = Vec::new();
    Encoder::new(code).encode(data, |bit| symbols.push(bit));
    symbols
}

/// What a receiver has of the symbols at this ratio of energy in an information bit to noise density, in decibel.
fn receive(symbols: &[bool], bits: usize, decibel: f64, noise: &mut Noise) -> Vec<f64> {
    let rate = bits as f64 / symbols.len() as f64;
    let deviation = (2.0 * rate * 10f64.powf(decibel / 10.0)).powf(-0.5);
    symbols.iter().map(|bit| if *bit { 1.0 } else { -1.0 } + deviation * noise.normal()).collect()
}

fn soft(received: &[f64], amplitude: f64) -> Vec<i8> {
    received.iter().map(|value| (value * amplitude).round().clamp(-127.0, 127.0) as i8).collect()
}

fn decode(mut decoder: Decoder, symbols: &[i8]) -> Vec<u8> {
    let mut out = Vec::new();
    decoder.push(symbols, &mut out);
    decoder.finish(&mut out);
    out
}

fn wrong_bits(a: &[u8], b: &[u8]) -> u32 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones()).sum()
}

#[test]
fn explore() {
    for db in [2.0, 2.5, 3.0, 3.5, 4.0] {
        let mut noise = Noise(7);
        let data = noise.bytes(250_000);
        let code = Code::new(Rate::Half);
        let symbols = encode(code, &data);
        let received = receive(&symbols, 8 * data.len(), db, &mut noise);
        let t = std::time::Instant::now();
        let out = decode(Decoder::new(code), &soft(&received, 60.0));
        eprintln!("{db} {:e} {:?}", f64::from(wrong_bits(&out, &data)) / 2e6, t.elapsed());
    }
}
