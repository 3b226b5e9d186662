//! Arithmetic on decimals in a statement: operators become calls, which do not round.
//!
//! ```text
//! SELECT price * 1.1, sum(price) FROM item
//! SELECT perilune_times(price, 1.1) AS "price * 1.1", perilune_sum(price) AS "sum(price)" FROM item
//! ```
//!
//! What is a decimal is seen by names: columns of the type, what an `AS` calls an expression with one of them, and so on until
//! nothing is added. A name that is taken for one in vain costs nothing but a call, which calculates with integers and doubles as
//! SQLite does. Between two literals with a point, arithmetic is exact as well.
//!
//! Invariants
//! - A statement without names of decimals is not changed.
//! - Operands are taken as SQLite binds them: signs, then `||` and `->`, then `*` `/` `%`, then `+` `-`.

mod calls;
mod words;

use std::collections::HashSet;

use crate::error::{Error, Result, SqlState};
use crate::limits::PARENTHESES;
use crate::rewrite::Piece;
use crate::schema::{Table, Trigger};
use crate::token::{fold, quote, tokens, Kind, Token};

use self::words::{is_reserved, literal};

/// What the functions begin with.
pub(crate) const PREFIX: &str = "perilune_";
/// What operators become.
pub(crate) const OPERATORS: [(&str, &str); 4] =
    [("+", "perilune_plus"), ("-", "perilune_minus"), ("*", "perilune_times"), ("/", "perilune_over")];
/// What `round` becomes.
pub(crate) const ROUND: &str = "perilune_round";
/// What `CAST(x AS DECIMAL(p,s))` becomes.
pub(crate) const CAST: &str = "perilune_decimal";

/// How often names are looked for that follow from others.
const ROUNDS: usize = 16;

/// A statement with its arithmetic on decimals as calls, and the names of decimals in it.
pub(crate) struct Exact {
    pub(crate) sql: String,
    pub(crate) names: HashSet<String>,
}

/// The statement with exact arithmetic; `names` are those of columns of decimals, in lower case.
///
/// # Errors
/// `LIMIT`, where parentheses stand too deep; `RANGE` for a literal that no double keeps.
pub(crate) fn with_exact(sql: &str, tokens: &[Token<'_>], mut names: HashSet<String>) -> Result<Exact> {
    for _ in 0..ROUNDS {
        let mut text = Text { sql, tokens, names: &names, found: HashSet::new(), at: 0, depth: 0 };
        let (out, _) = text.region(tokens.len())?;
        let found = text.found;
        if found.is_subset(&names) {
            return Ok(Exact { sql: out, names });
        }
        names.extend(found);
    }
    Err(Error::new(SqlState::LIMIT, format!("names of decimals follow from others at most {ROUNDS} times")))
}

/// A piece with exact arithmetic on the columns of the rows that it is given, which are parameters of numbers from `first` on.
///
/// # Errors
/// As [`with_exact`].
pub(crate) fn with_exact_rows(piece: &Piece, table: &Table, first: usize) -> Result<Option<String>> {
    let is_decimal =
        |name: &str| table.column(name).is_some_and(|column| table.columns[column].decimal.is_some());
    let names = piece.columns.iter().enumerate().filter(|(_, (_, name))| is_decimal(name));
    let names: HashSet<String> = names.map(|(at, _)| format!("?{}", first + at)).collect();
    if names.is_empty() {
        return Ok(None);
    }
    Ok(Some(with_exact(&piece.sql, &tokens(&piece.sql)?, names)?.sql))
}

/// Has a trigger of a table calculate exactly with the decimals of its rows.
///
/// # Errors
/// As [`with_exact`], of a piece that cannot be exact: it stays as it is.
pub(crate) fn make_exact(trigger: &mut Trigger, table: &Table) -> Result<()> {
    let mut result = Ok(());
    for piece in trigger.condition.iter_mut().chain(&mut trigger.body) {
        match with_exact_rows(piece, table, 1) {
            Ok(Some(exact)) => piece.sql = exact,
            Ok(None) => {}
            Err(error) => result = Err(error),
        }
    }
    result
}

/// Whether a CAST makes decimals here.
pub(crate) fn casts(tokens: &[Token<'_>]) -> bool {
    let is_type = |token: &Token<'_>| ["decimal", "dec", "numeric"].iter().any(|word| token.is(word));
    tokens.windows(3).any(|three| three[0].is("as") && is_type(&three[1]) && three[2].is_sign("("))
}

/// What an operand is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sort {
    Decimal,
    /// A literal with a point.
    Fraction,
    /// A literal without.
    Whole,
    Other,
}

impl Sort {
    /// Whether arithmetic with two of these is exact.
    fn is_exact_with(self, other: Sort) -> bool {
        use Sort::{Decimal, Fraction, Whole};
        self == Decimal
            || other == Decimal
            || matches!((self, other), (Fraction, Fraction | Whole) | (Whole, Fraction))
    }
}

/// An operand, as it is written in the end.
struct Operand {
    text: String,
    sort: Sort,
}

/// A statement as it is read.
struct Text<'a> {
    sql: &'a str,
    tokens: &'a [Token<'a>],
    names: &'a HashSet<String>,
    found: HashSet<String>,
    at: usize,
    depth: usize,
}

impl<'a> Text<'a> {
    fn peek(&self, by: usize) -> Option<&'a Token<'a>> {
        self.tokens.get(self.at + by)
    }

    fn is_sign(&self, by: usize, sign: &str) -> bool {
        self.peek(by).is_some_and(|token| token.is_sign(sign))
    }

    /// Where the text of a token begins, or that of the last one ends.
    fn start(&self, at: usize) -> usize {
        self.tokens.get(at).map_or(self.sql.len(), |token| token.at)
    }

    fn end(&self, at: usize) -> usize {
        at.checked_sub(1).map_or(0, |last| self.tokens[last].end())
    }

    /// Goes through the tokens up to `stop`: expressions are read, anything else stays. Says what all of it is as an operand.
    fn region(&mut self, stop: usize) -> Result<(String, Sort)> {
        let (mut out, mut end) = (String::new(), self.start(self.at));
        let (mut sort, mut count) = (Sort::Whole, 0);
        let (mut in_list, mut is_first) = (false, false);
        while self.at < stop {
            let token = &self.tokens[self.at];
            let is_operand = self.begins_operand();
            if !is_operand {
                match token {
                    _ if token.is("select") || token.is("returning") => (in_list, is_first) = (true, true),
                    _ if token.is("distinct") || token.is("all") => {}
                    _ if token.is_sign(",") => is_first = in_list,
                    _ if ["from", "where", "group", "order"].iter().any(|word| token.is(word)) => {
                        (in_list, is_first) = (false, false);
                    }
                    _ => is_first = false,
                }
                self.at += 1;
                count += usize::from(token.kind != Kind::Sign) * 2;
                continue;
            }
            let from = token.at;
            let operand = self.sum(stop)?;
            let to = self.end(self.at);
            out.push_str(&self.sql[end..from]);
            out.push_str(&operand.text);
            end = to;
            count += 1;
            sort = if operand.sort == Sort::Decimal || sort == Sort::Decimal {
                Sort::Decimal
            } else {
                operand.sort
            };
            if operand.sort == Sort::Decimal {
                self.note_alias(stop);
            }
            let next = self.tokens.get(self.at).filter(|_| self.at < stop);
            let ends = next.is_none_or(|next| next.is_sign(",") || next.is_sign(";") || next.is("from"));
            if is_first && ends && operand.text != self.sql[from..to] {
                // It is called what the user has written, as SQLite does.
                out.push_str(&format!(" AS {}", quote(&self.sql[from..to])));
            }
            is_first = false;
        }
        out.push_str(&self.sql[end..self.end(stop).max(end)]);
        let sort = if sort == Sort::Decimal || count == 1 { sort } else { Sort::Other };
        Ok((out, sort))
    }

    /// Notes what a decimal that ends here is called.
    fn note_alias(&mut self, stop: usize) {
        let has_as = self.peek(0).is_some_and(|token| token.is("as"));
        let name = self.tokens.get(self.at + usize::from(has_as)).filter(|_| self.at < stop);
        let Some(name) = name.filter(|name| matches!(name.kind, Kind::Word | Kind::Name)) else { return };
        if has_as || !is_reserved(name) {
            self.found.extend(name.name().map(|name| fold(&name)));
        }
    }

    fn is_name_of_decimal(&self, token: &Token<'_>) -> bool {
        matches!(token.kind, Kind::Word | Kind::Name)
            && token.name().is_some_and(|name| self.names.contains(&fold(&name)))
    }

    fn begins_operand(&self) -> bool {
        let Some(token) = self.peek(0) else { return false };
        match token.kind {
            Kind::Word if token.is("case") || token.is("null") => true,
            Kind::Word if token.is("replace") => self.is_sign(1, "("),
            Kind::Word => !is_reserved(token) || self.is_name_of_decimal(token),
            Kind::Name | Kind::Text | Kind::Blob | Kind::Number | Kind::Parameter => true,
            Kind::Sign => ["(", "-", "+", "~"].contains(&token.text),
        }
    }

    fn sum(&mut self, stop: usize) -> Result<Operand> {
        self.chain(stop, &["+", "-"], &mut |text| text.product(stop))
    }

    fn product(&mut self, stop: usize) -> Result<Operand> {
        self.chain(stop, &["*", "/", "%"], &mut |text| text.joined(stop))
    }

    fn joined(&mut self, stop: usize) -> Result<Operand> {
        self.chain(stop, &["||", "->", "->>"], &mut |text| text.signed(stop))
    }

    /// Operands with these operators between them, which bind to the left.
    fn chain(
        &mut self,
        stop: usize,
        operators: &[&str],
        next: &mut dyn FnMut(&mut Self) -> Result<Operand>,
    ) -> Result<Operand> {
        let mut left = next(self)?;
        while self.at + 1 < stop {
            let token = &self.tokens[self.at];
            if token.kind != Kind::Sign || !operators.contains(&token.text) {
                break;
            }
            let from = self.end(self.at);
            self.at += 1;
            if !self.begins_operand() {
                self.at -= 1;
                break;
            }
            let to = self.start(self.at);
            let right = next(self)?;
            let call = OPERATORS.iter().find(|(sign, _)| *sign == token.text);
            left = match call {
                Some((_, name)) if left.sort.is_exact_with(right.sort) => Operand {
                    text: format!("{name}({}, {})", left.text, right.text),
                    sort: if left.sort == Sort::Decimal || right.sort == Sort::Decimal {
                        Sort::Decimal
                    } else {
                        Sort::Fraction
                    },
                },
                _ => Operand {
                    text: format!("{}{}{}", left.text, &self.sql[from..to], right.text),
                    sort: if call.is_some() && left.sort == right.sort { left.sort } else { Sort::Other },
                },
            };
        }
        Ok(left)
    }

    /// An operand with its signs.
    fn signed(&mut self, stop: usize) -> Result<Operand> {
        let from = self.start(self.at);
        let first = self.at;
        while self.at + 1 < stop && ["-", "+", "~"].iter().any(|sign| self.is_sign(0, sign)) {
            self.at += 1;
        }
        if self.at > first && !self.begins_operand() {
            let text = self.sql[from..self.end(self.at)].to_owned();
            return Ok(Operand { text, sort: Sort::Other });
        }
        let signs = &self.sql[from..self.start(self.at)];
        let mut operand = self.atom(stop)?;
        if self.peek(0).is_some_and(|token| token.is("collate")) && self.at + 1 < stop {
            let from = self.end(self.at);
            self.at += 2;
            operand.text.push_str(&self.sql[from..self.end(self.at)]);
        }
        operand.text.insert_str(0, signs);
        Ok(operand)
    }

    fn atom(&mut self, stop: usize) -> Result<Operand> {
        let token = &self.tokens[self.at];
        let other = |text: &str, sort| Ok(Operand { text: text.to_owned(), sort });
        match token.kind {
            Kind::Sign => self.parentheses(stop),
            Kind::Word if token.is("case") => self.case(stop),
            Kind::Word | Kind::Name => self.name(stop),
            Kind::Number => {
                self.at += 1;
                other(token.text, literal(token)?)
            }
            // A value of the caller's: two of them may be decimals. One of a row that a piece is given is known.
            Kind::Parameter => {
                self.at += 1;
                let is_decimal = self.names.contains(token.text);
                other(token.text, if is_decimal { Sort::Decimal } else { Sort::Fraction })
            }
            Kind::Text | Kind::Blob => {
                self.at += 1;
                other(token.text, Sort::Other)
            }
        }
    }

    /// Goes one deeper, to `stop`.
    fn inside(&mut self, stop: usize) -> Result<(String, Sort)> {
        self.depth += 1;
        if self.depth > PARENTHESES {
            let what =
                format!("parentheses and CASE stand at most {PARENTHESES} deep where there are decimals");
            return Err(Error::new(SqlState::LIMIT, what).at(self.start(self.at)));
        }
        let inside = self.region(stop);
        self.depth -= 1;
        inside
    }

    /// What stands in parentheses, with them.
    fn parentheses(&mut self, stop: usize) -> Result<Operand> {
        let (open, close) = (self.at, self.closing(stop));
        self.at += 1;
        let before = &self.sql[self.tokens[open].at..self.start(self.at)];
        let (text, sort) = self.inside(close)?;
        let behind = self.end(close);
        self.at = (close + 1).min(stop);
        Ok(Operand { text: format!("{before}{text}{}", &self.sql[behind..self.end(self.at)]), sort })
    }

    /// Which token closes the parenthesis that stands here; `stop` if none does.
    fn closing(&self, stop: usize) -> usize {
        let mut depth = 0_usize;
        for at in self.at..stop {
            depth += usize::from(self.tokens[at].is_sign("("));
            if self.tokens[at].is_sign(")") {
                depth = depth.saturating_sub(1);
                if depth == 0 {
                    return at;
                }
            }
        }
        stop
    }

    fn case(&mut self, stop: usize) -> Result<Operand> {
        let (mut depth, mut end) = (0_usize, self.at);
        while end < stop {
            depth += usize::from(self.tokens[end].is("case"));
            depth -= usize::from(self.tokens[end].is("end"));
            if depth == 0 {
                break;
            }
            end += 1;
        }
        let start = self.start(self.at);
        self.at += 1;
        let head = &self.sql[start..self.start(self.at)];
        let (text, sort) = self.inside(end)?;
        let behind = self.end(end);
        self.at = (end + 1).min(stop);
        let sort = if sort == Sort::Decimal { sort } else { Sort::Other };
        Ok(Operand { text: format!("{head}{text}{}", &self.sql[behind..self.end(self.at)]), sort })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::token::tokens;

    fn exact(sql: &str) -> String {
        let names = ["price", "tax"].map(str::to_owned).into();
        with_exact(sql, &tokens(sql).expect("tokens"), names).expect("exact").sql
    }

    #[test]
    fn operators_become_calls_as_they_bind() {
        for (sql, wanted) in [
            ("SELECT a, t.*, count(*), * FROM t", "SELECT a, t.*, count(*), * FROM t"),
            ("UPDATE t SET price = price + 1", "UPDATE t SET price = perilune_plus(price, 1)"),
            (
                "SELECT 1 WHERE price - tax * -2 > i + 1",
                "SELECT 1 WHERE perilune_minus(price, perilune_times(tax, -2)) > i + 1",
            ),
            (
                "SELECT price*2 , (price - 1) / t.tax AS x FROM t",
                "SELECT perilune_times(price, 2) AS \"price*2\" , perilune_over((perilune_minus(price, 1)), t.tax) AS x FROM t",
            ),
            (
                "SELECT sum(price) FILTER (WHERE i * 2 > 1), round(price, 1), sum(i), sum(tax) OVER () FROM t",
                "SELECT perilune_sum(price) FILTER (WHERE i * 2 > 1) AS \"sum(price) FILTER (WHERE i * 2 > 1)\", \
                 perilune_round(price, 1) AS \"round(price, 1)\", sum(i), perilune_sum(tax) OVER () AS \"sum(tax) OVER ()\" FROM t",
            ),
            (
                "SELECT x + 1 AS y FROM (SELECT price x FROM t)",
                "SELECT perilune_plus(x, 1) AS y FROM (SELECT price x FROM t)",
            ),
            (
                "WITH w(a) AS (SELECT price FROM t) SELECT a - 1 AS b FROM w",
                "WITH w(a) AS (SELECT price FROM t) SELECT perilune_minus(a, 1) AS b FROM w",
            ),
            (
                "SELECT 1 WHERE price = 0.1 + 0.2 AND d = 1 + 2",
                "SELECT 1 WHERE price = perilune_plus(0.1, 0.2) AND d = 1 + 2",
            ),
            (
                "SELECT 1 WHERE CASE WHEN i THEN price ELSE 0 END - 1 IN (1, -2)",
                "SELECT 1 WHERE perilune_minus(CASE WHEN i THEN price ELSE 0 END, 1) IN (1, -2)",
            ),
            (
                "SELECT CAST(i AS DECIMAL(10, 2)) + 1 AS a, CAST(price AS REAL) + 1 AS b, 'price' + 1 AS c",
                "SELECT perilune_plus(perilune_decimal(i, 10, 2), 1) AS a, CAST(price AS REAL) + 1 AS b, 'price' + 1 AS c",
            ),
        ] {
            assert_eq!(exact(sql), wanted);
        }
    }

    #[test]
    fn what_no_double_keeps_is_refused() {
        let sql = "SELECT 0.30000000000000001";
        let error = with_exact(sql, &tokens(sql).expect("tokens"), HashSet::new()).err().expect("refused");
        assert_eq!((error.state(), error.position()), (SqlState::RANGE, Some(7)));
        let deep = format!("SELECT {}1{}", "(".repeat(9_999), ")".repeat(9_999));
        assert!(with_exact(&deep, &tokens(&deep).expect("tokens"), HashSet::new()).is_err());
        for sql in
            ["SELECT (price +", "SELECT CASE price", "SELECT -", "price.", "CAST(price AS", "sum(price) OVER"]
        {
            let names = HashSet::from(["price".to_owned()]);
            assert!(with_exact(sql, &tokens(sql).expect("tokens"), names).is_ok(), "{sql}");
        }
    }
}
