//! The dashboards of `ops/grafana`, against a real Prometheus that scrapes real nodes: every panel
//! has data, but for those that are empty when all is well.

use crate::outlets::{destination, subscription};
use crate::support::node;
use crate::support::patience::until;
use crate::support::process::{run, text};
use crate::support::rung::is_all;
use crate::support::site::{Site, channel};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Panels without data here: the nodes have no plan of passes, no deadline, no gap, no folder and
/// no stream.
const EMPTY_WHEN_WELL: [&str; 4] = ["Planned passes", "Least time to spare", "Folders", "Streams"];

fn dashboards() -> Vec<(String, Value)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../ops/grafana");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let json = |path: PathBuf| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
    };
    let mut found: Vec<(String, Value)> = files.map(json).collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// The panels of a dashboard, and their expressions with the variables filled in.
fn panels(dashboard: &Value) -> Vec<(String, Vec<String>)> {
    let panels = dashboard["panels"].as_array().unwrap().iter();
    let filled = |target: &Value| {
        let text = target["expr"].as_str().unwrap();
        text.replace("$job", ".*").replace("$instance", ".*").replace("$__rate_interval", "10s")
    };
    let panel = |panel: &Value| {
        let targets = panel["targets"].as_array().unwrap();
        (panel["title"].as_str().unwrap().to_owned(), targets.iter().map(filled).collect())
    };
    panels.map(panel).collect()
}

#[test]
fn the_dashboards_name_no_data_source_and_only_metrics_that_are_documented() {
    let reference = include_str!("../../../../../docs/reference/web.md");
    let all = dashboards();
    assert_eq!(all.len(), 4);
    for (name, dashboard) in &all {
        assert!(dashboard.get("uid").is_none() && dashboard.get("id").is_none(), "{name}");
        let variables = dashboard["templating"]["list"].as_array().unwrap();
        assert_eq!(variables[0]["type"], "datasource", "{name}");
        for panel in dashboard["panels"].as_array().unwrap() {
            assert_eq!(panel["datasource"]["uid"], "${datasource}", "{name}");
            assert!(panel["description"].as_str().is_some_and(|text| text.ends_with('.')));
        }
        for (panel, expressions) in panels(dashboard) {
            for part in expressions.iter().flat_map(|one| one.split("skyhaul_").skip(1)) {
                let family = part.split('{').next().unwrap();
                let is_known = reference.contains(&format!("`{family}`"));
                assert!(is_known, "{name}, {panel}: skyhaul_{family}");
            }
        }
    }
}

/// Prometheus, which ends with the test.
struct Prometheus {
    child: Child,
    address: String,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// Starts it, to scrape these addresses; none where it is not installed.
    fn start(folder: &Path, nodes: &[String]) -> Option<Self> {
        let targets = serde_json::to_string(nodes).unwrap();
        let text = format!(
            "global: {{scrape_interval: 1s}}\nscrape_configs:\n- job_name: skyhaul\n  \
             static_configs: [{{targets: {targets}}}]\n"
        );
        std::fs::write(folder.join("prometheus.yml"), text).unwrap();
        let mut command = Command::new("prometheus");
        command.args(["--config.file=prometheus.yml", "--storage.tsdb.path=prometheus"]);
        command.arg("--web.listen-address=127.0.0.1:0").current_dir(folder);
        let Ok(mut child) = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn() else {
            eprintln!("SKIPPED: prometheus is not installed");
            return None;
        };
        let mut log = BufReader::new(child.stderr.take().unwrap());
        let mut line = String::new();
        while !line.contains("msg=\"Listening on\"") {
            line.clear();
            assert!(log.read_line(&mut line).unwrap() > 0, "prometheus ended");
        }
        let address = line.rsplit("address=").next().unwrap();
        let address = address.split_whitespace().next().unwrap().to_owned();
        // It stops when nobody reads what it says.
        std::thread::Builder::new()
            .spawn(move || std::io::copy(&mut log, &mut std::io::sink()))
            .unwrap();
        Some(Self { child, address })
    }

    /// The number of values that an expression has now.
    fn ask(&self, expression: &str) -> usize {
        let body: String = expression
            .bytes()
            .map(|byte| {
                if byte.is_ascii_alphanumeric() {
                    char::from(byte).to_string()
                } else {
                    format!("%{byte:02X}")
                }
            })
            .collect();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let head =
            format!("GET /api/v1/query?query={body} HTTP/1.0\r\nhost: {}\r\n\r\n", self.address);
        stream.write_all(head.as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        // While it begins it says so in plain text.
        let body = answer.split_once("\r\n\r\n").unwrap().1;
        let Ok(json) = serde_json::from_str::<Value>(body) else { return 0 };
        assert_eq!(json["status"], "success", "{expression}: {json}");
        json["data"]["result"].as_array().map_or(0, Vec::len)
    }
}

#[test]
fn every_panel_of_the_dashboards_has_data_of_real_nodes() {
    if !is_all() {
        eprintln!("SKIPPED: a real Prometheus is asked with SKYHAUL_RUNG=all");
        return;
    }
    let web = "[web]\nbind = \"127.0.0.1:0\"\n";
    let out = destination("out", "") + &subscription("all", "to = \"out\"\n");
    let site = Site::with(&format!("session = true\n{out}{web}"));
    site.write(&format!("{}{web}", channel("")));
    let _station = site.start_to_stay();
    site.centre_until(|status| (status["contacts"][0]["state"] == "done").then_some(()));
    let address = |config: &str| {
        let status = node::status(config, site.folder()).unwrap();
        let address = status["web"]["address"].as_str().unwrap().to_owned();
        address.trim_start_matches("http://").trim_end_matches('/').to_owned()
    };
    let nodes = ["centre.toml", "station.toml"].map(address);
    let Some(prometheus) = Prometheus::start(site.folder(), &nodes) else { return };
    for (name, dashboard) in dashboards() {
        for (panel, expressions) in panels(&dashboard) {
            if EMPTY_WHEN_WELL.contains(&&*panel) {
                continue;
            }
            for expression in expressions {
                until(
                    || (prometheus.ask(&expression) > 0).then_some(()),
                    || format!("{name}, {panel}: {expression} has no data"),
                );
            }
        }
    }
    assert!(text(&run(&["status", "--config", "station.toml"], site.folder()).stderr).is_empty());
}
