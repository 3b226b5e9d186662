//! Ranks, counts and ranges of sorted sets of thousands of members, which lie in many pages: the replies are those of a
//! redis-server, alone, in MULTI behind writes of its own, and in a script.

use crate::peer::{Client, Ours, Place, Redis};
use perilune_redis::Settings;

const MEMBERS: u64 = 4_000;
const QUESTIONS: u64 = 300;

/// Numbers that look random.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }
}

/// Both servers.
struct Pair {
    ours: Client,
    redis: Client,
}

impl Pair {
    fn ask(&mut self, line: &str) {
        let ours = self.ours.line(line);
        assert_eq!(ours, self.redis.line(line), "{line}");
    }

    fn fill(&mut self) {
        for first in (0..MEMBERS).step_by(100) {
            let range = first..first + 100;
            let scored =
                range.clone().map(|number| format!(" {} m{:05}", number / 3, number * 7919 % MEMBERS));
            self.ask(&format!("zadd z{}", scored.collect::<String>()));
            let equal = range.map(|number| {
                format!(" 0 {:04}{}", number * 7919 % MEMBERS, "x".repeat(number as usize % 90))
            });
            self.ask(&format!("zadd lex{}", equal.collect::<String>()));
        }
    }

    /// Takes some away, also all of a stretch, so that pages are sparse and empty.
    fn thin(&mut self) {
        for number in (0..MEMBERS).filter(|number| number % 5 == 0) {
            self.ask(&format!("zrem z m{number:05}"));
        }
        self.ask("zremrangebyrank z 700 1500");
        self.ask("zremrangebylex lex [0900 (1700");
    }
}

fn question(chance: &mut Chance) -> String {
    let (rank, width) = (chance.below(MEMBERS + 100) as i64 - 50, chance.below(5) as i64);
    let member = format!("m{:05}", chance.below(MEMBERS));
    let (low, high) = (chance.below(MEMBERS / 3), chance.below(MEMBERS / 3));
    let (from, to) = (format!("{:04}", chance.below(MEMBERS)), format!("{:04}", chance.below(MEMBERS)));
    let skip = chance.below(3_000);
    match chance.below(15) {
        0 => format!("zrank z {member}"),
        1 => format!("zrevrank z {member}"),
        2 => format!("zrange z {rank} {}", rank + width),
        3 => format!("zrevrange z {rank} {} withscores", rank + width),
        4 => format!("zrange z -{} -{}", rank.abs() + 2, rank.abs()),
        5 => format!("zcount z {low} {high}"),
        6 => format!("zcount z ({low} +inf"),
        7 => format!("zlexcount lex [{from} ({to}"),
        8 => format!("zlexcount lex - [{to}"),
        9 => format!("zrangebyscore z {low} +inf limit {skip} 3"),
        10 => format!("zrevrangebyscore z ({high} {low} limit {skip} 3"),
        11 => format!("zrange z {low} {high} byscore limit {} -1", skip / 8),
        12 => format!("zrangebylex lex [{from} + limit {skip} 2"),
        13 => format!("zrange lex ({to} - bylex rev limit {skip} 2"),
        _ => format!("zcount z -inf ({high}"),
    }
}

#[test]
fn answers_are_those_of_redis() {
    let place = Place::new();
    let server = Ours::start(&place, Settings { threads: 1, ..Settings::default() });
    let redis = Redis::start(&place);
    let mut pair = Pair { ours: Client::connect(&server.socket), redis: Client::connect(&redis.socket) };
    let mut chance = Chance(0x9E37_79B9_7F4A_7C15);
    pair.fill();
    for round in 0..2 {
        for _ in 0..QUESTIONS {
            pair.ask(&question(&mut chance));
        }
        for _ in 0..QUESTIONS / 10 {
            pair.ask("multi");
            pair.ask(&format!("zadd z {} new", chance.below(MEMBERS / 3)));
            for _ in 0..5 {
                pair.ask(&question(&mut chance));
            }
            pair.ask("zrank z new");
            pair.ask("zrem z new");
            pair.ask("exec");
            let member = format!("m{:05}", chance.below(MEMBERS));
            for client in [&mut pair.ours, &mut pair.redis] {
                client.call(["set", "got", "none"]);
                let script = "local r = redis.call('zrank', KEYS[1], ARGV[1]) or -1
                    local low = redis.call('zrange', KEYS[1], r, r + 1)
                    redis.call('set', 'got', r .. ' ' .. redis.call('zcount', KEYS[1], 5, 900) .. ' ' .. table.concat(low, ','))
                    return 'done'";
                client.call(["eval", script, "2", "z", "got", &member]);
            }
            pair.ask("get got");
        }
        if round == 0 {
            pair.thin();
        }
    }
}
