//! Is there always a copy of meta that the power cannot take? A disk notes which copies a sync has brought to the
//! disk, and looks at each write whether the newest of these stays.

use std::ffi::OsString;
use std::io;
use std::os::fd::RawFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use perilune_disk::{Disk, DiskFile, FileAccess, FileId, RealDisk};
use perilune_store::Durability;

use super::tests::{fill, options, Scratch};
use super::{Attachment, OpenOptions};
use crate::limits::PAGE;
use crate::{checkpoint, log};

/// Serials of the two copies; 0: none.
#[derive(Clone, Copy, Debug, Default)]
struct Copies {
    written: [u64; 2],
    /// As a sync has found them.
    durable: [u64; 2],
    writes: u64,
    /// The first write that struck the only copy on disk.
    struck: Option<(usize, [u64; 2])>,
}

#[derive(Clone, Debug, Default)]
struct CopiesDisk(Arc<Mutex<Copies>>);

impl CopiesDisk {
    fn see<T>(&self, look: impl FnOnce(&mut Copies) -> T) -> T {
        look(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn wrap(&self, path: &Path, file: Box<dyn DiskFile>) -> Box<dyn DiskFile> {
        match path.extension().is_some_and(|extension| extension == "db") {
            true => Box::new(CopiesFile { disk: self.clone(), file }),
            false => file,
        }
    }
}

impl Disk for CopiesDisk {
    fn open(&self, path: &Path, write: bool) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.wrap(path, RealDisk.open(path, write)?))
    }

    fn open_held(&self, descriptor: RawFd, write: bool) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(CopiesFile { disk: self.clone(), file: RealDisk.open_held(descriptor, write)? }))
    }

    fn create(&self, path: &Path, access: FileAccess) -> io::Result<Box<dyn DiskFile>> {
        Ok(self.wrap(path, RealDisk.create(path, access)?))
    }

    fn remove(&self, path: &Path) -> io::Result<bool> {
        RealDisk.remove(path)
    }

    fn names(&self, directory: &Path) -> io::Result<Vec<OsString>> {
        RealDisk.names(directory)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename(from, to)
    }

    fn rename_new(&self, from: &Path, to: &Path) -> io::Result<()> {
        RealDisk.rename_new(from, to)
    }

    fn sync_directory(&self, path: &Path) -> io::Result<()> {
        RealDisk.sync_directory(path)
    }
}

#[derive(Debug)]
struct CopiesFile {
    disk: CopiesDisk,
    file: Box<dyn DiskFile>,
}

impl DiskFile for CopiesFile {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<()> {
        self.file.read_at(bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let slot = [0, PAGE as u64].iter().position(|place| *place == offset);
        if let (Some(slot), Some(serial)) = (slot, bytes.get(32..40)) {
            let serial = u64::from_le_bytes(serial.try_into().unwrap());
            self.disk.see(|copies| {
                let [a, b] = copies.durable;
                // The write may be torn: what was here is gone then.
                if copies.durable[1 - slot] < a.max(b) && copies.struck.is_none() {
                    copies.struck = Some((slot, copies.durable));
                }
                copies.written[slot] = serial;
                copies.durable[slot] = 0;
                copies.writes += 1;
            });
        }
        self.file.write_at(bytes, offset)
    }

    fn sync_data(&self) -> io::Result<()> {
        self.disk.see(|copies| copies.durable = copies.written);
        self.file.sync_data()
    }

    fn size(&self) -> io::Result<u64> {
        self.file.size()
    }

    fn cut(&self, bytes: u64) -> io::Result<()> {
        self.file.cut(bytes)
    }

    fn id(&self) -> io::Result<FileId> {
        self.file.id()
    }
}

fn open(scratch: &Scratch, disk: &CopiesDisk, level: Durability) -> Arc<Attachment> {
    let options = OpenOptions { durability: Some(level), ..options() };
    Attachment::open_on(&scratch.db(), &options, Arc::new(disk.clone())).unwrap()
}

/// Meta is written again without a checkpoint between: its level changes, a segment gets its name, the file is closed
/// and opened. Each time the copy that is on disk has to stay, whatever becomes of the one being written.
#[test]
fn the_copy_of_meta_that_is_on_disk_is_never_written_over() {
    let (scratch, disk) = (Scratch::new(), CopiesDisk::default());
    for round in 1..=4 {
        for level in [Durability::None, Durability::Fsync, Durability::Periodic] {
            let attachment = open(&scratch, &disk, level);
            let image = attachment.image().unwrap();
            fill(&attachment, round);
            if round % 2 == 0 {
                checkpoint::take(image, attachment.disk(), 0).unwrap();
            }
            if level != Durability::None {
                log::sync(image).unwrap();
            }
            checkpoint::name_segment(image, attachment.disk()).unwrap();
            checkpoint::take(image, attachment.disk(), 0).unwrap();
            attachment.close().unwrap();
            let copies = disk.see(|copies| *copies);
            assert_eq!(copies.struck, None, "round {round}, {level:?}: (copy written, serials on disk)");
        }
    }
    assert!(disk.see(|copies| copies.writes) > 40);
}
