//! Walks over expressions and pieces.

use crate::model::{Expr, Kind, Piece};

impl Expr {
    /// The expressions that it consists of.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            Kind::Unary(_, a) | Kind::Cast(a) | Kind::Part(a, _) => vec![a],
            Kind::Binary(_, a, b) | Kind::Let(_, a, b) => vec![a, b],
            Kind::If(parts) => parts.iter().collect(),
            Kind::Call(_, parts)
            | Kind::Called(_, parts)
            | Kind::Gather(_, parts)
            | Kind::Whole(parts) => parts.iter().collect(),
            _ => Vec::new(),
        }
    }

    /// The same, to be changed in place.
    pub fn children_mut(&mut self) -> Vec<&mut Expr> {
        match &mut self.kind {
            Kind::Unary(_, a) | Kind::Cast(a) | Kind::Part(a, _) => vec![a],
            Kind::Binary(_, a, b) | Kind::Let(_, a, b) => vec![a, b],
            Kind::If(parts) => parts.iter_mut().collect(),
            Kind::Call(_, parts)
            | Kind::Called(_, parts)
            | Kind::Gather(_, parts)
            | Kind::Whole(parts) => parts.iter_mut().collect(),
            _ => Vec::new(),
        }
    }

    /// Calls a function on every part, the whole first.
    pub fn visit(&self, f: &mut impl FnMut(&Expr)) {
        f(self);
        for child in self.children() {
            child.visit(f);
        }
    }

    /// Calls a function on every part, the innermost first.
    pub fn change(&mut self, f: &mut impl FnMut(&mut Expr)) {
        for child in self.children_mut() {
            child.change(f);
        }
        f(self);
    }

    /// Number of parts.
    pub fn size(&self) -> usize {
        let mut count = 0;
        self.visit(&mut |_| count += 1);
        count
    }
}

impl Piece {
    /// What the values share, then the values.
    pub fn exprs(&self) -> impl Iterator<Item = &Expr> {
        self.lets.iter().map(|(_, value)| value).chain(&self.values)
    }

    /// The same, to be changed in place.
    pub fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        self.lets.iter_mut().map(|(_, value)| value).chain(&mut self.values)
    }
}
