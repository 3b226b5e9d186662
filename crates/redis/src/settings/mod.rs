//! How a server is to run: the table of settings, `perilune.conf`, and what all servers of a database share.
//!
//! Two scopes. What one server is (port, sockets, threads, files) is fixed when it starts: [`Settings`]. What
//! concerns the database (limits, passwords, logs) is one for all its servers, lies in the tree and is changed
//! by CONFIG SET: `live`. A shared setting that is given at the start is set for all, as by CONFIG SET.

mod fixed;
mod kind;
mod live;
mod policy;
mod table;

use std::path::{Path, PathBuf};
use std::{env, fs, io, thread};

use perilune::Durability;
pub use perilune_net::settings::{FileError, Kind, Scope, SettingError};

pub use self::fixed::why_in_vain;
pub(crate) use self::fixed::{fixed, FIXED};
use self::fixed::{foreign, Foreign};
pub(crate) use self::live::Live;
pub(crate) use self::policy::Policy;
use self::table::TABLE;
pub use self::table::{find, Name, Setting, SETTINGS};
use perilune_net::settings::file;

/// How a server is to run. The names are those of `redis.conf` where they mean the same.
#[derive(Clone, Debug)]
pub struct Settings {
    /// TCP port; 0 is none.
    pub port: u16,
    /// Any free TCP port, whatever `port` says; `Running::addresses` tells which.
    pub any_port: bool,
    /// Addresses to listen at; one that begins with `-` may be missing on this machine.
    pub bind: Vec<String>,
    /// A Unix socket to listen at.
    pub unix_socket: Option<PathBuf>,
    /// Permissions of the Unix socket.
    pub unix_socket_mode: u32,
    /// Threads that serve clients.
    pub threads: usize,
    /// The level that the database was opened with, to be told to clients; none: as it was found.
    pub durability: Option<Durability>,
    /// The settings of this server that have no field, by name, and the shared ones that were given.
    pub given: Vec<(Name, String)>,
    /// The words behind `user` on lines of the file.
    pub users: Vec<Vec<String>>,
    /// What CONFIG REWRITE writes.
    pub file: Option<PathBuf>,
    /// Settings of Redis that the file has and that mean nothing here.
    pub passed_over: Vec<&'static str>,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            port: 6379,
            any_port: false,
            bind: vec!["127.0.0.1".to_owned(), "-::1".to_owned()],
            unix_socket: None,
            unix_socket_mode: 0o700,
            threads: thread::available_parallelism().map_or(1, usize::from),
            durability: None,
            given: Vec::new(),
            users: Vec::new(),
            file: None,
            passed_over: Vec::new(),
        }
    }
}

impl Settings {
    /// These settings with another one, for tests and programs.
    ///
    /// # Errors
    /// As [`Settings::set`].
    pub fn with(mut self, name: &str, value: &str) -> Result<Settings, SettingError> {
        self.set(name, value)?;
        Ok(self)
    }

    /// Sets what is called `name`, as a line of `perilune.conf` does.
    ///
    /// # Errors
    /// An unknown name, with the nearest one, or a value that it does not take.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SettingError> {
        let setting = TABLE.known(name)?;
        let parsed = setting.kind.parse(value).map_err(|why| SettingError::invalid(name, &why))?;
        match setting.id {
            Name::Port => (self.port, self.any_port) = (parsed.number as u16, parsed.text == "any"),
            Name::Bind => self.bind = parsed.text.split_whitespace().map(str::to_owned).collect(),
            Name::UnixSocket => {
                self.unix_socket = Some(parsed.text).filter(|path| !path.is_empty()).map(Into::into)
            }
            Name::UnixSocketPerm => self.unix_socket_mode = parsed.number as u32,
            Name::Threads if parsed.number > 0 => self.threads = parsed.number as usize,
            Name::Threads => self.threads = Settings::default().threads,
            id @ (Name::AppendFsync | Name::AppendOnly | Name::Durability) => self.set_level(id, parsed.text),
            id => {
                self.given.retain(|(other, _)| *other != id);
                self.given.push((id, parsed.text));
            }
        }
        Ok(())
    }

    /// Of `durability` and `appendfsync` the last one holds; `appendonly no` outdoes `appendfsync`, as in Redis, and a
    /// `durability` before it.
    fn set_level(&mut self, id: Name, text: String) {
        let outdone = |other: Name| match id {
            Name::AppendOnly => other == Name::AppendOnly || other == Name::Durability && text == "no",
            _ => matches!(other, Name::AppendFsync | Name::Durability),
        };
        self.given.retain(|(other, _)| !outdone(*other));
        self.given.push((id, text));
        let given = |name| self.given.iter().find(|(given, _)| *given == name).map(|(_, text)| &**text);
        let word = given(Name::Durability).or(given(Name::AppendOnly).filter(|text| *text == "no"));
        self.durability = match word.or(given(Name::AppendFsync)) {
            Some("always" | "fsync") => Some(Durability::Fsync),
            Some("everysec" | "periodic") => Some(Durability::Periodic),
            Some("no" | "none") => Some(Durability::None),
            _ => None,
        };
    }

    /// What a setting of this server is.
    #[must_use]
    pub fn text(&self, name: Name) -> String {
        let word = |words: [&str; 3]| match self.durability {
            None => String::new(),
            Some(Durability::Fsync) => words[0].to_owned(),
            Some(Durability::Periodic) => words[1].to_owned(),
            Some(Durability::None) => words[2].to_owned(),
        };
        match name {
            Name::Port if self.any_port => "any".to_owned(),
            Name::Port => self.port.to_string(),
            Name::Bind => self.bind.join(" "),
            Name::UnixSocket => {
                self.unix_socket.as_ref().map_or_else(String::new, |path| path.display().to_string())
            }
            Name::UnixSocketPerm => format!("{:o}", self.unix_socket_mode),
            Name::Threads => self.threads.to_string(),
            Name::AppendOnly if self.durability == Some(Durability::None) => "no".to_owned(),
            Name::AppendOnly => "yes".to_owned(),
            Name::AppendFsync if !self.is_given(name) => word(["always", "everysec", "no"]),
            Name::Durability => word(["fsync", "periodic", "none"]),
            _ => match self.given.iter().find(|(given, _)| *given == name) {
                Some((_, text)) => text.clone(),
                None if name == Name::Dir => {
                    env::current_dir().map_or_else(|_| String::new(), |here| here.display().to_string())
                }
                None => name.row().default.to_owned(),
            },
        }
    }

    /// What a setting of this server is, as a number.
    pub(crate) fn number(&self, name: Name) -> i64 {
        name.row().kind.parse(&self.text(name)).map_or(0, |parsed| parsed.number)
    }

    /// A file or directory that a setting names, if it does.
    #[must_use]
    pub fn path(&self, name: Name) -> Option<PathBuf> {
        Some(self.text(name)).filter(|text| !text.is_empty()).map(PathBuf::from)
    }

    /// The shared settings that were given.
    pub(crate) fn shared(&self) -> impl Iterator<Item = (Name, &str)> {
        let given = self.given.iter().filter(|(name, _)| name.row().scope == Scope::Shared);
        given.map(|(name, text)| (*name, &**text))
    }

    /// Whether a setting without a field of its own was given.
    #[must_use]
    pub fn is_given(&self, name: Name) -> bool {
        self.given.iter().any(|(given, _)| *given == name)
    }
}

/// `perilune.conf`, which may be a redis.conf. What Redis alone has, and means nothing here, is passed over and remembered, to
/// be told.
impl Settings {
    /// Applies the file at `path`, and remembers it for CONFIG REWRITE.
    ///
    /// # Errors
    /// A file that cannot be read, or a line that is not understood.
    pub fn read_file(&mut self, path: &Path) -> Result<(), FileError> {
        file::read(path, &mut |name, values| {
            self.take_line(name, values).map_err(|error| error.to_string())
        })?;
        self.file = Some(fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        Ok(())
    }

    fn take_line(&mut self, name: &str, values: &[String]) -> Result<(), SettingError> {
        match (&*name.to_ascii_lowercase(), values) {
            ("user", [_, ..]) => self.users.push(values.to_vec()),
            ("save", [none]) if none.is_empty() => {}
            (lower, values) if find(lower).is_none() || lower == "save" => self.pass_over(name, values)?,
            _ => self.set_words(name, values)?,
        }
        Ok(())
    }

    /// Takes a line of redis.conf that sets nothing here, if it asks for nothing that matters.
    fn pass_over(&mut self, name: &str, values: &[String]) -> Result<(), SettingError> {
        match foreign(name, &values.join(" ")) {
            Some(Foreign::So) => {}
            Some(Foreign::Vain(vain)) if self.passed_over.contains(&vain) => {}
            Some(Foreign::Vain(vain)) => self.passed_over.push(vain),
            Some(Foreign::Refused(why)) => return Err(SettingError::invalid(name, &why)),
            None => return TABLE.known(name).map(drop),
        }
        Ok(())
    }

    /// Sets `name` to `values`, which only some settings take several of.
    fn set_words(&mut self, name: &str, values: &[String]) -> Result<(), SettingError> {
        let many = find(name).is_some_and(|setting| setting.kind.takes_many());
        match values {
            [value] => self.set(name, value),
            [] | [_, _, ..] if many => self.set(name, &values.join(" ")),
            _ => {
                // An unknown name is the greater mistake.
                TABLE.known(name)?;
                Err(SettingError::invalid(name, "takes one value; one with blanks stands in quotes"))
            }
        }
    }
}

/// CONFIG REWRITE: the file at `path` says of each setting what stands beside it, and nothing of what has no value.
pub(crate) fn rewrite(path: &Path, values: &[(&'static Setting, Option<String>)]) -> io::Result<()> {
    file::rewrite(path, &TABLE, values, "# Generated by CONFIG REWRITE")
}
