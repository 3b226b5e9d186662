//! GT.M, the open source form of the engine that YottaDB comes from: a routine in M, in each process.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::{elsewhere, script, Mapping, Side, Site, ALL_PARTS};
use crate::subject::{Class, Result};

const D4: Side = Side {
    name: "gtm",
    class: Class::D4,
    mapping: Mapping::Best,
    client: "M",
    settings: "access method MM, no journal, 4 KiB blocks",
    parts: ALL_PARTS,
    processes: true,
    version: || {
        let place = place()?;
        Ok(place.file_name().map_or(String::new(), |name| name.to_string_lossy().into_owned()))
    },
    serve: None,
    open: elsewhere,
    player: Some(player),
};

pub(crate) const SIDES: &[Side] = &[
    D4,
    Side { class: Class::D1, settings: "BG, before-image journal; each set in TSTART and TCOMMIT", ..D4 },
];

/// Where GT.M is installed.
fn place() -> Result<PathBuf> {
    let found = std::fs::read_dir("/usr/lib/x86_64-linux-gnu/fis-gtm").map_err(|_| "install fis-gtm")?;
    let mut versions: Vec<PathBuf> = found.flatten().map(|entry| entry.path()).collect();
    versions.sort();
    versions.pop().ok_or_else(|| "install fis-gtm".into())
}

fn command(program: &str, directory: &Path) -> Result<Command> {
    let place = place()?;
    let mut command = Command::new(place.join(program));
    // The object of the routine goes to the side's directory.
    let routines =
        format!("{}({}) {}/libgtmutil.so", directory.display(), script("").display(), place.display());
    command.current_dir(directory).env("gtm_dist", &place).env("gtmroutines", routines);
    command.env("gtmgbldir", directory.join("bench.gld")).env("gtm_log", directory).env("gtm_tmp", directory);
    command.env_remove("gtm_chset");
    Ok(command)
}

/// Runs a program of GT.M to its end, with lines as its input.
fn run(directory: &Path, program: &str, arguments: &[&str], lines: &str) -> Result<()> {
    std::fs::write(directory.join("input"), lines)?;
    let input = std::fs::File::open(directory.join("input"))?;
    let output = command(program, directory)?.args(arguments).stdin(input).stderr(Stdio::piped()).output()?;
    if output.status.success() {
        return Ok(());
    }
    let said =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    Err(format!("{program} {}: {}", arguments.join(" "), said.trim()).into())
}

/// Makes the database.
fn create(site: &Site) -> Result<()> {
    let directory = &site.directory;
    let durable = site.class == Class::D1;
    let segment = if durable { "-access_method=bg -global_buffer_count=65536" } else { "-access_method=mm" };
    let lines = format!(
        "change -segment DEFAULT {segment} -block_size=4096 -allocation=100000 -extension_count=50000\n\
         change -segment DEFAULT -file_name={}/bench.dat\n\
         change -region DEFAULT -key_size=1019 -record_size=4000 -stdnullcoll\nexit\n",
        directory.display()
    );
    run(directory, "mumps", &["-run", "GDE"], &lines)?;
    run(directory, "mupip", &["create"], "")?;
    if durable {
        let journal = format!("-journal=enable,on,before,filename={}/bench.mjl", directory.display());
        run(directory, "mupip", &["set", "-region", "DEFAULT", &journal], "")?;
    }
    Ok(())
}

fn player(site: &Site) -> Result<Command> {
    if !site.directory.join("bench.gld").exists() {
        create(site)?;
    }
    let mut player = command("mumps", &site.directory)?;
    player.args(["-run", "player"]).env("PLAYER_DURABLE", if site.class == Class::D1 { "1" } else { "0" });
    Ok(player)
}
