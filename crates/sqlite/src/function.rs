//! Functions of ours in SQL: scalar ones as closures, aggregates as a state and two steps.
//!
//! Invariants
//! - A function's closure lives until the connection closes or another one takes its name.
//! - An aggregate's state lives in a box that its final step takes, also when the statement is given up.

use std::ffi::{c_int, c_void};
use std::marker::PhantomData;

use libsqlite3_sys as ffi;

use crate::error::Failure;
use crate::inner::Inner;
use crate::value::{Arguments, Output};

/// What the planner may take for granted of a function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FunctionKind {
    /// Equal arguments always give equal answers.
    pub deterministic: bool,
    /// Only statements of users call it, not views or what else a schema holds.
    pub direct_only: bool,
}

impl FunctionKind {
    pub(crate) fn flags(self) -> c_int {
        let deterministic = if self.deterministic { ffi::SQLITE_DETERMINISTIC } else { 0 };
        let direct_only = if self.direct_only { ffi::SQLITE_DIRECTONLY } else { ffi::SQLITE_INNOCUOUS };
        ffi::SQLITE_UTF8 | deterministic | direct_only
    }
}

/// An aggregate function.
pub trait Aggregate<H>: 'static {
    /// What it keeps between rows of a group.
    type State: Default + 'static;

    /// Takes a row in.
    ///
    /// # Errors
    /// What the statement then answers.
    fn step(&self, host: &mut H, state: &mut Self::State, arguments: Arguments<'_>) -> Result<(), Failure>;

    /// Answers for a group; without a host nobody wants the answer, since the statement is given up.
    ///
    /// # Errors
    /// What the statement then answers.
    fn finish(
        &self,
        host: Option<&mut H>,
        state: Self::State,
        output: &mut Output<'_>,
    ) -> Result<(), Failure>;
}

/// An aggregate that also answers for windows, `OVER (...)`, whose frames lose rows in the order in which they got them.
pub trait Window<H>: Aggregate<H> {
    /// Takes the row out that was taken in first.
    ///
    /// # Errors
    /// What the statement then answers.
    fn inverse(&self, host: &mut H, state: &mut Self::State, arguments: Arguments<'_>)
        -> Result<(), Failure>;

    /// Answers for the rows that it has now.
    ///
    /// # Errors
    /// What the statement then answers.
    fn value(&self, host: &mut H, state: &mut Self::State, output: &mut Output<'_>) -> Result<(), Failure>;
}

/// What a scalar function is.
pub(crate) type Scalar<H> = dyn Fn(&mut H, Arguments<'_>, &mut Output<'_>) -> Result<(), Failure>;

/// What C gives back to the callbacks of a function.
pub(crate) struct Given<H, F> {
    pub(crate) inner: *const Inner<H>,
    pub(crate) function: F,
}

/// The functions that C calls, for one kind of function.
pub(crate) struct Edge<H, F>(PhantomData<(H, F)>);

impl<H, F> Edge<H, F> {
    /// Drops what a function was given.
    ///
    /// # Safety
    /// C calls it with the pointer that the function was registered with, once.
    pub(crate) unsafe extern "C" fn release(given: *mut c_void) {
        // SAFETY: the pointer was made by `Box::into_raw` of this type, and nobody uses it any more.
        drop(unsafe { Box::from_raw(given.cast::<Given<H, F>>()) });
    }
}

/// Calls a scalar function.
///
/// # Safety
/// C calls it, for a function that was registered with a `Given<H, Box<Scalar<H>>>`.
pub(crate) unsafe extern "C" fn call<H>(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: the caller's; context and values are valid while the callback runs.
    unsafe {
        let given = &*ffi::sqlite3_user_data(context).cast::<Given<H, Box<Scalar<H>>>>();
        let mut output = Output::new(context);
        let arguments = Arguments::new(count, values);
        let result = (*given.inner).hosted(|host| (given.function)(host, arguments, &mut output));
        if let Err(failure) = result {
            output.fail(&failure);
        }
    }
}

/// Where SQLite keeps the pointer to a group's state.
///
/// # Safety
/// `context` is one of an aggregate whose state is an `S`.
unsafe fn place<S>(context: *mut ffi::sqlite3_context, make: bool) -> *mut *mut S {
    let bytes = if make { size_of::<*mut S>() as c_int } else { 0 };
    // SAFETY: the caller's; the memory comes zeroed, aligned for a pointer, and null if none was made.
    unsafe { ffi::sqlite3_aggregate_context(context, bytes).cast() }
}

/// Takes a row into an aggregate.
///
/// # Safety
/// C calls it, for a function that was registered with a `Given<H, A>`.
pub(crate) unsafe extern "C" fn step<H, A: Aggregate<H>>(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: the caller's; context and values are valid while the callback runs. The place holds null or a box of ours.
    unsafe {
        let given = &*ffi::sqlite3_user_data(context).cast::<Given<H, A>>();
        let arguments = Arguments::new(count, values);
        let place = place::<A::State>(context, true);
        if place.is_null() {
            return ffi::sqlite3_result_error_nomem(context);
        }
        let result = (*given.inner).hosted(|host| {
            if (*place).is_null() {
                *place = Box::into_raw(Box::default());
            }
            given.function.step(host, &mut **place, arguments)
        });
        if let Err(failure) = result {
            Output::new(context).fail(&failure);
        }
    }
}

/// Takes a row out of a window.
///
/// # Safety
/// As [`step`], for an `A` that is one of windows.
pub(crate) unsafe extern "C" fn inverse<H, A: Window<H>>(
    context: *mut ffi::sqlite3_context,
    count: c_int,
    values: *mut *mut ffi::sqlite3_value,
) {
    // SAFETY: as in `step`; a row is taken out only behind one that was taken in, so the place holds a box or the step has failed.
    unsafe {
        let given = &*ffi::sqlite3_user_data(context).cast::<Given<H, A>>();
        let arguments = Arguments::new(count, values);
        let place = place::<A::State>(context, false);
        if place.is_null() || (*place).is_null() {
            return;
        }
        let result = (*given.inner).hosted(|host| given.function.inverse(host, &mut **place, arguments));
        if let Err(failure) = result {
            Output::new(context).fail(&failure);
        }
    }
}

/// Answers for a window.
///
/// # Safety
/// As [`inverse`].
pub(crate) unsafe extern "C" fn value<H, A: Window<H>>(context: *mut ffi::sqlite3_context) {
    // SAFETY: as in `step`; an empty window has a box of its own.
    unsafe {
        let given = &*ffi::sqlite3_user_data(context).cast::<Given<H, A>>();
        let mut output = Output::new(context);
        let place = place::<A::State>(context, true);
        if place.is_null() {
            return ffi::sqlite3_result_error_nomem(context);
        }
        let result = (*given.inner).hosted(|host| {
            if (*place).is_null() {
                *place = Box::into_raw(Box::default());
            }
            given.function.value(host, &mut **place, &mut output)
        });
        if let Err(failure) = result {
            output.fail(&failure);
        }
    }
}

/// Ends a group of an aggregate.
///
/// # Safety
/// As [`step`].
pub(crate) unsafe extern "C" fn finish<H, A: Aggregate<H>>(context: *mut ffi::sqlite3_context) {
    // SAFETY: as in `step`; the box is taken out of its place, so it goes once.
    unsafe {
        let given = &*ffi::sqlite3_user_data(context).cast::<Given<H, A>>();
        let place = place::<A::State>(context, false);
        let mut output = Output::new(context);
        let result = (*given.inner).callback(|host| {
            let state = if place.is_null() || (*place).is_null() {
                A::State::default()
            } else {
                *Box::from_raw(std::mem::replace(&mut *place, std::ptr::null_mut()))
            };
            given.function.finish(host, state, &mut output)
        });
        if let Err(failure) = result {
            output.fail(&failure);
        }
    }
}
