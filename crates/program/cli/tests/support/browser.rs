//! A real browser, Chromium, driven over its own protocol through a pipe.

use super::patience::{PATIENCE, now, until};
use serde_json::{Value, json};
use std::io::{BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Instant;

/// A browser. It ends with the test.
pub struct Browser {
    child: Child,
    orders: ChildStdin,
    messages: Receiver<Value>,
    next: u64,
    tab: Option<String>,
    /// Pages that were loaded.
    loads: u32,
    /// The addresses that the tab asked for.
    pub asked: Vec<String>,
    /// What scripts complained of, and what the policy forbade.
    pub complaints: Vec<String>,
}

/// The browser reads orders from file 3, and writes to file 4.
const START: &str = "exec \"$0\" --headless --no-sandbox --disable-gpu --no-first-run \
                     --disable-background-networking --disable-component-update \
                     --disable-sync --user-data-dir=\"$1\" --remote-debugging-pipe \
                     --window-size=1280,900 about:blank \
                     3<&0 4>&1 </dev/null >/dev/null 2>/dev/null";

impl Browser {
    /// Starts it with its files in `folder`; none where it is not installed.
    pub fn start(folder: &Path) -> Option<Self> {
        let is_there = |name: &&str| {
            Command::new(name).arg("--version").output().is_ok_and(|said| said.status.success())
        };
        let Some(name) =
            ["chromium", "chromium-browser", "google-chrome"].into_iter().find(is_there)
        else {
            eprintln!("SKIPPED: chromium is not installed");
            return None;
        };
        let mut child = Command::new("sh")
            .args(["-c", START, name])
            .arg(folder.join("browser"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let (orders, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        let (sender, messages) = channel();
        std::thread::Builder::new()
            .spawn(move || {
                let mut line = Vec::new();
                for byte in BufReader::new(output).bytes().map_while(Result::ok) {
                    if byte != 0 {
                        line.push(byte);
                        continue;
                    }
                    let message = serde_json::from_slice(&line).unwrap_or_default();
                    line.clear();
                    if sender.send(message).is_err() {
                        return;
                    }
                }
            })
            .unwrap();
        let (asked, complaints) = (Vec::new(), Vec::new());
        let mut browser =
            Self { child, orders, messages, next: 0, tab: None, loads: 0, asked, complaints };
        browser.tab();
        Some(browser)
    }

    /// Opens a tab in front of the others: orders go there from now on. Returns its target.
    pub fn tab(&mut self) -> Value {
        self.tab = None;
        let opened = self.order("Target.createTarget", json!({"url": "about:blank"}));
        let target = opened["targetId"].clone();
        self.attach(&target);
        for domain in ["Page", "Network", "Runtime", "Log"] {
            self.order(&format!("{domain}.enable"), json!({}));
        }
        target
    }

    /// Brings the tab of this target to the front: orders go there from now on.
    pub fn show(&mut self, target: &Value) {
        self.tab = None;
        self.order("Target.activateTarget", json!({"targetId": target}));
        self.attach(target);
    }

    fn attach(&mut self, target: &Value) {
        let target = json!({"targetId": target, "flatten": true});
        let attached = self.order("Target.attachToTarget", target);
        self.tab = Some(attached["sessionId"].as_str().unwrap().to_owned());
    }

    /// Gives an order, and returns its result.
    pub fn order(&mut self, method: &str, parameters: Value) -> Value {
        let answer = self.answer(method, parameters);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// Gives an order, and returns the whole answer.
    fn answer(&mut self, method: &str, parameters: Value) -> Value {
        self.next += 1;
        let mut order = json!({"id": self.next, "method": method, "params": parameters});
        if let Some(tab) = &self.tab {
            order["sessionId"] = json!(tab);
        }
        self.orders.write_all(format!("{order}\0").as_bytes()).unwrap();
        let begun = now();
        loop {
            let message = self.message(begun, method);
            if message["id"] == self.next {
                return message;
            }
            self.note(&message);
        }
    }

    /// The next message. Fails where `what` has been waited for too long: other tabs go on.
    fn message(&self, begun: Instant, what: &str) -> Value {
        let message = self.messages.recv_timeout(PATIENCE).expect("the browser says something");
        assert!(begun.elapsed() < PATIENCE, "{what}: nothing after {PATIENCE:?}");
        message
    }

    fn note(&mut self, event: &Value) {
        let parameters = &event["params"];
        match event["method"].as_str() {
            Some("Network.requestWillBeSent") => {
                let address = parameters["request"]["url"].as_str().unwrap_or_default();
                self.asked.push(address.to_owned());
            }
            Some("Page.loadEventFired") => self.loads += 1,
            Some("Runtime.exceptionThrown") => self.complaints.push(parameters.to_string()),
            Some("Log.entryAdded") if parameters["entry"]["level"] == "error" => {
                self.complaints.push(parameters["entry"]["text"].to_string());
            }
            _ => {}
        }
    }

    /// Opens a page, and waits until it is loaded: what is asked before is lost with the old one.
    pub fn open(&mut self, address: &str) {
        let (before, begun) = (self.loads, now());
        self.order("Page.navigate", json!({"url": address}));
        while self.loads == before {
            let event = self.message(begun, "the page is loaded");
            self.note(&event);
        }
    }

    /// The value of an expression in the page.
    pub fn value(&mut self, expression: &str) -> Value {
        let order = json!({"expression": expression, "returnByValue": true});
        self.order("Runtime.evaluate", order)["result"]["value"].clone()
    }

    /// The same; null while one page goes and another one comes.
    fn value_if_any(&mut self, expression: &str) -> Value {
        let order = json!({"expression": expression, "returnByValue": true});
        self.answer("Runtime.evaluate", order)["result"]["result"]["value"].clone()
    }

    /// Waits until an expression of the page is true.
    #[track_caller]
    pub fn until(&mut self, expression: &str) {
        let mut shown = String::new();
        let look = || {
            if self.value_if_any(expression) == true {
                return Some(());
            }
            let text = self.value_if_any("document.body.innerText");
            shown = text.as_str().unwrap_or_default().to_owned();
            None
        };
        let mut look = look;
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until(&mut look, || expression.to_owned());
        }));
        assert!(found.is_ok(), "{expression}\n{shown}\n{:?}", self.complaints);
    }

    /// The width of the window.
    pub fn width(&mut self, width: u32) {
        let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.order("Emulation.setDeviceMetricsOverride", size);
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
