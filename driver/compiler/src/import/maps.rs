//! Affine maps of bounds and conditions: their symbols are the run-time sizes.

use super::Import;
use melior::ir::{AffineExpr, AffineMap};
use stencil_dialects::affine::symbolic;
use stencil_frontend::program::{Affine, ParamId, Region};

impl<'c> Import<'c, '_> {
    /// The bounds of a box.
    pub(super) fn bounds(&self, region: &Region) -> (AffineMap<'c>, AffineMap<'c>) {
        (self.map(&region.lower), self.map(&region.upper))
    }

    /// An affine map whose symbols are the run-time sizes.
    pub(super) fn map(&self, results: &[Affine]) -> AffineMap<'c> {
        self.map_of(&self.runtime, results)
    }

    /// The same; where the steps of a run occur, they are the last symbol.
    pub(super) fn condition(&self, value: &Affine) -> AffineMap<'c> {
        let steps = value.terms.iter().find(|(id, _)| *id == ParamId::STEPS);
        let steps = steps.map(|(id, _)| *id);
        let symbols: Vec<_> = self.runtime.iter().copied().chain(steps).collect();
        self.map_of(&symbols, std::slice::from_ref(value))
    }

    fn map_of(&self, symbols: &[ParamId], results: &[Affine]) -> AffineMap<'c> {
        let context = self.builder.context;
        let results: Vec<_> = results
            .iter()
            .map(|affine| {
                let terms = affine.terms.iter().filter_map(|(param, coefficient)| {
                    let symbol = symbols.iter().position(|id| id == param)?;
                    Some(
                        AffineExpr::symbol(context, symbol)
                            * AffineExpr::constant(context, *coefficient),
                    )
                });
                let constant = AffineExpr::constant(context, affine.constant);
                terms.reduce(|sum, term| sum + term).map_or(constant, |sum| sum + constant)
            })
            .collect();
        symbolic(context, symbols.len(), &results)
    }
}
