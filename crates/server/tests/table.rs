//! The table of commands beside the one of Redis.

mod peer;

use std::collections::BTreeSet;

use peer::{Client, Ours, Place, Redis, Text};
use perilune_resp::Answer;
use perilune_server::Settings;

fn names(client: &mut Client) -> BTreeSet<String> {
    let Answer::Array(names) = client.line("command list") else { panic!("a list") };
    names.iter().map(Text::to_text).collect()
}

/// What Redis has is here, or answers why it is not.
#[test]
fn no_command_of_redis_is_unknown() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, Settings::default()), Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    let here = names(&mut ours);
    for name in names(&mut theirs).difference(&here) {
        let answer = ours.line(&name.replace('|', " ")).to_text();
        assert!(answer.starts_with("ERR ") && !answer.starts_with("ERR unknown"), "{name}: {answer}");
    }
}
