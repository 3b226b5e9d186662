//! What a Lua function in a select list costs a row.
//!
//!     cargo run --release -p perilune-luahost --example function_cost -- [ROUNDS]
//!
//! The sides take turns, over a table of 100,000 rows in a database of durability `none`; medians of the time a row, in ns, and
//! what is above the column alone.

use std::rc::Rc;
use std::time::Instant;
use std::{env, fs, process, thread};

use perilune::{Database, Durability, Session};
use perilune_luahost::sandbox::SCRIPT_STACK;
use perilune_luahost::sql::{Limits, LuaFunctions};
use perilune_sql::{Connection, Nowhere};

const ROWS: i64 = 100_000;

const SIDES: &[(&str, &str)] = &[
    ("the column", "SELECT n FROM t"),
    ("abs(n), SQLite's", "SELECT abs(n) FROM t"),
    ("length(name), SQLite's", "SELECT length(name) FROM t"),
    ("one()", "SELECT one() FROM t"),
    ("plus(n)", "SELECT plus(n) FROM t"),
    ("same(name)", "SELECT same(name) FROM t"),
    ("gross(n, 0.25)", "SELECT gross(n, 0.25) FROM t"),
];

fn main() {
    let rounds = env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(9);
    let thread = thread::Builder::new().stack_size(SCRIPT_STACK).spawn(move || measure(rounds));
    thread.expect("a thread").join().expect("the measures");
}

fn fill(session: &mut Session, sql: &Connection) {
    let script = format!(
        "CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, name TEXT);
         INSERT INTO t WITH RECURSIVE k(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM k WHERE i < {ROWS})
             SELECT i, i * 7 % 1000, 'name ' || i FROM k;
         CREATE FUNCTION one() AS 'return 1';
         CREATE FUNCTION plus(n) AS 'return n + 1';
         CREATE FUNCTION same(name) AS 'return name';
         CREATE FUNCTION gross(net, rate) DETERMINISTIC AS 'return net * (1 + rate)'"
    );
    sql.execute_script(session, &script).expect("the table");
}

fn measure(rounds: usize) {
    let directory = env::temp_dir().join(format!("perilune-function-cost-{}", process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let database =
        Database::options().durability(Durability::None).open(directory.join("t.db")).expect("a database");
    let mut session = database.session().expect("a session");
    let sql = Connection::open().expect("a connection");
    sql.set_interpreter(Rc::new(LuaFunctions::new(Limits { time: None, ..Limits::default() })));
    fill(&mut session, &sql);
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); SIDES.len()];
    for _ in 0..rounds {
        for (side, (_, text)) in SIDES.iter().enumerate() {
            let begun = Instant::now();
            sql.run(&mut session, text, &[], &mut Nowhere).expect("rows");
            times[side].push(begun.elapsed().as_nanos() as f64 / ROWS as f64);
        }
    }
    let median = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        times[times.len() / 2]
    };
    let medians: Vec<f64> = times.iter_mut().map(median).collect();
    println!("{:<24} {:>8} {:>8}", "ns a row", "all", "above");
    for ((name, _), time) in SIDES.iter().zip(&medians) {
        println!("{name:<24} {time:>8.0} {:>8.0}", time - medians[0]);
    }
    let _ = fs::remove_dir_all(&directory);
}
