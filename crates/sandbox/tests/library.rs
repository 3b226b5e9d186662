//! A host with a library of its own, as one that brings a language for questions would have it: functions that take and give
//! values, errors, and memory that counts as the script's before it is taken.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::LazyLock;

use perilune_sandbox::{
    Answers, Code, Form, Format, HostFunction, Library, Offer, Outcome, Part, Parts, Pool, Question, Run,
    Sandbox, Texts, Value, Values,
};

/// The functions of `shelf`, by their numbers.
const PUT: usize = 0;
const ROWS: usize = 1;
const FILL: usize = 2;
const LEAVE: usize = 3;
const DEFINE: usize = 4;

static SHELF: Library = Library::new(
    c"shelf",
    &[
        HostFunction::new(c"put"),
        HostFunction::new(c"rows"),
        HostFunction::new(c"fill"),
        HostFunction::new(c"leave"),
        HostFunction::new(c"define").while_loading(),
    ],
);

static OFFER: LazyLock<Offer> = LazyLock::new(|| Offer::new(&[&SHELF], Format::values()));

/// What the functions work on.
#[derive(Default)]
struct Shelf {
    things: BTreeMap<Vec<u8>, f64>,
    kept: usize,
    may_put: bool,
    defined: Vec<String>,
}

impl Shelf {
    /// Puts so many of a thing on the shelf; how many there are.
    fn put(&mut self, arguments: Texts<'_>, values: &mut Values<'_>) {
        let argument = |index| Value::of(arguments.get(index).unwrap_or_default());
        let count = match argument(1) {
            Value::Integer(count) => count as f64,
            Value::Double(count) => count,
            Value::Nothing => 1.0,
            _ => return values.error(b"a count is a number"),
        };
        match argument(0) {
            _ if !self.may_put => values.error(b"this user only looks"),
            Value::Text(name) => {
                let sum = self.things.entry(name.to_vec()).or_default();
                *sum += count;
                values.double(*sum);
            }
            _ => values.error(b"a name is a string"),
        }
    }

    /// A list of a table for each thing.
    fn rows(&self, values: &mut Values<'_>) {
        values.list(self.things.len());
        for (name, count) in &self.things {
            values.table(2);
            values.text(b"name");
            values.text(name);
            values.text(b"count");
            values.double(*count);
        }
    }

    /// Keeps so many bytes until the run ends, and answers as many: neither is taken where there is no room.
    fn fill(&mut self, arguments: Texts<'_>, room: usize, values: &mut Values<'_>) {
        let Value::Integer(bytes) = Value::of(arguments.get(0).unwrap_or_default()) else { return };
        let bytes = bytes as usize;
        if 2 * bytes > room {
            return values.error(b"not enough memory for the answer");
        }
        self.kept += bytes;
        values.text(&vec![b'x'; bytes]);
    }
}

impl Answers for Shelf {
    fn answer(&mut self, question: Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()> {
        let values = &mut Values::new(answer);
        match (question.library, question.function) {
            (0, PUT) => self.put(question.arguments, values),
            (0, ROWS) => self.rows(values),
            (0, FILL) => self.fill(question.arguments, question.room, values),
            (0, LEAVE) => return ControlFlow::Break(()),
            (0, DEFINE) => {
                if let Value::Text(name) = Value::of(question.arguments.get(0).unwrap_or_default()) {
                    self.defined.push(String::from_utf8_lossy(name).into_owned());
                }
            }
            other => panic!("{other:?} is no function of the library"),
        }
        ControlFlow::Continue(())
    }

    fn kept(&self) -> usize {
        self.kept
    }
}

const MEMORY: usize = 16 << 20;

fn sandbox() -> Sandbox {
    Sandbox::new(&OFFER, &Pool::default(), MEMORY).expect("a sandbox")
}

fn shelf() -> Shelf {
    Shelf { may_put: true, ..Shelf::default() }
}

fn run_as<'s>(
    sandbox: &'s mut Sandbox,
    shelf: &mut Shelf,
    form: Form,
    code: Code,
    number: u64,
) -> Outcome<'s> {
    let run = Run { code, form, number, variant: 0, name: "script", keys: &[], arguments: &[] };
    sandbox.run(&run, shelf)
}

/// The parts of what `source` returns.
fn told<'s>(sandbox: &'s mut Sandbox, shelf: &mut Shelf, source: &str) -> Vec<Part<'s>> {
    let code = sandbox.compile(source.as_bytes(), "@script").expect("it is Lua");
    match run_as(sandbox, shelf, Form::Script, code, u64::try_from(code.0).expect("it is positive")) {
        Outcome::Replied(reply) => Parts::new(reply).collect(),
        other => panic!("{source}: {other:?}"),
    }
}

fn text(text: &str) -> Part<'_> {
    Part::Value(Value::Text(text.as_bytes()))
}

fn number(number: i64) -> Part<'static> {
    Part::Value(Value::Integer(number))
}

#[test]
fn functions_take_and_give_values() {
    let (mut sandbox, mut shelf) = (sandbox(), shelf());
    let source = "shelf.put('jar', 2) shelf.put('jar') return shelf.put('cup', 0.5)";
    assert_eq!(told(&mut sandbox, &mut shelf, source), [Part::Value(Value::Double(0.5))]);
    let source =
        "local rows = shelf.rows() return {#rows, rows[1].name, rows[1].count, rows[2].name, rows[2].count}";
    let row =
        [Part::List(5), number(2), text("cup"), Part::Value(Value::Double(0.5)), text("jar"), number(3)];
    assert_eq!(told(&mut sandbox, &mut shelf, source), row);
}

#[test]
fn errors_are_raised_where_the_function_is_called() {
    let (mut sandbox, mut shelf) = (sandbox(), shelf());
    let source = "local good, why = pcall(function() shelf.put(1) end) return {good, why}";
    let wanted = [Part::List(2), Part::Value(Value::Truth(false)), text("script:1: a name is a string")];
    assert_eq!(told(&mut sandbox, &mut shelf, source), wanted);
    let source = "\nshelf.put('jar', 'many') return 1";
    assert_eq!(told(&mut sandbox, &mut shelf, source), [Part::Error(b"script:2: a count is a number")]);
    assert_eq!(shelf.things.len(), 0);
}

#[test]
fn the_host_decides_who_may_call() {
    let (mut sandbox, mut shelf) = (sandbox(), Shelf::default());
    let told_to_look = told(&mut sandbox, &mut shelf, "local n = shelf.put('jar') return n");
    assert_eq!(told_to_look, [Part::Error(b"script:1: this user only looks")]);
    // What defines functions calls what says that it may be called then, and nothing else.
    for (source, wanted) in
        [("shelf.define('f')", ""), ("shelf.put('jar')", "not while functions are defined")]
    {
        let code = sandbox.compile(source.as_bytes(), "@script").expect("it is Lua");
        let Outcome::Replied(reply) = run_as(&mut sandbox, &mut shelf, Form::Library, code, 100) else {
            panic!("{source} ends")
        };
        let told = String::from_utf8_lossy(reply).into_owned();
        assert!(told.ends_with(wanted) && told.is_empty() == wanted.is_empty(), "{source}: {told}");
    }
    assert_eq!(shelf.defined, ["f"]);
}

#[test]
fn what_the_host_ends_is_ended() {
    let mut sandbox = sandbox();
    let code = sandbox.compile(b"pcall(shelf.leave) return 1", "@script").expect("it is Lua");
    assert_eq!(run_as(&mut sandbox, &mut shelf(), Form::Script, code, 1), Outcome::Ended);
}

/// What a function answers and keeps is the script's: both are bounded together with what the script itself takes, and come
/// back when it has ended.
#[test]
fn memory_of_the_host_counts_before_it_is_taken() {
    let (mut sandbox, mut shelf) = (sandbox(), shelf());
    let before = sandbox.memory();
    let refused = told(&mut sandbox, &mut shelf, "local s = shelf.fill(9 * 1024 * 1024) return s");
    assert_eq!(refused, [Part::Error(b"script:1: not enough memory for the answer")]);
    assert_eq!(shelf.kept, 0, "it was not taken");
    // A third each for what is kept, the answer and the string that it becomes; then there is room for nothing else.
    let source = "local s = shelf.fill(5 * 1024 * 1024) return {#s, pcall(string.rep, 'y', 4 * 1024 * 1024)}";
    let told_so = told(&mut sandbox, &mut shelf, source);
    assert_eq!(told_so[..3], [Part::List(3), number(5 << 20), Part::Value(Value::Truth(false))]);
    shelf.kept = 0;
    assert_eq!(told(&mut sandbox, &mut shelf, "return #('y'):rep(4 * 1024 * 1024)"), [number(4 << 20)]);
    told(&mut sandbox, &mut shelf, "collectgarbage() collectgarbage()");
    let left = sandbox.memory().saturating_sub(before);
    assert!(left < 1 << 20, "{left} bytes are still counted");
}

#[test]
fn libraries_are_those_that_are_offered() {
    let (mut sandbox, mut shelf) = (sandbox(), shelf());
    for name in ["redis", "client", "perilune"] {
        let told = told(&mut sandbox, &mut shelf, &format!("return {name}"));
        assert!(matches!(told[..], [Part::Error(_)]), "{name}: {told:?}");
    }
    for source in ["shelf.put = 1", "local s = shelf s.put = 1", "shelf = {}", "rawset(shelf, 'put', 1)"] {
        assert!(matches!(told(&mut sandbox, &mut shelf, source)[..], [Part::Error(_)]), "{source}");
    }
}
