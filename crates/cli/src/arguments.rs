//! The program's commands and options, as clap reads them, and so its help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueHint};

use crate::dom::DomCommand;
use crate::exchange::{DumpOptions, LoadOptions};
use crate::graph::GraphCommand;
use crate::import::ImportOptions;
use crate::inspect::StatOptions;
use crate::maintenance::{BackupOptions, CompactOptions, SalvageOptions};
use crate::serve::ServeOptions;

/// Runs Lua on an ordered tree of nodes, ^name(subscript, ...), in a file that processes share
///
/// Without a command or a file it is an interactive session of Lua with the database as `db`.
#[derive(Debug, Parser)]
#[command(
    name = "perilune",
    version,
    override_usage = "perilune [--db PATH] [COMMAND]\n       \
                      perilune [--db PATH] FILE [ARGUMENTS]...\n       \
                      perilune [--db PATH] -e CODE [ARGUMENTS]...",
    after_help = "Exit codes: 0 good, 1 found something wrong, 2 wrong use, 3 environment \
                  (missing, full, no permission).\n`perilune help COMMAND` says more about a command, `man perilune` about the program."
)]
pub(crate) struct Arguments {
    /// The database: else $PERILUNE_DB, else ~/.local/share/perilune/default.db
    #[arg(long, value_name = "PATH", global = true, value_hint = ValueHint::FilePath)]
    pub(crate) db: Option<PathBuf>,
    /// Opens databases for reading only, which needs no permission to write them
    #[arg(long, global = true)]
    pub(crate) read_only: bool,
    /// Runs CODE; the arguments after it are its `...`
    #[arg(short = 'e', value_name = "CODE", allow_hyphen_values = true)]
    pub(crate) execute: Option<String>,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs a Lua script (`-`: the standard input) in the embedded LuaJIT
    Run {
        /// The script, whose directory is searched for modules, and its arguments, in `arg` and `...`
        // One list: all after its first word is the script's, even what looks like an option of ours.
        #[arg(trailing_var_arg = true, required = true, value_names = ["FILE", "ARGUMENTS"],
              value_hint = ValueHint::FilePath)]
        words: Vec<OsString>,
    },
    /// An interactive session of Lua, as without a command
    Repl,
    /// Measures Perilune on this machine
    Bench {
        #[command(subcommand)]
        what: Benchmark,
    },
    /// Checks the structure, every key and every value of a database
    Check {
        /// The database, instead of --db
        #[arg(value_hint = ValueHint::FilePath)]
        path: Option<PathBuf>,
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Shows figures of a database, and what each name takes
    ///
    /// It reads all values; with --quick or --watch none.
    Stat(StatOptions),
    /// Shows which locks are held and waited for, by whom, and for how long
    Locks {
        /// The database, instead of --db
        #[arg(value_hint = ValueHint::FilePath)]
        path: Option<PathBuf>,
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Shows the processes that have a database open
    Processes {
        /// The database, instead of --db
        #[arg(value_hint = ValueHint::FilePath)]
        path: Option<PathBuf>,
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Writes nodes as text, ZWR (YottaDB, GT.M) or JSON Lines
    Dump(DumpOptions),
    /// Sets the nodes in files that `dump`, YottaDB or GT.M has written
    Load(LoadOptions),
    /// Takes a checkpoint: what has been committed survives a crash of the machine
    Checkpoint {
        /// The database, instead of --db
        #[arg(value_hint = ValueHint::FilePath)]
        path: Option<PathBuf>,
        /// Opens it although its log is damaged or gone, and gives up for good the commits that were in it
        #[arg(long)]
        accept_lost_commits: bool,
    },
    /// Stays attached, so that what is written gets to disk in time although nobody else does
    ///
    /// A database is flushed and checkpointed by the processes that have it open. When all of them are killed
    /// at once, what they wrote last stays in memory until the next one opens it; while `keep` runs, it is on
    /// disk within 50 ms (level `periodic`). SIGTERM, SIGINT and SIGHUP end it and close the database.
    Keep {
        /// The database, instead of --db
        #[arg(value_hint = ValueHint::FilePath)]
        path: Option<PathBuf>,
    },
    /// Copies a database, as it is now, while others use it
    Backup(BackupOptions),
    /// Writes a database anew, without the space that nothing uses
    Compact(CompactOptions),
    /// Copies what can be read of a damaged database into a new one, and names what is lost
    Salvage(SalvageOptions),
    /// Serves the database to clients of Redis, until SIGTERM or SIGINT
    ///
    /// Several may serve one database, and share a port.
    Serve(ServeOptions),
    /// Runs statements of SQL on tables of the database, or is a shell for them
    ///
    /// Without -c it reads the standard input. Rows are shown as --mode says: table, list, line, csv, json.
    Sql(SqlOptions),
    /// Imports a dump of Redis (dump.rdb): every key, in place of what the database has at it
    ImportRdb(ImportOptions),
    /// Keeps documents of XML in the tree: imports, exports and searches them
    Dom {
        #[command(subcommand)]
        what: DomCommand,
    },
    /// Keeps graphs in the tree: imports, exports, draws, counts, checks and walks them
    Graph {
        #[command(subcommand)]
        what: GraphCommand,
    },
    /// Shows the versions of Perilune and of the embedded Lua
    Version,
    /// Prints a script that makes a shell complete this program's commands and options
    ///
    /// `make install` puts it where the shell looks. By hand, for bash:
    ///
    /// perilune completions bash >~/.local/share/bash-completion/completions/perilune
    #[command(verbatim_doc_comment)]
    Completions {
        /// The shell
        #[arg(value_parser = ["bash", "zsh", "fish"])]
        shell: String,
    },
    /// Writes the man pages into a directory
    #[command(hide = true)]
    Manual { directory: PathBuf },
    #[command(external_subcommand)]
    Script(Vec<OsString>),
}

impl Command {
    /// The name of a command that writes the database whatever it is told.
    pub(crate) fn writes(&self) -> Option<&'static str> {
        match self {
            Command::Bench { .. } => Some("bench"),
            Command::Load(_) => Some("load"),
            Command::Checkpoint { .. } => Some("checkpoint"),
            Command::Keep { .. } => Some("keep"),
            Command::Compact(_) => Some("compact"),
            Command::Serve(_) => Some("serve"),
            Command::ImportRdb(_) => Some("import-rdb"),
            Command::Dom { what: DomCommand::Import { .. } } => Some("dom import"),
            Command::Graph { what: GraphCommand::Create { .. } } => Some("graph create"),
            Command::Graph { what: GraphCommand::Import(_) } => Some("graph import"),
            _ => None,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// The 3n+1 problem by processes that share one database
    Collatz(CollatzOptions),
    /// One of the processes
    // Not like the name of its benchmark, or it would be suggested to who mistypes that.
    #[command(hide = true, name = "worker-of-3n1")]
    CollatzWorker { db: PathBuf, durability: String, id: u32 },
    /// Nodes, walks, trees and strings in Lua, beside what was published of lua-yottadb
    Lua(LuaOptions),
    /// The process that runs them
    #[command(hide = true, name = "worker-of-lua")]
    LuaWorker { db: PathBuf },
}

/// How to run 3n+1.
#[derive(Args, Debug)]
pub(crate) struct CollatzOptions {
    /// Sequences that begin with 1 to N
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) n: u64,
    /// Numbers of processes, one run each
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) procs: Vec<u32>,
    /// How often each number of processes runs, in turn; more than one: also the medians of seconds
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Numbers a process takes at a time [default: N / 100, at most 10000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) block: Option<u64>,
    /// Runs the processes in this Lua instead of the embedded one; it finds the module by LUA_PATH and
    /// LUA_CPATH, or in build/lua
    #[arg(long, value_name = "PATH", value_hint = ValueHint::CommandName)]
    pub(crate) lua: Option<PathBuf>,
    /// What commits wait for: none, periodic or fsync
    #[arg(long, default_value = "periodic", value_parser = ["none", "periodic", "fsync"])]
    pub(crate) durability: String,
    /// Appends the rows to FILE as JSON Lines
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draws a bar chart: FILE.svg, and FILE.png beside it
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) chart: Option<PathBuf>,
    /// Draws how the first 20,000 sequences meet
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) tree: Option<PathBuf>,
}

/// How to run the workloads of Lua.
#[derive(Args, Debug)]
pub(crate) struct LuaOptions {
    /// Runs them in this Lua instead of the embedded one; it finds the module by LUA_PATH and LUA_CPATH, or in
    /// build/lua
    #[arg(long, value_name = "PATH")]
    pub(crate) lua: Option<PathBuf>,
    /// How often each is measured, after a round that warms up
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) rounds: u32,
    /// Appends the rows to FILE as JSON Lines
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Draws how many times faster than published each is: FILE.svg, and FILE.png beside it
    #[arg(long, value_name = "FILE.svg")]
    pub(crate) chart: Option<PathBuf>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_description_of_the_options_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn who_mistypes_a_benchmark_is_told_its_name() {
        let text = Arguments::try_parse_from(["perilune", "bench", "colatz"]).unwrap_err().to_string();
        assert!(text.contains("collatz") && !text.contains("worker"), "{text}");
    }

    #[test]
    fn what_follows_a_script_is_its_own() {
        let parsed =
            Arguments::try_parse_from(["perilune", "--db", "a", "run", "x.lua", "--db", "b"]).unwrap();
        assert_eq!(parsed.db, Some(PathBuf::from("a")));
        let Some(Command::Run { words }) = parsed.command else {
            panic!("run is a command");
        };
        assert_eq!(words, ["x.lua", "--db", "b"]);
        let parsed = Arguments::try_parse_from(["perilune", "run", "--db", "a", "-"]).unwrap();
        assert_eq!(parsed.db, Some(PathBuf::from("a")));
    }
}

/// What `perilune sql` can be told.
#[derive(Args, Debug)]
pub(crate) struct SqlOptions {
    /// The database, instead of --db
    #[arg(value_hint = ValueHint::FilePath)]
    pub(crate) path: Option<PathBuf>,
    /// Runs these statements, and ends
    #[arg(short = 'c', long = "command", value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) command: Option<String>,
    /// Keeps the functions of a file in Lua first, for statements of all; may be given several times
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) functions: Vec<PathBuf>,
    /// How rows are shown
    #[arg(long, value_name = "MODE", value_parser = ["table", "list", "line", "csv", "json"])]
    pub(crate) mode: Option<String>,
}
