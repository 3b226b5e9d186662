//! `perilune-bench`: measures Perilune beside its peers, on one machine, sides alternating in one run.
//!
//! A *peer* is another database. A *side* is a peer, or Perilune, with its settings for one class of durability (D1
//! on disk before a call returns ... D4 nothing promised). A *cell* is a line of the results: a workload, a size, a
//! number of processes. In each *round* of a cell every side works once.
//!
//! There are five suites: `run`, the comparison of all peers in their languages and with their servers; `engine`,
//! embedded databases by their Rust or C interface alone; `durability`; `memory`; `server`, beside redis-server.
//! The guide is `docs/guide/benchmarks.md`.

#![deny(unsafe_code)]

mod clock;
mod comparison;
mod data;
mod disk;
mod durability;
mod engine;
mod globals;
mod machine;
mod markup;
mod memory;
mod page;
mod peers;
mod plan;
mod player;
mod report;
mod row;
mod run_directory;
mod scratch;
mod server;
mod statistics;
mod subject;
mod targets;
mod verdict;
mod worker_processes;
mod workload;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use perilune::Durability;

use crate::comparison::arguments::{self, CompareArguments, PlayerArguments, ReportArguments, RunArguments};
use crate::plan::Wish;
use crate::report::Table;
use crate::subject::{Class, Peer, Result};
use crate::verdict::Score;

#[derive(Parser)]
#[command(name = "perilune-bench", version, about = "Measures Perilune beside its peers")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// The workloads and sides of the comparison, and which peers are missing here
    List,
    /// All peers in one run, each in its natural way: 3n+1, sets and gets, XML, transactions, space
    Run(RunArguments),
    /// Tables, charts and pages of a run that was made before
    Report(ReportArguments),
    /// How two runs differ: the ratio of each side's values with its interval
    Compare(CompareArguments),
    /// One process that plays a side
    #[command(hide = true)]
    Player(PlayerArguments),
    /// The engine by its Rust API, beside LMDB, redb, SQLite and BTreeMap
    Engine(EngineArguments),
    /// What durability costs and leaves: commits, levels, recovery, reopening, space, loading
    Durability(DurabilityArguments),
    /// Data larger than memory: a process in a memory cgroup beside one without a limit
    Memory(MemoryArguments),
    /// Our server beside redis-server: commands, scripts, 3n+1, thousands of connections
    Server(ServerArguments),
    /// One client process of a server's run
    #[command(hide = true)]
    ClientProcess {
        #[arg(long)]
        port: u16,
        #[arg(long)]
        source: std::net::Ipv4Addr,
    },
    /// The process with little memory
    #[command(hide = true)]
    MemoryWorker {
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        nodes: u64,
        #[arg(long)]
        seconds: u64,
        #[arg(long)]
        level: Durability,
    },
    /// Fills a log until it is killed
    #[command(hide = true)]
    GrowLog {
        #[arg(long)]
        dir: PathBuf,
        #[arg(long)]
        bytes: u64,
        #[arg(long)]
        large: bool,
    },
    /// One worker process of a run
    #[command(hide = true)]
    Worker {
        #[arg(long)]
        peer: String,
        #[arg(long)]
        class: Class,
        #[arg(long)]
        processes: usize,
        #[arg(long)]
        dir: PathBuf,
    },
}

#[derive(Args)]
struct EngineArguments {
    /// Under a minute: short rounds, 3n+1 over 10,000, no 10M keys
    #[arg(long)]
    quick: bool,
    /// Write raw rows to FILE, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Sizes of the tree, as 10k,1M,10M
    #[arg(long, value_delimiter = ',', value_parser = size)]
    keys: Vec<u64>,
    /// Only workloads whose names contain one of these
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these peers; Perilune as well if it is among them
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    peers: Vec<String>,
    /// What a crash of the machine may lose: the class that is compared
    #[arg(long, default_value = "d4")]
    class: Class,
    /// Rounds of each cell
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Length of a round by time; 1000, or 40 with --quick
    #[arg(long, value_name = "MS")]
    milliseconds: Option<u64>,
    /// Where databases are made and removed again
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write README.md, raw.jsonl and summary.md to this new directory
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

#[derive(Args)]
struct DurabilityArguments {
    /// Under a minute: small trees and short rounds
    #[arg(long)]
    quick: bool,
    /// Write raw rows to FILE, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Only sections whose names contain one of these
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds of each figure
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Where databases are made and removed again
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write README.md, raw.jsonl and summary.md to this new directory
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

#[derive(Args)]
struct MemoryArguments {
    /// Half a minute: 256 MiB of data in 32 MiB of memory
    #[arg(long)]
    quick: bool,
    /// What commits wait for
    #[arg(long, default_value = "periodic")]
    level: Durability,
    /// Only with the limit, or without
    #[arg(long, value_name = "SIDE", value_delimiter = ',', value_parser = memory::SIDES)]
    only: Vec<String>,
    /// Write raw rows to FILE, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where databases are made and removed again
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write README.md, raw.jsonl and summary.md to this new directory
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

#[derive(Args)]
struct ServerArguments {
    /// Half a minute: few requests, some hundred connections; not for claims
    #[arg(long)]
    quick: bool,
    /// Only sections whose names contain one of these
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Rounds of each figure; of those that last seconds three at most
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: u16,
    /// Write raw rows to FILE, one JSON object a line
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Where databases are made and removed again; /dev/shm if it is there
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write README.md, raw.jsonl, summary.md and charts to this new directory
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        Command::List => arguments::list(),
        Command::Run(arguments) => arguments::run(&arguments),
        Command::Report(arguments) => arguments::report(&arguments),
        Command::Compare(arguments) => arguments::compare(&arguments),
        Command::Player(arguments) => arguments::play(&arguments),
        Command::Engine(arguments) => engine(&arguments),
        Command::Durability(arguments) => durability(&arguments),
        Command::Memory(arguments) => memory(&arguments),
        Command::Server(arguments) => server(&arguments),
        Command::ClientProcess { port, source } => {
            server::client_process::serve(port, source).map(|()| ExitCode::SUCCESS)
        }
        Command::MemoryWorker { dir, nodes, seconds, level } => {
            memory::work::serve(&dir, nodes, seconds, level).map(|()| ExitCode::SUCCESS)
        }
        Command::GrowLog { dir, bytes, large } => {
            durability::recovery::grow(&dir, bytes, large).map(|()| ExitCode::SUCCESS)
        }
        Command::Worker { peer, class, processes, dir } => {
            worker_processes::worker::serve(&peer, class, &dir, processes).map(|()| ExitCode::SUCCESS)
        }
    };
    done.unwrap_or_else(|error| {
        eprintln!("perilune-bench: {error}");
        ExitCode::from(3)
    })
}

/// Runs the suite and reports; exit code 1 if a side had a wrong result.
fn engine(arguments: &EngineArguments) -> Result<ExitCode> {
    let wish = Wish {
        quick: arguments.quick,
        class: arguments.class,
        keys: arguments.keys.clone(),
        only: arguments.only.clone(),
    };
    let groups = plan::groups(&wish);
    if groups.is_empty() {
        return Err("no workload has such a name: get, set, next, scan, increment, counter, transfer, \
                    lock and collatz are there"
            .into());
    }
    let peers = chosen(arguments)?;
    let directory = arguments.dir.clone().unwrap_or_else(std::env::temp_dir);
    let mut facts = machine::facts(&directory);
    facts.extend(machine::about(&peers, arguments.class));
    let measure = engine::Measure {
        rounds: usize::from(arguments.rounds),
        milliseconds: arguments.milliseconds.unwrap_or(if arguments.quick { 40 } else { 1_000 }),
        disk: false,
        walk: if arguments.quick { 100_000 } else { 1_000_000 },
        directory,
    };
    facts.push((
        "rounds".to_owned(),
        format!("{} of {} ms, after a tenth of that to warm up", measure.rounds, measure.milliseconds),
    ));
    for (name, value) in &facts {
        println!("{name:<12} {value}");
    }
    let present: Vec<Peer> =
        peers.iter().filter(|(_, version)| version.is_ok()).map(|(peer, _)| *peer).collect();
    let results = engine::run(&groups, &present, &measure)?;
    let backends: Vec<&str> = present.iter().map(|peer| peer.name).collect();
    let (tables, score) = report::tables(&groups, &results.rows, &backends);
    show(&tables, score, &results.problems);
    if let Some(path) = &arguments.json {
        run_directory::write_rows(path, &results.rows)?;
    }
    if let Some(path) = &arguments.run_dir {
        run_directory::write_run(
            path,
            "the engine suite",
            &facts,
            &results.rows,
            &tables,
            &results.problems,
        )?;
    }
    Ok(ExitCode::from(u8::from(!results.problems.is_empty())))
}

/// Measures durability and reports; exit code 1 if a result was wrong.
fn durability(arguments: &DurabilityArguments) -> Result<ExitCode> {
    let wish = durability::Wish {
        quick: arguments.quick,
        only: arguments.only.clone(),
        rounds: usize::from(if arguments.quick { arguments.rounds.min(3) } else { arguments.rounds }),
        directory: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
    };
    let mut facts = machine::facts(&wish.directory);
    for class in [Class::D1, Class::D3] {
        let version = |peer: Peer| (peer, (peer.version)().map_err(|error| error.to_string()));
        let peers: Vec<_> = peers::all(class).into_iter().map(version).collect();
        facts.extend(machine::about(&peers, class));
    }
    facts.push(("redis".to_owned(), machine::command("redis-server", &["--version"])));
    facts.push(("rounds".to_owned(), wish.rounds.to_string()));
    for (name, value) in &facts {
        println!("{name:<12} {value}");
    }
    let results = durability::run(&wish)?;
    let (tables, score) = durability::tables(&results.rows);
    show(&tables, score, &results.problems);
    if let Some(path) = &arguments.json {
        run_directory::write_rows(path, &results.rows)?;
    }
    if let Some(path) = &arguments.run_dir {
        run_directory::write_run(path, "durability", &facts, &results.rows, &tables, &results.problems)?;
    }
    Ok(ExitCode::from(u8::from(!results.problems.is_empty())))
}

/// Measures data larger than memory; exit code 1 if anything went wrong with it.
fn memory(arguments: &MemoryArguments) -> Result<ExitCode> {
    let wish = memory::Wish {
        data: if arguments.quick { 256 << 20 } else { 4 << 30 },
        limit: if arguments.quick { 32 << 20 } else { 512 << 20 },
        seconds: if arguments.quick { 1 } else { 10 },
        level: arguments.level,
        only: arguments.only.clone(),
        directory: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
    };
    let mut facts = machine::facts(&wish.directory);
    facts.push(("data, memory".to_owned(), format!("{} MiB, {} MiB", wish.data >> 20, wish.limit >> 20)));
    facts.push(("durability".to_owned(), memory::name_of(wish.level).to_owned()));
    for (name, value) in &facts {
        println!("{name:<12} {value}");
    }
    let results = memory::run(&wish)?;
    let tables = memory::tables(&results.rows);
    show(&tables, Score::default(), &results.problems);
    if let Some(path) = &arguments.json {
        run_directory::write_rows(path, &results.rows)?;
    }
    if let Some(path) = &arguments.run_dir {
        run_directory::write_run(
            path,
            "data larger than memory",
            &facts,
            &results.rows,
            &tables,
            &results.problems,
        )?;
    }
    Ok(ExitCode::from(u8::from(!results.problems.is_empty())))
}

/// Measures the server and reports; exit code 1 if anything went wrong.
fn server(arguments: &ServerArguments) -> Result<ExitCode> {
    let memory = PathBuf::from("/dev/shm");
    let usual = if memory.is_dir() { memory } else { std::env::temp_dir() };
    let wish = server::Wish {
        quick: arguments.quick,
        only: arguments.only.clone(),
        rounds: usize::from(if arguments.quick { arguments.rounds.min(3) } else { arguments.rounds }),
        directory: arguments.dir.clone().unwrap_or(usual),
    };
    let mut facts = machine::facts(&wish.directory);
    facts.extend(server::facts());
    facts.push(("rounds".to_owned(), wish.rounds.to_string()));
    for (name, value) in &facts {
        println!("{name:<12} {value}");
    }
    let results = server::run(&wish)?;
    let found = server::tables(&results.rows);
    show(&found.tables, found.score, &results.problems);
    if let Some(path) = &arguments.json {
        run_directory::write_rows(path, &results.rows)?;
    }
    if let Some(path) = &arguments.run_dir {
        run_directory::write_run(
            path,
            "the server",
            &facts,
            &results.rows,
            &found.tables,
            &results.problems,
        )?;
        let command: Vec<String> = std::env::args().skip(1).collect();
        server::draw(&results, &command.join(" "), &facts, &found, path)?;
    }
    Ok(ExitCode::from(u8::from(!results.problems.is_empty())))
}

/// The peers asked for, with their versions or why they are missing.
fn chosen(arguments: &EngineArguments) -> Result<Vec<(Peer, std::result::Result<String, String>)>> {
    let all = peers::all(arguments.class);
    if let Some(unknown) = arguments.peers.iter().find(|name| all.iter().all(|peer| peer.name != **name)) {
        let names: Vec<&str> = all.iter().map(|peer| peer.name).collect();
        return Err(format!("there is no peer `{unknown}` in this class: {} are", names.join(", ")).into());
    }
    let wanted =
        |peer: &Peer| arguments.peers.is_empty() || arguments.peers.iter().any(|name| name == peer.name);
    let version = |peer: Peer| (peer, (peer.version)().map_err(|error| error.to_string()));
    Ok(all.into_iter().filter(wanted).map(version).collect())
}

fn show(tables: &[Table], score: Score, problems: &[String]) {
    for table in tables {
        println!("\n{}", table.text().trim_end());
    }
    for problem in problems {
        println!("\nNOT COUNTED: {problem}");
    }
    println!("\ntargets: {}; {} sides wrong", score.words(), problems.len());
}

/// Reads a size: `10k`, `1M` or plain.
fn size(text: &str) -> std::result::Result<u64, String> {
    let (digits, times) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 1_000),
        Some((at, 'm' | 'M')) => (&text[..at], 1_000_000),
        _ => (text, 1),
    };
    let count = digits.parse::<u64>().ok().and_then(|count| count.checked_mul(times));
    count
        .filter(|count| (2..=1_000_000_000).contains(count))
        .ok_or_else(|| format!("`{text}` is no size from 2 to 1000M: write it as 10000, 10k or 1M"))
}
