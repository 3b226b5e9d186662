//! Functions of SQLite that answer for their arguments alone, each row by itself.
//!
//! Invariant: no aggregate is among them; `min` and `max` of one argument are some, so neither is.

/// In the order of the alphabet.
const PURE: [&str; 78] = [
    "abs",
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "ceiling",
    "char",
    "coalesce",
    "concat",
    "concat_ws",
    "cos",
    "cosh",
    "date",
    "datetime",
    "degrees",
    "exp",
    "floor",
    "format",
    "glob",
    "hex",
    "if",
    "ifnull",
    "iif",
    "instr",
    "json",
    "json_array",
    "json_array_length",
    "json_extract",
    "json_insert",
    "json_object",
    "json_patch",
    "json_quote",
    "json_remove",
    "json_replace",
    "json_set",
    "json_type",
    "json_valid",
    "julianday",
    "length",
    "like",
    "likelihood",
    "likely",
    "ln",
    "log",
    "log10",
    "log2",
    "lower",
    "ltrim",
    "mod",
    "nullif",
    "octet_length",
    "pi",
    "pow",
    "power",
    "printf",
    "quote",
    "radians",
    "replace",
    "round",
    "rtrim",
    "sign",
    "sin",
    "sinh",
    "soundex",
    "sqrt",
    "strftime",
    "substr",
    "substring",
    "tan",
    "tanh",
    "time",
    "trim",
    "trunc",
    "upper",
];

/// More of them, which came later or are seldom met.
const MORE: [&str; 7] =
    ["timediff", "typeof", "unhex", "unicode", "unixepoch", "unlikely", "perilune_element"];

/// Whether it is one, by its name in lower case.
pub(super) fn is_pure(name: &str) -> bool {
    PURE.binary_search(&name).is_ok() || MORE.contains(&name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_are_sorted_and_no_aggregates() {
        assert!(PURE.is_sorted());
        for name in ["min", "max", "sum", "count", "random", "randomblob", "changes", "last_insert_rowid"] {
            assert!(!is_pure(name), "{name}");
        }
    }
}
