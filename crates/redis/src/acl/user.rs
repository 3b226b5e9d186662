//! A user: a name, passwords, and what is allowed.

use perilune_net::passwords::{hashed, is_hash, Passwords};
use perilune_resp::Arguments;

use super::selector::{Denied, Selector};
use crate::command::{commands, Command, GOVERNS};

/// Selectors that a user may have.
const SELECTORS: usize = 1_000;

/// One user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct User {
    pub(crate) name: String,
    pub(crate) is_on: bool,
    pub(crate) passwords: Passwords,
    /// The first is the user's own; there is always one.
    pub(crate) selectors: Vec<Selector>,
    is_unlimited: bool,
}

impl User {
    /// A user who may do nothing.
    pub(crate) fn new(name: &str) -> User {
        User {
            name: name.to_owned(),
            is_on: false,
            passwords: Passwords::default(),
            selectors: vec![Selector::default()],
            is_unlimited: false,
        }
    }

    /// The user `default` of a database where nobody has said anything.
    pub(crate) fn standard() -> User {
        let mut user = User::new("default");
        for rule in ["on", "nopass", "~*", "&*", "+@all"] {
            // Each is a rule.
            let _ = user.apply(rule);
        }
        user
    }

    /// The user called `name` with the rules in `text`, as [`User::rules`] tells them.
    pub(crate) fn parse(name: &str, text: &str) -> Result<User, String> {
        let mut user = User::new(name);
        let words: Vec<&str> = text.split_whitespace().collect();
        user.apply_all(&words).map_err(|(_, why)| why)?;
        Ok(user)
    }

    /// Takes rules in order; a selector in parentheses may be several words. Fails with the rule and why.
    pub(crate) fn apply_all(&mut self, words: &[&str]) -> Result<(), (String, String)> {
        let mut open: Option<String> = None;
        for word in words {
            let rule = match open.take() {
                Some(begun) => format!("{begun} {word}"),
                None => (*word).to_owned(),
            };
            if rule.starts_with('(') && !rule.ends_with(')') {
                open = Some(rule);
                continue;
            }
            self.apply(&rule).map_err(|why| (rule, why.to_owned()))?;
        }
        match open {
            Some(rule) => Err((rule, "Unmatched parenthesis in acl selector starting at it".to_owned())),
            None => Ok(()),
        }
    }

    fn apply(&mut self, rule: &str) -> Result<(), &'static str> {
        match rule.to_ascii_lowercase().as_str() {
            "on" => self.is_on = true,
            "off" => self.is_on = false,
            "nopass" => self.passwords.clear(true),
            "resetpass" => self.passwords.clear(false),
            "reset" => *self = User::new(&self.name),
            "clearselectors" => self.selectors.truncate(1),
            "sanitize-payload" | "skip-sanitize-payload" => {}
            _ => match rule.as_bytes().first() {
                Some(b'>') => self.add_password(hashed(&rule.as_bytes()[1..]))?,
                Some(b'#') if is_hash(&rule[1..]) => self.add_password(rule[1..].to_owned())?,
                Some(b'!' | b'#') if !is_hash(&rule[1..]) => {
                    return Err(
                        "The password hash must be exactly 64 characters and contain only lowercase \
                                hexadecimal characters",
                    );
                }
                Some(b'<') => self.remove_password(&hashed(&rule.as_bytes()[1..]))?,
                Some(b'!') => self.remove_password(&rule[1..])?,
                Some(b'(') => {
                    let mut selector = Selector::default();
                    let inside = rule[1..].strip_suffix(')').unwrap_or_default();
                    for rule in inside.split_whitespace() {
                        if !selector.apply(rule)? {
                            return Err("Syntax error");
                        }
                    }
                    if self.selectors.len() > SELECTORS {
                        return Err("Too many selectors");
                    }
                    self.selectors.push(selector);
                }
                _ if self.selectors[0].apply(rule)? => {}
                _ => return Err("Syntax error"),
            },
        }
        self.is_unlimited = self.selectors.iter().any(Selector::is_unlimited);
        Ok(())
    }

    fn add_password(&mut self, hash: String) -> Result<(), &'static str> {
        self.passwords.add(hash).map_err(|_| "Too many passwords")
    }

    fn remove_password(&mut self, hash: &str) -> Result<(), &'static str> {
        match self.passwords.remove(hash) {
            true => Ok(()),
            false => Err("The password you are trying to remove from the user does not exist"),
        }
    }

    /// Whether the user may enter with this password. Takes the same time for every wrong one.
    pub(crate) fn admits(&self, password: &[u8]) -> bool {
        let is_right = self.passwords.admit(password);
        self.is_on && is_right
    }

    /// Whether every command is allowed.
    #[inline]
    pub(crate) fn is_unlimited(&self) -> bool {
        self.is_unlimited
    }

    /// Whether the user operates the server: may run all of what changes settings and users.
    pub(crate) fn operates(&self) -> bool {
        let all_of = |selector: &Selector| {
            let mut governing = commands().iter().filter(|command| command.is(GOVERNS));
            governing.all(|command| selector.allows_all_of(command.name))
        };
        self.is_unlimited || self.selectors.iter().any(all_of)
    }

    /// Whether all of a command is allowed; else what of it is not, of the selector that came nearest.
    pub(crate) fn check(&self, command: &Command, arguments: Arguments<'_>) -> Result<(), Denied> {
        if self.is_unlimited {
            return Ok(());
        }
        let mut nearest = Denied::Command;
        for selector in &self.selectors {
            match selector.check(command, arguments) {
                Ok(()) => return Ok(()),
                Err(denied) => nearest = nearest.max(denied),
            }
        }
        Err(nearest)
    }

    /// Its rules, so that applied to a new user they make this one.
    pub(crate) fn rules(&self) -> String {
        let mut words = vec![if self.is_on { "on" } else { "off" }.to_owned()];
        if self.passwords.are_needless() {
            words.push("nopass".to_owned());
        }
        words.extend(self.passwords.hashes().iter().map(|hash| format!("#{hash}")));
        words.push(self.selectors[0].rules());
        words.extend(self.selectors[1..].iter().map(|selector| format!("({})", selector.rules())));
        words.join(" ")
    }
}

#[cfg(test)]
mod tests {
    use perilune_resp::ArgumentsBuf;

    use super::*;
    use crate::command::find;

    fn user(rules: &str) -> User {
        User::parse("u", rules).unwrap()
    }

    fn check(user: &User, line: &str) -> Result<(), Denied> {
        let words: ArgumentsBuf = line.split(' ').collect();
        let arguments = words.as_arguments();
        user.check(find(&arguments[0]).unwrap(), arguments)
    }

    #[test]
    fn rules_allow_what_they_say() {
        let cases = [
            ("~* +@all", "get k", Ok(())),
            ("~* +@all -get", "get k", Err(Denied::Command)),
            ("~* +@read", "get k", Ok(())),
            ("~* +@read", "set k v", Err(Denied::Command)),
            ("~a* +@all", "mget ab b", Err(Denied::Key(2))),
            ("~a* +@all", "mset a1 x a2 y", Ok(())),
            ("%R~a %W~b +@all", "copy a b", Ok(())),
            ("%R~a %W~b +@all", "copy b a", Err(Denied::Key(1))),
            ("%R~a +@all", "incr a", Err(Denied::Key(1))),
            ("%W~a +@all", "incr a", Err(Denied::Key(1))),
            ("%W~a +@all", "set a 1", Ok(())),
            ("%W~a +@all", "set a 1 GET", Err(Denied::Key(1))),
            ("%W~a +@all", "exists a", Ok(())),
            ("%R~a %W~b +@all", "sinterstore b a a", Ok(())),
            ("~* -@all +config|get", "config get x", Ok(())),
            ("~* -@all +config|get", "CONFIG SET x y", Err(Denied::Command)),
            ("~* +@all -@admin", "config get x", Err(Denied::Command)),
            ("~* +@all -config|set", "config get x", Ok(())),
            ("~* +@all -config|set", "config set x y", Err(Denied::Command)),
            ("-@all +select|0", "select 0", Ok(())),
            ("-@all +select|0", "select 1", Err(Denied::Command)),
            ("~a +get (~b +set)", "set b 1", Ok(())),
            ("~a +get (~b +set)", "get b", Err(Denied::Key(1))),
            ("~* +@all -@all", "ping", Err(Denied::Command)),
        ];
        for (rules, line, expected) in cases {
            assert_eq!(check(&user(rules), line), expected, "{rules}: {line}");
        }
    }

    #[test]
    fn rules_are_told_so_that_they_can_be_read_again() {
        let cases = [
            ("", "off resetchannels -@all"),
            ("on nopass ~* &* +@all", "on nopass ~* &* +@all"),
            (
                "on >p ~a* %R~b* &c* +@all -get +config|get -@dangerous",
                "on #148de9c5a7a44d19e56cd9ae1a554bf67847afb0c58f6e12fa29ac7ddfca9940 ~a* %R~b* resetchannels &c* \
                 +@all -get -@dangerous",
            ),
            ("+get +set -get (~z* +set)", "off resetchannels -@all +set -get (~z* resetchannels -@all +set)"),
            ("allkeys allchannels allcommands", "off ~* &* +@all"),
            ("+client|id -client", "off resetchannels -@all -client"),
        ];
        for (rules, told) in cases {
            let user = user(rules);
            assert_eq!(user.rules(), told);
            // Read again they may need fewer words for the same.
            let again = User::parse("u", &user.rules()).unwrap();
            assert_eq!(User::parse("u", &again.rules()).unwrap(), again);
            for line in ["get ab", "set zb v", "config get x", "config set x y", "client id", "keys *"] {
                assert_eq!(check(&again, line), check(&user, line), "{rules}: {line}");
            }
        }
        for wrong in ["xx", "+nosuch", "+@nosuch", "+config|x", "#12", "<p", "%X~a", "~* ~a", "(+get", "(on)"]
        {
            assert!(User::parse("u", wrong).is_err(), "{wrong}");
        }
    }
}
