//! A file of SL to a checked program.
//!
//! | SL | program |
//! |---|---|
//! | `input_size.x` and so on | the params `size_x`, `size_y`, `size_z` |
//! | the matrix | the field `data` |
//! | the array of `SetData` | the const field `read`, with the params `count` or `layers` |
//! | a scalar variable | a scalar |
//! | `CellValue` | one function on the whole grid |
//! | `EdgeValue` | the boundary rule of `data` |
//! | `Converged` | see `convergence.rs` |

use super::data::{self, View};
use super::lower::{self, Context, Lowered, OWN_NAMES};
use super::parser::KEYS;
use super::tree::{Block, File};
use super::{convergence, host_names, scopes};
use crate::ast::Name;
use crate::check::{Space, absolute_reads};
use crate::diagnostics::Diagnostic;
use crate::limits;
use crate::program::*;
use crate::source::{Source, Span};
use crate::suggest;
use cranelift_entity::{EntityRef, PrimaryMap};
use std::collections::{BTreeMap, HashMap};
use stencil_runtime::array::Element;

/// Names of the sizes, x first.
pub const SIZES: [&str; 3] = ["size_x", "size_y", "size_z"];
/// The size of an array of layers, and of a line.
pub const LAYERS: &str = "layers";
/// The number of elements of a line.
pub const COUNT: &str = "count";
/// The fields.
pub const DATA: &str = "data";
/// The array of `SetData`.
pub const READ: &str = "read";

/// The parts of a file that every program needs, in order.
struct Keys {
    sizes: Vec<u64>,
    element: Element,
    name: Name,
}

/// Checks a file. `defines` are values for params.
pub fn check(
    file: &File,
    source: &Source,
    defines: &[(String, i64)],
) -> Result<Program, Vec<Diagnostic>> {
    let mut errors = Vec::new();
    for block in [&file.cell_value, &file.edge_value, &file.converged].into_iter().flatten() {
        scopes::check(block, &mut errors);
    }
    let keys = keys(file, source, &mut errors);
    let scalars = scalars(file, &mut errors);
    let Some(keys) = keys else { return Err(errors) };
    let mut program = declarations(&keys, file, source);
    define(&mut program, defines, &mut errors);
    let mut context = Context {
        function: keys.name.node.clone(),
        element: keys.element,
        stencil_size: keys.sizes.clone(),
        data: FieldId::from_u32(0),
        read: FieldId::from_u32(1),
        sizes: program.params.keys().take(keys.sizes.len()).collect(),
        scalars,
        edge: false,
        value: None,
        returned: keys.element,
        first_local: 0,
    };
    let mut lowered = |block: &Option<Block>, context: &Context| {
        let (value, found) = lower::block(context, block.as_ref()?);
        errors.extend(found);
        value
    };
    let cell = lowered(&file.cell_value, &context);
    let number = |kind| Expr { kind, ty: Type::Element(keys.element), span: keys.name.span };
    let first = cell.as_ref().map_or(0, |cell| cell.all.len());
    context.value = Some(number(ExprKind::Local(LocalId::new(first))));
    (context.returned, context.first_local) = (Element::I32, first + 1);
    let converged = lowered(&file.converged, &context);
    context.value = Some(number(ExprKind::Nearest(context.data)));
    (context.returned, context.first_local, context.edge) = (keys.element, 0, true);
    let edge = lowered(&file.edge_value, &context);
    if let (Some(Lowered { beside: Some(span), .. }), None) = (&cell, &file.edge_value)
        && !file.keys.iter().any(|key| key.node == "EdgeValue")
    {
        let message = "this `get` may lie outside of the matrix, and the file has no `EdgeValue`";
        let error = Diagnostic::error(message, *span, "");
        errors.push(error.help("add one, as in `EdgeValue { return value; }`"));
    }
    let every = convergence::every(file, &mut errors);
    let Some(cell) = cell.filter(|_| errors.is_empty()) else { return Err(errors) };
    let cell = match converged {
        Some(converged) => convergence::joined(cell, converged, first),
        None => cell,
    };
    let reads = assemble(&mut program, &context, (cell, edge), (file, defines));
    if let Some(block) = &file.converged {
        convergence::ends(&mut program, block.key, every);
    }
    check_defines(&program, defines, &mut errors);
    let program = finish(program, source, &context, reads, &mut errors);
    if errors.is_empty() { Ok(program) } else { Err(errors) }
}

/// The keys that are no blocks.
fn keys(file: &File, source: &Source, errors: &mut Vec<Diagnostic>) -> Option<Keys> {
    let given = |key: &str| file.keys.iter().any(|other| other.node == key);
    let end = source.text.trim_end().len().min(u32::MAX as usize) as u32;
    for key in KEYS {
        if file.unknown
            || given(key)
            || matches!(key, "ScalarVariables" | "EdgeValue" | "Converged" | "ConvergedEvery")
        {
            continue;
        }
        let message = format!("the file has no `{key}`");
        let error = Diagnostic::error(message, Span::new(end, end), "the file ends here");
        errors.push(error.help(match key {
            "NumDimensions" => "add it, as in `NumDimensions 2`",
            "StencilSize" => "add it, as in `StencilSize (1, 1)`: how far `get` reaches",
            "DataType" => "add it: int, int64, float or double",
            "FunctionName" => "add it, as in `FunctionName runHeat`",
            _ => "add it, as in `CellValue { return get(0, 0); }`",
        }));
    }
    let dimensions = file.dimensions.as_ref()?;
    if !(1..=3).contains(&dimensions.node) {
        let message = "a matrix has 1, 2 or 3 dimensions";
        errors.push(Diagnostic::error(message, dimensions.span, ""));
        return None;
    }
    let sizes = file.stencil_size.as_ref()?;
    if sizes.len() as u64 != dimensions.node {
        let (found, wanted) = (sizes.len(), dimensions.node);
        let message = format!("`StencilSize` has {found} numbers for {wanted} dimensions");
        let error = Diagnostic::error(message, sizes.span, "");
        let error = error.see(dimensions.span, "the dimensions");
        errors.push(error.help("write one a dimension, x first"));
        return None;
    }
    for size in &sizes.node {
        if size.node > limits::RULE_OFFSET {
            let message = format!("a stencil reaches at most {} cells", limits::RULE_OFFSET);
            errors.push(Diagnostic::error(message, size.span, ""));
        }
    }
    let name = file.function_name.clone()?;
    if name.node.starts_with('_') || OWN_NAMES.contains(&name.node.as_str()) {
        let error = Diagnostic::error("no function can have this name", name.span, "");
        errors.push(error.help("begin it with a letter, as in `runHeat`"));
    } else if let Some(owner) = host_names::owner(&name.node) {
        let message = format!("the function can't be called `{}`: that is {owner}", name.node);
        let error = Diagnostic::error(message, name.span, "");
        errors.push(error.help("choose another name, as in `runHeat`"));
    }
    let element = file.data_type.as_ref()?.node;
    Some(Keys { sizes: sizes.iter().map(|size| size.node).collect(), element, name })
}

/// The scalar variables by name.
fn scalars(
    file: &File,
    errors: &mut Vec<Diagnostic>,
) -> BTreeMap<String, (ScalarId, Element, Span)> {
    let mut found: BTreeMap<String, (ScalarId, Element, Span)> = BTreeMap::new();
    for (number, (element, name)) in file.scalars.iter().enumerate() {
        let span = name.span;
        if let Some((.., first)) = found.get(&name.node) {
            let message = format!("the variable `{}` is there twice", name.node);
            errors.push(Diagnostic::error(message, span, "again here").see(*first, "first here"));
            continue;
        }
        let own = OWN_NAMES.contains(&name.node.as_str());
        if own
            || SIZES.contains(&&*name.node)
            || [DATA, LAYERS, COUNT, "steps"].contains(&&*name.node)
        {
            let message = format!("`{}` has a meaning of its own", name.node);
            let error = Diagnostic::error(message, span, "declared here");
            errors.push(error.help("choose another name"));
        }
        if number == limits::SCALARS {
            let message = format!("a program has at most {} scalar variables", limits::SCALARS);
            errors.push(Diagnostic::error(message, span, "too many with this one"));
        }
        let id = ScalarId::from_u32(found.len() as u32);
        found.insert(name.node.clone(), (id, element.node, span));
    }
    found
}

/// The program without its blocks.
fn declarations(keys: &Keys, file: &File, source: &Source) -> Program {
    let mut params = PrimaryMap::new();
    let span = file.dimensions.as_ref().map_or(Span::default(), |dimensions| dimensions.span);
    for name in SIZES.iter().take(keys.sizes.len()) {
        params.push(Param { name: (*name).to_owned(), value: None, span });
    }
    let mut scalars = PrimaryMap::new();
    let mut names: Vec<&str> = Vec::new();
    for (element, name) in &file.scalars {
        if !names.contains(&name.node.as_str()) {
            names.push(&name.node);
            let (name, span) = (name.node.clone(), name.span);
            scalars.push(Scalar {
                name,
                element: element.node,
                default: None,
                boolean: false,
                span,
            });
        }
    }
    Program {
        name: source.stem().to_owned(),
        params,
        scalars,
        grids: PrimaryMap::new(),
        fields: PrimaryMap::new(),
        functions: Vec::new(),
        reductions: Vec::new(),
        steps: Affine::number(1),
        until: None,
        checks: Vec::new(),
    }
}

/// Values for the sizes that are there.
fn define(program: &mut Program, defines: &[(String, i64)], errors: &mut Vec<Diagnostic>) {
    for (name, value) in defines {
        if *value < 0 || *value > limits::GRID_END {
            let message = format!("-D {name}={value}: a size is 0 to {}", limits::GRID_END);
            errors.push(Diagnostic::error_without_place(message));
        } else if let Some(param) = program.params.values_mut().find(|one| one.name == *name) {
            param.value = Some(*value);
        }
    }
}

/// Refuses values for sizes that the program does not have.
fn check_defines(program: &Program, defines: &[(String, i64)], errors: &mut Vec<Diagnostic>) {
    let names: Vec<&str> = program.params.values().map(|param| param.name.as_str()).collect();
    for (name, _) in defines.iter().filter(|(name, _)| !names.contains(&name.as_str())) {
        let message = format!("-D {name}=...: the program has no size `{name}`");
        let error = Diagnostic::error_without_place(message);
        errors.push(match suggest::nearest(name, names.iter().copied()) {
            Some(near) => error.help(format!("did you mean `{near}`?")),
            None => error.note(format!("its sizes are {}", names.join(", "))),
        });
    }
}

/// From 0 to a size less 1, slowest dimension first.
fn whole(program: &Program, params: &[ParamId]) -> Region {
    let extent = |id: &ParamId| match program.params.get(*id).and_then(|param| param.value) {
        Some(value) => Affine::number(value - 1),
        None => Affine { constant: -1, terms: vec![(*id, 1)] },
    };
    let upper: Vec<Affine> = params.iter().map(extent).collect();
    Region { lower: vec![Affine::number(0); upper.len()], upper }
}

/// Adds grids, fields and the function; tells what reads the array of `SetData`.
fn assemble(
    program: &mut Program,
    context: &Context,
    (mut cell, mut edge): (Lowered, Option<Lowered>),
    (file, defines): (&File, &[(String, i64)]),
) -> Reads {
    let slow_first: Vec<ParamId> = context.sizes.iter().rev().copied().collect();
    let (sizes, read) = (context.sizes.as_slice(), context.read);
    let view = cell.view(sizes, read, false);
    let view = edge.as_ref().map_or(view, |edge| view.max(edge.view(sizes, read, true)));
    for lowered in [&mut cell].into_iter().chain(&mut edge) {
        let locals = lowered.locals();
        for expr in lowered.exprs_mut() {
            data::rewrite(expr, view, &locals, sizes, read);
            with_sizes(expr, program);
        }
    }
    let span = file.function_name.as_ref().map_or(Span::default(), |name| name.span);
    let region = whole(program, &slow_first);
    let grid = program.grids.push(Grid { name: "matrix".into(), region: region.clone(), span });
    let on = read_grid(program, view, (&slow_first, grid), defines, span);
    let boundary = edge.as_ref().map(|edge| match edge.value.kind {
        ExprKind::Nearest(_) => Boundary::Nearest,
        _ => {
            let mut value = edge.value.clone().with_lets(edge.lets.clone());
            if let Some(grid) = on.and_then(|on| program.grids.get(on)) {
                data::keep_inside(&mut value, read, &grid.region);
            }
            Boundary::Value(value)
        }
    });
    program.fields.push(field(DATA, Role::State, context.element, grid, boundary, span));
    if let Some(on) = on {
        program.fields.push(field(READ, Role::Const, context.element, on, None, span));
    }
    let at = |block: &Option<Block>| block.as_ref().map_or(span, |block| block.key);
    program.functions.push(Function {
        name: context.function.clone(),
        updates: vec![context.data],
        pieces: vec![Piece {
            region: region.clone(),
            lets: std::mem::take(&mut cell.lets),
            values: [vec![cell.value.clone()], cell.more.clone()].concat(),
            span: at(&file.cell_value),
        }],
        repeats: Vec::new(),
        span,
    });
    let edge = edge.map(|edge| (edge.all, edge.value, at(&file.edge_value)));
    Reads { cell: (cell.all, cell.value, at(&file.cell_value)), edge, region }
}

impl Lowered {
    /// What its reads need the array of `SetData` to be.
    fn view(&self, sizes: &[ParamId], read: FieldId, edge: bool) -> View {
        let roots = self.all.iter().map(|(_, value)| value);
        let roots = roots.chain([&self.value]).chain(&self.more);
        data::view(roots, &self.locals(), sizes, read, edge)
    }

    /// Its `let`s by number.
    fn locals(&self) -> HashMap<LocalId, Expr> {
        self.all.iter().cloned().collect()
    }

    fn exprs_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let lets = self.lets.iter_mut().chain(&mut self.all).map(|(_, value)| value);
        lets.chain([&mut self.value]).chain(&mut self.more)
    }
}

/// The `let`s and the value of a block, and its place.
type Values = (Vec<(LocalId, Expr)>, Expr, Span);

/// The values of the blocks, for their reads of the array.
struct Reads {
    cell: Values,
    edge: Option<Values>,
    region: Region,
}

/// The grid of the array of `SetData`, with the size that it needs.
fn read_grid(
    program: &mut Program,
    view: View,
    (sizes, grid): (&[ParamId], GridId),
    defines: &[(String, i64)],
    span: Span,
) -> Option<GridId> {
    let mut with = |name: &str, more: &[ParamId]| {
        let given = defines.iter().find(|(given, value)| given == name && *value >= 0);
        let value = given.map(|(_, value)| *value);
        let own = program.params.push(Param { name: name.to_owned(), value, span });
        let params: Vec<ParamId> = [own].iter().chain(more).copied().collect();
        let region = whole(program, &params);
        program.grids.push(Grid { name: "elements".into(), region, span })
    };
    match view {
        View::Unused => None,
        View::Cells => Some(grid),
        View::Layers => Some(with(LAYERS, sizes)),
        View::Line => Some(with(COUNT, &[])),
    }
}

fn field(
    name: &str,
    role: Role,
    element: Element,
    grid: GridId,
    boundary: Option<Boundary>,
    span: Span,
) -> Field {
    let name = name.to_owned();
    Field { name, role, element, boolean: false, member: None, grid, boundary, span }
}

/// Puts the values of fixed sizes into an expression.
fn with_sizes(expr: &mut Expr, program: &Program) {
    if let ExprKind::Param(id) = expr.kind
        && let Some(value) = program.params.get(id).and_then(|param| param.value)
    {
        expr.kind = ExprKind::Int(value.into());
    }
    expr.children_mut().into_iter().for_each(|child| with_sizes(child, program));
}

/// Checks the reads of the array, and the size of the whole.
fn finish(
    program: Program,
    source: &Source,
    context: &Context,
    reads: Reads,
    errors: &mut Vec<Diagnostic>,
) -> Program {
    let Reads { cell, edge, region } = reads;
    let mut beyond = region.clone();
    // `EdgeValue` sees places as far away as `get` reaches.
    for (dimension, reach) in context.stencil_size.iter().rev().enumerate() {
        let reach = i64::try_from(*reach).unwrap_or(0);
        let move_by = |bounds: &mut Vec<Affine>, distance: i64| {
            if let Some(bound) = bounds.get_mut(dimension)
                && let Some(moved) = bound.shifted(distance)
            {
                *bound = moved;
            }
        };
        move_by(&mut beyond.lower, -reach);
        move_by(&mut beyond.upper, reach);
    }
    let space = |(lets, value, span), region: &Region| Space {
        region: region.clone(),
        span,
        lets,
        value,
        field: context.read,
        owner: context.function.clone(),
    };
    let mut spaces = vec![space(cell, &region)];
    spaces.extend(edge.map(|edge| space(edge, &beyond)));
    let (program, found) = absolute_reads(program, source, spaces);
    errors.extend(found);
    program
}
