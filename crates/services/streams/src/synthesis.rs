//! A synthetic source: VDIF of any rate, for finding bottlenecks and for tests.

use crate::frame_time::FRAME_MAX;
use crate::vdif::VdifHeader;

/// Makes the frames of threads in turn, numbered and timed as a recorder would. The samples of a
/// frame are computed from its place.
#[derive(Debug, Clone)]
pub struct Synthesis {
    /// Of each thread, the next.
    next: Vec<VdifHeader>,
    turn: usize,
    frames_per_second: u32,
    /// Samples, from which a frame takes a stretch.
    noise: Vec<u8>,
    made: u64,
}

impl Synthesis {
    /// Frames of `payload` bytes, of so many threads, so many a second of each. `None` where no
    /// such frames can be: the payload is a multiple of 8 and at most 1 MiB, threads are 1 to 1024,
    /// frames a second at most 2^24.
    pub fn new(payload: usize, threads: u16, frames_per_second: u32) -> Option<Self> {
        let len = payload.checked_add(32).filter(|len| *len <= FRAME_MAX)?;
        let fits = payload > 0 && payload.is_multiple_of(8) && (1..=1024).contains(&threads);
        if !fits || !(1..=1 << 24).contains(&frames_per_second) {
            return None;
        }
        // Epoch 52 is the first half of 2026; version 1, one channel, two bits, station "Sk".
        let header = |thread: u16| {
            let word3 = 1 << 26 | u32::from(thread) << 16 | 0x536B;
            VdifHeader::made([0, 52 << 24, 1 << 29 | (len / 8) as u32, word3, 0, 0, 0, 0])
        };
        let mut state = 0x2545_F491_4F6C_DD1D_u64;
        let noise = (0..payload + STRETCH).map(|_| {
            // xorshift64: two bits of noise a sample, the same in each run.
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state >> 32) as u8
        });
        let (next, noise) = ((0..threads).map(header).collect(), noise.collect());
        Some(Self { next, turn: 0, frames_per_second, noise, made: 0 })
    }

    /// Bytes of a frame.
    pub fn frame_len(&self) -> usize {
        self.next[0].frame_len()
    }

    /// Frames of all threads in a second.
    pub fn frames_per_second(&self) -> u64 {
        u64::from(self.frames_per_second) * self.next.len() as u64
    }

    /// Appends the next frame.
    pub fn frame(&mut self, out: &mut Vec<u8>) {
        let header = &mut self.next[self.turn];
        header.put(out);
        let from = (self.made % STRETCH as u64) as usize;
        out.extend(&self.noise[from..from + header.frame_len() - header.len()]);
        *header = header.next(Some(self.frames_per_second));
        self.turn = (self.turn + 1) % self.next.len();
        self.made += 1;
    }
}

/// Frames after which the samples come again: a prime, so that no thread has always the same.
const STRETCH: usize = 4_093;
