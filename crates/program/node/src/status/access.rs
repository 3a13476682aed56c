//! Who of this host may use the status socket.

use super::StatusRequest;
use crate::fault::Fault;
use crate::host_users::HostUsers;
use skyhaul_config::{StatusEntry, UserName};

/// Users of this host, by number. The node's own user and root may do everything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SocketAccess {
    operators: Vec<u32>,
    readers: Vec<u32>,
}

/// What a user may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SocketRole {
    /// Ask.
    Reader,
    /// Give orders.
    Operator,
}

impl SocketAccess {
    /// As configured.
    ///
    /// # Errors
    /// A name is no user's of this host.
    pub fn of(entry: &StatusEntry) -> Result<Self, Fault> {
        let users = HostUsers::read();
        let uid = |user: &UserName| match user {
            UserName::Number(number) => Ok(*number),
            UserName::Named(name) => users.uid(name).ok_or_else(|| {
                let help = "correct the name, add the user, or write its number";
                let what = format!("there is no user `{name}` on this host");
                Fault::configuration(what, "[status]", help)
            }),
        };
        let all = |users: &[UserName]| users.iter().map(uid).collect::<Result<_, _>>();
        Ok(Self { operators: all(entry.operators())?, readers: all(entry.readers())? })
    }

    /// Whether this is root, or the user that runs the node.
    fn is_own(uid: u32) -> bool {
        uid == 0 || uid == rustix::process::geteuid().as_raw()
    }

    /// What a user may do.
    pub fn role(&self, uid: u32) -> Option<SocketRole> {
        if Self::is_own(uid) || self.operators.contains(&uid) {
            return Some(SocketRole::Operator);
        }
        self.readers.contains(&uid).then_some(SocketRole::Reader)
    }

    /// Whether somebody beside the node's own user and root may come. Else the kernel refuses
    /// them.
    pub fn is_for_others(&self) -> bool {
        !self.operators.is_empty() || !self.readers.is_empty()
    }

    /// Refuses who may not do what is asked.
    pub(super) fn check(&self, uid: u32, request: &StatusRequest) -> Result<(), Fault> {
        let user = || HostUsers::read().shown(uid);
        let place = "the status socket";
        let help = "add the user to `operators` of [status], or run the command as the user that \
                    runs the node";
        match self.role(uid) {
            // A program runs with the rights of the node.
            Some(SocketRole::Operator)
                if matches!(request, StatusRequest::Upgrade { binary: Some(_), .. })
                    && !Self::is_own(uid) =>
            {
                let what = format!("{} may not choose the program that a node runs", user());
                let help = "leave out --binary, or run the command as the user that runs the node";
                Err(Fault::configuration(what, place, help))
            }
            Some(SocketRole::Operator) => Ok(()),
            Some(SocketRole::Reader) if !request.is_order() => Ok(()),
            Some(SocketRole::Reader) => {
                let what = format!("{} may ask this node, and give it no orders", user());
                Err(Fault::configuration(what, place, help))
            }
            None => {
                let what = format!("{} may not ask this node", user());
                Err(Fault::configuration(what, place, help))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_ask_operators_order_and_others_do_neither() {
        let access = SocketAccess { operators: vec![4_000_001], readers: vec![4_000_002] };
        let order = StatusRequest::RemovePath { name: "x".to_owned() };
        let check = |uid: u32, request: &StatusRequest| {
            access.check(uid, request).err().map(|fault| fault.what)
        };
        let own = rustix::process::geteuid().as_raw();
        for uid in [0, own, 4_000_001] {
            assert_eq!((check(uid, &StatusRequest::Status), check(uid, &order)), (None, None));
        }
        assert_eq!(check(4_000_002, &StatusRequest::Status), None);
        let said = "uid 4000002 may ask this node, and give it no orders";
        assert_eq!(check(4_000_002, &order).as_deref(), Some(said));
        let said = "uid 4000003 may not ask this node";
        assert_eq!(check(4_000_003, &StatusRequest::Status).as_deref(), Some(said));
        let upgrade = |binary| StatusRequest::Upgrade { binary, patience_s: 1 };
        assert_eq!(check(4_000_001, &upgrade(None)), None);
        let said = "uid 4000001 may not choose the program that a node runs";
        assert_eq!(check(4_000_001, &upgrade(Some("/x".into()))).as_deref(), Some(said));
        assert_eq!(check(own, &upgrade(Some("/x".into()))), None);
        assert!(access.is_for_others() && !SocketAccess::default().is_for_others());
    }
}
