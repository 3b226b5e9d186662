//! Operations on the value of one node: get, set, data, increment, compare-and-set, delete.

use perilune_key::{ArithmeticError, Number, Value, ValueRef};
use perilune_store::{
    Added, Addition, Change, Decision, Error as StoreError, Session as StoreSession, UpdateBuffer,
};

use crate::value::type_name;
use crate::{Error, IntoNumber, IntoValue, NodeRef, Result, Session};

/// What lies at a node, as M's `$DATA` says it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Data {
    /// Neither a value nor descendants: the node does not exist.
    Nothing = 0,
    /// A value only.
    Value = 1,
    /// Descendants only.
    Descendants = 10,
    /// A value and descendants.
    Both = 11,
}

impl Data {
    /// 0, 1, 10 or 11.
    #[must_use]
    pub fn number(self) -> u8 {
        self as u8
    }

    /// Whether the node has a value.
    #[must_use]
    pub fn has_value(self) -> bool {
        matches!(self, Data::Value | Data::Both)
    }

    /// Whether the node has descendants with a value.
    #[must_use]
    pub fn has_descendants(self) -> bool {
        matches!(self, Data::Descendants | Data::Both)
    }
}

impl Session {
    /// The value of `node`; `None` if it has none.
    ///
    /// # Errors
    /// `Conflict` inside a transaction (hand it on); I/O; a damaged value.
    pub fn get<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<Value>> {
        Ok(self.get_ref(node)?.map(|value| value.to_owned_value()))
    }

    /// The value of `node` where it was read to, without a copy; it lasts until the next operation.
    ///
    /// # Errors
    /// As [`Session::get`].
    #[inline]
    pub fn get_ref<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<ValueRef<'_>>> {
        let node = node.into();
        let found = if node.is_local() {
            self.trees.local.get(node.encoded(), &mut self.value)?
        } else {
            self.trees.database.get(node.encoded(), &mut self.value)?
        };
        if !found {
            return Ok(None);
        }
        Ok(Some(ValueRef::decode(&self.value)?))
    }

    /// The integer at `node`: an integer, or a number or numeric string that is one; the fastest way
    /// to read it.
    ///
    /// # Errors
    /// `WrongType` if the value is no integer; else as [`Session::get`].
    #[inline]
    pub fn get_int<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<i64>> {
        match self.get_ref(node)? {
            None => Ok(None),
            Some(ValueRef::Int(integer)) => Ok(Some(integer)),
            Some(other) => match other.as_i64() {
                Some(integer) => Ok(Some(integer)),
                None => Err(Error::WrongType { wanted: "an integer", found: type_name(&other) }),
            },
        }
    }

    /// The string at `node`, where it was read to; it lasts until the next operation.
    ///
    /// # Errors
    /// `WrongType` if the value is no string or not UTF-8 (see [`Session::get_ref`] for bytes); else
    /// as [`Session::get`].
    pub fn get_str<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Option<&str>> {
        match self.get_ref(node)? {
            None => Ok(None),
            Some(ValueRef::String(bytes)) => match std::str::from_utf8(bytes) {
                Ok(text) => Ok(Some(text)),
                Err(_) => Err(Error::WrongType { wanted: "text in UTF-8", found: "other bytes" }),
            },
            Some(other) => Err(Error::WrongType { wanted: "a string", found: type_name(&other) }),
        }
    }

    /// Sets the value of `node`.
    ///
    /// # Errors
    /// `ValueTooLong`, `KeyTooLong`, `NoSpace`, `ReadOnly`: nothing was written.
    #[inline]
    pub fn set<'n>(&mut self, node: impl Into<NodeRef<'n>>, value: impl IntoValue) -> Result<()> {
        let node = node.into();
        self.encoded.clear();
        value.encode_to(&mut self.encoded)?;
        if node.is_local() {
            self.trees.local.set(node.encoded(), &self.encoded)?;
        } else {
            self.trees.database.set(node.encoded(), &self.encoded)?;
        }
        Ok(())
    }

    /// What lies at `node`: a value, descendants, both or nothing.
    ///
    /// # Errors
    /// As [`Session::get`].
    pub fn data<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<Data> {
        let node = node.into();
        let presence = self.trees.of(node.is_local()).presence(node.encoded())?;
        Ok(match (presence.value, presence.descendants) {
            (false, false) => Data::Nothing,
            (true, false) => Data::Value,
            (false, true) => Data::Descendants,
            (true, true) => Data::Both,
        })
    }

    /// Adds `by` to the number at `node` (nothing there counts as 0) and returns the sum.
    ///
    /// Arithmetic is decimal and exact: a sum that 18 digits cannot hold is an error, and so is a
    /// value that is no number (a string counts if it is one in canonical form).
    ///
    /// # Errors
    /// `Number`; else as [`Session::set`]. The node is as it was.
    #[inline]
    pub fn increment<'n>(&mut self, node: impl Into<NodeRef<'n>>, by: impl IntoNumber) -> Result<Number> {
        self.add(node.into(), by.into_number()?, perilune_key::increment, false)
    }

    /// Adds as M's `$INCREMENT` does: a string counts as the number it begins with, other values
    /// that are no number as 0, and digits after the 18th are dropped.
    ///
    /// # Errors
    /// `Number` from 1E47 on; else as [`Session::set`]. The node is as it was.
    pub fn increment_truncating<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        by: impl IntoNumber,
    ) -> Result<Number> {
        self.add(node.into(), by.into_number()?, perilune_key::increment_truncating, true)
    }

    /// Sets the value of `node` to `new` (`None`: deletes it) if it is `expected` now, in type and
    /// value (`None`: absent); false when it is not. [`crate::ABSENT`] is a `None` of a type.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn compare_and_set<'n>(
        &mut self,
        node: impl Into<NodeRef<'n>>,
        expected: Option<impl IntoValue>,
        new: Option<impl IntoValue>,
    ) -> Result<bool> {
        let node = node.into();
        self.value.clear();
        self.encoded.clear();
        let (was, becomes) = (expected.is_some(), new.is_some());
        if let Some(expected) = expected {
            expected.encode_to(&mut self.value)?;
        }
        if let Some(new) = new {
            new.encode_to(&mut self.encoded)?;
        }
        let expected = was.then_some(&self.value[..]);
        let new = becomes.then_some(&self.encoded[..]);
        Ok(self.trees.of(node.is_local()).compare_and_set(node.encoded(), expected, new)?)
    }

    /// Deletes the value of `node` and leaves its descendants; true when there was one.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn delete_value<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<bool> {
        let node = node.into();
        Ok(self.trees.of(node.is_local()).remove(node.encoded())?)
    }

    /// Deletes `node` and all its descendants.
    ///
    /// # Errors
    /// As [`Session::set`].
    pub fn delete_tree<'n>(&mut self, node: impl Into<NodeRef<'n>>) -> Result<()> {
        let node = node.into();
        Ok(self.trees.of(node.is_local()).remove_prefix(node.encoded())?)
    }

    #[inline]
    fn add(&mut self, node: NodeRef<'_>, by: Number, sum: Sum, truncating: bool) -> Result<Number> {
        let mut result = [0; 64];
        let mut outcome = Ok(0);
        let mut change = |current: Option<&[u8]>, buffer: &mut UpdateBuffer| {
            outcome = sum(current, &by, buffer);
            match outcome {
                Ok(length) => {
                    result = *buffer;
                    Ok(Decision::Write(length))
                }
                // Under the page's latch nothing may allocate: an empty text does not.
                Err(_) => Err(StoreError::Refused(String::new())),
            }
        };
        let changed = if node.is_local() {
            self.trees.local.update(node.encoded(), &mut change).map(|()| Added::Here)
        } else {
            let encode = |out: &mut Vec<u8>| ValueRef::from(by).encode_into(out);
            self.trees.database.add(node.encoded(), Addition { by: &encode, truncating, sum: &mut change })
        };
        match changed {
            Ok(Added::There(sum)) => Ok(ValueRef::decode(&sum)?.as_number()?),
            Ok(Added::Here) => Ok(ValueRef::decode(&result[..outcome?])?.as_number()?),
            Err(StoreError::Refused(why)) if why.is_empty() => match outcome {
                Err(error) => Err(error.into()),
                Ok(_) => Err(StoreError::Refused(why).into()),
            },
            Err(error) => Err(error.into()),
        }
    }
}

type Sum = fn(Option<&[u8]>, &Number, &mut UpdateBuffer) -> std::result::Result<usize, ArithmeticError>;

/// Has `write` replace a value by the integer that `change` makes of it. A value that may be longer than what is shown of it
/// stays.
#[inline]
pub(super) fn revise(
    write: impl FnOnce(&mut Change<'_>) -> perilune_store::Result<()>,
    mut change: impl FnMut(Option<ValueRef<'_>>) -> Option<i64>,
) -> Result<Option<i64>> {
    let mut revised = None;
    write(&mut |current, buffer| {
        revised = match current {
            None => change(None),
            Some(current) if current.len() < buffer.len() => {
                ValueRef::decode(current).ok().and_then(|current| change(Some(current)))
            }
            Some(_) => None,
        };
        Ok(match (revised, buffer.first_chunk_mut()) {
            (Some(integer), Some(buffer)) => Decision::Write(perilune_key::encode_int_value(integer, buffer)),
            _ => Decision::Keep,
        })
    })?;
    Ok(revised)
}
