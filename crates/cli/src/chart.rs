//! A chart of a command's results, written where the user wants it.

use std::fs;
use std::path::Path;

use perilune_chart::Drawing;

use crate::failure::{doing, environment, Result};

/// Writes `drawing` to `file` and beside it as PNG, and says so.
pub(crate) fn write(file: &Path, drawing: &Drawing) -> Result<()> {
    let picture = file.with_extension("png");
    let named = |file: &Path| format!("write {}", file.display());
    fs::write(file, drawing.svg()).map_err(doing(named(file)))?;
    let bytes = drawing.png().map_err(|error| environment(format!("cannot write a PNG: {error}")))?;
    fs::write(&picture, bytes).map_err(doing(named(&picture)))?;
    println!("chart: {}, {}", file.display(), picture.display());
    Ok(())
}
