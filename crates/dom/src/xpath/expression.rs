//! Expressions of XPath as trees. Operators of one rank stand in a list, so that only brackets make depth.

/// The thirteen axes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Axis {
    Ancestor,
    AncestorOrSelf,
    Attribute,
    Child,
    Descendant,
    DescendantOrSelf,
    Following,
    FollowingSibling,
    Namespace,
    Parent,
    Preceding,
    PrecedingSibling,
    Itself,
}

impl Axis {
    pub(super) fn named(name: &str) -> Option<Axis> {
        Some(match name {
            "ancestor" => Axis::Ancestor,
            "ancestor-or-self" => Axis::AncestorOrSelf,
            "attribute" => Axis::Attribute,
            "child" => Axis::Child,
            "descendant" => Axis::Descendant,
            "descendant-or-self" => Axis::DescendantOrSelf,
            "following" => Axis::Following,
            "following-sibling" => Axis::FollowingSibling,
            "namespace" => Axis::Namespace,
            "parent" => Axis::Parent,
            "preceding" => Axis::Preceding,
            "preceding-sibling" => Axis::PrecedingSibling,
            "self" => Axis::Itself,
            _ => return None,
        })
    }
}

/// Which nodes of an axis are taken.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Test {
    Any,
    Name { prefix: Option<String>, local: String },
    InNamespace(String),
    Node,
    Text,
    Comment,
    Instruction(Option<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) axis: Axis,
    pub(super) test: Test,
    pub(super) predicates: Vec<Expression>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Plus,
    Minus,
    Times,
    Divide,
    Modulo,
    Union,
}

impl Operator {
    /// How strongly it binds.
    pub(super) fn rank(self) -> u8 {
        use Operator::*;
        match self {
            Or => 1,
            And => 2,
            Equal | NotEqual => 3,
            Less | LessOrEqual | Greater | GreaterOrEqual => 4,
            Plus | Minus => 5,
            Times | Divide | Modulo => 6,
            Union => 8,
        }
    }
}

/// Where a path begins.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Start {
    Root,
    Here,
    At(Box<Expression>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Chain(Box<Expression>, Vec<(Operator, Expression)>),
    Negative(Box<Expression>),
    Text(String),
    Number(f64),
    Variable(String),
    Call(String, Vec<Expression>),
    Filter(Box<Expression>, Vec<Expression>),
    Path(Start, Vec<Step>),
}
