//! What scripts ask of the server: commands, by the one table, in the script's transaction.
//!
//! Invariant: a conflict ends the script, whatever it catches; the transaction runs it again.

mod asked_graphs;
mod asked_nodes;
mod modules;

pub(crate) use self::asked_graphs::refusal_of;

use std::borrow::Cow;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use perilune::remote::Fence;
use perilune::{Levels, Serving, Session};
use perilune_resp::{Arguments, Protocol, Replies};
use perilune_sandbox::graphs::{self, Graphs};
use perilune_sandbox::{Answers, Question, Texts};

use crate::client::Client;
use crate::command::{self, statements, Command, GROWS, NOSCRIPT, POSTS, WRITE};
use crate::context::Context;
use crate::effects::Effects;
use crate::eviction;
use crate::execution::{Inside, Way};
use crate::fence;
use crate::refusals;
use crate::scripts::redis::{Asked, GRAPHS, NODES, REDIS};
use crate::scripts::{header, store};
use crate::server::Server;
use crate::settings::Name;
use crate::stopwatch::Stopwatch;
use crate::transact::Span;
use perilune_net::journal::Level;

/// Bytes of what a script says that its line of the log has.
const LOGGED_BYTES: usize = 1 << 10;

/// Bytes of the names and descriptions of a library's functions at most.
const REGISTERED_BYTES: usize = 1 << 20;

const NO_ROOM: &str =
    "ERR not enough memory for the reply of a command that a script has called, which has run: see \
                       script-memory-limit";

/// The host of one run.
pub(crate) struct Caller<'c> {
    /// What the commands that it calls work with.
    pub(crate) context: Context<'c>,
    /// The script's time.
    pub(crate) now: i64,
    pub(crate) read_only: bool,
    /// The time of calls that are no parts of a transaction; none: there is one around all.
    pub(crate) stopwatch: Option<Stopwatch>,
    /// The kind of that one: what is beyond the means of a one-shot one ends the script with a conflict.
    pub(crate) span: Span,
    /// An event loop waits for it: what may wait or shows at once ends the script, too.
    pub(crate) in_place: bool,
    /// Memory is short, and it may not need more.
    pub(crate) is_full: bool,
    /// It has written: then it may go on.
    wrote: bool,
    /// A library is being loaded: there are no calls.
    pub(crate) loading: bool,
    /// A function of a program runs: nodes are what it would see there.
    pub(crate) shipped: bool,
    /// What it does not reach by node.
    pub(crate) fence: Option<&'static Arc<Fence>>,
    /// The graphs that it has opened, and walks over them.
    graphs: Graphs,
    /// Why the script must end.
    pub(crate) failure: Option<perilune::Error>,
    /// Functions that a library defines.
    pub(crate) registered: Vec<Registered>,
    /// Bytes that the open transaction's writes took before.
    before: usize,
    /// Bytes that its writes have taken since, and that its messages take.
    written: usize,
    posted: usize,
}

/// A function that a library defines, as it says.
#[derive(Clone, Debug)]
pub(crate) struct Registered {
    pub(crate) code: i32,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) flags: header::Flags,
}

impl<'c> Caller<'c> {
    pub(crate) fn new(
        server: &'c Arc<Server>,
        session: &'c mut Session,
        client: &'c mut Client,
        effects: &'c mut Effects,
        now: i64,
    ) -> Caller<'c> {
        let before = session.pending_bytes();
        Caller {
            context: Context { server, session, client, effects, may_park: false },
            now,
            read_only: false,
            stopwatch: None,
            span: Span::Whole,
            in_place: false,
            is_full: false,
            wrote: false,
            loading: false,
            shipped: false,
            fence: Some(fence::fence()),
            graphs: Graphs::default(),
            failure: None,
            registered: Vec::new(),
            before,
            written: 0,
            posted: 0,
        }
    }

    /// Runs a command; its reply, or why it is not run, goes into `replies`. Its writes may take `keeps` bytes.
    #[inline]
    pub(super) fn call(
        &mut self,
        arguments: Arguments<'_>,
        keeps: usize,
        replies: &mut Replies<'_>,
    ) -> ControlFlow<()> {
        let flow = self.run_call(arguments, keeps, replies);
        // What waits for the commit counts; a one-shot transaction holds little, and without one nothing waits.
        if self.wrote && self.span == Span::Whole && self.stopwatch.is_none() {
            self.note_written();
        }
        if replies.is_full() {
            replies.rewind(0);
            replies.error(NO_ROOM);
        }
        flow
    }

    #[inline]
    fn run_call(
        &mut self,
        arguments: Arguments<'_>,
        keeps: usize,
        replies: &mut Replies<'_>,
    ) -> ControlFlow<()> {
        if self.loading {
            replies.error("ERR a library calls no commands while it is loaded");
            return ControlFlow::Continue(());
        }
        let command = match self.known(arguments) {
            Ok(command) => command,
            Err(text) => {
                let command = arguments.get(0).and_then(command::find);
                let number = command.map(|command| command::number(command, arguments));
                self.context.effects.tally.rejected(number, &text);
                replies.error(&text);
                return ControlFlow::Continue(());
            }
        };
        let context = &mut self.context;
        if let Err(text) = context.permit(command, arguments, "lua") {
            context.effects.tally.rejected(Some(command::number(command, arguments)), &text);
            replies.error(&text);
            return ControlFlow::Continue(());
        }
        if command.is(WRITE | POSTS) {
            self.wrote |= command.is(WRITE);
            if command.is(POSTS) {
                // What is told to clients of this server lies here until the script ends.
                self.posted += arguments.extent();
            }
            if self.span == Span::Whole && self.stopwatch.is_none() {
                context.session.limit_pending(self.before + self.written + keeps);
            }
        }
        let way = match &mut self.stopwatch {
            Some(stopwatch) => Way::Called(stopwatch),
            None => Way::Inside(Inside { span: self.span, now: self.now, by_script: true }),
        };
        let mut outcome = context.run(command, arguments, way, replies).map(|_| ());
        // A script never sees halves of two states: it might not end.
        if self.span == Span::OneShot && outcome.is_ok() {
            outcome = context.session.validate();
        }
        match outcome {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.failure = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    #[inline]
    fn note_written(&mut self) {
        self.written = self.context.session.pending_bytes().saturating_sub(self.before);
    }

    /// The command, if a script may run it so.
    fn known(&self, arguments: Arguments<'_>) -> Result<&'static Command, Cow<'static, str>> {
        let command = arguments.get(0).and_then(|_| statements::of(arguments));
        let Some(command) = command else {
            return Err(refusals::unknown_to_script(arguments, 1).into());
        };
        let reads = self.read_only && command.name == "sql" && statements::reads(arguments);
        let command = command::find(b"sql_ro").filter(|_| reads).unwrap_or(command);
        if !command.takes(arguments.len()) {
            return Err("ERR Wrong number of args calling Redis command from script".into());
        }
        if let (false, Some(word)) = (command.words.is_empty(), arguments.get(1)) {
            if !command.words.iter().any(|known| word.eq_ignore_ascii_case(known.as_bytes())) {
                return Err(refusals::unknown_to_script(arguments, 2).into());
            }
        }
        if command.is(NOSCRIPT) {
            return Err("ERR This Redis command is not allowed from script".into());
        }
        if self.read_only && command.is(WRITE | POSTS) {
            return Err("ERR Write commands are not allowed from read-only scripts.".into());
        }
        if self.is_full && !self.wrote && command.is(GROWS) {
            return Err(eviction::FULL.into());
        }
        Ok(command)
    }

    /// Whether the client may run a command: 1 or 0; nothing if there is none.
    fn allowed(&mut self, texts: Texts<'_>, answer: &mut Vec<u8>) {
        let arguments = as_arguments(texts);
        let Some(command) = statements::of(arguments).filter(|command| command.takes(arguments.len())) else {
            return;
        };
        let user = self.context.client.user(self.context.server.rules().acl());
        let may = user.is_some_and(|user| user.check(command, arguments).is_ok());
        answer.push(if may { b'1' } else { b'0' });
    }

    /// The source of the module called `name`, from the server's directory and from nowhere else.
    fn find_module(&self, name: &[u8], answer: &mut Vec<u8>) {
        let directory = self.context.server.rules().settings().text(Name::ScriptDirectory);
        if directory.is_empty() {
            return;
        }
        if let Some(source) = modules::find(Path::new(&directory), name) {
            answer.extend_from_slice(&source);
        }
    }

    /// What a script says, in the server's log. NB: one that runs again says it again.
    fn log(&self, level: &[u8], message: &[u8]) {
        let level = match level {
            b"0" => Level::Debug,
            b"1" => Level::Verbose,
            b"2" => Level::Notice,
            _ => Level::Warning,
        };
        if self.context.server.notes(level) {
            let message = String::from_utf8_lossy(&message[..message.len().min(LOGGED_BYTES)]);
            let details = [("message", &*message), ("user", self.context.client.user_name())];
            self.context.server.note(level, "script", &details);
        }
    }

    /// Bytes of the functions that are registered.
    fn described(&self) -> usize {
        self.registered.iter().map(|function| 64 + function.name.len() + function.description.len()).sum()
    }

    fn register(&mut self, texts: Texts<'_>, answer: &mut Vec<u8>) {
        let text = |index| String::from_utf8_lossy(texts.get(index).unwrap_or_default()).into_owned();
        let mut function = Registered {
            code: text(0).parse().unwrap_or(-1),
            name: text(1),
            description: text(2),
            flags: header::Flags::declared(),
        };
        let named_so = |other: &Registered| other.name.eq_ignore_ascii_case(&function.name);
        if !header::is_name(&function.name) {
            answer.extend_from_slice(format!("ERR {}", header::NAMES).as_bytes());
        } else if self.registered.iter().any(named_so) {
            answer.extend_from_slice(b"ERR Function already exists in the library");
        } else if self.described() + texts.bytes().len() > REGISTERED_BYTES {
            answer.extend_from_slice(
                b"ERR the functions of the library have more than 1 MiB of names and descriptions",
            );
        } else if (3..texts.len()).any(|index| !function.flags.add(&text(index))) {
            answer.extend_from_slice(b"ERR unknown flag given");
        } else {
            self.registered.push(function);
        }
    }
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        self.context.session.limit_pending(usize::MAX);
    }
}

/// They lie as those of requests do.
#[inline]
fn as_arguments(texts: Texts<'_>) -> Arguments<'_> {
    Arguments::new(texts.bytes(), texts.spans())
}

impl Answers for Caller<'_> {
    fn answer(&mut self, question: Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()> {
        let Question { library, function, arguments, room, keeps } = question;
        let asked = match library {
            REDIS => Asked::of(function),
            NODES if self.in_place => return ControlFlow::Break(()),
            NODES => return self.node(question, answer),
            GRAPHS => return self.graph(&question, answer),
            _ => None,
        };
        let Some(asked) = asked else { return ControlFlow::Continue(()) };
        let first = arguments.get(0).unwrap_or_default();
        match asked {
            Asked::Call | Asked::Call3 => {
                let protocol = if asked == Asked::Call3 { Protocol::Resp3 } else { Protocol::Resp2 };
                let replies = &mut Replies::new(answer, protocol).up_to(room);
                return self.call(as_arguments(arguments), keeps, replies);
            }
            Asked::Log if self.in_place => return ControlFlow::Break(()),
            Asked::Log => self.log(first, arguments.get(1).unwrap_or_default()),
            Asked::Sha1 => answer.extend_from_slice(store::sha(first).as_bytes()),
            Asked::Command => answer.extend(command::find(first).map(|_| b'1')),
            Asked::Allowed => self.allowed(arguments, answer),
            Asked::Register => self.register(arguments, answer),
        }
        ControlFlow::Continue(())
    }

    fn module(&mut self, name: &[u8], answer: &mut Vec<u8>) -> ControlFlow<()> {
        if self.in_place {
            return ControlFlow::Break(());
        }
        match graphs::module(name) {
            Some(text) => answer.extend_from_slice(text.as_bytes()),
            None => self.find_module(name, answer),
        }
        ControlFlow::Continue(())
    }

    fn kept(&self) -> usize {
        self.written + self.posted
    }
}
