//! What the server has: questions that change nothing, and what is read ahead of walks.
//!
//! Invariant: in a transaction each question is asked with SEE, so that its answer is of one state with all that the
//! transaction has been told before; see docs/format/wire.md.

use std::time::Duration;

use perilune_resp::Answer;
use perilune_store::{Error, Granularity, Page, Presence, Result, Span};

use crate::link::{unexpected, Effect};
use crate::search::{Pair, PartOfKey, Search};
use crate::session::{flag, RemoteSession, NO_TRANSACTION};

/// A key that a walk has come to, and its value.
type Step = (Vec<u8>, Option<Vec<u8>>);

/// Steps that are asked for at once at most.
const PAGE_STEPS: usize = 1_024;

impl RemoteSession {
    /// Asks something that changes nothing; an open transaction, so that it is of one state with what it has been told.
    pub(crate) fn look(&mut self, name: &str, arguments: &[&[u8]]) -> Result<Answer> {
        if self.running.is_none() {
            return self.ask(name, arguments, Effect::None);
        }
        let mut asked = Vec::with_capacity(1 + arguments.len());
        asked.push(name.as_bytes());
        asked.extend(arguments);
        self.see(&asked)
    }

    /// Asks for an open transaction, of one state with what it has been told; or only whether that is still so.
    pub(crate) fn see(&mut self, asked: &[&[u8]]) -> Result<Answer> {
        let running = self.growing()?;
        if std::mem::replace(&mut running.has_asked, true) {
            let mut all: Vec<&[u8]> = vec![b"1", b"0"];
            all.extend(asked);
            match self.ask("SEE", &all, Effect::None)? {
                Answer::Simple(status) if status == b"STALE" => {}
                answer => return Ok(answer),
            }
            // What was read ahead and not used is of another state, and none of the conditions.
            self.ahead.clear();
        }
        self.growing()?;
        let Some(running) = &self.running else { return Err(NO_TRANSACTION) };
        let conditions = running.reads.conditions().as_arguments();
        let count = conditions.iter().count().to_string();
        let mut all: Vec<&[u8]> = vec![b"0", count.as_bytes()];
        all.extend(conditions.iter());
        all.extend(asked);
        let answer = self.link.call("SEE", &all, Effect::None, Duration::ZERO);
        if let (Err(Error::Conflict), Some(running)) = (&answer, &mut self.running) {
            running.is_doomed = true;
        }
        answer
    }

    /// What the server has at and below `key`.
    pub(crate) fn base_presence(&mut self, key: &[u8]) -> Result<Presence> {
        match self.look("DATA", &[key])? {
            Answer::Integer(data @ (0 | 1 | 10 | 11)) => {
                Ok(Presence { value: data % 10 == 1, descendants: data >= 10 })
            }
            _ => Err(unexpected("DATA")),
        }
    }

    /// What the server has for a search: as it was read ahead, or by a request. `reach`: where a page may end, which
    /// the search's own bound may be short of.
    pub(crate) fn base(&mut self, search: &Search<'_>, reach: &[u8]) -> Result<Option<Pair>> {
        let is_alone = self.running.is_none();
        if let Some(known) = self.ahead.answer(search, is_alone) {
            return Ok(known.map(owned));
        }
        if let Some(count) = self.ahead.page_for(search) {
            self.read_ahead(search, reach, count)?;
            if let Some(known) = self.ahead.answer(search, false) {
                return Ok(known.map(owned));
            }
        }
        let (from, bound, with_value) = (search.from, search.bound, flag(search.with_value));
        let answer = if search.forward {
            self.look("NEXT", &[from, flag(search.inclusive), bound, with_value])?
        } else {
            self.look("PREV", &[from, bound, with_value])?
        };
        let found = pair_of(answer)?;
        self.ahead.note(search, found.as_ref().map(|(key, _)| key.as_slice()));
        Ok(found)
    }

    /// Asks for a page of a walk.
    fn read_ahead(&mut self, search: &Search<'_>, reach: &[u8], count: usize) -> Result<()> {
        let (found, is_all) = self.walk(search, reach, count)?;
        self.ahead.fill(search, reach, count, &found, is_all);
        Ok(())
    }

    /// Reads entries of a range, as many as one answer of the server holds.
    pub(crate) fn base_page(&mut self, span: &Span<'_>, with_value: bool, page: &mut Page) -> Result<()> {
        page.clear();
        let (from, bound) = if span.backwards { (span.high, span.low) } else { (span.low, span.high) };
        let (forward, granularity) = (!span.backwards, Granularity::Whole);
        let search = Search { forward, from, inclusive: forward, bound, with_value, granularity };
        let count = usize::try_from(span.most).unwrap_or(usize::MAX).min(PAGE_STEPS);
        if span.low >= span.high {
            page.end();
            return Ok(());
        }
        if count == 0 {
            return Ok(());
        }
        let (found, is_all) = self.walk(&search, bound, count)?;
        for (key, value) in found {
            page.push(&key, &value.unwrap_or_default());
        }
        if is_all {
            page.end();
        }
        Ok(())
    }

    /// The steps that a walk takes from a search on, each with the value if that is asked for and of the key that is looked for;
    /// and whether there are no more.
    fn walk(&mut self, search: &Search<'_>, reach: &[u8], count: usize) -> Result<(Vec<Step>, bool)> {
        let parent = search.granularity.parent().map_or_else(String::new, |parent| parent.to_string());
        let arguments = [
            flag(search.forward),
            search.from,
            flag(search.inclusive),
            reach,
            flag(search.with_value),
            parent.as_bytes(),
            &count.to_string().into_bytes(),
        ];
        let Answer::Array(parts) = self.look("WALK", &arguments)? else {
            return Err(unexpected("WALK"));
        };
        let mut parts = parts.into_iter();
        let Some(Answer::Integer(is_all)) = parts.next() else { return Err(unexpected("WALK")) };
        let mut found = Vec::with_capacity(parts.len() / 2);
        loop {
            match (parts.next(), parts.next()) {
                (None, _) => return Ok((found, is_all == 1)),
                (Some(Answer::Bulk(key)), Some(Answer::Bulk(value))) => found.push((key, Some(value))),
                (Some(Answer::Bulk(key)), Some(Answer::Null)) => found.push((key, None)),
                _ => return Err(unexpected("WALK")),
            }
        }
    }
}

fn owned((key, value): (&[u8], &[u8])) -> Pair {
    (key.to_vec(), value.to_vec())
}

fn pair_of(answer: Answer) -> Result<Option<Pair>> {
    match answer {
        Answer::Null => Ok(None),
        Answer::Array(parts) => {
            let mut parts = parts.into_iter();
            match (parts.next(), parts.next()) {
                (Some(Answer::Bulk(key)), None) => Ok(Some((key, Vec::new()))),
                (Some(Answer::Bulk(key)), Some(Answer::Bulk(value))) => Ok(Some((key, value))),
                _ => Err(unexpected("NEXT")),
            }
        }
        _ => Err(unexpected("NEXT")),
    }
}
