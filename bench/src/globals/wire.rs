//! A connection to a server that speaks Redis's protocol, and what it answers.
//!
//! Commands are added and then sent together; answers are heard one by one, in their order. Deliberately no more of
//! the protocol than the mappings need: errors of the server are errors of the call.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;

use crate::subject::Result;

/// What a server answers.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    Bytes(Option<Vec<u8>>),
    Integer(i64),
    List(Option<Vec<Reply>>),
}

/// A connection.
pub(crate) struct Client {
    input: BufReader<Box<dyn Read>>,
    output: Box<dyn Write>,
    buffer: Vec<u8>,
    line: Vec<u8>,
}

impl Client {
    /// Connects to the address, HOST:PORT, or without one to the socket in the directory.
    ///
    /// # Errors
    /// Nobody listens.
    pub(crate) fn connect(directory: &Path, address: Option<&str>) -> Result<Client> {
        let (input, output): (Box<dyn Read>, Box<dyn Write>) = match address {
            Some(address) => {
                let stream = TcpStream::connect(address).map_err(|error| format!("{address}: {error}"))?;
                stream.set_nodelay(true)?;
                (Box::new(stream.try_clone()?), Box::new(stream))
            }
            None => {
                let stream = UnixStream::connect(directory.join("socket"))?;
                (Box::new(stream.try_clone()?), Box::new(stream))
            }
        };
        let mut client = Client {
            input: BufReader::with_capacity(1 << 16, input),
            output,
            buffer: Vec::new(),
            line: Vec::new(),
        };
        // A server that has just been started may take connections before it has read its files.
        while let Err(error) = client.ask(&[b"PING"]) {
            if !error.to_string().contains("-LOADING") {
                return Err(error);
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        Ok(client)
    }

    /// Adds a command to what [`Client::send`] will send.
    pub(crate) fn add(&mut self, words: &[&[u8]]) {
        self.buffer.extend_from_slice(format!("*{}\r\n", words.len()).as_bytes());
        for word in words {
            self.buffer.extend_from_slice(format!("${}\r\n", word.len()).as_bytes());
            self.buffer.extend_from_slice(word);
            self.buffer.extend_from_slice(b"\r\n");
        }
    }

    /// Sends what was added.
    ///
    /// # Errors
    /// The connection's.
    pub(crate) fn send(&mut self) -> Result<()> {
        self.output.write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    /// Sends one command and waits for its answer.
    ///
    /// # Errors
    /// The connection's, or the server's.
    pub(crate) fn ask(&mut self, words: &[&[u8]]) -> Result<Reply> {
        self.add(words);
        self.send()?;
        self.hear()
    }

    /// The next answer.
    ///
    /// # Errors
    /// The connection's, or the server's.
    pub(crate) fn hear(&mut self) -> Result<Reply> {
        self.line.clear();
        self.input.read_until(b'\n', &mut self.line)?;
        let text = std::str::from_utf8(&self.line)?.trim_end();
        let (kind, rest) = text.split_at_checked(1).ok_or("the server has closed the connection")?;
        match kind {
            "+" => Ok(Reply::Bytes(Some(rest.as_bytes().to_vec()))),
            ":" => Ok(Reply::Integer(rest.parse()?)),
            "$" => {
                let Ok(length) = rest.parse::<usize>() else { return Ok(Reply::Bytes(None)) };
                let mut bytes = vec![0; length + 2];
                self.input.read_exact(&mut bytes)?;
                bytes.truncate(length);
                Ok(Reply::Bytes(Some(bytes)))
            }
            "*" => {
                let Ok(length) = rest.parse::<usize>() else { return Ok(Reply::List(None)) };
                (0..length).map(|_| self.hear()).collect::<Result<_>>().map(|list| Reply::List(Some(list)))
            }
            _ => Err(format!("the server answers {text}").into()),
        }
    }
}
