//! A virtual table over a `BTreeMap`, panics in callbacks, errors: the edge between C and Rust.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::rc::Rc;

use perilune_sqlite::constants::{
    SQLITE_ATTACH, SQLITE_AUTH, SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_INTERRUPT,
};
use perilune_sqlite::{
    Action, Aggregate, Arguments, Change, Conflict, Connection, Cursor, Error, Failure, FunctionKind,
    IndexInfo, Module, Operator, Output, Table, ValueRef, Window,
};

type Rows = BTreeMap<i64, String>;

/// Rows lie in the host, so that a test sees who has it.
struct Maps;

struct Map {
    plans: Rc<RefCell<Vec<String>>>,
}

#[derive(Default)]
struct Walk {
    keys: Vec<i64>,
    at: usize,
}

struct Recording(Rc<RefCell<Vec<String>>>);

impl Module<Rows> for Recording {
    type Table = Map;

    fn connect(&self, _host: &mut Rows, name: &str) -> Result<(Map, String), Failure> {
        if name == "missing" {
            return Err(Failure::new("there is no map called missing"));
        }
        Ok((Map { plans: self.0.clone() }, "CREATE TABLE x(id INTEGER PRIMARY KEY, name TEXT)".into()))
    }
}

impl Module<Rows> for Maps {
    type Table = Map;

    const EPONYMOUS: bool = true;

    fn connect(&self, _host: &mut Rows, _name: &str) -> Result<(Map, String), Failure> {
        Ok((Map { plans: Rc::default() }, "CREATE TABLE x(id INTEGER, name TEXT)".into()))
    }
}

impl Table<Rows> for Map {
    type Cursor = Walk;

    fn best_index(&self, info: &mut IndexInfo<'_>) -> Result<(), Failure> {
        let mut plan = String::new();
        for (index, constraint) in info.constraints().into_iter().enumerate() {
            let is_key = constraint.column.is_none_or(|column| column == 0);
            if is_key && constraint.operator == Operator::Equal && constraint.usable && plan.is_empty() {
                let is_list = info.is_list(index);
                info.take_whole_list(index, is_list);
                info.take(index, true);
                plan.push(if is_list { 'I' } else { 'E' });
            }
        }
        info.cost(if plan.is_empty() { 1000.0 } else { 1.0 }, 10, plan == "E");
        let in_order = matches!(info.order()[..], [(None | Some(0), false)]);
        info.is_in_order(in_order);
        self.plans.borrow_mut().push(plan.clone());
        info.plan(0, &plan);
        Ok(())
    }

    fn open(&self) -> Walk {
        Walk::default()
    }

    fn update(&self, rows: &mut Rows, change: &Change<'_>, conflict: Conflict) -> Result<i64, Failure> {
        let int = |value| if let ValueRef::Integer(int) = value { Some(int) } else { None };
        let text = |value| match value {
            ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
            _ => String::new(),
        };
        match change {
            Change::Delete(key) => {
                rows.remove(&int(key.get()).expect("a rowid"));
                Ok(0)
            }
            Change::Insert(key, columns) => {
                let last = rows.keys().next_back().map_or(0, |last| *last);
                // SQLite takes no column of a virtual table for the rowid.
                let id = int(key.get()).or(int(columns.at(0).get())).unwrap_or(last + 1);
                let name = text(columns.at(1).get());
                assert!(name != "panic", "as asked");
                if rows.contains_key(&id) && conflict != Conflict::Replace {
                    return Err(Failure::of(SQLITE_CONSTRAINT_PRIMARYKEY, format!("{id} is there")));
                }
                rows.insert(id, name);
                Ok(id)
            }
            Change::Update(key, new, columns) => {
                let old = rows.remove(&int(key.get()).expect("a rowid")).expect("a row");
                let name = if columns.at(1).is_unchanged() { old } else { text(columns.at(1).get()) };
                let id = if columns.at(0).is_unchanged() { new.get() } else { columns.at(0).get() };
                rows.insert(int(id).expect("a rowid"), name);
                Ok(0)
            }
        }
    }
}

impl Cursor<Rows> for Walk {
    type Table = Map;

    fn filter(
        &mut self,
        _table: &Map,
        rows: &mut Rows,
        _number: i32,
        plan: &str,
        arguments: Arguments<'_>,
    ) -> Result<(), Failure> {
        let mut wanted = Vec::new();
        let mut want = |value: ValueRef<'_>| {
            if let ValueRef::Integer(key) = value {
                wanted.push(key);
            }
        };
        match plan {
            "E" => want(arguments.at(0).get()),
            "I" => arguments.at(0).list(&mut want)?,
            _ => rows.keys().for_each(|key| wanted.push(*key)),
        }
        wanted.retain(|key| rows.contains_key(key));
        wanted.sort_unstable();
        *self = Walk { keys: wanted, at: 0 };
        Ok(())
    }

    fn next(&mut self, _table: &Map, _rows: &mut Rows) -> Result<(), Failure> {
        self.at += 1;
        Ok(())
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.keys.len()
    }

    fn column(
        &mut self,
        _: &Map,
        rows: &mut Rows,
        column: usize,
        out: &mut Output<'_>,
    ) -> Result<(), Failure> {
        let key = self.keys[self.at];
        match column {
            0 => out.set(ValueRef::Integer(key)),
            _ if out.is_unchanged() => {}
            _ => out.set(ValueRef::Text(rows[&key].as_bytes())),
        }
        Ok(())
    }

    fn rowid(&mut self, _table: &Map) -> Result<i64, Failure> {
        Ok(self.keys[self.at])
    }
}

struct Joined;

impl Aggregate<Rows> for Joined {
    type State = String;

    fn step(&self, _: &mut Rows, state: &mut String, arguments: Arguments<'_>) -> Result<(), Failure> {
        if let ValueRef::Text(text) = arguments.at(0).get() {
            assert!(text != b"panic now", "as asked");
            state.push_str(&String::from_utf8_lossy(text));
        }
        Ok(())
    }

    fn finish(&self, _: Option<&mut Rows>, state: String, output: &mut Output<'_>) -> Result<(), Failure> {
        output.set(ValueRef::Text(state.as_bytes()));
        Ok(())
    }
}

impl Window<Rows> for Joined {
    fn inverse(&self, _: &mut Rows, state: &mut String, arguments: Arguments<'_>) -> Result<(), Failure> {
        if let ValueRef::Text(text) = arguments.at(0).get() {
            assert!(text != b"panic when it leaves", "as asked");
            state.drain(..text.len());
        }
        Ok(())
    }

    fn value(&self, _: &mut Rows, state: &mut String, output: &mut Output<'_>) -> Result<(), Failure> {
        output.set(ValueRef::Text(state.as_bytes()));
        Ok(())
    }
}

struct Fixture {
    connection: Connection<Rows>,
    rows: Rows,
    plans: Rc<RefCell<Vec<String>>>,
}

impl Fixture {
    fn new() -> Fixture {
        let plans = Rc::default();
        let connection = Connection::open().expect("a connection");
        connection.add_module("map", Recording(Rc::clone(&plans))).expect("a module");
        let mut rows = Rows::new();
        connection.execute(&mut rows, "CREATE VIRTUAL TABLE t USING map").expect("a table");
        Fixture { connection, rows, plans }
    }

    fn run(&mut self, sql: &str) -> Result<(), Error> {
        self.connection.execute(&mut self.rows, sql)
    }

    /// The rows of a query as text.
    fn query(&mut self, sql: &str) -> Result<String, Error> {
        let (statement, end) = self.connection.prepare(&mut self.rows, sql)?;
        assert_eq!(end, sql.len());
        let mut statement = statement.expect("a statement");
        let mut lines = Vec::new();
        while statement.step(&mut self.rows)? {
            let fields = (0..statement.column_count()).map(|column| match statement.column(column) {
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                ValueRef::Integer(int) => int.to_string(),
                other => format!("{other:?}"),
            });
            lines.push(fields.collect::<Vec<_>>().join("|"));
        }
        Ok(lines.join(" "))
    }
}

#[test]
fn rows_of_a_map_are_written_and_read() -> Result<(), Error> {
    let mut f = Fixture::new();
    f.run("INSERT INTO t VALUES (7, 'g'), (3, 'c'); INSERT INTO t(name) VALUES ('h')")?;
    assert_eq!(f.connection.last_rowid(), 8);
    assert_eq!(f.query("SELECT * FROM t ORDER BY id")?, "3|c 7|g 8|h");
    f.run("UPDATE t SET id = 9 WHERE id = 3; UPDATE t SET name = 'G' WHERE id = 7")?;
    assert_eq!(f.connection.changes(), 1);
    assert_eq!(f.query("SELECT name, id FROM t WHERE id IN (7, 9, 100)")?, "G|7 c|9");
    assert!(f.plans.borrow().iter().any(|plan| plan == "I"), "the list came one by one");
    f.run("DELETE FROM t WHERE id > 7")?;
    assert_eq!(f.query("SELECT a.name, b.name FROM t a, t b WHERE a.id = b.id")?, "G|G");
    f.run("REPLACE INTO t VALUES (7, 'x')")?;
    assert_eq!(f.rows[&7], "x");
    Ok(())
}

#[test]
fn a_failure_is_the_statements_error() {
    let mut f = Fixture::new();
    f.run("INSERT INTO t VALUES (1, 'a')").expect("a row");
    let error = f.run("INSERT INTO t VALUES (1, 'b')").expect_err("the key is there");
    assert_eq!((error.code, &error.message[..]), (SQLITE_CONSTRAINT_PRIMARYKEY, "1 is there"));
    f.run("INSERT OR IGNORE INTO t VALUES (1, 'b'), (2, 'b')").expect("the first is ignored");
    assert_eq!(f.rows.len(), 2);
    let error = f.query("SELECT nope FROM t").expect_err("no such column");
    assert_eq!((error.offset, &error.message[..]), (Some(7), "no such column: nope"));
    let error = f.run("CREATE VIRTUAL TABLE missing USING map").expect_err("no such map");
    assert_eq!(error.message, "there is no map called missing");
    assert!(f.query("SELECT \"typo\" FROM t").is_err(), "a name in quotes is no text");
}

#[test]
fn a_panic_goes_on_in_rust_and_the_connection_lives() {
    let mut f = Fixture::new();
    let insert = catch_unwind(AssertUnwindSafe(|| f.run("INSERT INTO t VALUES (1, 'panic')")));
    let text = *insert.expect_err("it panics").downcast::<&str>().expect("its own message");
    assert_eq!(text, "as asked");
    f.connection.add_window("joined", 1, FunctionKind::default(), Joined).expect("an aggregate");
    f.run("INSERT INTO t VALUES (1, 'a'), (2, 'b')").expect("the connection lives");
    assert_eq!(f.query("SELECT joined(name) FROM t").expect("letters"), "ab");
    f.run("INSERT INTO t VALUES (3, 'panic now')").expect("a row");
    let query = catch_unwind(AssertUnwindSafe(|| f.query("SELECT joined(name) FROM t")));
    assert!(query.is_err());
    assert_eq!(f.query("SELECT count(*) FROM t").expect("a count"), "3");
    let window = "SELECT joined(name) OVER (ORDER BY id ROWS 1 PRECEDING) FROM t WHERE id < 3";
    f.run("INSERT INTO t VALUES (0, 'x')").expect("a row");
    assert_eq!(f.query(window).expect("a window"), "x xa ab");
    f.run("UPDATE t SET name = 'panic when it leaves' WHERE id = 0").expect("a row");
    assert!(catch_unwind(AssertUnwindSafe(|| f.query(window))).is_err());
    assert_eq!(f.query("SELECT joined(name) OVER () FROM t WHERE id = 2").expect("a window"), "b");
}

#[test]
fn a_callback_hands_its_host_on() {
    let mut f = Fixture::new();
    let (connection, kind) = (Rc::new(Connection::<Rows>::open().expect("another")), FunctionKind::default());
    connection.add_module("map", Recording(Rc::default())).expect("a module");
    let inner = Rc::downgrade(&connection);
    let add = move |rows: &mut Rows, arguments: Arguments<'_>, output: &mut Output<'_>| {
        let before = rows.len();
        let inner = inner.upgrade().expect("the other connection");
        if rows.is_empty() {
            inner.execute(rows, "CREATE VIRTUAL TABLE t USING map")?;
        }
        let (statement, _) = inner.prepare(rows, "INSERT INTO t(name) VALUES (?)")?;
        let mut statement = statement.expect("a statement");
        statement.bind(1, arguments.at(0).get())?;
        statement.step(rows)?;
        output.set(ValueRef::Integer((rows.len() - before) as i64));
        Ok(())
    };
    f.connection.add_function("add_row", 1, kind, add).expect("a function");
    assert_eq!(f.query("SELECT add_row('x'), add_row('y')").expect("two"), "1|1");
    assert_eq!(f.query("SELECT name FROM t").expect("both"), "x y");
}

#[test]
fn statements_are_stopped_and_forbidden() {
    let mut f = Fixture::new();
    f.connection.set_authorizer(|action: &Action<'_>| action.code != SQLITE_ATTACH);
    assert_eq!(f.run("ATTACH 'x' AS y").expect_err("forbidden").primary(), SQLITE_AUTH);
    let mut left = 100;
    f.connection.set_progress(1000, move || {
        left -= 1;
        left < 0
    });
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n";
    assert_eq!(f.query(endless).expect_err("it does not end").primary(), SQLITE_INTERRUPT);
}

#[test]
fn eponymous_tables_and_collations() -> Result<(), Error> {
    let mut f = Fixture::new();
    f.connection.add_module("all_rows", Maps)?;
    f.connection.add_collation("backwards", |a, b| b.cmp(a))?;
    f.run("INSERT INTO t(name) VALUES ('a'), ('c'), ('b')")?;
    assert_eq!(f.query("SELECT name FROM all_rows ORDER BY name COLLATE backwards")?, "c b a");
    assert!(f.run("DELETE FROM all_rows").is_err(), "it is only read");
    Ok(())
}
