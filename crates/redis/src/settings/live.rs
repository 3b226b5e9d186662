//! The settings that all servers of a database share: `^redis("config",name)` in the tree, and here what this
//! server knows of them. A thread waits for changes (`follower`); the server that changes one knows it at once.
//!
//! Invariants
//! - What is here was valid when it came: a program that writes nonsense into the tree changes nothing.
//! - A password is told to nobody else: in the tree it is the user's, hashed, and `requirepass` only what this
//!   server was told.
//! - Numbers are read without a lock, since commands ask for some each time.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use perilune::{node, Session, Subscript, TransactionOptions};
use perilune_net::settings::{Scope, Values};

use super::kind::output_limits;
use super::table::{find, Name, Setting, SETTINGS, TABLE};

/// What this server knows of the shared settings.
#[derive(Debug)]
pub(crate) struct Live {
    values: Values<Name>,
    /// client-output-buffer-limit, by class: hard, soft, seconds.
    outputs: [[AtomicI64; 3]; 3],
    /// Changes by this server until now: what was read of the tree before one of them is not taken after it.
    changes: Mutex<u64>,
}

impl Live {
    pub(crate) fn new() -> Live {
        let live = Live { values: Values::new(&TABLE), outputs: Default::default(), changes: Mutex::new(0) };
        live.bound_outputs(Name::ClientOutputBufferLimit.row().default);
        live
    }

    /// A setting that is a number, a choice (its place), or yes (1).
    #[inline]
    pub(crate) fn number(&self, name: Name) -> i64 {
        self.values.number(name)
    }

    /// Whether a setting is yes.
    pub(crate) fn is_on(&self, name: Name) -> bool {
        self.values.is_on(name)
    }

    /// Whether new users begin with all channels.
    pub(crate) fn gives_channels(&self) -> bool {
        self.number(Name::AclPubsubDefault) == 1
    }

    /// A setting as CONFIG GET tells it.
    pub(crate) fn text(&self, name: Name) -> String {
        self.values.text(name)
    }

    /// Replies that a client of `class` (0 normal, 2 pub/sub) may leave unread: hard limit, soft limit, seconds
    /// at the soft one; 0 is none.
    pub(crate) fn output_limit(&self, class: usize) -> [i64; 3] {
        [0, 1, 2].map(|part| self.outputs[class][part].load(Ordering::Relaxed))
    }

    /// Bytes that all clients may take together; 0: any.
    #[inline]
    pub(crate) fn clients_bytes(&self) -> u64 {
        match self.number(Name::MaxMemoryClients) {
            // NB: below 0 it is percent of `maxmemory`, of which 0 is no limit.
            part @ ..0 => {
                (self.number(Name::MaxMemory).max(0) as u64 / 100).saturating_mul(part.unsigned_abs())
            }
            bytes => bytes as u64,
        }
    }

    /// The hard one of these, as replies are bounded by it.
    #[inline]
    pub(crate) fn hard_limit(&self, class: usize) -> usize {
        match self.outputs[class][0].load(Ordering::Relaxed) {
            0 => usize::MAX,
            bytes => usize::try_from(bytes).unwrap_or(usize::MAX),
        }
    }

    /// Takes `text` for `name`, in this server.
    pub(crate) fn store(&self, name: Name, text: &str) -> Result<(), String> {
        let parsed = self.values.store(name, text)?;
        if name == Name::ClientOutputBufferLimit {
            self.bound_outputs(&parsed.text);
        }
        Ok(())
    }

    /// Takes over `client-output-buffer-limit`, which was valid.
    fn bound_outputs(&self, text: &str) {
        for (class, limits) in output_limits(text).unwrap_or_default().into_iter().enumerate() {
            for (part, limit) in limits.into_iter().enumerate() {
                self.outputs[class][part].store(limit, Ordering::Relaxed);
            }
        }
    }

    /// Takes what the tree says; what it does not say is as by default.
    pub(crate) fn load(&self, session: &mut Session) -> perilune::Result<()> {
        loop {
            let before = *self.changes();
            let said = said(session)?;
            let changes = self.changes();
            if *changes != before {
                continue;
            }
            let kept = |setting: &&Setting| setting.scope == Scope::Shared && setting.id != Name::RequirePass;
            for setting in SETTINGS.iter().filter(kept) {
                // What is not valid stays as it is.
                let _ =
                    self.store(setting.id, said[setting.id as usize].as_deref().unwrap_or(setting.default));
            }
            return Ok(());
        }
    }

    fn changes(&self) -> MutexGuard<'_, u64> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets what all servers share, in one transaction, and here. The values are valid.
    pub(crate) fn change(&self, session: &mut Session, values: &[(Name, String)]) -> perilune::Result<()> {
        session.transaction(|session| {
            for (name, text) in values.iter().filter(|(name, _)| *name != Name::RequirePass) {
                session.set(&node!("^redis", "config", name.row().name)?, &**text)?;
            }
            Ok(())
        })?;
        let mut changes = self.changes();
        *changes += 1;
        for (name, text) in values {
            let _ = self.store(*name, text);
        }
        Ok(())
    }
}

/// What the tree says of each setting.
fn said(session: &mut Session) -> perilune::Result<Vec<Option<String>>> {
    let place = node!("^redis", "config")?;
    let options = TransactionOptions { read_only: true, ..TransactionOptions::default() };
    let nodes = session.transaction_with(&options, |session| session.get_tree(&place))?;
    let mut said = vec![None; SETTINGS.len()];
    for (node, value) in nodes {
        let mut text = Vec::new();
        value.as_ref().write_text(&mut text);
        let name = match node.last()? {
            Some(Subscript::Bytes(name)) => String::from_utf8_lossy(&name).into_owned(),
            _ => continue,
        };
        let setting = find(&name).filter(|row| row.scope == Scope::Shared);
        if let (Some(setting), Ok(text)) = (setting, String::from_utf8(text)) {
            said[setting.id as usize] = Some(text);
        }
    }
    Ok(said)
}
