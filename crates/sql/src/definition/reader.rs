//! A place among tokens, and the small questions that a parser asks there.
//!
//! Invariant: it only goes forward.

use crate::elements::segment;
use crate::error::{Error, Result, SqlState};
use crate::limits::PARENTHESES;
use crate::token::{Kind, Token};

/// Reads tokens of a text.
pub(crate) struct Reader<'a> {
    text: &'a str,
    tokens: &'a [Token<'a>],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(text: &'a str, tokens: &'a [Token<'a>]) -> Reader<'a> {
        // A semicolon at the end says nothing.
        let count = tokens.iter().rposition(|token| !token.is_sign(";")).map_or(0, |last| last + 1);
        Reader { text, tokens: &tokens[..count], at: 0 }
    }

    /// The next token.
    pub(crate) fn peek(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at).copied()
    }

    /// The one behind it.
    pub(crate) fn peek_second(&self) -> Option<Token<'a>> {
        self.tokens.get(self.at + 1).copied()
    }

    /// Takes the next token.
    pub(crate) fn next(&mut self) -> Option<Token<'a>> {
        let token = self.peek();
        self.at += 1;
        token
    }

    /// Takes a keyword, if it is next.
    pub(crate) fn take(&mut self, word: &str) -> bool {
        let is = self.peek().is_some_and(|token| token.is(word));
        self.at += usize::from(is);
        is
    }

    /// Takes a sign, if it is next.
    pub(crate) fn take_sign(&mut self, sign: &str) -> bool {
        let is = self.peek().is_some_and(|token| token.is_sign(sign));
        self.at += usize::from(is);
        is
    }

    /// Takes a keyword, which must be next.
    pub(crate) fn expect(&mut self, word: &str) -> Result<()> {
        if self.take(word) {
            Ok(())
        } else {
            Err(self.expected(&word.to_ascii_uppercase()))
        }
    }

    /// Takes a sign, which must be next.
    pub(crate) fn expect_sign(&mut self, sign: &str) -> Result<()> {
        if self.take_sign(sign) {
            Ok(())
        } else {
            Err(self.expected(sign))
        }
    }

    /// What stands here is not what must.
    pub(crate) fn expected(&self, what: &str) -> Error {
        match self.peek() {
            Some(token) => {
                Error::new(SqlState::SYNTAX, format!("expected {what}, not {}", token.text)).at(token.at)
            }
            None => Error::new(SqlState::SYNTAX, format!("expected {what} at the end")).at(self.text.len()),
        }
    }

    /// Nothing may follow.
    pub(crate) fn end(&self) -> Result<()> {
        match self.peek() {
            None => Ok(()),
            Some(_) => Err(self.expected("the end")),
        }
    }

    /// Takes a name.
    pub(crate) fn name(&mut self) -> Result<String> {
        match self.peek().and_then(|token| token.name()) {
            Some(name) if !name.is_empty() => {
                self.at += 1;
                Ok(name)
            }
            _ => Err(self.expected("a name")),
        }
    }

    /// Takes what adds to the path of an element, `.city` or `[2]`, if it is next.
    pub(crate) fn segment(&mut self) -> Option<String> {
        let (part, end) = segment(self.tokens, self.at)?;
        self.at = end;
        Some(part)
    }

    /// Takes a name, with `main.` before it or without.
    pub(crate) fn qualified(&mut self) -> Result<String> {
        let name = self.name()?;
        if !self.take_sign(".") {
            return Ok(name);
        }
        if name.eq_ignore_ascii_case("main") {
            return self.name();
        }
        Err(Error::new(SqlState::NO_TABLE, format!("there is no database {name}: only main")))
    }

    /// Takes a name, if there is one.
    pub(crate) fn optional_name(&mut self) -> Result<Option<String>> {
        match self.peek() {
            None => Ok(None),
            Some(_) => self.qualified().map(Some),
        }
    }

    /// Takes IF NOT EXISTS, if it is next.
    pub(crate) fn if_not_exists(&mut self) -> Result<bool> {
        if !self.take("if") {
            return Ok(false);
        }
        self.expect("not")?;
        self.expect("exists")?;
        Ok(true)
    }

    /// Takes what stands in parentheses, which must be next; answers it without them.
    pub(crate) fn parenthesized(&mut self) -> Result<String> {
        let open = self.peek().map_or(0, |token| token.end());
        self.expect_sign("(")?;
        let mut depth = 1;
        while let Some(token) = self.next() {
            match token.text {
                "(" => depth += 1,
                ")" => depth -= 1,
                _ => {}
            }
            if depth > PARENTHESES {
                let what = format!("parentheses stand at most {PARENTHESES} deep");
                return Err(Error::new(SqlState::LIMIT, what).at(token.at));
            }
            if depth == 0 {
                return Ok(self.text[open..token.at].trim().to_owned());
            }
        }
        Err(self.expected(")"))
    }

    /// Takes a literal: a number with a sign, a text, a blob, a word.
    pub(crate) fn literal(&mut self) -> Result<String> {
        let start = self.peek().map_or(self.text.len(), |token| token.at);
        let signed = self.take_sign("-") || self.take_sign("+");
        match self.next() {
            Some(token) if token.kind != Kind::Sign && (!signed || token.kind == Kind::Number) => {
                Ok(self.text[start..token.end()].to_owned())
            }
            _ => {
                self.at -= 1;
                Err(self.expected("a value, or an expression in parentheses"))
            }
        }
    }

    /// Takes an expression: the text up to a comma, a closing parenthesis or one of these words, outside of parentheses.
    pub(crate) fn until(&mut self, words: &[&str]) -> Result<&'a str> {
        let start = self.place();
        let mut depth = 0_usize;
        while let Some(token) = self.peek() {
            let is_word = words.iter().any(|word| token.is(word));
            if depth == 0 && (is_word || token.is_sign(",") || token.is_sign(")")) {
                break;
            }
            depth += usize::from(token.is_sign("("));
            depth -= usize::from(token.is_sign(")"));
            if depth > PARENTHESES {
                let what = format!("parentheses stand at most {PARENTHESES} deep");
                return Err(Error::new(SqlState::LIMIT, what).at(token.at));
            }
            self.at += 1;
        }
        Ok(&self.text[start.min(self.behind().max(start))..self.behind().max(start)])
    }

    /// Takes all that is left, as text.
    pub(crate) fn rest_of_text(&mut self) -> String {
        let start = self.peek().map_or(self.text.len(), |token| token.at);
        let end = self.tokens.last().map_or(start, |token| token.end());
        self.at = self.tokens.len();
        self.text[start.min(end)..end].to_owned()
    }

    /// Takes all tokens that are left.
    pub(crate) fn rest(&mut self) -> &'a [Token<'a>] {
        let rest = self.tokens.get(self.at..).unwrap_or(&[]);
        self.at = self.tokens.len();
        rest
    }

    /// A piece of the text.
    pub(crate) fn text_between(&self, start: usize, end: usize) -> &'a str {
        &self.text[start..end]
    }

    /// Where the next token begins.
    pub(crate) fn place(&self) -> usize {
        self.peek().map_or(self.text.len(), |token| token.at)
    }

    /// Where the token before ends.
    pub(crate) fn behind(&self) -> usize {
        self.at.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |token| token.end())
    }
}
