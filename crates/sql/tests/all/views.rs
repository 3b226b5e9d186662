//! Views that are choices of rows: statements find the indexes of their tables, and answer what plain SQLite answers.

use std::rc::Rc;

use crate::scratch::{text, Scratch};
use perilune_sql::{Access, Nowhere, Permit, Result, Terms, Value};
use perilune_sqlite::{Connection as Sqlite, ValueRef};

#[path = "../proof/chance.rs"]
mod chance;

use chance::Chance;

const SCHEMA: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, a INT, b TEXT, c INT, d TEXT COLLATE NOCASE);
    CREATE TABLE u(id INTEGER PRIMARY KEY, a INT, name TEXT);
    INSERT INTO u VALUES (1, 30, 'X30'), (2, 31, 'X40'), (3, NULL, NULL), (40, 7, 'x7');
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
        INSERT INTO t SELECT i, i % 100, CASE WHEN i % 10 = 0 THEN 'X' || i END, i % 3, 'd' || (i % 7) FROM n;
    CREATE INDEX few ON t(a) WHERE c = 1 AND b IS NOT NULL;
    CREATE INDEX low ON t(coalesce(lower(b), 'none'));
    CREATE INDEX total ON t(a + c, b);
    CREATE VIEW v AS SELECT id, b AS n, a x, c, d FROM t;
    CREATE VIEW one(k, n, x) AS SELECT id, b, a FROM t AS y WHERE y.c = 1;
    CREATE VIEW w AS SELECT k + 0 AS key, coalesce(lower(n), 'none') AS low, x FROM one WHERE x > 5;
    CREATE VIEW down AS SELECT *, a + c AS s FROM t WHERE id > 3 OR a IS NULL ORDER BY id DESC;
    CREATE VIEW sums AS SELECT c, count(*) AS n, max(lower(b)) AS b FROM t GROUP BY c;
    CREATE VIEW same AS SELECT id, d COLLATE BINARY AS d, lower(b) AS b FROM t";

/// Plain SQLite with these tables.
fn plain(schema: &str) -> Sqlite<()> {
    let sqlite = Sqlite::open().expect("SQLite");
    for sql in schema.split(';') {
        sqlite.execute(&mut (), sql).expect("a statement");
    }
    sqlite
}

/// What it answers, in the form of [`Scratch::rows`].
fn answer(sqlite: &Sqlite<()>, sql: &str) -> String {
    let rows = || -> std::result::Result<Vec<String>, perilune_sqlite::Error> {
        let (Some(mut statement), _) = sqlite.prepare(&mut (), sql)? else { return Ok(Vec::new()) };
        let mut rows = Vec::new();
        while statement.step(&mut ())? {
            let field = |at: usize| match statement.column(at) {
                ValueRef::Null => "NULL".to_owned(),
                ValueRef::Integer(integer) => integer.to_string(),
                ValueRef::Real(real) => format!("{real:?}"),
                ValueRef::Text(text) | ValueRef::Blob(text) => String::from_utf8_lossy(text).into_owned(),
            };
            rows.push((0..statement.column_count()).map(field).collect::<Vec<_>>().join("|"));
        }
        Ok(rows)
    };
    rows().map_or_else(|_| "error".to_owned(), |rows| rows.join(" "))
}

fn ours(s: &mut Scratch, sql: &str) -> String {
    s.sql.query(&mut s.session, sql, &[]).map_or_else(|_| "error".to_owned(), |rows| text(&rows))
}

#[test]
fn indexes_serve_through_views() -> Result<()> {
    let mut s = Scratch::new("views");
    s.run(SCHEMA)?;
    let sqlite = plain(SCHEMA);
    let mut idle = Vec::new();
    for (sql, index) in [
        ("SELECT id, x FROM v WHERE coalesce(lower(n), 'none') = 'x30'", "low"),
        ("SELECT * FROM v AS z WHERE coalesce(lower(z.n), 'none') = 'x30'", "low"),
        ("SELECT * FROM v z WHERE 'x30' = (coalesce(lower(\"z\".n), 'none')) AND x > 0", "low"),
        ("SELECT count(*), sum(id) FROM v WHERE x = 30 AND c = 1 AND n > 'X'", "few"),
        ("SELECT id FROM v WHERE x + c BETWEEN 7 AND 8 AND n IS NOT NULL", "total"),
        ("SELECT id FROM v WHERE x + c IN (7, 8, -3) ORDER BY id DESC LIMIT 3", "total"),
        ("SELECT k FROM one WHERE x = 30 AND n >= 'X' ORDER BY k", "few"),
        ("SELECT n, k FROM one WHERE n IS NOT NULL AND x < 3 ORDER BY 2", "few"),
        ("SELECT key, low, x FROM w WHERE low = 'x40'", "low"),
        ("SELECT w.key FROM w WHERE low IN ('x40', 'x70', 'x100') ORDER BY key", "low"),
        ("SELECT id FROM down WHERE s = 7", "total"),
        ("SELECT * FROM down WHERE s = 7 AND down.b IS NOT NULL", "total"),
        ("SELECT u.id, v.id FROM u JOIN v ON v.x = u.a AND coalesce(lower(v.n), 'none') = 'x30'", "low"),
        (
            "SELECT u.id, v.id FROM v LEFT JOIN u ON u.a = v.x WHERE coalesce(lower(v.n), 'none') = 'x30'",
            "low",
        ),
        ("SELECT u.id FROM u, v WHERE u.a = v.x AND coalesce(lower(v.n), 'none') = 'x30'", "low"),
        ("SELECT id FROM u WHERE a IN (SELECT id FROM v WHERE coalesce(lower(n), 'none') = 'x30')", "low"),
        ("SELECT id, (SELECT max(x) FROM v WHERE x + c = 7 AND v.id > u.id) FROM u ORDER BY id", "total"),
        ("WITH q AS (SELECT id FROM v WHERE x + c = 7) SELECT count(*) FROM q", "total"),
        ("SELECT id FROM v WHERE x + c = 7 UNION SELECT a FROM u ORDER BY 1 LIMIT 9", "total"),
        ("SELECT c, count(*) AS n FROM v WHERE x + c = 7 GROUP BY c HAVING n > 1 ORDER BY c", "total"),
    ] {
        let plan = s.rows(&format!("EXPLAIN QUERY PLAN {sql}"));
        if !plan.contains(&format!(" {index}")) {
            idle.push(format!("{sql}: {plan}"));
        }
        assert_eq!(ours(&mut s, sql), answer(&sqlite, sql), "{sql}");
    }
    assert!(idle.is_empty(), "{}", idle.join("\n"));
    for sql in [
        "SELECT id FROM v WHERE coalesce(lower(n), 'none') = 'x30' OR id = 7 ORDER BY id",
        "SELECT u.id, v.id FROM u LEFT JOIN v ON v.id = u.a WHERE coalesce(lower(v.n), 'none') = 'none' ORDER BY 1",
        "SELECT u.id, v.id FROM u LEFT JOIN v ON v.id = u.a AND coalesce(lower(v.n), 'none') = 'x30' ORDER BY 1",
        "SELECT count(*) FROM v RIGHT JOIN u ON u.a = v.x WHERE coalesce(lower(v.n), 'none') = 'none'",
        "SELECT count(*) FROM v NATURAL JOIN u WHERE x + c = 7",
        "WITH v AS (SELECT 1 AS id, 'Q' AS n, 3 AS x, 4 AS c) SELECT id FROM v WHERE x + c = 7",
        "SELECT b, n FROM sums WHERE coalesce(lower(b), 'none') > 'x' ORDER BY n",
        "SELECT count(*) FROM same WHERE d = 'D3'",
        "SELECT count(*) FROM same WHERE 'x30' = b AND d IN ('d1', 'D2')",
        "SELECT id FROM v WHERE x + c = 7 AND abs(random()) >= 0 ORDER BY id",
        "SELECT main.v.id FROM main.v WHERE x + c = 7 ORDER BY 1",
        "SELECT nothing FROM v WHERE x + c = 7",
        "SELECT id FROM v WHERE nothing(x) = 7 AND x + c = 7",
        "SELECT rowid FROM v WHERE x + c = 7",
    ] {
        assert_eq!(ours(&mut s, sql), answer(&sqlite, sql), "{sql}");
    }
    Ok(())
}

/// What is copied into a view's text stands before what it is a copy of: parameters keep their values, columns their names.
#[test]
fn parameters_and_names_are_those_of_the_text() -> Result<()> {
    let mut s = Scratch::new("views-parameters");
    s.run(SCHEMA)?;
    let sql = "SELECT ?, id AS \"I d\", N, lower(n) FROM v AS z JOIN (SELECT ? AS q) AS y ON y.q = :q WHERE x + c = :sum AND n = ?";
    let parameters = [Value::from(5), Value::from(6), Value::from(6), Value::from(31), "X130".into()];
    let plan = s.sql.query(&mut s.session, &format!("EXPLAIN QUERY PLAN {sql}"), &parameters)?;
    assert!(!text(&plan).contains("total"), "of two tables, names of columns alone may be either's");
    let sql = sql.replace("WHERE x + c = :sum AND n", "WHERE z.x + z.c = :sum AND z.n");
    let plan = s.sql.query(&mut s.session, &format!("EXPLAIN QUERY PLAN {sql}"), &parameters)?;
    assert!(text(&plan).contains(" total"), "{}", text(&plan));
    let rows = s.sql.query(&mut s.session, &sql, &parameters)?;
    assert_eq!(text(&rows), "5|130|X130|x130");
    assert_eq!(rows.columns(), ["?", "I d", "n", "lower(n)"]);
    Ok(())
}

/// The prepared statement of a view asks for no right to its table.
#[test]
fn a_view_shows_what_its_maker_sees() -> Result<()> {
    let mut s = Scratch::new("views-rights");
    s.run(SCHEMA)?;
    let permit: Rc<Permit> =
        Rc::new(|table, access| access == Access::Reads && (table == "w" || table == "u"));
    let terms = Terms { permit: Some(permit), ..Terms::default() };
    let mut may = |sql: &str| s.sql.run_under(&mut s.session, sql, &[], &terms, &mut Nowhere).is_ok();
    assert!(may("SELECT key FROM w WHERE low = 'x40'"));
    assert!(may("SELECT key FROM w JOIN u ON u.a = w.key WHERE w.low = 'x40'"));
    assert!(!may("SELECT k FROM one WHERE x = 30 AND n >= 'X'"));
    assert!(!may("SELECT key FROM w WHERE low = 'x40' AND key IN (SELECT id FROM t)"));
    Ok(())
}

#[test]
fn documents_have_elements_through_views() -> Result<()> {
    let mut s = Scratch::new("views-documents");
    s.run(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, d LUATABLE, n INT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
        INSERT INTO t(d, n) SELECT json_object('a', json_object('n', i % 50, 'name', 'x' || i), 'k', json_array(i, i + 1)), i % 2 FROM n;
        CREATE VIEW v AS SELECT id AS k, d AS doc FROM t WHERE n = 1;
        CREATE VIEW w(k, n, name) AS SELECT k, doc.a.n, doc.a.name FROM v",
    )?;
    let queries = [
        ("SELECT k, doc.a.name FROM v WHERE doc.a.n = 7 ORDER BY k LIMIT 2", "7|x7 57|x57"),
        ("SELECT count(*) FROM v AS x WHERE x.doc.a.n BETWEEN 7 AND 8", "6"),
        ("SELECT sum(k) FROM v WHERE v.doc.a.n = 9 AND doc.k[1] > 100", "736"),
        ("SELECT k FROM t, v WHERE t.id = v.k AND v.doc.a.n = 9 AND t.d.a.n = 9 ORDER BY k LIMIT 1", "9"),
        ("SELECT name FROM w WHERE n = 7 ORDER BY k LIMIT 2", "x7 x57"),
        ("SELECT e.value FROM v, each(v.doc.k) AS e WHERE v.doc.a.n = 7 AND v.k < 10", "7 8"),
    ];
    for (sql, wanted) in queries {
        assert_eq!(s.rows(sql), wanted, "{sql}");
    }
    s.run("CREATE INDEX an ON t(d.a.n)")?;
    for (sql, wanted) in queries {
        let plan = s.rows(&format!("EXPLAIN QUERY PLAN {sql}"));
        assert!(plan.contains(" an"), "{sql}: {plan}");
        assert_eq!(s.rows(sql), wanted, "{sql}");
    }
    Ok(())
}

/// A condition of columns of a view, and of values.
fn condition(chance: &mut Chance, of: &str, depth: usize) -> String {
    let value = |chance: &mut Chance| {
        chance.pick(&["NULL", "0", "1", "7", "'x30'", "'X30'", "'none'", "30", "'31'", "1.0"])
    };
    let names = ["id", "n", "x", "c", "d"];
    let name = |chance: &mut Chance| format!("{of}{}", chance.pick(&names));
    match chance.below(if depth > 2 { 7 } else { 10 }) {
        0 => format!("coalesce(lower({of}n), 'none') {} {}", chance.pick(&["=", ">=", "<"]), value(chance)),
        1 => format!("{of}x + {of}c {} {}", chance.pick(&["=", "<", "IN (7, 8) AND 1 ="]), value(chance)),
        2 => format!("{of}x = {} AND {of}c = 1 AND {of}n IS NOT NULL", value(chance)),
        3 => format!("{} {} {}", name(chance), chance.pick(&["=", "<", "IS", "<>"]), value(chance)),
        4 => format!("{} BETWEEN {} AND {}", name(chance), value(chance), value(chance)),
        5 => format!("{} {} {}", name(chance), chance.pick(&["=", "<"]), name(chance)),
        6 => format!("{} COLLATE NOCASE = {}", name(chance), value(chance)),
        7 => format!("NOT ({})", condition(chance, of, depth + 1)),
        _ => {
            let word = chance.pick(&["AND", "AND", "OR"]);
            format!("({} {word} {})", condition(chance, of, depth + 1), condition(chance, of, depth + 1))
        }
    }
}

/// A view with columns id, n, x, c and d over t or over another such view.
fn view(chance: &mut Chance, name: &str) -> String {
    let over = chance.pick(&["t", "t AS s", "base", "base q"]);
    let of_base = over.starts_with('b');
    let (n, x) = if of_base { ("n", "x") } else { ("b", "a") };
    let n = match chance.below(4) {
        0 => format!("lower({n})"),
        1 => format!("coalesce(lower({n}), 'none')"),
        2 => format!("{n} COLLATE NOCASE"),
        _ => n.to_owned(),
    };
    let x = chance.pick(&[x, "+c", "CAST(d AS TEXT)"]);
    let filter = chance.pick(&[
        "",
        " WHERE c = 1",
        " WHERE id > 5 OR c IS NULL",
        " WHERE c = 1 AND id < 900 ORDER BY id DESC",
    ]);
    let distinct = chance.pick(&["", "", "", "", "DISTINCT "]);
    format!("CREATE VIEW {name}(id, n, x, c, d) AS SELECT {distinct}id, {n}, {x}, c, d FROM {over}{filter}")
}

#[test]
fn generated_views_answer_what_sqlite_answers() -> Result<()> {
    let mut chance = Chance::new();
    let base = "; CREATE VIEW base AS SELECT id, b AS n, a AS x, c, d FROM t WHERE a < 90";
    let mut s = Scratch::new("views-generated");
    s.run(&format!("{SCHEMA}{base}"))?;
    let sqlite = plain(&format!("{SCHEMA}{base}"));
    for round in 0..40 {
        let (one, two) = (format!("p{round}"), format!("q{round}"));
        for name in [&one, &two] {
            let sql = view(&mut chance, name);
            assert_eq!(ours(&mut s, &sql), answer(&sqlite, &sql), "{sql}");
        }
        for _ in 0..12 {
            let sql = match chance.below(6) {
                0 => format!("SELECT count(*), sum(id) FROM {one} WHERE {}", condition(&mut chance, "", 0)),
                1 => format!("SELECT * FROM {one} AS y WHERE {} ORDER BY id LIMIT 20", condition(&mut chance, "y.", 0)),
                2 => format!(
                    "SELECT y.id, z.id FROM {one} y {} {two} z ON y.id = z.id AND {} WHERE {} ORDER BY 1, 2 LIMIT 20",
                    chance.pick(&["JOIN", "LEFT JOIN", "RIGHT JOIN"]),
                    condition(&mut chance, "z.", 1),
                    condition(&mut chance, "y.", 1)
                ),
                3 => format!(
                    "SELECT id FROM u WHERE id IN (SELECT id FROM {one} WHERE {})
                        OR EXISTS (SELECT 1 FROM {two} y WHERE {} AND y.x = u.a) ORDER BY id",
                    condition(&mut chance, "", 1),
                    condition(&mut chance, "y.", 1)
                ),
                4 => format!(
                    "SELECT n FROM {one} WHERE {} UNION SELECT d FROM {two} WHERE {} ORDER BY 1 LIMIT 20",
                    condition(&mut chance, "", 1),
                    condition(&mut chance, "", 1)
                ),
                _ => format!("SELECT c, count(*), max(n) FROM {one} WHERE {} GROUP BY c ORDER BY c", condition(&mut chance, "", 0)),
            };
            let (here, there) = (ours(&mut s, &sql), answer(&sqlite, &sql));
            let made =
                answer(&sqlite, &format!("SELECT sql FROM sqlite_schema WHERE name IN ('{one}', '{two}')"));
            assert_eq!(here, there, "{sql}\n{made}");
        }
    }
    Ok(())
}
