//! The sessions of a stream: when one is lost, a live source continues as a further stream over the
//! next session.

use super::screen::Screen;
use skyhaul_channels_io::{AppChannel, AppChannelError, AppClient, ClientSetup, PathChoice};
use skyhaul_exit::{Exit, Failure};
use skyhaul_net::Clock;
use skyhaul_quic::Fingerprint;
use skyhaul_streams::StreamFormat;
use skyhaul_streams_io::{
    FarSink, Options, SourceSpec, StreamContext, StreamFailure, StreamSource, StreamSourceError,
    StreamSummary, Waiter, send,
};
use skyhaul_units::Duration;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

/// A stream, from where and to where.
pub struct StreamRun {
    pub spec: SourceSpec,
    pub format: Option<StreamFormat>,
    pub sink: FarSink,
    pub options: Options,
    pub node: String,
    pub ways: Vec<PathChoice>,
    pub peer: Fingerprint,
    pub setup: ClientSetup,
}

/// How a session ended without an account.
enum Broken {
    /// The far node does not answer.
    Silent(AppChannelError),
    /// The session was lost.
    Lost(String),
    Failed(Failure),
}

impl StreamRun {
    /// The source.
    ///
    /// # Errors
    /// It cannot be used.
    pub fn open(&self) -> Result<StreamSource, Failure> {
        StreamSource::open(&self.spec, self.format).map_err(|error| {
            let exit = match &error {
                StreamSourceError::System { .. } => Exit::Environment,
                StreamSourceError::Usage(_) => Exit::Usage,
            };
            Failure::from_sentence(exit, &error.to_string())
        })
    }

    /// Sends the stream to its end, which `stop` brings about; the account is that of the last one.
    /// Beside it how many sessions were lost before.
    ///
    /// # Errors
    /// The far node does not answer at first, or refuses; the session was lost, and no further
    /// stream can follow.
    pub fn run(
        &self,
        source: StreamSource,
        stop: &AtomicBool,
        screen: &Screen,
    ) -> Result<(StreamSummary, u32), Failure> {
        let mut broken = match self.call(Some(source), stop, screen) {
            Ok(summary) => return Ok((summary, 0)),
            Err(Broken::Silent(error)) => return Err(self.unanswered(&error)),
            Err(broken) => broken,
        };
        let (mut pause, mut lost) = (FIRST_PAUSE, 0);
        loop {
            let reason = match broken {
                Broken::Failed(failure) => return Err(failure),
                Broken::Silent(error) => error.to_string(),
                Broken::Lost(reason) => {
                    (pause, lost) = (FIRST_PAUSE, lost + 1);
                    reason
                }
            };
            if !self.spec.is_live() || !self.sink.takes_further() {
                return Err(super::failure(StreamFailure::Lost(reason), &self.node));
            }
            screen.lost(&self.node, &reason);
            until(stop, Some(pause), core::future::pending::<()>());
            pause = (pause + pause).min(LONGEST_PAUSE);
            broken = match self.call(None, stop, screen) {
                Ok(summary) => return Ok((summary, lost)),
                Err(broken) => broken,
            };
        }
    }

    /// A call, and the stream over it; a source that is not open yet is opened when there is
    /// somewhere to send.
    fn call(
        &self,
        source: Option<StreamSource>,
        stop: &AtomicBool,
        screen: &Screen,
    ) -> Result<StreamSummary, Broken> {
        let clock = Clock::start();
        let exchange = AppClient::start(self.setup.clone()).map_err(|error| {
            Broken::Failed(Failure::from_sentence(Exit::Environment, &error.to_string()))
        })?;
        let link: AppChannel = match until(stop, None, exchange.connect_over(&self.ways, self.peer))
        {
            None => {
                let what = "interrupted before the far node answered";
                return Err(Broken::Failed(Failure::new(
                    Exit::Interrupted,
                    what,
                    "start it again",
                )));
            }
            Some(link) => link.map_err(Broken::Silent)?,
        };
        let source = source.map_or_else(|| self.open(), Ok).map_err(Broken::Failed)?;
        let run = StreamContext { clock, stop, tell: &|look| screen.look(look) };
        send(&link, source, &self.sink.at(clock.utc()), &self.options, &run).map_err(
            |end| match end {
                StreamFailure::Lost(reason) => Broken::Lost(reason),
                end => Broken::Failed(super::failure(end, &self.node)),
            },
        )
    }

    fn unanswered(&self, error: &AppChannelError) -> Failure {
        let what = format!("the far node `{}` does not answer or refuses ({error})", self.node);
        let help = "check that it runs `skyhaul stream serve`, that --node is its address and \
                   --peer its key, and that it knows this \
                    node's key";
        Failure::new(Exit::Peer, &what, help)
    }
}

/// What `future` gives, where it does within `limit` and before `stop` is set.
fn until<F: Future>(stop: &AtomicBool, limit: Option<Duration>, future: F) -> Option<F::Output> {
    let clock = Clock::start();
    let over = limit.map(|limit| clock.now() + limit);
    let (waiter, mut future) = (Waiter::new(clock), pin!(future));
    while !stop.load(Ordering::Relaxed) && over.is_none_or(|over| clock.now() < over) {
        if let Some(output) = waiter.within(LOOK, future.as_mut()) {
            return Some(output);
        }
    }
    None
}

/// Between two looks whether it is to stop.
const LOOK: Duration = Duration::from_millis(50);
/// Before the next call: long enough for a further file to have a name of its own.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
