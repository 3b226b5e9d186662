//! Who may do what: users and their rules, as ACL of Redis 7 has them.
//!
//! Users lie in the tree, `^redis("acl",name)` with their rules as value, and are those of all servers of the
//! database. Each server keeps them here, and its clients keep the user they are; a version tells a client
//! that users have changed.
//!
//! Invariants
//! - There is a user `default`. Where the tree has none it may do everything without a password.
//! - Rules that cannot be read make a user who may do nothing.
//!
//! Deliberately absent: the log of refusals in the tree, so that a stranger cannot make a server write; who asks
//! for it asks all servers.

mod categories;
mod log;
mod selector;
mod user;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use perilune::{node, Session, Subscript, TransactionOptions};

pub(crate) use self::categories::CATEGORIES;
pub(crate) use self::log::{reply as reply_log, Entry, Log};
pub(crate) use self::selector::{Denied, Selector};
pub(crate) use self::user::User;

/// Bytes of a user's name at most.
pub(crate) const NAME_BYTES: usize = 256;

/// What this server knows of users.
#[derive(Debug)]
pub(crate) struct Acl {
    /// Grows with each change, from 1.
    version: AtomicU64,
    /// Changes that this server has made itself.
    changes: AtomicU64,
    users: RwLock<BTreeMap<String, Arc<User>>>,
    pub(crate) log: Log,
}

/// A change of users; none removes one.
pub(crate) type Change = (String, Option<User>);

impl Acl {
    pub(crate) fn new() -> Acl {
        let standard = Arc::new(User::standard());
        Acl {
            version: AtomicU64::new(1),
            changes: AtomicU64::new(0),
            users: RwLock::new(BTreeMap::from([(standard.name.clone(), standard)])),
            log: Log::default(),
        }
    }

    /// Without any user, for files that say it all.
    pub(crate) fn empty() -> Acl {
        Acl { users: RwLock::default(), ..Acl::new() }
    }

    #[inline]
    pub(crate) fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    pub(crate) fn user(&self, name: &str) -> Option<Arc<User>> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).get(name).cloned()
    }

    /// All users, by name.
    pub(crate) fn users(&self) -> Vec<Arc<User>> {
        self.users.read().unwrap_or_else(PoisonError::into_inner).values().cloned().collect()
    }

    /// Whether anybody may enter: the user `default` has no password.
    pub(crate) fn is_open(&self) -> bool {
        self.user("default").is_some_and(|user| user.is_on && user.passwords.are_needless())
    }

    /// The user with this name and this password.
    pub(crate) fn admit(&self, name: &[u8], password: &[u8]) -> Option<Arc<User>> {
        let user = std::str::from_utf8(name).ok().and_then(|name| self.user(name));
        match user {
            Some(user) => user.admits(password).then_some(user),
            None => {
                // A name that is not there takes as long as one that is.
                User::new("").admits(password);
                None
            }
        }
    }

    /// Takes what the tree says.
    pub(crate) fn load(&self, session: &mut Session) -> perilune::Result<()> {
        loop {
            let before = self.changes.load(Ordering::Acquire);
            let users = told(session)?;
            let mut known = self.users.write().unwrap_or_else(PoisonError::into_inner);
            // NB: what was read before a change of this server is not taken after it.
            if self.changes.load(Ordering::Acquire) != before {
                continue;
            }
            if *known != users {
                *known = users;
                self.version.fetch_add(1, Ordering::AcqRel);
            }
            return Ok(());
        }
    }

    /// Writes changes, for all servers, and takes them; with `all` there are no other users.
    pub(crate) fn change(
        &self,
        session: &mut Session,
        changes: &[Change],
        all: bool,
    ) -> perilune::Result<()> {
        session.transaction(|session| {
            if all {
                session.delete_tree(&node!("^redis", "acl")?)?;
            }
            for (name, user) in changes {
                let place = node!("^redis", "acl", &**name)?;
                match user {
                    Some(user) => session.set(&place, &*user.rules())?,
                    None => session.delete_tree(&place)?,
                }
            }
            Ok(())
        })?;
        self.changes.fetch_add(1, Ordering::AcqRel);
        self.load(session)
    }
}

/// The users that the tree has.
fn told(session: &mut Session) -> perilune::Result<BTreeMap<String, Arc<User>>> {
    let place = node!("^redis", "acl")?;
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    let nodes = session.transaction_with(&options, |session| session.get_tree(&place))?;
    let mut users = BTreeMap::new();
    for (node, value) in nodes {
        let name = match node.last()? {
            Some(Subscript::Bytes(name)) => String::from_utf8_lossy(&name).into_owned(),
            Some(Subscript::Number(number)) => number.to_string(),
            None => continue,
        };
        let mut text = Vec::new();
        value.as_ref().write_text(&mut text);
        let user = User::parse(&name, &String::from_utf8_lossy(&text));
        users.insert(name.clone(), Arc::new(user.unwrap_or_else(|_| User::new(&name))));
    }
    users.entry("default".to_owned()).or_insert_with(|| Arc::new(User::standard()));
    Ok(users)
}
