//! CREATE FUNCTION: `CREATE [OR REPLACE] FUNCTION [IF NOT EXISTS] name(a, b) [RETURNS TABLE(c, d)] [DETERMINISTIC] [LANGUAGE LUA]
//! AS 'body'`; CREATE AGGREGATE the same, without RETURNS.
//!
//! Invariant: names of parameters are different, and are letters, digits and `_` alone, so that any language has them.

use super::Reader;
use crate::error::{Error, Result, SqlState};
use crate::function::{Function, Shape};
use crate::limits::PARAMETERS;
use crate::token::{fold, tokens, Kind};

/// The language of functions that name none.
const LANGUAGE: &str = "lua";

/// Parses a whole CREATE FUNCTION, as the catalog keeps it.
pub(crate) fn parse_function(sql: &str) -> Result<Function> {
    let tokens = tokens(sql)?;
    let mut reader = Reader::new(sql, &tokens);
    reader.expect("create")?;
    if reader.take("or") {
        reader.expect("replace")?;
    }
    let is_aggregate = reader.take("aggregate");
    if !is_aggregate {
        reader.expect("function")?;
    }
    let (_, function) = create(&mut reader, is_aggregate)?;
    reader.end()?;
    Ok(function)
}

/// Parses what stands behind CREATE FUNCTION or CREATE AGGREGATE: whether it may be there already, and the function.
pub(super) fn create(reader: &mut Reader<'_>, is_aggregate: bool) -> Result<(bool, Function)> {
    let if_not_exists = reader.if_not_exists()?;
    let name = fold(&reader.qualified()?);
    let parameters = names(reader, "parameter")?;
    let shape = if is_aggregate {
        Shape::Aggregate
    } else if reader.take("returns") {
        reader.expect("table")?;
        let place = reader.place();
        let columns = names(reader, "column")?;
        if columns.is_empty() {
            return Err(Error::new(SqlState::DEFINITION, "a table has one column at least").at(place));
        }
        Shape::Rows(columns)
    } else {
        Shape::Value
    };
    let is_deterministic = reader.take("deterministic");
    if reader.take("language") {
        let place = reader.place();
        let language = fold(&reader.name()?);
        if language != LANGUAGE {
            let what = format!("functions are written in Lua, not in {language}");
            return Err(Error::new(SqlState::REFUSED, what).at(place));
        }
    }
    reader.expect("as")?;
    let text = reader.peek().filter(|token| token.kind == Kind::Text);
    let Some(body) = text.and_then(|text| text.name()) else {
        return Err(reader.expected("the body of the function in '...'"));
    };
    reader.next();
    Ok((if_not_exists, Function { name, parameters, shape, is_deterministic, body, is_of_host: false }))
}

fn names(reader: &mut Reader<'_>, what: &str) -> Result<Vec<String>> {
    reader.expect_sign("(")?;
    let mut names: Vec<String> = Vec::new();
    if reader.take_sign(")") {
        return Ok(names);
    }
    loop {
        let place = reader.place();
        let name = reader.name()?;
        let is_plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_plain || name.starts_with(|letter: char| letter.is_ascii_digit()) {
            let what = format!("the {what} {name} has other characters than letters, digits and _");
            return Err(Error::new(SqlState::DEFINITION, what).at(place));
        }
        if names.contains(&name) {
            return Err(Error::new(SqlState::DEFINITION, format!("two {what}s are called {name}")).at(place));
        }
        names.push(name);
        if names.len() > PARAMETERS {
            let what = format!("a function has {PARAMETERS} {what}s at most");
            return Err(Error::new(SqlState::LIMIT, what).at(place));
        }
        if reader.take_sign(")") {
            return Ok(names);
        }
        reader.expect_sign(",")?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_function_is_what_its_text_says() {
        let text = "create or replace function if not exists Gross(net, rate) deterministic language LUA as \
                    'return net * ''1''';";
        let function = parse_function(text).expect("a function");
        assert_eq!((&function.name[..], &function.body[..]), ("gross", "return net * '1'"));
        assert_eq!(function.parameters, ["net", "rate"]);
        assert!(function.is_deterministic);
        let plain = parse_function("CREATE FUNCTION f() AS 'return 1'").expect("a function");
        assert!(plain.parameters.is_empty() && !plain.is_deterministic && plain.shape == Shape::Value);
        let rows =
            parse_function("CREATE FUNCTION f(n) RETURNS TABLE(a, b) AS 'return {}'").expect("a function");
        assert_eq!(rows.shape, Shape::Rows(vec!["a".into(), "b".into()]));
        let sum = parse_function("CREATE OR REPLACE AGGREGATE f(n) AS 'return {}'").expect("an aggregate");
        assert_eq!(sum.shape, Shape::Aggregate);
    }

    #[test]
    fn what_is_wrong_is_told_at_its_place() {
        for (text, state, at) in [
            ("CREATE FUNCTION f AS 'return 1'", SqlState::SYNTAX, 18),
            ("CREATE FUNCTION f(a, a) AS 'return 1'", SqlState::DEFINITION, 21),
            ("CREATE FUNCTION f(\"a b\") AS 'return 1'", SqlState::DEFINITION, 18),
            ("CREATE FUNCTION f(a) LANGUAGE python AS 'return 1'", SqlState::REFUSED, 30),
            ("CREATE FUNCTION f(a) AS return", SqlState::SYNTAX, 24),
            ("CREATE FUNCTION f(a) RETURNS TABLE() AS ''", SqlState::DEFINITION, 34),
            ("CREATE AGGREGATE f(a) RETURNS TABLE(b) AS ''", SqlState::SYNTAX, 22),
        ] {
            let error = parse_function(text).expect_err(text);
            assert_eq!((error.state(), error.position()), (state, Some(at)), "{text}: {error}");
        }
    }
}
