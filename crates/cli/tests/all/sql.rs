//! `perilune sql`: statements by option and by standard input, forms of rows, errors, import of CSV.

use std::io::Write;
use std::process::Stdio;

use crate::program::{told, Place};

#[test]
fn statements_run_and_rows_are_shown() {
    let place = Place::new();
    let run = |mode: &str, text: &str| place.run(&["sql", "t.db", "--mode", mode, "-c", text]);
    let (code, out, err) = run(
        "list",
        "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, x REAL);
        INSERT INTO t VALUES (1, 'Ada', 1.5), (2, 'say \"hi\"', NULL); SELECT * FROM t",
    );
    assert_eq!((code, &out[..], &err[..]), (0, "1|Ada|1.5\n2|say \"hi\"|\n", ""));
    assert_eq!(run("csv", "SELECT id, name FROM t").1, "id,name\n1,Ada\n2,\"say \"\"hi\"\"\"\n");
    assert_eq!(run("json", "SELECT id, x FROM t").1, "[\n{\"id\":1,\"x\":1.5},\n{\"id\":2,\"x\":null}\n]\n");
    assert_eq!(run("table", "SELECT id, name FROM t WHERE id = 1").1, "id  name\n--  ----\n1   Ada\n");
    assert_eq!(run("line", "SELECT id, name FROM t WHERE id = 1").1, "  id = 1\nname = Ada\n\n");
    let (code, out, err) = run("list", "SELECT 1; SELECT nope FROM t");
    assert_eq!((code, &out[..]), (1, "1\n"));
    assert_eq!(err, "perilune: 42703: no such column: nope (at byte 7)\n");
}

/// `check` holds rows against all of their indexes, also those on functions and those on how rows are used.
#[test]
fn tables_are_checked_with_their_indexes() {
    let place = Place::new();
    let made = "CREATE FUNCTION twice(x) DETERMINISTIC AS 'return 2 * x'; CREATE TABLE t(id INTEGER PRIMARY KEY, a INT);
        INSERT INTO t VALUES (1, 10), (2, 20); CREATE INDEX by_two ON t(twice(a)); CREATE LRUINDEX ON t; CREATE LFUINDEX ON t;
        UPDATE t SET a = 30 WHERE id = 1; ALTER TABLE t SET DIRTY; EVICT t 2; SELECT a FROM t WHERE id = 1";
    assert_eq!(place.run(&["sql", "t.db", "-c", made]), (0, "30\n".into(), String::new()));
    let (code, out, err) = place.run(&["check", "t.db"]);
    assert!(code == 0 && out.ends_with(" nodes with a value, 1 rows of 1 tables\n"), "{out}{err}");
    let stray = "require('perilune').node('^t.by_two')[99][7].__ = ''";
    assert_eq!(place.run(&["--db", "t.db", "-e", stray]).0, 0);
    let (code, out, err) = place.run(&["check", "t.db"]);
    assert_eq!(
        (code, &out[..]),
        (1, "index by_two has 2 entries of 1 rows of t: REINDEX by_two makes it anew\n")
    );
    assert!(err.contains("1 faults"), "{err}");
    assert_eq!(place.run(&["sql", "t.db", "-c", "REINDEX by_two"]).0, 0);
    let (_, out, _) = place.run(&["check", "t.db", "--json"]);
    let found: serde_json::Value = serde_json::from_str(&out).expect("JSON");
    assert_eq!((&found["sound"], &found["tables"], &found["rows"]), (&true.into(), &1.into(), &1.into()));
}

/// A dump takes no more memory than a row: 80 MiB of rows, where others end at 64. It is loaded again, and is the same table.
#[test]
fn a_dump_of_any_size_is_loaded_again() {
    let place = Place::new();
    let run = |path: &str, text: &str| place.run(&["sql", path, "-c", text]);
    let made = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, n NUMERIC, price DECIMAL(6,2));
        CREATE TABLE small(id INTEGER PRIMARY KEY, name TEXT, n NUMERIC, price DECIMAL(6,2), d DECIMAL, on_day DATE, raw BLOB, r REAL,
            ok BOOLEAN, UNIQUE(name, id)); CREATE INDEX by_price ON small(price);
        INSERT INTO small VALUES (1, 'it''s \\ x', 9007199254740993, 0.1, 0.125, '2026-11-27', x'00ff', 1e300, 1),
            (2, NULL, 0.5, 9999.99, 123456789012345678, NULL, NULL, 2, 0), (-3, '', 'text', NULL, -7, 'x', x'', NULL, NULL);
        WITH RECURSIVE c(i) AS (VALUES (1) UNION ALL SELECT i + 1 FROM c WHERE i < 800)
            INSERT INTO t SELECT i, printf('%.*c', 100000, 'x'), i, 0.1 FROM c";
    assert_eq!(run("t.db", made).2, "");
    assert!(run("t.db", "SELECT * FROM t").2.contains("54000"), "more than is kept");
    let (code, out, err) = run("t.db", "DUMP t TO MYSQL; DUMP small TO MYSQL; SELECT 'behind'");
    assert_eq!((code, &err[..]), (0, ""));
    assert!(out.len() > 80_000_000 && out.ends_with("\nbehind\n"), "{} bytes", out.len());
    let dump = out.strip_suffix("behind\n").expect("the last row");
    let mut child = place
        .command(&["sql", "u.db"])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it starts");
    child.stdin.take().expect("piped").write_all(dump.as_bytes()).expect("it reads");
    assert_eq!(told(child.wait_with_output().expect("it ends")).2, "");
    for query in [
        "SELECT id, name, n, typeof(n), price, d, on_day, hex(raw), r, ok FROM small ORDER BY id",
        "SELECT count(*), sum(id), sum(length(name)), sum(n), sum(price) FROM t",
        "SELECT price + 0.2 FROM small WHERE price = 0.1",
    ] {
        assert_eq!(run("u.db", query), run("t.db", query), "{query}");
    }
    for mode in ["list", "csv", "json", "line", "table"] {
        let all = |text: &str| place.run(&["sql", "t.db", "--mode", mode, "-c", text]);
        assert_eq!(all("DUMP small"), all("SELECT * FROM small"), "{mode}");
    }
    assert!(run("t.db", "DUMP nobody").2.contains("42P01"));
}

#[test]
fn a_script_reads_csv_and_ends_at_an_error() {
    let place = Place::new();
    place.file("people.csv", "name,born\r\nAda,1815\r\n\"Ben, Jr\",1900\r\n");
    let mut child = place
        .command(&["sql", "t.db"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    let script = "CREATE TABLE people(id INTEGER PRIMARY KEY, name TEXT, born INT);\nCREATE INDEX born ON people(born);
.import people.csv people
.schema
SELECT name FROM people WHERE born > 1850;
INSERT INTO people(id) VALUES (1);
SELECT 'not reached';
";
    child.stdin.take().expect("piped").write_all(script.as_bytes()).expect("it reads");
    let (code, out, err) = told(child.wait_with_output().expect("it ends"));
    assert_eq!(code, 1);
    assert!(
        out.contains("CREATE TABLE \"people\" (id INTEGER PRIMARY KEY, name TEXT, born INT);\n"),
        "{out}"
    );
    assert!(out.contains("CREATE INDEX born ON people(\"born\");\n"), "{out}");
    assert!(out.ends_with("Ben, Jr\n"), "{out}");
    assert_eq!(err, "2 rows\nperilune: 23505: UNIQUE constraint failed: people.id\n");
}

/// The guide's example, as it stands there, and what it says that is printed.
/// What `perilune sql` keeps a program calls, in whose Lua it does not run, and the other way round.
#[test]
fn functions_are_those_of_all_programs() {
    let place = Place::new();
    let made = "CREATE FUNCTION twice(x) AS 'return 2 * x'; CREATE TABLE t(id INTEGER PRIMARY KEY, n INT DEFAULT (twice(21)))";
    assert_eq!(place.run(&["sql", "t.db", "-c", made]), (0, String::new(), String::new()));
    let program = "local db = require 'perilune'.open 't.db'
        db:sql 'INSERT INTO t(id) VALUES (1)'
        db:sql \"CREATE FUNCTION half(x) AS 'return x / 2'\"
        db:sql 'UPDATE t SET n = half(n) + twice(1) WHERE id = 1'
        db:sql \"CREATE FUNCTION forever() AS 'while true do end'\"
        print(db:sql 'SELECT n FROM t'[1].n, select(2, pcall(db.sql, db, 'SELECT forever()')))";
    let (code, out, err) = place.run(&["-e", program]);
    assert_eq!((code, &err[..]), (0, ""));
    assert!(out.starts_with("23\t") && out.contains("57014: function forever: it takes too long"), "{out}");
    assert_eq!(place.run(&["sql", "t.db", "-c", "SELECT half(n) + twice(n) FROM t"]).1, "57.5\n");
}

#[test]
fn functions_in_lua_do_what_the_guide_says() {
    let page =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/lua-in-sql.md"));
    let page = page.expect("the page");
    let block = |kind: &str| {
        let (_, behind) = page.split_once(&format!("```{kind}\n")).expect("a block");
        behind.split_once("```").expect("its end").0.to_owned()
    };
    let place = Place::new();
    let script = std::fs::File::open(place.file("shop.sql", &block("sql"))).expect("the script");
    let (code, out, err) = told(place.command(&["sql", "shop.db"]).stdin(script).output().expect("it runs"));
    assert_eq!((code, out, &err[..]), (0, block("text"), ""));
    // Another process sees the functions, and so does a program.
    let (_, out, _) = place.run(&["sql", "shop.db", "-c", "SELECT sell('corn', 1)"]);
    assert_eq!(out, "sold\n");
    let lua = "print(require('perilune').use():sql('SELECT gross(1, 1) AS g')[1].g)";
    assert_eq!(place.run(&["--db", "shop.db", "-e", lua]).1, "2\n");
}

#[test]
fn files_of_functions_are_kept_for_all() {
    let place = Place::new();
    let prices = "-- DETERMINISTIC\nfunction gross(net)\n  return net * 1.25\nend\nfunction label(n) return '<' .. n .. '>' end\n";
    place.file("prices.lua", prices);
    place.file("wrong.lua", "function label(n) return 'x' end\nprint 'x'\n");
    place.file("broken.lua", "function gross(n)\n  return return\nend\n");
    let statement = "SELECT gross(4), label('a')";
    let (code, out, err) = place.run(&["sql", "t.db", "--functions", "prices.lua", "-c", statement]);
    assert_eq!((code, &out[..], &err[..]), (0, "5|<a>\n", ""));
    for (file, status, wanted) in
        [("wrong.lua", 1, "line 2"), ("broken.lua", 1, "gross:2:"), ("none.lua", 3, "none.lua")]
    {
        let (code, _, err) = place.run(&["sql", "t.db", "--functions", file, "-c", statement]);
        assert!(code == status && err.contains(wanted), "{file}: {code} {err}");
    }
    let (_, out, _) = place.run(&["sql", "t.db", "-c", ".functions prices.lua\nSELECT label(gross(8))"]);
    assert_eq!(out, "<10>\n");
}
