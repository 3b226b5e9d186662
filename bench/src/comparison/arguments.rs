//! The commands of the comparison as they are given at a terminal: `list`, `run`, `report`, `compare`, and
//! the player that runs start.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use crate::comparison::result::Run;
use crate::comparison::{self, goals, page, publish, Wish};
use crate::peers::subjects::{self, Site};
use crate::player;
use crate::report::Table;
use crate::statistics::{paired, unpaired};
use crate::subject::{Class, Result};

#[derive(Args)]
pub(crate) struct RunArguments {
    /// All workloads, not the standard set alone
    #[arg(long)]
    full: bool,
    /// A minute for each workload: short rounds, 3n+1 over 1,000, few nodes; unless asked not by 32 processes, and 3n+1
    /// and bank not in class D1; not for claims
    #[arg(long)]
    quick: bool,
    /// Only workloads with these numbers, or with one of these in their names
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    only: Vec<String>,
    /// Only these classes of durability
    #[arg(long, value_name = "CLASS", value_delimiter = ',')]
    classes: Vec<Class>,
    /// Only these sides
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    peers: Vec<String>,
    /// Only cells with these numbers of processes
    #[arg(long, value_name = "NUMBER", value_delimiter = ',')]
    processes: Vec<usize>,
    /// A server that speaks Redis's protocol and that somebody else runs, its database empty; in class D4, or in CLASS
    #[arg(long, value_name = "NAME=HOST:PORT[,CLASS]", value_parser = server)]
    resp: Vec<(String, String, Class)>,
    /// Rounds of each cell, fewer of long ones
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1_000))]
    rounds: Option<u16>,
    /// Length of a round that is bounded by time, in seconds
    #[arg(long, value_name = "SECONDS")]
    seconds_per_cell: Option<f64>,
    /// 3n+1 over so many numbers: 10, 100, 1000 and so on
    #[arg(long, value_name = "NUMBER")]
    n: Option<u64>,
    /// Where databases are made and removed again
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
    /// Write all of the run to this new directory, as bench/runs/DATE-MACHINE
    #[arg(long, value_name = "DIR")]
    run_dir: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct ReportArguments {
    /// The directory of a run
    directory: PathBuf,
    /// Write the run as one page, index.html in its directory
    #[arg(long)]
    html: bool,
    /// Put the run's results between the marks in this file, the project's README
    #[arg(long, value_name = "FILE")]
    readme: Option<PathBuf>,
}

#[derive(Args)]
pub(crate) struct CompareArguments {
    /// The run, or the one before
    run: PathBuf,
    /// The run after
    #[arg(required_unless_present = "sides")]
    after: Option<PathBuf>,
    /// Two sides of one run, which are compared round by round
    #[arg(long, value_name = "SIDE,SIDE", value_delimiter = ',', conflicts_with = "after")]
    sides: Vec<String>,
}

#[derive(Args)]
pub(crate) struct PlayerArguments {
    #[arg(long)]
    side: String,
    #[arg(long)]
    class: Class,
    #[arg(long)]
    processes: usize,
    #[arg(long)]
    dir: PathBuf,
    #[arg(long)]
    address: Option<String>,
}

fn server(text: &str) -> std::result::Result<(String, String, Class), String> {
    let wanted = "write it as NAME=HOST:PORT or NAME=HOST:PORT,d1";
    let (name, rest) = text.split_once('=').ok_or(wanted)?;
    let (address, class) = rest.split_once(',').unwrap_or((rest, "d4"));
    if name.is_empty() || !address.contains(':') || subjects::all().iter().any(|side| side.name == name) {
        return Err(format!("{wanted}; NAME is one that no side has"));
    }
    Ok((name.to_owned(), address.to_owned(), Class::from_str(class, true).map_err(|_| wanted)?))
}

/// Prints workloads and sides.
///
/// # Errors
/// None so far.
pub(crate) fn list() -> Result<ExitCode> {
    print!("{}", comparison::list());
    Ok(ExitCode::SUCCESS)
}

/// Runs the comparison; all is written, then exit code 1 tells that an answer was wrong. A side that was too
/// slow for its time is named in the report and is no failure of the run.
///
/// # Errors
/// The run cannot be done.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode> {
    let quick = arguments.quick;
    let wish = Wish {
        full: arguments.full,
        only: arguments.only.clone(),
        classes: arguments.classes.clone(),
        peers: arguments.peers.clone(),
        processes: arguments.processes.clone(),
        quick,
        rounds: usize::from(arguments.rounds.unwrap_or(if quick { 3 } else { 5 })),
        seconds: arguments.seconds_per_cell.unwrap_or(if quick { 0.02 } else { 0.5 }),
        n: arguments.n.unwrap_or(if quick { 1_000 } else { 100_000 }),
        nodes: if quick { 2_000 } else { 200_000 },
        servers: arguments.resp.clone(),
        directory: arguments.dir.clone().unwrap_or_else(std::env::temp_dir),
        record: arguments.run_dir.clone(),
    };
    if let Some(directory) = &arguments.run_dir {
        if directory.join("raw.jsonl").exists() {
            return Err(format!("{} holds a run: give another --run-dir", directory.display()).into());
        }
        std::fs::create_dir_all(directory)?;
    }
    let run = comparison::run(&wish)?;
    print!("{}", publish::text(&run));
    if let Some(directory) = &arguments.run_dir {
        run.write(directory)?;
        publish::write(&run, directory)?;
        std::fs::write(directory.join("index.html"), page::html(&run, directory)?)?;
        println!("written to {}", directory.display());
    }
    println!(
        "{} rows; goals: {}; {} too slow; {} problems",
        run.lines.len(),
        goals::score(&run).words(),
        run.notes.cut.len(),
        run.notes.problems.len()
    );
    Ok(ExitCode::from(u8::from(!run.notes.problems.is_empty())))
}

/// Writes tables and charts of a run again, and what else is asked for; of a server's run the page as well.
///
/// # Errors
/// There is no run, or a file cannot be written.
pub(crate) fn report(arguments: &ReportArguments) -> Result<ExitCode> {
    let directory = &arguments.directory;
    if crate::server::redraw(directory)? {
        println!("{}", directory.join("index.html").display());
        return Ok(ExitCode::SUCCESS);
    }
    let run = Run::read(directory)?;
    publish::write(&run, directory)?;
    println!("{}", directory.join("summary.md").display());
    if arguments.html {
        let page = directory.join("index.html");
        std::fs::write(&page, page::html(&run, directory)?)?;
        println!("{}", page.display());
    }
    if let Some(file) = &arguments.readme {
        let text = std::fs::read_to_string(file)?;
        let (begin, end) = ("<!-- results: begin -->\n", "<!-- results: end -->");
        let marks = text.split_once(begin).and_then(|(before, rest)| Some((before, rest.split_once(end)?.1)));
        let Some((before, after)) = marks else {
            return Err(format!("{} has no `{}` and `{end}`", file.display(), begin.trim()).into());
        };
        std::fs::write(file, format!("{before}{begin}{}{end}{after}", publish::readme(&run, directory)))?;
        println!("{}", file.display());
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints how much better each side has become from one run to another, or how much better one side of a run
/// is than another.
///
/// # Errors
/// There is no run.
pub(crate) fn compare(arguments: &CompareArguments) -> Result<ExitCode> {
    let run = Run::read(&arguments.run)?;
    if arguments.after.is_none() && arguments.sides.len() != 2 {
        return Err("--sides takes two names: see `perilune-bench list`".into());
    }
    let after = arguments.after.as_deref().map(Run::read).transpose()?;
    let what = if after.is_some() { "after is so many times as good" } else { "so many times as good" };
    let titles = ["workload", "class", "processes", "side", what, "interval"];
    let mut rows = vec![titles.map(str::to_owned).to_vec()];
    let mut seen = Vec::new();
    for line in &after.as_ref().unwrap_or(&run).lines {
        let values = |run: &Run, side: &str| run.values(&line.workload, line.procs, &line.class, side);
        let cell = (&line.workload, line.procs, &line.class, &line.backend);
        let (good, bad) = match (&after, &arguments.sides[..]) {
            (Some(after), _) => (values(after, &line.backend), values(&run, &line.backend)),
            (None, [one, other]) if *one == line.backend => (values(&run, one), values(&run, other)),
            _ => continue,
        };
        if seen.contains(&cell) || bad.is_empty() {
            continue;
        }
        seen.push(cell);
        let (good, bad) = if goals::more_is_better(&line.unit) { (good, bad) } else { (bad, good) };
        let change = if after.is_some() { unpaired(&good, &bad) } else { paired(&good, &bad) };
        rows.push(vec![
            line.workload.clone(),
            line.class.clone(),
            line.procs.to_string(),
            line.backend.clone(),
            format!("{:.3}", change.ratio),
            format!("{:.4} {:.4}", change.low, change.high),
        ]);
    }
    print!("{}", Table::new("Comparison", rows).text());
    Ok(ExitCode::SUCCESS)
}

/// Plays a side until the suite ends.
///
/// # Errors
/// There is no such side; the suite is gone.
pub(crate) fn play(arguments: &PlayerArguments) -> Result<ExitCode> {
    let site = Site {
        directory: arguments.dir.clone(),
        class: arguments.class,
        processes: arguments.processes,
        address: arguments.address.clone(),
    };
    let wanted = |side: &subjects::Side| side.name == arguments.side && side.class == arguments.class;
    let side = match &site.address {
        Some(_) => subjects::resp::elsewhere("elsewhere", arguments.class),
        None => subjects::all().into_iter().find(wanted).ok_or("there is no such side")?,
    };
    player::serve(&side, &site).map(|()| ExitCode::SUCCESS)
}
