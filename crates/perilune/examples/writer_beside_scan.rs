//! Does a scan by one process slow a writer of another?
//!
//! A scan takes no latch and writes nothing that is shared, so it should not. But two processes also share a machine: two
//! processors may be halves of one core, and both use its memory. So this program measures three sides, in turn: a writer alone,
//! beside a process that scans another database of the same size, and beside one that scans what it writes to. What the third
//! side takes more than the second is the scan's doing.
//!
//! It loads a million nodes into two databases, and starts itself once more as the process that scans, over and over; in each
//! round it sets nodes at random. It prints the medians of the writer's CPU time a set, and fails if that beside a scan of its
//! own database is more than the limit times that beside one of the other.
//!
//! ```text
//! cargo run --release -p perilune --example writer_beside_scan [ROUNDS] [NODES] [LIMIT]
//! ```
//!
//! It is no test of CI: on a machine that others use as well sides differ by more than what it looks for. That a scan changes
//! nothing which a writer looks at is tested there (`crates/engine/src/handle/scan_tests.rs`).

use std::error::Error;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;
use std::{env, fs, io, thread};

use perilune::{node, Cursor, Database, Session};

/// Sets of a round.
const SETS: u64 = 100_000;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<ExitCode> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    if let [role, path] = &arguments[..] {
        if role == "scan" {
            scan(Path::new(path))?;
            return Ok(ExitCode::SUCCESS);
        }
    }
    let number = |at: usize, usual: f64| arguments.get(at).map_or(Ok(usual), |text| text.parse());
    let (rounds, nodes, limit) = (number(0, 15.0)? as usize, number(1, 1e6)? as u64, number(2, 1.05)?);
    let directory = env::temp_dir().join(format!("perilune-beside-scan-{}", std::process::id()));
    fs::create_dir_all(&directory)?;
    let measured = measure(&directory, rounds, nodes);
    fs::remove_dir_all(&directory)?;
    let [alone, other, own] = measured?;
    let ratio = own / other;
    println!("a set takes {alone:.0} ns of CPU alone, {other:.0} beside a scan of another database, {own:.0} of its own");
    println!("its own is {ratio:.3} times the other, at most {limit}");
    Ok(if ratio <= limit { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The databases: what is written to, and another one.
const NAMES: [&str; 2] = ["own.db", "other.db"];

/// The medians of CPU nanoseconds a set: alone, and beside scans of the other database and of its own.
fn measure(directory: &Path, rounds: usize, nodes: u64) -> Outcome<[f64; 3]> {
    let mut sessions = Vec::new();
    for name in NAMES {
        let mut session = Database::open(directory.join(name))?.session()?;
        for number in 0..nodes as i64 {
            session.set(&node!("^data", number)?, number)?;
        }
        sessions.push(session);
    }
    let session = &mut sessions[0];
    let mut scanner = Scanner::start(directory)?;
    let mut figures = [Vec::new(), Vec::new(), Vec::new()];
    let mut random = 1;
    write(session, &mut random, nodes)?;
    for round in 0..rounds {
        for side in 0..3 {
            // Who begins changes from round to round.
            let side = (round + side) % 3;
            if side > 0 {
                scanner.tell(NAMES[2 - side])?;
            }
            let (took, wall) = write(session, &mut random, nodes)?;
            let passes = if side > 0 { scanner.tell("end")? } else { 0 };
            eprintln!("side {side}: {took:.0} ns of CPU, {wall:.0} ns, {passes} passes beside");
            figures[side].push(took);
        }
    }
    Ok(figures.map(|mut figures| {
        figures.sort_by(f64::total_cmp);
        figures[figures.len() / 2]
    }))
}

/// Sets nodes at random; CPU and wall nanoseconds of each.
fn write(session: &mut Session, random: &mut u64, nodes: u64) -> Outcome<(f64, f64)> {
    let (cpu, begun) = (cpu()?, Instant::now());
    for _ in 0..SETS {
        *random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let number = (*random >> 33) % nodes;
        session.set(&node!("^data", number)?, number)?;
    }
    let wall = begun.elapsed().as_nanos() as f64;
    Ok(((self::cpu()? - cpu) as f64 / SETS as f64, wall / SETS as f64))
}

/// Nanoseconds that this thread has run.
fn cpu() -> Outcome<u64> {
    let text = fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(text.split(' ').next().ok_or("the kernel counts no times")?.parse()?)
}

/// The process that scans when it is told to.
struct Scanner {
    child: Child,
    to: ChildStdin,
    from: BufReader<ChildStdout>,
}

impl Scanner {
    fn start(path: &Path) -> Outcome<Scanner> {
        let mut command = Command::new(env::current_exe()?);
        command.arg("scan").arg(path).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let (to, from) = (child.stdin.take().ok_or("no pipe")?, child.stdout.take().ok_or("no pipe")?);
        Ok(Scanner { child, to, from: BufReader::new(from) })
    }

    /// Says so, and answers the number that is said back.
    fn tell(&mut self, what: &str) -> Outcome<u64> {
        writeln!(self.to, "{what}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        Ok(line.trim().parse()?)
    }
}

impl Drop for Scanner {
    fn drop(&mut self) {
        // It may have ended by itself; there is nobody to tell.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Scans the database that a line names, up to the next line; answers how many passes it has made.
fn scan(directory: &Path) -> Outcome<()> {
    let databases = NAMES.map(|name| Database::open(directory.join(name)));
    let mut lines = io::stdin().lock().lines();
    while let Some(name) = lines.next().transpose()? {
        let (is_over, which) = (AtomicBool::new(false), usize::from(name == NAMES[1]));
        let mut session = databases[which].as_ref().map_err(ToString::to_string)?.session()?;
        thread::scope(|scope| -> Outcome<()> {
            let scanning = scope.spawn(|| passes(&mut session, &is_over));
            println!("0");
            let ended = lines.next().transpose();
            is_over.store(true, Ordering::Relaxed);
            println!("{}", scanning.join().map_err(|_| "the scan has failed")??);
            ended.map(drop).map_err(Into::into)
        })?;
    }
    Ok(())
}

fn passes(session: &mut Session, is_over: &AtomicBool) -> Outcome<u64> {
    let (mut passes, mut sum) = (0, 0_i64);
    let data = node!("^data")?;
    while !is_over.load(Ordering::Relaxed) {
        let mut cursor = Cursor::children(&data);
        while cursor.next(session)? && !is_over.load(Ordering::Relaxed) {
            sum = sum.wrapping_add(cursor.integer_value().unwrap_or(0));
        }
        passes += 1;
    }
    std::hint::black_box(sum);
    Ok(passes)
}
