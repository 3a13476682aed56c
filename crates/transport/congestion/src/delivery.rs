//! The delivery rate, measured from acknowledgements (draft-ietf-ccwg-bbr, "delivery rate
//! samples"): the bytes delivered between the sending of a packet and its acknowledgement, over the
//! longer of the times in which they were sent and acknowledged.

use skyhaul_units::{ByteCount, Duration, Instant, Rate};

/// The rate of arrival by one batch of acknowledgements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RateSample {
    /// Bytes delivered within `interval`; zero where there is no sample.
    pub delivered: ByteCount,
    /// The longer of the sending and the acknowledging time.
    pub interval: Duration,
    /// Delivered in all, up to now.
    pub total: ByteCount,
    /// Delivered in all when the newest packet of the batch was sent. A round trip is over when
    /// this reaches what `total` was at its beginning.
    pub prior: ByteCount,
    /// In flight when that packet was sent, itself included.
    pub in_flight_when_sent: ByteCount,
    /// Considered lost between the sending of that packet and now.
    pub lost: ByteCount,
    /// The application had nothing to send for part of it, so the line may be faster than this.
    pub is_app_limited: bool,
}

impl RateSample {
    /// The rate of arrival; `None` where there is no sample.
    pub fn rate(&self) -> Option<Rate> {
        (self.interval > Duration::ZERO && self.delivered > ByteCount::ZERO)
            .then(|| Rate::over(self.delivered, self.interval))
    }
}

/// The counters at the moment a packet was sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stamp {
    pub(crate) sent: Instant,
    pub(crate) delivered: ByteCount,
    delivered_at: Instant,
    first_sent: Instant,
    lost: ByteCount,
    pub(crate) in_flight: ByteCount,
    is_app_limited: bool,
}

/// The counters.
#[derive(Debug)]
pub(crate) struct Delivery {
    delivered: ByteCount,
    delivered_at: Instant,
    /// When the packet was sent whose acknowledgement set `delivered_at` last.
    first_sent: Instant,
    lost: ByteCount,
    /// Samples count as limited by the application until this much is delivered.
    app_limited_until: ByteCount,
}

impl Delivery {
    pub(crate) const fn new(now: Instant) -> Self {
        Self {
            delivered: ByteCount::ZERO,
            delivered_at: now,
            first_sent: now,
            lost: ByteCount::ZERO,
            app_limited_until: ByteCount::ZERO,
        }
    }

    /// A packet is sent; `in_flight` includes it.
    pub(crate) fn sent(&mut self, now: Instant, bytes: ByteCount, in_flight: ByteCount) -> Stamp {
        if in_flight <= bytes {
            // Nothing was in flight: the application was idle since the last acknowledgement, not
            // the line.
            self.delivered_at = now;
            self.first_sent = now;
        }
        Stamp {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at,
            first_sent: self.first_sent,
            lost: self.lost,
            in_flight,
            is_app_limited: self.delivered < self.app_limited_until,
        }
    }

    /// The application did not use the room.
    pub(crate) fn app_limited(&mut self, in_flight: ByteCount) {
        self.app_limited_until = self.delivered + in_flight.max(ByteCount::new(1));
    }

    pub(crate) fn arrived(&mut self, now: Instant, bytes: ByteCount) {
        self.delivered += bytes;
        self.delivered_at = now;
    }

    pub(crate) fn lost(&mut self, bytes: ByteCount) {
        self.lost += bytes;
    }

    /// Considered lost since the packet with `stamp` was sent.
    pub(crate) fn lost_since(&self, stamp: &Stamp) -> ByteCount {
        self.lost - stamp.lost
    }

    /// The sample of a batch whose newest packet was sent with `stamp`.
    pub(crate) fn sample(&mut self, stamp: &Stamp) -> RateSample {
        self.first_sent = stamp.sent;
        let sending = stamp.sent.since(stamp.first_sent);
        let acknowledging = self.delivered_at.since(stamp.delivered_at);
        RateSample {
            delivered: self.delivered - stamp.delivered,
            interval: sending.max(acknowledging),
            total: self.delivered,
            prior: stamp.delivered,
            in_flight_when_sent: stamp.in_flight,
            lost: self.lost - stamp.lost,
            is_app_limited: stamp.is_app_limited,
        }
    }
}
