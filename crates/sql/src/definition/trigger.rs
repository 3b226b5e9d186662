//! CREATE TRIGGER: when it fires, and its statements with the row's columns as parameters, or its text in Lua.
//!
//! Invariant: each statement of the body stands alone, and its parameters are columns of the row alone.

use super::Reader;
use crate::error::{Error, Result, SqlState};
use crate::function::{Function, Shape};
use crate::rewrite::{with_rows, Piece, Version};
use crate::schema::{Event, Timing, Trigger};
use crate::token::{fold, quote, tokens, Kind, Token};

/// What a CREATE TRIGGER says.
pub(crate) struct TriggerText {
    pub(crate) if_not_exists: bool,
    pub(crate) table: String,
    pub(crate) trigger: Trigger,
}

/// Parses a whole CREATE TRIGGER.
pub(crate) fn parse_trigger(sql: &str) -> Result<TriggerText> {
    let tokens = tokens(sql)?;
    let mut reader = Reader::new(sql, &tokens);
    reader.expect("create")?;
    if reader.take("temp") || reader.take("temporary") {
        return Err(Error::new(
            SqlState::REFUSED,
            "there are no temporary triggers: create one, and drop it",
        ));
    }
    reader.expect("trigger")?;
    let if_not_exists = reader.if_not_exists()?;
    let name = reader.qualified()?;
    let timing = if reader.take("before") {
        Timing::Before
    } else if reader.take("instead") {
        reader.expect("of")?;
        Timing::Instead
    } else if reader.take("after") {
        Timing::After
    } else {
        Timing::Before
    };
    let mut columns = Vec::new();
    let event = if reader.take("insert") {
        Event::Insert
    } else if reader.take("delete") {
        Event::Delete
    } else {
        reader.expect("update")?;
        if reader.take("of") {
            columns.push(fold(&reader.name()?));
            while reader.take_sign(",") {
                columns.push(fold(&reader.name()?));
            }
        }
        Event::Update
    };
    reader.expect("on")?;
    let table = reader.name()?;
    if reader.take("for") {
        reader.expect("each")?;
        reader.expect("row")?;
    }
    let rest = reader.rest();
    let (condition, body, script) = match script(sql, rest)? {
        Some((condition, text)) => (condition, Vec::new(), Some(function(&name, text))),
        None => {
            let (condition, body) = body(sql, rest)?;
            (condition, body, None)
        }
    };
    let trigger = Trigger { name, timing, event, columns, condition, body, script };
    Ok(TriggerText { if_not_exists, table, trigger })
}

/// What a trigger in Lua is called as.
fn function(name: &str, body: String) -> Function {
    let parameters = vec!["new".to_owned(), "old".to_owned()];
    let name = format!("trigger {}", fold(name));
    Function { name, parameters, shape: Shape::Change, is_deterministic: false, body, is_of_host: false }
}

/// The condition and the text of a trigger that is written in Lua: `[WHEN condition] LANGUAGE LUA AS '...'`.
fn script(sql: &str, rest: &[Token<'_>]) -> Result<Option<(Option<Piece>, String)>> {
    let Some(at) = rest.len().checked_sub(4).filter(|at| rest[*at].is("language") && rest[at + 2].is("as"))
    else {
        return Ok(None);
    };
    let (language, text) = (&rest[at + 1], &rest[at + 3]);
    if !language.is("lua") {
        let what = format!("triggers are written in SQL or Lua, not in {}", language.text);
        return Err(Error::new(SqlState::REFUSED, what).at(language.at));
    }
    let Some(body) = text.name().filter(|_| text.kind == Kind::Text) else {
        return Err(Error::new(SqlState::SYNTAX, "expected the text of the trigger in '...'").at(text.at));
    };
    let condition = match &rest[..at] {
        [] => None,
        [when, condition @ ..] if when.is("when") && !condition.is_empty() => Some(piece(sql, condition)),
        [other, ..] => return Err(Error::new(SqlState::SYNTAX, "expected WHEN or LANGUAGE").at(other.at)),
    };
    Ok(Some((condition, body)))
}

/// AlchemyDB's `CREATE LUATRIGGER name ON table kind "function(column, ...)"` as a CREATE TRIGGER, behind its first two words: the
/// function is called with columns of the row, and with the name of the table for the word `table`.
pub(super) fn create_lua_trigger(reader: &mut Reader<'_>) -> Result<String> {
    let name = reader.name()?;
    reader.expect("on")?;
    let table = reader.name()?;
    let place = reader.place();
    let kind = fold(&reader.name()?);
    let (when, row) = match &kind[..] {
        "insert" => ("AFTER INSERT", "NEW"),
        "delete" => ("AFTER DELETE", "OLD"),
        "preupdate" => ("BEFORE UPDATE", "OLD"),
        "postupdate" => ("AFTER UPDATE", "NEW"),
        _ => {
            let what = "expected INSERT, DELETE, PREUPDATE or POSTUPDATE";
            return Err(Error::new(SqlState::SYNTAX, what).at(place));
        }
    };
    let place = reader.place();
    let call = reader.next().and_then(|token| token.name());
    let call =
        call.ok_or_else(|| Error::new(SqlState::SYNTAX, "expected \"function(column, ...)\"").at(place))?;
    let words = tokens(&call)?;
    let mut inner = Reader::new(&call, &words);
    let function = inner.name()?;
    inner.expect_sign("(")?;
    let mut arguments = Vec::new();
    while !inner.take_sign(")") {
        if !arguments.is_empty() {
            inner.expect_sign(",")?;
        }
        arguments.push(match inner.name()? {
            word if word.eq_ignore_ascii_case("table") => format!("'{}'", table.replace('\'', "''")),
            column => format!("{row}.{}", quote(&column)),
        });
    }
    inner.end()?;
    let (name, table) = (quote(&format!("{name}.{kind}")), quote(&table));
    let call = format!("{}({})", quote(&function), arguments.join(", "));
    Ok(format!("CREATE TRIGGER {name} {when} ON {table} BEGIN SELECT {call}; END"))
}

/// The names of the triggers that a CREATE LUATRIGGER of this name may have made.
pub(crate) fn lua_triggers(name: &str) -> [String; 4] {
    ["insert", "delete", "preupdate", "postupdate"].map(|kind| format!("{name}.{kind}"))
}

/// The condition, and the statements between BEGIN and END.
fn body(sql: &str, rest: &[Token<'_>]) -> Result<(Option<Piece>, Vec<Piece>)> {
    let missing = |what: &str| Error::new(SqlState::SYNTAX, format!("expected {what}")).at(sql.len());
    let begin = rest.iter().position(|token| token.is("begin")).ok_or_else(|| missing("BEGIN"))?;
    let end = rest.len().checked_sub(1).filter(|end| rest[*end].is("end") && *end > begin);
    let end = end.ok_or_else(|| missing("END"))?;
    let condition = match &rest[..begin] {
        [] => None,
        [when, condition @ ..] if when.is("when") && !condition.is_empty() => Some(piece(sql, condition)),
        [other, ..] => return Err(Error::new(SqlState::SYNTAX, "expected WHEN or BEGIN").at(other.at)),
    };
    let statements = rest[begin + 1..end].split(|token| token.is_sign(";"));
    let body: Vec<Piece> =
        statements.filter(|statement| !statement.is_empty()).map(|statement| piece(sql, statement)).collect();
    if body.is_empty() {
        return Err(missing("a statement between BEGIN and END"));
    }
    Ok((condition, body))
}

/// Some tokens as a piece of its own.
fn piece(sql: &str, of: &[Token<'_>]) -> Piece {
    let start = of.first().map_or(0, |token| token.at);
    let end = of.last().map_or(0, |token| token.end());
    let moved: Vec<Token<'_>> = of.iter().map(|token| Token { at: token.at - start, ..*token }).collect();
    with_rows(&sql[start..end], &moved, &[("new", Version::New), ("old", Version::Old)], 1)
}
