//! The arguments of a call, and what each is asked to be.

use perilune::{Number, ValueRef};

use crate::{Error, Fields, Json, Result, Shape};

/// The arguments of a call, taken one after the other.
pub(super) struct Given<'a> {
    pub(super) name: &'a str,
    all: &'a [ValueRef<'a>],
    at: usize,
}

impl<'a> Given<'a> {
    pub(super) fn new(name: &'a str, all: &'a [ValueRef<'a>]) -> Given<'a> {
        Given { name, all, at: 0 }
    }

    fn next(&mut self) -> ValueRef<'_> {
        self.at += 1;
        self.all.get(self.at - 1).copied().unwrap_or(ValueRef::Null)
    }

    fn wrong<T>(&self, wanted: &str) -> Result<T> {
        Err(Error::Call(format!("{}: argument {} must be {wanted}", self.name, self.at)))
    }

    pub(super) fn json(&mut self) -> Result<Json> {
        match self.next() {
            ValueRef::String(text) => {
                serde_json::from_slice(text).map_err(|error| Error::Json(error.to_string()))
            }
            _ => self.wrong("a text of JSON"),
        }
    }

    /// Any scalar, or none.
    pub(super) fn optional_any(&mut self) -> Result<Option<Json>> {
        match self.all.get(self.at).copied().unwrap_or(ValueRef::Null) {
            ValueRef::Null => {
                self.at += 1;
                Ok(None)
            }
            _ => self.any().map(Some),
        }
    }

    /// An object of JSON.
    pub(super) fn fields(&mut self) -> Result<Fields> {
        match self.json()? {
            Json::Object(fields) => Ok(fields),
            // A table of Lua without anything is either.
            Json::Array(items) if items.is_empty() => Ok(Fields::new()),
            _ => self.wrong("an object of JSON"),
        }
    }

    pub(super) fn optional_fields(&mut self) -> Result<Fields> {
        match self.all.get(self.at).copied().unwrap_or(ValueRef::Null) {
            ValueRef::Null => {
                self.at += 1;
                Ok(Fields::new())
            }
            _ => self.fields(),
        }
    }

    /// An array of JSON.
    pub(super) fn array(&mut self) -> Result<Vec<Json>> {
        match self.json()? {
            Json::Array(items) => Ok(items),
            Json::Object(fields) if fields.is_empty() => Ok(Vec::new()),
            _ => self.wrong("an array of JSON"),
        }
    }

    pub(super) fn optional_array(&mut self) -> Result<Vec<Json>> {
        match self.all.get(self.at).copied().unwrap_or(ValueRef::Null) {
            ValueRef::Null => {
                self.at += 1;
                Ok(Vec::new())
            }
            _ => self.array(),
        }
    }

    /// A number.
    pub(super) fn number(&mut self, otherwise: i64) -> Result<Number> {
        match self.next() {
            ValueRef::Null => Ok(Number::Int(otherwise)),
            value => value.as_number().or_else(|_| self.wrong("a number")),
        }
    }

    /// Any scalar.
    pub(super) fn any(&mut self) -> Result<Json> {
        match self.next() {
            ValueRef::Int(integer) => Ok(Json::from(integer)),
            ValueRef::Double(number) if number.is_finite() => Ok(Json::from(number)),
            ValueRef::Bool(truth) => Ok(Json::Bool(truth)),
            ValueRef::String(text) => Ok(Json::from(String::from_utf8_lossy(text))),
            ValueRef::Decimal(decimal) => Ok(Json::from(f64::from(decimal))),
            _ => self.wrong("a text, a number or a truth value"),
        }
    }

    /// A text; a number is taken as its own.
    pub(super) fn optional_text(&mut self) -> Result<Option<String>> {
        match self.next() {
            ValueRef::Null => Ok(None),
            ValueRef::String(text) => match std::str::from_utf8(text) {
                Ok(text) => Ok(Some(text.to_owned())),
                Err(_) => self.wrong("UTF-8"),
            },
            ValueRef::Int(integer) => Ok(Some(integer.to_string())),
            _ => self.wrong("a text"),
        }
    }

    pub(super) fn text(&mut self) -> Result<String> {
        match self.optional_text()? {
            Some(text) => Ok(text),
            None => self.wrong("a text"),
        }
    }

    pub(super) fn optional_integer(&mut self, otherwise: i64) -> Result<i64> {
        match self.next() {
            ValueRef::Null => Ok(otherwise),
            ValueRef::Int(integer) => Ok(integer),
            _ => self.wrong("a whole number"),
        }
    }

    pub(super) fn integer(&mut self) -> Result<i64> {
        match self.next() {
            ValueRef::Int(integer) => Ok(integer),
            _ => self.wrong("a whole number"),
        }
    }

    pub(super) fn flag(&mut self, otherwise: bool) -> Result<bool> {
        match self.next() {
            ValueRef::Null => Ok(otherwise),
            ValueRef::Bool(truth) => Ok(truth),
            _ => self.wrong("true or false"),
        }
    }

    /// The last arguments of calls that read or write documents: `first` and `typed`.
    pub(super) fn shape_at_end(&mut self) -> Result<Shape> {
        let otherwise = Shape::default();
        let shape =
            Shape { first: self.optional_integer(otherwise.first)?, typed: self.flag(otherwise.typed)? };
        self.end()?;
        Ok(shape)
    }

    pub(super) fn end(&self) -> Result<()> {
        match self.all.len() <= self.at {
            true => Ok(()),
            false => Err(Error::Call(format!("{} takes {} arguments at most", self.name, self.at))),
        }
    }
}
