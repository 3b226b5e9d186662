//! What each peer must do before it is measured, on every peer that is installed.

use super::all;
use crate::data::{essence_of, value};
use crate::scratch::Scratch;
use crate::subject::{Class, Passage, Peer, Session, Tree};

/// Runs `body` with a session on a fresh database of each peer.
fn each(name: &str, body: impl Fn(&Peer, &mut dyn Session)) {
    let mut tested = 0;
    for peer in [Class::D1, Class::D3, Class::D4].into_iter().flat_map(all) {
        if let Err(why) = (peer.version)() {
            println!("{} is left out: {why}", peer.name);
            continue;
        }
        let directory = format!("{name}-{}-{}-{}", peer.name, peer.class.name(), std::process::id());
        let scratch = Scratch::new(&std::env::temp_dir(), &directory).unwrap();
        let database = (peer.open)(scratch.path(), 1).unwrap();
        body(&peer, &mut *database.session().unwrap());
        tested += 1;
    }
    assert!(tested >= 3, "ours, redb and BTreeMap are always there");
}

#[test]
fn values_are_kept_and_trees_apart() {
    each("values", |peer, session| {
        let name = peer.name;
        assert_eq!(session.get(Tree::Data, 5).unwrap(), None, "{name}");
        for number in [0, 5, 255, 256, 1_570_824_736] {
            session.set(Tree::Data, number, value(number, 1)).unwrap();
            session.set(Tree::Data, number, value(number, 2)).unwrap();
            session.set(Tree::Step, number, -1).unwrap();
            assert_eq!(session.get(Tree::Data, number).unwrap(), Some(value(number, 2)), "{name}");
            assert_eq!(session.get(Tree::Step, number).unwrap(), Some(-1), "{name}");
        }
        let wanted = essence_of(5).wrapping_add(essence_of(256));
        assert_eq!(session.get_each(Tree::Data, &[5, 256]).unwrap(), wanted, "{name}");
        assert_eq!(session.get_snapshot(Tree::Data, &[5, 256]).unwrap(), wanted, "{name}");
        assert!(session.get_each(Tree::Data, &[5, 6]).is_err(), "{name}");
        assert!(session.get_snapshot(Tree::Data, &[5, 6]).is_err(), "{name}");
        assert_eq!(session.increment(Tree::Counter, 0, 2).unwrap(), 2, "{name}");
        assert_eq!(session.increment(Tree::Counter, 0, 40).unwrap(), 42, "{name}");
        assert_eq!(session.lock_unlock(0).is_ok(), peer.abilities.locks, "{name}");
    });
}

#[test]
fn a_tree_is_walked_in_order_and_to_its_end() {
    each("walk", |peer, session| {
        let name = peer.name;
        session.fill(Tree::Counter, &mut (0..3).map(|number| (number, 7))).unwrap();
        session.fill(Tree::Data, &mut (0..1_000).map(|number| (number, value(number, 1)))).unwrap();
        let sum = |of: fn(u64) -> u64| (0..1_000).map(of).fold(0, u64::wrapping_add);
        let wanted = Passage { entries: 1_000, numbers: sum(|number| number), values: sum(essence_of) };
        assert_eq!(session.scan(Tree::Data, u64::MAX).unwrap(), wanted, "{name}");
        assert_eq!(session.walk(Tree::Data, u64::MAX).unwrap().entries, 1_000, "{name}");
        assert_eq!(session.scan(Tree::Data, 999).unwrap().entries, 999, "{name}");
        assert_eq!(session.walk(Tree::Data, 999).unwrap().entries, 999, "{name}");
        assert_eq!(session.scan(Tree::Bank, u64::MAX).unwrap(), Passage::default(), "{name}");
        assert_eq!(session.walk(Tree::Taken, u64::MAX).unwrap().entries, 0, "{name}");
    });
}

#[test]
fn a_pair_is_updated_as_one() {
    each("pair", |peer, session| {
        let name = peer.name;
        session.fill(Tree::Bank, &mut (0..2).map(|number| (number, 10))).unwrap();
        session.transfer_each(&[[0, 1], [0, 1], [1, 0]]).unwrap();
        assert_eq!(session.get(Tree::Bank, 0).unwrap(), Some(9), "{name}");
        assert_eq!(session.get(Tree::Bank, 1).unwrap(), Some(11), "{name}");
        let mut seen = [Some(0); 2];
        session
            .update_pair(Tree::Record, [0, 1], &mut |now| {
                seen = now;
                [Some(3), None]
            })
            .unwrap();
        assert_eq!(seen, [None, None], "{name}");
        assert_eq!(session.get(Tree::Record, 0).unwrap(), Some(3), "{name}");
        assert_eq!(session.get(Tree::Record, 1).unwrap(), None, "{name}");
        assert!(session.transfer_each(&[[0, 77]]).is_err(), "{name}");
    });
}
