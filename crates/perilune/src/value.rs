//! What can be a value or a number: Rust's own types, and those of the key codec.

use perilune_key::{Decimal, Number, Value, ValueRef};

use crate::Result;

/// A Rust value that can be the value of a node.
///
/// Integers keep being integers (all of `i64`; `u64` beyond it if 18 digits hold it), text and bytes
/// are strings, `()` is null.
pub trait IntoValue {
    /// Appends the encoded value to `out`.
    ///
    /// # Errors
    /// `Number` for an integer that neither `i64` nor 18 digits hold.
    fn encode_to(self, out: &mut Vec<u8>) -> Result<()>;
}

/// A Rust value that can be a number exactly.
pub trait IntoNumber {
    /// The number.
    ///
    /// # Errors
    /// `Number` for NaN, infinity, and what no number holds exactly.
    fn into_number(self) -> Result<Number>;
}

/// No value, for [`crate::Session::compare_and_set`].
pub const ABSENT: Option<ValueRef<'static>> = None;

macro_rules! small_integers {
    ($($integer:ty)*) => {$(
        impl IntoValue for $integer {
            #[inline]
            fn encode_to(self, out: &mut Vec<u8>) -> Result<()> {
                ValueRef::Int(i64::from(self)).encode_into(out);
                Ok(())
            }
        }

        impl IntoNumber for $integer {
            #[inline]
            fn into_number(self) -> Result<Number> {
                Ok(Number::Int(i64::from(self)))
            }
        }
    )*};
}

small_integers!(i8 i16 i32 i64 u8 u16 u32);

macro_rules! large_integers {
    ($($integer:ty)*) => {$(
        impl IntoValue for $integer {
            #[inline]
            fn encode_to(self, out: &mut Vec<u8>) -> Result<()> {
                self.into_number()?.encode_to(out)
            }
        }

        impl IntoNumber for $integer {
            #[inline]
            fn into_number(self) -> Result<Number> {
                Ok(Number::new(self as i128, 0)?)
            }
        }
    )*};
}

large_integers!(u64 usize isize);

impl IntoNumber for f64 {
    fn into_number(self) -> Result<Number> {
        Ok(Number::from_f64(self)?)
    }
}

impl IntoNumber for Decimal {
    fn into_number(self) -> Result<Number> {
        Ok(Number::from(self))
    }
}

impl IntoNumber for Number {
    #[inline]
    fn into_number(self) -> Result<Number> {
        Ok(self)
    }
}

impl IntoValue for ValueRef<'_> {
    #[inline]
    fn encode_to(self, out: &mut Vec<u8>) -> Result<()> {
        self.encode_into(out);
        Ok(())
    }
}

macro_rules! by_reference {
    ($($type:ty, $value:ident => $view:expr;)*) => {$(
        impl IntoValue for $type {
            #[inline]
            fn encode_to(self, out: &mut Vec<u8>) -> Result<()> {
                let $value = self;
                $view.encode_into(out);
                Ok(())
            }
        }
    )*};
}

by_reference! {
    (), _unit => ValueRef::Null;
    bool, truth => ValueRef::Bool(truth);
    f32, double => ValueRef::Double(f64::from(double));
    f64, double => ValueRef::Double(double);
    Number, number => ValueRef::from(number);
    Decimal, decimal => ValueRef::from(Number::from(decimal));
    &str, text => ValueRef::String(text.as_bytes());
    String, text => ValueRef::String(text.as_bytes());
    &String, text => ValueRef::String(text.as_bytes());
    &[u8], bytes => ValueRef::String(bytes);
    Vec<u8>, bytes => ValueRef::String(&bytes);
    &Vec<u8>, bytes => ValueRef::String(bytes);
    Value, value => value.as_ref();
    &Value, value => value.as_ref();
}

impl<const LENGTH: usize> IntoValue for &[u8; LENGTH] {
    fn encode_to(self, out: &mut Vec<u8>) -> Result<()> {
        self.as_slice().encode_to(out)
    }
}

/// What a value is, in words for an error.
pub(crate) fn type_name(value: &ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Null => "null",
        ValueRef::Bool(_) => "a truth value",
        ValueRef::Int(_) => "an integer",
        ValueRef::Decimal(_) => "a decimal",
        ValueRef::Double(_) => "a double",
        ValueRef::String(_) => "a string",
        ValueRef::EmptyList => "an empty list",
        ValueRef::EmptyMap => "an empty map",
        ValueRef::Record(_) => "a record of a table",
    }
}
