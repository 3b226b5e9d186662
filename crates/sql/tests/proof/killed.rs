//! Processes that are killed every few milliseconds while they change rows with indexes, documents and triggers: what remains
//! agrees, rows with entries, documents with columns, counts of triggers with nodes.

use std::env;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use perilune::{node, Database, Durability};
use perilune_sql::{Connection, SqlState, Value};

use crate::chance::Chance;
use crate::scratch::Scratch;

/// The database of a process that works until it is killed.
const DATABASE: &str = "PERILUNE_SQL_WORKER";
const ACCOUNTS: usize = 40;
/// An index that processes make anew all the time.
const BUILT: &str = "CREATE INDEX built ON item(upper(word), id) WHERE id % 3 = 1";

/// Works in the processes that the test below starts; a test of nothing elsewhere.
#[test]
fn the_process_that_is_killed() {
    let Ok(path) = env::var(DATABASE) else { return };
    let mut chance = Chance::new();
    let database =
        Database::options().durability(Durability::None).open(Path::new(&path)).expect("the database");
    let mut session = database.session().expect("a session");
    let sql = Connection::open().expect("a connection");
    loop {
        let (from, to) = (chance.below(ACCOUNTS) as i64, chance.below(ACCOUNTS) as i64);
        let amount = chance.below(100) as i64;
        let whole = session.transaction(|session| {
            let change = "UPDATE account SET money = money + ?1, info.money = money + ?1, name = name || ?3 WHERE id = ?2";
            sql.execute(session, change, &[Value::from(-amount), Value::from(from), "".into()])?;
            sql.execute(session, change, &[Value::from(amount), Value::from(to), "".into()])?;
            session.increment(&node!("^transfers")?, 1)?;
            Ok(())
        });
        whole.expect("a transfer");
        let number = chance.below(500) as i64;
        let insert = "INSERT INTO item VALUES (?1, ?2, json_object('n', ?1, 'all', json_array(?1, ?2)))
            ON CONFLICT(id) DO UPDATE SET word = excluded.word, info.all[2] = excluded.word";
        let word = format!("w{}", chance.below(50));
        sql.execute(&mut session, insert, &[Value::from(number), Value::from(&word[..])]).expect("an item");
        sql.execute(&mut session, "DELETE FROM item WHERE info.n = ?1", &[Value::from(number / 2)])
            .expect("no item");
        // A cache, whose rows are used, evicted and brought back; what is evicted is missed.
        let key = Value::from(chance.below(60) as i64);
        let replace = "REPLACE INTO cache VALUES (?1, ?2)";
        sql.execute(&mut session, replace, &[key, Value::from(&word[..])]).expect("a row of the cache");
        for sentence in
            ["SELECT word FROM cache WHERE id = ?1", "EVICT cache ?1", "DELETE FROM cache WHERE id = ?1"]
        {
            let key = Value::from(chance.below(60) as i64);
            match sql.execute(&mut session, sentence, &[key]) {
                Ok(_) => {}
                Err(error) => assert_eq!(error.state(), SqlState::MISS, "{sentence}: {error}"),
            }
        }
        if chance.below(8) == 0 {
            // The other one does so, too: what one finds done already, or gone, is no error here.
            let _ = sql.execute(&mut session, "DROP INDEX IF EXISTS built", &[]);
            let _ = sql.execute(&mut session, BUILT, &[]);
        }
        println!("done");
    }
}

/// Killed with this.
struct Worker(Child);

impl Worker {
    /// One that has done something.
    fn start(path: &Path) -> Worker {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "--nocapture", "killed::the_process_that_is_killed"]);
        let mut child = command.env(DATABASE, path).stdout(Stdio::piped()).spawn().expect("a process");
        let lines = BufReader::new(child.stdout.take().expect("what it says")).lines();
        let mut done = lines.map_while(Result::ok).filter(|line| line == "done");
        assert!(done.next().is_some(), "it works");
        // It goes on saying so, and nobody listens: somebody must.
        std::thread::spawn(move || done.count());
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
const AGREE: [&str; 9] = [
    "SELECT sum(money) = 0 AND count(*) = 40 FROM account",
    "SELECT count(*) = 0 FROM account WHERE money IS NOT info.money",
    "SELECT count(*) = (SELECT count(*) FROM account WHERE money >= -1e9) FROM account",
    "SELECT sum(money) = (SELECT sum(money) FROM account WHERE info.money > -1000000000) FROM account",
    "SELECT count(*) = (SELECT count(*) FROM item WHERE word > '') FROM item",
    "SELECT count(*) = (SELECT count(*) FROM item WHERE info.n >= 0) FROM item",
    "SELECT count(*) = 0 FROM item WHERE id <> info.n OR word <> info.all[2] OR id <> info.all[1]",
    "SELECT count(*) = (SELECT made - gone FROM tally) FROM item",
    "SELECT count(*) = 0 FROM item a WHERE (SELECT count(*) FROM item b WHERE b.word = a.word AND b.id = a.id) <> 1",
];

#[test]
fn rows_entries_and_documents_agree_when_processes_are_killed() {
    let mut s = Scratch::new("killed");
    s.run(
        "CREATE TABLE account(id INTEGER PRIMARY KEY, name TEXT, money INT, info JSON);
        CREATE INDEX money ON account(money); CREATE INDEX inside ON account(info.money);
        WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 39)
            INSERT INTO account SELECT i, 'a' || i, 0, '{\"money\": 0}' FROM n;
        CREATE TABLE item(id INTEGER PRIMARY KEY, word TEXT, info JSON);
        CREATE INDEX rich ON account(abs(money), name) WHERE money > 0;
        CREATE INDEX low ON item(lower(word) || id); CREATE UNIQUE INDEX some ON item(id * 2) WHERE word > 'w3';
        CREATE INDEX word ON item(word); CREATE UNIQUE INDEX n ON item(info.n);
        CREATE LRUINDEX ON account; CREATE LFUINDEX ON item;
        CREATE TABLE cache(id INTEGER PRIMARY KEY, word TEXT); CREATE INDEX of ON cache(word);
        CREATE LRUINDEX ON cache; CREATE LFUINDEX ON cache; ALTER TABLE cache SET DIRTY;
        CREATE TABLE tally(made INT, gone INT); INSERT INTO tally VALUES (0, 0);
        CREATE TRIGGER made AFTER INSERT ON item BEGIN UPDATE tally SET made = made + 1; END;
        CREATE TRIGGER gone AFTER DELETE ON item BEGIN UPDATE tally SET gone = gone + 1; END",
    )
    .expect("a schema");
    let path = s.database.path().to_owned();
    let mut chance = Chance::new();
    let rounds = env::var("PERILUNE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(12);
    for round in 0..rounds {
        let workers = [Worker::start(&path), Worker::start(&path)];
        std::thread::sleep(Duration::from_micros(chance.below(20_000) as u64));
        drop(workers);
        for query in AGREE {
            assert_eq!(s.rows(query), "1", "round {round}: {query}");
        }
        // Whoever was killed has left it begun, made or gone.
        let _ = s.run(BUILT);
        let found = s.sql.verify(&mut s.session).expect("a look at all tables");
        assert_eq!((found.faults, found.skipped), (Vec::new(), Vec::new()), "round {round}");
        for (index, count) in [
            ("account.rich", "SELECT count(*) FROM account WHERE +money > 0"),
            ("item.low", "SELECT count(*) FROM item"),
            ("item.some", "SELECT count(*) FROM item WHERE +word > 'w3'"),
            ("item.built", "SELECT count(*) FROM item WHERE +id % 3 = 1"),
        ] {
            let entries = perilune::Node::new(&format!("^{index}")).expect("a name");
            let entries = s.session.count_valued(&entries).expect("a count");
            assert_eq!(s.rows(count), entries.to_string(), "round {round}: {index}");
        }
        for query in [
            "SELECT count(*) = 0 FROM item a WHERE NOT EXISTS (SELECT 1 FROM item b WHERE lower(b.word) || b.id = lower(a.word || a.id))",
            "SELECT count(*) = (SELECT count(*) FROM item WHERE id * 2 >= 0 AND word > 'w3') FROM item WHERE +word > 'w3'",
            "SELECT count(*) = (SELECT count(*) FROM item WHERE upper(word) > 'W' AND id % 3 = 1) FROM item WHERE +id % 3 = 1",
        ] {
            assert_eq!(s.rows(query), "1", "round {round}: {query}");
        }
        for (table, index) in [("account", "money"), ("account", "inside"), ("item", "word"), ("item", "n")] {
            let entries = perilune::Node::new(&format!("^{table}.{index}")).expect("a name");
            let entries = s.session.count_valued(&entries).expect("a count");
            assert_eq!(
                s.rows(&format!("SELECT count(*) FROM {table}")),
                entries.to_string(),
                "round {round}: {index}"
            );
        }
    }
    let report = s.database.verify().expect("a look");
    assert!(report.is_sound(), "{report:?}");
}
