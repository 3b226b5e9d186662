//! LDBC's social network: its short reads and some of its complex reads as walks, held against SQL's joins over the same data.
//!
//!     cargo run --release -p perilune-sql --example social_network -- DIRECTORY
//!
//! DIRECTORY holds `static` and `dynamic` as LDBC's generator writes them for Cypher; `make social-network` says where they come
//! from. Each file becomes a table and a part of a graph in one database. Each read is asked for many parameters by both, and any
//! difference ends the program. The reads: <https://ldbcouncil.org/ldbc_snb_docs/>.

mod joins;
mod load;
mod walks;

use std::path::PathBuf;
use std::time::{Duration, Instant};

use perilune::{node, Database, Session};
use perilune_graph::{Graph, GraphOptions, Result, View};
use perilune_sql::{Connection, Value};

/// Rows as text, in the order of the answer.
type Rows = Vec<Vec<String>>;
type Walk = fn(&mut View<'_>, &[String]) -> Result<Rows>;

/// A read, both ways.
struct Read {
    name: &'static str,
    walk: Walk,
    join: &'static str,
    /// The parameters of each call.
    calls: Vec<Vec<String>>,
}

fn main() {
    let Some(directory) = std::env::args().nth(1).map(PathBuf::from) else {
        eprintln!("social_network DIRECTORY: where `static` and `dynamic` are");
        std::process::exit(2);
    };
    let place = std::env::temp_dir().join(format!("perilune-social-network-{}", std::process::id()));
    std::fs::create_dir_all(&place).expect("a directory for the database");
    let outcome = compare(&directory, &place);
    let _ = std::fs::remove_dir_all(&place);
    outcome.expect("both read the data");
}

fn compare(files: &std::path::Path, place: &std::path::Path) -> Result<()> {
    let database = Database::open(place.join("t.db"))?;
    let mut session = database.session()?;
    let sql = Connection::open().expect("a connection");
    let mut graph = Graph::create(&mut session, &node!("^snb")?, &GraphOptions::default())?;
    let begun = Instant::now();
    load::load(files, &mut session, &sql, &mut graph)?;
    let report = graph.check(&mut session)?;
    assert_eq!(report.faults, [""; 0]);
    println!(
        "{} vertices and {} edges loaded into both in {:.1} s; the graph is sound",
        report.vertices,
        report.edges,
        begun.elapsed().as_secs_f64()
    );
    println!("{:<28} {:>6} {:>8} {:>12} {:>12}", "read", "calls", "rows", "walk us", "join us");
    let mut total = 0;
    for read in reads(&mut session, &sql) {
        let (mut walked, mut joined, mut rows) = (Duration::ZERO, Duration::ZERO, 0);
        let mut view = graph.snapshot(&database)?;
        for parameters in &read.calls {
            let begun = Instant::now();
            let by_walk = (read.walk)(&mut view, parameters)?;
            walked += begun.elapsed();
            let begun = Instant::now();
            let by_join = query(&mut session, &sql, read.join, parameters);
            joined += begun.elapsed();
            assert_eq!(by_walk, by_join, "{} of {parameters:?}: a walk and joins differ", read.name);
            rows += by_walk.len();
        }
        let calls = read.calls.len();
        let micros = |time: Duration| time.as_micros() / calls.max(1) as u128;
        println!("{:<28} {calls:>6} {rows:>8} {:>12} {:>12}", read.name, micros(walked), micros(joined));
        total += calls;
    }
    println!("{total} calls, all answers of walks equal to those of joins");
    Ok(())
}

/// The answer of a statement; numbers among the parameters are numbers.
fn query(session: &mut Session, sql: &Connection, statement: &str, parameters: &[String]) -> Rows {
    let value =
        |text: &String| text.parse().map_or_else(|_| Value::Text(text.clone().into_bytes()), Value::Integer);
    let values: Vec<Value> = parameters.iter().map(value).collect();
    let rows = sql.query(session, statement, &values).unwrap_or_else(|error| panic!("{statement}: {error}"));
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::Integer(int) => int.to_string(),
        Value::Real(real) => real.to_string(),
        Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
        Value::Blob(bytes) => format!("{bytes:?}"),
    };
    rows.iter().map(|row| row.iter().map(text).collect()).collect()
}

/// All reads, with parameters taken from the data.
fn reads(session: &mut Session, sql: &Connection) -> Vec<Read> {
    let mut ids = |statement: &str| query(session, sql, statement, &[]);
    let people = ids("SELECT id FROM person ORDER BY id");
    let comments = ids("SELECT id FROM comment ORDER BY id");
    let names = ids("SELECT DISTINCT firstName FROM person ORDER BY 1");
    let tags = ids("SELECT t.name FROM post_hasTag_tag h JOIN tag t ON t.id = h.b GROUP BY t.name ORDER BY count(*) DESC, 1 LIMIT 5");
    let dates =
        ids("SELECT max(creationDate) FROM post UNION SELECT min(creationDate) + 4000000000 FROM post");
    let countries = ids("SELECT DISTINCT p.name FROM person_workAt_organisation w
         JOIN organisation_isLocatedIn_place l ON l.a = w.b JOIN place p ON p.id = l.b ORDER BY 1 LIMIT 6");
    let crossed = |one: &Rows, other: &Rows| -> Vec<Vec<String>> {
        one.iter().flat_map(|one| other.iter().map(move |other| [&one[..], &other[..]].concat())).collect()
    };
    let some = |rows: &Rows, every: usize| -> Rows { rows.iter().step_by(every).cloned().collect() };
    let read = |name, walk: Walk, join, calls| Read { name, walk, join, calls };
    vec![
        read("IS1 profile", walks::profile, joins::PROFILE, people.clone()),
        read("IS2 recent messages", walks::recent_messages, joins::RECENT_MESSAGES, people.clone()),
        read("IS3 friends", walks::friends, joins::FRIENDS, people.clone()),
        read("IS4 content", walks::content, joins::CONTENT, comments.clone()),
        read("IS5 creator", walks::creator, joins::CREATOR, comments.clone()),
        read("IS6 forum", walks::forum, joins::FORUM, comments.clone()),
        read("IS7 replies", walks::replies, joins::REPLIES, comments),
        read(
            "IC1 friends of a name",
            walks::of_a_name,
            joins::OF_A_NAME,
            crossed(&some(&people, 9), &some(&names, 7)),
        ),
        read("IC2 messages of friends", walks::of_friends, joins::OF_FRIENDS, crossed(&people, &dates)),
        read(
            "IC6 tags together",
            walks::tags_together,
            joins::TAGS_TOGETHER,
            crossed(&some(&people, 4), &tags),
        ),
        read("IC8 recent replies", walks::recent_replies, joins::RECENT_REPLIES, people.clone()),
        read(
            "IC9 of friends of friends",
            walks::of_friends_of_friends,
            joins::OF_FRIENDS_OF_FRIENDS,
            crossed(&some(&people, 4), &dates),
        ),
        read("IC11 jobs", walks::jobs, joins::JOBS, crossed(&some(&people, 3), &countries)),
        read(
            "IC13 shortest path",
            walks::shortest_path,
            joins::SHORTEST_PATH,
            crossed(&some(&people, 9), &some(&people, 10)),
        ),
    ]
}
