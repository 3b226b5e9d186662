//! The facets `Deferral` and `ReadSets`: a commit whose wait for the disk comes later, for several at once; and
//! reads of one transaction that a later one depends on, so that it conflicts if they no longer hold.

use perilune_store::{Deferral, Error, Facets, ReadSets, Session, Store, Transactions};

use super::{begin, has, session, value, Verdict};

/// Writes that leave their wait for durability to later.
pub fn deferral<S: Store>(make: &impl Fn() -> S) -> Verdict {
    let store = make();
    let (mut s, mut other) = (session(&store), session(&store));
    let Some(deferral) = s.deferral() else { return Verdict::Missing };
    assert!(!deferral.is_unsettled(), "nothing was written yet");
    deferral.defer(true);
    s.set(b"a\0", b"1").unwrap();
    assert_eq!(value(&mut other, b"a\0").as_deref(), Some(&b"1"[..]), "others see it before it is settled");
    has(s.deferral()).settle().unwrap();
    assert!(!has(s.deferral()).is_unsettled(), "settled");
    has(s.deferral()).defer(false);
    s.set(b"a\0", b"2").unwrap();
    assert!(!has(s.deferral()).is_unsettled(), "a write that has waited leaves nothing");
    Verdict::Kept
}

/// Transactions that rest on what others have read.
pub fn read_sets<S: Store>(make: &impl Fn() -> S) -> Verdict {
    let store = make();
    let (mut a, mut b) = (session(&store), session(&store));
    if a.read_sets().is_none() {
        return Verdict::Missing;
    }
    b.set(b"x\0", b"1").unwrap();
    begin(&mut a);
    assert!(value(&mut a, b"x\0").is_some());
    let kept = has(a.read_sets()).keep_reads().expect("one read is noted");
    a.commit().unwrap();
    for is_changed in [false, true] {
        if is_changed {
            b.set(b"x\0", b"2").unwrap();
        }
        begin(&mut a);
        let holds = has(a.read_sets()).rest_on(std::slice::from_ref(&kept)).unwrap();
        assert_eq!(holds, !is_changed, "what was read is still so unless somebody has changed it");
        a.rollback().unwrap();
    }
    begin(&mut a);
    assert!(value(&mut a, b"x\0").is_some());
    let kept = has(a.read_sets()).keep_reads().expect("one read is noted");
    a.rollback().unwrap();
    begin(&mut a);
    assert!(has(a.read_sets()).rest_on(&[kept]).unwrap());
    a.set(b"y\0", b"1").unwrap();
    b.set(b"x\0", b"3").unwrap();
    super::assert_error!(a.commit(), Error::Conflict, "a commit that rests on what no longer holds");
    Verdict::Kept
}
