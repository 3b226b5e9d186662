//! Evaluation: an expression, a node, a position; the indices of names in place of walks where a path begins so.

use std::collections::HashSet;

use super::expression::{Axis, Expression, Operator, Start, Step, Test};
use super::tree::{Item, Tree};
use super::value::{number_of, text_of, Inner};
use super::Surroundings;
use crate::{DomError, DomNode, NodeKind, Result, XML};

/// Where an expression is evaluated.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub(super) item: Item,
    pub(super) position: usize,
    pub(super) size: usize,
}

pub(super) struct Evaluator<'s, 'c> {
    pub(super) tree: Tree<'s>,
    pub(super) surroundings: &'c Surroundings,
}

impl Evaluator<'_, '_> {
    pub(super) fn evaluate(&mut self, expression: &Expression, place: Place) -> Result<Inner> {
        Ok(match expression {
            Expression::Text(text) => Inner::Text(text.clone()),
            Expression::Number(number) => Inner::Number(*number),
            Expression::Negative(inner) => {
                let value = self.evaluate(inner, place)?;
                Inner::Number(-self.number(&value)?)
            }
            Expression::Variable(name) => self.surroundings.variable(name)?,
            Expression::Call(name, arguments) => self.call(name, arguments, place)?,
            Expression::Chain(first, rest) => self.chain(first, rest, place)?,
            Expression::Filter(inner, predicates) => {
                let value = self.evaluate(inner, place)?;
                if predicates.is_empty() {
                    return Ok(value);
                }
                let nodes = self.nodes(value, "a predicate")?;
                Inner::Nodes(self.filtered(nodes, predicates)?)
            }
            Expression::Path(start, steps) => self.path(start, steps, place)?,
        })
    }

    fn chain(&mut self, first: &Expression, rest: &[(Operator, Expression)], place: Place) -> Result<Inner> {
        let mut left = self.evaluate(first, place)?;
        for (operator, right) in rest {
            let decided = match operator {
                Operator::Or => self.truth(&left),
                Operator::And => !self.truth(&left),
                _ => false,
            };
            if decided {
                left = Inner::Boolean(*operator == Operator::Or);
                continue;
            }
            let right = self.evaluate(right, place)?;
            left = self.combine(*operator, left, right)?;
        }
        Ok(left)
    }

    fn combine(&mut self, operator: Operator, left: Inner, right: Inner) -> Result<Inner> {
        use Operator::{And, Divide, Minus, Modulo, Or, Plus, Times, Union};
        Ok(match operator {
            Or | And => Inner::Boolean(self.truth(&right)),
            Union => {
                let mut all = self.nodes(left, "|")?;
                all.extend(self.nodes(right, "|")?);
                Inner::Nodes(self.tree.in_order(all)?)
            }
            Plus | Minus | Times | Divide | Modulo => {
                let (left, right) = (self.number(&left)?, self.number(&right)?);
                Inner::Number(match operator {
                    Plus => left + right,
                    Minus => left - right,
                    Times => left * right,
                    Divide => left / right,
                    _ => left % right,
                })
            }
            _ => Inner::Boolean(self.compare(operator, &left, &right)?),
        })
    }

    fn compare(&mut self, operator: Operator, left: &Inner, right: &Inner) -> Result<bool> {
        match (left, right) {
            (Inner::Nodes(_), Inner::Boolean(_)) | (Inner::Boolean(_), Inner::Nodes(_)) => {
                let (left, right) = (self.truth(left), self.truth(right));
                self.compare_atoms(operator, &Inner::Boolean(left), &Inner::Boolean(right))
            }
            (Inner::Nodes(left), Inner::Nodes(right)) => self.compare_sets(operator, left, right),
            (Inner::Nodes(_), _) | (_, Inner::Nodes(_)) => {
                let (left, right) = (self.atoms(left)?, self.atoms(right)?);
                for one in &left {
                    for other in &right {
                        if self.compare_atoms(operator, one, other)? {
                            return Ok(true);
                        }
                    }
                }
                Ok(false)
            }
            _ => self.compare_atoms(operator, left, right),
        }
    }

    /// Whether a pair of the two sets compares so. Each node is looked at once: pairs of two large sets have no bound.
    fn compare_sets(&mut self, operator: Operator, left: &[Item], right: &[Item]) -> Result<bool> {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, NotEqual};
        let (left, right) = (self.texts(left)?, self.texts(right)?);
        let (Some(first), Some(_)) = (left.first(), right.first()) else { return Ok(false) };
        if operator == NotEqual {
            return Ok(left.iter().chain(&right).any(|text| text != first));
        }
        if operator == Equal {
            let known: HashSet<&String> = left.iter().collect();
            return Ok(right.iter().any(|text| known.contains(text)));
        }
        // NaN, which compares with nothing, is never the least or the greatest of numbers.
        let least = |texts: &[String]| texts.iter().map(|text| number_of(text)).fold(f64::NAN, f64::min);
        let greatest = |texts: &[String]| texts.iter().map(|text| number_of(text)).fold(f64::NAN, f64::max);
        Ok(match operator {
            Less => least(&left) < greatest(&right),
            Greater => greatest(&left) > least(&right),
            GreaterOrEqual => greatest(&left) >= least(&right),
            _ => least(&left) <= greatest(&right),
        })
    }

    fn texts(&mut self, nodes: &[Item]) -> Result<Vec<String>> {
        nodes.iter().map(|&node| self.tree.string_of(node)).collect()
    }

    /// The texts of nodes; another value as it is.
    fn atoms(&mut self, value: &Inner) -> Result<Vec<Inner>> {
        match value {
            Inner::Nodes(nodes) => Ok(self.texts(nodes)?.into_iter().map(Inner::Text).collect()),
            other => Ok(vec![other.clone()]),
        }
    }

    fn compare_atoms(&mut self, operator: Operator, left: &Inner, right: &Inner) -> Result<bool> {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, NotEqual};
        if matches!(operator, Equal | NotEqual) {
            let equal = match (left, right) {
                (Inner::Boolean(_), _) | (_, Inner::Boolean(_)) => self.truth(left) == self.truth(right),
                (Inner::Text(left), Inner::Text(right)) => left == right,
                _ => {
                    let (left, right) = (self.number(left)?, self.number(right)?);
                    // NaN differs from all, itself included.
                    left == right
                }
            };
            return Ok(equal == (operator == Equal));
        }
        let (left, right) = (self.number(left)?, self.number(right)?);
        Ok(match operator {
            Less => left < right,
            Greater => left > right,
            GreaterOrEqual => left >= right,
            _ => left <= right,
        })
    }

    pub(super) fn truth(&self, value: &Inner) -> bool {
        match value {
            Inner::Nodes(nodes) => !nodes.is_empty(),
            Inner::Number(number) => *number != 0.0 && !number.is_nan(),
            Inner::Text(text) => !text.is_empty(),
            Inner::Boolean(truth) => *truth,
        }
    }

    pub(super) fn text(&mut self, value: &Inner) -> Result<String> {
        Ok(match value {
            Inner::Nodes(nodes) => match nodes.first() {
                Some(&first) => self.tree.string_of(first)?,
                None => String::new(),
            },
            Inner::Number(number) => text_of(*number),
            Inner::Text(text) => text.clone(),
            Inner::Boolean(truth) => truth.to_string(),
        })
    }

    pub(super) fn number(&mut self, value: &Inner) -> Result<f64> {
        Ok(match value {
            Inner::Number(number) => *number,
            Inner::Boolean(truth) => f64::from(u8::from(*truth)),
            other => number_of(&self.text(other)?),
        })
    }

    pub(super) fn nodes(&self, value: Inner, whose: &str) -> Result<Vec<Item>> {
        match value {
            Inner::Nodes(nodes) => Ok(nodes),
            _ => Err(DomError::Evaluation(format!("{whose} needs nodes, and got another value"))),
        }
    }

    fn filtered(&mut self, mut items: Vec<Item>, predicates: &[Expression]) -> Result<Vec<Item>> {
        for predicate in predicates {
            let size = items.len();
            let mut kept = Vec::new();
            for (index, item) in items.into_iter().enumerate() {
                let position = index + 1;
                let value = self.evaluate(predicate, Place { item, position, size })?;
                let keep = match value {
                    Inner::Number(number) => number == position as f64,
                    other => self.truth(&other),
                };
                if keep {
                    kept.push(item);
                }
            }
            items = kept;
        }
        Ok(items)
    }

    fn path(&mut self, start: &Start, steps: &[Step], place: Place) -> Result<Inner> {
        let mut steps = steps;
        let mut items = match start {
            Start::Here => vec![place.item],
            Start::At(inner) => {
                let value = self.evaluate(inner, place)?;
                self.nodes(value, "/")?
            }
            Start::Root => {
                let top = self.tree.top(place.item.node)?;
                if let Some(found) = self.by_index(top, steps)? {
                    steps = &steps[2..];
                    found
                } else {
                    vec![Item::of(top)]
                }
            }
        };
        for step in steps {
            items = self.step(&items, step)?;
        }
        Ok(Inner::Nodes(items))
    }

    fn step(&mut self, items: &[Item], step: &Step) -> Result<Vec<Item>> {
        let mut found = Vec::new();
        for &item in items {
            let mut reached = Vec::new();
            for candidate in self.tree.axis(item, step.axis)? {
                if self.passes(candidate, step)? {
                    reached.push(candidate);
                }
            }
            found.extend(self.filtered(reached, &step.predicates)?);
        }
        self.tree.in_order(found)
    }

    /// `//name` and `//@name` from the index of names: the nodes, by parents, as a walk would reach them.
    fn by_index(&mut self, top: DomNode, steps: &[Step]) -> Result<Option<Vec<Item>>> {
        let [first, step, ..] = steps else { return Ok(None) };
        let every =
            first.axis == Axis::DescendantOrSelf && first.test == Test::Node && first.predicates.is_empty();
        let kind = match step.axis {
            Axis::Child => NodeKind::Element,
            Axis::Attribute => NodeKind::Attribute,
            _ => return Ok(None),
        };
        let (true, Test::Name { prefix: None, local }) = (every, &step.test) else { return Ok(None) };
        if self.tree.dom.document_node(self.tree.session)? != Some(top)
            || local.len() > 200
            || local == "xmlns"
        {
            return Ok(None);
        }
        let index = self.tree.dom.by_name(kind, local)?;
        let mut items = Vec::new();
        for node in self.tree.dom.listed(self.tree.session, &index)? {
            if self.passes(Item::of(node), step)? && self.tree.top(node)? == top {
                items.push(Item::of(node));
            }
        }
        let items = self.tree.in_order(items)?;
        if step.predicates.is_empty() {
            return Ok(Some(items));
        }
        // A predicate counts among the children of one parent, which need not be neighbours here.
        let mut families: Vec<Vec<Item>> = Vec::new();
        let mut family_of = std::collections::HashMap::new();
        for item in items {
            let parent = self.tree.record(item.node)?.parent;
            let family = *family_of.entry(parent).or_insert(families.len());
            if family == families.len() {
                families.push(Vec::new());
            }
            families[family].push(item);
        }
        let mut found = Vec::new();
        for family in families {
            found.extend(self.filtered(family, &step.predicates)?);
        }
        Ok(Some(self.tree.in_order(found)?))
    }

    fn passes(&mut self, item: Item, step: &Step) -> Result<bool> {
        let kind = self.tree.record(item.node)?.kind;
        let principal = match step.axis {
            Axis::Attribute => item.namespace.is_none() && kind == NodeKind::Attribute,
            Axis::Namespace => item.namespace.is_some(),
            _ => item.namespace.is_none() && kind == NodeKind::Element,
        };
        Ok(match &step.test {
            Test::Node => true,
            Test::Any => principal,
            Test::Text => item.namespace.is_none() && matches!(kind, NodeKind::Text | NodeKind::CData),
            Test::Comment => item.namespace.is_none() && kind == NodeKind::Comment,
            Test::Instruction(target) => {
                item.namespace.is_none()
                    && kind == NodeKind::ProcessingInstruction
                    && target.as_ref().is_none_or(|t| self.tree.record(item.node).is_ok_and(|r| r.name == *t))
            }
            Test::InNamespace(prefix) => {
                let uri = self.namespace(prefix)?;
                principal && item.namespace.is_none() && self.tree.expanded(item.node)?.0 == uri
            }
            Test::Name { prefix, local } => {
                let uri = match prefix {
                    Some(prefix) => self.namespace(prefix)?,
                    None => String::new(),
                };
                match (principal, item.namespace) {
                    (false, _) => false,
                    (_, Some(number)) => {
                        prefix.is_none() && self.tree.namespaces[number as usize].0 == *local
                    }
                    _ => self.tree.expanded(item.node)? == (uri, local.clone()),
                }
            }
        })
    }

    /// What a prefix of the expression stands for.
    fn namespace(&self, prefix: &str) -> Result<String> {
        match self.surroundings.namespaces.get(prefix) {
            Some(uri) => Ok(uri.clone()),
            None if prefix == "xml" => Ok(XML.to_owned()),
            None => {
                Err(DomError::Evaluation(format!("the prefix {prefix} is not declared: give its namespace")))
            }
        }
    }
}
