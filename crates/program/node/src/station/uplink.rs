//! The station's end of the line to one destination: keeps a session, and feeds it from the spool.

mod connection;
mod forecast;
mod health;
mod keys;
mod messages;
mod orders;
mod presence;
mod standby;

use super::lateness::{self, ForecastChange, LatenessWatch, WaitingData, in_words};
use super::paths::{CallPath, StationPaths};
use super::rivals::{Rivals, SHARED_KEY};
use super::shared::StationShared;
use crate::custody::{Divergence, FeedError, Feeder, find_divergence, renew};
use crate::keys::NodeKeys;
use crate::reports::{PeerSide, SessionReports};
use crate::status::{LineState, LineStatus, SessionStatus, smallest_rtt_s};
use connection::{CentreConnection, Ending};
use health::PathHealth;
pub use keys::CentreKeys;
use keys::UplinkKeys;
pub use orders::{UplinkOrders, destination};
use skyhaul_channels::{FIRST_GUEST, SessionEnd};
use skyhaul_channels_io::{SessionPeer, Tenants};
use skyhaul_events::AlarmKind;
use skyhaul_forward_io::FarRules;
use skyhaul_net::{Clock, SessionManager};
use skyhaul_quic::{Fingerprint, Refusal};
use skyhaul_sessions::{AfterFailure, DialAttempt, DialFailure, SessionId, SessionManagerEvent};
use skyhaul_store::SpoolReader;
use skyhaul_transport::{
    CloseReason, Custody, Event, LineShare, Opening, PathId, RefusalCause, Session,
};
use skyhaul_units::{Duration, FlowId, Instant, Utc};
use standby::StandbyUplink;
use std::sync::Arc;

/// The centre: address, key and permissions.
#[derive(Debug, Clone)]
pub struct CentreContact {
    /// Its name.
    pub name: String,
    /// Host and port.
    pub address: String,
    /// Its keys.
    pub keys: CentreKeys,
    /// What it may have this station do for applications.
    pub rules: Arc<FarRules>,
    /// Without a session for so long it is silent; none where that is no alarm.
    pub patience: Option<Duration>,
}

/// Keeps the session to one destination.
#[derive(Debug)]
pub struct Uplink {
    /// Its number among the destinations.
    place: usize,
    name: String,
    centre: CentreContact,
    shared: Arc<StationShared>,
    clock: Clock,
    paths: StationPaths,
    connection: CentreConnection,
    feeder: Feeder,
    /// The line that the sessions with all destinations share; none where there is one.
    line: Option<LineShare>,
    timers: Timers,
    lateness: LatenessWatch,
    rivals: Rivals,
    status: LineStatus,
    /// What the subjects of its alarms end with: nothing where it began as the only one.
    about: String,
    keys: UplinkKeys,
}

/// What an uplink serves.
#[derive(Debug)]
pub struct UplinkParts {
    /// Its number among the destinations.
    pub place: usize,
    /// The paths to the destination.
    pub paths: StationPaths,
    /// Moves blocks from the spool to the session.
    pub feeder: Feeder,
    /// The line that it shares with the other uplinks; none where there is no other.
    pub line: Option<LineShare>,
    /// The keys of the node.
    pub keys: Arc<NodeKeys>,
}

/// What all uplinks use.
pub struct Served<'a> {
    /// Their sessions.
    pub manager: &'a mut SessionManager,
    /// What shares the sessions with contacts.
    pub guests: &'a mut Tenants,
}

/// What an event means for the other uplinks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UplinkNews {
    /// Nothing.
    Nothing,
    /// The spool has another identity: sessions that began under the old one must end.
    SpoolRenewed,
}

/// The due times of periodic work.
#[derive(Debug, Default)]
struct Timers {
    update_at: Instant,
    forecast_at: Instant,
    report: SessionReports,
}

/// Between two updates of the status.
const UPDATE: Duration = Duration::from_millis(200);
/// Between two forecasts.
const FORECAST: Duration = Duration::from_millis(500);
/// The subject of the alarm where the centre has data of another copy of this spool.
const SPOOL: &str = "the spool";

impl Uplink {
    /// An uplink of the station `name` to `centre`, not connected yet.
    pub fn new(
        name: String,
        centre: CentreContact,
        shared: Arc<StationShared>,
        clock: Clock,
        parts: UplinkParts,
    ) -> Self {
        let UplinkParts { place, paths, feeder, line, keys } = parts;
        let status = LineStatus { peer: centre.address.clone(), ..LineStatus::default() };
        if let Some(patience) = centre.patience {
            shared.alarms.expect(&centre.name, patience);
        }
        shared.reports.expect(PeerSide::Destination, &centre.name);
        let about = match shared.routing.count() {
            1 => String::new(),
            _ => format!(" (destination {})", centre.name),
        };
        Self {
            place,
            name,
            centre,
            shared,
            clock,
            paths,
            connection: CentreConnection::default(),
            feeder,
            line,
            timers: Timers::default(),
            lateness: LatenessWatch::default(),
            rivals: Rivals::default(),
            status,
            about,
            keys: UplinkKeys::new(keys),
        }
    }

    fn connect(&mut self, now: Instant, served: &mut Served<'_>) {
        let manager = &mut *served.manager;
        self.connection.attempt(now);
        if self.shared.spool().identity().is_none() {
            self.status.reason = Some("no disk space left for the spool's state".to_owned());
            return;
        }
        let Some(key) = self.centre.keys.current() else {
            self.status.reason = Some("all keys of the centre are revoked".to_owned());
            return;
        };
        let Some(CallPath { socket, remote, tcp_side }) = self.paths.call(self.clock.utc_of(now))
        else {
            self.status.reason = Some("no path is usable".to_owned());
            return;
        };
        let outcome = remote.and_then(|address| {
            manager.connect_from(now, socket, address, key).map_err(|error| error.to_string())
        });
        match outcome {
            Ok(id) => self.connection.calling(id, tcp_side),
            Err(reason) => self.down(served.guests, Ending::Lost, reason),
        }
    }

    /// Calls over TCP too, where the first call has no answer.
    fn call_tcp(&mut self, now: Instant, manager: &mut SessionManager) {
        if !self.connection.take_second(now) {
            return;
        }
        let Some(key) = self.centre.keys.current() else { return };
        let Some(CallPath { socket, remote, .. }) = self.paths.call_tcp(manager) else { return };
        let called = remote.and_then(|address| {
            manager.connect_from(now, socket, address, key).map_err(|error| error.to_string())
        });
        match called {
            Ok(id) => self.connection.calling_second(id),
            Err(reason) => tracing::warn!("cannot connect to the centre over TCP: {reason}"),
        }
    }

    /// A call was answered. The other one, if there is one, is closed.
    fn connected(
        &mut self,
        now: Instant,
        served: &mut Served<'_>,
        id: SessionId,
        shown: Fingerprint,
    ) {
        let Some(call) = self.connection.call_of(id) else { return };
        let manager = &mut *served.manager;
        if let Some(other) = self.connection.answered(id) {
            manager.close(now, other, "another connection was established first");
        }
        let options = match call {
            DialAttempt::First => self.paths.begun(),
            DialAttempt::Second => self.paths.begun_over_tcp(now, &Refusal::NoAnswer.to_string()),
        };
        self.keys.began(&self.centre.name, shown);
        let (sharing, key) = (self.feeder.sharing(), keys::listed(self, shown));
        if let Some(session) = manager.session(id) {
            session.sender_mut().share(sharing.tree.clone(), sharing.policy);
            if let Err(error) = session.sender_mut().set_line(self.line.as_ref()) {
                tracing::warn!(centre = %self.centre.address, "{error}");
            }
            session.add_path(PathId(0), options);
            let (flow_base, spool) = {
                let spool = self.shared.spool();
                (spool.queue().flow_numbers().lowest, spool.identity().unwrap_or_default())
            };
            let name = self.name.clone();
            session.open(Opening { name, flow_base, spool, ..Opening::default() });
            let rules = Arc::clone(&self.centre.rules);
            served.guests.begun(
                id,
                session,
                SessionPeer { end: SessionEnd::Calling, node: Some(self.place), rules, key },
            );
        }
    }

    /// A call failed. Where the centre did not decide it, the other call goes on.
    fn refused(
        &mut self,
        now: Instant,
        served: &mut Served<'_>,
        call: DialAttempt,
        reason: &Refusal,
    ) {
        let is_busy = *reason == Refusal::Busy;
        let is_undecided = is_busy
            || matches!(reason, Refusal::NoAnswer | Refusal::ClosedHere | Refusal::Unreachable(_));
        let (failure, ending) = match is_undecided {
            true => (DialFailure::Undecided, Ending::Lost),
            false => {
                self.centre.keys.refused();
                (DialFailure::Decided, Ending::Refused)
            }
        };
        if self.connection.failed(now, call, failure) == AfterFailure::Wait {
            match call {
                DialAttempt::First if is_busy => tracing::info!(
                    "the centre refuses the connection over UDP, it is full: {reason}"
                ),
                DialAttempt::First => {}
                DialAttempt::Second => {
                    tracing::info!("the centre does not answer over TCP: {reason}");
                }
            }
            return self.call_tcp(now, served.manager);
        }
        for other in self.connection.ids() {
            served.manager.close(now, other, "the far end refused another connection");
        }
        self.down(served.guests, ending, reason.to_string());
    }

    fn down(&mut self, guests: &mut Tenants, ending: Ending, reason: String) {
        presence::down(self, ending, &reason);
        PathHealth::of(self).forget();
        self.paths.ended(&reason);
        self.status.paths = self.paths.status(&[], self.clock);
        self.status.state = match ending {
            Ending::Lost | Ending::GoesOn => LineState::Down,
            Ending::Refused => LineState::Refused,
        };
        self.status.reason = Some(reason);
        self.status.session = None;
        self.connection.end(ending).into_iter().for_each(|id| guests.ended(id));
        guests.unreached(self.place);
        self.feeder.disconnected();
        self.shared.questions.forget(self.place);
        self.shared.board.forecasts(self.place, Vec::new());
        self.shared.board.line(self.place, self.status.clone());
    }

    fn session_event(
        &mut self,
        now: Instant,
        served: &mut Served<'_>,
        id: SessionId,
        event: Event,
    ) -> UplinkNews {
        let Some(event) = served.guests.event(now, served.manager, id, event) else {
            return UplinkNews::Nothing;
        };
        match event {
            Event::Greeted { name, custody, .. } => {
                return self.greeted(now, served, &name, custody);
            }
            Event::Custody { flow, next } => {
                let mut spool = self.shared.spool();
                self.feeder.custody(&mut spool, flow, next);
                // Under the lock: the flow cannot end between the two.
                orders::note_early(&self.shared.early, &self.feeder);
            }
            Event::Block(received) => {
                let refusal = "a station does not accept data";
                tracing::warn!(flow = received.id.flow.0, "{refusal}");
                if let Some(session) = self.session(served.manager) {
                    session.refuse(RefusalCause::Told, refusal);
                }
            }
            Event::PathUp(_)
            | Event::PathStalled(_)
            | Event::PathBack(_)
            | Event::PathResized(_) => {
                PathHealth::of(self).path_event(served.manager, &event);
            }
            Event::PathDown(path, reason) => {
                presence::path_down(self, path, &reason);
                self.paths.down(now, path, &reason.to_string());
            }
            Event::Settled { id, .. } => self.feeder.settled(id),
            Event::Application { body } => messages::received(self, now, &body),
            Event::Closed(CloseReason::Replaced(reason)) => {
                self.connection.wait_until(self.rivals.replaced(now));
                self.shared.alarms.raise(AlarmKind::KeyShared, self.subject(SHARED_KEY), &reason);
                self.down(served.guests, Ending::Refused, reason);
            }
            Event::Closed(reason) => {
                self.rivals.gone();
                let ending = self.connection.closed(now, &reason);
                self.down(served.guests, ending, reason.to_string());
            }
        }
        UplinkNews::Nothing
    }

    fn session<'a>(&self, manager: &'a mut SessionManager) -> Option<&'a mut Session> {
        self.connection.id().and_then(|id| manager.session(id))
    }

    fn greeted(
        &mut self,
        now: Instant,
        served: &mut Served<'_>,
        name: &str,
        custody: Option<Custody>,
    ) -> UplinkNews {
        if name != self.centre.name {
            let reason = format!(
                "the centre is named `{name}`, not `{}`: correct `name` in one of the two \
                configurations",
                self.centre.name
            );
            if let Some(session) = self.session(served.manager) {
                session.refuse(RefusalCause::Told, &reason);
            }
            self.down(served.guests, Ending::Refused, reason);
            return UplinkNews::Nothing;
        }
        let custody = custody.unwrap_or_default();
        let is_known = custody != Custody::default();
        let found = if is_known {
            find_divergence(&mut self.shared.spool(), self.feeder.to(), &custody)
        } else {
            Ok(None)
        };
        match found {
            Ok(None) => {}
            Ok(Some(found)) => return self.renew_spool(served, &custody, found),
            Err(error) => {
                self.end_with_alarm(served, AlarmKind::SpoolUnreadable, &error.to_string());
                return UplinkNews::Nothing;
            }
        }
        let utc = self.clock.utc_of(now);
        orders::greeted(&self.shared, &mut self.feeder, &custody.resume, utc);
        if let Some(standby) = self.feeder.standby() {
            standby.connected(&self.shared.spool(), now);
        }
        self.connection.id().into_iter().for_each(|id| served.guests.opened(id, name));
        presence::opened(self);
        self.timers.report = SessionReports::default();
        self.status.state = LineState::Open;
        self.status.reason = None;
        self.status.connects += 1;
        self.timers.update_at = now;
        tracing::info!(centre = %self.centre.address, "the line is open");
        UplinkNews::Nothing
    }

    /// The centre has data of another copy of this spool: the spool takes a new identity.
    fn renew_spool(
        &mut self,
        served: &mut Served<'_>,
        custody: &Custody,
        found: Divergence,
    ) -> UplinkNews {
        let renewed = super::draw().and_then(|draw| {
            renew(&mut self.shared.spool(), self.feeder.to(), custody, draw)
                .map_err(|error| super::spool_fault(&error))
        });
        if let Err(error) = renewed {
            self.end_with_alarm(served, AlarmKind::SpoolUnrenewed, &error.to_string());
            return UplinkNews::Nothing;
        }
        let id = self.shared.spool().identity().map(|spool| spool.id.short()).unwrap_or_default();
        let reason = format!(
            "{found}: the state folder was restored from an older copy, or two nodes use it; the \
            station continues as spool {id}, and \
             sends the waiting data under that identity"
        );
        self.end_with_alarm(served, AlarmKind::SpoolCopied, &reason);
        UplinkNews::SpoolRenewed
    }

    /// Ends the session, if there is one, for a new one.
    pub fn call_again(&mut self, served: &mut Served<'_>, reason: &str) {
        if let Some(session) = self.session(served.manager) {
            session.refuse(RefusalCause::Told, reason);
            self.down(served.guests, Ending::Lost, reason.to_owned());
        }
    }

    /// Moves blocks from the spool to the session while it has room.
    fn feed(&mut self, now: Instant, manager: &mut SessionManager) {
        let Some(session) = self.connection.id().and_then(|id| manager.session(id)) else { return };
        let (shared, clock) = (&self.shared, self.clock);
        let read = |reader: &mut SpoolReader, wanted: &dyn Fn(FlowId) -> bool| {
            shared.spool().queue_mut().read_flows(reader, wanted)
        };
        match self.feeder.feed(read, session, now, || clock.utc()) {
            Ok(()) => {}
            Err(FeedError::Spool(error)) => {
                self.shared.alarms.raise(AlarmKind::SpoolUnreadable, SPOOL, &error.to_string());
            }
            Err(error @ (FeedError::Session(_) | FeedError::Order { .. })) => {
                self.shared.alarms.raise(AlarmKind::SpoolUnsendable, SPOOL, &error.to_string());
                session.refuse(RefusalCause::Told, "the station's spool is out of order");
            }
        }
    }

    fn update(&mut self, now: Instant, manager: &mut SessionManager) {
        self.timers.update_at = now + UPDATE;
        for path in self.paths.learn(&self.shared.outside, self.clock.utc_of(now)) {
            self.send_forecasts(manager, path);
            PathHealth::of(self).share(manager, path);
        }
        if self.feeder.is_feeding() && self.connection.is_settled(now) {
            // The session lasts: the other node has gone.
            self.shared.alarms.clear(AlarmKind::KeyShared, self.subject(SHARED_KEY));
        }
        if let Some(id) = self.connection.id()
            && let Some(estimate) = manager.estimate(id)
        {
            self.status.rtt_s = estimate.rtt.as_secs_f64();
            self.status.min_rtt_s = smallest_rtt_s(&estimate);
            self.status.loss = estimate.loss.as_f64();
            self.status.rate_bps = estimate.rate.as_bps();
        }
        if let Some(session) = self.connection.id().and_then(|id| manager.session(id)) {
            let stats = session.stats();
            self.status.bytes_reported = stats.sent.bytes_reported;
            self.status.symbols_sent = stats.sent.symbols_sent;
            self.status.symbols_repeated = stats.sent.symbols_repeated;
            self.status.symbols_lost = stats.sent.symbols_lost;
            self.status.held_back = session.sender().is_held_back();
            self.status.session = session.is_open().then(|| SessionStatus::of(session, now));
            let used: Vec<_> = session.paths().iter().collect();
            self.status.paths = self.paths.status(&used, self.clock);
            if self.status.state == LineState::Open {
                PathHealth::of(self).show_silence(&used);
                self.connection.lasts(now);
            }
        }
        self.shared.board.line(self.place, self.status.clone());
        let standby = StandbyUplink::of(self).status();
        self.shared.board.standby(self.place, standby);
    }

    /// Whether an event is of its session, or of a call of it.
    pub fn owns(&self, id: SessionId) -> bool {
        self.connection.ids().any(|own| own == id)
    }

    /// An event of its session, or of a call.
    pub fn event(
        &mut self,
        now: Instant,
        served: &mut Served<'_>,
        event: SessionManagerEvent,
    ) -> UplinkNews {
        match event {
            SessionManagerEvent::Connected { id, fingerprint, .. } => {
                self.connected(now, served, id, fingerprint);
            }
            SessionManagerEvent::Session { id, event } if Some(id) == self.connection.id() => {
                return self.session_event(now, served, id, event);
            }
            SessionManagerEvent::Disconnected { id, reason }
                if Some(id) == self.connection.id() =>
            {
                self.down(served.guests, Ending::Lost, reason.to_string());
            }
            SessionManagerEvent::Refused { id: Some(id), reason, .. } => {
                if let Some(call) = self.connection.call_of(id) {
                    self.refused(now, served, call, &reason);
                }
            }
            SessionManagerEvent::PathRefused { id, path, reason, .. }
                if Some(id) == self.connection.id() =>
            {
                self.paths.down(now, path, &reason);
            }
            _ => {}
        }
        UplinkNews::Nothing
    }

    /// Calls, feeds, and updates what is shown. Returns when it wants to be called again.
    pub fn work(&mut self, now: Instant, served: &mut Served<'_>) -> Option<Instant> {
        if !self.feeder.is_feeding() && self.connection.is_overdue(now) {
            for call in self.connection.ids() {
                served.manager.close(now, call, "handshake timed out");
            }
            self.down(served.guests, Ending::Lost, Refusal::NoAnswer.to_string());
        }
        keys::follow(self, now, served);
        if self.connection.is_due(now) {
            self.connect(now, served);
        }
        let manager = &mut *served.manager;
        self.call_tcp(now, manager);
        if let Some(id) = self.connection.id().filter(|_| self.feeder.is_feeding()) {
            let utc = self.clock.utc_of(now);
            self.paths.fall_back(now, utc, manager, id);
            self.paths.call_missing(now, utc, manager, id);
        }
        orders::settle_finished(&self.shared, &mut self.feeder);
        messages::send(self, now, manager);
        StandbyUplink::of(self).work(now, manager);
        self.feed(now, manager);
        if now >= self.timers.forecast_at {
            self.forecast(now, manager);
        }
        if now >= self.timers.update_at {
            self.update(now, manager);
        }
        [Some(self.timers.update_at), self.connection.due_at()].into_iter().flatten().min()
    }

    /// The names of its paths.
    pub fn path_titles(&self) -> impl Iterator<Item = &str> {
        self.paths.titles()
    }

    /// Carries out orders for its paths, and what changes of the configuration.
    pub const fn orders(&mut self) -> UplinkOrders<'_> {
        UplinkOrders::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address_family::AddressFamily;
    use crate::station::board::StationBoard;
    use crate::station::paths::SpareSocket;
    use crate::station::routing;
    use skyhaul_channels_io::TakenChannels;
    use skyhaul_config::{LinePath, LineSharing};
    use skyhaul_forward_io::Forwarding;
    use skyhaul_net::{Socket, UdpEndpoint, Waker};
    use skyhaul_quic::{EndpointConfig, Identity, PathConfig, QuicEndpoint};
    use skyhaul_sessions::SocketId;
    use skyhaul_store::{DestinationId, Spool, SpoolConfig, SpoolDraw, sim::SimDisk};
    use skyhaul_transport::{DownReason, SessionConfig};
    use skyhaul_units::{ByteCount, Rate};

    /// An uplink with the sessions and guests that it works with.
    struct Bench {
        uplink: Uplink,
        manager: SessionManager,
        guests: Tenants,
    }

    impl Bench {
        fn served(&mut self) -> (&mut Uplink, Served<'_>) {
            let served = Served { manager: &mut self.manager, guests: &mut self.guests };
            (&mut self.uplink, served)
        }

        fn work(&mut self, now: Instant) {
            let (uplink, mut served) = self.served();
            uplink.work(now, &mut served);
        }

        fn event(&mut self, now: Instant, event: SessionManagerEvent) {
            let (uplink, mut served) = self.served();
            uplink.event(now, &mut served, event);
        }
    }

    fn uplink(clock: Clock) -> Bench {
        let identity = Identity::from_seed(&[1; 32]).expect("a key");
        let centre = CentreContact {
            name: "centre".to_owned(),
            address: "127.0.0.1:9".to_owned(),
            keys: CentreKeys::new(
                [Identity::from_seed(&[2; 32]).expect("a key").fingerprint()].into_iter(),
            ),
            rules: Arc::default(),
            patience: None,
        };
        let config = SpoolConfig {
            max_size: ByteCount::mib(8),
            segment_size: ByteCount::mib(1),
            ..SpoolConfig::default()
        };
        let disk = Arc::new(SimDisk::new(ByteCount::mib(256)));
        let mut spool =
            Spool::open(disk, config, clock.utc(), SpoolDraw([7; 24])).expect("a spool");
        let waker = Waker::new().expect("a waker");
        let guests = Tenants::new(
            Forwarding::default(),
            TakenChannels::NONE,
            waker.clone(),
            Box::new(|_| {}),
        )
        .expect("a poller");
        let routing = routing::to_one_centre(&mut spool);
        let board = StationBoard::new("station".to_owned(), Vec::new(), Vec::new());
        let shared = Arc::new(StationShared::new(
            board,
            routing,
            spool,
            crate::alarms::Alarms::quiet(clock),
            waker,
        ));
        let quic =
            EndpointConfig::new(identity, PathConfig::over(Rate::from_mbps(10)), clock.std_start());
        let socket = Socket::bind(([127, 0, 0, 1], 0).into()).expect("a socket");
        let endpoint = UdpEndpoint::new(QuicEndpoint::new(quic).expect("an endpoint"), socket);
        let manager = SessionManager::new(endpoint.into(), SessionConfig::default());
        let opener = super::super::sockets::PathSocketOpener {
            identity: Identity::from_seed(&[1; 32]).expect("a key").into(),
            line: toml::from_str("").expect("a line"),
            centre: vec!["127.0.0.1:9".to_owned()],
            clock,
        };
        let path = SpareSocket {
            config: LinePath::any().named(0),
            family: AddressFamily::V4,
            socket: SocketId(0),
        };
        let paths = StationPaths::new(opener, &[path]);
        let feeder = Feeder::new(DestinationId::FIRST, LineSharing::default(), ByteCount::mib(64));
        let keys = NodeKeys::fixed(Identity::from_seed(&[1; 32]).expect("a key"), clock);
        let parts = UplinkParts { place: 0, paths, feeder, line: None, keys };
        let uplink = Uplink::new("station".to_owned(), centre, shared, clock, parts);
        Bench { uplink, manager, guests }
    }

    /// Regression: after a centre was down for two minutes, a call from that time found it only two
    /// minutes after its return.
    #[test]
    fn a_call_without_answer_is_made_anew_and_its_end_does_not_touch_the_next() {
        let mut bench = uplink(Clock::start());
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        bench.work(at(0));
        let first = call(&bench, DialAttempt::First).expect("called");
        bench.work(at(14));
        assert_eq!(call(&bench, DialAttempt::First), Some(first), "patient so far");
        bench.work(at(15));
        let second = call(&bench, DialAttempt::First).expect("called anew");
        assert_ne!(second, first);
        let address = "127.0.0.1:9".parse().expect("an address");
        let late = SessionManagerEvent::Refused {
            id: Some(first),
            remote: address,
            fingerprint: None,
            reason: Refusal::ClosedHere,
        };
        bench.event(at(15), late);
        assert_eq!(call(&bench, DialAttempt::First), Some(second));
    }

    fn call(bench: &Bench, attempt: DialAttempt) -> Option<SessionId> {
        let uplink = &bench.uplink;
        uplink.connection.ids().find(|id| uplink.connection.call_of(*id) == Some(attempt))
    }

    fn retry_at(bench: &Bench) -> Instant {
        bench.uplink.connection.due_at().expect("down")
    }

    /// The call that went out first of those under way fails.
    fn refused(bench: &mut Bench, now: Instant, reason: Refusal) {
        let address = "127.0.0.1:9".parse().expect("an address");
        let id = bench.uplink.connection.ids().next();
        assert!(id.is_some(), "called at {now}");
        bench.event(
            now,
            SessionManagerEvent::Refused { id, remote: address, fingerprint: None, reason },
        );
    }

    /// Regression: a station with a key that the centre did not know called, and logged, every 1.2
    /// s for ever.
    #[test]
    fn a_centre_that_refuses_is_called_ever_more_seldom_and_one_that_is_busy_as_before() {
        let mut bench = uplink(Clock::start());
        let own = Identity::from_seed(&[1; 32]).expect("a key").fingerprint();
        let (mut now, mut pauses) = (Instant::ZERO, Vec::new());
        for _ in 0..9 {
            bench.work(now);
            refused(&mut bench, now, Refusal::OwnKeyUntrusted { ours: own });
            assert_eq!(bench.uplink.status.state, LineState::Refused);
            pauses.push(retry_at(&bench).since(now).as_millis() / 1_000);
            now = retry_at(&bench);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        bench.work(now);
        refused(&mut bench, now, Refusal::NoAnswer);
        bench.work(now + Duration::from_secs(15));
        assert_eq!(
            (bench.uplink.connection.refusals(), bench.uplink.status.state),
            (0, LineState::Down)
        );
    }

    #[test]
    fn where_the_centre_has_no_place_for_a_call_over_udp_it_is_called_over_tcp_at_once() {
        let mut bench = uplink(Clock::start());
        bench.work(Instant::ZERO);
        assert_eq!(call(&bench, DialAttempt::Second), None);
        refused(&mut bench, Instant::ZERO, Refusal::Busy);
        assert!(call(&bench, DialAttempt::Second).is_some(), "called over TCP");
        assert!(!bench.uplink.connection.is_down(), "the other call decides");
    }

    #[test]
    fn where_udp_had_no_answer_both_are_called_at_once_when_the_centre_goes_on_elsewhere() {
        let mut bench = uplink(Clock::start());
        let at = |secs| Instant::ZERO + Duration::from_secs(secs);
        bench.work(at(0));
        bench.work(at(3));
        let id = call(&bench, DialAttempt::Second).expect("called over TCP");
        let fingerprint = Identity::from_seed(&[2; 32]).expect("a key").fingerprint();
        bench.event(at(4), SessionManagerEvent::Connected { id, fingerprint, incoming: false });
        let event = Event::Closed(CloseReason::Path(DownReason::GoesOnElsewhere));
        bench.event(at(9), SessionManagerEvent::Session { id, event });
        assert_eq!(retry_at(&bench), at(9));
        bench.work(at(9));
        let calls = [DialAttempt::First, DialAttempt::Second].map(|which| call(&bench, which));
        assert!(calls.iter().all(Option::is_some), "{calls:?}");
    }
}
