//! What a loop has yet to do for its clients, besides what they ask now.

use std::collections::VecDeque;
use std::ops::Range;

use crate::client::Client;
use crate::leftovers::Pending;

/// Work that waits, by the tokens of connections.
#[derive(Debug, Default)]
pub(crate) struct Chores {
    /// Connections that wait for a command to be run aside.
    pub(crate) asides: VecDeque<usize>,
    /// Connections that are parked while their command is done in slices.
    pub(crate) parked: VecDeque<usize>,
    /// What those have left behind who have gone.
    pub(crate) gone: VecDeque<(usize, Pending)>,
    /// Numbers for clients that come.
    pub(crate) numbers: Range<i64>,
    /// The version of users that its connections have been compared with.
    pub(crate) rules: u64,
}

impl Chores {
    /// Whether there is nothing to do in the next round.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.asides.is_empty() && self.parked.is_empty() && self.gone.is_empty()
    }

    /// Notes what a client's command has left to be done.
    #[inline]
    pub(crate) fn note(&mut self, token: usize, client: &mut Client) {
        if client.aside.is_some() {
            self.asides.push_back(token);
        }
        if let Some(rest) = client.rest.as_mut().filter(|rest| !rest.is_known) {
            rest.is_known = true;
            self.parked.push_back(token);
        }
    }
}
