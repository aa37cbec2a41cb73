//! Wavefronts by lists of passes.

use crate::model::Schedule;

/// Passes that make wavefronts, as `docs/ir.md` combines them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Combination {
    /// Whether tiles are skewed.
    pub skewed: bool,
    /// The pass by which blocks wait for each other; none for a launch per diagonal.
    pub sync: Option<&'static str>,
    /// The most blocks of a launch.
    pub blocks: i64,
    /// Whether upstream's passes simplify the kernels.
    pub simplified: bool,
}

impl Schedule {
    /// The passes from the stencil level to the gpu level, where they are not the compiler's own.
    pub fn passes(&self) -> Option<String> {
        let Combination { skewed, sync, blocks, simplified } = self.combination?;
        let tile = self.tile.iter().flatten().map(i64::to_string).collect::<Vec<_>>().join(",");
        let tile = if tile.is_empty() { tile } else { format!(" tile={tile}") };
        let parts = [
            format!("tile-wavefront{{strategy={}{tile}}}", self.strategy),
            if skewed { "hyperplane-skew".to_owned() } else { String::new() },
            sync.unwrap_or_default().to_owned(),
            "tile-overlapped{strategy=naive},rotate-buffers,lower-naive".to_owned(),
            format!("lower-wavefront{{blocks={blocks}}}"),
            if simplified { "gpu.module(canonicalize,cse)".to_owned() } else { String::new() },
        ];
        Some(parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(","))
    }
}
