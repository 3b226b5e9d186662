//! The table of commands beside the one of Redis.

use std::collections::{BTreeMap, BTreeSet};

use crate::peer::{Client, Ours, Place, Redis, Text};
use perilune_redis::Settings;
use perilune_resp::Answer;

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

/// A map as RESP2 tells it.
fn fields(answer: &Answer) -> BTreeMap<String, Answer> {
    let Answer::Array(all) = answer else { panic!("no map: {answer:?}") };
    all.chunks(2).map(|pair| (pair[0].to_text(), pair[1].clone())).collect()
}

/// COMMAND DOCS of Redis, with the words of containers: what is said here too is the same.
#[test]
fn commands_are_documented_as_redis_documents_them() {
    fn compare(ours: &Answer, theirs: &Answer, path: &str) -> usize {
        let (ours, theirs) = (fields(ours), fields(theirs));
        let mut count = 0;
        for (name, ours) in &ours {
            let Some(theirs) = theirs.get(name) else { continue };
            let (here, there) = (fields(ours), fields(theirs));
            for field in ["since", "group", "doc_flags", "deprecated_since", "arguments"] {
                // The category of ACL that WAIT belongs to is that of its group here.
                if (&**name, field) == ("wait", "group") {
                    continue;
                }
                assert_eq!(here.get(field), there.get(field), "{field} of {path}{name}");
            }
            if let (Some(ours), Some(theirs)) = (here.get("subcommands"), there.get("subcommands")) {
                count += compare(ours, theirs, name);
            }
            count += 1;
        }
        count
    }
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, Settings::default()), Redis::start(&place));
    let (mut ours, mut theirs) = (Client::connect(&ours.socket), Client::connect(&redis.socket));
    let count = compare(&ours.line("command docs"), &theirs.line("command docs"), "");
    assert!(count > 270, "only {count} commands were compared");
}

/// Categories of COMMAND INFO, by name.
fn categories(answer: &Answer, told: &mut BTreeMap<String, BTreeSet<String>>) {
    let Answer::Array(all) = answer else { panic!("no infos: {answer:?}") };
    for info in all {
        let Answer::Array(parts) = info else { panic!("no info: {info:?}") };
        let Answer::Array(categories_of) = &parts[6] else { panic!("no categories: {info:?}") };
        told.insert(parts[0].to_text(), categories_of.iter().map(Text::to_text).collect());
        categories(&parts[9], told);
    }
}

/// A rule by category gives here what it gives there.
#[test]
fn commands_belong_to_the_categories_that_those_of_redis_belong_to() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, Settings::default()), Redis::start(&place));
    let (mut here, mut there) = (BTreeMap::new(), BTreeMap::new());
    categories(&Client::connect(&ours.socket).line("command"), &mut here);
    categories(&Client::connect(&redis.socket).line("command"), &mut there);
    let both: Vec<_> = here.keys().filter(|name| there.contains_key(*name)).collect();
    assert!(both.len() > 270, "only {} commands were compared", both.len());
    // A container is in the categories of its words here, and HELP with it; there it is in none. MEMORY only reads.
    let is_container = |name: &str| there.keys().any(|other| other.starts_with(&format!("{name}|")));
    let known = |name: &str| {
        is_container(name)
            || name.ends_with("|help")
            || matches!(name, "memory|doctor" | "memory|malloc-stats" | "memory|purge" | "memory|stats")
    };
    let differing: Vec<_> = both
        .iter()
        .filter(|name| !known(name) && here[**name] != there[**name])
        .map(|name| format!("{name}: {:?}, there {:?}", here[*name], there[*name]))
        .collect();
    assert_eq!(differing, [] as [String; 0]);
}

/// Names, arity and tips of COMMAND INFO, by name.
fn infos(answer: &Answer, told: &mut BTreeMap<String, (Answer, Answer)>) {
    let Answer::Array(all) = answer else { panic!("no infos: {answer:?}") };
    for info in all {
        let Answer::Array(parts) = info else { panic!("no info: {info:?}") };
        told.insert(parts[0].to_text(), (parts[1].clone(), parts[7].clone()));
        infos(&parts[9], told);
    }
}

#[test]
fn commands_take_as_many_arguments_as_those_of_redis_and_have_their_tips() {
    let place = Place::new();
    let (ours, redis) = (Ours::start(&place, Settings::default()), Redis::start(&place));
    let (mut here, mut there) = (BTreeMap::new(), BTreeMap::new());
    infos(&Client::connect(&ours.socket).line("command"), &mut here);
    infos(&Client::connect(&redis.socket).line("command"), &mut there);
    let both: Vec<_> = here.keys().filter(|name| there.contains_key(*name)).collect();
    assert!(both.len() > 270, "only {} commands were compared", both.len());
    for name in both {
        assert_eq!(here[name], there[name], "{name}");
    }
}
