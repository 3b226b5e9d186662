//! Searches whose caller looks at a part of what is found, and functions that the server runs.
//!
//! A loop over children finds the first key below each child, and looks only at the child. Over the wire both matter: what
//! was not looked at is no condition of the commit, and a page of such steps comes in one answer. A whole function that can
//! travel is one request.
//!
//! Invariant: what is answered here is what the steps of the core would answer.

use perilune_resp::Answer;
use perilune_store::{
    Durability, Error, Granular, Granularity, Programs, Result, Scan, Session, TransactionOptions,
};

use crate::link::{unexpected, Effect};
use crate::overlay::Seen;
use crate::running::Running;
use crate::search::Search;
use crate::session::{flag, RemoteSession};
use crate::transactions::NO_EXCLUSIVE;

impl Granular for RemoteSession {
    fn find(
        &mut self,
        scan: &Scan<'_>,
        granularity: Granularity,
        key: &mut Vec<u8>,
        value: Option<&mut Vec<u8>>,
    ) -> Result<bool> {
        let search = Search {
            forward: !scan.backwards,
            from: scan.from,
            inclusive: scan.inclusive && !scan.backwards,
            bound: scan.bound,
            with_value: value.is_some(),
            granularity,
        };
        self.search(&search, key, value)
    }

    fn own_value(&mut self, child: &[u8], value: Option<&mut Vec<u8>>) -> Result<bool> {
        let is_seen = |running: &Running| {
            running.overlay.get(child) != Seen::Unknown || running.reads.has(child).is_some()
        };
        let mut unwanted = Vec::new();
        if self.running.as_ref().is_some_and(is_seen) {
            return self.get(child, value.unwrap_or(&mut unwanted));
        }
        let Some(found) = self.ahead.own_value(child, value.is_some()) else {
            return self.get(child, value.unwrap_or(&mut unwanted));
        };
        let is_there = found.is_some();
        if self.running.is_some() {
            let reads = &mut self.growing()?.reads;
            if is_there && value.is_none() {
                reads.existence(child, true);
            } else {
                reads.value(child, found.as_deref());
            }
        }
        if let (Some(value), Some(found)) = (value, found) {
            *value = found;
        }
        Ok(is_there)
    }
}

impl Programs for RemoteSession {
    fn run(&mut self, options: &TransactionOptions, program: &[u8]) -> Result<Vec<u8>> {
        if self.running.is_some() || self.hook.is_some() {
            return Err(Error::Invalid(
                "a function runs at the server as a transaction of its own, and without a commit hook"
                    .to_owned(),
            ));
        }
        options.check()?;
        if options.exclusive {
            return Err(Error::Invalid(NO_EXCLUSIVE.to_owned()));
        }
        if options.never_exclusive {
            return Err(Error::Invalid(
                "a function that runs at the server gets exclusive mode there if it needs it: leave out the option, or run \
                 it here"
                    .to_owned(),
            ));
        }
        let fsync = options.durability.map_or(self.shared.options.fsync, |level| level == Durability::Fsync);
        let read_only = options.read_only || self.shared.options.read_only;
        let milliseconds = options.timeout.as_millis().to_string();
        let arguments = [flag(read_only), flag(fsync), milliseconds.as_bytes(), program];
        match self.call("RUN", &arguments, Effect::Change, options.timeout)? {
            Answer::Bulk(answer) => Ok(answer),
            _ => Err(unexpected("RUN")),
        }
    }
}
