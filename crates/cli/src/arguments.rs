//! What the program can be told, and its help.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// An ordered tree of nodes, ^name(subscript, ...), in a file that processes share.
///
/// Without a command: an interactive session of Lua with the database as `db`.
#[derive(Debug, Parser)]
#[command(
    name = "perilune",
    version,
    after_help = "Exit codes: 0 good, 1 found something wrong, 2 wrong use, 3 environment \
                  (missing, full, no permission).\nA script can be named without `run`: perilune FILE [ARGUMENTS]"
)]
pub(crate) struct Arguments {
    /// The database: else $PERILUNE_DB, else ~/.local/share/perilune/default.db
    #[arg(long, value_name = "PATH", global = true)]
    pub(crate) db: Option<PathBuf>,
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
        #[arg(trailing_var_arg = true, required = true, value_names = ["FILE", "ARGUMENTS"])]
        words: Vec<OsString>,
    },
    /// An interactive session of Lua
    Repl,
    /// Measures Perilune on this machine
    Bench {
        #[command(subcommand)]
        what: Benchmark,
    },
    /// Checks the structure, every key and every value of a database
    Check {
        /// The database, instead of --db
        path: Option<PathBuf>,
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Shows what is in a database: its names, how many children and values each has
    Stat {
        /// The database, instead of --db
        path: Option<PathBuf>,
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Shows the versions of Perilune and of the embedded Lua
    Version,
    #[command(external_subcommand)]
    Script(Vec<OsString>),
}

#[derive(Debug, Subcommand)]
pub(crate) enum Benchmark {
    /// The 3n+1 problem by processes that share one database
    Collatz(CollatzOptions),
    /// One of the processes
    #[command(hide = true)]
    CollatzWorker { db: PathBuf, durability: String, id: u32 },
}

/// How to run 3n+1.
#[derive(Args, Debug)]
pub(crate) struct CollatzOptions {
    /// Sequences that begin with 1 to N
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000_000))]
    pub(crate) n: u64,
    /// Numbers of processes, one run each
    #[arg(long, value_delimiter = ',', default_value = "1,2",
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub(crate) procs: Vec<u32>,
    /// Numbers a process takes at a time [default: N / 100, at most 10000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    pub(crate) block: Option<u64>,
    /// Runs the processes in this Lua instead of the embedded one; it finds the module by LUA_PATH and
    /// LUA_CPATH, or in build/lua
    #[arg(long, value_name = "PATH")]
    pub(crate) lua: Option<PathBuf>,
    /// What commits wait for: none, periodic or fsync
    #[arg(long, default_value = "none", value_parser = ["none", "periodic", "fsync"])]
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_description_of_the_options_is_consistent() {
        Arguments::command().debug_assert();
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
