//! The functions that arithmetic on decimals becomes: operators, `round`, `CAST AS DECIMAL(p,s)`, `sum`, `avg`, `total`.
//!
//! Invariant: they depend on their arguments alone.

use std::rc::Rc;

use perilune::Session;
use perilune_sqlite::{Aggregate, Arguments, Connection, Failure, FunctionKind, Output, Window};

use crate::decimal::{calculate, operand, too_long, Decimal, Digits, Operation};
use crate::error::{Error, Result, SqlState};
use crate::exact::{CAST, OPERATORS, PREFIX, ROUND};
use crate::stage::Stage;
use crate::value::{Value, ValueRef};

/// Tells SQLite of them.
pub(super) fn add(sqlite: &Connection<Session>, stage: &Rc<Stage>) -> Result<()> {
    let kind = FunctionKind { deterministic: true, direct_only: false };
    let scalar = |name: &str, count: i32, run: fn(Arguments<'_>) -> Result<Value>| {
        let fails = Rc::clone(stage);
        sqlite.add_function(name, count, kind, move |_, arguments, output| {
            output.set(run(arguments).map_err(|error| fails.fail(error))?.as_ref());
            Ok(())
        })
    };
    let [plus, minus, times, over] = OPERATORS.map(|(_, name)| name);
    scalar(plus, 2, |it| calculate(Operation::Plus, it.at(0).get(), it.at(1).get()))?;
    scalar(minus, 2, |it| calculate(Operation::Minus, it.at(0).get(), it.at(1).get()))?;
    scalar(times, 2, |it| calculate(Operation::Times, it.at(0).get(), it.at(1).get()))?;
    scalar(over, 2, |it| calculate(Operation::Over, it.at(0).get(), it.at(1).get()))?;
    scalar(ROUND, 1, |it| round(it.at(0).get(), ValueRef::Integer(0)))?;
    scalar(ROUND, 2, |it| round(it.at(0).get(), it.at(1).get()))?;
    scalar(CAST, 3, cast)?;
    for (name, answer) in [("sum", Answer::Sum), ("avg", Answer::Average), ("total", Answer::Total)] {
        let sum = Summing { stage: Rc::clone(stage), answer };
        sqlite.add_window(&format!("{PREFIX}{name}"), 1, kind, sum)?;
    }
    Ok(())
}

fn round(value: ValueRef<'_>, places: ValueRef<'_>) -> Result<Value> {
    let (value, places) = (operand(value), operand(places));
    let places = match places {
        Value::Null => return Ok(Value::Null),
        Value::Integer(places) => u32::try_from(places.clamp(0, 30)).unwrap_or(0),
        _ => 0,
    };
    match (Decimal::of(value.as_ref()), value) {
        (Some(decimal), _) => decimal.rounded(places).to_value(),
        (None, Value::Real(real)) => {
            let text = format!("{real:.*}", places as usize);
            Ok(Value::Real(text.parse().unwrap_or(real)))
        }
        (None, value) => Ok(value),
    }
}

/// A value, how many digits it may have, and how many of them behind the point.
fn cast(arguments: Arguments<'_>) -> Result<Value> {
    let number = |at: usize| match arguments.at(at).get() {
        ValueRef::Integer(integer) => u32::try_from(integer).unwrap_or(0),
        _ => 0,
    };
    let (precision, scale) = (number(1), number(2));
    let digits = Digits { precision, scale: Some(scale) };
    if !digits.is_kept() {
        return Err(Error::new(SqlState::RANGE, format!("{digits}: a DECIMAL has 1 to 18 digits")));
    }
    let rounded = round(arguments.at(0).get(), ValueRef::Integer(scale.into()))?;
    let value = crate::decimal::stored(rounded);
    digits.check(&value, "what CAST answers")?;
    Ok(value)
}

/// What is answered for a group.
#[derive(Clone, Copy)]
enum Answer {
    Sum,
    Average,
    Total,
}

struct Summing {
    stage: Rc<Stage>,
    answer: Answer,
}

/// The sum so far.
#[derive(Default)]
struct Sum {
    exact: Option<Decimal>,
    /// Of doubles that are no decimals.
    doubles: f64,
    /// How many of them there are, of decimals with a fraction, and of all.
    doubles_count: i64,
    fractions_count: i64,
    count: i64,
}

/// Whether a row comes to a group, or leaves the frame of a window.
#[derive(Clone, Copy)]
enum Move {
    In = 1,
    Out = -1,
}

impl Sum {
    fn change(&mut self, value: ValueRef<'_>, way: Move) -> Result<()> {
        let value = operand(value);
        if value.is_null() {
            return Ok(());
        }
        self.count += way as i64;
        match (Decimal::of(value.as_ref()), &value) {
            (Some(decimal), _) => {
                self.fractions_count += way as i64 * i64::from(matches!(value, Value::Real(_)));
                let before = self.exact.unwrap_or(Decimal::ZERO);
                let sum = match way {
                    Move::In => before.plus(decimal),
                    Move::Out => before.minus(decimal),
                };
                self.exact = Some(sum.ok_or_else(too_long)?);
            }
            (None, Value::Real(real)) => {
                self.doubles_count += way as i64;
                self.doubles += real * f64::from(way as i32);
            }
            (None, _) => {}
        }
        Ok(())
    }

    fn answer(&self, answer: Answer) -> Result<Value> {
        let exact = self.exact.unwrap_or(Decimal::ZERO);
        let double = || self.doubles + exact.to_real();
        Ok(match answer {
            Answer::Total if self.count == 0 => Value::Real(0.0),
            _ if self.count == 0 => Value::Null,
            Answer::Sum | Answer::Total if self.doubles_count > 0 => Value::Real(double()),
            Answer::Sum if self.fractions_count == 0 => exact.to_whole()?,
            Answer::Sum | Answer::Total => exact.to_value()?,
            Answer::Average if self.doubles_count > 0 => Value::Real(double() / self.count as f64),
            Answer::Average => {
                let count = Decimal::of(ValueRef::Integer(self.count)).unwrap_or(Decimal::ZERO);
                Value::Real(exact.over(count))
            }
        })
    }
}

impl Aggregate<Session> for Summing {
    type State = Sum;

    fn step(
        &self,
        _: &mut Session,
        sum: &mut Sum,
        arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        sum.change(arguments.at(0).get(), Move::In).map_err(|error| self.stage.fail(error))
    }

    fn finish(
        &self,
        session: Option<&mut Session>,
        sum: Sum,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        if session.is_none() || self.stage.has_failed() {
            return Ok(());
        }
        output.set(sum.answer(self.answer).map_err(|error| self.stage.fail(error))?.as_ref());
        Ok(())
    }
}

impl Window<Session> for Summing {
    fn inverse(
        &self,
        _: &mut Session,
        sum: &mut Sum,
        arguments: Arguments<'_>,
    ) -> std::result::Result<(), Failure> {
        sum.change(arguments.at(0).get(), Move::Out).map_err(|error| self.stage.fail(error))
    }

    fn value(
        &self,
        _: &mut Session,
        sum: &mut Sum,
        output: &mut Output<'_>,
    ) -> std::result::Result<(), Failure> {
        output.set(sum.answer(self.answer).map_err(|error| self.stage.fail(error))?.as_ref());
        Ok(())
    }
}
