//! A library of C of the system, found at run time: what all peers of that kind share.
//!
//! Libraries are never unloaded: what was found in them is used until the process ends.

/// Declares the functions of a library by hand, as `NAME: "SYMBOL" fn(TYPES) -> TYPE;`, after the file to load and the
/// package to install: a struct `Functions` of them, and `functions()`, which loads the library at its first call and
/// says what to install where that fails.
///
/// The types must be those of the library's header; they are the proof that calls are sound.
macro_rules! library {
    ($file:literal, $package:literal; $($field:ident: $symbol:literal fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        /// The functions, by short names.
        pub(crate) struct Functions {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        /// The functions, loaded at the first call.
        ///
        /// # Errors
        /// The library is not installed, or is another version.
        pub(crate) fn functions() -> $crate::subject::Result<&'static Functions> {
            static LOADED: std::sync::OnceLock<std::result::Result<Functions, String>> = std::sync::OnceLock::new();
            let loaded = LOADED.get_or_init(|| {
                // SAFETY: the library of the system has no constructors that ask anything of us.
                let library = unsafe { libloading::Library::new($file) };
                let library = library.map_err(|error| format!("install {}: {error}", $package))?;
                let find = || -> std::result::Result<Functions, libloading::Error> {
                    // SAFETY: the types are those of the header; the library is never unloaded.
                    Ok(unsafe { Functions { $($field: *library.get(concat!($symbol, "\0").as_bytes())?,)* } })
                };
                let found = find().map_err(|error| format!("this {} is another version: {error}", $file));
                std::mem::forget(library);
                found
            });
            loaded.as_ref().map_err(|error| error.clone().into())
        }
    };
}
pub(crate) use library;

/// Appends bytes that a library has answered.
///
/// # Safety
/// `length` bytes can be read there while this runs; where it is 0, anything may stand.
pub(crate) unsafe fn append(start: *const u8, length: usize, to: &mut Vec<u8>) {
    if length > 0 {
        // SAFETY: the caller's.
        to.extend_from_slice(unsafe { std::slice::from_raw_parts(start, length) });
    }
}
