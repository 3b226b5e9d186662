//! A file system that is really full, and pages that the kernel really cannot give: on a tmpfs of 12 or 16 MiB.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::{fs, path::Path};

use crate::program::{told, Place};

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
    run_on("12m", code)
}

fn run_on(size: &str, code: &str) -> (i32, String, String) {
    let place = Place::new();
    let script = place.file("script.lua", &format!("{HEAD}{code}"));
    let small = place.path().join("small");
    fs::create_dir(&small).expect("a directory for the file system");
    let namespace = namespace();
    let mut command = Command::new(namespace[0]);
    command.args(&namespace[1..]).args(["sh", "-c"]);
    command.arg("mount -t tmpfs -o size=\"$4\" none \"$1\" && cd \"$1\" && exec \"$2\" run \"$3\"").arg("sh");
    command.args([&small, Path::new(env!("CARGO_BIN_EXE_perilune")), &script, Path::new(size)]);
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

/// A disk of 16 MB was full when 6 of them were used: the log's first files took 7, and the database grew by as much as
/// it had or not at all. Now 7,447 to 8,149 values find room where there is a log, and did 6,691 once on a busy machine,
/// perhaps for one more file of the log: that is not known. It may have to wait for a checkpoint: that is tried again, as
/// the error says, which told to raise `max_size` instead.
#[test]
fn a_small_disk_is_used_to_its_end() {
    let (code, out, err) = run_on(
        "16m",
        "for _, level in ipairs {'none', 'periodic', 'fsync'} do
  local db = perilune.open(level .. '.db', {durability = level})
  local n, count, since = db.node('^n'), 0
  repeat
    local good, e = pcall(function() n[count + 1].__ = ('x'):rep(1000) .. count end)
    if good or e.code == 'NOT_DURABLE' then
      count, since = count + 1, nil
    else
      assert(e.code == 'NO_SPACE' and tostring(e):find('try again in a moment', 1, true), tostring(e))
      since = since or os.time()
    end
  -- A checkpoint is what it waits for: seconds, where much else runs.
  until since and os.time() - since > (level == 'none' and 1 or 5)
  print(level, count > (level == 'none' and 9500 or 6400) or count)
  assert(n[count].__ == ('x'):rep(1000) .. count - 1)
  db:close()
  -- There is room for who comes to remove something.
  db = perilune.open(level .. '.db')
  db.node('^n')[count]:kill()
  assert(db.node('^n')[count].__ == nil and db.node('^n')[count - 1].__ and db:verify())
  db:close()
  sh 'rm -f *.db*'
end",
    );
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

/// Removing nodes goes on when nothing else does: it needs pages and log as well, which are kept for it.
#[test]
fn nodes_are_removed_on_a_full_disk() {
    let (code, out, err) = run("for _, level in ipairs {'none', 'periodic', 'fsync'} do
  local db = perilune.open(level .. '.db', {durability = level})
  local n = db.node('^n')
  for i = 1, 60 do n[i].__ = ('x'):rep(1000) end
  n.tree[1].__ = 1
  -- What is kept of the log for removing is of its first file: that is made by the first flush, which must not come too late.
  local durability = level ~= 'none' and 'fsync' or nil
  db:transaction({durability = durability}, function() n.tree[2].__ = 2 end)
  db:checkpoint()
  fill()
  local count, problem = 60
  repeat
    local good, e = pcall(function() n[count + 1].__ = ('x'):rep(1000) end)
    if good then count = count + 1 else problem = e end
  until problem
  assert(problem.code == 'NO_SPACE', tostring(problem))
  -- Everything is of an earlier checkpoint, and has to be copied first.
  pcall(db.checkpoint, db)
  n.tree:kill()
  for i = 1, 50 do n[i]:kill() end
  assert(n.tree[1].__ == nil and n[50].__ == nil and n[51].__ ~= nil)
  free()
  assert(db:verify())
  db:close()
  db = perilune.open(level .. '.db')
  assert(db.node('^n')[50].__ == nil and db.node('^n')[51].__ ~= nil)
  db:close()
  print(level)
  sh 'rm -f *.db*'
end");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "none\nperiodic\nfsync\n", ""));
}

/// A commit that has happened is never told with an error that says it has not: a counter is counted once.
#[test]
fn a_counter_on_a_full_disk_counts_what_it_says() {
    let (code, out, err) = run("local db = perilune.open('f.db', {durability = 'fsync'})
local n = db.node('^n')
n.__ = 0
fill()
local seen, last = {}, 0
for i = 1, 600 do
  local good, e = pcall(function() if i % 2 == 0 then n:incr() else db:transaction(function() n.__ = n.__ + 1 end) end end)
  local has_happened = good or e.code == 'NOT_DURABLE'
  assert((n.__ ~= last) == has_happened, tostring(e))
  if not good then
    seen[e.code] = true
    assert(has_happened == (tostring(e):find('written', 1, true) == nil), tostring(e))
  end
  last = n.__
end
assert(seen.NO_SPACE)
free()
db:close()
assert(perilune.open('f.db').node('^n').__ == last)
print 'good'");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "good\n", ""));
}

/// A file that would be larger than `ulimit -f` allows is an error like a full disk: the library has the kernel send no
/// SIGXFSZ, which ends programs that do not expect it, and the program survives one that is not the library's.
#[test]
fn a_limit_of_file_sizes_is_an_error() {
    let place = Place::new();
    // NB: the shared memory is made by one who may.
    let script = place.file(
        "limited.lua",
        "local db = require('perilune').open('t.db', {durability = 'fsync'})
local n, count, problem = db.node('^n'), 0
repeat
  local good, e = pcall(function() n[count + 1].__ = ('x'):rep(20000) .. count end)
  if good then count = count + 1 else problem = e end
until problem
assert(problem.code == 'NO_SPACE' and tostring(problem):find('ulimit -f', 1, true), tostring(problem))
assert(count > 0 and n[count + 1].__ == nil and n[count].__ ~= nil)
n[1]:kill()
print(db:verify())",
    );
    assert_eq!(place.run(&["--db", "t.db", "-e", "require('perilune').use().node('^n').a.__ = 1"]).0, 0);
    let mut keeper = place.command(&["keep", "t.db"]).stdout(Stdio::piped()).spawn().expect("it starts");
    let mut line = String::new();
    BufReader::new(keeper.stdout.as_mut().expect("its output")).read_line(&mut line).expect("a line");
    let mut command = Command::new("sh");
    command.args([
        "-c",
        "ulimit -f 6144 && exec strace -f -qq -e trace=none -e signal=SIGXFSZ -o trace.txt \"$@\"",
        "sh",
    ]);
    command
        .args([Path::new(env!("CARGO_BIN_EXE_perilune")), Path::new("run"), &script])
        .current_dir(place.path());
    let (code, out, err) = told(command.env_remove("PERILUNE_DB").output().expect("a shell"));
    keeper.kill().and_then(|()| keeper.wait()).expect("it ends");
    assert_eq!((code, out.as_str(), err.as_str()), (0, "true\n", ""));
    let trace = fs::read_to_string(place.path().join("trace.txt")).expect("strace is needed");
    assert!(!trace.contains("SIGXFSZ"), "{trace}");
    let mut command = Command::new("sh");
    let write = "local f = io.open('big', 'w') f:setvbuf('no') print(f:write(('x'):rep(1e6)))";
    command.args(["-c", "ulimit -f 100 && exec \"$@\"", "sh", env!("CARGO_BIN_EXE_perilune"), "-e", write]);
    let (code, out, err) = told(command.current_dir(place.path()).output().expect("a shell"));
    assert!(code == 0 && out.contains("File too large"), "{code} {out}{err}");
}
