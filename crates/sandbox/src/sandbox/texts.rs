//! The arguments of a question, as they come from C: bytes that lie one behind the other.

/// Arguments of a question.
#[derive(Clone, Copy, Debug)]
pub struct Texts<'a> {
    pub(super) bytes: &'a [u8],
    pub(super) spans: &'a [[usize; 2]],
}

impl<'a> Texts<'a> {
    /// How many arguments there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The one at `index`.
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> Option<&'a [u8]> {
        self.spans.get(index).map(|&[start, end]| &self.bytes[start..end])
    }

    /// All of them.
    #[inline]
    pub fn iter(self) -> impl Iterator<Item = &'a [u8]> + 'a {
        self.spans.iter().map(move |&[start, end]| &self.bytes[start..end])
    }

    /// The bytes that all of them lie in.
    #[inline]
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where each begins and ends there.
    #[inline]
    #[must_use]
    pub fn spans(&self) -> &'a [[usize; 2]] {
        self.spans
    }
}
