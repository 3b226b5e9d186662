//! What a power loss leaves of the files.
//!
//! What was written and synced since is there. What was written and not synced is there, or not, or half, or its
//! sectors hold anything. A page stored through the mapping is there if the last durable checkpoint needs it, since a
//! sync came after it; every other page may hold anything. Names of files are as the directory was synced, or as they
//! have become since.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use perilune_engine::{checkpoint_pages, instrument};
use perilune_harness::bank::Random;

use crate::operations;
use crate::recording::{Kind, Note, DATABASE};

const SECTOR: usize = 512;
/// Blocks of zeros are left out of files of the log.
const BLOCK: usize = 4096;

/// Something written to a file.
struct Written {
    file: u32,
    /// Which of the files that had the name; 0: the one that was there.
    life: usize,
    begun: u64,
    done: Option<u64>,
    is_durable: bool,
    offset: u64,
    length: u64,
    data: Option<Vec<u8>>,
}

/// What is known to be in the log, on disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged {
    /// This log began then, at the latest.
    pub(crate) since: u64,
    /// Everything acknowledged by then is there.
    pub(crate) until: u64,
}

/// What the recordings tell.
pub(crate) struct PowerLoss {
    notes: Vec<Note>,
    written: Vec<Written>,
}

/// Syncs that have been completed, by the file they were of: when they began, and the size then.
fn syncs(notes: &[Note], begun: Kind, done: Kind) -> Vec<(u32, u64, u64)> {
    let ids: std::collections::BTreeSet<_> =
        notes.iter().filter(|note| note.kind == done).map(|note| note.id).collect();
    let whole = notes.iter().filter(|note| note.kind == begun && ids.contains(&note.id));
    whole.map(|note| (note.file, note.time, note.length)).collect()
}

impl PowerLoss {
    pub(crate) fn new(notes: Vec<Note>) -> PowerLoss {
        let done: BTreeMap<_, u64> = notes
            .iter()
            .filter(|note| note.kind == Kind::WriteDone)
            .map(|note| (note.id, note.time))
            .collect();
        let syncs = syncs(&notes, Kind::SyncBegun, Kind::SyncDone);
        let mut lives: BTreeMap<u32, usize> = BTreeMap::new();
        let mut written = Vec::new();
        for note in &notes {
            match note.kind {
                Kind::Created => *lives.entry(note.file).or_default() += 1,
                Kind::WriteBegun => {
                    let done = done.get(&note.id).copied();
                    let is_synced =
                        |done| syncs.iter().any(|(file, at, _)| *file == note.file && *at >= done);
                    written.push(Written {
                        file: note.file,
                        life: lives.get(&note.file).copied().unwrap_or(0),
                        begun: note.time,
                        done,
                        is_durable: done.is_some_and(is_synced),
                        offset: note.offset,
                        length: note.length,
                        data: note.data.clone(),
                    });
                }
                _ => {}
            }
        }
        PowerLoss { notes, written }
    }

    /// What the log is known to hold: a batch holds all that was committed before it was begun, thus before
    /// the batch before it was written. None if that is nothing.
    pub(crate) fn logged(&self) -> Option<Logged> {
        struct Batch {
            begun: u64,
            done: u64,
            is_durable: bool,
        }
        let mut batches: BTreeMap<u64, Batch> = BTreeMap::new();
        for written in self.written.iter().filter(|written| written.file != DATABASE) {
            for number in batches_in(written.data.as_deref().unwrap_or(&[])) {
                let new = Batch { begun: written.begun, done: 0, is_durable: true };
                let batch = batches.entry(number).or_insert(new);
                batch.done = written.done.map_or(u64::MAX, |time| time.max(batch.done));
                batch.is_durable &= written.is_durable;
            }
        }
        let mut logged: Option<Logged> = None;
        let mut before: Option<(u64, u64)> = None;
        let mut since = 0;
        for (number, batch) in batches.iter().take_while(|(_, batch)| batch.is_durable) {
            match before {
                Some((last, until)) if last + 1 == *number => logged = Some(Logged { since, until }),
                // NB: a number is skipped where a log begins.
                _ => since = batch.begun,
            }
            before = Some((*number, batch.done));
        }
        logged
    }

    /// Makes in `into` what a power loss leaves of the files in `now`, which were those in `start` when the
    /// recordings began.
    pub(crate) fn crash(&self, start: &Path, now: &Path, into: &Path, random: &mut Random) -> io::Result<()> {
        fs::create_dir_all(into)?;
        self.crash_database(start, now, into, random)?;
        let mut slots: Vec<u32> = self.notes.iter().map(|note| note.file).filter(|file| *file > 0).collect();
        slots.extend(segments(start)?);
        slots.sort_unstable();
        slots.dedup();
        for file in slots {
            self.crash_segment(file, start, into, random)?;
        }
        Ok(())
    }

    fn crash_database(&self, start: &Path, now: &Path, into: &Path, random: &mut Random) -> io::Result<()> {
        let from = File::open(operations::database_path(start))?;
        let path = operations::database_path(into);
        fs::copy(operations::database_path(now), &path)?;
        let mut sectors: BTreeMap<u64, [u8; SECTOR]> = BTreeMap::new();
        for written in self.written.iter().filter(|written| written.file == DATABASE) {
            let mut fate = Fate::of(written, random);
            let data = written.data.clone().unwrap_or_else(|| vec![0; written.length as usize]);
            let end = written.offset + written.length;
            for sector in written.offset / SECTOR as u64..end.div_ceil(SECTOR as u64) {
                let place = sector * SECTOR as u64;
                let bytes = match sectors.get_mut(&sector) {
                    Some(bytes) => bytes,
                    None => {
                        let mut bytes = [0; SECTOR];
                        read_up_to(&from, &mut bytes, place)?;
                        sectors.entry(sector).or_insert(bytes)
                    }
                };
                let (first, last) = (written.offset.max(place), end.min(place + SECTOR as u64));
                let new = &data[(first - written.offset) as usize..(last - written.offset) as usize];
                fate.strike(&mut bytes[(first - place) as usize..(last - place) as usize], new, random);
            }
        }
        let file = File::options().read(true).write(true).open(&path)?;
        for (sector, bytes) in &sectors {
            file.write_all_at(bytes, sector * SECTOR as u64)?;
        }
        // A file that has grown may be as short as when it was last synced.
        let synced = syncs(&self.notes, Kind::SyncBegun, Kind::SyncDone);
        let synced = synced.into_iter().filter(|(file, ..)| *file == DATABASE).map(|(.., size)| size).max();
        let (least, most) = (synced.unwrap_or(0).max(from.metadata()?.len()), file.metadata()?.len());
        if least < most && random.below(2) == 0 {
            file.set_len(least + random.below((most - least) / 4096 + 1) * 4096)?;
        }
        garble_pages(&path, &file, random)
    }

    fn crash_segment(&self, file: u32, start: &Path, into: &Path, random: &mut Random) -> io::Result<()> {
        let name = format!("{}-wal.{}", operations::DATABASE, file - 1);
        let was_there = start.join(&name).exists();
        // What the name has meant since, and from when on each is certain.
        let mut lives = vec![(0, was_there.then_some(0))];
        for note in self.notes.iter().filter(|note| note.file == file) {
            let created = lives.iter().filter(|(_, life)| life.is_some_and(|life| life > 0)).count();
            match note.kind {
                Kind::Created => lives.push((note.time, Some(created + 1))),
                Kind::Removed => lives.push((note.time, None)),
                _ => {}
            }
        }
        let synced = syncs(&self.notes, Kind::DirectorySyncBegun, Kind::DirectorySyncDone);
        let last = synced.iter().map(|(_, at, _)| *at).max().unwrap_or(0);
        let certain = lives.iter().rposition(|(time, _)| *time <= last).unwrap_or(0);
        let chosen = certain + random.below((lives.len() - certain) as u64) as usize;
        let Some(life) = lives[chosen].1 else { return Ok(()) };
        let mut content = if life == 0 { fs::read(start.join(&name))? } else { Vec::new() };
        for written in self.written.iter().filter(|written| written.file == file && written.life == life) {
            let mut fate = Fate::of(written, random);
            let (from, to) = (written.offset as usize, (written.offset + written.length) as usize);
            if content.len() < to {
                if !written.is_durable && random.below(4) == 0 {
                    continue;
                }
                content.resize(to, 0);
            }
            let zeros = [0; SECTOR];
            for at in (from..to).step_by(SECTOR) {
                let end = (at + SECTOR).min(to);
                let new = match &written.data {
                    Some(data) => &data[at - from..end - from],
                    None => &zeros[..end - at],
                };
                fate.strike(&mut content[at..end], new, random);
            }
        }
        let out = File::create(into.join(&name))?;
        out.set_len(content.len() as u64)?;
        for (number, block) in content.chunks(BLOCK).enumerate() {
            if block.iter().any(|byte| *byte != 0) {
                out.write_all_at(block, (number * BLOCK) as u64)?;
            }
        }
        Ok(())
    }

    /// Damages, in the files in `dir`, a batch in the middle of the log that is durable; false if there is
    /// none.
    pub(crate) fn lose_batch(&self, dir: &Path) -> io::Result<bool> {
        let batches = |written: &Written| batches_in(written.data.as_deref().unwrap_or(&[])).next();
        let log: Vec<&Written> = self
            .written
            .iter()
            .filter(|written| written.file != DATABASE && written.is_durable && batches(written).is_some())
            .collect();
        let Some(written) = log.last() else { return Ok(false) };
        let path = dir.join(format!("{}-wal.{}", operations::DATABASE, written.file - 1));
        if !path.exists() {
            return Ok(false);
        }
        let file = File::options().write(true).open(path)?;
        file.write_all_at(&vec![0xA5; written.length as usize], written.offset)?;
        Ok(true)
    }
}

/// The numbers of the batches that begin, go on or end in what was written; see docs/format/log.md.
fn batches_in(data: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let mut at = if data.starts_with(b"PERILOGS") { BLOCK } else { 0 };
    std::iter::from_fn(move || {
        let head = data.get(at..at + 64).filter(|head| head.starts_with(b"PLOG"))?;
        let bytes = u32::from_le_bytes(head[20..24].try_into().ok()?) as usize;
        at += (64 + bytes).next_multiple_of(BLOCK);
        Some(u64::from_le_bytes(head[8..16].try_into().ok()?))
    })
}

/// What becomes of the sectors of something written.
enum Fate {
    New,
    Old,
    /// As many sectors as that, then what was there.
    Torn(u64),
    Any,
}

impl Fate {
    fn of(written: &Written, random: &mut Random) -> Fate {
        match random.below(4) {
            _ if written.is_durable => Fate::New,
            0 => Fate::New,
            1 => Fate::Old,
            2 => Fate::Torn(random.below(written.length / SECTOR as u64 + 1)),
            _ => Fate::Any,
        }
    }

    /// Decides over the next sector.
    fn strike(&mut self, old: &mut [u8], new: &[u8], random: &mut Random) {
        match self {
            Fate::New => old.copy_from_slice(new),
            Fate::Old | Fate::Torn(0) => {}
            Fate::Torn(left) => {
                *left -= 1;
                old.copy_from_slice(new);
            }
            Fate::Any => match random.below(3) {
                0 => {}
                1 => old.copy_from_slice(new),
                _ => garbage(old, random),
            },
        }
    }
}

fn garbage(bytes: &mut [u8], random: &mut Random) {
    let mut word = random.below(u64::MAX);
    for place in bytes.chunks_mut(8) {
        word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(0x1405_7b7e_f767_814f);
        let noise = (word ^ word >> 31).to_le_bytes();
        place.copy_from_slice(&noise[..place.len()]);
    }
}

/// Fills pages with garbage that the last checkpoint does not need; meta and info pages are as they are.
fn garble_pages(path: &Path, file: &File, random: &mut Random) -> io::Result<()> {
    let durable = checkpoint_pages(path).map_err(|error| io::Error::other(error.to_string()))?;
    let needed: std::collections::BTreeSet<u64> = durable.data.iter().copied().collect();
    let mut page = vec![0; durable.page_bytes as usize];
    for number in 0..file.metadata()?.len() / durable.page_bytes {
        if instrument::is_directory(number) || needed.contains(&number) {
            continue;
        }
        let place = number * durable.page_bytes;
        match random.below(8) {
            0 => {}
            1 => file.write_all_at(&vec![0; page.len()], place)?,
            2 => {
                let sector = random.below(durable.page_bytes / SECTOR as u64) * SECTOR as u64;
                garbage(&mut page[..SECTOR], random);
                file.write_all_at(&page[..SECTOR], place + sector)?;
            }
            _ => {
                garbage(&mut page, random);
                file.write_all_at(&page, place)?;
            }
        }
    }
    Ok(())
}

/// The segments in a directory, by the numbers the recordings give them.
fn segments(dir: &Path) -> io::Result<Vec<u32>> {
    let prefix = format!("{}-wal.", operations::DATABASE);
    let names = fs::read_dir(dir)?.collect::<io::Result<Vec<_>>>()?;
    let slot = |name: &str| name.strip_prefix(&prefix)?.parse::<u32>().ok();
    Ok(names.iter().filter_map(|entry| slot(entry.file_name().to_str()?)).map(|slot| slot + 1).collect())
}

fn read_up_to(file: &File, bytes: &mut [u8], mut at: u64) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        match file.read_at(rest, at)? {
            0 => return Ok(()),
            count => {
                at += count as u64;
                rest = &mut rest[count..];
            }
        }
    }
    Ok(())
}
