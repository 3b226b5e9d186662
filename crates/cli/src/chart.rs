//! A chart of a command's results, written where the user wants it.

use std::path::Path;

use perilune_chart::{Drawing, Error};
use perilune_redis::files::replace;

use crate::failure::{doing, environment, Result};

/// Writes `drawing` to `file` and beside it as PNG, and says so.
pub(crate) fn write(file: &Path, drawing: &Drawing) -> Result<()> {
    let picture = file.with_extension("png");
    let named = |file: &Path| format!("write {}", file.display());
    let failed = |error: Error| environment(format!("cannot draw the chart: {error}"));
    replace(file, 0o666, drawing.svg().map_err(failed)?.as_bytes()).map_err(doing(named(file)))?;
    let bytes = drawing.png().map_err(failed)?;
    replace(&picture, 0o666, &bytes).map_err(doing(named(&picture)))?;
    println!("chart: {}, {}", file.display(), picture.display());
    Ok(())
}
