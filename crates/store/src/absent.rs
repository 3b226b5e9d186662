//! What stands for a facet that a back end lacks.
//!
//! A session names a type for each facet, so that calls are static. One that has no watches still has to name one:
//! [`Absent`], which has every facet and no values. So the code that would call it compiles, and can never run.
//!
//! Example: `type Watch = Absent; fn watches(&mut self) -> Option<&mut Absent> { None }`.
//!
//! Invariant: no method here has anything to do.

use std::time::Duration;

use crate::{
    Bounds, Change, ChannelOptions, Deferral, Figure, Granular, Granularity, KeptReads, LockOwner,
    LockReport, LockRequest, Locks, Message, Messages, Optimistic, Probe, ProbedChange, ProcessReport,
    Programs, ReadSets, Reports, Result, Scan, Snapshots, TransactionOptions, Watch, WatchId, WatchRequest,
};

/// Has every facet; there is none of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {}

/// A facet of nothing: no method of it can be called.
macro_rules! never {
    ($facet:ident: $(mut fn $change:ident($($given:ty),*) $(-> $done:ty)?;)* $(ref fn $look:ident($($shown:ty),*) -> $seen:ty;)*) => {
        impl $facet for Absent {
            $(fn $change(&mut self $(, _: $given)*) $(-> $done)? { match *self {} })*
            $(fn $look(&self $(, _: $shown)*) -> $seen { match *self {} })*
        }
    };
}

never! { Locks:
    mut fn new_lock_owner() -> LockOwner;
    mut fn lock(LockOwner, &[LockRequest<'_>], Option<Duration>) -> Result<bool>;
    mut fn unlock(LockOwner, &[u8]) -> Result<bool>;
    mut fn unlock_all(LockOwner) -> Result<()>;
    mut fn lock_count(LockOwner, &[u8]) -> Result<u32>;
}
never! { Watch:
    mut fn watch(&[WatchRequest<'_>]) -> Result<WatchId>;
    mut fn wait(WatchId, Option<Duration>) -> Result<bool>;
    mut fn watch_descriptor(WatchId) -> Result<i32>;
    mut fn unwatch(WatchId);
}
never! { Messages:
    mut fn create_channel(&[u8], ChannelOptions) -> Result<()>;
    mut fn post(&[u8], &[u8]) -> Result<u64>;
    mut fn receive(&[u8], Option<Duration>) -> Result<Option<Message>>;
    mut fn follow(&[u8], u64, Option<Duration>) -> Result<Option<Message>>;
    mut fn remove_channel(&[u8]) -> Result<()>;
}
never! { Deferral:
    mut fn defer(bool);
    mut fn settle() -> Result<()>;
    ref fn is_unsettled() -> bool;
}
never! { Optimistic:
    mut fn begin_attempt() -> Result<bool>;
    mut fn end_attempt(bool) -> Result<bool>;
    mut fn set_unless_parent(&[u8], &[u8], &[u8]) -> Result<bool>;
    mut fn update_unless_parent(&[u8], &mut Change<'_>) -> Result<()>;
    mut fn set_all_unless_parents(&[(&[u8], &[u8])]) -> Result<bool>;
    mut fn change_probed(&[Probe<'_>], &mut ProbedChange<'_>) -> Result<bool>;
    mut fn look_probed(&[Probe<'_>], &mut ProbedChange<'_>) -> Result<bool>;
    ref fn was_disturbed() -> bool;
}
never! { ReadSets:
    mut fn keep_reads() -> Option<KeptReads>;
    mut fn suspend() -> Option<KeptReads>;
    mut fn resume(KeptReads) -> Result<()>;
    mut fn rest_on(&[KeptReads]) -> Result<bool>;
}
never! { Bounds:
    mut fn free_up(bool);
    mut fn limit_reads(usize);
    mut fn shrink(usize);
    mut fn set_wait_limit(Duration);
    mut fn limit_pending(usize);
    ref fn is_beyond(usize) -> bool;
    ref fn wait_limit() -> Duration;
    ref fn pending_bytes() -> usize;
}
never! { Granular:
    mut fn find(&Scan<'_>, Granularity, &mut Vec<u8>, Option<&mut Vec<u8>>) -> Result<bool>;
    mut fn own_value(&[u8], Option<&mut Vec<u8>>) -> Result<bool>;
}
never! { Programs:
    mut fn run(&TransactionOptions, &[u8]) -> Result<Vec<u8>>;
}
never! { Reports:
    ref fn figures() -> Result<Vec<Figure>>;
    ref fn locks() -> Result<Vec<LockReport>>;
    ref fn processes() -> Result<Vec<ProcessReport>>;
}

impl<S> Snapshots<S> for Absent {
    fn snapshot(&self) -> Result<S> {
        match *self {}
    }
}
