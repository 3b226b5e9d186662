//! Rows that a cache has evicted: what is left of one, and what is said to who asks for it.
//!
//! ```text
//! EVICT users 7        ^users(7) = "evicted"        the row lives in the backing store; its entries in indexes are gone
//! ```
//!
//! Invariants
//! - What is left stands at the row's node, where whoever names the row looks, and is no record: whoever walks passes it.
//! - It goes when a row is written there.

use perilune::{NodeRef, ValueRef as NodeValue};

use crate::error::{Error, SqlState};
use crate::schema::Table;

/// The value of the node of a row that was evicted.
pub(crate) const GHOST: &str = "evicted";

/// Whether this is left of a row of the table.
pub(crate) fn is_ghost(table: &Table, value: Option<NodeValue<'_>>) -> bool {
    table.evicts && matches!(value, Some(NodeValue::String(bytes)) if bytes == GHOST.as_bytes())
}

/// The error of who asks for the row at this key.
pub(crate) fn miss(key: &[u8]) -> Error {
    let what = format!(
        "{} is evicted: read it from the backing store, INSERT or REPLACE it here, and run the statement again",
        NodeRef::from_encoded(key, false)
    );
    Error::new(SqlState::MISS, what)
}
