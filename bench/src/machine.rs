//! What a reader of results must know: machine, versions, commit, settings.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::subject::{Class, Peer};

/// Lines of the header, a name and what stands there.
pub(crate) type Facts = Vec<(String, String)>;

/// The facts about this machine and this build, with data in `directory`.
pub(crate) fn facts(directory: &Path) -> Facts {
    let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| std::env::consts::ARCH.to_owned());
    let megahertz = field("/proc/cpuinfo", "cpu MHz").map_or(String::new(), |text| format!(", {text} MHz"));
    let cores = std::thread::available_parallelism().map_or(0, |count| count.get());
    let memory = field("/proc/meminfo", "MemTotal").unwrap_or_default();
    let file = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let text = |name: &str, value: String| (name.to_owned(), value);
    vec![
        text("machine", format!("{}: {cpu}, {cores} cores{megahertz}", file("/proc/sys/kernel/hostname"))),
        text("memory", memory),
        text("kernel", format!("Linux {}", file("/proc/sys/kernel/osrelease"))),
        text("data in", format!("{} ({})", directory.display(), file_system(directory))),
        text("load before", file("/proc/loadavg")),
        text("date", command("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
        text("compiler", command("rustc", &["--version"])),
        text("build", if cfg!(debug_assertions) { "debug: not for results" } else { "release" }.to_owned()),
        text("commit", commit()),
    ]
}

/// The facts about the peers: versions and settings, or why one is left out.
pub(crate) fn about(peers: &[(Peer, Result<String, String>)], class: Class) -> Facts {
    let class = ("class".to_owned(), class.name().to_owned());
    let peer = |(peer, version): &(Peer, Result<String, String>)| {
        let text = match version {
            Ok(version) => format!("{version}; {}", peer.settings),
            Err(why) => format!("left out: {why}"),
        };
        (peer.name.to_owned(), text)
    };
    [class].into_iter().chain(peers.iter().map(peer)).collect()
}

/// Bytes of memory of a process, mapped files included.
///
/// # Errors
/// The kernel does not tell.
pub(crate) fn memory_of(process: u32) -> crate::subject::Result<u64> {
    let text = field(&format!("/proc/{process}/smaps_rollup"), "Rss").ok_or("no smaps_rollup in /proc")?;
    let kib: u64 = text.trim_end_matches("kB").trim().parse()?;
    Ok(kib << 10)
}

fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// What a program prints, or `unknown`.
pub(crate) fn command(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    match output {
        Ok(output) if output.status.success() => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        _ => "unknown".to_owned(),
    }
}

fn commit() -> String {
    let changes = command("git", &["status", "--porcelain", "--untracked-files=no"]);
    let changed = if changes.is_empty() { "" } else { ", with changes" };
    format!("{}{changed}", command("git", &["rev-parse", "--short=12", "HEAD"]))
}

/// The type of the file system that holds `directory`: the mount with the longest fitting path.
fn file_system(directory: &Path) -> String {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let absolute = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let mount = |line: &str| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?.to_owned(), fields.next()?.to_owned()))
    };
    let fitting = mounts.lines().filter_map(mount).filter(|(path, _)| absolute.starts_with(path));
    fitting.max_by_key(|(path, _)| path.len()).map_or("unknown".to_owned(), |(_, kind)| kind)
}

/// Nanoseconds of CPU of a process' threads.
pub(crate) fn cpu_of(process: u32) -> u64 {
    let Ok(tasks) = std::fs::read_dir(format!("/proc/{process}/task")) else { return 0 };
    let of = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(path.join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    };
    tasks.flatten().filter_map(|task| of(task.path())).sum()
}
