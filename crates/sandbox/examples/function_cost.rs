//! What a Lua function in a select list costs a row.
//!
//!     cargo run --release -p perilune-sandbox --example function_cost -- [ROUNDS] [SIDE]
//!
//! The sides, or those whose names contain SIDE, take turns, over a table of 100,000 rows in a database of durability `none`: ns a
//! row, the median by the clock, and the processor's time on the mean, each with what is above the column alone. A statement that
//! calls a function runs as a whole transaction, which the column does beside one call of `one()` for all rows.

use std::rc::Rc;
use std::time::Instant;
use std::{env, fs, process, thread};

use perilune::{Database, Durability, Session};
use perilune_sandbox::sql::{Limits, LuaFunctions};
use perilune_sandbox::SCRIPT_STACK;
use perilune_sql::{Connection, Nowhere};

const ROWS: i64 = 100_000;

const SIDES: &[(&str, &str)] = &[
    ("the column", "SELECT n FROM t"),
    ("the column, whole", "SELECT n FROM t WHERE (SELECT one())"),
    ("abs(n), SQLite's", "SELECT abs(n) FROM t"),
    ("length(name), SQLite's", "SELECT length(name) FROM t"),
    ("one()", "SELECT one() FROM t"),
    ("plus(n)", "SELECT plus(n) FROM t"),
    ("same(name)", "SELECT same(name) FROM t"),
    ("gross(n, 0.25)", "SELECT gross(n, 0.25) FROM t"),
];

/// Nanoseconds that the thread has had a processor for, to a tick of the kernel's.
fn processor_time() -> f64 {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    told.split(' ').next().and_then(|time| time.parse().ok()).unwrap_or(0.0)
}

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
    let wanted = env::args().nth(2).unwrap_or_default();
    let sides: Vec<_> = SIDES.iter().filter(|(name, _)| name.contains(&wanted)).collect();
    let mut times: Vec<Vec<f64>> = vec![Vec::new(); sides.len()];
    let mut processor = vec![0.0; sides.len()];
    for _ in 0..rounds {
        for (side, (_, text)) in sides.iter().enumerate() {
            let (begun, before) = (Instant::now(), processor_time());
            sql.run(&mut session, text, &[], &mut Nowhere).expect("rows");
            times[side].push(begun.elapsed().as_nanos() as f64 / ROWS as f64);
            processor[side] += (processor_time() - before) / (ROWS * rounds as i64) as f64;
        }
    }
    println!("{:<24} {:>8} {:>8} {:>10} {:>8}", "ns a row", "clock", "above", "processor", "above");
    let mut first = None;
    for (side, (name, _)) in sides.iter().enumerate() {
        times[side].sort_by(f64::total_cmp);
        let (clock, processor) = (times[side][rounds / 2], processor[side]);
        let (clock_of_first, processor_of_first) = *first.get_or_insert((clock, processor));
        let (above, more) = (clock - clock_of_first, processor - processor_of_first);
        println!("{name:<24} {clock:>8.0} {above:>8.0} {processor:>10.0} {more:>8.0}");
    }
    let _ = fs::remove_dir_all(&directory);
}
