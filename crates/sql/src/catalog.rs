//! What the schema is: nodes under `^sql`, which any program may read.
//!
//! ```text
//! ^sql("version")                              counts changes of the schema
//! ^sql("table","users","sql")                  its CREATE TABLE
//! ^sql("table","users","root")                 the name of its global
//! ^sql("table","users","field",3)              the column that field 3 of its records is
//! ^sql("table","users","index","city","sql")   what it holds: "city" COLLATE NOCASE, (lower(name)) WHERE (age > 17)
//! ^sql("table","users","index","city","root"), "unique", "state" ("building" or "ready"), "at" (the last row taken in)
//! ^sql("table","users","index","lru_users","kept"), "since"    the global that keeps how rows are used, and when it came
//! ^sql("table","users","hashability")          an INSERT may name columns that it has not, which it then gets
//! ^sql("table","users","dirty")                it is a cache, whose rows may be evicted
//! ^sql("table","users","child","orders")       a table that refers to it
//! ^sql("table","users","coded","visits","function")    relindx; an index that code keeps, whose entries are table visits
//! ^sql("table","users","coded","visits","constructor"), "destructor"    functions called as it comes and goes
//! ^sql("index","city")                         the table that has the index
//! ^sql("view","old","sql")                     its CREATE VIEW
//! ^sql("function","gross","sql")               its CREATE FUNCTION
//! ^sql("trigger","users","log","sql")       its CREATE TRIGGER; ^sql("fires","log") is the table
//! ^sql("prepared","by_city")                   the statement that EXECUTE by_city runs
//! ^sql("sequence","users")                     the largest number that its AUTOINCREMENT has given
//! ^sql("root")                                 how many names of globals were made up
//! ^sql("stat","users","rows"), ^sql("stat","users","index","city",1)    what ANALYZE has counted
//! ```
//!
//! Invariants
//! - Names are in lower case; what the user wrote stands in the texts.
//! - Whoever changes anything here, but for prepared statements, which are texts only, adds one to the version in the same
//!   transaction, and every statement reads the version in its own: so a change meets all statements that run meanwhile as a
//!   conflict, and is seen by the next of every process.

use perilune::{node, Cursor, Node, Session, Value as NodeValue};

use crate::definition::{
    index_collation, parse_function, parse_index, parse_table, parse_trigger, IndexPart,
};
use crate::error::{Error, Result, SqlState};
use crate::exact::make_exact;
use crate::function::Function;
use crate::schema::{CodeIndex, Computed, Index, Resolution, Table, UsageKind};
use crate::token::fold;

/// The node of a place in the catalog.
pub(crate) fn place(path: &[&str]) -> Result<Node> {
    let mut node = node!("^sql")?;
    path.iter().try_for_each(|part| node.push(*part))?;
    Ok(node)
}

/// The version of the schema.
pub(crate) fn version(session: &mut Session, node: &Node) -> Result<i64> {
    Ok(session.get_int(node)?.unwrap_or(0))
}

fn text(session: &mut Session, node: &Node) -> Result<Option<String>> {
    Ok(session.get_str(node)?.map(str::to_owned))
}

/// The texts of the children of a node, in order.
pub(crate) fn names(session: &mut Session, path: &[&str]) -> Result<Vec<String>> {
    let mut cursor = Cursor::children(&place(path)?).without_values();
    let mut names = Vec::new();
    while cursor.next(session)? {
        names.push(String::from_utf8_lossy(&cursor.subscript()?.to_text()).into_owned());
    }
    Ok(names)
}

/// The table of this name.
pub(crate) fn table(session: &mut Session, name: &str) -> Result<Option<Table>> {
    let name = &fold(name)[..];
    let base = place(&["table", name])?;
    let Some(sql) = text(session, &base.child("sql")?)? else { return Ok(None) };
    let root = text(session, &base.child("root")?)?.unwrap_or_else(|| name.to_owned());
    let mut fields = Vec::new();
    let mut cursor = Cursor::children(&base.child("field")?);
    while cursor.next(session)? {
        if let (Some(field), Some(NodeValue::String(column))) =
            (cursor.integer(), cursor.value()?.map(|value| value.to_owned_value()))
        {
            let column = String::from_utf8_lossy(&column).into_owned();
            fields.push((column, usize::try_from(field).unwrap_or(0)));
        }
    }
    let mut table = parse_table(&sql, &fields)?;
    for index in &mut table.indexes {
        index.root = format!("{root}.%{}", index.root);
    }
    table.root = root;
    for index in names(session, &["table", name, "index"])? {
        let index = self::index(session, &mut table, &index)?;
        table.indexes.push(index);
    }
    table.children = names(session, &["table", name, "child"])?;
    table.entries_of = table_of_index(session, name)?;
    for index in names(session, &["table", name, "coded"])? {
        table.code_indexes.push(code_index(session, name, index)?);
    }
    table.is_hashable = session.get_int(&base.child("hashability")?)?.unwrap_or(0) != 0;
    table.evicts = session.get_int(&base.child("dirty")?)?.unwrap_or(0) != 0;
    for trigger in names(session, &["trigger", name])? {
        let sql = text(session, &place(&["trigger", name, &trigger, "sql"])?)?.unwrap_or_default();
        let mut trigger = parse_trigger(&sql)?.trigger;
        // What CREATE TRIGGER refuses, an older program has kept: it goes on as it did.
        let _ = make_exact(&mut trigger, &table);
        table.triggers.push(trigger);
    }
    statistics(session, &mut table)?;
    Ok(Some(table))
}

fn index(session: &mut Session, table: &mut Table, name: &str) -> Result<Index> {
    let base = place(&["table", &fold(&table.name), "index", name])?;
    let sql = text(session, &base.child("sql")?)?.unwrap_or_default();
    let index = parse_index(&sql)?;
    if let Some(kept) = text(session, &base.child("kept")?)? {
        if let [(IndexPart::Column(column), _)] = &index.parts[..] {
            let since = session.get_int(&base.child("since")?)?.unwrap_or(0);
            UsageKind::of(column).into_iter().for_each(|kind| table.add_usage(kind, kept.clone(), since));
        }
    }
    let mut columns = Vec::new();
    for (part, collation) in index.parts {
        let column = match part {
            IndexPart::Column(column) => {
                let found = table.column(&column).or_else(|| table.add_element(&column));
                found.ok_or_else(|| {
                    let what = format!("index {name} of {} has no column {column}", table.name);
                    Error::new(SqlState::INTERNAL, what)
                })?
            }
            IndexPart::Expression(text) => table.add_computed(name, Computed::Expression(text))?,
        };
        columns.push((column, index_collation(&table.columns[column], collation)));
    }
    let condition = match index.condition {
        Some(text) => Some(table.add_computed(name, Computed::Condition(text))?),
        None => None,
    };
    let root = text(session, &base.child("root")?)?.unwrap_or_default();
    let unique = session.get_int(&base.child("unique")?)?.unwrap_or(0) != 0;
    let ready = text(session, &base.child("state")?)?.as_deref() == Some("ready");
    Ok(Index {
        name: name.to_owned(),
        root,
        columns,
        condition,
        unique,
        resolution: Resolution::Abort,
        ready,
        rows_each: Vec::new(),
    })
}

fn code_index(session: &mut Session, table: &str, name: String) -> Result<CodeIndex> {
    let base = place(&["table", table, "coded", &name])?;
    let function = text(session, &base.child("function")?)?.unwrap_or_default();
    let constructor = text(session, &base.child("constructor")?)?.unwrap_or_default();
    let destructor = text(session, &base.child("destructor")?)?;
    Ok(CodeIndex { name, function, constructor, destructor })
}

/// Takes in what ANALYZE has counted.
fn statistics(session: &mut Session, table: &mut Table) -> Result<()> {
    let base = place(&["stat", &fold(&table.name)])?;
    let Some(rows) = session.get_int(&base.child("rows")?)? else { return Ok(()) };
    table.rows = rows.max(1) as f64;
    for index in &mut table.indexes {
        let node = base.child("index")?.child(&*fold(&index.name))?;
        for count in 1..=index.columns.len() {
            let Some(distinct) = session.get_int(&node.child(count as i64)?)? else { break };
            index.rows_each.push((table.rows / distinct.max(1) as f64).max(1.0));
        }
    }
    Ok(())
}

/// The text of a view.
pub(crate) fn view(session: &mut Session, name: &str) -> Result<Option<String>> {
    text(session, &place(&["view", &fold(name), "sql"])?)
}

/// The function of this name.
pub(crate) fn function(session: &mut Session, name: &str) -> Result<Option<Function>> {
    let sql = text(session, &place(&["function", &fold(name), "sql"])?)?;
    sql.map(|sql| parse_function(&sql)).transpose()
}

/// The texts of the triggers of a view, by name.
pub(crate) fn view_triggers(session: &mut Session, name: &str) -> Result<Vec<String>> {
    let mut texts = Vec::new();
    for trigger in names(session, &["trigger", name])? {
        texts.extend(text(session, &place(&["trigger", name, &trigger, "sql"])?)?);
    }
    Ok(texts)
}

/// The table or view that has a trigger of this name.
pub(crate) fn table_of_trigger(session: &mut Session, name: &str) -> Result<Option<String>> {
    text(session, &place(&["fires", &fold(name)])?)
}

/// The table that has an index of this name.
pub(crate) fn table_of_index(session: &mut Session, name: &str) -> Result<Option<String>> {
    text(session, &place(&["index", &fold(name)])?)
}

/// Says that the schema has changed.
pub(crate) fn bump(session: &mut Session) -> Result<()> {
    session.increment(&place(&["version"])?, 1)?;
    Ok(())
}
