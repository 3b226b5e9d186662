//! `balance=1000;777` became `balance=9000;777` in the file of a database that nobody had open. A read answered it with
//! exit code 0; after a write to its page `check` said "sound" and `backup` copied it. Now each way to it is an error
//! that names the page and the nodes that are lost, and all else is there.

use std::fs;
use std::path::Path;

use crate::program::Place;

const GOOD: i32 = 0;

fn replace(path: &Path, from: &[u8], to: &[u8]) {
    let mut bytes = fs::read(path).expect("the database");
    let places: Vec<usize> =
        bytes.windows(from.len()).enumerate().filter(|(_, found)| *found == from).map(|(at, _)| at).collect();
    assert!(!places.is_empty());
    places.into_iter().for_each(|at| bytes[at..at + to.len()].copy_from_slice(to));
    // In place: what lies beside it is still of this file.
    let file = fs::File::options().write(true).open(path).expect("the database");
    std::os::unix::fs::FileExt::write_all_at(&file, &bytes, 0).expect("damage");
}

#[test]
fn damage_of_a_closed_database_is_never_answered_nor_blessed() {
    for keeps_shm in [true, false] {
        let place = Place::new();
        let mut text: String = (0..4000).map(|at| format!("^a({at})=\"a text of some length\"\n")).collect();
        text += "^account(7)=\"balance=1000;777\"\n";
        text.extend((0..4000).map(|at| format!("^b({at})=\"a text of some length\"\n")));
        place.file("all.txt", &text);
        assert_eq!(place.run(&["load", "t.db", "all.txt"]).0, GOOD);
        let database = place.path().join("t.db");
        replace(&database, b"balance=1000;777", b"balance=9000;777");
        let read = "print(require('perilune').use().node('^account')[7].__)";
        let write = "require('perilune').use().node('^account')[8].__ = 1";
        for words in [
            &["--db", "t.db", "-e", read][..],
            &["--db", "t.db", "-e", write],
            &["dump", "t.db"],
            &["check", "t.db"],
            &["backup", "t.db", "copy.db"],
            &["compact", "t.db"],
            &["--db", "t.db", "-e", read],
        ] {
            if !keeps_shm {
                let _ = fs::remove_file(place.path().join("t.db-shm"));
            }
            let (code, out, err) = place.run(words);
            assert!(code != GOOD && !out.contains("9000"), "{words:?}: exit code {code}: {out}{err}");
            assert!(format!("{out}{err}").contains(" (byte "), "{words:?}: {out}{err}");
        }
        let (_, _, err) = place.run(&["--db", "t.db", "-e", read]);
        assert!(err.contains("behind ^a(") && err.contains("up to ^b("), "{err}");
        let other =
            "local db = require('perilune').use() db.node('^b')[3999].__ = 'new' print(db.node('^a')[1].__)";
        let (code, out, err) = place.run(&["--db", "t.db", "-e", other]);
        assert!(code == GOOD && out.trim() == "a text of some length", "{out}{err}");
        let (code, out, _) = place.run(&["check", "t.db"]);
        assert!(code != GOOD && out.contains("cannot be read"), "{out}");
        replace(&database, b"balance=9000;777", b"balance=1000;777");
        let (code, out, err) = place.run(&["check", "t.db"]);
        assert!(code == GOOD && out.contains("sound, 8001 nodes"), "{out}{err}");
        let (code, out, _) = place.run(&["dump", "t.db"]);
        let expected = text.replace("^b(3999)=\"a text of some length\"", "^b(3999)=\"new\"");
        assert!(code == GOOD && out == expected);
    }
}

/// `stat` said only that the database is damaged.
#[test]
fn stat_shows_what_can_be_read() {
    let place = Place::new();
    let lines = |name: &str| (0..4000).map(|at| format!("^{name}({at})=\"some text\"\n")).collect::<String>();
    place.file("all.txt", &format!("{}{}^b(2000)=\"to be damaged\"\n{}", lines("a"), lines("b"), lines("c")));
    assert_eq!(place.run(&["load", "t.db", "all.txt"]).0, GOOD);
    replace(&place.path().join("t.db"), b"to be damaged", b"is damaged!!!");
    let (code, out, err) = place.run(&["stat", "t.db"]);
    assert!(code == 1 && err.contains("perilune salvage"), "{code} {err}");
    let has = |name: &str, what: &str| {
        let mut line = out.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
        line.any(|words| words.starts_with(&[name, what]))
    };
    assert!(has("^a", "4000") && has("^b", "damaged") && has("file_bytes", "2097152"), "{out}");
    let (code, out, _) = place.run(&["stat", "t.db", "--json"]);
    assert!(code == 1 && out.contains("\"damaged\":true") && out.contains("\"file_bytes\""), "{out}");
    assert_eq!(place.run(&["stat", "t.db", "--quick"]).0, GOOD);
}

#[test]
fn a_damaged_copy_of_meta_is_told_by_check() {
    let place = Place::new();
    place.file("all.txt", "^a=1\n");
    assert_eq!(place.run(&["load", "t.db", "all.txt"]).0, GOOD);
    assert!(!place.run(&["check", "t.db"]).1.contains("meta"));
    let database = place.path().join("t.db");
    let mut bytes = fs::read(&database).expect("the database");
    bytes[60] ^= 4;
    fs::write(&database, &bytes).expect("damage");
    for _ in 0..2 {
        let (code, out, err) = place.run(&["check", "t.db"]);
        assert!(
            code == GOOD && out.contains("sound, 1 nodes") && out.contains("copy A of meta"),
            "{out}{err}"
        );
    }
    assert!(place.run(&["check", "t.db", "--json"]).1.contains("\"mended\":[\"copy A"));
}
