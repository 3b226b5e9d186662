//! What a one-shot transaction makes of a value that is there, or not: by a function, or if it is what is expected.
//!
//! Invariant: what was not decided to be written leaves no write, but what was looked at counts as read.

use perilune_store::{Change, Decision, Result, UpdateBuffer};

use super::OneShot;
use crate::access::Access;

impl OneShot {
    /// Notes what `change` makes of the value of `key`. `scratch`: memory.
    pub(crate) fn update(
        &mut self,
        access: &Access,
        key: &[u8],
        change: &mut Change<'_>,
        scratch: &mut Vec<u8>,
    ) -> Result<()> {
        let found = self.get(access, key, scratch)?;
        let mut buffer: UpdateBuffer = [0; 64];
        let shown = scratch.len().min(buffer.len());
        match change(found.then(|| &scratch[..shown]), &mut buffer)? {
            Decision::Keep => Ok(()),
            Decision::Write(length) => self.write(key, Some(&buffer[..length.min(buffer.len())])),
            Decision::Remove => self.remove(access, key).map(drop),
        }
    }

    /// Notes `new` as the value of `key`, none if there is to be none, if it is what is expected; false when it is not.
    pub(crate) fn compare_and_set(
        &mut self,
        access: &Access,
        key: &[u8],
        [expected, new]: [Option<&[u8]>; 2],
        scratch: &mut Vec<u8>,
    ) -> Result<bool> {
        let found = self.get(access, key, scratch)?;
        if found.then_some(scratch.as_slice()) != expected {
            return Ok(false);
        }
        match new {
            Some(value) => self.write(key, Some(value))?,
            None => drop(self.remove(access, key)?),
        }
        Ok(true)
    }
}
