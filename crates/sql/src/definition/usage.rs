//! CREATE LRUINDEX and CREATE LFUINDEX: an index on how the rows of a table are used, whose name is made of that of the table.

use super::{Definition, Reader};
use crate::error::Result;
use crate::schema::UsageKind;

/// What the index is to hold that is created here, if it is one on use.
pub(super) fn kind(reader: &mut Reader<'_>) -> Option<UsageKind> {
    if reader.take("lruindex") {
        return Some(UsageKind::Last);
    }
    reader.take("lfuindex").then_some(UsageKind::Often)
}

/// Parses what follows.
pub(super) fn create(reader: &mut Reader<'_>, kind: UsageKind) -> Result<Definition> {
    let if_not_exists = reader.if_not_exists()?;
    reader.expect("on")?;
    Ok(Definition::CreateUsageIndex { if_not_exists, kind, table: reader.qualified()? })
}
