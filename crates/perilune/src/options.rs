//! How a database is opened: options with the same names in Rust, Lua, C and perilune.conf.

use std::path::PathBuf;
use std::time::Duration;

use perilune_store::Durability;

use crate::{Error, Result};

/// How to open a database; the defaults are good for most.
///
/// ```no_run
/// use perilune::{Database, Durability};
///
/// let database = Database::options().create(false).durability(Durability::None).open("shop.db")?;
/// # Ok::<(), perilune::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct OpenOptions {
    pub(crate) create: bool,
    pub(crate) read_only: bool,
    pub(crate) durability: Option<Durability>,
    pub(crate) max_size: Option<u64>,
    pub(crate) timeout: Duration,
    pub(crate) wait_limit: Duration,
    pub(crate) wake_stopped: bool,
    pub(crate) file_mode: u32,
    pub(crate) shm_dir: Option<PathBuf>,
    pub(crate) allow_any_filesystem: bool,
    pub(crate) accept_lost_commits: bool,
    pub(crate) behind_damage: bool,
}

impl Default for OpenOptions {
    fn default() -> Self {
        OpenOptions {
            create: true,
            read_only: false,
            durability: None,
            max_size: None,
            timeout: Duration::from_secs(10),
            wait_limit: Duration::from_secs(10),
            wake_stopped: true,
            file_mode: 0o600,
            shm_dir: None,
            allow_any_filesystem: false,
            accept_lost_commits: false,
            behind_damage: false,
        }
    }
}

impl OpenOptions {
    /// Whether to create the database when it is missing; true if not told otherwise.
    pub fn create(mut self, create: bool) -> Self {
        self.create = create;
        self
    }

    /// Whether to open for reading only, which needs no permission to write; if not told, what $PERILUNE_READ_ONLY says
    /// (`1`), or else false.
    pub fn read_only(mut self, read_only: bool) -> Self {
        self.read_only = read_only;
        self
    }

    /// What commits wait for; if not told, what $PERILUNE_DURABILITY says, or else the level of
    /// the database, which is periodic for a new one.
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = Some(durability);
        self
    }

    /// Bytes the file may grow to; if not told, what $PERILUNE_MAX_SIZE says, or else 1 TiB. It is address
    /// space, not memory. While others have the database open, what the first of them allowed is the limit for all.
    pub fn max_size(mut self, bytes: u64) -> Self {
        self.max_size = Some(bytes);
        self
    }

    /// How long opening may wait for a process that creates, recovers or closes the database; 10 s
    /// if not told otherwise.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// How long an operation waits for a page that another process holds and does not give back, because it is stopped,
    /// before it answers `Busy`, which names that process; 10 s if not told otherwise. In a transaction its own limit counts,
    /// too. A session can change it: [`crate::Serving::set_wait_limit`].
    pub fn wait_limit(mut self, limit: Duration) -> Self {
        self.wait_limit = limit;
        self
    }

    /// Whether a process that was stopped by a signal (`kill -STOP`, Ctrl-Z) in the midst of a change, with a page that
    /// this one needs, is let go on until that change is complete; then it stops itself again. True if not told
    /// otherwise. It works for processes of one user, or by root; whom a debugger or a paused container keeps stays
    /// where it is, and is waited for up to [`OpenOptions::wait_limit`].
    pub fn wake_stopped(mut self, wake: bool) -> Self {
        self.wake_stopped = wake;
        self
    }

    /// Permissions of the files created; 0o600 if not told otherwise. Whoever may write them may do
    /// everything to the data.
    pub fn file_mode(mut self, mode: u32) -> Self {
        self.file_mode = mode;
        self
    }

    /// The directory for the shared-memory file, if not beside the database.
    pub fn shm_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.shm_dir = Some(directory.into());
        self
    }

    /// Whether to open on file systems that do not keep what Perilune relies on at full speed
    /// (btrfs, zfs); false if not told otherwise.
    pub fn allow_any_filesystem(mut self, allow: bool) -> Self {
        self.allow_any_filesystem = allow;
        self
    }

    /// Whether to open after a crash of the machine although the log is damaged or gone, without the commits that
    /// it held behind the damage: they are given up for good, and the log is removed. False if not told; such a
    /// database is then refused, and stays as it is. Where nothing is damaged it changes nothing.
    pub fn accept_lost_commits(mut self, accept: bool) -> Self {
        self.accept_lost_commits = accept;
        self
    }

    /// Whether [`OpenOptions::salvage`] also applies what lies whole behind damage in the log, although what such a
    /// commit relied on may be missing; false if not told. Opening does not look at it.
    pub fn behind_damage(mut self, behind_damage: bool) -> Self {
        self.behind_damage = behind_damage;
        self
    }

    /// Sets the option called `name` from text, as configuration files and bindings do. Sizes are
    /// bytes or end in k, m, g or t; times are seconds; modes are octal.
    ///
    /// # Errors
    /// `Invalid`, with the names or values that are good.
    pub fn set(mut self, name: &str, text: &str) -> Result<Self> {
        match name {
            "create" => self.create = truth(name, text)?,
            "read_only" => self.read_only = truth(name, text)?,
            "durability" => self.durability = Some(text.parse()?),
            "max_size" => self.max_size = Some(bytes(text)?),
            "timeout" => self.timeout = seconds(text)?,
            "wait_limit" => self.wait_limit = seconds(text)?,
            "wake_stopped" => self.wake_stopped = truth(name, text)?,
            "file_mode" => {
                self.file_mode = u32::from_str_radix(text.trim_start_matches("0o"), 8)
                    .ok()
                    .filter(|mode| *mode <= 0o777)
                    .ok_or_else(|| Error::invalid(format!("file_mode is octal, 0 to 777, not `{text}`")))?;
            }
            "shm_dir" => self.shm_dir = Some(PathBuf::from(text)),
            "allow_any_filesystem" => self.allow_any_filesystem = truth(name, text)?,
            "accept_lost_commits" => self.accept_lost_commits = truth(name, text)?,
            _ => {
                return Err(Error::invalid(format!(
                    "there is no option `{name}`: create, read_only, durability, max_size, timeout, \
                     wait_limit, wake_stopped, file_mode, shm_dir, allow_any_filesystem and accept_lost_commits are"
                )))
            }
        }
        Ok(self)
    }

    /// What commits wait for: as told, or by the environment; None: as the database has it.
    pub(crate) fn level(&self) -> Result<Option<Durability>> {
        match (self.durability, std::env::var("PERILUNE_DURABILITY")) {
            (Some(durability), _) => Ok(Some(durability)),
            (None, Ok(text)) => Ok(Some(text.parse()?)),
            (None, Err(_)) => Ok(None),
        }
    }

    /// Whether to open for reading only: as told, or by the environment.
    pub(crate) fn reads_only(&self) -> bool {
        self.read_only || std::env::var_os("PERILUNE_READ_ONLY").is_some_and(|text| text == "1")
    }

    /// Bytes the file may grow to: as told, by the environment, or 1 TiB.
    pub(crate) fn bytes_max(&self) -> Result<u64> {
        match (self.max_size, std::env::var("PERILUNE_MAX_SIZE")) {
            (Some(bytes), _) => Ok(bytes),
            (None, Ok(text)) if !text.is_empty() => {
                bytes(&text).map_err(|error| Error::invalid(format!("$PERILUNE_MAX_SIZE: {error}")))
            }
            (None, _) => Ok(1 << 40),
        }
    }
}

fn truth(name: &str, text: &str) -> Result<bool> {
    match text {
        "true" | "yes" | "1" => Ok(true),
        "false" | "no" | "0" => Ok(false),
        _ => Err(Error::invalid(format!("{name} is true or false, not `{text}`"))),
    }
}

fn seconds(text: &str) -> Result<Duration> {
    let seconds: Option<f64> = text.parse().ok();
    seconds
        .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
        .ok_or_else(|| Error::invalid(format!("a timeout is a number of seconds from 0 on, not `{text}`")))
}

fn bytes(text: &str) -> Result<u64> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, unit)) if unit.is_ascii_alphabetic() => {
            let shift = match unit.to_ascii_lowercase() {
                'k' => 10,
                'm' => 20,
                'g' => 30,
                't' => 40,
                _ => 64,
            };
            (&text[..at], shift)
        }
        _ => (text, 0),
    };
    let size: Option<u64> = digits.parse().ok();
    size.and_then(|size| size.checked_mul(1_u64.checked_shl(shift)?))
        .ok_or_else(|| Error::invalid(format!("a size is bytes, or ends in k, m, g or t, not `{text}`")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_read_from_text() -> Result<()> {
        let options = OpenOptions::default()
            .set("create", "no")?
            .set("durability", "fsync")?
            .set("max_size", "2g")?
            .set("timeout", "0.5")?
            .set("wait_limit", "2")?
            .set("wake_stopped", "no")?
            .set("file_mode", "640")?
            .set("accept_lost_commits", "yes")?;
        assert_eq!(
            options,
            OpenOptions::default()
                .create(false)
                .durability(Durability::Fsync)
                .max_size(2 << 30)
                .timeout(Duration::from_millis(500))
                .wait_limit(Duration::from_secs(2))
                .wake_stopped(false)
                .file_mode(0o640)
                .accept_lost_commits(true)
        );
        let wrong = [
            ("max_sise", "1"),
            ("create", "maybe"),
            ("durability", "always"),
            ("max_size", "99999999t"),
            ("max_size", "1x"),
            ("timeout", "-1"),
            ("file_mode", "9"),
        ];
        for (name, text) in wrong {
            assert!(OpenOptions::default().set(name, text).is_err(), "{name}={text}");
        }
        Ok(())
    }
}
