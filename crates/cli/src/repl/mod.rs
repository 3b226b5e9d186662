//! The interactive session: lines of Lua, their results shown as they are stored.
//!
//! `db` is the database, `node` its function, `perilune` the module. A line that begins with `^` is one
//! about that node: `^person(21)` shows it, `^person(21,"age").__ = 36` sets it.
//!
//! Deliberately absent: local variables that outlive their line, as in `lua` itself.

mod editing;

use std::fs::DirBuilder;
use std::io::{self, IsTerminal, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::{env, fs};

use perilune_luahost::mlua::{Function, Table, Value};
use perilune_luahost::{Host, HostError};
use reedline::{
    default_emacs_keybindings, ColumnarMenu, Emacs, FileBackedHistory, KeyCode, KeyModifiers, MenuBuilder,
    Reedline, ReedlineEvent, ReedlineMenu, Signal,
};

use crate::failure::{doing, environment, Result};
use crate::repl::editing::{Completion, LuaPrompt, Validation, Words};
use crate::script;

const HISTORY_LINES: usize = 10_000;

const HELP: &str = "\
^name(1,\"x\")           shows the node and all below it; ^name(1,\"x\").__ = 5 sets it
^name(1):incr()        calls a method: get, set, incr, kill, pairs, subscripts, ...; the tab key lists them
db:names()             db is the database, db:transaction(f) runs f in a transaction
expression             shows its value; anything else in Lua is run
an open bracket or do  goes on in the next line; Ctrl-C leaves it, the arrow up brings back older lines
exit, quit, Ctrl-D     end";

/// Talks to the user, or runs the standard input as a script if that is no terminal.
pub(crate) fn run() -> Result<()> {
    if !io::stdin().is_terminal() {
        return script::run(Path::new("-"), &[]);
    }
    let host = Host::new()?;
    let session = Session::open(&host)?;
    println!("perilune {}: {}", env!("CARGO_PKG_VERSION"), session.path);
    println!("^name(subscript, ...) shows a node, db is the database; help says more, Ctrl-D ends");
    if env::var_os("TERM").is_none_or(|term| term == "dumb") {
        return plain(&session);
    }
    let words = Arc::new(Mutex::new(Words::default()));
    let mut editor = editor(&words);
    loop {
        *words.lock().unwrap_or_else(PoisonError::into_inner) = session.words();
        match editor.read_line(&LuaPrompt) {
            Ok(Signal::Success(line)) => {
                // Now, so that a line which ends the program is not lost.
                let _ = editor.sync_history();
                if session.act(&line) == Next::End {
                    return Ok(());
                }
            }
            Ok(Signal::CtrlD) => return Ok(()),
            Ok(_) => {}
            Err(error) => {
                eprintln!("perilune: no editing on this terminal: {error}");
                return plain(&session);
            }
        }
    }
}

/// The session on a terminal that cannot edit lines, as in an editor's shell.
fn plain(session: &Session<'_>) -> Result<()> {
    let mut text = String::new();
    loop {
        print!("{}", if text.is_empty() { "> " } else { ">> " });
        let read = io::stdout().flush().and_then(|()| io::stdin().read_line(&mut text));
        if read.map_err(doing("read the terminal"))? == 0 {
            println!();
            return Ok(());
        }
        if perilune_luahost::is_incomplete(&as_lua(&text)) {
            continue;
        }
        if session.act(&text) == Next::End {
            return Ok(());
        }
        text.clear();
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
        let shown = self.host.evaluate(&as_lua(line), "=line").and_then(|results| {
            let show: Function = self.functions.get("show")?;
            self.host.call(&show, results)
        });
        match shown.as_ref().map(|shown| shown.front()) {
            Ok(Some(Value::String(text))) => println!("{}", text.to_string_lossy()),
            Ok(_) => {}
            Err(error) => {
                let text = error.to_string();
                eprintln!("{}", text.split("\nstack traceback:").next().unwrap_or(&text));
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

fn editor(words: &Arc<Mutex<Words>>) -> Reedline {
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
        .with_completer(Box::new(Completion::new(Arc::clone(words))))
        .with_menu(ReedlineMenu::EngineCompleter(menu))
        .with_quick_completions(true)
        .with_partial_completions(true)
        .with_validator(Box::new(Validation))
        .with_edit_mode(Box::new(Emacs::new(keys)));
    match history() {
        Some(history) => editor.with_history(Box::new(history)),
        None => editor,
    }
}

/// History in `$XDG_STATE_HOME/perilune/history`; without a place for it, of this session only.
fn history() -> Option<FileBackedHistory> {
    let state = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let state = state.or_else(|| env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state")))?;
    let directory = state.join("perilune");
    // Lines hold data: the directory is its owner's alone.
    DirBuilder::new().recursive(true).mode(0o700).create(&directory).ok()?;
    let file = directory.join("history");
    fs::OpenOptions::new().create(true).append(true).mode(0o600).open(&file).ok()?;
    FileBackedHistory::with_file(HISTORY_LINES, file).ok()
}

#[cfg(test)]
mod tests {
    use super::as_lua;

    #[test]
    fn the_text_of_a_node_becomes_lua() {
        assert_eq!(as_lua("^a"), "node(\"^a\")");
        assert_eq!(as_lua(" ^%x1(2,\"y\").z.__ = 3"), "node(\"^%x1\")(2,\"y\").z.__ = 3");
        assert_eq!(as_lua("^my_name(1)"), "node(\"^my_name\")(1)");
        assert_eq!(as_lua("^a.b"), "node(\"^a\").b", "a name with a dot is written node('^a.b')");
        assert_eq!(as_lua("2 ^ 3"), "2 ^ 3");
        assert_eq!(as_lua("= ^a"), "node(\"^a\")");
    }
}
