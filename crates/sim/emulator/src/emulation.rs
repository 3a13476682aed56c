//! The links at work: packets from one device through the model to the other.

use crate::EmulatorError;
use crate::description::{LabDescription, LinkDescription};
use crate::device::{Device, be_punctual};
use crate::offload::OFFLOAD_LEN;
use crate::order::{EmulatorOrder, OrderAnswer};
use crate::packet::{self, Segment};
use crate::place::{LinkEnd, Namespace};
use crate::status::{DirectionStatus, EmulatedDirection, LinkStatus, SpreadStatus, Status, Waits};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;
use skyhaul_link::{Link, LinkConfig};
use skyhaul_net::Clock;
use skyhaul_units::{Duration, Instant};
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};

mod calibration;

/// The links of a lab between its two places.
#[derive(Debug)]
pub struct Emulation {
    namespaces: [Namespace; 2],
    hops: Vec<Hop>,
    /// Links that flows are spread over.
    spread: Vec<String>,
    clock: Clock,
    room: Box<[u8]>,
    due: Vec<Segment>,
    orders: Receiver<Asked>,
    handle: Handle,
    is_asked_to_end: bool,
}

/// Gives a running emulation orders, from any thread.
#[derive(Debug, Clone)]
pub struct Handle {
    orders: Sender<Asked>,
    wake: Arc<OwnedFd>,
}

type Asked = (EmulatorOrder, SyncSender<OrderAnswer>);

/// One link with its devices.
#[derive(Debug)]
struct Hop {
    name: String,
    mtu: u16,
    up: Way,
    down: Way,
}

/// One direction of a link.
#[derive(Debug)]
struct Way {
    /// Where packets come from.
    from: Device,
    /// As it was last set.
    config: LinkConfig,
    link: Link<Segment>,
    waits: Waits,
    /// Not packets, or in a form that cannot be cut.
    malformed: u64,
    /// Refused by the device at the far end.
    refused: u64,
}

impl Emulation {
    /// Makes both places of the lab of that name with the devices of all links, and removes them
    /// again if that fails half-way.
    ///
    /// # Errors
    /// The system refuses, most often because this is not root, or the places exist.
    pub fn set_up(lab: &str, description: &LabDescription) -> Result<Self, EmulatorError> {
        let namespaces = LinkEnd::ALL.map(|place| Namespace::new(lab, place));
        let [a, b] = &namespaces;
        a.create()?;
        // The first error says what is wrong; what was not made cannot be removed.
        b.create().inspect_err(|_| drop(a.remove()))?;
        Self::between(&namespaces, description).inspect_err(|_| drop((a.remove(), b.remove())))
    }

    fn between(
        namespaces: &[Namespace; 2],
        description: &LabDescription,
    ) -> Result<Self, EmulatorError> {
        let mut hops = Vec::new();
        for (number, link) in description.links.iter().enumerate() {
            let seed = description.seed.wrapping_add(2 * number as u64);
            hops.push(Hop::new(namespaces, number, link, seed)?);
        }
        let place_of = |name: &String| description.links.iter().position(|link| link.name == *name);
        let spread: Vec<(usize, &str)> = description
            .spread
            .iter()
            .filter_map(|name| Some((place_of(name)?, name.as_str())))
            .collect();
        if !spread.is_empty() {
            namespaces
                .iter()
                .try_for_each(|namespace| namespace.spread(&spread, description.seed))?;
        }
        let (orders, received) = channel();
        let wake = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
            .map_err(|errno| EmulatorError::system("make an event descriptor", errno.into()))?;
        Ok(Self {
            namespaces: namespaces.clone(),
            hops,
            spread: description.spread.clone(),
            clock: Clock::start(),
            room: vec![0; OFFLOAD_LEN + LARGEST].into(),
            due: Vec::new(),
            orders: received,
            handle: Handle { orders, wake: Arc::new(wake) },
            is_asked_to_end: false,
        })
    }

    /// Gives orders while it runs.
    pub fn handle(&self) -> Handle {
        self.handle.clone()
    }

    /// Carries packets until `stop` is set, which it notices within a tenth of a second, or until
    /// it is told to end.
    ///
    /// # Errors
    /// The system refuses to wait for the devices.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<(), EmulatorError> {
        be_punctual();
        // The system otherwise rounds waits up by 50 us to save wake-ups.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(TIMER_SLACK.as_nanos()));
        while !stop.load(Ordering::Relaxed) && !self.is_asked_to_end {
            self.carry_out_orders();
            let now = self.clock.now();
            for hop in &mut self.hops {
                hop.up.deliver(now, &mut hop.down.from, &mut self.due);
                hop.down.deliver(now, &mut hop.up.from, &mut self.due);
            }
            self.wait()?;
            for hop in &mut self.hops {
                hop.up.take(&self.clock, &mut self.room);
                hop.down.take(&self.clock, &mut self.room);
            }
        }
        Ok(())
    }

    /// Removes both places with the devices.
    ///
    /// # Errors
    /// The system refuses.
    pub fn take_down(self) -> Result<(), EmulatorError> {
        drop(self.hops);
        self.namespaces.iter().try_for_each(Namespace::remove)
    }

    /// Waits for packets, for one to be due, or for an order.
    fn wait(&self) -> Result<(), EmulatorError> {
        let due = self
            .hops
            .iter()
            .flat_map(|hop| [hop.up.link.next_event(), hop.down.link.next_event()])
            .flatten()
            .min();
        let span =
            due.map_or(LONGEST_WAIT, |at| at.since(self.clock.now()).clamp(GRAIN, LONGEST_WAIT));
        let mut waited: Vec<PollFd<'_>> = vec![PollFd::new(&*self.handle.wake, PollFlags::IN)];
        let devices = self.hops.iter().flat_map(|hop| [&hop.up.from, &hop.down.from]);
        waited.extend(devices.map(|device| PollFd::new(device, PollFlags::IN)));
        let nanos = span.as_nanos();
        let limit = Timespec {
            tv_sec: (nanos / 1_000_000_000) as i64,
            tv_nsec: (nanos % 1_000_000_000) as i64,
        };
        match poll(&mut waited, Some(&limit)) {
            Ok(_) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(EmulatorError::system("wait for the devices", errno.into())),
        }
    }

    fn carry_out_orders(&mut self) {
        while let Ok((order, answer)) = self.orders.try_recv() {
            let _ = rustix::io::read(&*self.handle.wake, &mut [0_u8; 8]);
            let result = match order {
                EmulatorOrder::Status => OrderAnswer::Status(Box::new(self.status())),
                EmulatorOrder::Set { link, direction, config } => {
                    self.set(&link, direction, &config)
                }
                EmulatorOrder::End => {
                    self.is_asked_to_end = true;
                    OrderAnswer::Done
                }
            };
            // The client may have disconnected.
            let _ = answer.try_send(result);
        }
    }

    fn set(
        &mut self,
        link: &str,
        direction: EmulatedDirection,
        config: &LinkConfig,
    ) -> OrderAnswer {
        let now = self.clock.now();
        let Some(hop) = self.hops.iter_mut().find(|hop| hop.name == link) else {
            return OrderAnswer::Refused(format!(
                "there is no link `{link}`; see `skyhaul lab status`"
            ));
        };
        let way = match direction {
            EmulatedDirection::Up => &mut hop.up,
            EmulatedDirection::Down => &mut hop.down,
        };
        way.config = config.clone();
        way.link.reconfigure(now, config.clone());
        OrderAnswer::Done
    }

    fn status(&self) -> Status {
        let of = |way: &Way, from: &Namespace, link: &str| DirectionStatus {
            config: way.config.clone(),
            counters: *way.link.counters(),
            in_flight: way.link.in_flight() as u64,
            queue_delay_histogram: way.waits.quantiles(),
            malformed: way.malformed,
            refused: way.refused,
            device_dropped: from.device_drops(link),
        };
        let [a, b] = &self.namespaces;
        let links = self.hops.iter().enumerate().map(|(number, hop)| LinkStatus {
            name: hop.name.clone(),
            mtu: hop.mtu,
            a: LinkEnd::A.ipv4(number),
            b: LinkEnd::B.ipv4(number),
            a6: LinkEnd::A.ipv6(number),
            b6: LinkEnd::B.ipv6(number),
            up: of(&hop.up, a, &hop.name),
            down: of(&hop.down, b, &hop.name),
        });
        Status {
            running_s: self.clock.now().since(Instant::ZERO).as_secs_f64(),
            links: links.collect(),
            spread: SpreadStatus::over(&self.spread),
        }
    }
}

impl Handle {
    /// Gives an order and waits for its answer, a second at most.
    ///
    /// # Errors
    /// The emulation has ended or does not answer.
    pub fn ask(&self, order: EmulatorOrder) -> Result<OrderAnswer, EmulatorError> {
        let gone = |kind| EmulatorError::NoAnswer(std::io::Error::from(kind));
        let (answer, answered) = sync_channel(1);
        self.orders.send((order, answer)).map_err(|_| gone(std::io::ErrorKind::NotConnected))?;
        // Fails only where the count is at its end, and then the wait ends anyhow.
        let _ = rustix::io::write(&*self.wake, &1_u64.to_ne_bytes());
        answered.recv_timeout(PATIENCE.to_std()).map_err(|_| gone(std::io::ErrorKind::TimedOut))
    }
}

impl Hop {
    /// Makes the devices of a link, the first of `number` 0, in both places.
    fn new(
        namespaces: &[Namespace; 2],
        number: usize,
        link: &LinkDescription,
        seed: u64,
    ) -> Result<Self, EmulatorError> {
        let device = |namespace: &Namespace| {
            let device = namespace.enter(|| Device::create(&link.name))?;
            namespace.configure(number, link)?;
            Ok::<_, EmulatorError>(device)
        };
        let [a, b] = namespaces;
        let up = Way::new(device(a)?, &link.up, seed);
        let down = Way::new(device(b)?, &link.down, seed.wrapping_add(1));
        Ok(Self { name: link.name.clone(), mtu: link.mtu, up, down })
    }
}

impl Way {
    fn new(from: Device, config: &LinkConfig, seed: u64) -> Self {
        let link = Link::new(config.clone(), seed);
        Self { from, config: config.clone(), link, waits: Waits::new(), malformed: 0, refused: 0 }
    }

    /// Puts what the kernel sends into the link.
    fn take(&mut self, clock: &Clock, room: &mut [u8]) {
        for _ in 0..READS_AT_ONCE {
            // A device that fails is one that was removed; there is nothing to read from it any
            // more.
            let Ok(Some(given)) = self.from.receive(room) else { return };
            let now = clock.now();
            match packet::segments(given) {
                Ok(segments) => segments.for_each(|segment| {
                    let (wait, before) =
                        (self.link.wait(now), self.link.counters().queue_delay.samples);
                    let waiting = self.link.in_flight();
                    self.link.send(now, segment.size(), segment);
                    let is_taken = self.link.in_flight() > waiting
                        || self.link.counters().queue_delay.samples > before;
                    if is_taken {
                        self.waits.add(wait);
                    }
                }),
                Err(_) => self.malformed += 1,
            }
        }
    }

    /// Hands what has come to the end of the link to the device there.
    fn deliver(&mut self, now: Instant, to: &mut Device, due: &mut Vec<Segment>) {
        due.clear();
        while let Some(segment) = self.link.poll(now) {
            due.push(segment);
        }
        self.refused += to.send(due);
        due.clear();
    }
}

/// The largest packet that a device gives, bytes.
const LARGEST: usize = 65_550;

/// How far the system may put off wake-ups.
const TIMER_SLACK: Duration = Duration::from_micros(1);

/// Departures closer together than this leave together, none of them early: a third of what is
/// promised, and half the processor time of each alone.
const GRAIN: Duration = Duration::from_micros(100);

/// The longest time until `stop` is noticed.
const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// Packets taken from one device before the others and the links get their turn: each may stand for
/// 45 of 1500 bytes.
const READS_AT_ONCE: u32 = 16;

/// How long an answer is waited for: ten of the longest waits.
const PATIENCE: Duration = Duration::from_secs(1);
