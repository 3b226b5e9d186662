//! Columns and calls of functions in a statement, with what a call on decimals becomes.

use super::{Operand, Sort, Text, CAST, PREFIX};
use crate::decimal::Digits;
use crate::error::Result;
use crate::token::{fold, Token};

/// Functions that become others on decimals.
const EXACT: [&str; 4] = ["sum", "avg", "total", "round"];
/// Functions that answer no decimals, whatever they are given.
const OTHERS: [&str; 9] =
    ["count", "length", "typeof", "quote", "hex", "printf", "format", "group_concat", "unicode"];

impl Text<'_> {
    /// A column, or the call of a function.
    pub(super) fn name(&mut self, stop: usize) -> Result<Operand> {
        let first = self.at;
        self.at += 1;
        if self.is_sign(0, "(") && self.at < stop {
            return self.call(first, stop);
        }
        while self.at + 1 < stop && self.is_sign(0, ".") {
            self.at += 2;
        }
        let last = &self.tokens[self.at - 1];
        let sort = if self.is_name_of_decimal(last) { Sort::Decimal } else { Sort::Other };
        Ok(Operand { text: self.sql[self.start(first)..self.end(self.at)].to_owned(), sort })
    }

    fn call(&mut self, first: usize, stop: usize) -> Result<Operand> {
        let name = &self.tokens[first];
        let folded = name.name().map(|name| fold(&name)).unwrap_or_default();
        let open = self.at;
        let gap = &self.sql[name.end()..self.start(open)];
        if folded == "cast" {
            return self.cast(stop);
        }
        let arguments = self.parentheses(stop)?;
        let mut tail = String::new();
        while self.peek(0).is_some_and(|word| word.is("filter") || word.is("over")) {
            let from = self.end(self.at);
            self.at += 1;
            tail.push_str(&self.sql[from..self.start(self.at)]);
            if self.is_sign(0, "(") {
                tail.push_str(&self.parentheses(stop)?.text);
            } else if self.at < stop {
                tail.push_str(self.tokens[self.at].text);
                self.at += 1;
            }
        }
        self.note_columns(open);
        let is_decimal = arguments.sort == Sort::Decimal && !OTHERS.contains(&&folded[..]);
        let called = match is_decimal && EXACT.contains(&&folded[..]) {
            true => format!("{PREFIX}{folded}"),
            false => name.text.to_owned(),
        };
        let sort = if is_decimal { Sort::Decimal } else { Sort::Other };
        Ok(Operand { text: format!("{called}{gap}{}{tail}", arguments.text), sort })
    }

    /// Notes the names in the parentheses at `open` if they are the columns of a WITH or of a view: of what, is not seen here.
    fn note_columns(&mut self, open: usize) {
        let begins = |by: usize, words: &[&str]| {
            self.peek(by).is_some_and(|next| next.is_sign("(") || words.iter().any(|word| next.is(word)))
        };
        if self.peek(0).is_some_and(|token| token.is("as"))
            && begins(1, &["select", "with", "values", "materialized", "not"])
        {
            let inside = &self.tokens[open..self.at];
            self.found.extend(inside.iter().filter_map(Token::name).map(|name| fold(&name)));
        }
    }

    fn cast(&mut self, stop: usize) -> Result<Operand> {
        let close = self.closing(stop);
        let inside = &self.tokens[self.at..close];
        let mut depth = 0_usize;
        let mut of_type = None;
        for (by, token) in inside.iter().enumerate() {
            depth += usize::from(token.is_sign("("));
            depth = depth.saturating_sub(usize::from(token.is_sign(")")));
            if depth == 1 && token.is("as") {
                of_type = Some(self.at + by);
            }
        }
        let Some(word) = of_type else {
            let arguments = self.parentheses(stop)?;
            return Ok(Operand { text: format!("CAST{}", arguments.text), sort: Sort::Other });
        };
        let declared = &self.sql[self.end(word + 1)..self.end(close)];
        self.at += 1;
        let (text, _) = self.inside(word)?;
        self.at = (close + 1).min(stop);
        let digits = Digits::of(declared);
        if let Some((precision, scale)) = digits.and_then(|digits| Some((digits.precision, digits.scale?))) {
            return Ok(Operand {
                text: format!("{CAST}({text}, {precision}, {scale})"),
                sort: Sort::Decimal,
            });
        }
        let sort = if digits.is_some() { Sort::Decimal } else { Sort::Other };
        Ok(Operand { text: format!("CAST({text} AS{declared})"), sort })
    }
}
