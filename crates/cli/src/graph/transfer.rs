//! `graph export`, and files that graph commands write: whole or not at all, and over nothing that is there.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Instant;

use perilune_graph::{export as write, Error, View};
use perilune_redis::files::NewFile;

use super::options::ExportFormat;
use super::place::Place;
use crate::exchange::Progress;
use crate::failure::{doing, wrong_use, Failure, Result};
use crate::which_database;

/// Bytes written at a time.
const WRITE_BYTES: usize = 1 << 16;

/// Writes the graph to a file or the standard output.
pub(crate) fn export(
    place: &Place,
    format: Option<ExportFormat>,
    file: Option<&Path>,
    is_forced: bool,
) -> Result<()> {
    let format = format.unwrap_or_else(|| told_by(file));
    let Some(file) = file else {
        return place.read(|view| {
            let mut out = BufWriter::with_capacity(WRITE_BYTES, io::stdout().lock());
            match written(view, format, &mut out).and_then(|()| out.flush().map_err(Error::Io)) {
                Err(Error::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
                outcome => Ok(outcome?),
            }
        });
    };
    is_free(file, is_forced)?;
    let start = Instant::now();
    let named = || format!("write {}", file.display());
    place.read(|view| {
        let bar = Progress::of_bytes(&file.display().to_string(), None);
        let new = NewFile::begin(file, 0o666).map_err(doing(named()))?;
        let mut out = BufWriter::with_capacity(WRITE_BYTES, Counted { new, count: 0, bar: &bar });
        let outcome = written(view, format, &mut out).and_then(|()| out.flush().map_err(Error::Io));
        bar.end();
        outcome.map_err(|error| match error {
            Error::Io(error) => doing(named())(error),
            error => Failure::from(error),
        })?;
        let (counted, _) = out.into_parts();
        counted.new.keep().map_err(doing(named()))
    })?;
    println!("{}: written in {:.1} s", file.display(), start.elapsed().as_secs_f64());
    Ok(())
}

fn written(view: &mut View<'_>, format: ExportFormat, out: &mut dyn Write) -> perilune_graph::Result<()> {
    match format {
        ExportFormat::Dot => write::dot(view, out),
        ExportFormat::Graphml => write::graphml(view, out),
        ExportFormat::Json => write::json(view, out),
    }
}

fn told_by(file: Option<&Path>) -> ExportFormat {
    match file.and_then(Path::extension).and_then(|suffix| suffix.to_str()) {
        Some("graphml" | "xml") => ExportFormat::Graphml,
        Some("json") => ExportFormat::Json,
        _ => ExportFormat::Dot,
    }
}

/// That a file may be written: it is not there, or may be replaced and is no database. Pipes and devices may always be.
pub(crate) fn is_free(file: &Path, is_forced: bool) -> Result<()> {
    which_database::is_none(file)?;
    if !is_forced
        && file.symlink_metadata().is_ok_and(|there| there.is_file() || there.is_symlink())
        && file.is_file()
    {
        return Err(wrong_use(format!(
            "{}: is there already: give another name, or --force to replace it",
            file.display()
        )));
    }
    Ok(())
}

/// A file that tells how much of it is written.
struct Counted<'a> {
    new: NewFile,
    count: u64,
    bar: &'a Progress,
}

impl Write for Counted<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.new.write(bytes)?;
        self.count += count as u64;
        self.bar.at(self.count);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.new.flush()
    }
}
