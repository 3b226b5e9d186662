//! Locks, watches and messages behind a server.
//!
//! Locks and watches belong to the connection: the server releases them when it ends. A wait is asked for in
//! slices, so that a server that has gone silent is noticed, and so that the server learns in time that nobody
//! waits any more.

use std::time::{Duration, Instant};

use perilune_resp::Answer;
use perilune_store::{
    Absent, ChannelOptions, Error, Facets, LockMode, LockOwner, LockRequest, Locks, Message, Messages,
    Result, Transactions, Watch, WatchId, WatchRequest, WatchScope, WhenFull,
};

use super::link::{unexpected, Effect};
use super::session::RemoteSession;
use super::SLICE;

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
    fn no_transaction(&self) -> Result<()> {
        match self.depth() {
            0 => Ok(()),
            _ => Err(Error::TransactionState(
                "waiting and receiving are not possible inside a transaction over the wire: do it before",
            )),
        }
    }

    /// Releases locks; those that cannot be go with the connection.
    pub(super) fn release<'n>(&mut self, locks: impl Iterator<Item = (LockOwner, &'n [u8])>) {
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
}

impl Locks for RemoteSession {
    fn new_lock_owner(&mut self) -> LockOwner {
        self.owners += 1;
        LockOwner(self.owners)
    }

    fn lock(
        &mut self,
        owner: LockOwner,
        requests: &[LockRequest<'_>],
        timeout: Option<Duration>,
    ) -> Result<bool> {
        if self.shared.read_only {
            return Err(Error::ReadOnly);
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
        if self.shared.read_only || !self.lockers.contains(&owner) {
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
        let mut arguments: Vec<&[u8]> = Vec::with_capacity(2 * requests.len());
        for request in requests {
            arguments.extend([if request.scope == WatchScope::Key { &b"n"[..] } else { b"t" }, request.key]);
        }
        match self.ask("WATCH", &arguments, Effect::None)? {
            Answer::Integer(id) => u64::try_from(id).map(WatchId).map_err(|_| unexpected("WATCH")),
            _ => Err(unexpected("WATCH")),
        }
    }

    fn wait(&mut self, id: WatchId, timeout: Option<Duration>) -> Result<bool> {
        self.no_transaction()?;
        let number = id.0.to_string();
        let touched = wait(timeout, |slice| {
            let arguments = [number.as_bytes(), &milliseconds(slice).into_bytes()];
            let answer = self.call("WAIT", &arguments, Effect::None, slice)?;
            Ok(RemoteSession::truth(&answer, "WAIT")?.then_some(()))
        })?;
        Ok(touched.is_some())
    }

    fn watch_descriptor(&mut self, _: WatchId) -> Result<i32> {
        Err(Error::Invalid(
            "a watch over the wire has no file descriptor: use wait, in a thread of its own if need be"
                .to_owned(),
        ))
    }

    fn unwatch(&mut self, id: WatchId) {
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
        if let Some(running) = &mut self.running {
            let level = running.overlay.depth();
            running.posts.push((level, name.to_vec(), body.to_vec()));
            return Ok(0);
        }
        match self.ask("POST", &[name, body], Effect::Change)? {
            Answer::Integer(number) => u64::try_from(number).map_err(|_| unexpected("POST")),
            _ => Err(unexpected("POST")),
        }
    }

    fn receive(&mut self, name: &[u8], timeout: Option<Duration>) -> Result<Option<Message>> {
        self.no_transaction()?;
        wait(timeout, |slice| {
            let answer =
                self.call("RECEIVE", &[name, milliseconds(slice).as_bytes()], Effect::Change, slice)?;
            message_of(answer, "RECEIVE")
        })
    }

    fn follow(&mut self, name: &[u8], after: u64, timeout: Option<Duration>) -> Result<Option<Message>> {
        self.no_transaction()?;
        let after = after.to_string();
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
