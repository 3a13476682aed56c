//! Runs of the compared tools: the versions that this machine has, the calls, and how their results
//! are read.

use crate::bench::Bench;
use crate::gone::Gone;
use crate::paced::OfferedLoad;
use crate::program::Program;
use crate::stream::{KernelConnection, Protocol};
use crate::tool::{Figure, Tool};
use serde_json::Value;
use skyhaul_units::{Duration, Rate};
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

/// Its version where this machine has it; otherwise why not, and what to do.
pub fn version(tool: &Tool) -> Result<String, String> {
    // The suffix that a distribution adds after the first hyphen does not matter for the protocols.
    let kernel = || {
        let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        release.trim().split('-').next().unwrap_or_default().to_owned()
    };
    let control = |name: &str| match has_control(name) {
        true => Ok(()),
        false => Err(format!(
            "this kernel has no congestion control `{name}`; try `modprobe tcp_{name}`"
        )),
    };
    let install = "bench/peers/install.sh installs it";
    match tool {
        Tool::Adaptive | Tool::Line => Ok(format!("skyhaul {}", env!("CARGO_PKG_VERSION"))),
        Tool::Tcp(name) => {
            control(name)?;
            let iperf3 = first_line("iperf3", "--version")
                .ok_or(format!("there is no iperf3; {install}"))?;
            Ok(format!("Linux {}, {iperf3}", kernel()))
        }
        Tool::Mptcp(name) => {
            control(name)?;
            let enabled =
                std::fs::read_to_string("/proc/sys/net/mptcp/enabled").unwrap_or_default();
            if enabled.trim() != "1" {
                return Err("this kernel has no multipath TCP; set net.mptcp.enabled=1".to_owned());
            }
            Ok(format!("Linux {}", kernel()))
        }
        Tool::Forward => {
            let iperf3 = first_line("iperf3", "--version")
                .ok_or(format!("there is no iperf3; {install}"))?;
            Ok(format!("skyhaul {}, {iperf3}", env!("CARGO_PKG_VERSION")))
        }
        Tool::Socat(name) => {
            control(name)?;
            let iperf3 = first_line("iperf3", "--version")
                .ok_or(format!("there is no iperf3; {install}"))?;
            let listed = said("socat", "-V");
            let version = listed
                .as_deref()
                .and_then(|text| text.lines().find(|line| line.contains("socat version")))
                .and_then(|line| line.split_whitespace().nth(2));
            let version = version.ok_or(format!("there is no socat; {install}"))?;
            Ok(format!("socat {version}, Linux {}, {iperf3}", kernel()))
        }
        Tool::Udt => first_line(UDT, "version")
            .ok_or(format!("there is no {UDT} on PATH; bench/peers/install.sh builds it")),
        Tool::Srt => first_line(SRT, "version")
            .ok_or(format!("there is no {SRT} on PATH; bench/peers/install.sh builds it")),
    }
}

/// Sends over the line of `bench` for its time.
pub fn run(tool: &Tool, bench: &Bench<'_>) -> Result<Figure, Gone> {
    let goodput_bps = match tool {
        Tool::Adaptive | Tool::Line => {
            number(&perf(bench, &control_flags(tool, bench)?)?, "/goodput_bps")
        }
        Tool::Tcp(control) => {
            return iperf3(bench, &["-C", control, "-c", &bench.far(0)], Some(&bench.far(0)));
        }
        Tool::Mptcp(control) => {
            let connection =
                KernelConnection::open(bench.site.lab, Protocol::Multipath, Some(control))?;
            let (bytes, span) = connection.measure(bench.duration, bench.site.stop)?;
            Ok(Rate::over(bytes, span).as_bps() as f64)
        }
        Tool::Udt => library(bench, UDT),
        Tool::Srt => library(bench, SRT),
        Tool::Socat(control) => return socat(bench, control),
        Tool::Forward => return forward(bench),
    };
    Ok(Figure { goodput_bps: goodput_bps?, window: None })
}

/// The flags of this program's congestion control.
fn control_flags(tool: &Tool, bench: &Bench<'_>) -> Result<Vec<String>, Gone> {
    if *tool != Tool::Line {
        return Ok(Vec::new());
    }
    let rate = bench.line.links.iter().filter_map(|link| link.up.rate).min();
    let rate = rate.ok_or(Gone::Failed("the line has no rate to declare".to_owned()))?;
    Ok(vec!["--cc".into(), "line".into(), "--rate".into(), format!("{} bit/s", rate.as_bps())])
}

/// The path of this program.
pub fn own_program() -> String {
    let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("skyhaul"));
    program.to_string_lossy().into_owned()
}

/// How late the latest block of `flow` comes over a session of ours, the time that it was held back
/// before it was handed over included.
pub fn offered(bench: &Bench<'_>, tool: &Tool, flow: OfferedLoad) -> Result<Duration, Gone> {
    let mut flags = control_flags(tool, bench)?;
    flags.extend(["--offer".to_owned(), format!("{} bit/s", flow.rate.as_bps())]);
    flags.extend(["--block".to_owned(), format!("{} B", flow.block.as_u64())]);
    let said = perf(bench, &flags)?;
    let (latest, bytes) = (number(&said, "/latency_s/max")?, number(&said, "/bytes")?);
    let sent = bytes * 8.0 / flow.rate.as_bps() as f64;
    let late = latest + (bench.seconds() as f64 - sent).max(0.0);
    Ok(Duration::from_nanos((late * 1e9) as u64))
}

/// Sends over a session of `skyhaul perf`. Returns the sender's JSON.
fn perf(bench: &Bench<'_>, flags: &[String]) -> Result<String, Gone> {
    let program = own_program();
    let links = bench.line.links.len();
    let mut serve = vec![
        program.clone(),
        "perf".into(),
        "serve".into(),
        "--insecure-test".into(),
        "--insecure-beyond-loopback".into(),
        "--once".into(),
        "--bind".into(),
    ];
    serve.extend((0..links).map(|link| format!("{}:{PORT}", bench.far(link))));
    let mut serving = bench.serve(&serve, "udp", PORT)?;
    let mut send = vec![program, "perf".into(), "send".into()];
    send.extend(["--insecure-test", "--insecure-beyond-loopback", "--json"].map(str::to_owned));
    send.extend(["--duration".into(), format!("{} s", bench.seconds())]);
    if links == 1 {
        send.extend(["--to".into(), format!("{}:{PORT}", bench.far(0))]);
    } else {
        let paths =
            (0..links).map(|link| format!("{}:0={}:{PORT}", bench.near(link), bench.far(link)));
        send.extend(paths.flat_map(|path| ["--path".into(), path]));
    }
    send.extend_from_slice(flags);
    let said = bench.send(&send, &mut serving)?;
    Ok(said.lines().last().unwrap_or_default().to_owned())
}

fn iperf3(bench: &Bench<'_>, flags: &[&str], bind: Option<&str>) -> Result<Figure, Gone> {
    let at = PORT.to_string();
    let mut serve: Vec<String> = ["iperf3", "-s", "-1", "-p", &at].map(str::to_owned).into();
    serve.extend(bind.iter().flat_map(|address| ["-B".to_owned(), (*address).to_owned()]));
    let mut serving = bench.serve(&serve, "tcp", PORT)?;
    let (seconds, streams) = (bench.seconds().to_string(), bench.cell.streams.to_string());
    let mut send: Vec<String> =
        ["iperf3", "-J", "-t", &seconds, "-P", &streams].map(str::to_owned).into();
    if !flags.contains(&"-p") {
        send.extend(["-p".to_owned(), at]);
    }
    send.extend(flags.iter().map(|flag| (*flag).to_owned()));
    let said = bench.send(&send, &mut serving)?;
    let goodput_bps = number(&said, "/end/sum_received/bits_per_second")?;
    let read: Value = serde_json::from_str(&said).unwrap_or_default();
    Ok(Figure { goodput_bps, window: window(&read) })
}

/// The windows of the connections, as iperf3 reports them.
fn window(said: &Value) -> Option<f64> {
    let streams = said.pointer("/end/streams")?.as_array()?;
    let of = |stream: &Value, key: &str| {
        stream.pointer(&format!("/sender/{key}")).and_then(Value::as_f64)
    };
    let windows = streams.iter().map(|stream| {
        let both = of(stream, "max_snd_wnd").zip(of(stream, "max_snd_cwnd"));
        both.map(|(theirs, ours)| theirs.min(ours)).filter(|window| *window > 0.0)
    });
    windows.sum()
}

fn socat(bench: &Bench<'_>, control: &str) -> Result<Figure, Gone> {
    let relay = RELAY_PORT.to_string();
    let far = format!("TCP-LISTEN:{relay},fork,reuseaddr");
    let onward = format!("TCP:127.0.0.1:{PORT}");
    let near = format!("TCP-LISTEN:{relay},fork,reuseaddr,bind=127.0.0.1");
    let over = format!("TCP:{}:{relay}", bench.far(0));
    bench.set_everywhere("net/ipv4/tcp_congestion_control", control)?;
    let _far = bench.serve(&["socat".to_owned(), far, onward], "tcp", RELAY_PORT)?;
    let _near = bench.serve_near(&["socat".to_owned(), near, over], "tcp", RELAY_PORT)?;
    // These connections end at the relay: their windows do not show the line.
    let figure = iperf3(bench, &["-c", "127.0.0.1", "-p", &relay], None)?;
    Ok(Figure { window: None, ..figure })
}

/// An application whose connection goes over a session of ours from one end of the line to the
/// other.
fn forward(bench: &Bench<'_>) -> Result<Figure, Gone> {
    let program = own_program();
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let (relay, over) = (RELAY_PORT.to_string(), format!("{}:{RELAY_PORT}", bench.far(0)));
    let target = format!("127.0.0.1:{PORT}");
    let insecure = ["--insecure-test", "--insecure-beyond-loopback"];
    let serve = words(&[
        &program,
        "forward",
        "serve",
        "--bind",
        &over,
        "--allow",
        &target,
        insecure[0],
        insecure[1],
    ]);
    let (node, local) = (format!("far={over}"), format!("127.0.0.1:{relay}=far:{target}"));
    let call =
        words(&[&program, "forward", insecure[0], insecure[1], "--node", &node, "-L", &local]);
    let _far = bench.serve(&serve, "udp", RELAY_PORT)?;
    let _near = bench.serve_near(&call, "tcp", RELAY_PORT)?;
    let figure = iperf3(bench, &["-c", "127.0.0.1", "-p", &relay], None)?;
    Ok(Figure { window: None, ..figure })
}

/// A program of `bench/peers/library.cpp`. The receiver counts for the given time from the
/// connection on and then ends.
fn library(bench: &Bench<'_>, program: &str) -> Result<f64, Gone> {
    let (at, seconds, address) = (PORT.to_string(), bench.seconds().to_string(), bench.far(0));
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let serving =
        bench.serve(&words(&[program, "receive", &at, &address, &seconds]), "udp", PORT)?;
    let longer = (bench.seconds() + 30).to_string();
    let mut sending = bench.begin(&words(&[program, "send", &at, &longer, "1500", &address]))?;
    let said = bench.finish(serving, &mut sending)?;
    let mut figures = said.split_whitespace().filter_map(|word| word.parse::<f64>().ok());
    match (figures.next(), figures.next()) {
        (Some(bytes), Some(span)) if span > 0.0 => Ok(bytes * 8.0 / span),
        _ => Err(Gone::Failed(format!("{program} said `{}`", said.trim()))),
    }
}

fn number(json: &str, place: &str) -> Result<f64, Gone> {
    let read: Value = serde_json::from_str(json).unwrap_or_default();
    let said = || {
        read["error"].as_str().map_or_else(|| "its result cannot be read".to_owned(), str::to_owned)
    };
    read.pointer(place).and_then(Value::as_f64).ok_or_else(|| Gone::Failed(said()))
}

fn has_control(name: &str) -> bool {
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control");
    known.unwrap_or_default().split_whitespace().any(|known| known == name)
}

fn first_line(program: &str, flag: &str) -> Option<String> {
    Some(said(program, flag)?.lines().next()?.split(" (").next()?.trim().to_owned())
}

/// What a program answers to a question after itself; one that does not answer is as good as not
/// there.
fn said(program: &str, flag: &str) -> Option<String> {
    Program::here(&[program, flag])?.finish(ANSWER, &AtomicBool::new(false), None).ok()
}

const UDT: &str = "skyhaul-peer-udt";
const SRT: &str = "skyhaul-peer-srt";

/// How long a program can take to print its version.
const ANSWER: Duration = Duration::from_secs(3);

/// Where the far end of each tool listens.
pub const PORT: u16 = 5201;
const RELAY_PORT: u16 = 5202;
