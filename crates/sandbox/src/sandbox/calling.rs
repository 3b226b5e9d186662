//! The edge to `c/call.c`: functions that are called with values, once for each row of a statement.
//!
//! Invariants
//! - What C is lent, values and bridge, outlives the call.
//! - What C has answered lasts until its state is used again, which needs `&mut Sandbox`.
#![allow(unsafe_code)]

use std::ffi::c_int;
use std::mem::MaybeUninit;

use super::edge::{raw_run, Bridge, Raw, RawRun, State, Text, ENDED, REPLIED};
use super::values::{Parts, Value, EXACT};
use super::{Answers, Called, Run};

/// `value` of sandbox.h.
#[repr(C)]
#[derive(Clone, Copy)]
struct RawValue<'a> {
    kind: c_int,
    what: Payload<'a>,
}

/// `payload` of sandbox.h.
#[repr(C)]
#[derive(Clone, Copy)]
union Payload<'a> {
    number: f64,
    bytes: Text<'a>,
}

/// The kinds of values: VALUE_... of sandbox.h. Truth values and numbers have a number, texts and bytes have bytes.
const NOTHING: c_int = 0;
const TRUTH: c_int = 1;
const NUMBER: c_int = 2;
const TEXT: c_int = 3;
const BYTES: c_int = 4;

impl<'a> From<Value<'a>> for RawValue<'a> {
    #[inline]
    fn from(value: Value<'a>) -> RawValue<'a> {
        let number = |kind, number| RawValue { kind, what: Payload { number } };
        match value {
            Value::Nothing => number(NOTHING, 0.0),
            Value::Truth(truth) => number(TRUTH, f64::from(u8::from(truth))),
            Value::Integer(integer) => number(NUMBER, integer as f64),
            Value::Double(double) => number(NUMBER, double),
            Value::Text(bytes) => RawValue { kind: TEXT, what: Payload { bytes: Text::from(bytes) } },
        }
    }
}

/// A number of Lua: an integer if it is whole and exact, as values.c has it.
#[inline]
fn number(number: f64) -> Value<'static> {
    let whole = number as i64;
    if number.abs() <= EXACT as f64 && whole as f64 == number {
        Value::Integer(whole)
    } else {
        Value::Double(number)
    }
}

extern "C" {
    #[link_name = "perilune_private_sandbox_call"]
    fn sandbox_call(
        state: *mut State,
        run: *const RawRun<'_>,
        given: *const RawValue<'_>,
        count: usize,
        answer: *mut RawValue<'_>,
    ) -> c_int;
}

/// Arguments that a call takes no memory for.
const UNALLOCATED: usize = 8;

/// A number of 32 bits for one of 64: neighbours have nothing in common (splitmix64).
fn mixed(number: u64) -> u32 {
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (number ^ (number >> 31)) as u32
}

impl Raw {
    /// As [`Raw::run`], for a function that is called with values.
    #[inline]
    pub(super) fn call<'v>(
        &self,
        run: &Run<'_>,
        values: impl ExactSizeIterator<Item = Value<'v>>,
        host: &mut dyn Answers,
        answer: &mut Vec<u8>,
    ) -> Called<'_> {
        let mut inline = [const { MaybeUninit::<RawValue<'v>>::uninit() }; UNALLOCATED];
        let listed: Vec<RawValue<'v>>;
        let (given, count) = if values.len() <= UNALLOCATED {
            let mut count = 0;
            for (place, value) in inline.iter_mut().zip(values) {
                place.write(RawValue::from(value));
                count += 1;
            }
            (inline.as_ptr().cast::<RawValue<'v>>(), count)
        } else {
            listed = values.map(RawValue::from).collect();
            (listed.as_ptr(), listed.len())
        };
        let mut bridge = Bridge::new(host, answer);
        let raw = raw_run(run, &mut bridge, mixed(self.seed.wrapping_add(run.number)));
        let mut value = RawValue::from(Value::Nothing);
        // SAFETY: as in `run`; the values, of which as listed as C is told were written, outlive the call as well.
        let outcome = unsafe { sandbox_call(self.state.as_ptr(), &raw, given, count, &mut value) };
        bridge.end();
        // SAFETY: what was written last is what the kind says, by C or above. C keeps bytes that it has answered until the
        // next call on this state, which needs `&mut Sandbox`.
        let (given_number, bytes) = (|| unsafe { value.what.number }, || unsafe { value.what.bytes.bytes() });
        match (outcome, value.kind) {
            (REPLIED, NOTHING) => Called::Value(Value::Nothing),
            (REPLIED, TRUTH) => Called::Value(Value::Truth(given_number() != 0.0)),
            (REPLIED, NUMBER) => Called::Value(number(given_number())),
            (REPLIED, TEXT) => Called::Value(Value::Text(bytes())),
            (REPLIED, BYTES) => Called::Parts(Parts::new(bytes())),
            (REPLIED | ENDED, _) => Called::Ended,
            _ => Called::Stopped,
        }
    }
}
