//! Numbers as values, for the workloads here: 8 bytes, little endian; a key without a value counts as 0.

use perilune_store::{Error, Result, Session};

/// The number at `key`.
///
/// # Errors
/// As [`Session::get`]; `Refused` when the value is no number.
pub fn get(session: &mut impl Session, key: &[u8]) -> Result<u64> {
    let mut value = Vec::new();
    if session.get(key, &mut value)? {
        decode(&value)
    } else {
        Ok(0)
    }
}

/// Writes `number` at `key`.
///
/// # Errors
/// As [`Session::set`].
pub fn set(session: &mut impl Session, key: &[u8], number: u64) -> Result<()> {
    session.set(key, &number.to_le_bytes())
}

/// The number in a value.
///
/// # Errors
/// `Refused` when it is not 8 bytes long.
pub fn decode(value: &[u8]) -> Result<u64> {
    let bytes = value.try_into().map_err(|_| {
        Error::Refused(format!(
            "a number has 8 bytes, this value has {}: \"{}\"",
            value.len(),
            value.escape_ascii()
        ))
    })?;
    Ok(u64::from_le_bytes(bytes))
}
