//! The sockets that clients connect to.
//!
//! Every TCP socket has SO_REUSEPORT, so that several servers of one kind, of one database for
//! example, share a port. The kernel deals connections out to all who have it: a port that any other program serves must not
//! be shared.

use std::fs;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::path::Path;

use mio::net::{TcpListener, UnixListener};
use socket2::{Domain, Protocol, Socket, Type};

/// Where to listen.
#[derive(Clone, Copy, Debug)]
pub struct Places<'a> {
    /// Addresses; those that begin with `-` need not be there.
    pub bind: &'a [String],
    /// Of plain sockets; none: there are none of these, 0: any port.
    pub port: Option<u16>,
    /// Of sockets with TLS; 0: there are none of these.
    pub tls_port: u16,
    /// Connections that wait to be accepted, as the kernel is told.
    pub backlog: i32,
    /// A socket of this machine, and its permissions.
    pub unix: Option<(&'a Path, u32)>,
}

/// Why nobody can connect.
#[derive(Debug)]
pub enum ListenError<E> {
    /// An address or a socket is not to be had.
    Socket {
        /// Which.
        place: String,
        /// What the system says.
        source: io::Error,
    },
    /// Somebody listens there with whom the port is not to be shared.
    Taken {
        /// Where.
        address: SocketAddr,
    },
    /// No place is given.
    Nowhere,
    /// The system refuses something else.
    Io(io::Error),
    /// Who else serves a port could not be found out.
    Sharing(E),
}

impl<E> From<io::Error> for ListenError<E> {
    fn from(error: io::Error) -> ListenError<E> {
        ListenError::Io(error)
    }
}

/// All of them.
#[derive(Debug)]
pub struct Listeners {
    /// By TCP, the plain ones first.
    pub tcp: Vec<TcpListener>,
    /// From here on `tcp` are those of `tls-port`.
    pub tls_from: usize,
    /// A socket of this machine.
    pub unix: Option<UnixListener>,
}

impl Listeners {
    /// `is_shared` says whether another server of the same kind serves a port, so that it may be shared.
    ///
    /// # Errors
    /// A place is not to be had, or is somebody else's.
    pub fn open<E>(
        places: &Places<'_>,
        mut is_shared: impl FnMut(u16) -> Result<bool, E>,
    ) -> Result<Listeners, ListenError<E>> {
        let ports = [places.port.unwrap_or(0), places.tls_port];
        for port in ports.into_iter().filter(|port| *port != 0) {
            if let Some(address) = taken(places, port) {
                if !is_shared(port).map_err(ListenError::Sharing)? {
                    return Err(ListenError::Taken { address });
                }
            }
        }
        let mut tcp = match places.port {
            None => Vec::new(),
            Some(port) => listen_everywhere(places, port)?,
        };
        let tls_from = tcp.len();
        if places.tls_port != 0 {
            tcp.extend(listen_everywhere(places, places.tls_port)?);
        }
        let unix = match places.unix {
            None => None,
            Some((path, mode)) => Some(
                listen_unix(path, mode)
                    .map_err(|source| ListenError::Socket { place: path.display().to_string(), source })?,
            ),
        };
        if tcp.is_empty() && unix.is_none() {
            return Err(ListenError::Nowhere);
        }
        Ok(Listeners { tcp, tls_from, unix })
    }

    /// Where clients connect by TCP, with the ports that were given.
    ///
    /// # Errors
    /// The system does not say.
    pub fn addresses(&self) -> io::Result<Vec<SocketAddr>> {
        self.tcp.iter().map(TcpListener::local_addr).collect()
    }
}

/// The first address of `bind` at whose `port` somebody listens.
fn taken(places: &Places<'_>, port: u16) -> Option<SocketAddr> {
    let addresses = places.bind.iter().filter_map(|place| place.trim_start_matches('-').parse().ok());
    addresses.map(|address: IpAddr| SocketAddr::new(address, port)).find(|address| {
        // Without SO_REUSEPORT it can be bound beside others who try, but not beside one who listens.
        let bound = socket(*address).and_then(|socket| socket.bind(&(*address).into()));
        bound.is_err_and(|error| error.kind() == io::ErrorKind::AddrInUse)
    })
}

/// A socket for each address of `bind`.
fn listen_everywhere<E>(places: &Places<'_>, mut port: u16) -> Result<Vec<TcpListener>, ListenError<E>> {
    let mut tcp = Vec::new();
    for place in places.bind {
        let (optional, address) = match place.strip_prefix('-') {
            Some(address) => (true, address),
            None => (false, place.as_str()),
        };
        let opened = address
            .parse::<IpAddr>()
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))
            .and_then(|address| listen(SocketAddr::new(address, port), places.backlog));
        match opened {
            Ok(listener) => {
                // All addresses share the port that the first one was given.
                port = listener.local_addr()?.port();
                tcp.push(listener);
            }
            Err(_) if optional => {}
            Err(source) => {
                return Err(ListenError::Socket { place: format!("{address} port {port}"), source })
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
