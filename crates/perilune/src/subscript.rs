//! What can be a subscript: integers, decimals, doubles, text and bytes.

use perilune_key::{Decimal, KeyBuf, Number, Subscript};

use crate::Result;

/// A Rust value that can be a subscript of a node.
///
/// A byte string that is a canonical number (`"21"`, `"-.5"`) is the same subscript as that number;
/// `"021"` and `"1.0"` are strings. NaN and infinity are errors.
pub trait IntoSubscript {
    /// Appends the subscript to `key`.
    ///
    /// # Errors
    /// `KeyTooLong`, `SubscriptTooLong`, `TooManySubscripts`; `Number` for NaN and infinity.
    fn push_to(self, key: &mut KeyBuf) -> Result<()>;
}

macro_rules! small_integers {
    ($($integer:ty)*) => {$(
        impl IntoSubscript for $integer {
            #[inline]
            fn push_to(self, key: &mut KeyBuf) -> Result<()> {
                Ok(key.push_int(i64::from(self))?)
            }
        }
    )*};
}

small_integers!(i8 i16 i32 i64 u8 u16 u32);

macro_rules! large_integers {
    ($($integer:ty)*) => {$(
        impl IntoSubscript for $integer {
            #[inline]
            fn push_to(self, key: &mut KeyBuf) -> Result<()> {
                match i64::try_from(self) {
                    Ok(integer) => Ok(key.push_int(integer)?),
                    Err(_) => Ok(key.push_number(Number::new(self as i128, 0)?)?),
                }
            }
        }
    )*};
}

large_integers!(u64 usize isize);

impl IntoSubscript for f64 {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        Ok(key.push_number(Number::from_f64(self)?)?)
    }
}

impl IntoSubscript for Number {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        Ok(key.push_number(self)?)
    }
}

impl IntoSubscript for Decimal {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        Ok(key.push_number(Number::from(self))?)
    }
}

impl IntoSubscript for &str {
    #[inline]
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        Ok(key.push_bytes(self.as_bytes())?)
    }
}

impl IntoSubscript for String {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        self.as_str().push_to(key)
    }
}

impl IntoSubscript for &String {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        self.as_str().push_to(key)
    }
}

impl IntoSubscript for &[u8] {
    #[inline]
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        Ok(key.push_bytes(self)?)
    }
}

impl<const LENGTH: usize> IntoSubscript for &[u8; LENGTH] {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        self.as_slice().push_to(key)
    }
}

impl IntoSubscript for &Vec<u8> {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        self.as_slice().push_to(key)
    }
}

impl IntoSubscript for Subscript<'_> {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        Ok(key.push_subscript(&self)?)
    }
}

impl IntoSubscript for &Subscript<'_> {
    fn push_to(self, key: &mut KeyBuf) -> Result<()> {
        Ok(key.push_subscript(self)?)
    }
}
