//! What somebody has written beside results, in Markdown, for a page of HTML.
//!
//! Invariant: tags in the text are shown, not obeyed.

use perilune_chart::escaped;
use pulldown_cmark::{html, Event, Parser};

/// Paragraphs, lists, headings.
pub(crate) fn page(text: &str) -> String {
    let shown = Parser::new(text).map(|event| match event {
        Event::Html(text) | Event::InlineHtml(text) => Event::Text(text),
        other => other,
    });
    let mut out = String::new();
    html::push_html(&mut out, shown);
    out
}

/// A cell of a table: links and code in it, if there are any; else its text as it is.
pub(crate) fn cell(text: &str) -> String {
    if !text.contains("](") && !text.contains('`') {
        return escaped(text);
    }
    let whole = page(text);
    let inside = whole.trim().strip_prefix("<p>").and_then(|rest| rest.strip_suffix("</p>"));
    // Of several blocks, as a list: shown as it was written.
    inside.filter(|inside| !inside.contains("<p>")).map_or_else(|| escaped(text), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_links_and_tags_are_text() {
        assert_eq!(
            cell("see [the profile](../profiles/README.md) of `set`"),
            "see <a href=\"../profiles/README.md\">the profile</a> of <code>set</code>"
        );
        assert_eq!(cell(">= 2x lmdb"), "&gt;= 2x lmdb");
        assert_eq!(cell("-"), "-");
        assert_eq!(cell("- `a` <b>"), "- `a` &lt;b&gt;");
        assert!(page("a <script>x</script>\n\n- [b](c)\n").contains("&lt;script&gt;"));
        assert!(page("- [b](c)\n").contains("<li><a href=\"c\">b</a></li>"));
    }
}
