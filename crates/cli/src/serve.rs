//! `serve`: the database for clients of Redis.
//!
//! The options are not written here: each setting of the server (`perilune_redis::SETTINGS`) has a flag and a line
//! in `perilune.conf` of the same name. SIGHUP opens the log file anew; SIGTERM and SIGINT end the server.

use std::io::Write as _;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};

use clap::{Arg, ArgAction, ArgMatches, Args, Command, FromArgMatches, ValueHint};
use perilune::{Database, ErrorCode};
use perilune_redis::files::replace;
use perilune_redis::{
    why_in_vain, FileError, Kind, Name, Running, SettingError, Settings, StartError, SETTINGS,
};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::failure::{doing, environment, wrong_use, Failure, Result};
use crate::which_database;

/// How to serve, before anything is checked.
#[derive(Debug)]
pub(crate) struct ServeOptions {
    /// The database and a settings file, in any order.
    files: Vec<PathBuf>,
    /// What flags say.
    flags: Vec<(&'static str, String)>,
}

impl Args for ServeOptions {
    fn augment_args(command: Command) -> Command {
        let files = Arg::new("files")
            .value_name("FILE")
            .num_args(0..=2)
            .value_parser(clap::value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("A file of settings (*.conf), and the database, instead of --db");
        // The program has --db already.
        SETTINGS.iter().filter(|setting| setting.id != Name::Database).fold(
            command.arg(files),
            |command, setting| {
                let mut flag = Arg::new(setting.name)
                    .long(setting.name)
                    .value_name(setting.kind.placeholder())
                    .allow_hyphen_values(true)
                    .help(match setting.default {
                        "" => setting.summary.to_owned(),
                        default => format!("{} [default: {default}]", setting.summary),
                    });
                if setting.kind.takes_many() {
                    flag = flag.action(ArgAction::Append);
                }
                if let Kind::Choice(words) = setting.kind {
                    flag = flag.value_parser(words.to_vec());
                }
                command.arg(flag)
            },
        )
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for ServeOptions {
    fn from_arg_matches(matches: &ArgMatches) -> std::result::Result<Self, clap::Error> {
        let files = matches.get_many::<PathBuf>("files").unwrap_or_default().cloned().collect();
        let mut flags = Vec::new();
        for setting in SETTINGS.iter().filter(|setting| setting.id != Name::Database) {
            if let Some(words) = matches.get_many::<String>(setting.name) {
                let words: Vec<_> = words.map(String::as_str).collect();
                flags.push((setting.name, words.join(" ")));
            }
        }
        Ok(ServeOptions { files, flags })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> std::result::Result<(), clap::Error> {
        *self = Self::from_arg_matches(matches)?;
        Ok(())
    }
}

impl ServeOptions {
    /// The settings, and the database where the words name one. Flags outdo the file.
    fn settings(&self) -> Result<(Settings, Option<&PathBuf>)> {
        let mut settings = Settings::default();
        let (mut database, mut file) = (None, None);
        for path in &self.files {
            let place =
                if path.extension().is_some_and(|end| end == "conf") { &mut file } else { &mut database };
            if let Some(before) = place.replace(path) {
                // In either order.
                is_no_port(path)?;
                is_no_port(before)?;
                return Err(wrong_use("at most one file of settings (*.conf) and one database".to_owned()));
            }
        }
        if let Some(path) = file {
            settings.read_file(path)?;
        }
        for (name, text) in &self.flags {
            settings.set(name, text)?;
        }
        if let Some(password) =
            std::env::var("PERILUNE_PASSWORD").ok().filter(|password| !password.is_empty())
        {
            if !settings.is_given(Name::RequirePass) {
                settings.set("requirepass", &password)?;
            }
        }
        Ok((settings, database))
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

impl From<SettingError> for Failure {
    fn from(error: SettingError) -> Failure {
        wrong_use(error.to_string())
    }
}

impl From<FileError> for Failure {
    fn from(error: FileError) -> Failure {
        match error {
            FileError::Io { .. } => environment(error.to_string()),
            other => wrong_use(other.to_string()),
        }
    }
}

/// Tells the systemd that has started us, if one has, how far we are.
fn tell_systemd(state: &str) {
    let Some(path) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let bytes = path.as_bytes();
    let address = match bytes.strip_prefix(b"@") {
        Some(name) => SocketAddr::from_abstract_name(name),
        None => SocketAddr::from_pathname(&path),
    };
    // It notices by itself that nothing came.
    let _ = address.and_then(|address| UnixDatagram::unbound()?.send_to_addr(state.as_bytes(), &address));
}

/// Changes to the directory of `dir`, if one is given: what the words and the environment name lies where it did.
/// Returns the database.
fn enter(settings: &Settings, named: Option<&Path>) -> Result<Option<PathBuf>> {
    let in_file = settings.path(Name::Database);
    if !settings.is_given(Name::Dir) {
        return Ok(named.map(Path::to_owned).or(in_file));
    }
    let directory = settings.text(Name::Dir);
    let here = std::env::var_os("PERILUNE_DB").filter(|path| in_file.is_none() && !path.is_empty());
    let named = named.map(Path::to_owned).or(here.map(Into::into));
    let named = named.map(std::path::absolute).transpose().map_err(doing("find the database"))?;
    std::env::set_current_dir(&directory).map_err(doing(format!("work in `dir` {directory}")))?;
    Ok(named.or(in_file))
}

/// The file of `pidfile`, removed when it is dropped.
struct PidFile(PathBuf);

impl PidFile {
    fn write(path: PathBuf) -> Result<PidFile> {
        replace(&path, 0o644, format!("{}\n", std::process::id()).as_bytes())
            .map_err(doing(format!("write `pidfile` {}", path.display())))?;
        Ok(PidFile(path))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        // Somebody may have removed it.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What is no database may be a file of settings whose name does not say so.
fn may_be_settings(error: perilune::Error, path: &Path) -> Failure {
    let is_other = error.code() == ErrorCode::NotADatabase;
    let mut failure = Failure::from(error);
    if is_other {
        let hint =
            format!("; as a file of settings its name has to end in .conf, as {}.conf", path.display());
        failure.message.push_str(&hint);
    }
    failure
}

/// Refuses a number in place of a database that is not there.
fn is_no_port(word: &Path) -> Result<()> {
    let port = word.to_str().and_then(|text| text.parse::<u16>().ok());
    match port {
        Some(port) if !word.exists() => Err(wrong_use(format!(
            "{port} is no database: a port is given by --port {port}; to make a database of that name: ./{port}"
        ))),
        _ => Ok(()),
    }
}

/// Serves until a signal or SHUTDOWN ends it; SIGHUP opens the log anew.
pub(crate) fn run(options: &ServeOptions, flag: Option<&Path>) -> Result<()> {
    let (settings, word) = options.settings()?;
    let word = word.map(PathBuf::as_path);
    let named = which_database::only(word, flag)?;
    if let Some(word) = word {
        is_no_port(word)?;
    }
    for name in &settings.passed_over {
        let why = why_in_vain(name).unwrap_or("it means nothing here");
        say(format_args!("passed over: {name}: {why}"));
    }
    let named = enter(&settings, named)?;
    // Before there are threads, so that a signal meets nobody who knows nothing of it.
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP]).map_err(doing("listen to signals"))?;
    let mut open = Database::options();
    if let Some(durability) = settings.durability {
        open = open.durability(durability);
    }
    let database = match named {
        Some(path) => open.open(&path).map_err(|error| may_be_settings(error, &path))?,
        None => Database::open_default_with(&open)?,
    };
    let socket = settings.unix_socket.clone();
    let pid_file = settings.path(Name::PidFile);
    let running = Running::start(&database, settings)?;
    // As Redis: it serves without one.
    let _pid_file = pid_file.and_then(|path| {
        PidFile::write(path).inspect_err(|failure| say(format_args!("{failure}: serving without it"))).ok()
    });
    let stopper = running.stopper();
    for address in running.addresses() {
        say(format_args!("{} is served at {address}", database.path().display()));
    }
    if let Some(path) = &socket {
        say(format_args!("{} is served at {}", database.path().display(), path.display()));
    }
    say(format_args!("{}", running.password()));
    let handle = signals.handle();
    let listener = std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal == SIGHUP {
                if let Err(error) = stopper.reopen_log() {
                    say(format_args!("the log cannot be opened anew: {error}"));
                }
                continue;
            }
            tell_systemd("STOPPING=1");
            stopper.stop();
            break;
        }
    });
    tell_systemd("READY=1");
    running.wait();
    say(format_args!("{} is served no longer", database.path().display()));
    handle.close();
    // It has nothing left to wait for.
    let _ = listener.join();
    Ok(())
}

/// Says a line on standard error. Whoever has closed that does without it: `eprintln!` would end the server.
fn say(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "perilune: {line}");
}
