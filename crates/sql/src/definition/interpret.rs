//! INTERPRET LUA: the functions that a text in Lua defines, each as a CREATE FUNCTION.
//!
//! ```text
//! -- DETERMINISTIC
//! function gross(net, rate)
//!   return net * (1 + rate)
//! end
//! ```
//!
//! Lua is not parsed: a function begins with a line `function name(...)`, and ends with a line that is `end` alone, both without
//! blanks before them; or it is one line that ends in `end`. A comment before it may say that it is deterministic.
//!
//! Invariant: what is no function, comment or blank line is an error; nothing in a text is skipped in silence.

use super::{function::parse_function, Reader};
use crate::error::{Error, Result, SqlState};
use crate::function::Function;
use crate::token::{quote, Kind};

/// Parses what stands behind INTERPRET: the functions, and their CREATE FUNCTION.
pub(super) fn interpret(reader: &mut Reader<'_>) -> Result<Vec<(Function, String)>> {
    reader.expect("lua")?;
    let mut all = Vec::new();
    while let Some(token) = reader.peek().filter(|token| !token.is_sign(";")) {
        let Some(text) = token.name().filter(|_| matches!(token.kind, Kind::Text | Kind::Name)) else {
            return Err(reader.expected("functions in Lua in '...'"));
        };
        reader.next();
        for sql in functions(&text).map_err(|error| error.at(token.at))? {
            all.push((parse_function(&sql)?, sql));
        }
    }
    if all.is_empty() {
        return Err(reader.expected("functions in Lua in '...'"));
    }
    Ok(all)
}

/// A function that is being read.
struct Open<'a> {
    name: &'a str,
    parameters: &'a str,
    is_deterministic: bool,
    body: String,
}

impl Open<'_> {
    fn sql(&self) -> String {
        let deterministic = if self.is_deterministic { "DETERMINISTIC " } else { "" };
        let (name, body) = (quote(self.name), self.body.replace('\'', "''"));
        format!("CREATE OR REPLACE FUNCTION {name}({}) {deterministic}AS '{body}'", self.parameters)
    }
}

fn functions(text: &str) -> Result<Vec<String>> {
    let (mut all, mut open, mut is_deterministic) = (Vec::new(), None::<Open<'_>>, false);
    for (at, line) in text.lines().enumerate() {
        let plain = line.trim_end();
        if let Some(mut function) = open.take() {
            if plain == "end" {
                all.push(function.sql());
            } else {
                function.body.push('\n');
                function.body.push_str(line);
                open = Some(function);
            }
        } else if let Some(comment) = plain.strip_prefix("--") {
            is_deterministic = comment.trim().eq_ignore_ascii_case("deterministic");
        } else if !plain.is_empty() {
            let wrong = || {
                let what = format!("line {}: expected a function: function name(a, b) ... end", at + 1);
                Error::new(SqlState::DEFINITION, what)
            };
            let (name, rest) =
                plain.strip_prefix("function ").and_then(|rest| rest.split_once('(')).ok_or_else(wrong)?;
            let (parameters, rest) = rest.split_once(')').ok_or_else(wrong)?;
            let (name, body) = (name.trim(), rest.to_owned());
            let mut function = Open { name, parameters, is_deterministic, body };
            is_deterministic = false;
            match rest.strip_suffix("end") {
                Some(rest) if !rest.ends_with(|last: char| last.is_alphanumeric() || last == '_') => {
                    rest.clone_into(&mut function.body);
                    all.push(function.sql());
                }
                _ => open = Some(function),
            }
        }
    }
    match open {
        Some(function) => {
            let what = format!(
                "function {} has no end, which stands alone at the beginning of a line",
                function.name
            );
            Err(Error::new(SqlState::DEFINITION, what))
        }
        None => Ok(all),
    }
}

#[cfg(test)]
mod tests {
    use super::functions;

    #[test]
    fn a_text_is_cut_into_its_functions() {
        let text = "-- of prices\n\nfunction gross(net, rate)\n  if net then\n    return 'x'\n  end\nend\n\
                    -- DETERMINISTIC\nfunction one() return 1 end\nfunction two() end\n";
        let wanted = [
            "CREATE OR REPLACE FUNCTION \"gross\"(net, rate) AS '\n  if net then\n    return ''x''\n  end'",
            "CREATE OR REPLACE FUNCTION \"one\"() DETERMINISTIC AS ' return 1 '",
            "CREATE OR REPLACE FUNCTION \"two\"() AS ' '",
        ];
        assert_eq!(functions(text).expect("functions"), wanted);
        for (text, wanted) in [
            ("\nx = 1", "line 2"),
            ("function f", "line 1"),
            ("function f(x)\n return weekend", "function f has no end"),
            ("function f(x) return weekend", "function f has no end"),
        ] {
            let error = functions(text).expect_err(text);
            assert!(error.message().contains(wanted), "{text}: {error}");
        }
    }
}
