//! `completions` and the hidden `manual`: what shells and `man` know of this program, made from the
//! description of its options, so that they agree with `--help`.
//!
//! `make install` runs both. Deliberately absent: pages about Lua, C or Rust; those are docs/.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_complete::Shell;
use clap_mangen::roff::{bold, roman, Roff};
use clap_mangen::Man;

use crate::arguments::Arguments;
use crate::failure::{doing, wrong_use, Result};

/// Terms and what they are, under a heading of the first page.
type Section = (&'static str, &'static [(&'static str, &'static str)]);

const SECTIONS: &[Section] = &[
    (
        "EXIT STATUS",
        &[
            ("0", "Good."),
            ("1", "It found something wrong, or a script raised an error or is not Lua."),
            ("2", "Wrong use."),
            ("3", "The environment: something is missing, full, or not permitted."),
        ],
    ),
    (
        "ENVIRONMENT",
        &[
            ("PERILUNE_DB", "The database, if there is no --db."),
            ("XDG_DATA_HOME", "Holds perilune/default.db; else ~/.local/share does."),
            ("XDG_STATE_HOME", "Holds perilune/history, the lines of sessions; else ~/.local/state does."),
            ("PERILUNE_READ_ONLY", "1: databases are opened for reading only, as by --read-only."),
            (
                "PERILUNE_DURABILITY",
                "What commits wait for where nothing says otherwise: none, periodic or fsync.",
            ),
            ("LUA_PATH, LUA_CPATH", "Where scripts find modules, in the manner of Lua 5.1."),
        ],
    ),
    (
        "FILES",
        &[
            ("PATH", "The database."),
            ("PATH-shm", "What its processes share while it is open; made again when nobody has it open."),
        ],
    ),
    (
        "EXAMPLES",
        &[
            (
                "perilune --db people.db",
                "An interactive session: ^person(21,\"name\").__ = \"Ada\" sets a node.",
            ),
            ("perilune report.lua June", "Runs a script with an argument."),
            ("perilune stat people.db", "Shows what is in a database."),
        ],
    ),
];

/// Prints the completions of `shell`.
pub(crate) fn completions(shell: &str) -> Result<()> {
    let shell: Shell = shell.parse().map_err(wrong_use)?;
    let mut text = Vec::new();
    clap_complete::generate(shell, &mut visible(&Arguments::command()), "perilune", &mut text);
    io::stdout().write_all(&text).map_err(doing("write"))
}

/// The description without hidden commands, which the writers of completions do not leave out.
fn visible(command: &Command) -> Command {
    let inner = command.get_subcommands().filter(|inner| !inner.is_hide_set());
    Command::new(command.get_name().to_owned())
        .about(command.get_about().cloned().unwrap_or_default())
        .disable_version_flag(command.get_version().is_none())
        .version(command.get_version().unwrap_or_default().to_owned())
        .args(command.get_arguments())
        .subcommands(inner.map(visible))
}

/// Writes a page for the program and for each command.
pub(crate) fn write(directory: &Path) -> Result<()> {
    fs::create_dir_all(directory).map_err(doing(format_args!("create {}", directory.display())))?;
    let mut program = Arguments::command().disable_help_subcommand(true);
    program.build();
    write_pages(&program, directory, true)
}

fn write_pages(command: &Command, directory: &Path, first: bool) -> Result<()> {
    let page =
        Man::new(command.clone()).manual("Perilune").source(concat!("perilune ", env!("CARGO_PKG_VERSION")));
    let path = directory.join(page.get_filename());
    let text = render(&page, command, first).map_err(doing("render a page"))?;
    fs::write(&path, text).map_err(doing(format_args!("write {}", path.display())))?;
    for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
        write_pages(inner, directory, false)?;
    }
    Ok(())
}

fn render(page: &Man, command: &Command, first: bool) -> io::Result<String> {
    let mut text = Vec::new();
    let name = command.get_display_name().unwrap_or("perilune");
    // Written here, since an empty argument for the date would get lost: one changes no text, two builds would differ.
    writeln!(
        text,
        ".TH {} 1 \"\" \"perilune {}\" \"Perilune\"",
        name.to_uppercase(),
        env!("CARGO_PKG_VERSION")
    )?;
    page.render_name_section(&mut text)?;
    let mut roff = Roff::default();
    roff.control("SH", ["SYNOPSIS"]);
    let usage = command.clone().render_usage().to_string();
    for (index, line) in usage.trim_start_matches("Usage:").lines().enumerate() {
        if index > 0 {
            roff.control("br", []);
        }
        roff.text([roman(line.trim())]);
    }
    roff.to_writer(&mut text)?;
    page.render_description_section(&mut text)?;
    page.render_options_section(&mut text)?;
    if command.get_subcommands().any(|inner| !inner.is_hide_set()) {
        page.render_subcommands_section(&mut text)?;
    }
    let mut roff = Roff::default();
    if first {
        sections(&mut roff);
    } else {
        roff.control("SH", ["SEE ALSO"]);
        roff.text([bold("perilune"), roman("(1), for exit codes and environment")]);
    }
    roff.to_writer(&mut text)?;
    // As they are typed, not as typographers write them.
    Ok(String::from_utf8_lossy(&text).replace('^', r"\(ha").replace('~', r"\(ti").replace('`', r"\(ga"))
}

fn sections(roff: &mut Roff) {
    for (heading, terms) in SECTIONS {
        roff.control("SH", [*heading]);
        for (term, meaning) in *terms {
            roff.control("TP", []);
            roff.text([bold(*term)]);
            roff.text([roman(*meaning)]);
        }
    }
}
