//! Times statements on tables in the tree beside SQLite in memory and in a WAL file, in one run, in turns.
//!
//!     cargo run --release -p perilune-sql --example compare -- [ROUNDS] [MILLISECONDS]
//!
//! Each statement is a transaction of its own on all sides; ours is at durability `none`, SQLite at synchronous=OFF.

use std::hint::black_box;
use std::time::{Duration, Instant};

use perilune::{Database, Durability, Session};
use perilune_sql::{Connection, Nowhere, Row, Sink, Value};
use perilune_sqlite::{Connection as Sqlite, Statement, ValueRef};

const ROWS: i64 = 100_000;

/// Looks at each value, as SQLite's side does.
#[derive(Default)]
struct Looks(u64);

impl Sink for Looks {
    fn start(&mut self, _columns: &[String]) -> perilune_sql::Result<()> {
        Ok(())
    }

    fn row(&mut self, row: &Row<'_>) -> perilune_sql::Result<()> {
        for column in 0..row.len() {
            self.0 += looked(row.get(column));
        }
        Ok(())
    }
}

fn looked(value: ValueRef<'_>) -> u64 {
    match value {
        ValueRef::Integer(integer) => integer as u64,
        ValueRef::Text(text) => text.len() as u64,
        _ => 1,
    }
}

/// A case: its name, its statement, and its parameters by a random number and a count.
type Case = (&'static str, &'static str, fn(i64, i64) -> Vec<Value>);

const CASES: &[Case] = &[
    ("point SELECT", "SELECT name, n FROM t WHERE id = ?1", |random, _| vec![random.into()]),
    ("UPDATE n = n + 1", "UPDATE t SET n = n + 1 WHERE id = ?1", |random, _| vec![random.into()]),
    ("INSERT", "INSERT INTO u(name, n) VALUES (?1, ?2)", |random, count| {
        vec!["a name of some".into(), (random + count).into()]
    }),
    ("INSERT, an index", "INSERT INTO v(name, n) VALUES (?1, ?2)", |random, _| {
        vec!["a name of some".into(), random.into()]
    }),
    ("index, 10 rows", "SELECT id, name FROM t WHERE g = ?1", |random, _| vec![(random / 10).into()]),
    ("range of 100", "SELECT id, name, n FROM t WHERE id BETWEEN ?1 AND ?1 + 99", |random, _| {
        vec![random.into()]
    }),
    ("count(*) of 1000", "SELECT count(*) FROM t WHERE id BETWEEN ?1 AND ?1 + 999", |random, _| {
        vec![random.into()]
    }),
];

const SCHEMA: &str = "CREATE TABLE t(id INTEGER PRIMARY KEY, name TEXT, n INT, g INT);
    CREATE INDEX tg ON t(g);
    CREATE TABLE u(id INTEGER PRIMARY KEY, name TEXT, n INT);
    CREATE TABLE v(id INTEGER PRIMARY KEY, name TEXT, n INT);
    CREATE INDEX vn ON v(n);";

const FILL: &str = "INSERT INTO t SELECT ?1, 'name number ' || ?1, 0, ?1 / 10";

struct Lite {
    sqlite: Sqlite<()>,
    statements: Vec<Statement<()>>,
}

impl Lite {
    fn new(path: &str) -> Lite {
        let sqlite = Sqlite::open_at(path).expect("a connection");
        let run = |sql: &str| sqlite.execute(&mut (), sql).expect("a statement");
        run("PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF");
        run(SCHEMA);
        run(&format!(
            "WITH RECURSIVE i(x) AS (SELECT 0 UNION ALL SELECT x + 1 FROM i WHERE x < {ROWS} - 1) {}",
            FILL.replace("?1", "x") + " FROM i"
        ));
        let prepare = |case: &Case| sqlite.prepare(&mut (), case.1).expect("a statement").0.expect("one");
        let statements = CASES.iter().map(prepare).collect();
        Lite { sqlite, statements }
    }

    fn run(&mut self, case: usize, parameters: &[Value]) {
        let statement = &mut self.statements[case];
        for (at, parameter) in parameters.iter().enumerate() {
            statement.bind(at + 1, parameter.as_ref()).expect("a parameter");
        }
        while statement.step(&mut ()).expect("a row") {
            for column in 0..statement.column_count() {
                black_box(looked(statement.column(column)));
            }
        }
        statement.reset();
        black_box(self.sqlite.changes());
    }
}

fn main() {
    let mut numbers = std::env::args().skip(1).filter_map(|text| text.parse::<u64>().ok());
    let (rounds, time) = (numbers.next().unwrap_or(5), Duration::from_millis(numbers.next().unwrap_or(100)));
    let directory = std::env::temp_dir().join(format!("perilune-compare-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    let options = Database::options().durability(Durability::None);
    let mut session: Session =
        options.open(directory.join("t.db")).expect("a database").session().expect("a session");
    let sql = Connection::open().expect("a connection");
    sql.execute_script(&mut session, SCHEMA).expect("tables");
    for row in 0..ROWS {
        sql.execute(&mut session, FILL, &[row.into()]).expect("a row");
    }
    let mut memory = Lite::new(":memory:");
    let mut wal = Lite::new(&directory.join("t.sqlite").to_string_lossy());
    println!(
        "ns a statement, medians of {rounds} rounds of {} ms in turns; ratios of speed",
        time.as_millis()
    );
    println!("{:<20} {:>9} {:>9} {:>9} {:>9} {:>7}", "", "ours", ":memory:", "WAL", "/memory", "/WAL");
    let mut random = 88_172_645_463_325_252_u64;
    for (number, case) in CASES.iter().enumerate() {
        let mut times = [Vec::new(), Vec::new(), Vec::new()];
        for _ in 0..rounds {
            for (side, times) in times.iter_mut().enumerate() {
                let (start, mut count) = (Instant::now(), 0_i64);
                while count % 16 != 0 || start.elapsed() < time {
                    random ^= random << 13;
                    random ^= random >> 7;
                    random ^= random << 17;
                    let parameters = case.2((random % (ROWS as u64 - 1000)) as i64, count);
                    match side {
                        0 if case.1.starts_with("SELECT") => {
                            let mut looks = Looks::default();
                            sql.run(&mut session, case.1, &parameters, &mut looks).expect("rows");
                            black_box(looks.0);
                        }
                        0 => {
                            sql.run(&mut session, case.1, &parameters, &mut Nowhere).expect("a change");
                        }
                        1 => memory.run(number, &parameters),
                        _ => wal.run(number, &parameters),
                    }
                    count += 1;
                }
                times.push(start.elapsed().as_nanos() as f64 / count as f64);
            }
        }
        let median = |times: &mut Vec<f64>| {
            times.sort_by(f64::total_cmp);
            times[times.len() / 2]
        };
        let [ours, memory, wal] = times.each_mut().map(median);
        let (by_memory, by_wal) = (memory / ours, wal / ours);
        println!("{:<20} {ours:>9.0} {memory:>9.0} {wal:>9.0} {by_memory:>9.2} {by_wal:>7.2}", case.0);
    }
    std::fs::remove_dir_all(&directory).expect("the directory goes");
}
