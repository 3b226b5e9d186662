//! Why a server could not start.
//!
//! Example: `cannot listen at 127.0.0.1:6379: another program does, ...: choose another port or bind`.
//!
//! Invariant: each says what to do next.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::{fmt, io};

use perilune_net::listener::ListenError;

const NOTHING: &str =
    "there is nothing to listen at: set `port` or `tls-port` with an address in `bind`, or `unixsocket`";

/// Why a server could not start: the text says what to do.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// An address or socket is not to be had.
    Listen {
        /// Which.
        place: String,
        /// The system's answer.
        source: io::Error,
    },
    /// Another program listens there, or a server of another database.
    Taken {
        /// Where.
        address: SocketAddr,
    },
    /// Users of `aclfile` or `user` lines are not as they have to be.
    Users(String),
    /// The database is behind a server already.
    Remote {
        /// Of another server, or the name of a database in memory.
        address: String,
    },
    /// A file that a setting names is not as it has to be.
    Setting(String),
    /// The operating system refused something else.
    Io(io::Error),
    /// The database answered.
    Database(perilune::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen { place, source } => {
                write!(f, "cannot listen at {place}: {source}: choose another `port`, `bind` or `unixsocket`")
            }
            StartError::Taken { address } => {
                write!(
                    f,
                    "cannot listen at {address}: another program does, or a server of another database: choose \
                     another `port` or `bind`"
                )
            }
            StartError::Remote { address } => {
                write!(
                    f,
                    "{address} is no file: start `perilune serve` with the path of a database's file, on its machine"
                )
            }
            StartError::Users(why) | StartError::Setting(why) => f.write_str(why),
            StartError::Io(error) => write!(f, "cannot start the server: {error}"),
            StartError::Database(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            StartError::Listen { source, .. } | StartError::Io(source) => Some(source),
            StartError::Database(error) => Some(error),
            StartError::Remote { .. } | StartError::Taken { .. } => None,
            StartError::Users(_) | StartError::Setting(_) => None,
        }
    }
}

impl StartError {
    /// Why nobody can connect at `what`: clients, or who asks for metrics.
    pub(crate) fn of_listening<E: Into<StartError>>(error: ListenError<E>, what: &str) -> StartError {
        match error {
            ListenError::Socket { place, source } => {
                StartError::Listen { place: format!("{place}{what}"), source }
            }
            ListenError::Taken { address } => StartError::Taken { address },
            ListenError::Nowhere => StartError::Setting(NOTHING.to_owned()),
            ListenError::Io(error) => StartError::Io(error),
            ListenError::Sharing(error) => error.into(),
        }
    }
}

impl From<Infallible> for StartError {
    fn from(never: Infallible) -> StartError {
        match never {}
    }
}

impl From<io::Error> for StartError {
    fn from(error: io::Error) -> StartError {
        StartError::Io(error)
    }
}

impl From<perilune::Error> for StartError {
    fn from(error: perilune::Error) -> StartError {
        StartError::Database(error)
    }
}
