//! The worked example of docs/guide/add-a-command.md: STRREV, which answers the bytes of a string, the last one first. No server
//! has it; a test compiles and runs it, and sees that the page shows this file.

use perilune_resp::{Arguments, Replies};

use crate::command::{Command, FAST, ONE, READ};
use crate::failure::Result;
use crate::handler::on_keys;
use crate::keyspace::{Keys, Kind};

pub(crate) const ROW: Command =
    on_keys("strrev", 2, READ | FAST, ONE, "string", strrev, "Answers the bytes of a string, last one first");

fn strrev(keys: &mut Keys<'_>, arguments: Arguments<'_>, replies: &mut Replies<'_>) -> Result<()> {
    let (key, entry) = keys.find(&arguments[1], Kind::String)?;
    let Some(entry) = entry else {
        replies.null();
        return Ok(());
    };
    let mut text = Vec::new();
    keys.string(&key, &entry)?.write_text(&mut text);
    text.reverse();
    replies.bulk(&text);
    Ok(())
}

#[cfg(test)]
mod tests {
    use perilune::{node, Database};
    use perilune_resp::{ArgumentsBuf, Protocol};

    use super::*;
    use crate::effects::Effects;
    use crate::handler::Run;
    use perilune_net::clock::clock;

    fn run(database: &Database, words: &[&str]) -> String {
        let (mut session, mut effects) = (database.session().unwrap(), Effects::default());
        let request: ArgumentsBuf = words.iter().collect();
        let mut reply = Vec::new();
        let mut replies = Replies::new(&mut reply, Protocol::Resp2);
        let mut keys = Keys::new(&mut session, &mut effects, 0, clock(), false);
        let Run::Keys(handler) = ROW.runs.run else { panic!("it works with keys") };
        handler(&mut keys, request.as_arguments(), &mut replies).unwrap();
        String::from_utf8(reply).unwrap()
    }

    #[test]
    fn the_example_runs() {
        let directory = std::env::temp_dir().join(format!("perilune-example-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let database = Database::open(directory.join("example.db")).unwrap();
        let mut session = database.session().unwrap();
        session.set(&node!("^redis", 0, "a").unwrap(), "abc").unwrap();
        assert!(ROW.takes(2) && !ROW.takes(3) && ROW.is_on_keys());
        assert_eq!(run(&database, &["strrev", "a"]), "$3\r\ncba\r\n");
        assert_eq!(run(&database, &["strrev", "none"]), "$-1\r\n");
        drop((session, database));
        std::fs::remove_dir_all(&directory).unwrap();
    }

    /// The page shows the row and the handler as they stand above.
    #[test]
    fn the_page_shows_the_example() {
        let (page, file) =
            (include_str!("../../../../docs/guide/add-a-command.md"), include_str!("example.rs"));
        let shown = page.split("```rust\n").skip(1).filter_map(|rest| rest.split("```").next());
        let mut count = 0;
        for part in shown {
            assert!(file.contains(part.trim_end()), "the page shows what is not in the file:\n{part}");
            count += 1;
        }
        assert_eq!(count, 2);
    }
}
