//! `--emit`: what a compile writes.

use crate::cli::{CommonArgs, CompileArgs};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use stencil_compiler::{AMD_ARCHITECTURES, Level, processors};

/// An output of a compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Emit {
    /// The text of a level.
    Level(Level),
    /// A function in C.
    C,
    /// An object file of a processor.
    Object,
}

impl Emit {
    /// The level that it is made from, or beside. Assembly of a processor takes as long again as
    /// its object file.
    pub(crate) fn level(self, processor: bool) -> Level {
        match self {
            Self::Level(level) => level,
            Self::C => Level::Plan,
            Self::Object if processor => Level::Llvm,
            Self::Object => Level::Asm,
        }
    }

    /// The extension of its file.
    pub(crate) fn extension(self) -> &'static str {
        match self {
            Self::Level(level) => level.extension(),
            Self::C => "c",
            Self::Object => "o",
        }
    }
}

/// Reads the name of a level, `c` or `obj`.
pub(crate) fn emitted() -> impl TypedValueParser<Value = Emit> {
    let levels = Level::ALL.map(|level| PossibleValue::new(level.name()).help(level.summary()));
    let c = PossibleValue::new("c").help(
        "A function in C with plan and PTX, as -o NAME.h and .c; for a processor also NAME.o",
    );
    let object = PossibleValue::new("obj").help("An object file of a processor");
    let names = levels.into_iter().chain([object, c]);
    PossibleValuesParser::new(names).try_map(|name| match name.as_str() {
        "c" => Ok(Emit::C),
        "obj" => Ok(Emit::Object),
        name => name.parse::<Level>().map(Emit::Level),
    })
}

impl CompileArgs {
    /// The outputs asked for, each once.
    pub(crate) fn emitted(&self, common: &CommonArgs) -> Vec<Emit> {
        let mut all: Vec<Emit> = Vec::new();
        for emit in &self.emit {
            if !all.contains(emit) {
                all.push(*emit);
            }
        }
        let arch = common.arch.as_deref();
        let is_processor = arch.is_some_and(|arch| processors().contains(&arch));
        if all.is_empty() {
            let other = is_processor || arch.is_some_and(|arch| AMD_ARCHITECTURES.contains(&arch));
            all.push(Emit::Level(if other { Level::Asm } else { Level::Ptx }));
        }
        if is_processor && all.contains(&Emit::C) && !all.contains(&Emit::Object) {
            all.push(Emit::Object);
        }
        all
    }
}
