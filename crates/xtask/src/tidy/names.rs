//! Names of files, directories and modules say which concept they hold.

use crate::finding::Finding;
use crate::house::BANNED_NAMES;
use crate::lexer::{self, identifier, line_at};
use crate::sources::{self, Sources};

const RULE: &str = "names";

pub(crate) fn check(sources: &Sources) -> Vec<Finding> {
    let mut findings = Vec::new();
    for path in sources.paths() {
        let name = sources::name(path);
        let stem = name.split('.').next().unwrap_or(name);
        if let Some(word) = banned(stem) {
            findings.push(Finding::new(path, 1, RULE, advice(word)));
        }
    }
    for (path, text) in sources.texts(&["rs"]) {
        let code = lexer::lex(text).code;
        for at in lexer::words(&code, "mod") {
            if let Some(word) = banned(identifier(&code[at + 3..])) {
                findings.push(Finding::new(path, line_at(&code, at), RULE, advice(word)));
            }
        }
    }
    findings
}

fn banned(name: &str) -> Option<&'static str> {
    let has = |word: &str| name.split(['_', '-']).any(|part| part.eq_ignore_ascii_case(word));
    BANNED_NAMES.iter().copied().find(|word| has(word))
}

fn advice(word: &str) -> String {
    format!(
        "`{word}` names no concept; name what the contents are about, or split them by what they are about"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples::{places, project};

    #[test]
    fn names_without_a_concept_are_found() {
        let bad = project(&[
            ("crates/key/src/util.rs", ""),
            ("crates/key/tests/common/fixture.rs", ""),
            ("bindings/lua/node_helpers.lua", ""),
            ("crates/key/src/lib.rs", "//! Key.\nmod misc {}\n"),
        ]);
        assert_eq!(
            places(check(&bad)),
            [
                "bindings/lua/node_helpers.lua:1",
                "crates/key/src/lib.rs:2",
                "crates/key/src/util.rs:1",
                "crates/key/tests/common:1"
            ]
        );
    }

    #[test]
    fn longer_words_are_fine() {
        let good = project(&[("crates/key/src/database.rs", "mod utility_pole {}\nmod score {}\n")]);
        assert_eq!(check(&good), []);
    }
}
