//! The path as a session uses it.

use super::*;

impl Path for TcpPath {
    fn room(&mut self, _now: Instant) -> usize {
        match self.lifecycle.state() {
            State::Up => self.sender.room(self.stream.unwritten().len()),
            State::Handshake | State::Greeting | State::Over(_) => 0,
        }
    }

    fn send(&mut self, now: Instant, token: Option<Token>, datagram: Bytes) {
        let refused = match self.lifecycle.state() {
            State::Up => self.sender.push(now, token, datagram).err(),
            State::Handshake | State::Greeting | State::Over(_) => Some(token),
        };
        match refused {
            Some(token) => self.events.extend(token.map(PathEvent::Lost)),
            None => self.counters.datagrams_sent += 1,
        }
    }

    fn send_control(&mut self, _now: Instant, bytes: &[u8]) -> usize {
        match self.lifecycle.state() {
            State::Up => self.sender.push_control(bytes),
            State::Handshake | State::Greeting | State::Over(_) => 0,
        }
    }

    fn poll(&mut self, now: Instant) -> Option<PathEvent> {
        if let Some(event) = self.events.pop_front() {
            return Some(event);
        }
        let was_full = self.receiver.is_full();
        if let Some(event) = self.receiver.poll() {
            if was_full && !self.receiver.is_full() {
                self.pulse.heard(now);
            }
            return Some(event);
        }
        self.lifecycle.poll_end().map(PathEvent::Down)
    }

    /// The rate is that of arrival, counted in IP packets. Nothing is lost on a stream: what TCP
    /// repairs shows as time.
    fn estimate(&self) -> Estimate {
        let window = &self.sender.window;
        let (packet, carried) = PACKET;
        Estimate {
            rtt: window.meter().smoothed(),
            min_rtt: window.base(),
            rtt_variation: window.meter().variation(),
            rate: window.rate().scaled(packet, carried),
            loss: Probability::ZERO,
            answered: Instant::ZERO,
            sent: ByteCount::new(self.counters.sent.as_u64().saturating_mul(packet) / carried),
        }
    }

    fn close(&mut self, now: Instant, reason: &str) {
        if !self.lifecycle.is_over() {
            self.stream.close(CLOSE_PLAIN, reason);
            self.end(now, self.lifecycle.closure());
        }
    }
}

/// Closes a path because its node goes on in another process: the far end may call that at once.
pub fn close_to_go_on(path: &mut TcpPath, now: Instant) {
    if !path.lifecycle.is_over() {
        path.stream.close(CLOSE_GOES_ON, GOES_ON);
        path.end(now, path.lifecycle.closure());
    }
}
