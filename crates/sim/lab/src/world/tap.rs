//! A look at what an end of a plain path sends.

use crate::PlainEnd;
use bytes::Bytes;
use skyhaul_transport::{Estimate, Path, PathEvent, Token};
use skyhaul_units::Instant;

/// Sees each datagram that the near side sends: when it will have left, and what it is.
pub struct Tap(Box<Look>);

type Look = dyn FnMut(Instant, &Bytes);

impl Tap {
    /// Shows datagrams to `look`.
    pub fn new(look: impl FnMut(Instant, &Bytes) + 'static) -> Self {
        Self(Box::new(look))
    }
}

impl core::fmt::Debug for Tap {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("Tap")
    }
}

/// A path's end with someone who looks.
pub(super) struct Tapped<'a> {
    pub end: &'a mut PlainEnd,
    pub tap: &'a mut Tap,
}

impl Path for Tapped<'_> {
    fn room(&mut self, now: Instant) -> usize {
        self.end.room(now)
    }

    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes) {
        self.end.send(now, token, datagram.clone());
        (self.tap.0)(self.end.last_left(), &datagram);
    }

    fn send_control(&mut self, now: Instant, bytes: &[u8]) -> usize {
        self.end.send_control(now, bytes)
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        self.end.poll(now)
    }

    fn estimate(&self) -> Estimate {
        self.end.estimate()
    }

    fn close(&mut self, now: Instant, reason: &str) {
        self.end.close(now, reason);
    }
}
