//! The modules that scripts may require: files of one directory, `script-directory`, and of nowhere else.
//!
//! Invariant: a name leads to no file outside of it, by whatever it is made of and whatever links there are.

use std::fs;
use std::path::Path;

/// Bytes of a module's file at most.
const MODULE_BYTES: u64 = 1 << 20;

/// The file of the module called `name` - words of letters, digits, `_` and `-` with dots between them - in
/// `directory`, links that lead out of it not followed.
pub(super) fn find(directory: &Path, name: &[u8]) -> Option<Vec<u8>> {
    let word = |word: &str| {
        !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let name = std::str::from_utf8(name).ok().filter(|name| name.split('.').all(word))?;
    let directory = fs::canonicalize(directory).ok()?;
    let relative = name.replace('.', "/");
    [format!("{relative}.lua"), format!("{relative}/init.lua")].iter().find_map(|relative| {
        let path = fs::canonicalize(directory.join(relative)).ok()?;
        let inside = path.starts_with(&directory) && fs::metadata(&path).ok()?.len() <= MODULE_BYTES;
        inside.then(|| fs::read(&path).ok())?
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_come_from_their_directory_alone() {
        let place = std::env::temp_dir().join(format!("perilune-modules-{}", std::process::id()));
        let inside = place.join("modules");
        fs::create_dir_all(inside.join("a")).unwrap();
        fs::write(inside.join("a/b.lua"), "return 1").unwrap();
        fs::write(place.join("secret.lua"), "return 2").unwrap();
        std::os::unix::fs::symlink(place.join("secret.lua"), inside.join("link.lua")).unwrap();
        assert_eq!(find(&inside, b"a.b").as_deref(), Some(&b"return 1"[..]));
        for name in [&b"../secret"[..], b"..secret", b"a/b", b"", b"a..b", b"link", b"/etc/passwd", b"a\0"] {
            assert_eq!(find(&inside, name), None, "{}", name.escape_ascii());
        }
        fs::remove_dir_all(&place).unwrap();
    }
}
