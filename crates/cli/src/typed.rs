//! Lines that a user types at a terminal: from an editor, or plain ones where the terminal cannot edit.
//!
//! Problem: the editor asks the terminal where its cursor is, and takes it for one that cannot edit when no answer comes
//! within two seconds. Over a slow connection, or on a busy machine, an answer may take longer; it then arrives among
//! what the user types.
//!
//! Idea: a terminal that has answered once can edit. It is asked again, [`TRIES`] times, and the answer to the question
//! before is as good. A terminal that has never answered is read line by line at once.
//!
//! Invariant: an answer that arrives late is never part of a line.

use std::io::{self, Write};
use std::{env, result};

use reedline::{Prompt, PromptEditMode, Reedline, Signal};

use crate::failure::{doing, Result};

/// How often a terminal that can edit is asked before it is given up; two seconds each.
const TRIES: u32 = 5;

/// What a user has typed.
pub(crate) enum Typed {
    /// A line, or several that belong together.
    Text(String),
    /// Ctrl-C: what was typed until then is dropped.
    Dropped,
    /// Ctrl-D, or the end of the terminal.
    End,
}

/// The lines of a terminal.
pub(crate) struct Lines {
    /// None: it cannot edit.
    editor: Option<Reedline>,
    has_edited: bool,
}

impl Lines {
    /// Lines edited by what `editor` makes, unless `$TERM` says that the terminal cannot edit.
    pub(crate) fn new(editor: impl FnOnce() -> Reedline) -> Lines {
        let can_edit = env::var_os("TERM").is_some_and(|term| term != "dumb");
        Lines { editor: can_edit.then(editor), has_edited: false }
    }

    /// The next lines that belong together, by `is_whole`, behind the prompt.
    pub(crate) fn next(&mut self, prompt: &dyn Prompt, is_whole: impl Fn(&str) -> bool) -> Result<Typed> {
        if let Some(editor) = &mut self.editor {
            match edited(editor, prompt, if self.has_edited { TRIES } else { 1 }) {
                Ok(typed) => {
                    self.has_edited = true;
                    return Ok(typed);
                }
                Err(error) => eprintln!("perilune: no editing on this terminal: {error}"),
            }
            self.editor = None;
        }
        plain(prompt, is_whole)
    }
}

fn edited(editor: &mut Reedline, prompt: &dyn Prompt, tries: u32) -> result::Result<Typed, io::Error> {
    let mut tried = 0;
    loop {
        tried += 1;
        match editor.read_line(prompt) {
            Ok(Signal::Success(text)) => {
                // Now, so that a line which ends the program is not lost.
                let _ = editor.sync_history();
                return Ok(Typed::Text(text));
            }
            Ok(Signal::CtrlD) => return Ok(Typed::End),
            Ok(_) => return Ok(Typed::Dropped),
            Err(error) if tried == tries => return Err(error),
            Err(_) => {}
        }
    }
}

fn plain(prompt: &dyn Prompt, is_whole: impl Fn(&str) -> bool) -> Result<Typed> {
    let mut text = String::new();
    loop {
        let shown = if text.is_empty() {
            prompt.render_prompt_indicator(PromptEditMode::Default)
        } else {
            prompt.render_prompt_multiline_indicator()
        };
        print!("{shown}");
        let mut line = String::new();
        let read = io::stdout().flush().and_then(|()| io::stdin().read_line(&mut line));
        if read.map_err(doing("read the terminal"))? == 0 {
            println!();
            return Ok(Typed::End);
        }
        text.push_str(without_answers(&line));
        if is_whole(&text) {
            return Ok(Typed::Text(text));
        }
    }
}

/// A line without the terminal's answers, `ESC [ row ; column R`, before it.
fn without_answers(line: &str) -> &str {
    let mut rest = line;
    while let Some((place, behind)) = rest.strip_prefix("\x1b[").and_then(|answer| answer.split_once('R')) {
        if !place.chars().all(|letter| letter.is_ascii_digit() || letter == ';') {
            break;
        }
        rest = behind;
    }
    rest
}

#[cfg(test)]
mod tests {
    use super::without_answers;

    #[test]
    fn answers_of_the_terminal_are_no_part_of_a_line() {
        assert_eq!(without_answers("\x1b[1;1Rquit\n"), "quit\n");
        assert_eq!(without_answers("\x1b[12;40R\x1b[1;1R\n"), "\n");
        assert_eq!(without_answers("print 'R'\n"), "print 'R'\n");
        assert_eq!(without_answers("\x1b[A x = 'R'\n"), "\x1b[A x = 'R'\n", "an arrow key is none");
    }
}
