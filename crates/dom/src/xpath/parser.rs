//! Expressions from text, by ranks of operators. Depth is bounded, so that no text overflows the stack.

use super::expression::{Axis, Expression, Operator, Start, Step, Test};
use super::lexer::{tokens, Token};
use crate::{DomError, Result};

/// Brackets within brackets, signs before signs.
const DEPTH_MAX: usize = 200;

pub(super) struct Parser {
    tokens: Vec<(usize, Token)>,
    at: usize,
    end: usize,
    depth: usize,
}

/// Parses all of `text`.
pub(super) fn parse(text: &str) -> Result<Expression> {
    let mut parser = Parser { tokens: tokens(text)?, at: 0, end: text.len(), depth: 0 };
    let expression = parser.expression(0)?;
    match parser.peek() {
        None => Ok(expression),
        Some(_) => parser.fail("the expression should end here"),
    }
}

fn any_node(axis: Axis) -> Step {
    Step { axis, test: Test::Node, predicates: Vec::new() }
}

impl Parser {
    fn peek(&self) -> Option<&Token> {
        self.tokens.get(self.at).map(|(_, token)| token)
    }

    fn fail<T>(&self, what: &str) -> Result<T> {
        let position = self.tokens.get(self.at).map_or(self.end, |&(position, _)| position);
        Err(DomError::Expression { position, what: what.to_owned() })
    }

    fn is(&self, sign: &str) -> bool {
        matches!(self.peek(), Some(Token::Sign(known)) if *known == sign)
    }

    fn follows(&self, sign: &str) -> bool {
        matches!(self.tokens.get(self.at + 1), Some((_, Token::Sign(known))) if *known == sign)
    }

    fn take(&mut self, sign: &str) -> bool {
        let is = self.is(sign);
        self.at += usize::from(is);
        is
    }

    fn expect(&mut self, sign: &str) -> Result<()> {
        if self.take(sign) {
            return Ok(());
        }
        self.fail(&format!("{sign} is missing"))
    }

    /// What stands where an operator may.
    fn operator(&self) -> Option<Operator> {
        use Operator::*;
        Some(match self.peek()? {
            Token::Name(name) => match name.as_str() {
                "or" => Or,
                "and" => And,
                "div" => Divide,
                "mod" => Modulo,
                _ => return None,
            },
            Token::Sign(sign) => match *sign {
                "=" => Equal,
                "!=" => NotEqual,
                "<" => Less,
                "<=" => LessOrEqual,
                ">" => Greater,
                ">=" => GreaterOrEqual,
                "+" => Plus,
                "-" => Minus,
                "*" => Times,
                "|" => Union,
                _ => return None,
            },
            _ => return None,
        })
    }

    /// An expression whose operators rank above `rank`.
    fn expression(&mut self, rank: u8) -> Result<Expression> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return self.fail(&format!("more than {DEPTH_MAX} brackets or signs stand in each other"));
        }
        let mut left = match self.take("-") {
            true => Expression::Negative(Box::new(self.expression(6)?)),
            false => self.path()?,
        };
        let mut chain: Option<u8> = None;
        while let Some(operator) = self.operator().filter(|operator| operator.rank() > rank) {
            self.at += 1;
            let right = self.expression(operator.rank())?;
            left = match left {
                Expression::Chain(first, mut rest) if chain == Some(operator.rank()) => {
                    rest.push((operator, right));
                    Expression::Chain(first, rest)
                }
                left => Expression::Chain(Box::new(left), vec![(operator, right)]),
            };
            chain = Some(operator.rank());
        }
        self.depth -= 1;
        Ok(left)
    }

    fn path(&mut self) -> Result<Expression> {
        if self.take("//") {
            let mut steps = vec![any_node(Axis::DescendantOrSelf), self.step()?];
            self.more_steps(&mut steps)?;
            return Ok(Expression::Path(Start::Root, steps));
        }
        if self.take("/") {
            let mut steps = Vec::new();
            if self.begins_step() {
                steps.push(self.step()?);
                self.more_steps(&mut steps)?;
            }
            return Ok(Expression::Path(Start::Root, steps));
        }
        if !self.begins_primary() {
            let mut steps = vec![self.step()?];
            self.more_steps(&mut steps)?;
            return Ok(Expression::Path(Start::Here, steps));
        }
        let primary = self.primary()?;
        let predicates = self.predicates()?;
        let filtered = match predicates.is_empty() {
            true => primary,
            false => Expression::Filter(Box::new(primary), predicates),
        };
        let mut steps = Vec::new();
        self.more_steps(&mut steps)?;
        match steps.is_empty() {
            true => Ok(filtered),
            false => Ok(Expression::Path(Start::At(Box::new(filtered)), steps)),
        }
    }

    fn more_steps(&mut self, steps: &mut Vec<Step>) -> Result<()> {
        loop {
            if self.take("//") {
                steps.push(any_node(Axis::DescendantOrSelf));
            } else if !self.take("/") {
                return Ok(());
            }
            steps.push(self.step()?);
        }
    }

    fn begins_step(&self) -> bool {
        match self.peek() {
            Some(Token::Name(_)) => true,
            Some(Token::Sign(sign)) => [".", "..", "@", "*"].contains(sign),
            _ => false,
        }
    }

    fn begins_primary(&self) -> bool {
        match self.peek() {
            Some(Token::Number(_) | Token::Text(_)) => true,
            Some(Token::Sign(sign)) => ["(", "$"].contains(sign),
            Some(Token::Name(name)) => {
                self.follows("(")
                    && !["node", "text", "comment", "processing-instruction"].contains(&name.as_str())
            }
            None => false,
        }
    }

    fn primary(&mut self) -> Result<Expression> {
        let token = self.peek().cloned();
        self.at += 1;
        match token {
            Some(Token::Number(number)) => Ok(Expression::Number(number)),
            Some(Token::Text(text)) => Ok(Expression::Text(text)),
            Some(Token::Sign("$")) => match self.peek().cloned() {
                Some(Token::Name(name)) => {
                    self.at += 1;
                    Ok(Expression::Variable(name))
                }
                _ => self.fail("a variable's name is missing"),
            },
            Some(Token::Sign(_)) => {
                let inner = self.expression(0)?;
                self.expect(")")?;
                // Brackets end a chain: (1 - 2) - 3 and 1 - (2 - 3) differ.
                Ok(match inner {
                    Expression::Chain(..) => Expression::Filter(Box::new(inner), Vec::new()),
                    inner => inner,
                })
            }
            Some(Token::Name(name)) => {
                self.expect("(")?;
                let mut arguments = Vec::new();
                if !self.take(")") {
                    arguments.push(self.expression(0)?);
                    while self.take(",") {
                        arguments.push(self.expression(0)?);
                    }
                    self.expect(")")?;
                }
                Ok(Expression::Call(name, arguments))
            }
            None => self.fail("the expression ends too early"),
        }
    }

    fn step(&mut self) -> Result<Step> {
        if self.take(".") {
            return Ok(any_node(Axis::Itself));
        }
        if self.take("..") {
            return Ok(any_node(Axis::Parent));
        }
        let mut axis = Axis::Child;
        if self.take("@") {
            axis = Axis::Attribute;
        } else if let (Some(Token::Name(name)), true) = (self.peek(), self.follows("::")) {
            axis = match Axis::named(name) {
                Some(axis) => axis,
                None => return self.fail("there is no such axis"),
            };
            self.at += 2;
        }
        let test = self.test()?;
        Ok(Step { axis, test, predicates: self.predicates()? })
    }

    fn test(&mut self) -> Result<Test> {
        if self.take("*") {
            return Ok(Test::Any);
        }
        let Some(Token::Name(name)) = self.peek().cloned() else {
            return self.fail("a name, * or a test of nodes is missing");
        };
        let is_call = self.follows("(");
        if is_call && !["node", "text", "comment", "processing-instruction"].contains(&name.as_str()) {
            return self.fail("a function is no step");
        }
        self.at += 1;
        if is_call {
            self.at += 1;
            let test = match name.as_str() {
                "node" => Test::Node,
                "text" => Test::Text,
                "comment" => Test::Comment,
                _ => match self.peek().cloned() {
                    Some(Token::Text(target)) => {
                        self.at += 1;
                        Test::Instruction(Some(target))
                    }
                    _ => Test::Instruction(None),
                },
            };
            self.expect(")")?;
            return Ok(test);
        }
        Ok(match name.split_once(':') {
            Some((prefix, "*")) => Test::InNamespace(prefix.to_owned()),
            Some((prefix, local)) => Test::Name { prefix: Some(prefix.to_owned()), local: local.to_owned() },
            None => Test::Name { prefix: None, local: name },
        })
    }

    fn predicates(&mut self) -> Result<Vec<Expression>> {
        let mut predicates = Vec::new();
        while self.take("[") {
            predicates.push(self.expression(0)?);
            self.expect("]")?;
        }
        Ok(predicates)
    }
}
