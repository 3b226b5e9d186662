//! A process that is stopped with a page latched is let go on by who needs the page, and stops again after its change.
//!
//! Without that, of 1,000 stops of a process that does nothing but commits 75 to 93 kept others waiting up to their limit.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use perilune::{Conditional, Database, Error, Node, Probe};

/// Longer than any of it takes, also on a busy machine.
const LONG: Duration = Duration::from_secs(60);
/// Where the process that stops itself finds the database, and whether it does so with a page latched.
const STOPS_AT: &str = "PERILUNE_TEST_STOPS_AT";
const WITH_PAGE: &str = "PERILUNE_TEST_STOPS_WITH_PAGE";

struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let path = env::temp_dir().join(format!("perilune-stopped-{name}-{}", std::process::id()));
        std::fs::create_dir(&path).expect("a directory of our own");
        Scratch(path)
    }

    fn db(&self) -> PathBuf {
        self.0.join("test.db")
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // What cannot be removed is left.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn node() -> Node {
    Node::new("^stopped").and_then(|node| node.with("counter")).expect("a node")
}

fn stop_this_process() {
    let own = std::process::id().to_string();
    assert!(Command::new("kill").args(["-STOP", &own]).status().expect("kill runs").success());
}

/// No test by itself: what the stopped process does.
#[test]
fn stops_itself_where_it_is_told_to() {
    let Some(path) = env::var_os(STOPS_AT).map(PathBuf::from) else { return };
    let went_on = path.with_file_name("went-on");
    let mut session = Database::open(path).expect("the database").session().expect("a session");
    let stop = || {
        let begun = Instant::now();
        stop_this_process();
        // NB: the signal is for another thread, which stops this one when it runs next: then time is lost.
        while begun.elapsed() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
    };
    if env::var_os(WITH_PAGE).is_some() {
        let (node, mut has_stopped) = (node(), false);
        let done = session.change_probed(&[Probe::at(&node)], |probed| {
            // NB: once. This runs again if a checkpoint comes meanwhile.
            if !std::mem::replace(&mut has_stopped, true) {
                stop();
            }
            probed.set(0, &node, "2");
            true
        });
        assert!(done.expect("its change"));
    } else {
        session.set(&node(), "2").expect("a set");
        stop();
    }
    // It stands still before this line until somebody lets it go on.
    std::fs::write(went_on, "").expect("a file");
}

/// The process; it is killed with this, unless it has ended.
struct Stopped(Child);

impl Stopped {
    fn at(db: &Path, with_page: bool) -> Stopped {
        let mut command = Command::new(env::current_exe().expect("this program"));
        command.args(["--exact", "stops_itself_where_it_is_told_to"]).env(STOPS_AT, db).stdout(Stdio::null());
        if with_page {
            command.env(WITH_PAGE, "yes");
        }
        let stopped = Stopped(command.spawn().expect("a process"));
        stopped.wait_until_stopped();
        stopped
    }

    fn wait_until_stopped(&self) {
        let begun = Instant::now();
        while !self.is_stopped() {
            assert!(begun.elapsed() < LONG, "it does not stop");
            std::thread::yield_now();
        }
    }

    fn is_stopped(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.0.id())).unwrap_or_default();
        stat.rsplit_once(')').is_some_and(|(_, rest)| rest.trim_start().starts_with('T'))
    }

    fn go_on(&self) {
        let pid = self.0.id().to_string();
        assert!(Command::new("kill").args(["-CONT", &pid]).status().expect("kill runs").success());
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_stopped_holder_completes_its_change_and_stops_again() {
    let scratch = Scratch::new("holder");
    let database = Database::options().wait_limit(LONG).open(scratch.db()).expect("a database");
    let mut session = database.session().expect("a session");
    session.set(&node(), "1").expect("a set");
    let mut stopped = Stopped::at(&scratch.db(), true);
    let found = session.get(&node()).expect("no wait up to the limit");
    assert_eq!(found.expect("a value").to_string(), "\"2\"", "its change is complete");
    stopped.wait_until_stopped();
    assert!(!scratch.0.join("went-on").exists(), "it has done more than its change");
    // Nobody needs anything of it any more: it stays where it is until the user lets it go on.
    session.set(&node(), "3").expect("a set");
    assert!(stopped.is_stopped());
    stopped.go_on();
    assert!(stopped.0.wait().expect("its end").success());
    assert!(scratch.0.join("went-on").exists());
}

#[test]
fn who_holds_nothing_stays_stopped() {
    let scratch = Scratch::new("idle");
    let database = Database::options().wait_limit(LONG).open(scratch.db()).expect("a database");
    let mut session = database.session().expect("a session");
    let stopped = Stopped::at(&scratch.db(), false);
    for number in 0..1_000 {
        session.set(&node(), number).expect("a set");
    }
    assert!(stopped.is_stopped() && !scratch.0.join("went-on").exists());
}

#[test]
fn who_may_not_be_let_go_on_is_named_at_the_limit() {
    let scratch = Scratch::new("named");
    let options = Database::options().wait_limit(Duration::from_millis(200)).wake_stopped(false);
    let database = options.open(scratch.db()).expect("a database");
    let mut session = database.session().expect("a session");
    session.set(&node(), "1").expect("a set");
    let stopped = Stopped::at(&scratch.db(), true);
    let error: Error = session.get(&node()).expect_err("the page is held");
    let holder = error.holder().expect("who holds it");
    assert!(holder.stopped && holder.pid == stopped.0.id(), "{error}");
    assert!(stopped.is_stopped());
}
