//! What the two processes of an upgrade say to each other: one JSON object a message, and the order
//! in which they may say it. The two may be of different versions of the program.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The version of the talk.
pub const PROTOCOL: u32 = 1;
/// The longest message, in bytes: a hundred inputs with long names are 60 KB.
pub const MAX_MESSAGE: usize = 128 << 10;

/// What the new process says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromNew {
    /// Everything is checked that can be checked without the node's resources.
    Ready {
        /// The version of the talk.
        protocol: u32,
        /// The version of the program.
        version: String,
    },
    /// It cannot take over.
    Refused {
        /// Why, and what to do.
        why: String,
    },
    /// The node runs; only its live inputs are missing.
    Running,
    /// It has the sources, and reads them from now on.
    Taken,
}

/// What the old process says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromOld {
    /// The state folder is free. Two descriptors for each input: what was read and not decoded, and
    /// what was read since. Then two for each socket: itself, and the datagrams that begin calls
    /// and that were read from it.
    Inputs {
        /// The live inputs.
        inputs: Vec<PassedInput>,
        /// The sockets that wait for calls.
        sockets: Vec<PassedSocket>,
    },
    /// It reads no more, and ends. The descriptors of the sources, in their order.
    Go {
        /// One for each input.
        sources: Vec<PassedSource>,
    },
}

/// A live input of a channel.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedInput {
    /// The channel's name.
    pub channel: String,
    /// The input, as the configuration names it.
    pub input: String,
    /// The address that it listens on.
    pub address: Option<SocketAddr>,
    /// The contact that the channel is in, by its flow.
    pub flow: Option<u32>,
    /// The byte of the capture that the bytes that were not decoded begin with.
    pub undecoded_from: u64,
    /// The next byte of the input behind them.
    pub offset: u64,
    /// The byte that the first entry of what was read since begins with: those before it are
    /// decoded.
    pub reads_from: u64,
}

/// A socket on which the node waits for calls of other nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedSocket {
    /// What it is: [`PassedKind::Udp`] or [`PassedKind::TcpListen`].
    pub kind: PassedKind,
    /// The address as the configuration names it, where the port may be 0.
    pub listen: SocketAddr,
}

/// The source of an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassedSource {
    /// What it is.
    pub kind: PassedKind,
    /// The descriptors that belong to it.
    pub descriptors: u8,
    /// The bytes that were written down since the new process was ready.
    pub reads: u64,
}

/// What a source is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PassedKind {
    /// A UDP socket.
    Udp,
    /// A TCP listener, and the connection that it accepted, if there is one.
    TcpListen,
    /// A TCP connection, if there is one.
    Tcp,
    /// Standard input.
    Stdin,
}

impl FromNew {
    /// Reads a message.
    ///
    /// # Errors
    /// A sentence: it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        parse(bytes)
    }
}

impl FromOld {
    /// Reads a message.
    ///
    /// # Errors
    /// A sentence: it is none.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        parse(bytes)
    }
}

fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, String> {
    if bytes.len() > MAX_MESSAGE {
        return Err(format!("a message of more than {MAX_MESSAGE} bytes came"));
    }
    serde_json::from_slice(bytes).map_err(|error| format!("a message cannot be read ({error})"))
}

/// The old process's view of how far the new one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OldSide {
    /// It checks what it can.
    #[default]
    Checking,
    /// It waits for the inputs.
    Ready,
    /// It was given the inputs, and starts the node.
    Starting,
    /// Its node runs.
    Running,
    /// It was given the sources.
    Taking,
    /// It has taken over.
    Over,
}

impl OldSide {
    /// Takes a message of the new process.
    ///
    /// # Errors
    /// A sentence: it refuses, speaks another version of the talk, or says what it may not say now.
    pub fn hear(&mut self, message: FromNew) -> Result<(), String> {
        *self = match (*self, message) {
            (Self::Checking, FromNew::Ready { protocol: PROTOCOL, .. }) => Self::Ready,
            (Self::Checking, FromNew::Ready { protocol, version }) => {
                return Err(format!(
                    "version {version} takes over by version {protocol} of the talk, this program \
                     by version {PROTOCOL}"
                ));
            }
            (_, FromNew::Refused { why }) => return Err(why),
            (Self::Starting, FromNew::Running) => Self::Running,
            (Self::Taking, FromNew::Taken) => Self::Over,
            (_, message) => {
                return Err(format!("the new program says {message:?} at the wrong time"));
            }
        };
        Ok(())
    }

    /// The inputs were given.
    pub fn gave_inputs(&mut self) {
        *self = Self::Starting;
    }

    /// The sources were given.
    pub fn gave_sources(&mut self) {
        *self = Self::Taking;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_has_one_form_for_all_versions() {
        let ready = FromNew::Ready { protocol: 1, version: "0.1.0".to_owned() };
        let text = br#"{"say":"ready","protocol":1,"version":"0.1.0","more":[1]}"#;
        assert_eq!(FromNew::parse(text), Ok(ready));
        let go = br#"{"say":"go","sources":[{"kind":"tcp-listen","descriptors":2,"reads":9}]}"#;
        let sources = vec![PassedSource { kind: PassedKind::TcpListen, descriptors: 2, reads: 9 }];
        assert_eq!(FromOld::parse(go), Ok(FromOld::Go { sources }));
        assert!(FromNew::parse(b"{\"say\":\"dance\"}").unwrap_err().contains("cannot be read"));
        assert!(FromOld::parse(&vec![b' '; MAX_MESSAGE + 1]).unwrap_err().contains("more than"));
    }

    #[test]
    fn the_new_process_says_each_thing_at_its_time() {
        let ready = |protocol| FromNew::Ready { protocol, version: "9.9".to_owned() };
        let mut side = OldSide::default();
        assert!(side.hear(FromNew::Running).unwrap_err().contains("wrong time"));
        assert!(side.hear(ready(2)).unwrap_err().contains("version 9.9"), "{side:?}");
        side.hear(ready(PROTOCOL)).unwrap();
        assert!(side.hear(ready(PROTOCOL)).is_err());
        assert!(side.hear(FromNew::Running).is_err(), "it was given nothing yet");
        side.gave_inputs();
        let refused = side.hear(FromNew::Refused { why: "the disk is full".to_owned() });
        assert_eq!(refused, Err("the disk is full".to_owned()));
        side.hear(FromNew::Running).unwrap();
        assert!(side.hear(FromNew::Taken).is_err(), "it has no sources");
        side.gave_sources();
        side.hear(FromNew::Taken).unwrap();
        assert_eq!(side, OldSide::Over);
    }
}
