//! The items of a step, in the order in which they run.

use super::OracleError;
use super::code::Environment;
use super::job::Job;
use super::reduce::{Condition, Reducer};
use crate::program::Repetition;

/// What a step consists of, and the condition that is looked at behind it.
pub struct Items {
    /// Functions and reductions, in their order.
    pub list: Vec<Item>,
    /// The condition that ends a run.
    pub until: Option<Condition>,
}

/// An item of a step.
pub enum Item {
    /// A function.
    Function(Job),
    /// A reduction.
    Reduction(Reducer),
}

impl Items {
    pub fn new(environment: &Environment) -> Result<Self, OracleError> {
        let program = environment.program;
        let mut list = Vec::new();
        for place in 0..=program.functions.len() {
            for reduction in program.reductions.iter().filter(|one| one.place == place) {
                list.push(Item::Reduction(Reducer::new(reduction, environment)?));
            }
            if let Some(function) = program.functions.get(place) {
                list.push(Item::Function(Job::new(function, environment)?));
            }
        }
        let until = program.until.as_ref();
        let until = until.map(|until| Condition::new(&until.condition, until.every, environment));
        Ok(Self { list, until })
    }

    /// Whether no item computes anything.
    pub fn are_idle(&self) -> bool {
        self.list.iter().all(|item| match item {
            Item::Function(job) => !job.has_points(),
            Item::Reduction(_) => false,
        })
    }
}

impl Item {
    /// The `repeat` that it stands in below so many others.
    pub fn repeat(&self, depth: usize) -> Option<&Repetition> {
        let repeats = match self {
            Self::Function(job) => &job.repeats,
            Self::Reduction(reducer) => &reducer.repeats,
        };
        repeats.get(depth)
    }
}
