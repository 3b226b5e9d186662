//! How a server's event loops share its clients, told and set by DEBUG LOOPS.

use std::time::{Duration, Instant};

use perilune::{node, LockMode, Session};
use perilune_resp::Answer;

use super::{Client, Ours};

/// How many loops are awake, and how many clients each has.
pub fn loops(client: &mut Client, line: &str) -> Vec<i64> {
    let answer = client.line(line);
    let Answer::Array(numbers) = answer else { panic!("{answer:?}") };
    let number = |answer| match answer {
        Answer::Integer(number) => number,
        other => panic!("{other:?}"),
    };
    numbers.into_iter().map(number).collect()
}

/// Waits until the clients are spread as is wanted, and tells how.
pub fn settled(client: &mut Client, wanted: impl Fn(&[i64]) -> bool) -> Vec<i64> {
    let begun = Instant::now();
    loop {
        let now = loops(client, "debug loops");
        if wanted(&now[1..]) {
            return now;
        }
        assert!(begun.elapsed() < Duration::from_secs(20), "they stay as {now:?}");
        // A loop at rest looks around as it is woken.
        loops(client, &format!("debug loops {}", now[0]));
    }
}

/// Moves all clients of a server with two loops between them: the session `far` of one keeps its lock, and its socket.
pub fn move_with_lock(ours: &Ours, far: &mut Session) {
    let (mut admin, mut near) = (Client::connect(&ours.socket), ours.database.session().expect("a session"));
    let (lock, count) = (node!("^door").expect("a node"), node!("^moves").expect("a node"));
    assert!(far.lock(&lock, LockMode::Exclusive, None).expect("a lock"));
    for moves in 1..=6 {
        loops(&mut admin, &format!("debug loops {}", 1 + moves % 2));
        if moves % 2 == 0 {
            settled(&mut admin, |loads| loads[1] == 0);
        }
        far.increment(&count, 1).expect("it is heard");
        assert_eq!(near.get_int(&count).expect("a count"), Some(moves));
        assert!(!near.lock(&lock, LockMode::Exclusive, Some(Duration::ZERO)).expect("an answer"));
    }
    assert!(far.unlock(&lock).expect("it is heard"));
    assert!(near.lock(&lock, LockMode::Exclusive, None).expect("a lock"));
}
