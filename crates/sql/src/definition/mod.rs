//! Statements that define something: parsed by us, since SQLite refuses them on virtual tables or would keep them to itself.
//!
//! A recursive descent over tokens. Expressions are not parsed: they are pieces of the text, which SQLite compiles later, where
//! the table's columns are known.
//!
//! Invariant: whatever is not understood is an error at its place; nothing in a definition is skipped in silence.

mod build;
mod function;
mod index;
mod interpret;
mod over;
mod reader;
mod table;
mod trigger;
mod usage;

use crate::error::{Error, Result, SqlState};
use crate::function::Function;
use crate::schema::{Table, UsageKind};
use crate::token::{tokens, Token};

pub(crate) use build::{constant, index_collation};
pub(crate) use function::parse_function;
pub(crate) use index::{parse_index, CodeIndexText, IndexPart, IndexText};
pub(crate) use reader::Reader;
use table::TableText;
pub(crate) use table::{column_of, parse_table};
pub(crate) use trigger::{lua_triggers, parse_trigger, TriggerText};

/// A statement that defines something.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Definition {
    CreateTable {
        if_not_exists: bool,
        name: String,
        table: Box<Table>,
    },
    /// The query, and what it makes.
    CreateTableAs {
        if_not_exists: bool,
        name: String,
        query: String,
    },
    CreateIndex {
        if_not_exists: bool,
        name: String,
        table: String,
        text: IndexText,
        unique: bool,
    },
    CreateCodeIndex {
        if_not_exists: bool,
        name: String,
        table: String,
        text: CodeIndexText,
    },
    /// An index on how rows are used.
    CreateUsageIndex {
        if_not_exists: bool,
        kind: UsageKind,
        table: String,
    },
    CreateTrigger,
    /// The CREATE TRIGGER that it is.
    CreateLuaTrigger(String),
    CreateFunction {
        or_replace: bool,
        if_not_exists: bool,
        function: Function,
    },
    /// Functions, and the CREATE FUNCTION of each.
    Interpret(Vec<(Function, String)>),
    CreateView {
        /// It is the connection's own.
        is_temporary: bool,
        if_not_exists: bool,
        name: String,
        sql: String,
    },
    Drop {
        kind: Dropped,
        if_exists: bool,
        name: String,
    },
    RenameTable {
        table: String,
        name: String,
    },
    RenameColumn {
        table: String,
        column: String,
        name: String,
    },
    /// The text of the column's definition.
    AddColumn {
        table: String,
        column: String,
    },
    DropColumn {
        table: String,
        column: String,
    },
    /// An INSERT may name columns that a table has not.
    AddHashability(String),
    /// Rows of a table may be evicted from now on.
    SetDirty(String),
    /// Of one table or index, or of all.
    Analyze(Option<String>),
    Reindex(Option<String>),
}

/// What is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dropped {
    Table,
    Index,
    View,
    Trigger,
    LuaTrigger,
    Function,
}

/// The definition that a statement is, if it is one.
///
/// # Errors
/// `SYNTAX` with a place; `REFUSED` for what SQL has and we have not.
pub(crate) fn parse(sql: &str) -> Result<Option<Definition>> {
    let tokens = tokens(sql)?;
    let mut reader = Reader::new(sql, &tokens);
    let definition = match tokens.first() {
        Some(first) if first.is("create") => create(&mut reader)?,
        Some(first) if first.is("drop") => drop(&mut reader)?,
        Some(first) if first.is("alter") => alter(&mut reader)?,
        Some(first) if first.is("interpret") => {
            reader.next();
            Definition::Interpret(interpret::interpret(&mut reader)?)
        }
        Some(first) if first.is("analyze") => {
            reader.next();
            Definition::Analyze(reader.optional_name()?)
        }
        Some(first) if first.is("reindex") => {
            reader.next();
            Definition::Reindex(reader.optional_name()?)
        }
        _ => return Ok(None),
    };
    reader.end()?;
    Ok(Some(definition))
}

fn refused(token: Option<Token<'_>>, what: &str) -> Error {
    let error = Error::new(SqlState::REFUSED, what);
    match token {
        Some(token) => error.at(token.at),
        None => error,
    }
}

fn create(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.next();
    let is_temporary = reader.take("temp") || reader.take("temporary");
    if is_temporary && !reader.peek().is_some_and(|token| token.is("view")) {
        return Err(refused(
            reader.peek(),
            "there are temporary views, and no tables: create one, and drop it",
        ));
    }
    if reader.take("table") {
        return table::create(reader);
    }
    let unique = reader.take("unique");
    if reader.take("index") {
        return index::create(reader, unique);
    }
    if let (false, Some(kind)) = (unique, usage::kind(reader)) {
        return usage::create(reader, kind);
    }
    if !unique && reader.take("view") {
        let if_not_exists = reader.if_not_exists()?;
        let name = reader.qualified()?;
        let sql = reader.rest_of_text();
        let sql = format!("CREATE VIEW {} {sql}", crate::token::quote(&name));
        return Ok(Definition::CreateView { is_temporary, if_not_exists, name, sql });
    }
    if reader.take("virtual") {
        return Err(refused(reader.peek(), "virtual tables are not for statements: create a table"));
    }
    if reader.take("trigger") {
        // Its text is parsed as a whole, as the catalog keeps it.
        reader.rest();
        return Ok(Definition::CreateTrigger);
    }
    if !unique && reader.take("luatrigger") {
        return Ok(Definition::CreateLuaTrigger(trigger::create_lua_trigger(reader)?));
    }
    let or_replace = !unique && reader.take("or");
    if or_replace {
        reader.expect("replace")?;
    }
    let is_aggregate = !unique && reader.take("aggregate");
    if is_aggregate || !unique && reader.take("function") {
        let (if_not_exists, function) = function::create(reader, is_aggregate)?;
        return Ok(Definition::CreateFunction { or_replace, if_not_exists, function });
    }
    Err(reader.expected("TABLE, INDEX, VIEW, TRIGGER, FUNCTION or AGGREGATE behind CREATE"))
}

fn drop(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.next();
    let kind = if reader.take("table") {
        Dropped::Table
    } else if reader.take("index") {
        Dropped::Index
    } else if reader.take("view") {
        Dropped::View
    } else if reader.take("trigger") {
        Dropped::Trigger
    } else if reader.take("luatrigger") {
        Dropped::LuaTrigger
    } else if reader.take("function") || reader.take("aggregate") {
        Dropped::Function
    } else {
        return Err(reader.expected("TABLE, INDEX, VIEW, TRIGGER, FUNCTION or AGGREGATE behind DROP"));
    };
    let if_exists = reader.take("if");
    if if_exists {
        reader.expect("exists")?;
    }
    Ok(Definition::Drop { kind, if_exists, name: reader.qualified()? })
}

fn alter(reader: &mut Reader<'_>) -> Result<Definition> {
    reader.next();
    reader.expect("table")?;
    let table = reader.qualified()?;
    if reader.take("rename") {
        if reader.take("to") {
            return Ok(Definition::RenameTable { table, name: reader.name()? });
        }
        reader.take("column");
        let column = reader.name()?;
        reader.expect("to")?;
        return Ok(Definition::RenameColumn { table, column, name: reader.name()? });
    }
    if reader.take("add") {
        let is_alone = reader.peek_second().is_none_or(|token| token.is_sign(";"));
        if is_alone && reader.take("hashability") {
            return Ok(Definition::AddHashability(table));
        }
        reader.take("column");
        return Ok(Definition::AddColumn { table, column: reader.rest_of_text() });
    }
    if reader.take("drop") {
        reader.take("column");
        return Ok(Definition::DropColumn { table, column: reader.name()? });
    }
    if reader.take("set") {
        reader.expect("dirty")?;
        return Ok(Definition::SetDirty(table));
    }
    Err(reader.expected("RENAME, ADD, DROP or SET DIRTY"))
}
