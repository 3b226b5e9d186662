//! `xtask house`: the house as its sources have it, and the tables of ARCHITECTURE.md that are made from `house.rs`.
//!
//! The report has a line a crate: files, lines, modules, arrows between modules, arrows against its order, circles. A
//! crate without an order is held to nothing yet; its circles are listed by name. Tidy compares the tables.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::ExitCode;

use crate::arrows::{self, Arrow};
use crate::house::{Order, Room, Unsafety, ORDERS, ROOMS};
use crate::sources::Sources;

/// The document that has the tables.
pub(crate) const DOCUMENT: &str = "ARCHITECTURE.md";

/// Prints the report; with `write`, puts the tables into the document as well.
pub(crate) fn run(root: &Path, write: bool) -> ExitCode {
    let sources = match Sources::read(root) {
        Ok(sources) => sources,
        Err(error) => {
            eprintln!("house: cannot read the sources under {}: {error}", root.display());
            return ExitCode::from(3);
        }
    };
    let against = report(&sources);
    if write {
        if let Err(error) =
            std::fs::write(root.join(DOCUMENT), with_tables(sources.text(DOCUMENT).unwrap_or("")))
        {
            eprintln!("house: cannot write {DOCUMENT}: {error}");
            return ExitCode::from(3);
        }
    }
    ExitCode::from(u8::from(against > 0))
}

/// Prints a line for each crate, and answers how many arrows go against an order.
fn report(sources: &Sources) -> usize {
    println!(
        "{:<20} {:>5} {:>7} {:>7} {:>7}  upwards  circles",
        "crate", "files", "lines", "modules", "arrows"
    );
    let (mut all, mut all_against, mut all_circles) = (0, 0, 0);
    for room in ROOMS {
        let src = format!("{}/src/", room.dir);
        let order = ORDERS.iter().find(|order| order.src == src);
        let files: Vec<_> = arrows::files(sources, &src).collect();
        let lines: usize = files.iter().map(|(_, _, text)| text.lines().count()).sum();
        let modules: BTreeSet<&str> = files.iter().map(|(_, module, _)| *module).collect();
        let uses: Vec<Arrow<'_>> =
            arrows::arrows(sources, &src).into_iter().filter(|arrow| modules.contains(&*arrow.to)).collect();
        let pairs: BTreeSet<(&str, &str)> = uses.iter().map(|arrow| (arrow.from, &*arrow.to)).collect();
        let circles = arrows::circles(&uses);
        let against = order.map(|order| pairs.iter().filter(|pair| is_against(order, pair)).count());
        println!(
            "{:<20} {:>5} {lines:>7} {:>7} {:>7} {:>8}  {}",
            room.dir,
            files.len(),
            modules.len(),
            pairs.len(),
            against.map_or("no order".to_owned(), |count| count.to_string()),
            circles.iter().map(|circle| circle.len().to_string()).collect::<Vec<_>>().join(" + ")
        );
        all += pairs.len();
        all_against += against.unwrap_or(0);
        all_circles += circles.len();
        for circle in circles {
            println!("    circle: {}", circle.into_iter().collect::<Vec<_>>().join(" "));
        }
    }
    println!("{} crates, {all} arrows, {all_against} upwards, {all_circles} circles", ROOMS.len());
    all_against
}

fn is_against(order: &Order, (from, to): &(&str, &str)) -> bool {
    let rank = |wanted: &str| order.modules.iter().position(|(name, _)| *name == wanted);
    rank(to) >= rank(from)
}

/// A document with each table between its marks made anew.
pub(crate) fn with_tables(document: &str) -> String {
    tables().iter().fold(document.to_owned(), |text, (name, table)| {
        let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
        let parts =
            text.split_once(&begin).and_then(|(before, rest)| Some((before, rest.split_once(&end)?.1)));
        match parts {
            Some((before, after)) => format!("{before}{begin}{table}{end}{after}"),
            None => text,
        }
    })
}

/// Name and text of each table.
pub(crate) fn tables() -> Vec<(String, String)> {
    let mut tables = vec![("rooms".to_owned(), rooms())];
    for order in ORDERS.iter().filter(|order| order.modules.iter().all(|(_, what)| !what.is_empty())) {
        let name = order.src.trim_start_matches("crates/").trim_end_matches("/src/");
        let rows = order.modules.iter().map(|(module, what)| format!("| `{module}` | {what} |\n"));
        let table = format!("| module | what it holds |\n|---|---|\n{}", rows.collect::<String>());
        tables.push((format!("modules of {name}"), table));
    }
    tables
}

fn rooms() -> String {
    let mut table =
        String::from("| crate | may use | external | its tests besides | unsafe |\n|---|---|---|---|---|\n");
    for room in ROOMS {
        let ours = |name: &&&str| name.starts_with("perilune");
        let list = |names: Vec<&&str>| match names.len() {
            0 => "-".to_owned(),
            _ => names.iter().map(|name| name.trim_start_matches("perilune-")).collect::<Vec<_>>().join(", "),
        };
        let name = room.dir.trim_start_matches("crates/");
        let (own, others): (Vec<_>, Vec<_>) = room.uses.iter().partition(ours);
        let row =
            [name.to_owned(), list(own), list(others), list(room.tests_use.iter().collect()), unsafety(room)];
        table.push_str(&format!("| {} |\n", row.join(" | ")));
    }
    table
}

fn unsafety(room: &Room) -> String {
    match room.unsafety {
        Unsafety::Forbidden => "forbidden".to_owned(),
        Unsafety::Proved => "allowed, every block proved".to_owned(),
        Unsafety::Named(files) => {
            let inside =
                |file: &&str| format!("`{}`", file.trim_start_matches(room.dir).trim_start_matches('/'));
            format!("only in {}", files.iter().map(inside).collect::<Vec<_>>().join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_put_between_their_marks() {
        let old = "a\n<!-- rooms: begin -->\nold\n<!-- rooms: end -->\nb\n";
        let new = with_tables(old);
        assert!(
            new.starts_with("a\n<!-- rooms: begin -->\n| crate |")
                && new.ends_with("<!-- rooms: end -->\nb\n")
        );
        assert!(new.contains("| engine | shm, disk, store |") && !new.contains("old"), "{new}");
        assert_eq!(with_tables(&new), new);
    }
}
