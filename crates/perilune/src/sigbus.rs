//! Saying which database it was when a page of a mapped file cannot be had, and the kernel ends the process
//! (SIGBUS).

use std::io;

use crate::backend;

/// Lets this process say on the standard error which database it was when the kernel cannot give it a page of
/// one (SIGBUS: the disk failed, or somebody cut the file). The process then ends, as after `kill -9`: with exit
/// status `status`; or, if that is `None`, as it would without this: by what was to be done about the signal
/// before, a handler of the program or the signal itself. Faults elsewhere go there in any case.
///
/// The library installs no handler unless a program asks by this. Only the first call installs one, later calls
/// only change the status, if they have one; a handler that is installed later may chain to it.
///
/// # Errors
/// What `sigaction` says.
pub fn install_sigbus(status: Option<u8>) -> io::Result<()> {
    backend::install_sigbus(status)
}
