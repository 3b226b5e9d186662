//! `dom`: XML documents into the tree, out of it, and searched where they are.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use clap::{Subcommand, ValueHint};
use perilune::{Database, Node, Session};
use perilune_dom::{
    Dom, DomError, ParseOptions, Parsed, Surroundings, Whitespace, XPath, XPathItem, XPathValue,
};
use perilune_redis::files::replace;

use crate::failure::{doing, found, wrong_use, Failure, Result};
use crate::which_database::{self, existing};

/// What to do with a document.
#[derive(Debug, Subcommand)]
pub(crate) enum DomCommand {
    /// Parses a file of XML into a node: all of it or nothing
    Import {
        /// The file, in UTF-8
        #[arg(value_hint = ValueHint::FilePath)]
        file: PathBuf,
        /// The node below which the document is kept, as ^doc("pubs")
        node: String,
        /// Removes the document that is there
        #[arg(long)]
        replace: bool,
        /// Trims white space as QEWD-JSdb does
        #[arg(long)]
        trim: bool,
        /// Keeps the name of an external DTD, which is never read
        #[arg(long)]
        keep_external_dtd: bool,
    },
    /// Writes the document of a node as XML
    Export {
        /// The node below which the document is
        node: String,
        /// The file, instead of the standard output
        #[arg(value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Evaluates an expression of XPath 1.0; prints a line for each node, or the value
    Xpath {
        /// The node below which the document is
        node: String,
        /// The expression
        expression: String,
    },
}

impl From<DomError> for Failure {
    fn from(error: DomError) -> Failure {
        match error {
            DomError::Database(error) => error.into(),
            DomError::Expression { .. } | DomError::Evaluation(_) => wrong_use(error.to_string()),
            other => found(other.to_string()),
        }
    }
}

/// Does what `command` says in the database of `flag`, or in the default one.
pub(crate) fn run(command: &DomCommand, flag: Option<&Path>) -> Result<()> {
    let (DomCommand::Import { node, .. } | DomCommand::Export { node, .. } | DomCommand::Xpath { node, .. }) =
        command;
    let dom = Dom::at(Node::parse(node)?);
    let imports = matches!(command, DomCommand::Import { .. });
    let open = || -> Result<Session> {
        let database = match flag {
            Some(path) if imports || Database::is_address(path) => Database::open(path)?,
            None if imports => Database::open_default()?,
            // What only reads makes no database.
            path => Database::open(existing(path)?)?,
        };
        Ok(database.session()?)
    };
    match command {
        DomCommand::Import { file, replace, trim, keep_external_dtd, .. } => {
            let xml = fs::read(file).map_err(doing(format!("read {}", file.display())))?;
            let options = ParseOptions {
                whitespace: if *trim { Whitespace::Trim } else { Whitespace::Keep },
                replace: *replace,
                keep_external_dtd: *keep_external_dtd,
            };
            // Before the database is opened, which would make one for a file that is no document.
            let parsed = Parsed::read_bytes(&xml, &options).map_err(|error| in_file(file, error))?;
            dom.store(&mut open()?, &parsed, options.replace).map_err(|error| in_file(file, error))?;
        }
        DomCommand::Export { file, .. } => {
            if let Some(file) = file {
                which_database::is_none(file)?;
            }
            let session = &mut open()?;
            if dom.document_node(session)?.is_none() {
                return Err(found(format!("there is no document at {}", dom.root())));
            }
            let xml = dom.to_xml(session)?;
            match file {
                Some(file) => replace(file, 0o666, xml.as_bytes())
                    .map_err(doing(format!("write {}", file.display())))?,
                None => tell(&xml)?,
            }
        }
        DomCommand::Xpath { expression, .. } => search(&dom, &mut open()?, expression)?,
    }
    Ok(())
}

/// The error of a file's text, with the name of the file.
fn in_file(file: &Path, error: DomError) -> Failure {
    let mut failure = Failure::from(error);
    failure.message = format!("{}: {}", file.display(), failure.message);
    failure
}

/// Prints a line, unless nobody reads any more.
fn tell(line: &str) -> Result<()> {
    match io::stdout().write_all(format!("{line}\n").as_bytes()) {
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(doing("write the document")),
    }
}

/// Prints what `expression` gives.
fn search(dom: &Dom, session: &mut Session, expression: &str) -> Result<()> {
    let xpath = XPath::parse(expression)?;
    let Some(document) = dom.document_node(session)? else {
        return Err(found(format!("there is no document at {}", dom.root())));
    };
    match dom.evaluate(session, &xpath, document, &Surroundings::default())? {
        XPathValue::Number(number) => tell(&number.to_string())?,
        XPathValue::Text(text) => tell(&text)?,
        XPathValue::Boolean(truth) => tell(&truth.to_string())?,
        XPathValue::Nodes(items) => {
            for item in items {
                match item {
                    XPathItem::Node(node) => tell(&dom.node_to_xml(session, node)?)?,
                    XPathItem::Namespace { prefix, uri, .. } => tell(&format!("{prefix}={uri}"))?,
                }
            }
        }
    }
    Ok(())
}
