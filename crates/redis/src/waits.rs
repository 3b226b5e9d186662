//! The keys that clients of one event loop wait for, watched so that a program that writes their nodes wakes
//! the loop. Commands of this server serve who waits themselves, and need no watch.
//!
//! Invariant: a key is watched as long as a client of the loop waits for it, once however many do.

use std::collections::HashMap;
use std::time::Duration;

use mio::unix::SourceFd;
use mio::{Interest, Registry, Token};
use perilune::{Session, WatchId, WatchScope};

use crate::keyspace::key_node;

/// The tokens of watches begin here.
pub(crate) const FIRST: usize = usize::MAX / 2;

type Name = (i64, Vec<u8>);

#[derive(Debug)]
struct Wait {
    watch: WatchId,
    descriptor: i32,
    token: usize,
    clients: usize,
}

/// Watched keys of a loop.
#[derive(Debug)]
pub(crate) struct Waits {
    registry: Registry,
    keys: HashMap<Name, Wait>,
    tokens: HashMap<usize, Name>,
    next: usize,
}

impl Waits {
    pub(crate) fn new(registry: Registry) -> Waits {
        Waits { registry, keys: HashMap::new(), tokens: HashMap::new(), next: FIRST }
    }

    /// One more client waits for a key.
    ///
    /// # Errors
    /// There are no more watches or descriptors.
    pub(crate) fn add(&mut self, session: &mut Session, database: i64, key: &[u8]) -> perilune::Result<()> {
        let name = (database, key.to_vec());
        if let Some(wait) = self.keys.get_mut(&name) {
            wait.clients += 1;
            return Ok(());
        }
        let node = key_node(database, key)?;
        let watch = session.watch([(&node, WatchScope::Subtree)])?;
        let token = self.next;
        let registered = session.watch_descriptor(watch).and_then(|descriptor| {
            let mut source = SourceFd(&descriptor);
            let registered = self.registry.register(&mut source, Token(token), Interest::READABLE);
            registered.map_err(perilune::Error::other)?;
            Ok(descriptor)
        });
        let descriptor = registered.inspect_err(|_| session.unwatch(watch))?;
        self.next += 1;
        self.tokens.insert(token, name.clone());
        self.keys.insert(name, Wait { watch, descriptor, token, clients: 1 });
        Ok(())
    }

    /// One client less waits for a key.
    pub(crate) fn remove(&mut self, session: &mut Session, database: i64, key: &[u8]) {
        let name = (database, key.to_vec());
        let Some(wait) = self.keys.get_mut(&name) else { return };
        wait.clients -= 1;
        if wait.clients == 0 {
            // The kernel forgets it in any case when it is closed.
            let _ = self.registry.deregister(&mut SourceFd(&wait.descriptor));
            session.unwatch(wait.watch);
            self.tokens.remove(&wait.token);
            self.keys.remove(&name);
        }
    }

    /// The key whose watch has rung, if it has been touched.
    pub(crate) fn rung(&self, session: &mut Session, token: usize) -> Option<Name> {
        let name = self.tokens.get(&token)?;
        let wait = self.keys.get(name)?;
        let touched = session.wait(wait.watch, Some(Duration::ZERO)).unwrap_or(true);
        touched.then(|| name.clone())
    }
}
