//! What clients are told of keys that have changed, in the words of their protocol, and as it lies in the tree on the way to
//! a client of another server.

use perilune_resp::{parse_integer, Arguments, ArgumentsBuf, Progress, Protocol, Replies, RequestParser};

use super::Names;
use crate::limits::NOTICE_BYTES;
use perilune_net::seat::Seat;

/// A client, anywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) server: i64,
    pub(crate) seat: Seat,
}

/// What a client is told of keys that another one has read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Notice {
    pub(crate) to: Place,
    /// Who is told if `to` has gone.
    pub(crate) from: Place,
    /// `from` has gone: that is all that is told.
    pub(crate) is_broken: bool,
    pub(crate) names: Names,
}

impl Place {
    fn words(self) -> [String; 4] {
        [self.server, self.seat.thread as i64, self.seat.token as i64, self.seat.client]
            .map(|word| word.to_string())
    }

    fn of(words: Arguments<'_>) -> Option<Place> {
        let number = |index: usize| words.get(index).and_then(parse_integer);
        let (thread, token) = (usize::try_from(number(1)?).ok()?, usize::try_from(number(2)?).ok()?);
        Some(Place { server: number(0)?, seat: Seat { thread, token, client: number(3)? } })
    }

    /// As one loop tells another where a client is.
    pub(crate) fn to_text(self) -> String {
        self.words().join(" ")
    }

    pub(crate) fn parse(text: &[u8]) -> Option<Place> {
        let words: ArgumentsBuf = text.split(|byte| *byte == b' ').collect();
        Place::of(words.as_arguments())
    }
}

impl Notice {
    /// What `from` is told when `to` has gone.
    pub(crate) fn returned(&self) -> Notice {
        Notice { to: self.from, from: self.to, is_broken: true, names: None }
    }

    /// As it is put down in the tree.
    pub(crate) fn record(&self) -> Vec<u8> {
        let mut words = ArgumentsBuf::default();
        for word in self.to.words().iter().chain(&self.from.words()) {
            words.push(word.as_bytes());
        }
        let bytes: usize = self.names.iter().flatten().map(Vec::len).sum();
        match &self.names {
            _ if self.is_broken => words.push(b"broken"),
            Some(names) if bytes <= NOTICE_BYTES => {
                words.push(b"names");
                names.iter().for_each(|name| words.push(name));
            }
            // Whoever forgets everything forgets these.
            _ => words.push(b"all"),
        }
        let mut record = Vec::new();
        words.write_request(&mut record);
        record
    }

    /// What is put down in the tree, if it is understood.
    pub(crate) fn parse(record: &[u8]) -> Option<Notice> {
        let mut parser = RequestParser::default();
        let Ok(Progress::Complete { .. }) = parser.parse(record, true) else { return None };
        let words = parser.arguments(record);
        let (to, from) = (Place::of(words)?, Place::of(words.get(4).map(|_| words.from(4))?)?);
        let names = match words.get(8)? {
            b"names" => Some(words.from(9).iter().map(<[u8]>::to_vec).collect()),
            _ => None,
        };
        Some(Notice { to, from, is_broken: words.get(8) == Some(b"broken"), names })
    }
}

/// As a client is told of what it has read itself; nothing if it speaks RESP2, which has no words for that.
pub(crate) fn pushed(names: &Names, protocol: Protocol) -> Vec<u8> {
    let mut frame = Vec::new();
    if protocol == Protocol::Resp3 {
        let mut replies = Replies::new(&mut frame, protocol);
        replies.push(2);
        replies.bulk(b"invalidate");
        list(names, &mut replies);
    }
    frame
}

/// As a client is told of what another one has read: by a push, or in RESP2 as a message, if it is subscribed to anything.
pub(crate) fn published(names: &Names, protocol: Protocol, is_subscribed: bool) -> Vec<u8> {
    if protocol == Protocol::Resp3 || !is_subscribed {
        return pushed(names, protocol);
    }
    let mut frame = Vec::new();
    let mut replies = Replies::new(&mut frame, protocol);
    replies.array(3);
    replies.bulk(b"message");
    replies.bulk(b"__redis__:invalidate");
    list(names, &mut replies);
    frame
}

fn list(names: &Names, replies: &mut Replies<'_>) {
    match names {
        None => replies.null(),
        Some(names) => {
            replies.array(names.len());
            names.iter().for_each(|name| replies.bulk(name));
        }
    }
}

/// As a client is told that the one that it redirects to has gone.
pub(crate) fn broken(target: i64, protocol: Protocol) -> Vec<u8> {
    let mut frame = Vec::new();
    if protocol == Protocol::Resp3 {
        let mut replies = Replies::new(&mut frame, protocol);
        replies.push(2);
        replies.bulk(b"tracking-redir-broken");
        replies.integer(target);
    }
    frame
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_come_out_of_the_tree_as_they_went_in() {
        let seat = |client| Seat { thread: 1, token: 2, client };
        let (to, from) = (Place { server: 7, seat: seat(8) }, Place { server: 9, seat: seat(10) });
        for names in [None, Some(vec![]), Some(vec![b"a\r\n".to_vec(), Vec::new()])] {
            let notice = Notice { to, from, is_broken: false, names };
            assert_eq!(Notice::parse(&notice.record()), Some(notice.clone()));
            assert_eq!(Notice::parse(&notice.returned().record()), Some(notice.returned()));
        }
        let long = Notice { to, from, is_broken: false, names: Some(vec![vec![b'x'; NOTICE_BYTES + 1]]) };
        assert_eq!(Notice::parse(&long.record()).and_then(|notice| notice.names), None);
        assert_eq!(Place::parse(to.to_text().as_bytes()), Some(to));
        assert_eq!(Notice::parse(b"*1\r\n$1\r\nx\r\n"), None);
    }
}
