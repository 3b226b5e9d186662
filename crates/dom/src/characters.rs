//! Which characters XML 1.0 has, and which of them make names.

use crate::{DomError, Result};

/// Whether XML 1.0 has this character at all.
pub(crate) fn is_char(c: char) -> bool {
    matches!(c, '\t' | '\n' | '\r' | ' '..='\u{D7FF}' | '\u{E000}'..='\u{FFFD}' | '\u{10000}'..)
}

/// XML's white space, which is less than Unicode's.
pub(crate) fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\t' | '\n' | '\r')
}

/// Whether a name may begin with it; `:` included.
pub(crate) fn is_name_start(c: char) -> bool {
    matches!(c, ':' | 'A'..='Z' | '_' | 'a'..='z' | '\u{C0}'..='\u{D6}' | '\u{D8}'..='\u{F6}' | '\u{F8}'..='\u{2FF}'
        | '\u{370}'..='\u{37D}' | '\u{37F}'..='\u{1FFF}' | '\u{200C}'..='\u{200D}' | '\u{2070}'..='\u{218F}'
        | '\u{2C00}'..='\u{2FEF}' | '\u{3001}'..='\u{D7FF}' | '\u{F900}'..='\u{FDCF}' | '\u{FDF0}'..='\u{FFFD}'
        | '\u{10000}'..='\u{EFFFF}')
}

/// Whether a name may go on with it.
pub(crate) fn is_name_char(c: char) -> bool {
    is_name_start(c)
        || matches!(c, '-' | '.' | '0'..='9' | '\u{B7}' | '\u{300}'..='\u{36F}' | '\u{203F}'..='\u{2040}')
}

/// Whether `text` is an XML name.
pub(crate) fn is_name(text: &str) -> bool {
    let mut characters = text.chars();
    characters.next().is_some_and(is_name_start) && characters.all(is_name_char)
}

/// Refuses what is no name.
pub(crate) fn check_name(text: &str) -> Result<()> {
    if is_name(text) {
        Ok(())
    } else {
        Err(DomError::InvalidCharacter(text.to_owned()))
    }
}

/// Refuses text with characters that XML has not, or with `forbidden`.
pub(crate) fn check_text(text: &str, forbidden: Option<&str>) -> Result<()> {
    if text.chars().all(is_char) && !forbidden.is_some_and(|f| text.contains(f)) {
        Ok(())
    } else {
        Err(DomError::InvalidCharacter(text.to_owned()))
    }
}

/// Trims XML's white space at both ends.
pub(crate) fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}
