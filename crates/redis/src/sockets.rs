//! What the settings say of sockets and of TLS, as `perilune_net` wants it.
//!
//! Example: `port 6379`, `tls-port 6380` and `unixsocket /run/p.sock` make three kinds of listeners in one [`Listeners`].
//!
//! Invariant: an error names the setting that has to be changed.

use std::sync::Arc;

use perilune_net::listener::{Listeners, Places};
use perilune_net::tls::{self, Clients, NamedFile, TlsError, TlsFiles};
use rustls::ServerConfig;

use crate::settings::{Name, Settings};
use crate::start_error::StartError;

/// Opens the sockets that clients connect to; `is_shared` says whether another server of the database serves a port.
pub(crate) fn open(
    settings: &Settings,
    is_shared: impl FnMut(u16) -> perilune::Result<bool>,
) -> Result<Listeners, StartError> {
    let places = Places {
        bind: &settings.bind,
        port: match settings.port {
            _ if settings.any_port => Some(0),
            0 => None,
            port => Some(port),
        },
        tls_port: settings.number(Name::TlsPort) as u16,
        backlog: settings.number(Name::TcpBacklog) as i32,
        unix: settings.unix_socket.as_deref().map(|path| (path, settings.unix_socket_mode)),
    };
    Listeners::open(&places, is_shared).map_err(|error| StartError::of_listening(error, ""))
}

/// The configuration that `tls-...` settings make; none if `tls-port` is 0.
///
/// # Errors
/// What is missing or cannot be read, and which setting says so.
pub(crate) fn tls(settings: &Settings) -> Result<Option<Arc<ServerConfig>>, String> {
    if settings.number(Name::TlsPort) == 0 {
        return Ok(None);
    }
    let given = |name: Name| settings.path(name).map(|path| NamedFile { setting: name.row().name, path });
    let needed = |name: Name| {
        given(name).ok_or_else(|| format!("`tls-port` needs `{}`: a file in PEM", name.row().name))
    };
    let files = TlsFiles {
        certificates: needed(Name::TlsCertFile)?,
        key: needed(Name::TlsKeyFile)?,
        authorities: given(Name::TlsCaCertFile),
        more_authorities: given(Name::TlsCaCertDir),
        clients: match &*settings.text(Name::TlsAuthClients) {
            "no" => Clients::Unknown,
            "optional" => Clients::MayShow,
            _ => Clients::MustShow,
        },
        versions: settings.text(Name::TlsProtocols).to_string(),
    };
    tls::configuration(&files).map(Some).map_err(|error| match error {
        TlsError::Wrong(text) => text,
        TlsError::NoAuthority => "`tls-port` needs `tls-ca-cert-file` or `tls-ca-cert-dir`, in PEM; or set \
                                  `tls-auth-clients no`: then passwords alone tell clients"
            .to_owned(),
    })
}
