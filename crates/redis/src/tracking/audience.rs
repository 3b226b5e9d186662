//! CLIENT TRACKING with BCAST, in one event loop: its clients, the prefixes that they have chosen, and what they are told.
//!
//! What has changed is gathered in a round of the loop and told at its end: one notice for each prefix, its keys in the order
//! of their bytes.
//!
//! Invariants
//! - A client that asks all servers belongs to the audience: the loop stays noted in the tree while there is anybody.
//! - A client is not told while a command of it runs elsewhere: what it is to be told is kept until then.
//! - Nothing is kept without a bound: beyond it a client is told of all keys.
//! - With NOLOOP a key is left out only if nobody else has changed it in that round.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

use super::Told;
use crate::invalidation::{Change, Changes, Names, Prefixes};
use crate::limits::CHANGED_BYTES;
use perilune_net::seat::Seat;

/// Who has chosen a prefix, and what keys with it have changed in this round, by whom; 0: by more than one, or none that knows.
#[derive(Debug, Default)]
struct Prefix {
    seats: Vec<Seat>,
    changed: BTreeMap<Vec<u8>, i64>,
}

/// What a client is to be told when its command is back.
#[derive(Debug)]
enum Held {
    Nothing,
    Keys(BTreeSet<Vec<u8>>, usize),
    All,
}

#[derive(Debug)]
struct Listener {
    prefixes: Prefixes,
    no_loop: bool,
    held: Held,
}

impl Listener {
    fn hold(&mut self, names: Names) {
        let Some(names) = names else {
            self.held = Held::All;
            return;
        };
        if matches!(self.held, Held::Nothing) {
            self.held = Held::Keys(BTreeSet::new(), 0);
        }
        if let Held::Keys(keys, bytes) = &mut self.held {
            *bytes += names.iter().map(Vec::len).sum::<usize>();
            keys.extend(names);
            if *bytes > CHANGED_BYTES {
                self.held = Held::All;
            }
        }
    }

    fn take(&mut self) -> Option<Names> {
        match std::mem::replace(&mut self.held, Held::Nothing) {
            Held::Nothing => None,
            Held::Keys(keys, _) => Some(Some(keys.into_iter().collect())),
            Held::All => Some(None),
        }
    }
}

/// The clients of a loop that are told of all keys with some prefixes.
#[derive(Debug, Default)]
pub(crate) struct Audience {
    prefixes: BTreeMap<Vec<u8>, Prefix>,
    clients: HashMap<Seat, Listener>,
    /// Clients that ask all servers to tell.
    asking: HashSet<Seat>,
    /// The tree says that there is somebody here.
    is_noted: bool,
    /// Something has changed in this round; so many bytes of names; anything may have.
    has_news: bool,
    bytes: usize,
    all: bool,
    /// Clients have something held.
    holds: bool,
    /// Prefixes that the server's figures have been told of.
    counted: u64,
}

impl Audience {
    /// A client asks all servers to tell, and the tree says so.
    pub(crate) fn ask(&mut self, seat: Seat) {
        self.asking.insert(seat);
        self.is_noted = true;
    }

    /// All servers tell: the client belongs to it, with these prefixes.
    pub(crate) fn enter(&mut self, seat: Seat, prefixes: &Prefixes, no_loop: bool) {
        self.asking.remove(&seat);
        for prefix in prefixes.iter() {
            let seats = &mut self.prefixes.entry(prefix.clone()).or_default().seats;
            if !seats.contains(&seat) {
                seats.push(seat);
            }
        }
        let held = self.clients.remove(&seat).map_or(Held::Nothing, |before| before.held);
        self.clients.insert(seat, Listener { prefixes: Arc::clone(prefixes), no_loop, held });
    }

    /// A client does not belong to it any more, or its question was not answered.
    pub(crate) fn leave(&mut self, seat: Seat) {
        self.asking.remove(&seat);
        let Some(listener) = self.clients.remove(&seat) else { return };
        for name in listener.prefixes.iter() {
            let Some(prefix) = self.prefixes.get_mut(name) else { continue };
            prefix.seats.retain(|other| *other != seat);
            if prefix.seats.is_empty() {
                self.prefixes.remove(name);
            }
        }
    }

    /// A question of a client who may belong to it already was not answered.
    pub(crate) fn give_up(&mut self, seat: Seat) {
        self.asking.remove(&seat);
    }

    /// Whether the tree says that there is somebody, and there is nobody.
    pub(crate) fn is_noted_in_vain(&self) -> bool {
        self.is_noted && self.clients.is_empty() && self.asking.is_empty()
    }

    /// The tree says no more that there is somebody.
    pub(crate) fn is_noted_no_more(&mut self) {
        self.is_noted = false;
    }

    /// Takes what has changed, to be told at the end of the round.
    pub(crate) fn hear(&mut self, changes: &Changes) {
        if self.clients.is_empty() {
            return;
        }
        self.has_news = true;
        match changes {
            None => self.all = true,
            Some(changes) if !self.all => changes.iter().for_each(|change| self.note(change)),
            Some(_) => {}
        }
    }

    fn note(&mut self, change: &Change) {
        let bytes = &mut self.bytes;
        let mut add = |prefix: &mut Prefix| match prefix.changed.get_mut(&change.key) {
            Some(by) if *by != change.by => *by = 0,
            Some(_) => {}
            None => {
                *bytes += change.bytes();
                prefix.changed.insert(change.key.clone(), change.by);
            }
        };
        // Of many prefixes those are looked for that the key may have.
        if self.prefixes.len() > change.key.len() {
            for end in 0..=change.key.len() {
                if let Some(prefix) = self.prefixes.get_mut(&change.key[..end]) {
                    add(prefix);
                }
            }
        } else {
            let its = self.prefixes.iter_mut().filter(|(name, _)| change.key.starts_with(name));
            its.for_each(|(_, prefix)| add(prefix));
        }
        self.all |= self.bytes > CHANGED_BYTES;
    }

    /// Who is to be told what at the end of a round. `is_away` says that a client is not to be told now.
    pub(crate) fn tell(&mut self, mut is_away: impl FnMut(Seat) -> bool) -> Told {
        let mut told = Vec::new();
        if self.holds {
            self.holds = false;
            for (seat, listener) in &mut self.clients {
                if is_away(*seat) {
                    self.holds |= !matches!(listener.held, Held::Nothing);
                } else if let Some(names) = listener.take() {
                    told.push((names, vec![*seat]));
                }
            }
        }
        if !std::mem::take(&mut self.has_news) {
            return told;
        }
        self.bytes = 0;
        if std::mem::take(&mut self.all) {
            self.prefixes.values_mut().for_each(|prefix| prefix.changed.clear());
            let seats = self.clients.keys().copied().collect();
            self.hand_out(None, seats, &mut is_away, &mut told);
            return told;
        }
        let mut news = Vec::new();
        for prefix in self.prefixes.values_mut().filter(|prefix| !prefix.changed.is_empty()) {
            news.push((std::mem::take(&mut prefix.changed), prefix.seats.clone()));
        }
        for (changed, seats) in news {
            let has_own = |seat: &Seat| {
                let no_loop = self.clients.get(seat).is_some_and(|listener| listener.no_loop);
                no_loop && changed.values().any(|by| *by == seat.client)
            };
            let (own, others): (Vec<Seat>, Vec<Seat>) = seats.into_iter().partition(has_own);
            for seat in own {
                let theirs = changed.iter().filter(|(_, by)| **by != seat.client);
                let names: Vec<_> = theirs.map(|(key, _)| key.clone()).collect();
                if !names.is_empty() {
                    self.hand_out(Some(names), vec![seat], &mut is_away, &mut told);
                }
            }
            self.hand_out(Some(changed.into_keys().collect()), others, &mut is_away, &mut told);
        }
        told
    }

    /// Has clients told of names, or keeps these for those who are away.
    fn hand_out(
        &mut self,
        names: Names,
        mut seats: Vec<Seat>,
        is_away: &mut impl FnMut(Seat) -> bool,
        told: &mut Told,
    ) {
        seats.retain(|seat| {
            let away = is_away(*seat);
            if let (true, Some(listener)) = (away, self.clients.get_mut(seat)) {
                listener.hold(names.clone());
                self.holds = true;
            }
            !away
        });
        if !seats.is_empty() {
            told.push((names, seats));
        }
    }

    /// Tells the server's figures how many prefixes there are.
    pub(crate) fn count(&mut self, figure: &AtomicU64) {
        let now = self.prefixes.len() as u64;
        if now != self.counted {
            figure.fetch_add(now.wrapping_sub(self.counted), Ordering::Relaxed);
            self.counted = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seat(client: i64) -> Seat {
        Seat { client, ..Seat::default() }
    }

    fn heard(audience: &mut Audience, client: i64, is_away: bool) -> Vec<Option<String>> {
        let told = audience.tell(|seat| is_away && seat.client == client);
        let text = |names: Vec<Vec<u8>>| String::from_utf8(names.join(&b' ')).unwrap();
        let to_it = told.into_iter().filter(|(_, seats)| seats.contains(&seat(client)));
        to_it.map(|(names, _)| names.map(text)).collect()
    }

    fn changes(list: &[(i64, &str)]) -> Changes {
        Some(list.iter().map(|(by, key)| Change { by: *by, key: key.as_bytes().to_vec() }).collect())
    }

    fn audience() -> Audience {
        let mut audience = Audience::default();
        let prefixes = |list: &[&str]| Arc::new(list.iter().map(|text| text.as_bytes().to_vec()).collect());
        audience.enter(seat(1), &prefixes(&[""]), true);
        audience.enter(seat(2), &prefixes(&["a", "b"]), false);
        audience
    }

    #[test]
    fn one_notice_a_prefix_and_round() {
        let mut audience = audience();
        assert!(heard(&mut audience, 2, false).is_empty());
        for list in [&[(1, "b2"), (1, "c")][..], &[(3, "a"), (1, "b1"), (1, "b2")]] {
            audience.hear(&changes(list));
        }
        let told = audience.tell(|_| false);
        let of = |client| -> Vec<Names> {
            told.iter()
                .filter(|(_, seats)| seats.contains(&seat(client)))
                .map(|(names, _)| names.clone())
                .collect()
        };
        let names = |list: &[&str]| Some(list.iter().map(|text| text.as_bytes().to_vec()).collect());
        assert_eq!(of(2), [names(&["a"]), names(&["b1", "b2"])]);
        assert_eq!(of(1), [names(&["a"])], "what it has not changed itself");
        assert!(heard(&mut audience, 2, false).is_empty());
    }

    #[test]
    fn what_others_change_as_well_is_told_with_noloop() {
        let mut audience = audience();
        audience.hear(&changes(&[(1, "x"), (1, "y")]));
        audience.hear(&changes(&[(2, "x"), (1, "x")]));
        assert_eq!(heard(&mut audience, 1, false), [Some("x".to_owned())]);
        audience.hear(&None);
        assert_eq!(heard(&mut audience, 1, false), [None]);
    }

    #[test]
    fn who_is_away_is_told_later() {
        let mut audience = audience();
        for key in ["a", "b", "a"] {
            audience.hear(&changes(&[(0, key)]));
            assert!(heard(&mut audience, 2, true).is_empty());
        }
        assert_eq!(heard(&mut audience, 2, false), [Some("a b".to_owned())]);
        assert!(heard(&mut audience, 2, false).is_empty());
        let long = "a".repeat(CHANGED_BYTES / 2 + 1);
        for key in [long.clone(), long.clone() + "b"] {
            audience.hear(&changes(&[(0, &key)]));
            assert!(heard(&mut audience, 2, true).is_empty());
        }
        assert_eq!(heard(&mut audience, 2, false), [None], "too much to keep");
        let both = changes(&[(0, &long), (0, &(long.clone() + "b"))]);
        audience.hear(&both);
        assert_eq!(heard(&mut audience, 2, false), [None], "too much for a round");
    }

    #[test]
    fn the_loop_is_noted_while_anybody_is_there_or_asks() {
        let mut audience = audience();
        audience.ask(seat(3));
        audience.ask(seat(4));
        for client in [1, 2] {
            audience.leave(seat(client));
        }
        audience.give_up(seat(4));
        assert!(!audience.is_noted_in_vain() && audience.prefixes.is_empty());
        audience.leave(seat(3));
        assert!(audience.is_noted_in_vain());
        audience.is_noted_no_more();
        assert!(!audience.is_noted_in_vain());
    }
}
