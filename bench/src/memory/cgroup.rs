//! A memory cgroup below our own, in which a process may have only so much memory.
//!
//! It is below our own, so that whatever limits us goes on doing so, and it is removed again. Version 1 and,
//! where it is delegated to us, version 2.
//!
//! Deliberately absent: anything else that can be limited.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::subject::Result;

/// A cgroup of ours; removed when dropped, when nobody is in it any more.
pub(super) struct Group {
    path: PathBuf,
    /// Of version 1.
    is_old: bool,
}

impl Group {
    /// Makes a cgroup whose processes may have `bytes` of memory, with the pages of files they use.
    ///
    /// # Errors
    /// There is no memory controller, or it is not ours to use.
    pub(super) fn new(bytes: u64) -> Result<Group> {
        let (parent, is_old) = own()?;
        let path = parent.join(format!("perilune-bench-{}", std::process::id()));
        let cannot = |error: std::io::Error| {
            format!("no memory cgroup can be made in {}: {error}; run as root", parent.display())
        };
        fs::create_dir(&path).map_err(cannot)?;
        let group = Group { path, is_old };
        let limit = if is_old { "memory.limit_in_bytes" } else { "memory.max" };
        fs::write(group.path.join(limit), bytes.to_string())
            .map_err(|error| format!("{} has no memory controller: {error}", group.path.display()))?;
        Ok(group)
    }

    /// Puts a process in.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn add(&self, process: u32) -> Result<()> {
        Ok(fs::write(self.path.join("cgroup.procs"), process.to_string())?)
    }

    /// The counters of what happened in it: `pgmajfault`, `workingset_refault_file`, and what else the kernel
    /// names; `failures` is how often the limit was met, `kills` how often a process was killed for it, and
    /// `highest` the most bytes it ever had.
    ///
    /// # Errors
    /// The kernel's.
    pub(super) fn counters(&self) -> Result<BTreeMap<String, u64>> {
        let read = |name: &str| fs::read_to_string(self.path.join(name));
        let mut counters = pairs(&read("memory.stat")?);
        let mut put = |name: &str, value: Option<u64>| {
            counters.insert(name.to_owned(), value.unwrap_or(0));
        };
        if self.is_old {
            let number = |name: &str| read(name).ok().and_then(|text| text.trim().parse().ok());
            put("failures", number("memory.failcnt"));
            put("highest", number("memory.max_usage_in_bytes"));
            put("kills", pairs(&read("memory.oom_control")?).get("oom_kill").copied());
        } else {
            let events = pairs(&read("memory.events")?);
            put("failures", events.get("max").copied());
            put("kills", events.get("oom_kill").copied());
            put("highest", read("memory.peak").ok().and_then(|text| text.trim().parse().ok()));
        }
        Ok(counters)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // What cannot be removed is empty, and named after us.
        let _ = fs::remove_dir(&self.path);
    }
}

/// Lines of a name and a number.
fn pairs(text: &str) -> BTreeMap<String, u64> {
    let pair = |line: &str| {
        let (name, number) = line.split_once(' ')?;
        Some((name.to_owned(), number.trim().parse().ok()?))
    };
    text.lines().filter_map(pair).collect()
}

/// The directory of the memory cgroup that we are in, and whether it is of version 1.
fn own() -> Result<(PathBuf, bool)> {
    let text = fs::read_to_string("/proc/self/cgroup")?;
    let field = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (_, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        Some((controllers.to_owned(), path.trim_start_matches('/').to_owned()))
    };
    let found: Vec<(String, String)> = text.lines().filter_map(field).collect();
    if let Some((_, path)) = found.iter().find(|(names, _)| names.split(',').any(|name| name == "memory")) {
        return Ok((Path::new("/sys/fs/cgroup/memory").join(path), true));
    }
    let (_, path) = found.iter().find(|(names, _)| names.is_empty()).ok_or("there are no cgroups here")?;
    Ok((Path::new("/sys/fs/cgroup").join(path), false))
}
