//! What the option structs of several functions share: reading a struct, timeouts, durability.
//!
//! A struct begins with its size, so that a later version can add fields at its end. Example: a program that was
//! compiled when `perilune_options` had 56 bytes says 56; the fields behind them get their defaults.

use std::time::Duration;

use perilune::Durability;

use crate::status::Failure;

/// Durations beyond this many seconds are for ever.
const LONGEST: f64 = 1e9;

/// Reads an option struct of a caller who knows `size` bytes of it; the rest is as in `defaults`.
///
/// # Safety
/// `given` is NULL or good for reading as many bytes as its first field says; any bytes make a `T`.
pub(crate) unsafe fn read<T: Copy>(given: *const T, defaults: T) -> Result<T, Failure> {
    if given.is_null() {
        return Ok(defaults);
    }
    // SAFETY: the caller's promise: every option struct begins with its size.
    let size = unsafe { given.cast::<u32>().read() } as usize;
    if size < size_of::<u64>() || size > size_of::<T>() {
        return Err(Failure::invalid(
            c"the size of an option struct is wrong: begin with its _INIT, of the perilune.h of this library",
        ));
    }
    let mut options = defaults;
    // SAFETY: both have that many bytes, and the caller promises that any bytes are good.
    unsafe { std::ptr::copy_nonoverlapping(given.cast::<u8>(), (&raw mut options).cast(), size) };
    Ok(options)
}

/// How long to wait: None is for ever.
pub(crate) fn timeout(seconds: f64) -> Result<Option<Duration>, Failure> {
    if seconds.is_nan() {
        return Err(Failure::invalid(c"a timeout is a number of seconds, or PERILUNE_FOREVER"));
    }
    if !(0.0..=LONGEST).contains(&seconds) {
        return Ok(None);
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// A time limit, where zero is the default.
pub(crate) fn limit(seconds: f64, default: Duration) -> Result<Duration, Failure> {
    if seconds == 0.0 {
        return Ok(default);
    }
    if seconds > 0.0 {
        return Ok(Duration::from_secs_f64(seconds.min(LONGEST)));
    }
    Err(Failure::invalid(c"a time limit is a number of seconds above 0, or 0 for the default"))
}

/// What a commit waits for; `None` is the default.
pub(crate) fn durability(code: i32) -> Result<Option<Durability>, Failure> {
    match code {
        0 => Ok(None),
        1 => Ok(Some(Durability::None)),
        2 => Ok(Some(Durability::Periodic)),
        3 => Ok(Some(Durability::Fsync)),
        _ => Err(Failure::invalid(c"the durability is one of enum perilune_durability")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_seconds_or_for_ever() {
        assert_eq!(timeout(-1.0).unwrap(), None);
        assert_eq!(timeout(f64::INFINITY).unwrap(), None);
        assert_eq!(timeout(0.0).unwrap(), Some(Duration::ZERO));
        assert_eq!(timeout(0.5).unwrap(), Some(Duration::from_millis(500)));
        assert!(timeout(f64::NAN).is_err());
        assert!(limit(-1.0, Duration::ZERO).is_err() && limit(f64::NAN, Duration::ZERO).is_err());
        assert_eq!(limit(0.0, Duration::from_secs(7)).unwrap(), Duration::from_secs(7));
    }

    #[test]
    fn a_caller_who_knows_less_gets_defaults() {
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Three {
            size: u32,
            first: u32,
            second: u64,
        }
        let defaults = Three { size: 16, first: 1, second: 2 };
        let older = Three { size: 8, first: 9, second: 9 };
        // SAFETY: the structs are there, and any bytes make one.
        let read_back = unsafe { read(&older, defaults) }.unwrap();
        assert_eq!((read_back.first, read_back.second), (9, 2));
        let newer = Three { size: 24, first: 9, second: 9 };
        // SAFETY: the struct is there; its size is refused before more is read.
        assert!(unsafe { read(&newer, defaults) }.is_err());
    }
}
