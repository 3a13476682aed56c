//! The class tree of a session: its own, or that of a line that it shares with other sessions.

use crate::classes::{ClassId, ClassPicker, ClassTree};
use crate::line_share::{LineMember, LineShareError, LineUse, Withdrawn};
use crate::path::PathId;
use crate::send::SendBacklog;
use skyhaul_units::{ByteCount, Instant};

/// How a session shares the line.
#[derive(Debug)]
pub struct SessionSharing {
    /// The tree; on a shared line only its names, and what this session has sent.
    pub(super) tree: ClassTree,
    pub(super) line: Option<LineMember>,
}

impl SessionSharing {
    pub(super) const fn alone(tree: ClassTree) -> Self {
        Self { tree, line: None }
    }

    /// Says which path of the shared line one of the session's paths is: the declared rate of that
    /// name holds for all sessions on it. Has no effect while the session has the line to itself.
    ///
    /// # Errors
    /// The line has no room for one more path.
    pub fn set_path(&mut self, path: PathId, name: &str) -> Result<(), LineShareError> {
        self.line.as_mut().map_or(Ok(()), |line| line.set_path(path, name))
    }

    /// What the session uses of the line it shares at `now`; `None` while it has one to itself.
    pub fn used(&self, now: Instant) -> Option<LineUse> {
        let rate = self.line.as_ref()?.rate(now);
        let counters = self.tree.leaves().map(|(leaf, _)| self.tree.counters(leaf));
        let none = LineUse { rate, ..LineUse::default() };
        Some(counters.fold(none, |sum, one| LineUse {
            sent: sum.sent + one.sent,
            borrowed: sum.borrowed + one.borrowed,
            ..sum
        }))
    }

    /// Whether other sessions may share its line.
    pub const fn is_shared(&self) -> bool {
        self.line.is_some()
    }

    /// Nothing is to be sent: other sessions of the line do not wait for this one.
    pub fn rest(&mut self) {
        if let Some(line) = &mut self.line {
            line.rest();
        }
    }

    /// Whether other sessions of the line may go on, because this one has less to send than it had
    /// when this was asked last.
    pub fn gives_way(&mut self) -> bool {
        self.line.as_mut().is_some_and(|line| line.take_withdrawn() == Withdrawn::Yes)
    }

    /// A path has sent so many bytes of IP packets so far: a shared line counts all of them.
    pub(crate) fn account(&mut self, now: Instant, path: PathId, sent: ByteCount) {
        if let Some(line) = &mut self.line {
            line.measured(now, path, sent);
        }
    }

    /// Takes over another tree. Blocks of `backlog` go on in the class of the same name, or in the
    /// default one.
    pub(super) fn reclass(&mut self, classes: ClassTree, backlog: &mut SendBacklog) {
        let default = classes.default_leaf();
        let before = core::mem::replace(&mut self.tree, classes);
        let find = |(_, name): (ClassId, &str)| self.tree.find(name).unwrap_or(default);
        let now: Vec<ClassId> = before.leaves().map(find).collect();
        backlog.reclass(|class| now.get(usize::from(class.0)).copied().unwrap_or(default));
    }

    /// Goes over to the shared line's tree, where that was replaced.
    pub(super) fn adopt(&mut self, backlog: &mut SendBacklog) {
        if let Some(tree) = self.line.as_mut().and_then(LineMember::new_tree) {
            self.reclass(tree, backlog);
        }
    }

    /// When a class of `backlog` may go on that the tree holds back.
    pub(super) fn class_due(&self, now: Instant, backlog: &SendBacklog) -> Option<Instant> {
        let has = |class| backlog.has_class(class);
        match &self.line {
            Some(line) => line.class_due(now, has),
            None => self.tree.next_timeout(now, has),
        }
    }

    /// When a path may go on that the declared rate of a shared line holds back at `now`, and on
    /// which the session waits.
    pub fn rate_due(&self, now: Instant) -> Option<Instant> {
        self.line.as_ref().and_then(|line| line.rate_due(now))
    }

    /// Whether FEC repair may go out on a path now.
    pub(super) fn lets_repair(&mut self, now: Instant, path: PathId) -> bool {
        self.line.as_mut().is_none_or(|line| line.lets_repair(now, path))
    }
}

impl ClassPicker for SessionSharing {
    fn pick(
        &mut self,
        now: Instant,
        path: PathId,
        has: impl FnMut(ClassId) -> bool,
    ) -> Option<ClassId> {
        match &mut self.line {
            Some(line) => line.pick(now, path, has),
            None => self.tree.pick(now, has),
        }
    }

    fn charge(&mut self, now: Instant, leaf: ClassId, bytes: ByteCount) {
        match &self.line {
            Some(line) => {
                let funding = line.charge(now, leaf, bytes);
                self.tree.count(leaf, bytes, funding);
            }
            None => self.tree.charge(now, leaf, bytes),
        }
    }
}
