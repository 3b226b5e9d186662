//! Algorithms over a view: paths between two vertices, and what only the whole graph can say.
//!
//! Those about paths read as they search, no more than they need; they take a [`Reach`](crate::Reach), so that they go along edges, against
//! them or both ways. Those about the whole graph read it once into arrays of numbers (`compact.rs`): 4 bytes an edge, and the
//! ids of all vertices.
//!
//! ```
//! # let directory = std::env::temp_dir().join(format!("perilune-doc-path-{}", std::process::id()));
//! # std::fs::create_dir_all(&directory).unwrap();
//! # let database = perilune::Database::open(directory.join("t.db"))?;
//! # let mut session = database.session()?;
//! use perilune::node;
//! use perilune_graph::{algorithm, Cost, Graph, GraphOptions, Reach};
//!
//! let options = GraphOptions { weight: Some("km".to_owned()) };
//! let mut graph = Graph::create(&mut session, &node!("^g")?, &options)?;
//! for city in ["DC", "Chicago", "SF"] {
//!     graph.add_vertex(&mut session, city, &["City"])?;
//! }
//! for (from, to, km) in [("DC", "Chicago", 956), ("Chicago", "SF", 2_979), ("DC", "SF", 4_540)] {
//!     let road = graph.add_edge(&mut session, &from.into(), "PATH", &to.into())?;
//!     graph.set_edge_property(&mut session, road, "km", km)?;
//! }
//! let mut view = graph.snapshot(&database)?;
//! let path = algorithm::cheapest_path(&mut view, &"DC".into(), &"SF".into(), &Reach::out(), &mut Cost::Weight)?;
//! assert_eq!(path.map(|path| path.cost()), Some(3_935.0));
//! # drop(view);
//! # let _ = std::fs::remove_dir_all(&directory);
//! # Ok::<(), perilune_graph::Error>(())
//! ```
//!
//! Invariant: each call counts anew for the view's limits.

mod compact;

mod alternatives;
mod around;
mod betweenness;
mod components;
mod order;
mod rank;
mod shortest;
mod triangles;
mod weighted;

pub use self::alternatives::cheapest_paths;
pub use self::around::within;
pub use self::betweenness::betweenness;
pub use self::components::components;
pub use self::order::{find_cycle, topological_order};
pub use self::rank::page_rank;
pub use self::shortest::{all_shortest_paths, shortest_path};
pub use self::triangles::count_triangles;
pub use self::weighted::{cheapest_path, cheapest_path_both_ways, cheapest_path_toward};
