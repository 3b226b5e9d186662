//! One connection that sends a command and waits for its reply: for the preparation of a measurement, and for
//! commands that are measured one by one, each as a whole.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use std::time::Duration;

use crate::subject::Result;

use super::requests::request;

/// No answer of a measurement takes longer.
const PATIENCE: Duration = Duration::from_secs(120);

/// A connection.
pub(super) struct Conversation {
    input: BufReader<TcpStream>,
    buffer: Vec<u8>,
}

impl Conversation {
    /// Connects to a port of this machine.
    ///
    /// # Errors
    /// Nobody listens.
    pub(super) fn connect(port: u16) -> Result<Conversation> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        Ok(Conversation { input: BufReader::new(stream), buffer: Vec::new() })
    }

    /// Sends a command, and answers with the strings and numbers of its reply, one after the other.
    ///
    /// # Errors
    /// The connection's, or the server's.
    pub(super) fn ask(&mut self, words: &[&str]) -> Result<Vec<String>> {
        self.buffer.clear();
        request(&mut self.buffer, words);
        self.input.get_mut().write_all(&self.buffer)?;
        let mut found = Vec::new();
        let mut left = 1;
        while left > 0 {
            left -= 1;
            let mut line = String::new();
            if self.input.read_line(&mut line)? == 0 {
                return Err("the server has ended the connection".into());
            }
            let (kind, text) = line.trim_end().split_at_checked(1).ok_or("a reply is empty")?;
            match kind {
                "-" => return Err(format!("{}: {text}", words[0]).into()),
                "*" => left += text.parse::<usize>()?,
                "$" if text != "-1" => {
                    let mut bytes = vec![0; text.parse::<usize>()? + 2];
                    self.input.read_exact(&mut bytes)?;
                    found.push(String::from_utf8_lossy(&bytes[..bytes.len() - 2]).into_owned());
                }
                _ => found.push(text.to_owned()),
            }
        }
        Ok(found)
    }
}
