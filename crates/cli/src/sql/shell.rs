//! The shell of SQL: lines until a semicolon, with a history, or plain where the terminal cannot edit lines.
//!
//! Invariant: an error of a statement is shown, and the shell goes on.

use std::borrow::Cow;

use reedline::{Prompt, PromptEditMode, PromptHistorySearch, Reedline, ValidationResult, Validator};

use crate::failure::Result;
use crate::repl::history;
use crate::sql::Runner;
use crate::typed::{Lines, Typed};

/// Talks to the user.
pub(super) fn run(runner: &mut Runner) -> Result<()> {
    let mut lines = Lines::new(|| {
        let editor = Reedline::create().with_validator(Box::new(Whole));
        match history("sql_history") {
            Some(history) => editor.with_history(Box::new(history)),
            None => editor,
        }
    });
    loop {
        match lines.next(&SqlPrompt, is_whole)? {
            Typed::Text(text) => {
                if !act(runner, &text) {
                    return Ok(());
                }
            }
            Typed::Dropped => {}
            Typed::End => return Ok(()),
        }
    }
}

/// Does what was entered; false ends the shell.
fn act(runner: &mut Runner, text: &str) -> bool {
    let line = text.trim();
    if [".quit", ".exit"].contains(&line) {
        return false;
    }
    if let Err(failure) = runner.script(text) {
        eprintln!("{failure}");
    }
    true
}

/// Whether a text is a command, or ends in a semicolon that is none of a text's or a trigger's.
fn is_whole(text: &str) -> bool {
    let line = text.trim();
    if line.is_empty() || line.starts_with('.') {
        return true;
    }
    // With one more semicolon there is one statement more, unless this one is still open.
    let count = |text: &str| perilune_sql::split(text).map_or(0, |statements| statements.len());
    line.ends_with(';') && count(line) > 0 && count(&format!("{line} SELECT 1")) > count(line)
}

struct Whole;

impl Validator for Whole {
    fn validate(&self, text: &str) -> ValidationResult {
        if is_whole(text) {
            ValidationResult::Complete
        } else {
            ValidationResult::Incomplete
        }
    }
}

/// `sql> `, and `...> ` in further lines of a statement.
struct SqlPrompt;

impl Prompt for SqlPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("sql> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed("...> ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(history: {}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::is_whole;

    #[test]
    fn a_statement_goes_on_until_its_semicolon() {
        assert!(is_whole(".tables") && is_whole("SELECT 1;") && is_whole(""));
        assert!(!is_whole("SELECT 1") && !is_whole("SELECT 'a;"));
        let trigger = "CREATE TRIGGER t AFTER INSERT ON a BEGIN SELECT 1;";
        assert!(!is_whole(trigger) && is_whole(&format!("{trigger} END;")));
    }
}
