//! The frame of a page of HTML that needs nothing else: introduction, body, raw rows; readable on a phone and in the
//! dark.

use perilune_chart::escaped;
use serde::Serialize;

use crate::markup;
use crate::subject::Result;

/// What a reader must know before the verdicts.
pub(crate) const VERDICTS: &str = "\
A goal is **met** or **MISSED** if the whole 95 % interval of what was measured says so, and **undecided** where the \
interval holds both: more rounds decide.";

/// What the letters before a title mean.
pub(crate) const CLASSES: &str = "\
What a power failure may lose is a side's *class of durability*; only sides of the same class are compared.

- **D1**: nothing; each commit waits for the disk by itself.
- **D2**: nothing; many operations share a commit.
- **D3**: the last moments, up to a second; what is left is of one moment.
- **D4**: whatever came after the last flush; nobody waits for the disk.
";

/// What is on a page besides its frame.
pub(crate) struct Page<'a> {
    pub(crate) title: &'a str,
    /// The introduction, in Markdown.
    pub(crate) about: &'a str,
    /// The command that made the run.
    pub(crate) command: &'a str,
    /// HTML.
    pub(crate) body: &'a str,
}

impl Page<'_> {
    /// The page with all rows of the run.
    ///
    /// # Errors
    /// A row cannot be written as JSON.
    pub(crate) fn html<R: Serialize>(&self, rows: &[R]) -> Result<String> {
        let lines = rows.iter().map(serde_json::to_string).collect::<std::result::Result<Vec<_>, _>>()?;
        Ok(include_str!("page.html")
            .replace("{{title}}", &escaped(self.title))
            .replace("{{about}}", &markup::page(self.about))
            .replace("{{command}}", &escaped(self.command))
            .replace("{{body}}", self.body)
            .replace("{{raw}}", &escaped(&lines.join("\n"))))
    }
}
