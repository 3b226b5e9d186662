//! A file system that is really full, and pages that the kernel really cannot give: on a tmpfs of 12 MiB.

mod program;

use std::process::Command;
use std::{fs, path::Path};

use program::{told, Place};

/// What a script begins with: a database on the small file system, and a file that fills what is left.
const HEAD: &str = "local perilune = require 'perilune'
local function sh(line) local good = os.execute(line) assert(good == true or good == 0, line) end
local function fill() os.execute 'dd if=/dev/zero of=filler bs=64k 2>/dev/null' end
local function free() assert(os.remove 'filler') end
";

/// How to run a program in a namespace of its own for what is mounted.
fn namespace() -> Vec<&'static str> {
    let ways: [&[&str]; 2] = [&["unshare", "--mount"], &["unshare", "--user", "--map-root-user", "--mount"]];
    for way in ways {
        let tried =
            Command::new(way[0]).args(&way[1..]).args(["mount", "-t", "tmpfs", "none", "/mnt"]).output();
        if tried.is_ok_and(|output| output.status.success()) {
            return way.to_vec();
        }
    }
    panic!(
        "this test needs mount namespaces: run it as root, or allow users to make them \
         (sysctl kernel.unprivileged_userns_clone=1, kernel.apparmor_restrict_unprivileged_userns=0), \
         with `unshare` of util-linux; in a container add the capability SYS_ADMIN"
    );
}

/// Runs a script in an empty file system of 12 MiB: exit code, standard output, standard error.
fn run(code: &str) -> (i32, String, String) {
    let place = Place::new();
    let script = place.file("script.lua", &format!("{HEAD}{code}"));
    let small = place.path().join("small");
    fs::create_dir(&small).expect("a directory for the file system");
    let namespace = namespace();
    let mut command = Command::new(namespace[0]);
    command.args(&namespace[1..]).args(["sh", "-c"]);
    command.arg("mount -t tmpfs -o size=12m none \"$1\" && cd \"$1\" && exec \"$2\" run \"$3\"").arg("sh");
    command.args([&small, Path::new(env!("CARGO_BIN_EXE_perilune")), &script]);
    command.env_remove("PERILUNE_DB").env("HOME", place.path());
    told(command.output().expect("unshare starts"))
}

/// At each level: what does not fit is an error and not there, all else is, reads go on, and so do writes once there
/// is space, at once.
#[test]
fn a_full_disk_is_an_error_and_heals() {
    let (code, out, err) = run("for _, level in ipairs {'none', 'periodic', 'fsync'} do
  local db = perilune.open(level .. '.db', {durability = level})
  local n, small = db.node('^n'), db.node('^small')
  small.__ = 'small'
  fill()
  local count, problem = 0
  repeat
    local good, e = pcall(function() n[count + 1].__ = ('x'):rep(20000) .. count end)
    if good then count = count + 1 else problem = e end
  until problem
  assert(problem.code == 'NO_SPACE', tostring(problem))
  assert(tostring(problem):find(level .. '.db', 1, true), tostring(problem))
  assert(n[count + 1].__ == nil and small.__ == 'small')
  for i = 1, count do assert(n[i].__ == ('x'):rep(20000) .. i - 1) end
  -- Where there is no log to be written, what needs no page more is still written.
  if level == 'none' then small.__ = 'SMALL' assert(small.__ == 'SMALL') end
  free()
  local last = os.time() + 15
  repeat
    local good, e = pcall(function() n[count + 1].__ = 'goes on' end)
    assert(good or e.code == 'NO_SPACE' and os.time() < last, tostring(e))
  until good
  assert(db:verify())
  db:close()
  db = perilune.open(level .. '.db')
  assert(db.node('^n')[count + 1].__ == 'goes on')
  db:close()
  print(level, count > 0)
  sh 'rm -f *.db*'
end");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "none\ttrue\nperiodic\ttrue\nfsync\ttrue\n", ""));
}

/// Somebody makes a hole where pages were, and fills the file system: what is written there has no place.
#[test]
fn a_page_without_space_is_told_by_its_file() {
    let (code, out, err) = run("local db = perilune.open('t.db', {durability = 'none'})
local n = db.node('^n')
for i = 1, 300 do n[i].__ = ('x'):rep(1500) end
io.stdout:write('before\\n') io.stdout:flush()
sh 'fallocate --punch-hole --offset 1060864 --length 900000 t.db'
fill()
for i = 1, 300 do n[i].__ = ('y'):rep(1500) end
print 'after'");
    assert_eq!((code, out.as_str()), (3, "before\n"), "{err}");
    let told = err.starts_with("perilune: /") && err.contains("/small/t.db: byte ");
    assert!(told && err.contains("has holes and its file system is full"), "{err}");
}

/// Another process cuts the file.
#[test]
fn a_file_that_was_cut_is_told() {
    let place = Place::new();
    let script = "local db = require('perilune').open('t.db')
local n = db.node('^n')
n.a.__ = 1
os.execute 'truncate -s 16384 t.db'
print(n.a.__)";
    let (code, out, err) = place.run(&["-e", script]);
    assert_eq!((code, out.as_str()), (3, ""), "{err}");
    assert!(err.contains("/t.db: byte ") && err.contains("the file was cut to 16384 bytes"), "{err}");
    // Whoever opens it next is told, too, and loses nothing that is left.
    let (code, _, err) = place.run(&["check", "t.db"]);
    assert!(code != 0 && err.contains("it was cut: restore a backup"), "{code}: {err}");
}
