//! What combines several sorted sets, or sets, whose members count with the score 1: ZUNION, ZINTER,
//! ZDIFF, their STORE forms, ZINTERCARD.

use std::collections::HashMap;

use perilune_resp::{Arguments, Replies};

use super::sets::Set;
use super::zranges::replace;
use super::zsets::{reply, Zset};
use crate::failure::{refuse, refuse_with, Result, SYNTAX, WRONG_TYPE};
use crate::keyspace::{Contents, Keys, Kind, Scored};
use crate::numbers::{double_of, integer, lower, positive};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Aggregate {
    #[default]
    Sum,
    Lowest,
    Highest,
}

impl Aggregate {
    fn of(self, left: f64, right: f64) -> f64 {
        match self {
            // Infinities of both signs cancel out.
            Aggregate::Sum if (left + right).is_nan() => 0.0,
            Aggregate::Sum => left + right,
            Aggregate::Lowest => left.min(right),
            Aggregate::Highest => left.max(right),
        }
    }
}

/// One of the sets that are combined.
enum Source<'n> {
    Zset(Zset<'n>),
    Set(Set<'n>),
    Nothing,
}

impl<'n> Source<'n> {
    fn open(keys: &mut Keys<'_>, name: &'n [u8]) -> Result<Source<'n>> {
        let key = keys.key(name)?;
        match keys.open(&key)?.map(|entry| entry.kind) {
            None => Ok(Source::Nothing),
            Some(Kind::Zset) => Ok(Source::Zset(Zset::open(keys, name)?)),
            Some(Kind::Set) => Ok(Source::Set(Set::open(keys, name)?)),
            Some(_) => refuse(WRONG_TYPE),
        }
    }

    fn count(&self) -> i64 {
        match self {
            Source::Zset(zset) => zset.count,
            Source::Set(set) => set.count(),
            Source::Nothing => 0,
        }
    }

    fn score(&mut self, keys: &mut Keys<'_>, member: &[u8]) -> Result<Option<f64>> {
        match self {
            Source::Zset(zset) => zset.score(keys, member),
            Source::Set(set) => Ok(set.has(keys, member)?.then_some(1.0)),
            Source::Nothing => Ok(None),
        }
    }

    fn all(&mut self, keys: &mut Keys<'_>) -> Result<Vec<Scored>> {
        match self {
            Source::Zset(Zset { entry: Some(entry), key, .. }) => match Contents::read(keys, key, entry)? {
                Contents::Zset(members) => Ok(members),
                _ => Ok(Vec::new()),
            },
            Source::Set(set) => {
                let members = set.all(keys)?;
                Ok(members.into_iter().map(|member| Scored { member, score: 1.0 }).collect())
            }
            _ => Ok(Vec::new()),
        }
    }
}

/// The command, read.
struct Query<'a> {
    operation: Operation,
    names: Arguments<'a>,
    weights: Vec<f64>,
    aggregate: Aggregate,
    with_scores: bool,
    /// Of ZINTERCARD; 0: none.
    limit: usize,
}

impl<'a> Query<'a> {
    /// Reads the number of keys at `at`, the keys, and the options, once the keys are of the right kinds.
    fn parse(
        keys: &mut Keys<'_>,
        arguments: Arguments<'a>,
        at: usize,
    ) -> Result<(Query<'a>, Vec<Source<'a>>)> {
        let command = lower(&arguments[0]).into_owned();
        let (stores, counts) = (at == 2, command == b"zintercard");
        let count = integer(&arguments[at])?;
        if count < 1 {
            let command = String::from_utf8_lossy(&command).into_owned();
            return refuse_with(format!("ERR at least 1 input key is needed for '{command}' command"));
        }
        let rest = arguments.from(at + 1);
        let Some(count) = usize::try_from(count).ok().filter(|count| *count <= rest.len()) else {
            return refuse(SYNTAX);
        };
        let operation = match command.get(..3) {
            Some(b"zun") => Operation::Union,
            Some(b"zin") => Operation::Intersection,
            _ => Operation::Difference,
        };
        let names = rest.first(count);
        let sources = (0..count)
            .map(|index| Source::open(keys, names.get(index).unwrap_or_default()))
            .collect::<Result<_>>()?;
        let mut query = Query {
            operation,
            names,
            weights: vec![1.0; count],
            aggregate: Aggregate::default(),
            with_scores: false,
            limit: 0,
        };
        query.options(rest.from(count), stores, counts)?;
        Ok((query, sources))
    }

    fn options(&mut self, options: Arguments<'_>, stores: bool, counts: bool) -> Result<()> {
        let weighs = self.operation != Operation::Difference && !counts;
        let mut words = options.iter();
        while let Some(word) = words.next() {
            match (&*lower(word), words.len()) {
                (b"weights", left) if weighs && left >= self.names.len() => {
                    for weight in &mut self.weights {
                        *weight = match double_of(words.next().unwrap_or_default()) {
                            Some(weight) => weight,
                            None => return refuse("ERR weight value is not a float"),
                        };
                    }
                }
                (b"aggregate", 1..) if weighs => {
                    self.aggregate = match &*lower(words.next().unwrap_or_default()) {
                        b"sum" => Aggregate::Sum,
                        b"min" => Aggregate::Lowest,
                        b"max" => Aggregate::Highest,
                        _ => return refuse(SYNTAX),
                    };
                }
                (b"withscores", _) if !stores && !counts => self.with_scores = true,
                (b"limit", 1..) if counts => {
                    self.limit = positive(words.next().unwrap_or_default(), "ERR LIMIT can't be negative")?;
                }
                _ => return refuse(SYNTAX),
            }
        }
        Ok(())
    }

    /// The members of the result by score, equal ones by their bytes.
    fn run(&self, keys: &mut Keys<'_>, sources: Vec<Source<'_>>) -> Result<Vec<Scored>> {
        let mut weighed: Vec<(Source<'_>, f64)> =
            sources.into_iter().zip(self.weights.iter().copied()).collect();
        let mut found = match self.operation {
            Operation::Difference => difference(keys, &mut weighed)?,
            operation => {
                // From the smallest on, as Redis does: sums of doubles depend on their order.
                weighed.sort_by_key(|(source, _)| source.count());
                if operation == Operation::Union {
                    self.union(keys, &mut weighed)?
                } else {
                    self.intersection(keys, &mut weighed)?
                }
            }
        };
        found.sort_by(|left, right| {
            left.score.total_cmp(&right.score).then_with(|| left.member.cmp(&right.member))
        });
        Ok(found)
    }

    fn union(&self, keys: &mut Keys<'_>, sources: &mut [(Source<'_>, f64)]) -> Result<Vec<Scored>> {
        let mut all: HashMap<Vec<u8>, f64> = HashMap::new();
        for (source, weight) in sources {
            for Scored { member, score } in source.all(keys)? {
                let score = weigh(score, *weight);
                all.entry(member).and_modify(|sum| *sum = self.aggregate.of(*sum, score)).or_insert(score);
            }
        }
        Ok(all.into_iter().map(|(member, score)| Scored { member, score }).collect())
    }

    fn intersection(&self, keys: &mut Keys<'_>, sources: &mut [(Source<'_>, f64)]) -> Result<Vec<Scored>> {
        let Some(((first, weight), others)) = sources.split_first_mut() else { return Ok(Vec::new()) };
        let mut found = Vec::new();
        'members: for Scored { member, score } in first.all(keys)? {
            let mut sum = weigh(score, *weight);
            for (other, weight) in others.iter_mut() {
                let Some(score) = other.score(keys, &member)? else { continue 'members };
                // NB: not a number stays so until it is summed up; minus zero becomes zero.
                sum = self.aggregate.of(sum, score * *weight + 0.0);
            }
            found.push(Scored { member, score: sum });
            if self.limit > 0 && found.len() >= self.limit {
                break;
            }
        }
        Ok(found)
    }
}

fn difference(keys: &mut Keys<'_>, sources: &mut [(Source<'_>, f64)]) -> Result<Vec<Scored>> {
    let Some(((first, _), others)) = sources.split_first_mut() else { return Ok(Vec::new()) };
    let mut kept = Vec::new();
    'members: for scored in first.all(keys)? {
        for (other, _) in others.iter_mut() {
            if other.score(keys, &scored.member)?.is_some() {
                continue 'members;
            }
        }
        kept.push(scored);
    }
    Ok(kept)
}

/// Zero times infinity is zero, and so is zero times what is negative: members at minus zero would stand before others.
fn weigh(score: f64, weight: f64) -> f64 {
    let weighed = score * weight;
    if weighed.is_nan() || weighed == 0.0 {
        0.0
    } else {
        weighed
    }
}

/// ZUNION, ZINTER, ZDIFF.
pub(crate) fn combined(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (query, sources) = Query::parse(keys, arguments, 1)?;
    let found = query.run(keys, sources)?;
    reply(&found, query.with_scores, replies);
    Ok(())
}

/// ZUNIONSTORE, ZINTERSTORE, ZDIFFSTORE.
pub(crate) fn store(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (query, sources) = Query::parse(keys, arguments, 2)?;
    let found = query.run(keys, sources)?;
    let event = match lower(&arguments[0]).get(..4) {
        Some(b"zuni") => "zunionstore",
        Some(b"zint") => "zinterstore",
        _ => "zdiffstore",
    };
    replace(keys, &arguments[1], &found, event)?;
    replies.count(found.len());
    Ok(())
}

pub(crate) fn zintercard(
    keys: &mut Keys<'_>,
    arguments: Arguments<'_>,
    replies: &mut Replies<'_>,
) -> Result<()> {
    let (query, sources) = Query::parse(keys, arguments, 1)?;
    replies.count(query.run(keys, sources)?.len());
    Ok(())
}
