//! The interactive session over a terminal, which `script` of util-linux provides.
//!
//! The test plays the terminal's part: it answers where the cursor is when it is asked.

mod program;

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout, Command, Stdio};

use program::Place;

const CURSOR_ASKED: &[u8] = b"\x1b[6n";
const CURSOR_ANSWER: &[u8] = b"\x1b[1;1R";

struct Terminal {
    input: ChildStdin,
    output: ChildStdout,
    /// All that was shown.
    shown: Vec<u8>,
    answered: usize,
}

impl Terminal {
    /// Reads until `text` was shown after the position `from` and the program has asked for the cursor
    /// `asked` times: it does so once it listens for a new line. The end of the program ends the test.
    fn wait_for(&mut self, from: usize, text: &str, asked: usize) {
        let mut buffer = [0; 4096];
        while self.answered < asked || !String::from_utf8_lossy(&self.shown[from..]).contains(text) {
            let count = self.output.read(&mut buffer).expect("the terminal");
            assert!(count > 0, "ended without {text:?}: {}", String::from_utf8_lossy(&self.shown));
            self.shown.extend_from_slice(&buffer[..count]);
            let asked = self.shown.windows(CURSOR_ASKED.len()).filter(|at| *at == CURSOR_ASKED).count();
            for _ in self.answered..asked {
                self.input.write_all(CURSOR_ANSWER).expect("the terminal");
            }
            self.answered = asked;
        }
    }

    /// Types a line and waits for what it shows, and for the next prompt.
    fn enter(&mut self, line: &str, expected: &str) {
        let (from, asked) = (self.shown.len(), self.answered + 1);
        self.input.write_all(format!("{line}\r").as_bytes()).expect("the terminal");
        self.wait_for(from, expected, asked);
    }

    /// Types a line that is not the end of its chunk.
    fn begin(&mut self, line: &str) {
        let from = self.shown.len();
        self.input.write_all(format!("{line}\r").as_bytes()).expect("the terminal");
        self.wait_for(from, ">> ", 0);
    }
}

#[test]
fn lines_are_run_and_nodes_shown() {
    let place = Place::new();
    let program = place.command(&[]);
    let mut child = Command::new("script")
        .args(["-qec", &format!("'{}' --db t.db", program.get_program().to_string_lossy()), "/dev/null"])
        .current_dir(place.path())
        .env("HOME", place.path())
        .env("TERM", "xterm")
        .env_remove("XDG_STATE_HOME")
        .env_remove("PERILUNE_DB")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("script of util-linux is there");
    let input = child.stdin.take().expect("piped");
    let output = child.stdout.take().expect("piped");
    let mut terminal = Terminal { input, output, shown: Vec::new(), answered: 0 };
    terminal.wait_for(0, "t.db", 1);
    terminal.enter("6 * 7", "42\r\n");
    terminal.enter("^person(21,\"age\").__ = 35 + 1", "");
    terminal.enter("^person", "^person(21,\"age\")=36\r\n");
    terminal.enter("{b = 'x', 1}", "  b = \"x\",\r\n");
    terminal.begin("for i = 1, 2 do");
    terminal.enter("print('line', i) end", "line\t2\r\n");
    terminal.enter("error('broken')", "broken\r\n");
    terminal.enter("7 * 7", "49\r\n");
    terminal.input.write_all(b"\x04").expect("the terminal");
    let mut rest = Vec::new();
    terminal.output.read_to_end(&mut rest).expect("the terminal");
    assert!(child.wait().expect("it ends").success());
    let (_, out, _) =
        place.run(&["--db", "t.db", "-e", "print(require('perilune').node('^person')[21].age.__)"]);
    assert_eq!(out, "36\n");
    assert!(place.path().join(".local/state/perilune/history").exists());
}
