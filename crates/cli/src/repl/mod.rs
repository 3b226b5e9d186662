//! The interactive session: lines of Lua, their results shown as they are stored.
//!
//! `db` is the database, `node` its function, `perilune` the module. A line that begins with `^` is one
//! about that node: `^person(21)` shows it, `^person(21,"age").__ = 36` sets it.
//!
//! Deliberately absent: local variables that outlive their line, as in `lua` itself.

mod editing;
mod subscripts;

use std::fs::DirBuilder;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs};

use perilune::Database;
use perilune_luahost::mlua::{Function, Table, Value};
use perilune_luahost::{interrupt, Host, HostError};
use reedline::{
    default_emacs_keybindings, ColumnarMenu, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder,
    Reedline, ReedlineEvent, ReedlineMenu,
};

use crate::failure::{doing, environment, Result};
use crate::repl::editing::{Completion, LuaPrompt, Validation, Words};
use crate::script;
use crate::typed::{Lines, Typed};

const HISTORY_LINES: usize = 10_000;

const GREETING: &str = "^name(subscript) shows a node, db is the database; help says more, Ctrl-D ends";

const HELP: &str = "\
^name(1,\"x\")           shows the node and all below; .__ = 5 behind it sets it
^name(1):incr()        calls a method: get, set, kill, pairs, subscripts, ...;
                       the tab key lists them
db:names()             db is the database; db:transaction(f) runs f in one
expression             shows its value; anything else in Lua is run
an open bracket or do  goes on in the next line; Ctrl-C leaves it, and ends a
                       line that runs; the arrow up brings back older lines
exit, quit, Ctrl-D     end";

/// Talks to the user, or runs the standard input as a script if that is no terminal.
pub(crate) fn run() -> Result<()> {
    if !io::stdin().is_terminal() {
        return script::run(Path::new("-"), &[]);
    }
    let host = Host::new()?;
    interrupt::listen().map_err(doing("listen to Ctrl-C"))?;
    let session = Session::open(&host)?;
    println!("perilune {}: {}", env!("CARGO_PKG_VERSION"), session.path);
    println!("{GREETING}");
    let words = Arc::new(Mutex::new(Words::default()));
    let mut lines = Lines::new(|| editor(&words, &session.path));
    loop {
        *words.lock().unwrap_or_else(PoisonError::into_inner) = session.words();
        match lines.next(&LuaPrompt, |text| !perilune_luahost::is_incomplete(&as_lua(text)))? {
            Typed::Text(text) => {
                if session.act(&text) == Next::End {
                    return Ok(());
                }
            }
            Typed::Dropped => {}
            Typed::End => return Ok(()),
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Next {
    Line,
    End,
}

struct Session<'a> {
    host: &'a Host,
    functions: Table,
    path: String,
}

impl<'a> Session<'a> {
    fn open(host: &'a Host) -> Result<Session<'a>> {
        host.set_arguments(&script::program(), Path::new("perilune"), &[])?;
        let loaded = host.run_code(include_str!("session.lua"), "=session", &[])?;
        let Some(Value::Table(functions)) = loaded.front().cloned() else {
            return Err(environment("session.lua answered no table; this is a bug"));
        };
        let open: Function = functions.get("open").map_err(HostError::from)?;
        let path = match host.call(&open, ())?.front() {
            Some(Value::String(path)) => path.to_string_lossy(),
            _ => String::new(),
        };
        Ok(Session { host, functions, path })
    }

    /// Does what a line says.
    fn act(&self, line: &str) -> Next {
        match line.trim() {
            "" => {}
            "exit" | "quit" => return Next::End,
            "help" => println!("{HELP}"),
            _ => self.enter(line),
        }
        Next::Line
    }

    /// Runs a line and shows its results or its error.
    fn enter(&self, line: &str) {
        let shown = interrupt::ending(self.host.lua(), || {
            let results = self.host.evaluate(&as_lua(line), "=line")?;
            let show: Function = self.functions.get("show")?;
            self.host.call(&show, results)
        });
        match shown.as_ref().map(|shown| shown.front()) {
            Ok(Some(Value::String(text))) => println!("{}", text.to_string_lossy()),
            Ok(_) => {}
            Err(error) => {
                let text = error.to_string();
                let text = text.split("\nstack traceback:").next().unwrap_or(&text);
                // In one piece: between two the terminal may show the ^C that has ended the line.
                let _ = io::stderr().write_all(format!("{text}\n").as_bytes());
                if let Some(right) = meant_to_set(line) {
                    eprintln!("to set a node, assign to its value: {right}");
                }
            }
        }
    }

    /// What can be completed now; nothing if it cannot be asked.
    fn words(&self) -> Words {
        let list = |value: Option<Value>| match value {
            Some(Value::Table(table)) => {
                table.sequence_values::<String>().filter_map(|word| word.ok()).collect()
            }
            _ => Vec::new(),
        };
        let asked = self.functions.get::<Function>("words").map_err(HostError::from);
        let mut lists = asked.and_then(|words| self.host.call(&words, ())).unwrap_or_default();
        Words {
            nodes: list(lists.pop_front()),
            globals: list(lists.pop_front()),
            methods: list(lists.pop_front()),
            db_methods: list(lists.pop_front()),
        }
    }
}

/// What somebody wanted who has written `^a(1) = 5`.
fn meant_to_set(line: &str) -> Option<String> {
    let (node, value) = line.trim().split_once('=')?;
    let (node, value) = (node.trim_end(), value.trim_start());
    let is_assigned = node.starts_with('^') && !node.ends_with(['~', '<', '>']) && !value.starts_with('=');
    (is_assigned && !node.ends_with(".__")).then(|| format!("{node}.__ = {value}"))
}

/// A line that begins with a node's text, in Lua: `^a(1).x` is `node("^a")(1).x`. A `=` before an expression,
/// an old habit, means nothing.
fn as_lua(line: &str) -> String {
    let line = line.trim_start();
    let line = line.strip_prefix('=').map_or(line, str::trim_start);
    let Some(rest) = line.strip_prefix('^') else {
        return line.to_owned();
    };
    let end = rest
        .find(|letter: char| !letter.is_alphanumeric() && letter != '%' && letter != '_')
        .unwrap_or(rest.len());
    format!("node(\"^{}\"){}", &rest[..end], &rest[end..])
}

fn editor(words: &Arc<Mutex<Words>>, path: &str) -> Reedline {
    // This process has it open: another session, whose reading the user's does not meet.
    let session = Database::open(path).and_then(|database| database.session()).ok();
    let menu = Box::new(ColumnarMenu::default().with_name("completion"));
    let mut keys = default_emacs_keybindings();
    keys.add_binding(
        KeyModifiers::NONE,
        KeyCode::Tab,
        ReedlineEvent::UntilFound(vec![
            ReedlineEvent::Menu("completion".to_owned()),
            ReedlineEvent::MenuNext,
        ]),
    );
    let editor = Reedline::create()
        .with_completer(Box::new(Completion::new(Arc::clone(words), session)))
        .with_menu(ReedlineMenu::EngineCompleter(menu))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_validator(Box::new(Validation))
        .with_edit_mode(Box::new(Emacs::new(keys)));
    match history("history") {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// History in a file of `$XDG_STATE_HOME/perilune`; without a place for it, of this session only.
pub(crate) fn history(name: &str) -> Option<FileBackedHistory> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))?;
    let directory = state.join("perilune");
    // Lines hold data: the directory is its owner's alone.
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
    let file = directory.join(name);
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&file).ok()?;
    FileBackedHistory::with_file(HISTORY_LINES, file).ok()
}

#[cfg(test)]
mod tests {
    use super::{as_lua, meant_to_set, GREETING, HELP};

    #[test]
    fn what_is_said_fits_a_terminal() {
        for line in HELP.lines().chain([GREETING]) {
            assert!(line.len() <= 80, "{line}");
        }
    }

    #[test]
    fn the_text_of_a_node_becomes_lua() {
        assert_eq!(as_lua("^a"), "node(\"^a\")");
        assert_eq!(as_lua(" ^%x1(2,\"y\").z.__ = 3"), "node(\"^%x1\")(2,\"y\").z.__ = 3");
        assert_eq!(as_lua("^my_name(1)"), "node(\"^my_name\")(1)");
        assert_eq!(as_lua("^a.b"), "node(\"^a\").b", "a name with a dot is written node('^a.b')");
        assert_eq!(as_lua("2 ^ 3"), "2 ^ 3");
        assert_eq!(as_lua("= ^a"), "node(\"^a\")");
    }

    #[test]
    fn who_assigns_to_a_node_is_told_how() {
        assert_eq!(meant_to_set("^a(1) = 5").as_deref(), Some("^a(1).__ = 5"));
        assert_eq!(meant_to_set("^a(1).b='x'").as_deref(), Some("^a(1).b.__ = 'x'"));
        for line in ["^a(1).__ = 5", "^a(1) == 5", "x = 5", "^a(1) ~= 5", "^a(1)"] {
            assert_eq!(meant_to_set(line), None, "{line}");
        }
    }
}
