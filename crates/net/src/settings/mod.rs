//! Settings: what an operator says of a server, by name, in a file or while it runs.
//!
//! A server has one [`Table`] of its [`Setting`]s: each row is a name, whose it is, what it takes, what holds when nobody has
//! said anything, and a line for whoever sets it. All else follows from the table: [`mod@file`] reads and rewrites what
//! operators write, [`Kind`] reads one value, [`Values`] keeps what holds at the moment, for threads that ask with each
//! request.
//!
//! ```
//! use perilune_net::settings::{Id, Kind, Scope, Setting, Table, Values};
//!
//! #[derive(Clone, Copy, Debug, PartialEq)]
//! enum Name { Port, Timeout }
//!
//! impl Id for Name {
//!     fn place(self) -> usize { self as usize }
//! }
//!
//! static TABLE: Table<Name> = Table {
//!     rows: &[
//!         Setting {
//!             name: "port", id: Name::Port, scope: Scope::Server, kind: Kind::Port, default: "7000",
//!             summary: "Where it listens",
//!         },
//!         Setting {
//!             name: "timeout", id: Name::Timeout, scope: Scope::Shared,
//!             kind: Kind::Integer { least: 0, most: 60 }, default: "0", summary: "Seconds of silence; 0: any",
//!         },
//!     ],
//!     aliases: &[],
//!     listed_in: "the manual",
//! };
//!
//! let values = Values::new(&TABLE);
//! values.store(Name::Timeout, "30").unwrap();
//! assert_eq!((values.number(Name::Timeout), values.number(Name::Port)), (30, 7_000));
//! assert!(values.store(Name::Timeout, "61").is_err(), "what is out of bounds changes nothing");
//! assert_eq!(TABLE.known("tiemout").unwrap_err().to_string(), "there is no setting `tiemout`; is `timeout` meant?");
//! ```
//!
//! Invariants
//! - What is in force was valid when it was given: nonsense, from wherever it comes, changes nothing.
//! - A wrong name or value is answered with what would be right.
//!
//! Deliberately absent: what a setting means, and where servers keep those that they share.

pub mod file;
mod kind;
mod table;
mod values;

pub use self::file::FileError;
pub use self::kind::{bytes, Kind, Own, Parsed};
pub use self::table::{Id, Scope, Setting, SettingError, Table};
pub use self::values::Values;
