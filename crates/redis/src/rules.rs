//! What the operator of a server has set: how it was started, the settings and the users that all servers of its database
//! share, and what follows from them.
//!
//! Invariant: what was given at the start stays as it is; what is shared may change at any time, so that whoever looks twice
//! may see two things.
//!
//! Deliberately absent: how a change reaches the other servers (`follower`), and what a setting means.

use std::net::IpAddr;
use std::time::Duration;

use crate::acl::Acl;
use crate::password::Password;
use crate::settings::{Live, Name, Settings};
use perilune_net::passwords::hashed;

/// Settings and users.
#[derive(Debug)]
pub(crate) struct Rules {
    settings: Settings,
    databases: i64,
    bulk_bytes: usize,
    live: Live,
    acl: Acl,
    wait_limit: Duration,
}

impl Rules {
    /// `wait_limit`: how long a command may wait for a page that another process holds.
    pub(crate) fn new(settings: Settings, live: Live, acl: Acl, wait_limit: Duration) -> Rules {
        Rules {
            databases: settings.number(Name::Databases).max(1),
            bulk_bytes: usize::try_from(settings.number(Name::ProtoMaxBulkLen)).unwrap_or(usize::MAX),
            settings,
            live,
            acl,
            wait_limit,
        }
    }

    /// How the server was started.
    pub(crate) fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Databases to SELECT.
    #[inline]
    pub(crate) fn databases(&self) -> i64 {
        self.databases
    }

    /// Bytes of an argument at most.
    pub(crate) fn bulk_bytes(&self) -> usize {
        self.bulk_bytes
    }

    /// The settings that all servers of the database share.
    #[inline]
    pub(crate) fn live(&self) -> &Live {
        &self.live
    }

    /// The users that they share.
    #[inline]
    pub(crate) fn acl(&self) -> &Acl {
        &self.acl
    }

    /// How long a command may wait for a page that another process holds.
    #[inline]
    pub(crate) fn wait_limit(&self) -> Duration {
        self.wait_limit
    }

    /// Whether anybody may enter: the user `default` has no password.
    pub(crate) fn is_open(&self) -> bool {
        self.acl.is_open()
    }

    /// Whether the user `default` needs a password, and who has said so.
    pub(crate) fn password(&self) -> Password {
        let Some(user) = self.acl.user("default").filter(|user| user.is_on) else { return Password::Off };
        if user.passwords.are_needless() {
            let is_far = self.settings.bind.iter().any(|place| !is_local(place))
                && !self.live.is_on(Name::ProtectedMode);
            return if is_far { Password::NoneAnywhere } else { Password::NoneHere };
        }
        match self.password_text() {
            Some(_) => Password::Given,
            None => Password::Kept,
        }
    }

    /// `requirepass`, if it is what holds: this server may not have been told what another one, or a rule, has set.
    pub(crate) fn password_text(&self) -> Option<String> {
        let user = self.acl.user("default")?;
        if user.passwords.are_needless() {
            return Some(String::new());
        }
        let text = self.live.text(Name::RequirePass);
        (user.passwords.hashes() == [hashed(text.as_bytes())]).then_some(text)
    }
}

/// Whether an address of `bind` is reached from this machine alone.
fn is_local(place: &str) -> bool {
    place.trim_start_matches('-').parse().is_ok_and(|address: IpAddr| address.is_loopback())
}
