//! Locks, watches and messages behind a server.
//!
//! Locks and watches belong to the connection: the server releases them when it ends. A wait is asked for in slices, so
//! that a server that has gone silent is noticed, and so that the server learns in time that nobody waits any more.
//!
//! Example: `lock` with a timeout of a minute asks sixty times, each time for a second at most.
//!
//! Invariants
//! - A wait ends at its time, whatever the server does.
//! - An owner of locks is known at the connection of the session that has made it, and refused by others.
//!
//! Deliberately absent: locks that outlive a lost connection.

use std::time::{Duration, Instant};

use perilune_resp::Answer;
use perilune_store::{
    Absent, ChannelOptions, Error, Facets, LockMode, LockOwner, LockRequest, Locks, Message, Messages,
    Result, Transactions, Watch, WatchId, WatchRequest, WatchScope, WhenFull,
};

use crate::bell::Bell;
use crate::link::{unexpected, Effect, Link};
use crate::running::{Telling, Told};
use crate::session::{RemoteSession, Watched};
use crate::wire::SLICE;

/// What is known of locks is known at one connection: an owner of another session would be somebody else there.
const NOT_ITS_OWNER: &str =
    "this owner of locks is another session's: behind a server each session has its own, since its \
                             locks belong to its connection";

/// Between questions to a server that does not wait itself.
const PAUSE: Duration = Duration::from_millis(1);
const PAUSE_MAX: Duration = Duration::from_millis(50);

/// Asks in slices until the answer is something, or the time is over.
fn wait<R>(
    timeout: Option<Duration>,
    mut ask: impl FnMut(Duration) -> Result<Option<R>>,
) -> Result<Option<R>> {
    let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    let mut pause = PAUSE;
    loop {
        let asked = Instant::now();
        let slice = deadline.map_or(SLICE, |deadline| deadline.saturating_duration_since(asked)).min(SLICE);
        if let Some(found) = ask(slice)? {
            return Ok(Some(found));
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            return Ok(None);
        }
        // A server that cannot wait for one client more answers at once: then this end waits.
        if asked.elapsed() < slice / 2 {
            std::thread::sleep(
                deadline.map_or(pause, |end| pause.min(end.saturating_duration_since(Instant::now()))),
            );
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }
}

/// Milliseconds, rounded up: a wait that is not zero stays one.
fn milliseconds(duration: Duration) -> String {
    duration.as_micros().div_ceil(1000).to_string()
}

impl RemoteSession {
    /// Releases locks; those that cannot be go with the connection.
    pub(crate) fn release<'n>(&mut self, locks: impl Iterator<Item = (LockOwner, &'n [u8])>) {
        for (owner, name) in locks {
            let _ = self.ask("UNLOCK", &[owner.0.to_string().as_bytes(), name], Effect::Change);
        }
    }

    fn truth(answer: &Answer, name: &str) -> Result<bool> {
        match answer {
            Answer::Integer(truth) => Ok(*truth == 1),
            _ => Err(unexpected(name)),
        }
    }
}

impl Facets for RemoteSession {
    type Locks = RemoteSession;
    type Watch = RemoteSession;
    type Messages = RemoteSession;
    type Deferral = Absent;
    type Optimistic = Absent;
    type ReadSets = Absent;
    type Bounds = Absent;
    type Granular = RemoteSession;
    type Programs = RemoteSession;

    fn locks(&mut self) -> Option<&mut RemoteSession> {
        Some(self)
    }

    fn watches(&mut self) -> Option<&mut RemoteSession> {
        Some(self)
    }

    fn messages(&mut self) -> Option<&mut RemoteSession> {
        Some(self)
    }

    fn deferral(&mut self) -> Option<&mut Absent> {
        None
    }

    fn optimistic(&mut self) -> Option<&mut Absent> {
        None
    }

    fn read_sets(&mut self) -> Option<&mut Absent> {
        None
    }

    fn bounds(&mut self) -> Option<&mut Absent> {
        None
    }

    fn granular(&mut self) -> Option<&mut RemoteSession> {
        Some(self)
    }

    fn programs(&mut self) -> Option<&mut RemoteSession> {
        Some(self)
    }
}

impl Locks for RemoteSession {
    fn new_lock_owner(&mut self) -> LockOwner {
        self.owners += 1;
        LockOwner(u64::from(self.number) << 32 | u64::from(self.owners))
    }

    fn lock(
        &mut self,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
    ) -> Result<bool> {
        if self.shared.options.read_only {
            return Err(Error::ReadOnly);
        }
        if owner.0 >> 32 != u64::from(self.number) {
            return Err(Error::Invalid(NOT_ITS_OWNER.to_owned()));
        }
        if !self.lockers.contains(&owner) {
            self.lockers.push(owner);
        }
        // Inside a transaction all waits end with it.
        let limit = self.time_left();
        let within = match (timeout, limit) {
            (Some(timeout), Some((left, _))) => Some(timeout.min(left)),
            (timeout, left) => timeout.or(left.map(|(left, _)| left)),
        };
        let number = owner.0.to_string();
        let granted = wait(within, |slice| {
            let milliseconds = milliseconds(slice);
            let mut arguments = vec![number.as_bytes(), milliseconds.as_bytes()];
            for request in requests {
                let mode: &[u8] = if request.mode == LockMode::Exclusive { b"x" } else { b"s" };
                arguments.extend([mode, request.name]);
            }
            let answer = self.call("LOCK", &arguments, Effect::Change, slice)?;
            Ok(RemoteSession::truth(&answer, "LOCK")?.then_some(()))
        })?
        .is_some();
        match (&mut self.running, granted, limit) {
            (Some(running), true, _) => {
                let level = running.overlay.depth();
                running.locks.extend(requests.iter().map(|request| (level, owner, request.name.to_vec())));
            }
            (_, false, Some((_, deadline))) if Instant::now() >= deadline => return Err(self.out_of_time()),
            _ => {}
        }
        Ok(granted)
    }

    fn unlock(&mut self, owner: LockOwner, name: &[u8]) -> Result<bool> {
        let answer = self.ask("UNLOCK", &[owner.0.to_string().as_bytes(), name], Effect::Change)?;
        let released = RemoteSession::truth(&answer, "UNLOCK")?;
        if let (Some(running), true) = (&mut self.running, released) {
            let same = |lock: &(usize, LockOwner, Vec<u8>)| lock.1 == owner && lock.2 == name;
            if let Some(at) = running.locks.iter().rposition(same) {
                running.locks.remove(at);
            }
        }
        Ok(released)
    }

    fn unlock_all(&mut self, owner: LockOwner) -> Result<()> {
        let known = self.lockers.iter().position(|locker| *locker == owner);
        let Some(known) = known.filter(|_| !self.link.is_forked()) else { return Ok(()) };
        self.lockers.swap_remove(known);
        if let Some(running) = &mut self.running {
            running.locks.retain(|lock| lock.1 != owner);
        }
        if !self.link.is_connected() {
            // They went with the connection.
            return Ok(());
        }
        self.ask("UNLOCKALL", &[owner.0.to_string().as_bytes()], Effect::Change).map(drop)
    }

    fn lock_count(&mut self, owner: LockOwner, name: &[u8]) -> Result<u32> {
        if self.shared.options.read_only || !self.lockers.contains(&owner) {
            return Ok(0);
        }
        match self.ask("LOCKCOUNT", &[owner.0.to_string().as_bytes(), name], Effect::None)? {
            Answer::Integer(count) => u32::try_from(count).map_err(|_| unexpected("LOCKCOUNT")),
            _ => Err(unexpected("LOCKCOUNT")),
        }
    }
}

impl Watch for RemoteSession {
    fn watch(&mut self, requests: &[WatchRequest<'_>]) -> Result<WatchId> {
        let mut places = Vec::with_capacity(2 * requests.len());
        for request in requests {
            let scope: &[u8] = if request.scope == WatchScope::Key { b"n" } else { b"t" };
            places.extend([scope.to_vec(), request.key.to_vec()]);
        }
        let arguments: Vec<&[u8]> = places.iter().map(Vec::as_slice).collect();
        match self.ask("WATCH", &arguments, Effect::None)? {
            Answer::Integer(id) => {
                let id = u64::try_from(id).map(WatchId).map_err(|_| unexpected("WATCH"))?;
                // NB: after a lost connection the server counts anew.
                self.watched.retain(|known| known.id != id);
                self.watched.push(Watched { id, places, bell: None });
                Ok(id)
            }
            _ => Err(unexpected("WATCH")),
        }
    }

    fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        if self.depth() > 0 {
            return Err(Error::TransactionState(
                "a wait is not possible inside a transaction: wait before it",
            ));
        }
        let bell = self.watched.iter().find(|known| known.id == id).and_then(|known| known.bell.as_ref());
        // NB: before the server is asked, so that what comes behind its answer rings.
        bell.into_iter().for_each(Bell::silence);
        let number = id.0.to_string();
        let touched = wait(timeout, |slice| {
            let arguments = [number.as_bytes(), &milliseconds(slice).into_bytes()];
            let answer = self.call("WAIT", &arguments, Effect::None, slice)?;
            Ok(RemoteSession::truth(&answer, "WAIT")?.then_some(()))
        })?;
        Ok(touched.is_some())
    }

    fn watch_descriptor(&mut self, id: WatchId) -> Result<i32> {
        let (address, timeout) = (&self.shared.address, self.shared.options.timeout);
        let Some(watched) = self.watched.iter_mut().find(|known| known.id == id) else {
            return Err(Error::Invalid(
                "there is no such watch: it was ended, or is another session's".to_owned(),
            ));
        };
        if let Some(bell) = &watched.bell {
            return Ok(bell.descriptor());
        }
        let bell = Bell::hang(Link::new(address, timeout), &watched.places)?;
        Ok(watched.bell.insert(bell).descriptor())
    }

    fn unwatch(&mut self, id: WatchId) {
        self.watched.retain(|known| known.id != id);
        if self.link.is_connected() && !self.link.is_forked() {
            // What cannot be ended goes with the connection.
            let _ = self.ask("UNWATCH", &[id.0.to_string().as_bytes()], Effect::None);
        }
    }
}

impl Messages for RemoteSession {
    fn create_channel(&mut self, name: &[u8], options: ChannelOptions) -> Result<()> {
        let (messages, bytes) = (options.messages.to_string(), options.bytes.to_string());
        let full: &[u8] = if options.when_full == WhenFull::Refuse { b"refuse" } else { b"drop" };
        self.ask("CHANNEL", &[name, messages.as_bytes(), bytes.as_bytes(), full], Effect::Change).map(drop)
    }

    fn post(&mut self, name: &[u8], body: &[u8]) -> Result<u64> {
        self.check_write(&[], body)?;
        if self.running.is_some() {
            self.tell(name, Telling::Posted(body.to_vec()))?;
            return Ok(0);
        }
        match self.ask("POST", &[name, body], Effect::Change)? {
            Answer::Integer(number) => u64::try_from(number).map_err(|_| unexpected("POST")),
            _ => Err(unexpected("POST")),
        }
    }

    fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> Result<Option<Message>> {
        if self.running.is_some() {
            return self.take(name, timeout);
        }
        wait(timeout, |slice| {
            let answer =
                self.call("RECEIVE", &[name, milliseconds(slice).as_bytes()], Effect::Change, slice)?;
            message_of(answer, "RECEIVE")
        })
    }

    fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> Result<Option<Message>> {
        let after = after.to_string();
        if self.running.is_some() {
            let found =
                message_of(self.ask("FOLLOW", &[name, after.as_bytes(), b"0"], Effect::None)?, "FOLLOW")?;
            return within(found, timeout);
        }
        wait(timeout, |slice| {
            let arguments = [name, after.as_bytes(), &milliseconds(slice).into_bytes()];
            let answer = self.call("FOLLOW", &arguments, Effect::None, slice)?;
            message_of(answer, "FOLLOW")
        })
    }

    fn remove_channel(&mut self, name: &[u8]) -> Result<()> {
        self.ask("UNCHANNEL", &[name], Effect::Change).map(drop)
    }
}

impl RemoteSession {
    /// Takes a message in a transaction: what would be received is looked at, and the commit takes it if it is that.
    fn take(&mut self, name: &[u8], timeout: Option<Duration>) -> Result<Option<Message>> {
        self.check_write(&[], &[])?;
        let taken = |told: &&Told| told.channel == name && matches!(told.what, Telling::Taken(_));
        let skipped = self.growing()?.messages.iter().filter(taken).count().to_string();
        let found = message_of(self.ask("PEEK", &[name, skipped.as_bytes()], Effect::None)?, "PEEK")?;
        let what = found.as_ref().map_or(Telling::Empty, |found| Telling::Taken(found.number.to_string()));
        self.tell(name, what)?;
        within(found, timeout)
    }

    fn tell(&mut self, channel: &[u8], what: Telling) -> Result<()> {
        let running = self.growing()?;
        let level = running.overlay.depth();
        running.messages.push(Told { level, channel: channel.to_vec(), what });
        Ok(())
    }
}

/// What was found in a transaction, in which nobody waits.
fn within(found: Option<Message>, timeout: Option<Duration>) -> Result<Option<Message>> {
    match timeout {
        Some(Duration::ZERO) => Ok(found),
        _ if found.is_some() => Ok(found),
        _ => Err(Error::TransactionState(
            "there is no message, and a transaction waits for none: wait before it",
        )),
    }
}

fn message_of(answer: Answer, name: &str) -> Result<Option<Message>> {
    let Answer::Array(parts) = answer else {
        return if answer == Answer::Null { Ok(None) } else { Err(unexpected(name)) };
    };
    match <[Answer; 3]>::try_from(parts) {
        Ok([Answer::Integer(number), Answer::Integer(missed), Answer::Bulk(body)]) => {
            Ok(Some(Message { number: number as u64, missed: missed as u64, body }))
        }
        _ => Err(unexpected(name)),
    }
}
