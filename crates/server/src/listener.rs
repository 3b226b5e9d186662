//! The sockets that clients connect to.
//!
//! Every TCP socket has SO_REUSEPORT, so that several servers of one database share a port. The kernel deals
//! connections out to all who have it: a port that a server of another database serves must not be shared.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use mio::net::{TcpListener, UnixListener};
use socket2::{Domain, Protocol, Socket, Type};

use crate::settings::{Name, Settings};
use crate::start_error::StartError;

const NOTHING: &str =
    "there is nothing to listen at: set `port` or `tls-port` with an address in `bind`, or `unixsocket`";

/// All of them.
#[derive(Debug)]
pub(crate) struct Listeners {
    pub(crate) tcp: Vec<TcpListener>,
    /// From here on `tcp` are those of `tls-port`.
    pub(crate) tls_from: usize,
    pub(crate) unix: Option<UnixListener>,
}

impl Listeners {
    /// `is_shared` says whether another server of the database serves a port.
    pub(crate) fn open(
        settings: &Settings,
        mut is_shared: impl FnMut(u16) -> perilune::Result<bool>,
    ) -> Result<Listeners, StartError> {
        let plain = if settings.any_port { 0 } else { settings.port };
        let ports = [plain, settings.number(Name::TlsPort) as u16];
        for port in ports.into_iter().filter(|port| *port != 0) {
            if let Some(address) = taken(settings, port) {
                if !is_shared(port)? {
                    return Err(StartError::Taken { address });
                }
            }
        }
        let mut tcp = match settings.port {
            _ if settings.any_port => listen_everywhere(settings, 0)?,
            0 => Vec::new(),
            port => listen_everywhere(settings, port)?,
        };
        let tls_from = tcp.len();
        if ports[1] != 0 {
            tcp.extend(listen_everywhere(settings, ports[1])?);
        }
        let unix = match &settings.unix_socket {
            None => None,
            Some(path) => Some(
                listen_unix(path, settings.unix_socket_mode)
                    .map_err(|source| StartError::Listen { place: path.display().to_string(), source })?,
            ),
        };
        if tcp.is_empty() && unix.is_none() {
            return Err(StartError::Setting(NOTHING.to_owned()));
        }
        Ok(Listeners { tcp, tls_from, unix })
    }

    pub(crate) fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.tcp.iter().map(TcpListener::local_addr).collect()
    }
}

/// The first address of `bind` at whose `port` somebody listens.
fn taken(settings: &Settings, port: u16) -> Option<SocketAddr> {
    let addresses = settings.bind.iter().filter_map(|place| place.trim_start_matches('-').parse().ok());
    addresses.map(|address: IpAddr| SocketAddr::new(address, port)).find(|address| {
        // Without SO_REUSEPORT it can be bound beside others who try, but not beside one who listens.
        let bound = socket(*address).and_then(|socket| socket.bind(&(*address).into()));
        bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    })
}

/// A socket for each address of `bind`.
fn listen_everywhere(settings: &Settings, mut port: u16) -> Result<Vec<TcpListener>, StartError> {
    let mut tcp = Vec::new();
    let backlog = settings.number(Name::TcpBacklog) as i32;
    for place in &settings.bind {
        let (optional, address) = match place.strip_prefix('-') {
            Some(address) => (true, address),
            None => (false, place.as_str()),
        };
        let opened = address
            .parse::<IpAddr>()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
            .and_then(|address| listen(SocketAddr::new(address, port), backlog));
        match opened {
            Ok(listener) => {
                // All addresses share the port that the first one was given.
                port = listener.local_addr()?.port();
                tcp.push(listener);
            }
            Err(_) if optional => {}
            Err(source) => {
                return Err(StartError::Listen { place: format!("{address} port {port}"), source })
            }
        }
    }
    Ok(tcp)
}

fn socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.set_reuse_address(true)?;
    Ok(socket)
}

fn listen(address: SocketAddr, backlog: i32) -> io::Result<TcpListener> {
    let socket = socket(address)?;
    socket.set_reuse_port(true)?;
    socket.set_nonblocking(true)?;
    socket.bind(&address.into())?;
    socket.listen(backlog)?;
    Ok(TcpListener::from_std(socket.into()))
}

fn listen_unix(path: &Path, mode: u32) -> io::Result<UnixListener> {
    // A socket that a dead server left; anything else is not ours to remove.
    if fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket()) {
        if UnixStream::connect(path).is_ok() {
            return Err(io::ErrorKind::AddrInUse.into());
        }
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode))?;
    Ok(listener)
}
