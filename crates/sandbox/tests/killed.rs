//! Triggers in Lua in processes that are killed every few milliseconds: what they have written agrees with the rows.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::rc::Rc;
use std::time::Duration;
use std::{env, fs, process, thread};

use perilune::{node, Database, Durability, Session, Value as NodeValue};
use perilune_sandbox::sql::{Limits, LuaFunctions};
use perilune_sandbox::SCRIPT_STACK;
use perilune_sql::{Connection, SqlState, Value};

/// The database of a process that works until it is killed.
const DATABASE: &str = "PERILUNE_LUA_WORKER";
const ROWS: usize = 30;

/// Four triggers write nodes and rows, one changes rows, one refuses some.
const SCHEMA: &str = "
    CREATE TABLE t(id INTEGER PRIMARY KEY, n INT, twice INT); CREATE INDEX tn ON t(n);
    CREATE TABLE log(id INTEGER PRIMARY KEY AUTOINCREMENT, what TEXT, n INT);
    CREATE FUNCTION added(n) AS 'perilune.node(\"^sum\"):incr(n)
        SQL(\"INSERT INTO log(what, n) VALUES (?, ?)\", \"in\", n)';
    CREATE FUNCTION taken(n) AS 'perilune.node(\"^sum\"):incr(-n)
        SQL(\"INSERT INTO log(what, n) VALUES (?, ?)\", \"out\", n)';
    CREATE LUATRIGGER l ON t INSERT \"added(n)\"; CREATE LUATRIGGER l ON t DELETE \"taken(n)\";
    CREATE LUATRIGGER l ON t PREUPDATE \"taken(n)\"; CREATE LUATRIGGER l ON t POSTUPDATE \"added(n)\";
    CREATE TRIGGER twice BEFORE INSERT ON t LANGUAGE LUA AS 'new.twice = 2 * new.n';
    CREATE TRIGGER again BEFORE UPDATE ON t LANGUAGE LUA AS '
        perilune.node(\"^tried\"):incr(1)
        if new.n == 77 then error(\"not this one\", 0) end
        new.twice = 2 * new.n'";

struct Chance(u64);

impl Chance {
    fn new() -> Chance {
        let given = env::var("PERILUNE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given
            .unwrap_or_else(|| std::time::UNIX_EPOCH.elapsed().map_or(1, |since| since.as_nanos() as u64));
        println!("PERILUNE_SEED={seed}");
        Chance(seed | 1)
    }

    /// A number below another one, by xorshift64*.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) as usize % end
    }
}

fn on_a_large_stack(work: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(SCRIPT_STACK).spawn(work).expect("a thread");
    thread.join().expect("it works");
}

fn open(path: &Path) -> (Database, Session, Connection) {
    let database = Database::options().durability(Durability::None).open(path).expect("the database");
    let session = database.session().expect("a session");
    let sql = Connection::open().expect("a connection");
    sql.set_interpreter(Rc::new(LuaFunctions::new(Limits::default())));
    (database, session, sql)
}

/// Works in the processes that the test below starts; a test of nothing elsewhere.
#[test]
fn the_process_that_is_killed() {
    let Ok(path) = env::var(DATABASE) else { return };
    on_a_large_stack(move || {
        let mut chance = Chance::new();
        let (_database, mut session, sql) = open(Path::new(&path));
        loop {
            let (id, n) = (Value::from(chance.below(ROWS) as i64), Value::from(chance.below(100) as i64));
            let changes = [
                ("INSERT OR IGNORE INTO t(id, n) VALUES (?1, ?2)", vec![id.clone(), n.clone()]),
                ("UPDATE t SET n = ?2 WHERE id IN (?1, ?1 + 1)", vec![id.clone(), n]),
                ("DELETE FROM t WHERE id = ?1 + 2", vec![id]),
            ];
            for (text, given) in changes {
                if let Err(error) = sql.execute(&mut session, text, &given) {
                    assert_eq!(error.state(), SqlState::FUNCTION, "{error}");
                }
            }
            println!("done");
        }
    });
}

/// Killed with this.
struct Worker(Child);

impl Worker {
    /// One that has done something.
    fn start(path: &Path) -> Worker {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "--nocapture", "the_process_that_is_killed"]);
        let mut child = command.env(DATABASE, path).stdout(Stdio::piped()).spawn().expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("what it says")).lines();
        let mut done = lines.map_while(Result::ok).filter(|line| line == "done");
        assert!(done.next().is_some(), "it works");
        // It goes on saying so, and nobody listens: somebody must.
        thread::spawn(move || done.count());
        Worker(child)
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What must be so, as a query that answers 1.
const AGREE: [&str; 4] = [
    "SELECT coalesce(sum(n), 0) = (SELECT coalesce(sum(iif(what = 'in', n, -n)), 0) FROM log) FROM t",
    "SELECT count(*) = (SELECT coalesce(sum(iif(what = 'in', 1, -1)), 0) FROM log) FROM t",
    "SELECT count(*) = 0 FROM t WHERE twice IS NOT 2 * n OR n = 77 AND twice <> 154",
    "SELECT count(*) = (SELECT count(*) FROM t WHERE n >= 0) FROM t",
];

#[test]
fn what_triggers_write_agrees_with_the_rows_when_processes_are_killed() {
    on_a_large_stack(|| {
        let directory = env::temp_dir().join(format!("perilune-sandbox-killed-{}", process::id()));
        fs::create_dir_all(&directory).expect("a directory");
        let path = directory.join("t.db");
        let (database, mut session, sql) = open(&path);
        sql.execute_script(&mut session, SCHEMA).expect("a schema");
        let mut chance = Chance::new();
        let rounds = env::var("PERILUNE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(8);
        for round in 0..rounds {
            let workers = [Worker::start(&path), Worker::start(&path)];
            thread::sleep(Duration::from_micros(chance.below(20_000) as u64));
            drop(workers);
            for query in AGREE {
                let rows = sql.query(&mut session, query, &[]).expect("an answer");
                assert_eq!(rows.first(), Some(&Value::Integer(1)), "round {round}: {query}");
            }
            let sum = session.get(&node!("^sum").expect("a name")).expect("a read");
            let rows = sql.query(&mut session, "SELECT coalesce(sum(n), 0) FROM t", &[]).expect("a sum");
            let sum = match sum {
                Some(NodeValue::Int(sum)) => sum,
                other => panic!("round {round}: {other:?}"),
            };
            assert_eq!(rows.first(), Some(&Value::Integer(sum)), "round {round}: the node");
        }
        let tried = session.get(&node!("^tried").expect("a name")).expect("a read");
        assert!(tried.is_some(), "rows were changed");
        let report = database.verify().expect("a look");
        assert!(report.is_sound(), "{report:?}");
        drop((session, sql, database));
        let _ = fs::remove_dir_all(&directory);
    });
}
