//! What the line editor asks while a user types: the prompt, whether the Lua is complete, what a word could become.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, PoisonError};

use perilune::Session;
use reedline::{
    Completer, Prompt, PromptEditMode, PromptHistorySearch, Span, Suggestion, ValidationResult, Validator,
};

use super::subscripts::Place;

/// Most completions that are offered.
const OFFERED_MAX: usize = 200;

/// Words that can be completed, each list in order.
#[derive(Debug, Default)]
pub(super) struct Words {
    /// Names in the database, with `^`.
    pub(super) nodes: Vec<String>,
    /// Global variables, and the fields of those that are tables.
    pub(super) globals: Vec<String>,
    /// Methods of nodes.
    pub(super) methods: Vec<String>,
    /// Methods of `db`.
    pub(super) db_methods: Vec<String>,
}

impl Words {
    /// What `word` could become.
    fn complete(&self, word: &str) -> Vec<String> {
        let starting = |list: &[String], start: &str| -> Vec<String> {
            list.iter().filter(|candidate| candidate.starts_with(start)).take(OFFERED_MAX).cloned().collect()
        };
        if let Some((receiver, method)) = word.rsplit_once(':') {
            let list = if receiver == "db" { &self.db_methods } else { &self.methods };
            let methods = starting(list, method);
            return methods.into_iter().map(|method| format!("{receiver}:{method}")).collect();
        }
        if let Some(at) = word.rfind('^') {
            let nodes = starting(&self.nodes, &word[at..]);
            return nodes.into_iter().map(|name| format!("{}{name}", &word[..at])).collect();
        }
        if word.is_empty() {
            return self.nodes.iter().take(OFFERED_MAX).cloned().collect();
        }
        starting(&self.globals, word)
    }
}

/// Completes from words that the session refreshes before each line, and subscripts from the database.
pub(super) struct Completion {
    words: Arc<Mutex<Words>>,
    /// None: subscripts are not completed.
    session: Option<Session>,
}

impl Completion {
    pub(super) fn new(words: Arc<Mutex<Words>>, session: Option<Session>) -> Completion {
        Completion { words, session }
    }
}

impl Completer for Completion {
    fn complete(&mut self, line: &str, position: usize) -> Vec<Suggestion> {
        let line = line.get(..position).unwrap_or(line);
        let suggest = |candidates: Vec<String>, start| {
            let span = Span::new(start, position);
            candidates.into_iter().map(|value| Suggestion { value, span, ..Suggestion::default() }).collect()
        };
        if let Some(place) = Place::of(line) {
            let session = self.session.as_mut();
            return suggest(
                session.map(|session| place.complete(session, OFFERED_MAX)).unwrap_or_default(),
                place.from,
            );
        }
        let in_word = |letter: char| letter.is_alphanumeric() || "_.:^%".contains(letter);
        let start = line.trim_end_matches(in_word).len();
        let words = self.words.lock().unwrap_or_else(PoisonError::into_inner);
        suggest(words.complete(&line[start..]), start)
    }
}

/// A chunk that is the beginning of one goes on in the next line.
pub(super) struct Validation;

impl Validator for Validation {
    fn validate(&self, text: &str) -> ValidationResult {
        if perilune_luahost::is_incomplete(&super::as_lua(text)) {
            ValidationResult::Incomplete
        } else {
            ValidationResult::Complete
        }
    }
}

/// `> `, and `>> ` in further lines of a chunk.
pub(super) struct LuaPrompt;

impl Prompt for LuaPrompt {
    fn render_prompt_left(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_right(&self) -> Cow<'_, str> {
        Cow::Borrowed("")
    }

    fn render_prompt_indicator(&self, _mode: PromptEditMode) -> Cow<'_, str> {
        Cow::Borrowed("> ")
    }

    fn render_prompt_multiline_indicator(&self) -> Cow<'_, str> {
        Cow::Borrowed(">> ")
    }

    fn render_prompt_history_search_indicator(&self, search: PromptHistorySearch) -> Cow<'_, str> {
        Cow::Owned(format!("(history: {}) ", search.term))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_completed_by_where_they_stand() {
        let list = |words: &[&str]| words.iter().map(|&word| word.to_owned()).collect::<Vec<_>>();
        let words = Words {
            nodes: list(&["^person", "^pet"]),
            globals: list(&["string", "string.format", "print"]),
            methods: list(&["get", "grab", "set"]),
            db_methods: list(&["get_path", "names"]),
        };
        let mut completion = Completion::new(Arc::new(Mutex::new(words)), None);
        let mut complete = |line: &str| -> Vec<String> {
            let found = completion.complete(line, line.len());
            found.into_iter().map(|found| format!("{}{}", &line[..found.span.start], found.value)).collect()
        };
        assert_eq!(complete("^pe"), ["^person", "^pet"]);
        assert_eq!(complete("print(node('^per"), ["print(node('^person"]);
        assert_eq!(complete("x = string.f"), ["x = string.format"]);
        assert_eq!(complete("n:g"), ["n:get", "n:grab"]);
        assert_eq!(complete("db:g"), ["db:get_path"]);
        assert_eq!(complete("zz"), Vec::<String>::new());
    }

    #[test]
    fn a_begun_chunk_waits_for_its_end() {
        let complete = |text: &str| matches!(Validation.validate(text), ValidationResult::Complete);
        assert!(!complete("for i = 1, 3 do"));
        assert!(complete("for i = 1, 3 do print(i) end"));
        assert!(!complete("^a(1,"));
        assert!(complete("^a(1, 2)"));
        assert!(complete("this is wrong"));
        assert!(complete("1 + 1"));
    }
}
