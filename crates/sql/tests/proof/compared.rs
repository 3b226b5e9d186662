//! Generated schemas and statements, on tables in the tree and on plain SQLite: answers are equal, and so is whether there is an
//! error; after each change all rows are.
//!
//! What is not generated: changes of unique columns of several rows whose outcome depends on the order in which a plan finds them.

use perilune_sqlite::{Connection as Sqlite, ValueRef};

use crate::chance::Chance;
use crate::scratch::{text, Scratch};

/// Plain SQLite's answer, in the form of [`Scratch::rows`]; an error is `error`.
pub(crate) fn plain(sqlite: &Sqlite<()>, sql: &str) -> String {
    let rows = || -> Result<Vec<String>, perilune_sqlite::Error> {
        let mut rows = Vec::new();
        let (Some(mut statement), _) = sqlite.prepare(&mut (), sql)? else { return Ok(rows) };
        while statement.step(&mut ())? {
            let field = |at: usize| match statement.column(at) {
                ValueRef::Null => "NULL".to_owned(),
                ValueRef::Integer(integer) => integer.to_string(),
                ValueRef::Real(real) => format!("{real:?}"),
                ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                ValueRef::Blob(blob) => {
                    format!("x'{}'", blob.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
                }
            };
            rows.push((0..statement.column_count()).map(field).collect::<Vec<_>>().join("|"));
        }
        Ok(rows)
    };
    rows().map_or_else(|_| "error".to_owned(), |rows| rows.join(" "))
}

/// Ours, in the same form.
fn ours(s: &mut Scratch, sql: &str) -> String {
    s.sql.query(&mut s.session, sql, &[]).map_or_else(|_| "error".to_owned(), |rows| text(&rows))
}

const VALUES: [&str; 18] = [
    "NULL",
    "0",
    "1",
    "2",
    "-1",
    "7",
    "1.5",
    "-0.25",
    "2.0",
    "9007199254740993",
    "'x'",
    "'Y'",
    "'1'",
    "'1.0'",
    "' 2'",
    "''",
    "x'31'",
    "x''",
];
const COLUMNS: [&str; 6] = ["id", "a", "b", "c", "d", "rowid"];

fn value(chance: &mut Chance) -> &'static str {
    chance.pick(&VALUES)
}

fn predicate(chance: &mut Chance, of: &str, depth: usize) -> String {
    let column = |chance: &mut Chance| format!("{of}{}", chance.pick(&COLUMNS));
    if chance.below(5) == 0 {
        return indexed(chance, of);
    }
    match chance.below(if depth > 2 { 7 } else { 10 }) {
        0..=2 => {
            let operator = chance.pick(&["=", "=", "<", "<=", ">", ">=", "<>", "IS"]);
            format!("{} {operator} {}", column(chance), value(chance))
        }
        3 => format!("{} BETWEEN {} AND {}", column(chance), value(chance), value(chance)),
        4 => format!("{} IN ({}, {}, {})", column(chance), value(chance), value(chance), value(chance)),
        5 => format!("{} IS {}NULL", column(chance), chance.pick(&["", "NOT "])),
        6 => format!("{} {} {}", column(chance), chance.pick(&["=", "<", ">="]), column(chance)),
        7 => format!("NOT ({})", predicate(chance, of, depth + 1)),
        _ => {
            let word = chance.pick(&["AND", "AND", "OR"]);
            format!("({} {word} {})", predicate(chance, of, depth + 1), predicate(chance, of, depth + 1))
        }
    }
}

/// What indexes are on, and which rows they hold.
const EXPRESSIONS: [&str; 7] =
    ["lower(b)", "a + c", "abs(a) % 3", "b || d", "CAST(d AS INT)", "CAST(a AS TEXT)", "coalesce(d, a)"];
const CONDITIONS: [&str; 6] = [
    "a > 1",
    "b IS NOT NULL",
    "a IS NOT NULL AND d <> 7",
    "c < 2 OR d IS NULL",
    "d IS NULL",
    "lower(b) = 'x'",
];

/// A term that an index on an expression, or a partial one, may serve.
fn indexed(chance: &mut Chance, of: &str) -> String {
    if !of.is_empty() {
        return format!("{of}b IS NOT NULL AND {of}a > 1");
    }
    let expression = chance.pick(&EXPRESSIONS);
    let condition = match chance.below(3) {
        0 => String::new(),
        _ => format!(
            " AND {}",
            ["a > 1", "b IS NOT NULL", "a = 7 AND d <> 7", "(c < 2 OR d IS NULL)", "d IS NULL"]
                [chance.below(5)]
        ),
    };
    match chance.below(5) {
        0 => format!("{} BETWEEN {} AND {}{condition}", expression, value(chance), value(chance)),
        1 => format!("{} IN ({}, {}){condition}", expression, value(chance), value(chance)),
        2 => format!("{} = {expression}{condition}", value(chance)),
        _ => format!("{expression} {} {}{condition}", chance.pick(&["=", "<", ">=", ">"]), value(chance)),
    }
}

/// A join of which one table, both, or neither may be found by indexes on expressions and by partial ones.
fn join(chance: &mut Chance) -> String {
    let by = |of: &str, expression: &str| match expression {
        "lower(b)" => format!("lower({of}b)"),
        "abs(a) % 3" => format!("abs({of}a) % 3"),
        _ => format!("coalesce({of}d, {of}a)"),
    };
    let kind = chance.pick(&["JOIN", "LEFT JOIN", "LEFT JOIN", "RIGHT JOIN", "LEFT OUTER JOIN"]);
    let (left, right) = (chance.pick(&["t0", "t1"]), chance.pick(&["t0", "t1"]));
    let expressions = ["lower(b)", "abs(a) % 3", "coalesce(d, a)"];
    let term = |chance: &mut Chance, of: &str| {
        let expression = chance.pick(&expressions);
        match chance.below(4) {
            0 => format!("{of}{}", chance.pick(&CONDITIONS[..2])),
            1 => format!("{of}d IS NULL"),
            2 => format!("{} = {}", by(of, expression), value(chance)),
            _ => format!("{of}a IS NOT NULL AND {of}d <> 7"),
        }
    };
    let filter = match chance.below(3) {
        0 => predicate(chance, "y.", 1),
        1 => term(chance, "x."),
        _ => format!("{} AND {}", term(chance, "x."), term(chance, "y.")),
    };
    if chance.below(4) == 0 {
        let kind = chance.pick(&["JOIN", "LEFT JOIN"]);
        let (shared, more) = (chance.pick(&["a", "b", "id", "a, b"]), term(chance, "y."));
        let bare = match shared {
            "b" => format!("lower(b) {} {}", chance.pick(&["=", ">"]), value(chance)),
            _ => filter,
        };
        return format!("SELECT x.rowid, y.rowid FROM {left} x {kind} {right} y USING ({shared}) WHERE {bare} AND {more} ORDER BY 1, 2");
    }
    let on = match chance.below(3) {
        0 => format!("x.{} = y.{}", chance.pick(&COLUMNS), chance.pick(&COLUMNS)),
        1 => format!("{} = abs(x.a) AND {}", by("y.", chance.pick(&expressions)), term(chance, "y.")),
        _ => format!("y.a = x.a AND {}", term(chance, "y.")),
    };
    format!("SELECT x.rowid, y.rowid FROM {left} x {kind} {right} y ON {on} WHERE {filter} ORDER BY 1, 2 LIMIT 40")
}

fn query(chance: &mut Chance) -> String {
    if chance.below(5) == 0 {
        return join(chance);
    }
    let filter = predicate(chance, "", 0);
    match chance.below(9) {
        7 => {
            let (by, way) = (chance.pick(&EXPRESSIONS), chance.pick(&["", " DESC"]));
            format!("SELECT rowid FROM t0 WHERE {filter} ORDER BY {by}{way}, rowid LIMIT 7")
        }
        0 => format!("SELECT count(*), sum(a), max(b), min(c) FROM t0 WHERE {filter}"),
        1 => format!("SELECT b, count(*) FROM t1 WHERE {filter} GROUP BY b ORDER BY b"),
        2 => format!(
            "SELECT x.rowid, y.rowid FROM t0 x JOIN t1 y ON x.{} = y.{} WHERE {} ORDER BY x.rowid, y.rowid LIMIT 30",
            chance.pick(&COLUMNS),
            chance.pick(&COLUMNS),
            predicate(chance, "x.", 1)
        ),
        3 => format!("SELECT rowid, (SELECT d FROM t1 WHERE t1.id = t0.a) FROM t0 WHERE {filter} ORDER BY rowid"),
        4 => {
            let (by, way) = (chance.pick(&COLUMNS), chance.pick(&["", " DESC"]));
            format!("SELECT * FROM t0 WHERE {filter} ORDER BY {by}{way}, rowid{way} LIMIT {} OFFSET {}", chance.below(9), chance.below(3))
        }
        5 => format!("SELECT DISTINCT a, b FROM t1 WHERE {filter} ORDER BY a, b"),
        6 => format!(
            "SELECT rowid FROM t0 WHERE {} IN (SELECT {} FROM t1 WHERE {filter}) ORDER BY rowid",
            chance.pick(&COLUMNS),
            chance.pick(&COLUMNS)
        ),
        _ => format!("SELECT rowid, * FROM t1 WHERE {filter} ORDER BY rowid"),
    }
}

fn change(chance: &mut Chance) -> String {
    let table = chance.pick(&["t0", "t1"]);
    let four = |chance: &mut Chance| [value(chance), value(chance), value(chance), value(chance)].join(", ");
    match chance.below(14) {
        12..=13 => {
            let target = chance.pick(&[
                "(b) WHERE a > 1",
                "(b) WHERE a>1",
                "(b)",
                "(lower(b)) WHERE \"a\" IS NOT NULL",
                "(a)",
                "(id)",
                "",
            ]);
            let todo = match chance.below(3) {
                0 => "NOTHING".to_owned(),
                1 => format!("UPDATE SET c = excluded.a, d = {}", value(chance)),
                _ => format!("UPDATE SET c = 7 WHERE {}", predicate(chance, &format!("{table}."), 2)),
            };
            let other = chance.pick(&["", " ON CONFLICT (a) DO NOTHING"]);
            // Without a target, which of several rows in the way is updated is anybody's choice.
            let todo = if target.is_empty() { "NOTHING".to_owned() } else { format!("{todo}{other}") };
            format!(
                "INSERT INTO {table}(a, b, c, d) VALUES ({}) ON CONFLICT {target} DO {todo}",
                four(chance)
            )
        }
        0..=4 => {
            let how = chance.pick(&["", "", "OR IGNORE ", "OR REPLACE "]);
            format!("INSERT {how}INTO {table}(a, b, c, d) VALUES ({})", four(chance))
        }
        5 => format!("INSERT OR IGNORE INTO {table}(id, a) VALUES ({}, {})", chance.below(40), value(chance)),
        6 => format!(
            "INSERT INTO {table}(id, a) VALUES ({}, 1) ON CONFLICT(id) DO UPDATE SET b = {}, d = excluded.a",
            chance.below(40),
            value(chance)
        ),
        7 => format!("UPDATE {table} SET c = {}, d = b WHERE {}", value(chance), predicate(chance, "", 0)),
        8 => format!("UPDATE OR IGNORE {table} SET a = {} WHERE id = {}", value(chance), chance.below(40)),
        9 => {
            format!("UPDATE {table} SET b = {} WHERE {} RETURNING 1", value(chance), predicate(chance, "", 1))
        }
        10 => {
            format!("DELETE FROM {table} WHERE {} AND {}", predicate(chance, "", 1), predicate(chance, "", 1))
        }
        _ => {
            let name = chance.below(1_000_000);
            let condition = match chance.below(2) {
                0 => String::new(),
                _ => format!(" WHERE {}", chance.pick(&CONDITIONS)),
            };
            let kinds = ["a", "b", "c", "d", "b, a", "c, b", "d, c, a"];
            match chance.below(5) {
                0..=1 => format!("CREATE INDEX i{name} ON {table}({}){condition}", chance.pick(&kinds)),
                2 => format!(
                    "CREATE UNIQUE INDEX i{name} ON {table}({}, id){condition}",
                    chance.pick(&EXPRESSIONS)
                ),
                _ => {
                    let more = chance.pick(&["", ", a", ", b DESC"]);
                    format!("CREATE INDEX i{name} ON {table}({}{more}){condition}", chance.pick(&EXPRESSIONS))
                }
            }
        }
    }
}

/// The first statement that is answered otherwise; `spoil` may change what ours is asked.
fn first_difference(
    name: &str,
    chance: &mut Chance,
    rounds: usize,
    spoil: fn(String) -> String,
) -> Option<String> {
    let mut s = Scratch::new(name);
    let sqlite = Sqlite::<()>::open().expect("SQLite");
    let unique = chance.pick(&["", " UNIQUE"]);
    for sql in [
        format!("CREATE TABLE t0(id INTEGER PRIMARY KEY, a INT{unique}, b TEXT, c REAL, d)"),
        "CREATE TABLE t1(id INTEGER PRIMARY KEY, a NUMERIC, b TEXT COLLATE NOCASE, c REAL, d BLOB)"
            .to_owned(),
    ] {
        assert_eq!(ours(&mut s, &sql), plain(&sqlite, &sql), "{sql}");
    }
    // Of columns alone whose changes touch one row, or all in the same way.
    for sql in [
        "CREATE UNIQUE INDEX few ON t1(b) WHERE a > 1",
        "CREATE UNIQUE INDEX low ON t0(lower(b)) WHERE a IS NOT NULL",
    ] {
        if chance.below(2) == 0 {
            assert_eq!(ours(&mut s, sql), plain(&sqlite, sql), "{sql}");
        }
    }
    for _ in 0..rounds {
        let is_query = chance.below(3) > 0;
        let sql = if is_query { query(chance) } else { change(chance) };
        let asked = if is_query { spoil(sql.clone()) } else { sql.clone() };
        let (here, there) = (ours(&mut s, &asked), plain(&sqlite, &sql));
        if here != there {
            let schema = plain(&sqlite, "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL");
            let rows = |sqlite: &Sqlite<()>, table: &str| {
                let fields = ["id", "a", "b", "c", "d"].map(|column| format!("quote({column})")).join(", ");
                plain(sqlite, &format!("SELECT {fields} FROM {table}"))
            };
            let (t0, t1) = (rows(&sqlite, "t0"), rows(&sqlite, "t1"));
            let plans = plain(&sqlite, &format!("EXPLAIN QUERY PLAN {sql}"))
                + "\n  "
                + &ours(&mut s, &format!("EXPLAIN QUERY PLAN {sql}"));
            let here = if here == "error" { s.rows(&asked) } else { here };
            return Some(format!(
                "{sql}\n  ours:   {here}\n  SQLite: {there}\n  {schema}\n  t0: {t0}\n  t1: {t1}\n  {plans}"
            ));
        }
        for table in ["t0", "t1"].iter().filter(|_| !is_query) {
            let all = format!("SELECT rowid, * FROM {table} ORDER BY rowid");
            let (here, there) = (ours(&mut s, &all), plain(&sqlite, &all));
            if here != there {
                return Some(format!("after {sql}\n  ours:   {here}\n  SQLite: {there}"));
            }
        }
    }
    None
}

fn rounds() -> usize {
    std::env::var("PERILUNE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(6)
}

#[test]
fn generated_statements_answer_what_sqlite_answers() {
    let mut chance = Chance::new();
    for _ in 0..rounds() {
        let difference = first_difference("compared", &mut chance, 300, |sql| sql);
        assert!(difference.is_none(), "{}", difference.unwrap_or_default());
    }
}

/// A LIMIT taken by a scan that does not do all that is asked (what a first version did) is found.
#[test]
fn the_comparison_finds_a_planted_fault() {
    let spoil = |sql: String| match sql.split_once(" WHERE ") {
        Some((head, tail)) if tail.contains("ORDER BY rowid") => {
            format!("SELECT * FROM ({head} ORDER BY rowid LIMIT 3) WHERE {tail}")
        }
        _ => sql,
    };
    let mut chance = Chance::of(7);
    assert!((0..20).any(|_| first_difference("planted", &mut chance, 200, spoil).is_some()));
}
