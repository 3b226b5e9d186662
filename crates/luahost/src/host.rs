//! A Lua state that has the Perilune module, and runs files and text.
//!
//! The module is compiled into this program, its C files and its Lua files, so that a script needs nothing installed.
//!
//! Example: `Host::new()?.run_code(...)` of a text that begins with `local perilune = require 'perilune'`.
//!
//! Invariants
//! - `require 'perilune'` finds the module that belongs to this program, whatever `LUA_PATH` says.
//! - An error comes back with a traceback, and does not end the state.
//!
//! Deliberately absent: keeping scripts from anything. That is what `perilune-sandbox` is for.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::{fs, io};

use mlua::{Function, Lua, LuaOptions, MultiValue, StdLib, Table, Value};

use crate::registration;
use crate::{HostError, Result};

/// The Lua files of `bindings/lua`, each by the name it is required by; `build.rs` lists them.
const MODULES: &[(&str, &str)] = include!(concat!(env!("OUT_DIR"), "/modules.rs"));

/// An embedded LuaJIT in which `require 'perilune'` works.
pub struct Host {
    lua: Lua,
    protected: Function,
}

impl Host {
    /// Creates a state with the standard libraries and the module.
    ///
    /// # Errors
    /// `Lua` if there is no memory for it.
    pub fn new() -> Result<Host> {
        let lua = registration::new_state();
        let protected = lua.load(include_str!("protected.lua")).set_name("=(perilune)").eval::<Function>()?;
        let host = Host { lua, protected };
        for (name, opener) in registration::module_openers(&host.lua)? {
            host.preloaded()?.set(name, opener)?;
        }
        for (name, source) in MODULES {
            host.embed(name, source)?;
        }
        host.search_debian()?;
        // Before a program of the user's: what the module needs of Lua it takes now, whatever names mean later.
        host.lua.load("require 'perilune'").set_name("=(perilune)").exec()?;
        Ok(host)
    }

    /// The state itself, for callers with more to say to it.
    #[must_use]
    pub fn lua(&self) -> &Lua {
        &self.lua
    }

    /// Makes `require(name)` run `source`, which is kept in `package.sources`: functions of it can be sent to a
    /// server.
    ///
    /// # Errors
    /// `Syntax` if the source is not Lua.
    pub fn preload(&self, name: &str, source: &str) -> Result<()> {
        self.embed(name, source)?;
        let package = self.lua.globals().get::<Table>("package")?;
        let sources = match package.get::<Option<Table>>("sources")? {
            Some(sources) => sources,
            None => self.lua.create_table()?,
        };
        sources.set(name, source)?;
        Ok(package.set("sources", sources)?)
    }

    fn embed(&self, name: &str, source: &str) -> Result<()> {
        let opener = self.lua.load(source).set_name(format!("={name}")).into_function()?;
        Ok(self.preloaded()?.set(name, opener)?)
    }

    fn preloaded(&self) -> Result<Table> {
        Ok(self.lua.globals().get::<Table>("package")?.get("preload")?)
    }

    /// Sets the global `arg`: `arg[-1]` is the program, which runs a script given to it, `arg[0]` the
    /// script, then its arguments.
    ///
    /// # Errors
    /// `Lua` if there is no memory for it.
    pub fn set_arguments(&self, program: &Path, script: &Path, arguments: &[OsString]) -> Result<()> {
        let table = self.lua.create_table()?;
        table.set(-1, self.lua.create_string(program.as_os_str().as_bytes())?)?;
        table.set(0, self.lua.create_string(script.as_os_str().as_bytes())?)?;
        for argument in arguments {
            table.raw_push(self.lua.create_string(argument.as_bytes())?)?;
        }
        Ok(self.lua.globals().set("arg", table)?)
    }

    /// Makes `require` look in `directory` before anywhere else.
    ///
    /// # Errors
    /// `Lua` if a script has broken `package`.
    pub fn search_first(&self, directory: &Path) -> Result<()> {
        let package: Table = self.lua.globals().get("package")?;
        let mut path = directory.as_os_str().as_bytes().to_vec();
        path.extend_from_slice(b"/?.lua;");
        path.extend_from_slice(directory.as_os_str().as_bytes());
        path.extend_from_slice(b"/?/init.lua;");
        path.extend_from_slice(&package.get::<mlua::String>("path")?.as_bytes());
        Ok(package.set("path", self.lua.create_string(path)?)?)
    }

    /// Makes `require` look, after everywhere else, where Debian puts modules for Lua 5.1: its own
    /// LuaJIT does, and the one here was built for `/usr/local`.
    fn search_debian(&self) -> Result<()> {
        let package: Table = self.lua.globals().get("package")?;
        let library =
            format!("/usr/lib/{}-linux-gnu/lua/5.1/?.so;/usr/lib/lua/5.1/?.so", std::env::consts::ARCH);
        let scripts = "/usr/share/lua/5.1/?.lua;/usr/share/lua/5.1/?/init.lua";
        for (field, places) in [("path", scripts), ("cpath", &library)] {
            let mut all = package.get::<mlua::String>(field)?.as_bytes().to_vec();
            all.push(b';');
            all.extend_from_slice(places.as_bytes());
            package.set(field, self.lua.create_string(all)?)?;
        }
        Ok(())
    }

    /// Runs the script at `path`, `-` being the standard input; its directory is searched for modules.
    /// The script gets `arguments` as `...`.
    ///
    /// # Errors
    /// `Unreadable`, `Syntax`, `Raised`.
    pub fn run_file(&self, path: &Path, arguments: &[OsString]) -> Result<MultiValue> {
        let unreadable = |source| HostError::Unreadable { path: path.to_owned(), source };
        let (source, name) = if path == Path::new("-") {
            let mut source = Vec::new();
            io::Read::read_to_end(&mut io::stdin(), &mut source).map_err(unreadable)?;
            (source, "=stdin".to_owned())
        } else {
            let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            self.search_first(directory.unwrap_or(Path::new(".")))?;
            (fs::read(path).map_err(unreadable)?, format!("@{}", path.display()))
        };
        self.run(without_shebang(&source), &name, arguments)
    }

    /// Runs `code`, which errors call `name` (`=name`, or `@path`); it gets `arguments` as `...`.
    ///
    /// # Errors
    /// `Syntax`, `Raised`.
    pub fn run_code(&self, code: &str, name: &str, arguments: &[OsString]) -> Result<MultiValue> {
        self.run(code.as_bytes(), name, arguments)
    }

    /// Runs `code` as an expression if it is one, else as statements.
    ///
    /// # Errors
    /// `Syntax`, `Raised`.
    pub fn evaluate(&self, code: &str, name: &str) -> Result<MultiValue> {
        match self.load(format!("return {code}").as_bytes(), name) {
            Ok(expression) => self.call(&expression, ()),
            Err(_) => self.run_code(code, name, &[]),
        }
    }

    /// Calls `function` and describes an error that it raises.
    ///
    /// # Errors
    /// `Raised`.
    pub fn call(&self, function: &Function, arguments: impl mlua::IntoLuaMulti) -> Result<MultiValue> {
        let mut all = arguments.into_lua_multi(&self.lua)?;
        all.push_front(Value::Function(function.clone()));
        let mut results: MultiValue = self.protected.call(all)?;
        match results.pop_front() {
            Some(Value::Boolean(true)) => Ok(results),
            _ => Err(raised(results.front())),
        }
    }

    fn run(&self, code: &[u8], name: &str, arguments: &[OsString]) -> Result<MultiValue> {
        let function = self.load(code, name)?;
        let mut values = MultiValue::new();
        for argument in arguments {
            values.push_back(Value::String(self.lua.create_string(argument.as_bytes())?));
        }
        self.call(&function, values)
    }

    fn load(&self, code: &[u8], name: &str) -> Result<Function> {
        Ok(self.lua.load(code).set_name(name).into_function()?)
    }
}

/// Whether `code` is the beginning of a chunk, so that a line more could complete it.
#[must_use]
pub fn is_incomplete(code: &str) -> bool {
    let Ok(lua) = Lua::new_with(StdLib::NONE, LuaOptions::default()) else {
        return false;
    };
    let incomplete = |code: &str| {
        matches!(lua.load(code).into_function(), Err(mlua::Error::SyntaxError { incomplete_input: true, .. }))
    };
    let good = |code: &str| lua.load(code).into_function().is_ok();
    let expression = format!("return {code}");
    !good(code) && !good(&expression) && (incomplete(code) || incomplete(&expression))
}

/// What `protected.lua` answered for an error.
fn raised(described: Option<&Value>) -> HostError {
    let field = |name: &str| match described {
        Some(Value::Table(table)) => {
            table.raw_get::<Option<mlua::String>>(name).ok().flatten().map(|text| text.to_string_lossy())
        }
        Some(Value::String(text)) if name == "message" => Some(text.to_string_lossy()),
        _ => None,
    };
    HostError::Raised {
        message: field("message").unwrap_or_else(|| "an error in handling an error".to_owned()),
        code: field("code"),
    }
}

/// The line `#!...` is for the kernel; its end stays, so that line numbers are right.
fn without_shebang(source: &[u8]) -> &[u8] {
    if source.starts_with(b"#") {
        let end = source.iter().position(|&byte| byte == b'\n').unwrap_or(source.len());
        &source[end..]
    } else {
        source
    }
}
