//! Files that the server and the program make: put in place whole, and by nobody else's leave.
//!
//! ACL SAVE made its new file readable for everybody before it took the old one's permissions, and opened whatever lay under
//! the name of it, a symbolic link for one, which in a directory of others leads to a victim.
//!
//! Invariants
//! - A file is made under a name of its own in the directory of its place (O_CREAT|O_EXCL, which follows no link), with its final
//!   permissions from the start, and takes its place by a rename, when its bytes are on the disk. A link at its
//!   place is replaced, not followed.
//! - Killed at any time, the place holds the old file or the new one; a file `.NAME.PID.N.new` may be left, and is in nobody's way.
//! - What is there and no file, as /dev/stdout or a pipe, is written into.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Names that are tried until there is one that is free.
const TRIES: u32 = 1_000;

/// A file that is being made; dropped before [`NewFile::keep`], it is gone.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    place: PathBuf,
    /// None: it is no file, and has been written into.
    made: Option<PathBuf>,
}

impl NewFile {
    /// Begins the file that is to be at `place`. Its permissions are those of the file that is there; of a new one they
    /// are `mode`, without what umask takes away.
    ///
    /// # Errors
    /// The system's.
    pub fn begin(place: &Path, mode: u32) -> io::Result<NewFile> {
        if fs::metadata(place).is_ok_and(|there| !there.is_file() && !there.is_dir()) {
            let file = OpenOptions::new().write(true).open(place)?;
            return Ok(NewFile { file, place: place.to_owned(), made: None });
        }
        // NB: of the place itself: what a link leads to is somebody else's.
        let old = fs::symlink_metadata(place).ok().filter(fs::Metadata::is_file);
        let old = old.map(|old| old.permissions().mode() & 0o777);
        let (file, made) = create_beside(place, old.unwrap_or(mode))?;
        let new = NewFile { file, place: place.to_owned(), made: Some(made) };
        if let Some(old) = old {
            new.file.set_permissions(Permissions::from_mode(old))?;
        }
        Ok(new)
    }

    /// Puts it in its place, when it is on the disk.
    ///
    /// # Errors
    /// The system's; then what was there is there.
    pub fn keep(mut self) -> io::Result<()> {
        let Some(made) = &self.made else { return Ok(()) };
        self.file.sync_all()?;
        fs::rename(made, &self.place)?;
        self.made = None;
        File::open(directory_of(&self.place))?.sync_all()
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if let Some(made) = &self.made {
            // Nothing more can be done about it.
            let _ = fs::remove_file(made);
        }
    }
}

fn directory_of(place: &Path) -> &Path {
    place.parent().filter(|directory| !directory.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A new file in the directory of `place`, and its name.
fn create_beside(place: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    let name = place.file_name().ok_or(io::ErrorKind::InvalidInput)?.to_string_lossy();
    // A name of a file has 255 bytes at most.
    let name: String = name.chars().take(40).collect();
    for number in 0..TRIES {
        let made = directory_of(place).join(format!(".{name}.{}.{number}.new", std::process::id()));
        match OpenOptions::new().write(true).create_new(true).mode(mode).open(&made) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made_so => return Ok((made_so?, made)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Puts `bytes` in place of the file at `place`, whole or not at all; `mode`: as [`NewFile::begin`] has it.
///
/// # Errors
/// The system's; then what was there is there.
pub fn replace(place: &Path, mode: u32, bytes: &[u8]) -> io::Result<()> {
    let mut new = NewFile::begin(place, mode)?;
    new.write_all(bytes)?;
    new.keep()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(name: &str) -> Place {
            let path = std::env::temp_dir().join(format!("perilune-files-{name}-{}", std::process::id()));
            fs::create_dir_all(&path).unwrap();
            Place(path)
        }

        fn names(&self) -> Vec<String> {
            let names = fs::read_dir(&self.0).unwrap();
            let mut names: Vec<_> =
                names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            // It fails where a file is made meanwhile, as a database that is still being closed makes.
            let _gone = (0..1_000).any(|_| fs::remove_dir_all(&self.0).is_ok() || !self.0.exists());
        }
    }

    fn mode(path: &Path) -> u32 {
        fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn links_lead_nowhere_and_nobody_reads_what_is_not_theirs() {
        let place = Place::new("links");
        let (victim, users) = (place.0.join("victim"), place.0.join("users.acl"));
        fs::write(&victim, "precious").unwrap();
        // Links at the place, and where the new file will be made.
        symlink(&victim, &users).unwrap();
        for number in 0..3 {
            symlink(&victim, place.0.join(format!(".users.acl.{}.{number}.new", std::process::id())))
                .unwrap();
        }
        symlink(&victim, place.0.join(format!("users.new.{}", std::process::id()))).unwrap();
        let mut new = NewFile::begin(&users, 0o600).unwrap();
        assert_eq!(mode(new.made.as_ref().unwrap()), 0o600, "from the start");
        new.write_all(b"user x").unwrap();
        new.keep().unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!((fs::read_to_string(&users).unwrap().as_str(), mode(&users)), ("user x", 0o600));
        assert!(fs::symlink_metadata(&users).unwrap().is_file());
        // Permissions that somebody has given it stay, whatever umask says.
        fs::set_permissions(&users, Permissions::from_mode(0o664)).unwrap();
        replace(&users, 0o600, b"user y").unwrap();
        assert_eq!((fs::read_to_string(&users).unwrap().as_str(), mode(&users)), ("user y", 0o664));
    }

    #[test]
    fn what_is_given_up_leaves_nothing() {
        let place = Place::new("dropped");
        let file = place.0.join("out");
        replace(&file, 0o644, b"old").unwrap();
        let mut new = NewFile::begin(&file, 0o644).unwrap();
        new.write_all(b"half").unwrap();
        drop(new);
        assert_eq!(
            (fs::read_to_string(&file).unwrap().as_str(), place.names()),
            ("old", vec!["out".to_owned()])
        );
        assert!(replace(&place.0.join("none/out"), 0o644, b"").is_err());
        replace(Path::new("/dev/null"), 0o644, b"into it").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
    }
}
