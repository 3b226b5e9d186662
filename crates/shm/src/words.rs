//! Reading and writing bytes of any offset and size in relaxed words.
