//! `serve`: the database for clients of Redis.

use std::path::{Path, PathBuf};

use clap::{Args, ValueHint};
use perilune::{Database, Durability};
use perilune_server::{Running, Settings, StartError};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{doing, environment, wrong_use, Failure, Result};

/// How to serve; the names are those of redis.conf where they mean the same.
#[derive(Args, Debug)]
pub(crate) struct ServeOptions {
    /// The database, instead of --db
    #[arg(value_hint = ValueHint::FilePath)]
    path: Option<PathBuf>,
    /// TCP port; 0 takes any free one
    #[arg(long, default_value_t = 6379)]
    port: u16,
    /// Address to listen at, several times if need be; one that begins with - may be missing [default:
    /// 127.0.0.1 and -::1]
    #[arg(long, value_name = "ADDRESS", allow_hyphen_values = true)]
    bind: Vec<String>,
    /// Unix socket to listen at, too
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    unixsocket: Option<PathBuf>,
    /// Permissions of the Unix socket, octal
    #[arg(long, value_name = "MODE", default_value = "700")]
    unixsocketperm: String,
    /// Threads that serve clients [default: one for each core]
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// The password that clients must give; better in the environment, as $PERILUNE_PASSWORD
    #[arg(long, value_name = "PASSWORD")]
    requirepass: Option<String>,
    /// Whether clients of other machines are refused while there is no password
    #[arg(long, value_name = "yes|no", default_value = "yes", value_parser = ["yes", "no"])]
    protected_mode: String,
    /// Clients at most
    #[arg(long, default_value_t = 10_000)]
    maxclients: u64,
    /// What commits wait for: none, periodic or fsync [default: as the database has it]
    #[arg(long, value_parser = ["none", "periodic", "fsync"])]
    durability: Option<String>,
}

impl ServeOptions {
    fn settings(&self, durability: Option<Durability>) -> Result<Settings> {
        let mut settings = Settings {
            port: self.port,
            unix_socket: self.unixsocket.clone(),
            password: self.requirepass.clone().or_else(|| std::env::var("PERILUNE_PASSWORD").ok()),
            protected_mode: self.protected_mode == "yes",
            max_clients: self.maxclients,
            durability,
            ..Settings::default()
        };
        settings.password = settings.password.filter(|password| !password.is_empty());
        if !self.bind.is_empty() {
            settings.bind.clone_from(&self.bind);
        }
        if let Some(threads) = self.threads {
            settings.threads = usize::from(threads);
        }
        settings.unix_socket_mode = u32::from_str_radix(&self.unixsocketperm, 8)
            .ok()
            .filter(|mode| *mode <= 0o777)
            .ok_or_else(|| wrong_use(format!("unixsocketperm is octal, not `{}`", self.unixsocketperm)))?;
        Ok(settings)
    }
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Failure {
        match error {
            StartError::Database(error) => error.into(),
            other => environment(other.to_string()),
        }
    }
}

/// Serves until a signal or SHUTDOWN ends it.
pub(crate) fn run(options: &ServeOptions, default: Option<&Path>) -> Result<()> {
    let durability = match &options.durability {
        Some(level) => Some(level.parse::<Durability>().map_err(perilune::Error::from)?),
        None => None,
    };
    let settings = options.settings(durability)?;
    // Before there are threads, so that a signal meets nobody who knows nothing of it.
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(doing("listen to signals"))?;
    let mut open = Database::options();
    if let Some(durability) = durability {
        open = open.durability(durability);
    }
    let database = match options.path.as_deref().or(default) {
        Some(path) => open.open(path)?,
        None => Database::open_default_with(&open)?,
    };
    let running = Running::start(&database, settings)?;
    let stopper = running.stopper();
    for address in running.addresses() {
        eprintln!("perilune: {} is served at {address}", database.path().display());
    }
    if let Some(path) = &options.unixsocket {
        eprintln!("perilune: {} is served at {}", database.path().display(), path.display());
    }
    let handle = signals.handle();
    let listener = std::thread::spawn(move || {
        if signals.forever().next().is_some() {
            stopper.stop();
        }
    });
    running.wait();
    handle.close();
    // It has nothing left to wait for.
    let _ = listener.join();
    Ok(())
}
