//! Arithmetic on [`Affine`]s: checked, never wrapping.

use crate::program::{Affine, Param, ParamId};
use cranelift_entity::PrimaryMap;
use std::collections::BTreeMap;

/// The name of a size in messages.
pub fn size_name(id: ParamId, params: &PrimaryMap<ParamId, Param>) -> &str {
    if id == ParamId::STEPS { "steps" } else { params.get(id).map_or("?", |param| &param.name) }
}

impl Affine {
    /// A number.
    pub fn number(constant: i64) -> Self {
        Self { constant, terms: Vec::new() }
    }

    /// A run-time size.
    pub fn param(id: ParamId) -> Self {
        Self { constant: 0, terms: vec![(id, 1)] }
    }

    /// The number, where no run-time size occurs.
    pub fn as_number(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// `self + other`; `None` on overflow.
    pub fn plus(&self, other: &Self) -> Option<Self> {
        let mut terms: BTreeMap<ParamId, i64> = self.terms.iter().copied().collect();
        for (id, coefficient) in &other.terms {
            let sum = terms.entry(*id).or_default();
            *sum = sum.checked_add(*coefficient)?;
        }
        let constant = self.constant.checked_add(other.constant)?;
        let terms = terms.into_iter().filter(|(_, coefficient)| *coefficient != 0).collect();
        Some(Self { constant, terms })
    }

    /// `self - other`; `None` on overflow.
    pub fn minus(&self, other: &Self) -> Option<Self> {
        self.plus(&other.times(-1)?)
    }

    /// `self * factor`; `None` on overflow.
    pub fn times(&self, factor: i64) -> Option<Self> {
        if factor == 0 {
            return Some(Self::default());
        }
        let scale =
            |(id, coefficient): &(ParamId, i64)| Some((*id, coefficient.checked_mul(factor)?));
        let terms = self.terms.iter().map(scale).collect::<Option<_>>()?;
        Some(Self { constant: self.constant.checked_mul(factor)?, terms })
    }

    /// `self + number`; `None` on overflow.
    pub fn shifted(&self, number: i64) -> Option<Self> {
        let constant = self.constant.checked_add(number)?;
        Some(Self { constant, terms: self.terms.clone() })
    }

    /// In the notation of the language: `2*N - M + 1`.
    pub fn show(&self, params: &PrimaryMap<ParamId, Param>) -> String {
        let mut text = String::new();
        let mut add = |magnitude: u64, negative: bool, name: &str| {
            let sign = match (text.is_empty(), negative) {
                (true, true) => "-",
                (true, false) => "",
                (false, true) => "-",
                (false, false) => "+",
            };
            let product = match (name, magnitude) {
                ("", _) => magnitude.to_string(),
                (_, 1) => name.to_string(),
                _ => format!("{magnitude}*{name}"),
            };
            text = format!("{text}{sign}{product}");
        };
        for (id, coefficient) in &self.terms {
            add(coefficient.unsigned_abs(), *coefficient < 0, size_name(*id, params));
        }
        if self.constant != 0 || self.terms.is_empty() {
            add(self.constant.unsigned_abs(), self.constant < 0, "");
        }
        text
    }

    /// The condition `self >= 0`, with the constant moved to the right: `N >= 3`, `M <= 7`.
    pub fn show_condition(&self, params: &PrimaryMap<ParamId, Param>) -> String {
        let all_negative = self.terms.iter().all(|(_, coefficient)| *coefficient < 0);
        let (sign, relation) = if all_negative { (-1, "<=") } else { (1, ">=") };
        let sides = Self { constant: 0, terms: self.terms.clone() }.times(sign);
        match (sides, self.constant.checked_mul(-sign)) {
            (Some(left), Some(right)) => format!("{} {relation} {right}", left.show(params)),
            _ => format!("{} >= 0", self.show(params)),
        }
    }
}
