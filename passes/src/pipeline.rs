//! The compiler, as lists of passes from level to level.

use crate::affine::lower_affine_nest::LowerAffineNest;
use crate::affine::sink_time_loops::SinkTimeLoops;
use crate::affine::tile_affine_nest::TileAffineNest;
use crate::affine::transpose_arrays::TransposeArrays;
use crate::gpu::bank_pad::BankPad;
use crate::gpu::coalesce_relayout::CoalesceRelayout;
use crate::gpu::exact_division::ExactDivision;
use crate::gpu::guard_launches::GuardLaunches;
use crate::gpu::hoist_guards::HoistGuards;
use crate::gpu::interleave_records::InterleaveRecords;
use crate::gpu::keep_in_registers::KeepInRegisters;
use crate::gpu::lower_peer::LowerPeer;
use crate::gpu::number_blocks::NumberBlocks;
use crate::gpu::place_constants::PlaceConstants;
use crate::gpu::unroll_by_registers::UnrollByRegisters;
use crate::gpu::vectorize_copies::VectorizeCopies;
use crate::kernel::lanes::WARP;
use crate::llvm::annotate_loops::AnnotateLoops;
use crate::llvm::convert_math_to_calls::ConvertMathToCalls;
use crate::llvm::convert_prefetch_to_nvvm::ConvertPrefetchToNvvm;
use crate::llvm::host_entries::HostEntries;
use crate::llvm::load_constants::LoadConstants;
use crate::pass::Step;
use crate::reduce::combine_stores::CombineStores;
use crate::reduce::fuse_reductions::FuseReductions;
use crate::reduce::lower_reduce::LowerReduce;
use crate::schedule::choose_heights::ChooseHeights;
use crate::schedule::choose_schedule::{ChooseSchedule, Request};
use crate::schedule::lowering;
use crate::stencil::aos_fields::AosFields;
use crate::stencil::fuse_functions::FuseFunctions;
use crate::stencil::late_values_last::LateValuesLast;
use crate::stencil::relax_arithmetic::RelaxArithmetic;
use crate::stencil::share_subexpressions::ShareSubexpressions;
use crate::stencil::verify::StencilVerify;
use stencil_dialects::tiled::{Choice, NestTile};

/// What the pipelines are made from.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// What is asked of the schedule; the rest is chosen.
    pub choice: Choice,
    /// Pyramid heights from which a run chooses; none where the compile chooses one.
    pub heights: Vec<i64>,
    /// Whether temp fields are kept, however cheap they are to compute again.
    pub no_fuse: bool,
    /// Whether functions of affine loops get no tiles with copies in shared memory.
    pub no_nest_tiles: bool,
    /// Whether arrays of functions of affine loops get another order of dimensions where that pays.
    pub transpose_arrays: bool,
    /// The tile of functions of affine loops; the compiler's own where none is named.
    pub nest_tile: Option<NestTile>,
    /// Whether functions of affine loops copy single elements to shared memory.
    pub no_vector_copies: bool,
    /// Whether loops of functions of affine loops are unrolled as `unroll-by-registers` states.
    pub unroll_by_registers: bool,
    /// Whether arrays stay in global memory, small ones that all lanes read alike too.
    pub no_place_constants: bool,
    /// How a run is given fields of structs and vecs.
    pub layout: RecordLayout,
    /// What comes behind the schedule.
    pub lowering: lowering::Settings,
}

/// How a run is given the cells of fields of structs and vecs, and how kernels use them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordLayout {
    /// An array for each number, for the run and for kernels.
    #[default]
    Soa,
    /// An array of structs; `coalesce-relayout` decides what kernels use.
    Aos,
    /// An array of structs, for kernels too.
    AosDirect,
    /// An array of structs; kernels use an array for each number.
    AosRelaid,
    /// An array of structs; kernels use an array of blocks of 32 cells.
    AosBlocks,
    /// An array of blocks of 32 cells, each of which has an array for each number.
    Blocks,
}

impl RecordLayout {
    /// All layouts with their names on a command line.
    pub const ALL: [(&'static str, Self); 6] = [
        ("soa", Self::Soa),
        ("aos", Self::Aos),
        ("aos-direct", Self::AosDirect),
        ("aos-relaid", Self::AosRelaid),
        ("aos-blocks", Self::AosBlocks),
        ("blocks", Self::Blocks),
    ];

    /// Cells of a block, 1 where there are none.
    pub fn block(self) -> i64 {
        if self == Self::Blocks { WARP } else { 1 }
    }

    /// The layout of a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|(word, _)| *word == name).map(|(_, layout)| layout)
    }
}

impl Config {
    /// An option that is set and for functions of affine loops alone.
    pub fn of_nests(&self) -> Option<&'static str> {
        let Self { no_nest_tiles, transpose_arrays, no_vector_copies, .. } = *self;
        let Self { unroll_by_registers, no_place_constants, .. } = *self;
        let options = [
            (no_nest_tiles, "no-nest-tiles"),
            (transpose_arrays, "transpose-arrays"),
            (no_vector_copies, "no-vector-copies"),
            (unroll_by_registers, "unroll-by-registers"),
            (no_place_constants, "no-place-constants"),
        ];
        options.into_iter().find(|(set, _)| *set).map(|(_, name)| name)
    }

    fn request(&self) -> Request {
        Request { choice: self.choice.clone(), settings: self.lowering }
    }
}

/// A stencil program as it was imported, checked and simplified.
///
/// `share-subexpressions` and `fuse-functions` run last, because they compare candidates on
/// simplified code.
pub fn stencil(config: &Config) -> Vec<Step> {
    let mut steps = vec![
        Step::ours(StencilVerify),
        Step::upstream("func.func(canonicalize,cse)"),
        Step::ours(RelaxArithmetic),
        Step::ours(LateValuesLast),
        Step::upstream("func.func(canonicalize,cse)"),
    ];
    if config.layout != RecordLayout::Soa {
        steps.push(Step::ours(AosFields { block: config.layout.block() }));
    }
    if !config.no_fuse {
        steps.push(Step::ours(ShareSubexpressions(config.request())));
        steps.push(Step::ours(FuseFunctions(config.request())));
    }
    steps
}

/// From the stencil level to the tiled level.
pub fn tiled(config: &Config) -> Vec<Step> {
    let request = config.request();
    let mut steps = vec![match config.heights.as_slice() {
        [] => Step::ours(ChooseSchedule(request)),
        heights => Step::ours(ChooseHeights { heights: heights.to_vec(), request }),
    }];
    // The choice stands in the module by now.
    steps.extend(lowering::tile(&Choice::default()));
    steps.push(Step::ours(FuseReductions(config.lowering)));
    steps.extend(lowering::split(config.lowering));
    steps
}

/// From the tiled level to the gpu level.
///
/// Reductions come first: which step they belong to is seen by the tile kernels around them.
///
/// Kernels are simplified from the bottom up: with branches in branches, as streams have them, that
/// takes a tenth of the time.
///
/// Arrays of structs come behind the lowerings, whose kernels have a buffer for each number. They
/// come before `guard-launches`, which puts the body of a kernel into a branch.
pub fn gpu(config: &Config) -> Vec<Step> {
    let mut steps = vec![Step::ours(LowerReduce)];
    steps.extend(lowering::lower());
    if config.layout != RecordLayout::AosDirect {
        let arrays = config.layout == RecordLayout::AosRelaid;
        let always = arrays || config.layout == RecordLayout::AosBlocks;
        steps.push(Step::ours(CoalesceRelayout { always, arrays, cells: WARP, steps: None }));
    }
    steps.push(Step::ours(InterleaveRecords));
    steps.push(Step::ours(CombineStores));
    let lowering::Settings { devices, windows, .. } = config.lowering;
    if windows || devices.is_some_and(|devices| devices.count() > 1) {
        steps.push(Step::ours(NumberBlocks));
    }
    steps.push(Step::ours(GuardLaunches));
    steps.push(Step::ours(ExactDivision));
    steps.push(Step::upstream("gpu.module(canonicalize{top-down=false},cse)"));
    steps
}

/// From the tiled level to functions of tiles, for a processor.
pub fn host() -> Vec<Step> {
    let mut steps = vec![Step::ours(LowerReduce)];
    steps.extend(lowering::lower());
    steps.push(Step::upstream("builtin.module(canonicalize{top-down=false},cse)"));
    steps
}

/// From functions of tiles to the LLVM dialect.
pub fn host_llvm() -> Vec<Step> {
    vec![
        Step::ours(ConvertMathToCalls),
        Step::ours(LowerPeer::new(64)),
        Step::upstream(
            "builtin.module(expand-strided-metadata,lower-affine,func.func(canonicalize,cse),\
             convert-math-to-llvm,convert-vector-to-llvm,convert-scf-to-cf,\
             finalize-memref-to-llvm,convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},\
             convert-arith-to-llvm,convert-cf-to-llvm,reconcile-unrealized-casts,\
             canonicalize,cse)",
        ),
        Step::ours(HostEntries),
    ]
}

/// From a function of affine loops to one whose arrays and loops have the order that its kernels
/// use.
pub fn nest_order(config: &Config) -> Vec<Step> {
    let mut steps = Vec::new();
    if config.transpose_arrays {
        steps.push(Step::ours(TransposeArrays::default()));
    }
    if !config.no_nest_tiles {
        steps.push(Step::ours(SinkTimeLoops));
    }
    steps
}

/// From a function of affine loops to the gpu level.
///
/// Tiles come behind the order of arrays, because they share what is not coalesced then. `bank-pad`
/// follows the lanes' addresses, which are simplified by then. `vectorize-copies` keeps the rows
/// that it made. `eliminate-barriers` is left out: `conv2d` is 4.6 % slower with it (decision 027).
/// `place-constants` comes last: it follows the lanes' addresses too.
pub fn nest_gpu(config: &Config) -> Vec<Step> {
    let mut steps = nest_order(config);
    if !config.no_nest_tiles {
        let tile = config.nest_tile.as_ref().map(TileAffineNest::from).unwrap_or_default();
        steps.push(Step::ours(TileAffineNest { constants: !config.no_place_constants, ..tile }));
    }
    steps.push(Step::ours(LowerAffineNest));
    steps.push(Step::ours(ExactDivision));
    steps.push(Step::upstream("gpu.module(canonicalize{top-down=false},cse)"));
    steps.push(Step::ours(HoistGuards));
    steps.push(Step::ours(KeepInRegisters));
    if !config.no_nest_tiles {
        steps.push(Step::ours(BankPad));
        if !config.no_vector_copies {
            steps.push(Step::ours(VectorizeCopies));
            // Branches on one condition that follow each other become one.
            steps.push(Step::upstream("gpu.module(cse,canonicalize{top-down=false},cse)"));
        }
    }
    if config.unroll_by_registers {
        steps.push(Step::ours(UnrollByRegisters));
    }
    if !config.no_place_constants {
        steps.push(Step::ours(PlaceConstants));
    }
    steps
}

/// From the gpu level to NVVM in the LLVM dialect; `index_width` is 32 or 64 bits.
///
/// `expand-strided-metadata` leaves affine maps behind, so `lower-affine` follows it;
/// `convert-gpu-to-nvvm` comes before the vector and memref conversions, whose casts it would not
/// see through. `load-constants` comes last: it counts what is left.
pub fn nvvm(index_width: u32) -> Vec<Step> {
    vec![
        Step::ours(LowerPeer::new(index_width.into())),
        Step::upstream(format!(
            "gpu.module(expand-strided-metadata,lower-affine,canonicalize,cse,convert-scf-to-cf,\
             convert-gpu-to-nvvm{{index-bitwidth={index_width} use-bare-ptr-memref-call-conv=1}})"
        )),
        Step::upstream("convert-vector-to-llvm"),
        Step::upstream(format!("finalize-memref-to-llvm{{index-bitwidth={index_width}}}")),
        Step::ours(ConvertPrefetchToNvvm),
        Step::ours(AnnotateLoops),
        Step::upstream("gpu.module(canonicalize,cse,reconcile-unrealized-casts)"),
        Step::ours(LoadConstants),
    ]
}

/// From the gpu level to ROCDL in the LLVM dialect, for a GPU of AMD's; `index_width` is 32 or 64
/// bits. The order is that of [`nvvm`]. Few functions of bf16 have code there, so they are f32's.
pub fn rocdl(arch: &str, index_width: u32) -> Vec<Step> {
    vec![
        Step::upstream(format!(
            "gpu.module(expand-strided-metadata,lower-affine,\
             math-extend-to-supported-types{{extra-types=f16,f64 target-type=f32}},\
             canonicalize,cse,convert-scf-to-cf,\
             convert-gpu-to-rocdl{{chipset={arch} index-bitwidth={index_width} \
             use-bare-ptr-memref-call-conv=1 runtime=HIP}})"
        )),
        Step::upstream("convert-vector-to-llvm"),
        Step::upstream(format!("finalize-memref-to-llvm{{index-bitwidth={index_width}}}")),
        Step::ours(AnnotateLoops),
        Step::upstream("gpu.module(canonicalize,cse,reconcile-unrealized-casts)"),
    ]
}
