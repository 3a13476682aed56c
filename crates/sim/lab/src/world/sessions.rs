//! Two sessions over paths of either kind, for experiments that are run over both.

use super::quic::{QuicLine, QuicWorld};
use super::{RunFault, Tap, User, Users, World, WorldConfig, WorldPath};
use skyhaul_congestion::ControllerConfig;
use skyhaul_transport::Session;
use skyhaul_units::{Duration, Instant};

/// What the paths are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Over {
    /// Plain ones, which know their rate.
    #[default]
    Plain,
    /// QUIC connections over links, with this controller; left out, each is told its line's rate.
    Quic(Option<ControllerConfig>),
}

/// Two sessions that are open, and what uses them.
pub struct Sessions<N, F>(Kind<N, F>);

enum Kind<N, F> {
    Plain(Box<World<N, F>>),
    Quic(Box<QuicWorld<N, F>>),
}

impl<N: User, F: User> Sessions<N, F> {
    /// Sessions that have opened over all paths. `seed` decides what is lost.
    ///
    /// # Errors
    /// They did not open.
    pub fn open(
        over: Over,
        config: WorldConfig,
        paths: &[WorldPath],
        seed: u64,
        users: Users<N, F>,
    ) -> Result<Self, RunFault> {
        let Over::Quic(controller) = over else {
            let mut world = World::new(config, paths, seed, users.near, users.far);
            let is_open = world.open();
            return match is_open {
                true => Ok(Self(Kind::Plain(Box::new(world)))),
                false => Err(RunFault::new("the sessions did not open")),
            };
        };
        let lines: Vec<QuicLine> =
            paths.iter().map(|path| QuicLine::of(path, controller)).collect::<Result<_, _>>()?;
        let mut world = QuicWorld::new(config, &lines, seed, users)?;
        world.open(longest_rtt(paths))?;
        Ok(Self(Kind::Quic(Box::new(world))))
    }

    /// Shows `tap` every datagram of the near side from now on, over plain paths; those of QUIC are
    /// sealed.
    pub fn set_tap(&mut self, tap: Tap) {
        if let Kind::Plain(world) = &mut self.0 {
            world.set_tap(tap);
        }
    }

    /// The virtual time.
    pub const fn now(&self) -> Instant {
        match &self.0 {
            Kind::Plain(world) => world.now(),
            Kind::Quic(world) => world.now(),
        }
    }

    /// Runs until an instant.
    ///
    /// # Errors
    /// A session found a fault.
    pub fn run_until(&mut self, limit: Instant) -> Result<(), RunFault> {
        self.run_until_done(limit, |_| false).map(|_| ())
    }

    /// Runs until an instant, or until the far side's user is `done`; whether it was.
    ///
    /// # Errors
    /// A session found a fault.
    pub fn run_until_done(
        &mut self,
        limit: Instant,
        mut done: impl FnMut(&F) -> bool,
    ) -> Result<bool, RunFault> {
        match &mut self.0 {
            Kind::Plain(world) => Ok(world.run_until(limit, |world| done(&world.far.user))),
            Kind::Quic(world) => world.run_until(limit, done),
        }
    }

    /// The session of the near side, 0, or the far one, 1.
    ///
    /// # Errors
    /// It has ended.
    pub fn session(&self, side: usize) -> Result<&Session, RunFault> {
        let session = match &self.0 {
            Kind::Plain(world) if side == 0 => Some(&world.near.session),
            Kind::Plain(world) => Some(&world.far.session),
            Kind::Quic(world) => world.session(side),
        };
        session.ok_or_else(|| RunFault::new("the session has ended"))
    }

    /// What uses the far side's session.
    ///
    /// # Errors
    /// It has ended.
    pub fn far_user(&self) -> Result<&F, RunFault> {
        match &self.0 {
            Kind::Plain(world) => Ok(&world.far.user),
            Kind::Quic(world) => {
                world.far_user().ok_or_else(|| RunFault::new("the far side has ended"))
            }
        }
    }

    /// What used them.
    ///
    /// # Errors
    /// A side has ended.
    pub fn into_users(self) -> Result<(N, F), RunFault> {
        match self.0 {
            Kind::Plain(world) => Ok((world.near.user, world.far.user)),
            Kind::Quic(world) => {
                world.into_users().ok_or_else(|| RunFault::new("a side has ended"))
            }
        }
    }
}

/// The longest round trip of several paths.
pub(super) fn longest_rtt(paths: &[WorldPath]) -> Duration {
    let rtts = paths.iter().map(|path| path.lines[0].one_way_delay + path.lines[1].one_way_delay);
    rtts.max().unwrap_or(Duration::ZERO)
}
