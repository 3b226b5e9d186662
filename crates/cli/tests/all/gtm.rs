//! Extracts of GT.M go through a database and back: GT.M itself (Debian's fis-gtm) writes and loads them.
//!
//! In M mode and in UTF-8 mode: MUPIP EXTRACT, `perilune load`, `perilune dump`, and the lines are the same
//! bytes; MUPIP LOAD of that dump into an empty database, EXTRACT, and they are so again.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{told, Place};

/// Fills a database with what is hard to write: every byte, many characters, numbers at their limits.
const FILL: &str = r#"fill
 new i
 set ^a=1,^a(1)="x",^a("x")="he said ""hi""",^a(-1.5)=".5",^a(.5)=0.5
 set ^a("a"_$C(0)_"b")=$C(1,2,255)_"t"_$C(10)
 set ^a(1,"y")="y"_$C(127)_$ZCHAR(128)_$ZCHAR(200)_"z"
 set ^a("")="null sub",^a("1E3")="str",^a(1000000000000000000)=1E20,^a("00")="007"
 set ^a(1E46)=1E46,^a(.00001)="",^b=$justify("",3000),^%c("q")="1_2"
 set ^a("007")="5",^a("-0")="-0",^a(123456789012345678)=1,^a("1234567890123456789")=2
 set ^a(-1E-43)=-1E-43,^a("$C(1)")="$ZCH(1)",^a("a_b","(",")",",")="="
 for i=0:1:255 set ^bytes(i)=$ZCHAR(i)_"x"_$ZCHAR(i,i),^bytes("k"_$ZCHAR(i))=i
 for i=128:1:887,8192:1:8287,12288:1:12351,57344,65533,128512:1:128540,917505 set ^uni(i)=$C(i)_"y",^uni("k"_$C(i))=i
 for i=1:1:2000 set ^many(i\7,i#7,"customer")="number "_i
 quit
"#;

/// An installation of GT.M and a directory for its databases.
struct Gtm<'p> {
    dist: PathBuf,
    place: &'p Path,
    utf8: bool,
    icu: String,
}

impl Gtm<'_> {
    fn new(place: &Path, utf8: bool) -> Gtm<'_> {
        let found = |directory: &str, name: &dyn Fn(&str) -> bool| -> Option<PathBuf> {
            let entries = fs::read_dir(directory).ok()?.flatten();
            entries.filter(|entry| name(&entry.file_name().to_string_lossy())).map(|entry| entry.path()).max()
        };
        let machine = format!("/usr/lib/{}-linux-gnu", std::env::consts::ARCH);
        let dist = found(&format!("{machine}/fis-gtm"), &|name| name.starts_with('V'))
            .expect("this test needs GT.M: apt install fis-gtm");
        let icu = found(&machine, &|name| {
            name.strip_prefix("libicuio.so.").is_some_and(|version| version.contains('.'))
        })
        .expect("GT.M's UTF-8 mode needs ICU: apt install libicu72");
        let icu = icu.to_string_lossy().rsplit("libicuio.so.").next().unwrap_or_default().to_owned();
        Gtm { dist: if utf8 { dist.join("utf8") } else { dist }, place, utf8, icu }
    }

    fn command(&self, program: &str, words: &[&str]) -> Command {
        let mut command = Command::new(self.dist.join(program));
        let place = self.place.display();
        command
            .args(words)
            .current_dir(self.place)
            .env("gtm_dist", &self.dist)
            .env("gtmgbldir", self.place.join("x.gld"))
            .env("gtmroutines", format!("{place}({place}) {}/libgtmutil.so", self.dist.display()))
            .env("gtm_chset", if self.utf8 { "UTF-8" } else { "M" })
            .env("gtm_icu_version", &self.icu)
            .env("LC_ALL", "C.UTF-8")
            .env("gtm_log", self.place)
            .env("gtm_tmp", self.place);
        command
    }

    fn run(&self, program: &str, words: &[&str]) {
        let (code, out, err) =
            told(self.command(program, words).stdin(Stdio::null()).output().expect("GT.M starts"));
        assert_eq!(code, 0, "{program} {words:?}: {out}{err}");
    }

    /// Makes an empty database.
    fn create(&self) {
        let _ = fs::remove_file(self.place.join("x.gld"));
        let _ = fs::remove_file(self.place.join("x.dat"));
        let file = self.place.join("x.dat");
        let commands = format!(
            "change -segment DEFAULT -file=\"{}\"\nchange -region DEFAULT -key_size=900 -record_size=1000000 \
             -null_subscripts=always -stdnullcoll\nexit\n",
            file.display()
        );
        fs::write(self.place.join("gde.txt"), commands).expect("a file");
        let input = fs::File::open(self.place.join("gde.txt")).expect("that file");
        let (code, out, err) =
            told(self.command("mumps", &["-run", "^GDE"]).stdin(input).output().expect("GT.M starts"));
        assert_eq!(code, 0, "GDE: {out}{err}");
        self.run("mupip", &["create"]);
    }

    fn extract(&self, file: &str) -> Vec<u8> {
        self.run("mupip", &["extract", "-format=ZWR", "-label=test", file]);
        fs::read(self.place.join(file)).expect("the extract")
    }
}

/// What follows the label and the date.
fn nodes(extract: &[u8]) -> &[u8] {
    let mut ends = extract.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    &extract[ends.nth(1).expect("two lines")..]
}

fn goes_there_and_back(utf8: bool) {
    let place = Place::new();
    let gtm = Gtm::new(place.path(), utf8);
    place.file("fill.m", FILL);
    gtm.create();
    gtm.run("mumps", &["-run", "fill"]);
    let extract = gtm.extract("by-gtm.zwr");
    let count = nodes(&extract).iter().filter(|byte| **byte == b'\n').count();
    assert!(count > 2500, "the extract has {count} nodes");

    let (code, out, err) = place.run(&["load", "t.db", "by-gtm.zwr"]);
    assert!(code == 0 && out.contains(&format!("{count} nodes loaded")), "{out}{err}");
    let charset = if utf8 { "utf-8" } else { "m" };
    let dump = ["dump", "t.db", "--format", "zwr", "--charset", charset, "-o", "by-us.zwr"];
    let (code, out, err) = place.run(&dump);
    assert!(code == 0 && out.is_empty() && err.contains(&format!("{count} nodes dumped")), "{out}{err}");
    let ours = fs::read(place.path().join("by-us.zwr")).expect("the dump");
    assert!(nodes(&ours) == nodes(&extract), "{}", difference(nodes(&ours), nodes(&extract)));

    gtm.create();
    gtm.run("mupip", &["load", "-format=ZWR", "by-us.zwr"]);
    let again = gtm.extract("again.zwr");
    assert!(nodes(&again) == nodes(&extract), "{}", difference(nodes(&again), nodes(&extract)));
}

/// The first lines that differ.
fn difference(a: &[u8], b: &[u8]) -> String {
    let lines = |text: &[u8]| text.split(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect::<Vec<_>>();
    let (a, b) = (lines(a), lines(b));
    let shown =
        |lines: &[Vec<u8>], at: usize| lines.get(at).map(|line| String::from_utf8_lossy(line).into_owned());
    let at = a.iter().zip(&b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
    format!("line {}: {:?} and {:?}", at + 3, shown(&a, at), shown(&b, at))
}

#[test]
fn extracts_in_m_mode_come_back_as_they_were() {
    goes_there_and_back(false);
}

#[test]
fn extracts_in_utf8_mode_come_back_as_they_were() {
    goes_there_and_back(true);
}
