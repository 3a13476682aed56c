//! `skyhaul node test`: whether a node answers, with which key, over which ways.

use crate::commands::book::{KnownNode, KnownNodes};
use crate::commands::far::{self, DefaultPort};
use crate::commands::ip::IpVersion;
use crate::commands::knock::{KnockAnswer, KnockOver, KnockTarget, PATIENCE, knock};
use crate::commands::perf::keys::{Accepted, Keys};
use crate::commands::perf::line::LineFlags;
use crate::commands::perf::send;
use crate::commands::rate::rate_text;
use serde::Serialize;
use skyhaul_exit::{Exit, Failure};
use skyhaul_quic::{Fingerprint, Refusal};
use skyhaul_units::Duration;
use std::io::Write;
use std::net::SocketAddr;

/// The arguments of `skyhaul node test`.
#[derive(clap::Args)]
pub struct TestArguments {
    /// The node's name.
    name: String,
    /// The port of `skyhaul perf serve` there, for the goodput.
    #[arg(long, value_name = "PORT", default_value_t = 4710)]
    perf_port: u16,
    /// Does not measure the goodput.
    #[arg(long)]
    no_goodput: bool,
    /// Prints the result as one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    line: LineFlags,
    #[command(flatten)]
    keys: Keys,
}

/// One way to the node, as it was found.
#[derive(Serialize)]
struct WayFound {
    address: String,
    over: &'static str,
    state: WayState,
    round_trip_s: Option<f64>,
    /// The key that was shown.
    fingerprint: Option<String>,
    /// What is wrong, and what to do.
    sentence: Option<String>,
}

/// In the order in which a failure is reported: the first tells most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
enum WayState {
    Open,
    WrongKey,
    OwnKeyUntrusted,
    Refused,
    Unreachable,
    NoAnswer,
}

#[derive(Serialize)]
struct NodeFound<'a> {
    name: &'a str,
    reachable: bool,
    fingerprints: Vec<String>,
    own_fingerprint: String,
    ways: Vec<WayFound>,
    goodput_bps: Option<u64>,
}

/// Tests all addresses over UDP and TCP.
///
/// # Errors
/// The node is not known or has no address; none of its addresses answers with the right key.
pub fn run(arguments: &TestArguments, out: &mut dyn Write) -> Result<(), Failure> {
    let nodes = KnownNodes::load()?;
    let known = nodes.named(&arguments.name)?;
    let place = far::find(&arguments.name, DefaultPort::None { example: "198.51.100.1:4740" })?;
    let accepted = arguments.keys.of_far(&place.keys, place.addresses.iter().copied())?;
    let mut ways = Vec::new();
    for remote in &place.addresses {
        for over in [KnockOver::Udp, KnockOver::Tcp] {
            let way = arguments.way(known, &accepted, *remote, over)?;
            if !arguments.json {
                write_way(&way, out)?;
            }
            ways.push(way);
        }
    }
    let best = ways.iter().map(|way| way.state).min();
    let reachable = best == Some(WayState::Open);
    let goodput = match reachable && !arguments.no_goodput {
        true => arguments.goodput(&accepted, place.addresses[0])?,
        false => None,
    };
    if arguments.json {
        let found = NodeFound {
            name: &arguments.name,
            reachable,
            fingerprints: accepted.peers.iter().map(Fingerprint::to_string).collect(),
            own_fingerprint: accepted.own.fingerprint().to_string(),
            ways,
            goodput_bps: goodput,
        };
        let line = serde_json::to_string(&found).expect("a result is plain data");
        writeln!(out, "{line}")?;
        out.flush()?;
        return match reachable {
            true => Ok(()),
            false => Err(unreached(&arguments.name, &found.ways)),
        };
    }
    if !reachable {
        return Err(unreached(&arguments.name, &ways));
    }
    match (goodput, arguments.no_goodput) {
        (_, true) => Ok(()),
        (Some(goodput), _) => Ok(writeln!(out, "goodput {} in {WATCH}", rate_text(goodput))?),
        (None, _) => {
            let port = arguments.perf_port;
            let how = format!("`skyhaul perf serve --bind 0.0.0.0:{port}` there lets it be");
            Ok(writeln!(out, "goodput not measured: {how}")?)
        }
    }
}

impl TestArguments {
    fn way(
        &self,
        known: &KnownNode,
        accepted: &Accepted,
        remote: SocketAddr,
        over: KnockOver,
    ) -> Result<WayFound, Failure> {
        let (answer, expected) = self.answer(accepted, remote, over)?;
        let name = known.peer.name.as_str();
        let (state, round_trip, shown, sentence) = match answer {
            KnockAnswer::Open { round_trip } => {
                (WayState::Open, Some(round_trip.as_secs_f64()), Some(expected), None)
            }
            KnockAnswer::Refused { shown, reason } => {
                let (state, sentence) = told(name, accepted, shown, &reason);
                (state, None, shown, Some(sentence))
            }
        };
        Ok(WayFound {
            address: remote.to_string(),
            over: match over {
                KnockOver::Udp => "udp",
                KnockOver::Tcp => "tcp",
            },
            state,
            round_trip_s: round_trip,
            fingerprint: shown.map(|key| key.to_string()),
            sentence,
        })
    }

    /// The answer to the key that the node shows, if it is one of the accepted.
    fn answer(
        &self,
        accepted: &Accepted,
        remote: SocketAddr,
        over: KnockOver,
    ) -> Result<(KnockAnswer, Fingerprint), Failure> {
        let path = self.line.path(IpVersion::of(remote))?;
        let own = &accepted.own;
        let ask =
            |expected| knock(KnockTarget { own, path, remote, over, expected, patience: PATIENCE });
        let first = *accepted.peers.first().expect("there is one, as it was read");
        match ask(first)? {
            KnockAnswer::Refused { shown: Some(shown), .. }
                if shown != first && accepted.peers.contains(&shown) =>
            {
                Ok((ask(shown)?, shown))
            }
            answer => Ok((answer, first)),
        }
    }

    /// The goodput, if the node measures it.
    fn goodput(&self, accepted: &Accepted, remote: SocketAddr) -> Result<Option<u64>, Failure> {
        let remote = SocketAddr::new(remote.ip(), self.perf_port);
        let (answer, _) = self.answer(accepted, remote, KnockOver::Udp)?;
        if !matches!(answer, KnockAnswer::Open { .. }) {
            return Ok(None);
        }
        let to = format!("{}:{}", self.name, self.perf_port);
        Ok(Some(send::short(&to, WATCH, &self.line, &self.keys)?.goodput_bps))
    }
}

/// The state of a way that is not open, and the sentence about it.
fn told(
    name: &str,
    accepted: &Accepted,
    shown: Option<Fingerprint>,
    reason: &Refusal,
) -> (WayState, String) {
    let ours = accepted.own.fingerprint();
    match (reason, shown) {
        (Refusal::WrongKey { .. }, Some(shown)) => {
            let keys: Vec<String> = accepted.peers.iter().map(Fingerprint::to_string).collect();
            let what = format!(
                "the key there is {shown}, the address book has {}; another machine may have the \
                 address; if `{name}` has a new key, `skyhaul node add {name} {shown}`",
                keys.join(" and ")
            );
            (WayState::WrongKey, what)
        }
        (Refusal::OwnKeyUntrusted { .. }, _) => {
            let what = format!(
                "the node does not know this one's key {ours}; `skyhaul pair` at both ends, or \
                 `skyhaul node add NAME {ours}` there, and start its service again"
            );
            (WayState::OwnKeyUntrusted, what)
        }
        (Refusal::NoAnswer, _) => (
            WayState::NoAnswer,
            "no answer; check the address, that a service runs there, and the firewalls".to_owned(),
        ),
        (Refusal::Unreachable(why), _) => (
            WayState::Unreachable,
            format!("nothing listens there ({why}); check the address and that a service runs"),
        ),
        (reason, _) => {
            let sentence = reason.to_string();
            let (what, help) = sentence.rsplit_once(": ").unwrap_or((&sentence, "try again"));
            (WayState::Refused, format!("{what}; {help}"))
        }
    }
}

fn unreached(name: &str, ways: &[WayFound]) -> Failure {
    let worst = ways.iter().min_by_key(|way| way.state);
    let (sentence, place) = worst.map_or(("no way was tested; add an address", ""), |way| {
        (way.sentence.as_deref().unwrap_or_default(), &way.address)
    });
    let (what, help) = sentence.split_once("; ").unwrap_or((sentence, "try again"));
    Failure::new(Exit::Peer, &format!("`{name}` is not reached: {what}"), help).at(place)
}

fn write_way(way: &WayFound, out: &mut dyn Write) -> Result<(), Failure> {
    let WayFound { address, over, round_trip_s, sentence, .. } = way;
    match (round_trip_s, sentence) {
        (Some(seconds), _) => {
            writeln!(out, "{over} {address}  open, right key, round trip {:.1} ms", seconds * 1e3)?;
        }
        (None, sentence) => {
            let sentence = sentence.as_deref().unwrap_or_default();
            let what = sentence.split_once("; ").map_or(sentence, |(what, _)| what);
            writeln!(out, "{over} {address}  {what}")?;
        }
    }
    Ok(out.flush()?)
}

/// Long enough for the rate control to find the rate of most lines.
const WATCH: Duration = Duration::from_secs(5);
