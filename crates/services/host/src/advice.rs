//! Compares settings with the needs of a line.

use crate::change::SettingChange;
use crate::line::HostLine;
use crate::settings::Settings;
use crate::throughput::GREATEST_WINDOW;
use skyhaul_units::{ByteCount, Rate};

/// What is to be said of one setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingFinding {
    /// Its name, for what `sysctl` changes as that calls it.
    pub setting: String,
    /// As it is; none where it could not be read.
    pub is: Option<String>,
    /// As the line needs it.
    pub needs: String,
    /// Whether it is as it needs to be.
    pub state: State,
    /// Why it matters.
    pub why: String,
    /// What to set where it is not.
    pub change: Option<SettingChange>,
    /// What else to do where `sysctl` does not reach it.
    pub remedy: Option<String>,
}

/// Whether a setting is as the line needs it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// It is.
    Good,
    /// It is not.
    Short,
    /// It could not be read.
    Unknown,
}

/// Holds settings against what a line needs of them. Nothing is made less than it is.
pub fn advise(settings: &Settings, line: &HostLine) -> Vec<SettingFinding> {
    let mut findings = buffers(settings, line);
    findings.extend(switches(settings, line));
    findings.push(controller(settings, line));
    findings.extend(processing(settings, line));
    findings
}

/// The ceiling that a receive or send buffer of a connection needs: its window is about half of it.
fn buffer_for(line: &HostLine) -> u64 {
    let in_flight = line.in_flight().as_u64().min(GREATEST_WINDOW);
    // Whole mebibytes are easier to read again.
    (2 * in_flight).next_multiple_of(1 << 20).min(i32::MAX as u64)
}

fn buffers(settings: &Settings, line: &HostLine) -> Vec<SettingFinding> {
    let need = buffer_for(line);
    let window = line.in_flight();
    let mut found = Vec::new();
    for (key, three, way) in [
        ("net.ipv4.tcp_rmem", settings.buffers.tcp_rmem, "receive"),
        ("net.ipv4.tcp_wmem", settings.buffers.tcp_wmem, "send"),
    ] {
        let why = if window.as_u64() > GREATEST_WINDOW {
            format!(
                "{window} are under way, more than the greatest window of a connection (1 GiB): \
                use {} connections",
                window.as_u64().div_ceil(GREATEST_WINDOW)
            )
        } else {
            format!("{window} are under way on the full line; about half of a {way} buffer is data")
        };
        found.push(match three {
            None => unknown(key, format!("{}", ByteCount::new(need)), why),
            Some([least, first, most]) => {
                let text = |most: u64| format!("{least} {first} {most}");
                let needs = format!("up to {} ({})", ByteCount::new(need), text(need));
                settle(
                    key,
                    Values { is: text(most), to: text(need) },
                    needs,
                    at_least(most, need),
                    why,
                )
            }
        });
    }
    // Programs that size their sockets themselves, this one's UDP paths among them, get no more
    // than this.
    let asked = need.max(UDP_BUFFER);
    for (key, value, way) in [
        ("net.core.rmem_max", settings.buffers.rmem_max, "receive"),
        ("net.core.wmem_max", settings.buffers.wmem_max, "send"),
    ] {
        let pause = (ByteCount::new(UDP_BUFFER / 2) / line.rate).as_millis();
        let why = format!(
            "the most that a program may ask for of a {way} buffer; {} hold what passes in {pause} \
            ms while the program is kept from running",
            ByteCount::new(UDP_BUFFER)
        );
        let needs = ByteCount::new(asked).to_string();
        found.push(match value {
            None => unknown(key, needs, why),
            Some(value) => {
                settle(key, Values::of(value, asked), needs, at_least(value, asked), why)
            }
        });
    }
    found.extend(settings.buffers.tcp_mem.map(|[_, pressure, most]| {
        let held = pressure * settings.buffers.page;
        let why = "all TCP buffers of the host together; above it they shrink. The kernel set it \
                  from its memory: leave it, unless it is short"
            .to_owned();
        let needs = format!("more than {}", ByteCount::new(need));
        let state = at_least(held, need + 1);
        let to = (need / settings.buffers.page + 1).max(pressure);
        let now = settings
            .buffers
            .tcp_mem
            .map_or_else(String::new, |[low, ..]| format!("{low} {pressure} {most}"));
        let after = format!("{to} {to} {}", most.max(2 * to));
        settle("net.ipv4.tcp_mem", Values { is: now, to: after }, needs, state, why)
    }));
    found
}

fn switches(settings: &Settings, line: &HostLine) -> Vec<SettingFinding> {
    let window = line.in_flight();
    let is_long = line.round_trip.as_millis() >= LONG_MS;
    let wanted = [
        (
            "net.ipv4.tcp_window_scaling",
            settings.tcp.window_scaling,
            1,
            window.as_u64() > 65_535,
            "windows above 64 KiB (RFC 7323)",
        ),
        (
            "net.ipv4.tcp_sack",
            settings.tcp.sack,
            1,
            true,
            "the receiver tells which packets are missing (RFC 2018); without it one is repaired \
            in each round trip",
        ),
        (
            "net.ipv4.tcp_timestamps",
            settings.tcp.timestamps,
            1,
            window.as_u64() > 65_535,
            "round trips measured on every packet, old sequence numbers told from new ones (RFC \
            7323)",
        ),
        (
            "net.ipv4.tcp_moderate_rcvbuf",
            settings.tcp.moderate_rcvbuf,
            1,
            true,
            "the kernel makes receive buffers as large as the line needs",
        ),
        (
            "net.ipv4.tcp_mtu_probing",
            settings.tcp.mtu_probing,
            1,
            true,
            "where routers drop large packets without a word, the kernel finds the size that \
            passes (RFC 4821)",
        ),
    ];
    let mut found: Vec<SettingFinding> = wanted
        .into_iter()
        .filter(|(.., matters, _)| *matters)
        .map(|(key, value, needs, _, why)| match value {
            None => unknown(key, needs.to_string(), why.to_owned()),
            Some(value) => settle(
                key,
                Values::of(value, needs),
                if key.ends_with("probing") { "1 or 2".to_owned() } else { needs.to_string() },
                at_least(value, needs),
                why.to_owned(),
            ),
        })
        .collect();
    if is_long && let Some(value) = settings.tcp.slow_start_after_idle {
        let why = "a connection that sent nothing for a round trip begins again with ten packets; \
                  on a long line that costs seconds";
        found.push(settle(
            "net.ipv4.tcp_slow_start_after_idle",
            Values::of(value, 0),
            "0".to_owned(),
            if value == 0 { State::Good } else { State::Short },
            why.to_owned(),
        ));
    }
    found
}

fn controller(settings: &Settings, line: &HostLine) -> SettingFinding {
    let key = "net.ipv4.tcp_congestion_control";
    let why = format!(
        "reno and cubic take every loss for a full line and then need many round trips of {:.1} ms \
        to fill it again; bbr follows the rate that arrives",
        1e3 * line.round_trip.as_secs_f64()
    );
    let Some(now) = &settings.tcp.congestion_control else {
        return unknown(key, "bbr".to_owned(), why);
    };
    let state = if now.starts_with("bbr") { State::Good } else { State::Short };
    let values = Values { is: now.clone(), to: "bbr".to_owned() };
    let mut found = settle(key, values, "bbr".to_owned(), state, why);
    if found.state == State::Short
        && !settings.tcp.congestion_controls.iter().any(|name| name == "bbr")
    {
        // Setting it would be refused.
        found.change = None;
        found.remedy = Some("load it first: modprobe tcp_bbr; then tune again".to_owned());
    }
    found
}

fn processing(settings: &Settings, line: &HostLine) -> Vec<SettingFinding> {
    let mut found = Vec::new();
    if line.rate >= FAST {
        let key = "net.core.netdev_max_backlog";
        let why = "packets of one interface that may wait for a processor; what comes beyond is \
                  dropped and counted in /proc/net/softnet_stat"
            .to_owned();
        found.push(match settings.queues.netdev_max_backlog {
            None => unknown(key, FAST_BACKLOG.to_string(), why),
            Some(now) => settle(
                key,
                Values::of(now, FAST_BACKLOG),
                FAST_BACKLOG.to_string(),
                at_least(now, FAST_BACKLOG),
                why,
            ),
        });
    }
    if let Some(now) = &settings.processing.clock_source {
        let is_slow = SLOW_CLOCKS.contains(&now.as_str());
        found.push(SettingFinding {
            setting: "clock source".to_owned(),
            is: Some(now.clone()),
            needs:
                "one that is read without leaving the processor: tsc, kvm-clock, arch_sys_counter"
                    .to_owned(),
            state: if is_slow { State::Short } else { State::Good },
            why: "each packet is timed; a slow clock costs a microsecond each time".to_owned(),
            change: None,
            remedy: is_slow
                .then(|| "see why the kernel gave tsc up: dmesg | grep -i clocksource".to_owned()),
        });
    }
    if !settings.processing.governors.is_empty() {
        let is_steady = settings.processing.governors == ["performance"];
        found.push(SettingFinding {
            setting: "processor frequency".to_owned(),
            is: Some(settings.processing.governors.join(", ")),
            needs: "performance".to_owned(),
            state: if is_steady || line.rate < FAST { State::Good } else { State::Short },
            why: "a processor that sleeps between bursts of packets wakes up late, and receives \
                 slowly"
                .to_owned(),
            change: None,
            remedy: (!is_steady && line.rate >= FAST)
                .then(|| "cpupower frequency-set -g performance".to_owned()),
        });
    }
    found
}

/// A setting as it is, and as it should be.
struct Values {
    is: String,
    to: String,
}

impl Values {
    fn of(is: u64, to: u64) -> Self {
        Self { is: is.to_string(), to: to.to_string() }
    }
}

const fn at_least(value: u64, least: u64) -> State {
    if value >= least { State::Good } else { State::Short }
}

/// A setting that could be read.
fn settle(
    key: &str,
    Values { is, to }: Values,
    needs: String,
    state: State,
    why: String,
) -> SettingFinding {
    let change = (state == State::Short).then(|| SettingChange {
        key: key.to_owned(),
        to,
        from: is.clone(),
    });
    let setting = key.to_owned();
    SettingFinding { setting, is: Some(is), needs, state, why, change, remedy: None }
}

fn unknown(key: &str, needs: String, why: String) -> SettingFinding {
    SettingFinding {
        setting: key.to_owned(),
        is: None,
        needs,
        state: State::Unknown,
        why,
        change: None,
        remedy: None,
    }
}

/// What this program asks for of the sockets of a path, and what the kernel makes of it
/// (socket(7)): 16 MiB.
const UDP_BUFFER: u64 = 16 << 20;
/// From here on idle pauses shorter than a second matter.
const LONG_MS: u64 = 20;
/// From this rate on a processor's share of the work matters.
const FAST: Rate = Rate::from_mbps(5_000);
/// 25 ms of 1500-byte packets at 10 Gbit/s: longer than a processor is kept busy elsewhere.
const FAST_BACKLOG: u64 = 30_000;
const SLOW_CLOCKS: [&str; 4] = ["hpet", "acpi_pm", "jiffies", "pit"];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::{BufferSettings, TcpSettings};
    use crate::throughput::{Limit, of};
    use proptest::prelude::*;
    use skyhaul_units::{Duration, Probability};

    fn line(mbps: u64, millis: u64) -> HostLine {
        let (rate, round_trip) = (Rate::from_mbps(mbps), Duration::from_millis(millis));
        HostLine { rate, round_trip, loss: Probability::from_ppb(0) }
    }

    /// The settings after every change that is advised.
    fn changed(settings: &Settings, line: &HostLine) -> Settings {
        let findings = advise(settings, line);
        settings.after(findings.iter().filter_map(|finding| finding.change.as_ref()))
    }

    proptest! {
        #[test]
        fn what_is_advised_lets_one_connection_fill_the_line_and_nothing_is_advised_twice(
            mbps in 1u64..100_000, millis in 1u64..700, most in 65_536u64..1 << 31,
                scaling in 0u64..2,
        ) {
            let line = line(mbps, millis);
            let settings = Settings {
                buffers: BufferSettings {
                    tcp_rmem: Some([4_096, 131_072, most]),
                    ..Settings::typical().buffers
                },
                tcp: TcpSettings {
                    window_scaling: Some(scaling),
                    congestion_controls: vec!["bbr".to_owned()],
                    ..Settings::typical().tcp
                },
                ..Settings::typical()
            };
            let after = changed(&settings, &line);
            let (before, now) = (settings.buffers.tcp_rmem, after.buffers.tcp_rmem);
            prop_assert!(now >= before, "never less than it was");
            let limit = of(&after, &line).limit;
            if line.in_flight().as_u64() < GREATEST_WINDOW - (1 << 20) {
                prop_assert_eq!(limit, Limit::Line);
            }
            prop_assert!(advise(&after, &line).iter().all(|finding| finding.change.is_none()));
        }
    }

    #[test]
    fn each_finding_says_what_it_is_needs_and_why() {
        let findings = advise(&Settings::typical(), &line(1_000, 148));
        let of = |name: &str| findings.iter().find(|finding| finding.setting == name).unwrap();
        let receive = of("net.ipv4.tcp_rmem");
        // 18.5 MB are under way: 37 MB, in whole mebibytes 36.
        assert_eq!(receive.change.as_ref().unwrap().to, "4096 131072 37748736");
        assert_eq!(receive.change.as_ref().unwrap().from, "4096 131072 6291456");
        assert!(receive.why.contains("18.5 MB"), "{}", receive.why);
        assert_eq!(of("net.ipv4.tcp_sack").state, State::Good);
        assert_eq!(of("net.ipv4.tcp_slow_start_after_idle").change.as_ref().unwrap().to, "0");
        let controller = of("net.ipv4.tcp_congestion_control");
        assert_eq!(
            (controller.state, &controller.change),
            (State::Short, &None),
            "it is not loaded"
        );
        assert!(controller.remedy.as_ref().unwrap().contains("modprobe tcp_bbr"));
        assert!(findings.iter().all(|finding| finding.setting != "net.core.netdev_max_backlog"));
        let fast = advise(&Settings::typical(), &line(10_000, 100));
        assert!(fast.iter().any(|finding| finding.setting == "net.core.netdev_max_backlog"));
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_not_changed() {
        let findings = advise(&Settings::default(), &line(93, 160));
        assert!(
            findings
                .iter()
                .all(|finding| finding.state == State::Unknown && finding.change.is_none())
        );
        assert!(findings.len() >= 10);
    }

    #[test]
    fn a_line_that_holds_more_than_a_window_wants_several_connections() {
        let findings = advise(&Settings::typical(), &line(100_000, 100));
        assert!(findings[0].why.contains("use 2 connections"), "{}", findings[0].why);
    }
}
