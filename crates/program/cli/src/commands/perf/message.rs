//! The messages between the two ends, as JSON in blocks of their first flow.

use serde::{Deserialize, Serialize};
use skyhaul_probe::why::{DiskBacklog, Lack};
use skyhaul_transport::{Block, FlowId};

/// The flow of the messages, in both directions.
pub const TALK: FlowId = FlowId(0);

/// The flow of the blocks that are measured.
pub const DATA: FlowId = FlowId(1);

/// A message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "message", rename_all = "kebab-case")]
pub enum Message {
    /// Sender: requests the receiver's time.
    Ask {
        /// To match the answer.
        number: u32,
    },
    /// Receiver: its clock.
    Time {
        /// Of the question.
        number: u32,
        /// Nanoseconds since 1970.
        utc_ns: i64,
    },
    /// Sender: measurement begins with the next block.
    Begin {
        /// By how much the receiver's clock is ahead of the sender's, as the sender found.
        clock_ahead_ns: i64,
        /// Flows, from that of the measured blocks on, whose course is wanted.
        #[serde(default)]
        courses: usize,
    },
    /// Sender: all blocks are acknowledged; what did you find?
    End,
    /// Receiver: what it found.
    Found(ReceiverResult),
}

/// What the receiving end measured.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReceiverResult {
    /// Processor time of the receiving process from `Begin` to `End`, all its threads.
    pub cpu_s: f64,
    /// Blocks of which no symbol had to be repeated.
    pub delivered: u64,
    /// Blocks that needed repair.
    pub repaired: u64,
    /// From handing over to delivery.
    pub latency_s: LatencyQuantiles,
    /// Datagrams that this end's kernel dropped because its socket's queue was full; `None` if the
    /// kernel does not count them.
    pub socket_drops: Option<u64>,
    /// Symbols that brought nothing new.
    pub symbols_duplicate: u64,
    /// The share of the time from `Begin` to `End` for which this end's busiest thread ran; `None`
    /// if the system does not report it.
    #[serde(default)]
    pub busiest_thread: Option<f64>,
    /// The part of that time for which this end was in calls to its disk; `None` where it keeps
    /// nothing.
    #[serde(default)]
    pub disk_share: Option<f64>,
    /// What kept this end's threads from running; `None` if the system does not report it.
    #[serde(default)]
    pub lack: Option<Lack>,
    /// What it has not written yet; `None` where it keeps nothing.
    #[serde(default)]
    pub backlog: Option<DiskBacklog>,
    /// Bytes of each flow whose course was wanted, in each tenth of a second from `Begin` on.
    #[serde(default)]
    pub courses: Vec<Vec<u64>>,
}

/// Quantiles of a time, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyQuantiles {
    /// The median.
    pub p50: f64,
    /// All but one in a hundred are shorter.
    pub p99: f64,
    /// All but one in a thousand are shorter.
    pub p999: f64,
    /// The longest.
    pub max: f64,
}

/// The block that carries `message`.
pub fn say(message: &Message) -> Block {
    let bytes = serde_json::to_vec(message).expect("messages are plain data");
    Block::reliable(TALK, bytes.into())
}

/// The message in a block's bytes; `None` where there is none.
pub fn heard(bytes: &[u8]) -> Option<Message> {
    serde_json::from_slice(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_cross() {
        let messages = [
            Message::Ask { number: 3 },
            Message::Time { number: 3, utc_ns: -1 },
            Message::Begin { clock_ahead_ns: i64::MIN, courses: 2 },
            Message::End,
            Message::Found(ReceiverResult { cpu_s: 0.25, ..ReceiverResult::default() }),
        ];
        for message in &messages {
            assert_eq!(heard(&say(message).bytes).as_ref(), Some(message));
        }
        assert_eq!(heard(&[0xff; 40]), None);
    }
}
