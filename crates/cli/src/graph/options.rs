//! What `graph` can be told, as clap reads it.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum, ValueHint};
use perilune_graph::{Direction, Reach};

/// What to do with a graph.
#[derive(Debug, Subcommand)]
pub(crate) enum GraphCommand {
    /// Makes a graph without vertices below a node
    Create {
        /// The database, instead of --db, made if it is missing; then the node, as ^air
        #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
        words: Vec<PathBuf>,
        /// The property of edges that is their weight: walks have it at hand
        #[arg(long, value_name = "PROPERTY")]
        weight: Option<String>,
    },
    /// Adds the vertices and edges in files of CSV or JSON Lines
    ///
    /// All files are read to their ends first: if one is wrong, nothing is added, and no database made. The graph is made if there
    /// is none. Vertices have columns or members `id` and, if they want, `labels`; edges `source`, `type` and `target`; all others
    /// are properties. A vertex that is there gets the labels and properties; ends of edges that are not there are added.
    #[command(verbatim_doc_comment)]
    Import(ImportOptions),
    /// Writes the graph as DOT (Graphviz), GraphML or JSON
    Export {
        /// The database, instead of --db; then the graph's node
        #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
        words: Vec<PathBuf>,
        /// How it is written [default: told by the name of the file, else dot]
        #[arg(long, value_enum)]
        format: Option<ExportFormat>,
        /// The file, instead of the standard output
        #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        output: Option<PathBuf>,
        /// Replaces a file that is there
        #[arg(long)]
        force: bool,
    },
    /// Draws what lies around vertices
    Draw(DrawOptions),
    /// Checks that both directions, degrees, labels and indexes agree
    Check {
        /// The database, instead of --db; then the graph's node
        #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
        words: Vec<PathBuf>,
    },
    /// Counts vertices and edges, by label and by type
    Stat {
        /// The database, instead of --db; then the graph's node
        #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
        words: Vec<PathBuf>,
        /// Prints one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Walks from vertices; prints a line for each path
    Walk(WalkOptions),
    /// Finds a path of the fewest edges, or the cheapest; prints it, and its cost
    Path(PathOptions),
}

/// What to import.
#[derive(Args, Debug)]
pub(crate) struct ImportOptions {
    /// The database, instead of --db, made if it is missing; then the graph's node
    #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
    pub(crate) words: Vec<PathBuf>,
    /// A file of vertices (`-`: the standard input); may be given more than once
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) vertices: Vec<PathBuf>,
    /// A file of edges (`-`: the standard input); may be given more than once
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) edges: Vec<PathBuf>,
    /// How the files are written [default: told by their first letter, `{` or another]
    #[arg(long, value_enum)]
    pub(crate) format: Option<ImportFormat>,
    /// Of a graph that is made: the property of edges that is their weight
    #[arg(long, value_name = "PROPERTY")]
    pub(crate) weight: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ImportFormat {
    Csv,
    Jsonl,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    Dot,
    Graphml,
    Json,
}

/// Which edges are followed.
#[derive(Args, Debug)]
pub(crate) struct ReachOptions {
    /// Only edges of this type; may be given more than once
    #[arg(long = "type", value_name = "TYPE")]
    types: Vec<String>,
    /// Which way edges are followed
    #[arg(long, value_enum, default_value = "out")]
    direction: Way,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Way {
    Out,
    In,
    Both,
}

impl ReachOptions {
    pub(crate) fn reach(&self) -> Reach {
        let direction = match self.direction {
            Way::Out => Direction::Out,
            Way::In => Direction::In,
            Way::Both => Direction::Both,
        };
        self.types.iter().fold(Reach::new(direction), |reach, kind| reach.of(kind))
    }
}

/// What to draw, and where to.
#[derive(Args, Debug)]
pub(crate) struct DrawOptions {
    /// The database, instead of --db; then the graph's node
    #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
    pub(crate) words: Vec<PathBuf>,
    /// A vertex to start from; may be given more than once
    #[arg(long, value_name = "VERTEX", required = true, allow_hyphen_values = true)]
    pub(crate) from: Vec<String>,
    /// How many edges away vertices may be
    #[arg(long, default_value_t = 2)]
    pub(crate) depth: usize,
    #[command(flatten)]
    pub(crate) reach: ReachOptions,
    /// The property of vertices that is written beside them; without it the id
    #[arg(long, value_name = "PROPERTY", default_value = "name")]
    pub(crate) name: String,
    /// Draws this many vertices at most, the nearest
    #[arg(long, default_value_t = 300, value_parser = clap::value_parser!(u32).range(1..=2_000))]
    pub(crate) limit: u32,
    /// Writes an SVG file, which follows the reader's dark mode
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "png")]
    pub(crate) svg: Option<PathBuf>,
    /// Writes a PNG file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) png: Option<PathBuf>,
    /// How many pixels wide the PNG is
    #[arg(long, default_value_t = 1_200, value_parser = clap::value_parser!(u32).range(100..=10_000))]
    pub(crate) width: u32,
    /// Replaces files that are there
    #[arg(long)]
    pub(crate) force: bool,
}

/// How to walk.
#[derive(Args, Debug)]
pub(crate) struct WalkOptions {
    /// The database, instead of --db; then the graph's node
    #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
    pub(crate) words: Vec<PathBuf>,
    /// A vertex to start from; may be given more than once
    #[arg(long, value_name = "VERTEX", required = true, allow_hyphen_values = true)]
    pub(crate) from: Vec<String>,
    /// How many edges paths have, as 2 (up to that many) or 2..3
    #[arg(long, value_name = "N or N..M", value_parser = depths, default_value = "1..1")]
    pub(crate) depth: (usize, usize),
    #[command(flatten)]
    pub(crate) reach: ReachOptions,
    /// Longer paths first where they can be, instead of shorter ones
    #[arg(long)]
    pub(crate) depth_first: bool,
    /// What is met once only: a vertex or edge of the whole walk, or of each path
    #[arg(long, value_enum, default_value = "vertex")]
    pub(crate) unique: Once,
    /// Ends after this many paths
    #[arg(long)]
    pub(crate) limit: Option<usize>,
    /// What is printed of a path
    #[arg(long, value_enum, default_value = "path")]
    pub(crate) show: Show,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum Once {
    Vertex,
    Edge,
    VertexOfPath,
    EdgeOfPath,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Show {
    /// All of it, as ada-[KNOWS]->ben
    Path,
    /// The vertex at its end
    Vertex,
    /// A JSON object: vertices, edges, cost
    Json,
}

/// Reads "2" as up to two, "2..3" as two or three.
fn depths(text: &str) -> Result<(usize, usize), String> {
    let number = |text: &str| text.parse::<usize>().ok();
    let read = match text.split_once("..") {
        None => number(text).map(|to| (0, to)),
        Some((from, "")) => number(from).map(|from| (from, usize::MAX)),
        Some((from, to)) => number(from).zip(number(to)),
    };
    read.filter(|(from, to)| from <= to).ok_or_else(|| "how many edges, as 2, 2..3 or 2..".to_owned())
}

/// Which path to find.
#[derive(Args, Debug)]
pub(crate) struct PathOptions {
    /// The database, instead of --db; then the graph's node
    #[arg(value_names = ["DB", "NODE"], num_args = 1..=2, required = true, value_hint = ValueHint::FilePath)]
    pub(crate) words: Vec<PathBuf>,
    /// Where it begins
    #[arg(long, value_name = "VERTEX", allow_hyphen_values = true)]
    pub(crate) from: String,
    /// Where it ends
    #[arg(long, value_name = "VERTEX", allow_hyphen_values = true)]
    pub(crate) to: String,
    #[command(flatten)]
    pub(crate) reach: ReachOptions,
    /// The least sum of the edges' weights, instead of the fewest edges
    #[arg(long)]
    pub(crate) cheapest: bool,
    /// Up to so many paths: all of the fewest edges, or the cheapest ones, in order
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) count: usize,
    /// What is printed of a path
    #[arg(long, value_enum, default_value = "path")]
    pub(crate) show: Show,
}

#[cfg(test)]
mod tests {
    use super::depths;

    #[test]
    fn depths_are_one_number_or_two() {
        assert_eq!(depths("2"), Ok((0, 2)));
        assert_eq!(depths("1..3"), Ok((1, 3)));
        assert_eq!(depths("2.."), Ok((2, usize::MAX)));
        for wrong in ["", "x", "3..1", "-1", "1..x", ".."] {
            assert!(depths(wrong).is_err(), "{wrong}");
        }
    }
}
