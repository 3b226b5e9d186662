//! The arguments of a request: byte strings in a buffer that lies elsewhere, or in one of their own.
//!
//! A request is run where it has been read to: [`Arguments`] are places in that buffer, and nothing is copied. What has to
//! outlive the buffer, as a command behind MULTI, becomes an [`ArgumentsBuf`].
//!
//! Example: of `*2 $3 GET $1 a` argument 0 is `GET` and argument 1 is `a`.
//!
//! Invariant: every place lies inside the buffer.

use std::ops::Index;

/// Where an argument lies: start and end.
pub type Span = [usize; 2];

/// The arguments of one request, the command's name first.
#[derive(Clone, Copy, Debug)]
pub struct Arguments<'a> {
    bytes: &'a [u8],
    spans: &'a [Span],
}

impl<'a> Arguments<'a> {
    /// Those that lie at `spans` of `bytes`, none of which begins behind its end or ends behind theirs: whoever gets one that
    /// does panics.
    #[inline]
    #[must_use]
    pub fn new(bytes: &'a [u8], spans: &'a [Span]) -> Arguments<'a> {
        Arguments { bytes, spans }
    }

    /// How many there are, with the command's name.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there is not even a name.
    #[inline]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The argument at `index`, 0 being the name.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|&[start, end]| &self.bytes[start..end])
    }

    /// All of them, the name first.
    #[inline]
    pub fn iter(self) -> impl DoubleEndedIterator<Item = &'a [u8]> + ExactSizeIterator + Clone + 'a {
        self.spans.iter().map(|&[start, end]| &self.bytes[start..end])
    }

    /// Those from `index` on, as if they were all; none if there are fewer.
    #[inline]
    #[must_use]
    pub fn from(&self, index: usize) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: self.spans.get(index..).unwrap_or(&[]) }
    }

    /// The first `count`, or all if there are fewer.
    #[must_use]
    pub fn first(&self, count: usize) -> Arguments<'a> {
        Arguments { bytes: self.bytes, spans: self.spans.get(..count).unwrap_or(self.spans) }
    }

    /// Bytes from the start of the first to the end of the last.
    #[inline]
    #[must_use]
    pub fn extent(&self) -> usize {
        match (self.spans.first(), self.spans.last()) {
            (Some([start, _]), Some([_, end])) => end - start,
            _ => 0,
        }
    }

    /// A copy with a buffer of its own.
    #[must_use]
    pub fn to_owned(&self) -> ArgumentsBuf {
        let bytes = self.spans.iter().map(|[start, end]| end - start).sum();
        let mut all = ArgumentsBuf::with_capacity(self.len(), bytes);
        self.iter().for_each(|argument| all.push(argument));
        all
    }
}

impl Index<usize> for Arguments<'_> {
    type Output = [u8];

    /// # Panics
    /// If there is no such argument: the caller has counted them.
    #[inline]
    fn index(&self, index: usize) -> &[u8] {
        let [start, end] = self.spans[index];
        &self.bytes[start..end]
    }
}

/// Arguments with a buffer of their own.
#[derive(Clone, Debug, Default)]
pub struct ArgumentsBuf {
    bytes: Vec<u8>,
    spans: Vec<Span>,
}

impl ArgumentsBuf {
    /// None yet, with memory for so many of so many bytes together.
    #[must_use]
    pub fn with_capacity(arguments: usize, bytes: usize) -> ArgumentsBuf {
        ArgumentsBuf { bytes: Vec::with_capacity(bytes), spans: Vec::with_capacity(arguments) }
    }

    /// Adds an argument behind the others.
    #[inline]
    pub fn push(&mut self, argument: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(argument);
        self.spans.push([start, self.bytes.len()]);
    }

    /// Takes all arguments out; the memory stays.
    #[inline]
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.spans.clear();
    }

    /// The arguments.
    #[inline]
    #[must_use]
    pub fn as_arguments(&self) -> Arguments<'_> {
        Arguments::new(&self.bytes, &self.spans)
    }

    /// Bytes of memory that it takes, about.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.capacity() + self.spans.capacity() * size_of::<Span>()
    }

    /// Appends the request as a client sends it.
    pub fn write_request(&self, out: &mut Vec<u8>) {
        let mut replies = crate::Replies::new(out, crate::Protocol::Resp2);
        replies.array(self.spans.len());
        for argument in self.as_arguments().iter() {
            replies.bulk(argument);
        }
    }
}

impl<T: AsRef<[u8]>> FromIterator<T> for ArgumentsBuf {
    fn from_iter<I: IntoIterator<Item = T>>(arguments: I) -> ArgumentsBuf {
        let mut all = ArgumentsBuf::default();
        for argument in arguments {
            all.push(argument.as_ref());
        }
        all
    }
}
