//! Triggers in Lua INSTEAD OF changes of a view: SQLite has them as triggers in SQL, which call a function of ours with the row.
//!
//! ```text
//! CREATE TRIGGER i INSTEAD OF INSERT ON v LANGUAGE LUA AS '...'
//! CREATE TRIGGER i INSTEAD OF INSERT ON v BEGIN SELECT perilune_instead('i', NEW."a", NEW."b"); END
//! ```
//!
//! Invariant: what the function is called with are the columns that the view had when SQLite was told of the trigger.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use perilune::Session;
use perilune_sqlite::{Connection, FunctionKind};

use super::functions::values_of;
use super::Engine;
use crate::definition::parse_trigger;
use crate::error::{Error, Result, SqlState};
use crate::function::{Change, Function};
use crate::schema::Event;
use crate::stage::Stage;
use crate::token::{fold, quote, tokens};
use crate::value::Value;

/// The function that such triggers call.
const INSTEAD: &str = "perilune_instead";

/// A trigger in Lua, and the columns of its view.
pub(super) struct Instead {
    function: Function,
    event: Event,
    columns: Vec<String>,
}

impl Instead {
    /// Calls it with the name of the trigger and the values of its rows.
    fn call(&self, session: &mut Session, stage: &Stage, values: &[Value]) -> Result<()> {
        let count = self.columns.len();
        let has_both = self.event == Event::Update;
        if values.len() != 1 + count * (1 + usize::from(has_both)) {
            return Err(Error::new(SqlState::REFUSED, format!("{INSTEAD} is for triggers alone")));
        }
        let (first, second) = values[1..].split_at(count);
        let (new, old) = match self.event {
            Event::Insert => (Some(first), None),
            Event::Delete => (None, Some(first)),
            Event::Update => (Some(first), Some(second)),
        };
        let columns: Vec<&str> = self.columns.iter().map(String::as_str).collect();
        let change = Change { columns: &columns, old, new, may_change: false };
        stage.host()?.change(session, &self.function, &change).map(drop)
    }
}

/// The triggers of a connection, by name.
type Known = Rc<RefCell<HashMap<String, Rc<Instead>>>>;

/// Gives SQLite the function; answers where it looks for triggers.
pub(super) fn add(sqlite: &Connection<Session>, stage: &Rc<Stage>) -> Result<Known> {
    let (stage, all) = (Rc::clone(stage), Known::default());
    let triggers = Rc::clone(&all);
    sqlite.add_function(INSTEAD, -1, FunctionKind::default(), move |session, arguments, _| {
        let values = values_of(arguments);
        let name = match values.first() {
            Some(Value::Text(name)) => String::from_utf8_lossy(name).into_owned(),
            _ => String::new(),
        };
        let known = triggers.borrow().get(&name).cloned();
        let missing = || Error::new(SqlState::NO_TABLE, format!("no such trigger: {name}"));
        let done = known.ok_or_else(missing).and_then(|it| it.call(session, &stage, &values));
        done.map_err(|error| stage.fail(error))
    })?;
    Ok(all)
}

impl Engine {
    /// The text that SQLite is told of a trigger of a view: as it is, or in SQL in place of Lua.
    pub(super) fn text_of_trigger(&self, session: &mut Session, view: &str, sql: &str) -> Result<String> {
        let parsed = parse_trigger(sql)?.trigger;
        let Some(function) = parsed.script else { return Ok(sql.to_owned()) };
        let tokens = tokens(sql)?;
        let language = tokens.iter().rposition(|token| token.is("language"));
        let head = language.map_or(sql, |at| &sql[..tokens[at].at]);
        let (statement, _) = self.sqlite.prepare(session, &format!("SELECT * FROM {}", quote(view)))?;
        let columns: Vec<String> = match &statement {
            Some(statement) => (0..statement.column_count()).map(|at| statement.column_name(at)).collect(),
            None => Vec::new(),
        };
        let rows: &[&str] = match parsed.event {
            Event::Insert => &["NEW"],
            Event::Delete => &["OLD"],
            Event::Update => &["NEW", "OLD"],
        };
        let name = fold(&parsed.name);
        let mut arguments = format!("'{}'", name.replace('\'', "''"));
        for row in rows {
            for column in &columns {
                arguments.push_str(&format!(", {row}.{}", quote(column)));
            }
        }
        let instead = Instead { function, event: parsed.event, columns };
        self.instead.borrow_mut().insert(name, Rc::new(instead));
        Ok(format!("{head}BEGIN SELECT {INSTEAD}({arguments}); END"))
    }
}
