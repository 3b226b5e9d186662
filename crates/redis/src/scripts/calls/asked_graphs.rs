//! What scripts ask of graphs, by `require 'perilune.graph'`: whether their client may, and the answer.
//!
//! Invariants
//! - A graph is read and changed in a whole transaction: a script that comes to one in another kind begins anew in that.
//! - Who may read the key that a graph's global is called may read the graph, and who may write it may change it, as in SQL.
//! - What the server keeps for itself is no graph of a script's.

use std::ops::ControlFlow;

use perilune::{Node, Serving};
use perilune_sandbox::graphs::Wanted;
use perilune_sandbox::nodes::{Failure as NodesFailure, Result};
use perilune_sandbox::{Question, Values};

use super::Caller;
use crate::command::access::{READS, WRITES};
use crate::failure;
use crate::fence;
use crate::transact::Span;

/// Why a script does not reach what lies at a node, whatever its user may do; none: it does.
pub(crate) fn refusal_of(node: &Node) -> Option<String> {
    fence::fence().closes(node).then(|| format!("NOPERM {}", fence::fence().why()))
}

impl Caller<'_> {
    pub(super) fn graph(&mut self, question: &Question<'_>, answer: &mut Vec<u8>) -> ControlFlow<()> {
        let start = answer.len();
        if self.stopwatch.is_none() && (self.in_place || self.span != Span::Whole) {
            return ControlFlow::Break(());
        }
        match self.graph_of_script(question, answer) {
            Ok(()) => {}
            Err(NodesFailure::Database(error)) if error.is_retry() => {
                self.failure = Some(error);
                return ControlFlow::Break(());
            }
            Err(failure) => {
                answer.truncate(start);
                let text = match failure {
                    NodesFailure::Refused(text) => text.into_owned(),
                    NodesFailure::Database(error) => failure::text_of(&error).into_owned(),
                };
                Values::new(answer).error(text.as_bytes());
            }
        }
        ControlFlow::Continue(())
    }

    fn graph_of_script(&mut self, question: &Question<'_>, answer: &mut Vec<u8>) -> Result<()> {
        if self.stopwatch.is_some() {
            let what = "ERR graphs are for scripts that are one transaction: leave non-atomic out";
            return Err(NodesFailure::Refused(what.into()));
        }
        let wanted = self.graphs.wanted(question)?;
        self.may_use(&wanted)?;
        if wanted.writes {
            self.wrote = true;
            self.context.session.limit_pending(self.before + self.written + question.keeps);
        }
        let outcome = self.graphs.answer(self.context.session, question, answer);
        if wanted.writes {
            self.note_written();
        }
        outcome
    }

    fn may_use(&mut self, wanted: &Wanted) -> Result<()> {
        let refused = |text: String| Err(NodesFailure::Refused(text.into()));
        if let Some(why) = refusal_of(&wanted.root) {
            return refused(why);
        }
        if wanted.writes && self.read_only {
            return refused("ERR Write commands are not allowed from read-only scripts.".to_owned());
        }
        let acl = self.context.server.rules().acl();
        if self.context.client.is_unlimited(acl) {
            return Ok(());
        }
        let (name, access) = (wanted.root.name(), if wanted.writes { WRITES } else { READS });
        let may = self.context.client.user(acl).is_some_and(|user| {
            user.selectors.iter().any(|selector| selector.allows_key(name.as_bytes(), access))
        });
        match may {
            true => Ok(()),
            false => {
                refused(format!("NOPERM this user has no permissions to access the graph {}", wanted.root))
            }
        }
    }
}
