//! The interactive session over a terminal, which `script` of util-linux provides.
//!
//! The test plays the terminal's part: it answers where the cursor is when it is asked.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::program::Place;

const CURSOR_ASKED: &[u8] = b"\x1b[6n";
const CURSOR_ANSWER: &[u8] = b"\x1b[1;1R";

struct Terminal {
    input: ChildStdin,
    output: ChildStdout,
    /// All that was shown.
    shown: Vec<u8>,
    answered: usize,
    /// How many of the next questions for the cursor get no answer.
    unanswered: usize,
}

impl Terminal {
    /// Reads until `text` and behind it `prompt` were shown, all after the position `from`: the prompt is
    /// painted once the editor listens. The end of the program ends the test.
    fn wait_for(&mut self, from: usize, text: &str, prompt: &str) {
        let seen = |shown: &[u8]| {
            let shown = String::from_utf8_lossy(shown);
            shown.find(text).is_some_and(|at| shown[at + text.len()..].contains(prompt))
        };
        while !seen(&self.shown[from..]) {
            assert!(self.read(), "ended without {text:?}: {}", String::from_utf8_lossy(&self.shown));
        }
    }

    /// Reads what is shown next and answers where the cursor is, as often as it was asked. False: the program has ended.
    fn read(&mut self) -> bool {
        let mut buffer = [0; 4096];
        let count = self.output.read(&mut buffer).expect("the terminal");
        self.shown.extend_from_slice(&buffer[..count]);
        let asked = self.shown.windows(CURSOR_ASKED.len()).filter(|at| *at == CURSOR_ASKED).count();
        for _ in self.answered..asked {
            if self.unanswered > 0 {
                self.unanswered -= 1;
            } else {
                self.input.write_all(CURSOR_ANSWER).expect("the terminal");
            }
        }
        self.answered = asked;
        count > 0
    }

    /// Types what ends the session, and sees it end well. The editor asks where the cursor is also then, and waits for
    /// the answer.
    fn end(mut self, mut child: Child, typed: &[u8]) {
        self.input.write_all(typed).expect("the terminal");
        while self.read() {}
        let status = child.wait().expect("it ends");
        assert!(status.success(), "{status}: {}", String::from_utf8_lossy(&self.shown));
    }

    /// Types a line and waits for what it shows, which its echo does not contain, and for `prompt`.
    fn enter(&mut self, line: &str, expected: &str, prompt: &str) {
        let from = self.shown.len();
        self.input.write_all(format!("{line}\r").as_bytes()).expect("the terminal");
        self.wait_for(from, expected, prompt);
    }
}

/// The program on a terminal of the kind `term`.
fn start(place: &Place, term: &str) -> (Child, Terminal) {
    let program = place.command(&[]);
    // A limit, so that a session that waits for ever ends the test.
    let mut child = Command::new("timeout")
        .args([
            "--foreground",
            "60",
            "script",
            "-qec",
            // Not beside the shell, which would end by the Ctrl-C that is meant for a line of the program.
            &format!("exec '{}' --db t.db", program.get_program().to_string_lossy()),
            "/dev/null",
        ])
        .current_dir(place.path())
        .env("SHELL", "/bin/sh")
        .env("HOME", place.path())
        .env("TERM", term)
        .env_remove("XDG_STATE_HOME")
        .env_remove("PERILUNE_DB")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of util-linux is there");
    let input = child.stdin.take().expect("piped");
    let output = child.stdout.take().expect("piped");
    (child, Terminal { input, output, shown: Vec::new(), answered: 0, unanswered: 0 })
}

#[test]
fn a_terminal_that_cannot_edit_is_good_enough() {
    let place = Place::new();
    let (child, mut terminal) = start(&place, "dumb");
    terminal.wait_for(0, "Ctrl-D ends\r\n", "> ");
    terminal.enter("6 * 7", "42\r\n", "> ");
    terminal.enter("^my_name(1).__ = 5", "", "> ");
    terminal.enter("^my_name", "^my_name(1)=5\r\n", "> ");
    terminal.enter("for i = 1, 2 do", "", ">> ");
    terminal.enter("print('line', i) end", "line\t2\r\n", "> ");
    assert!(!terminal.shown.contains(&0x1B), "it moves no cursor");
    terminal.end(child, &[4]);
}

#[test]
fn lines_are_run_and_nodes_shown() {
    let place = Place::new();
    let (child, mut terminal) = start(&place, "xterm");
    terminal.wait_for(0, "Ctrl-D ends\r\n", "> ");
    terminal.enter("6 * 7", "42\r\n", "> ");
    terminal.enter("^person(21,\"age\").__ = 35 + 1 print('set')", "set\r\n", "> ");
    terminal.enter("^person", "^person(21,\"age\")=36\r\n", "> ");
    terminal.enter("{b = 'x', 1}", "  b = \"x\",\r\n", "> ");
    terminal.enter("for i = 1, 2 do", "", ">> ");
    terminal.enter("print('line', i) end", "line\t2\r\n", "> ");
    terminal.enter("error('broken')", "broken\r\n", "> ");
    terminal.enter("= 7 * 7", "49\r\n", "> ");
    terminal.enter("'\\195\\164\\255\\n'", "\"\\195\\164\\255\\n\"\r\n", "> ");
    terminal.enter("^per\t:cou\t()", "1\r\n", "> ");
    terminal.enter("^person(2\t).a\t.__ + 1", "37\r\n", "> ");
    terminal.enter("^person(21) = 5", "^person(21).__ = 5\r\n", "> ");
    let from = terminal.shown.len();
    terminal.input.write_all(b"x = 8 print('at work') while true do end\r").expect("the terminal");
    terminal.wait_for(from, "at work\r\n", "");
    // NB: no end of line behind it: the editor asks where the cursor is, and drops what was typed before the answer.
    terminal.input.write_all(b"\x03").expect("the terminal");
    // NB: without the end of its line. The terminal shows ^C when it has sent the signal, which may be in the middle of that.
    terminal.wait_for(from, "interrupted", "> ");
    terminal.enter("x * 8", "64\r\n", "> ");
    terminal.enter("db:pat\t()", "\"t.db\"\r\n", "> ");
    terminal.enter("help", "brings back older lines\r\n", "> ");
    // The arrow up, over help, brings back the line before it.
    terminal.enter("\x1b[A\x1b[A", "\"t.db\"\r\n", "> ");
    terminal.end(child, b"quit\r");
    let (_, out, _) =
        place.run(&["--db", "t.db", "-e", "print(require('perilune').node('^person')[21].age.__)"]);
    assert_eq!(out, "36\n");
    assert!(place.path().join(".local/state/perilune/history").exists());
}

#[test]
fn a_terminal_that_answers_late_can_still_edit() {
    let place = Place::new();
    let (child, mut terminal) = start(&place, "xterm");
    terminal.wait_for(0, "Ctrl-D ends\r\n", "> ");
    // The line waits, so that what goes unanswered is the question of the next prompt.
    terminal.enter("print('ready') io.read()", "ready\r\n", "");
    terminal.unanswered = 1;
    let from = terminal.shown.len();
    terminal.input.write_all(b"\r").expect("the terminal");
    terminal.wait_for(from, "> ", "");
    terminal.enter("db:pat\t()", "\"t.db\"\r\n", "> ");
    assert!(!String::from_utf8_lossy(&terminal.shown).contains("no editing"));
    terminal.end(child, b"quit\r");
}
