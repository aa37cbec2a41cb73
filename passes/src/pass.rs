//! A pass is a value: it holds its options, typed, and changes a module.

use crate::options::Options;
use crate::upstream;
use melior::Context;
use melior::ir::Module;
use stencil_dialects::error::Error;
use stencil_dialects::mlir;

/// A pass of this project with its options. It runs on the whole module, like upstream's module
/// passes.
pub trait Pass {
    /// Its entry in the registry.
    fn info(&self) -> &'static Info;

    /// Options that differ from their defaults, as they stand in the text of a pipeline.
    fn options(&self) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    /// Whether the module has anything for the pass. Where it has nothing, the pass would change
    /// nothing: the runner leaves it out, and the verification after it.
    ///
    /// # Errors
    /// A malformed module.
    fn has_work(&self, _: &Module) -> Result<bool, Error> {
        Ok(true)
    }

    /// Whether the pass accepts branches between blocks. Other passes follow structured control
    /// flow, and the runner refuses them on a module that has branches.
    fn takes_branches(&self) -> bool {
        false
    }

    /// Changes the module. The runner verifies it before and after.
    fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error>;
}

/// A pass by name: what help and the text of pipelines need of it.
pub struct Info {
    /// The name in pipelines, which is that of the file and of the test.
    pub name: &'static str,
    /// What it does, in a line.
    pub summary: &'static str,
    /// Names of its options, with what each means.
    pub options: &'static [(&'static str, &'static str)],
    /// Makes the pass from the text of its options.
    pub read: fn(&Options) -> Result<Box<dyn Pass>, Error>,
}

/// One step of a pipeline.
pub enum Step {
    /// A pass of this project.
    Ours(Box<dyn Pass>),
    /// A pass of upstream's, or a pipeline on nested operations, as text.
    Upstream(String),
}

impl Step {
    /// A step of ours.
    pub fn ours(pass: impl Pass + 'static) -> Self {
        Self::Ours(Box::new(pass))
    }

    /// A step of upstream's, such as `canonicalize` or `func.func(canonicalize,cse)`.
    pub fn upstream(text: impl Into<String>) -> Self {
        Self::Upstream(text.into())
    }

    /// Whether it is upstream's pass that replaces calls.
    pub fn inlines(&self) -> bool {
        let Self::Upstream(text) = self else { return false };
        text.strip_prefix("inline").is_some_and(|rest| rest.is_empty() || rest.starts_with('{'))
    }

    /// Changes a module, without the runner's checks.
    ///
    /// # Errors
    /// Those of the pass.
    pub fn run<'c>(&self, context: &'c Context, module: &mut Module<'c>) -> Result<(), Error> {
        match self {
            Self::Ours(pass) => pass.run(context, module),
            Self::Upstream(text) => {
                let pipeline = format!("builtin.module({text})");
                upstream::run(text, || mlir::run_upstream(context, module, &pipeline))
            }
        }
    }

    /// Whether the module has anything for the step, as [`Pass::has_work`].
    ///
    /// # Errors
    /// A malformed module.
    pub fn has_work(&self, module: &Module) -> Result<bool, Error> {
        match self {
            Self::Ours(pass) => pass.has_work(module),
            Self::Upstream(_) => Ok(true),
        }
    }

    /// The step as text: `name{option=value}`.
    pub fn text(&self) -> String {
        let pass = match self {
            Self::Upstream(text) => return text.clone(),
            Self::Ours(pass) => pass,
        };
        let options = pass.options();
        let options: Vec<_> =
            options.into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        if options.is_empty() {
            pass.info().name.to_owned()
        } else {
            format!("{}{{{}}}", pass.info().name, options.join(" "))
        }
    }
}
