//! Code is counted as it is made.

use super::*;
use crate::schedule::lowering::Settings;
use crate::schedule::predict;
use crate::strategies;
use melior::ir::Module;
use stencil_dialects::tiled::Choice;

/// A step of so many applies of one piece, from field to field of a plane.
fn program(applies: usize) -> String {
    let map = |bounds: &str| format!("affine_map<()[n] -> ({bounds})>");
    let mut text = format!(
        "module attributes {{stencil.params = [\"N\"], stencil.steps = {}}} {{\n\
         \"stencil.grid\"() {{sym_name = \"G\", lower = {}, upper = {}}} : () -> ()\n",
        map("4"),
        map("0, 0"),
        map("n - 1, n - 1")
    );
    for number in 0..applies {
        text += &format!(
            "\"stencil.field\"() {{sym_name = \"A{number}\", grid = @G, type = f32, \
             role = \"state\"}} : () -> ()\n"
        );
    }
    for number in 0..applies {
        text += &format!(
            "func.func private @f{number}(%a: f32 {{stencil.read = @A{number}, \
             stencil.offset = array<i64: -1, 0>}}) -> f32 {{ return %a : f32 }}\n\
             \"stencil.apply\"() {{updates = [@A{}], pieces = [{{function = @f{number}, \
             lower = {}, upper = {}}}]}} : () -> ()\n",
            (number + 1) % applies,
            map("1, 1"),
            map("n - 2, n - 2")
        );
    }
    text + "}"
}

#[test]
fn candidates_of_many_functions_have_no_more_code_than_those_of_few() {
    let context = stencil_dialects::context().unwrap();
    for applies in [1, 2, 8, 32, 100, 300] {
        let module = Module::parse(&context, &program(applies)).unwrap();
        let program = Program::read(&module).unwrap();
        let subject = Subject::of(&module, &program).unwrap();
        let open = predict::openings(&context, &subject, &Choice::default(), Settings::default());
        let open = open.unwrap();
        assert!(open.len() <= 32, "{applies}: {}", open.len());
        for choice in &open {
            let strategy = strategies::named(choice.strategy.as_deref().unwrap()).unwrap();
            let steps = choice.pyramid_height.unwrap_or(1);
            let code = steps * count(applies) * strategy.usual_copies(2);
            assert!(steps == 1 || code <= MOST_EVALUATIONS, "{applies}: {choice:?}");
        }
    }
}

/// A function of some integers or floats that a thread reads.
fn reads(ty: &str, reads: usize) -> String {
    let read =
        |n| format!("%v{n}: {ty} {{stencil.read = @A0, stencil.offset = array<i64: 0, {n}>}}");
    let arguments = (0..reads).map(read).collect::<Vec<_>>().join(", ");
    let (text, old) = (
        program(1),
        "%a: f32 {stencil.read = @A0, stencil.offset = \
         array<i64: -1, 0>}) -> f32 { return %a : f32",
    );
    assert!(text.contains(old), "{text}");
    text.replace(old, &format!("{arguments}) -> {ty} {{ return %v0 : {ty}"))
        .replace("type = f32", &format!("type = {ty}"))
}

#[test]
fn integers_count_where_cells_stay_in_registers() {
    let context = stencil_dialects::context().unwrap();
    let steps = |ty: &str, strategy: &str| {
        let module = Module::parse(&context, &reads(ty, 50)).unwrap();
        let program = Program::read(&module).unwrap();
        let applies: Vec<_> = program.applies.iter().collect();
        let strategy = strategies::named(strategy).unwrap();
        most_steps(&program, strategy, &applies, (&[4, 1], 2)).unwrap()
    };
    assert_eq!(steps("f32", "stream"), MOST_EVALUATIONS / 4);
    assert_eq!(steps("i32", "block"), MOST_EVALUATIONS / 4);
    // An apply is 800 operations, a function, its return and its frame are 12.
    assert_eq!(steps("i32", "stream"), MOST_OPERATIONS / (800 + 4 * (12 + 50 * INTEGER_READ)));
}

#[test]
fn warps_have_the_code_of_a_step_more() {
    let context = stencil_dialects::context().unwrap();
    let module = Module::parse(&context, &reads("f32", 3)).unwrap();
    let program = Program::read(&module).unwrap();
    let applies: Vec<_> = program.applies.iter().collect();
    let warp = strategies::named("warp").unwrap();
    let kernel = |steps| of_kernel(&program, warp, &applies, (&[1, 4], steps)).unwrap();
    let step = operations(&program, warp, &applies, &[1, 4]).unwrap();
    // Two operations, and ten more for each of four cells.
    assert_eq!((kernel(1), kernel(3)), (step + 4 * 12, 3 * step + 4 * 12));
    let most = most_steps(&program, warp, &applies, (&[1, 4], 2)).unwrap();
    let all: i64 = heights(most).into_iter().map(kernel).sum();
    assert!(kernel(most) <= MOST_OPERATIONS && all <= MOST_OF_ALL, "{most} {all}");
}

#[test]
fn conversions_to_integers_count() {
    let context = stencil_dialects::context().unwrap();
    let converted = "{ %c = arith.fptosi %v0 : f32 to i32\n\
                     %r = arith.sitofp %c : i32 to f32\n return %r : f32";
    let text = reads("f32", 1).replace("{ return %v0 : f32", converted);
    let module = Module::parse(&context, &text).unwrap();
    let program = Program::read(&module).unwrap();
    // A function, its return and its frame are 12.
    assert_eq!(evaluation(&program, "f0").unwrap(), 12 + CONVERSION + 1);
}

/// By hand: reads at 0 to 4, of which three may lie outside. The rule is a sine, its return and
/// its function, each in two regions: 92 operations. `nearest` finds one of 1 + |n|
/// cells, and `reflect` one of 1 + 2 |n|.
#[test]
fn boundary_rules_count() {
    let context = stencil_dialects::context().unwrap();
    let counted = |rule: &str, strategy: &str| {
        let field = "sym_name = \"A0\", grid = @G,";
        let ruled = format!("{field} stencil.boundary = {rule},");
        let function = "func.func private @rule(%n: f32 {stencil.nearest}) -> f32 {\n\
                        %r = math.sin %n : f32 return %r : f32 }\n\"stencil.field\"() {";
        let text = reads("f32", 5).replace(field, &ruled);
        let text = text.replacen("\"stencil.field\"() {", function, 1);
        let module = Module::parse(&context, &text).unwrap();
        let program = Program::read(&module).unwrap();
        let piece = &program.applies[0].pieces[0];
        rules(&program, strategies::named(strategy).unwrap(), piece).unwrap()
    };
    assert_eq!(counted("\"nearest\"", "block"), 3 * RULE);
    assert_eq!(counted("\"reflect\"", "block"), 3 * REFLECTION);
    assert_eq!(counted("@rule", "block"), 3 * (RULE + 2 * 92));
    assert_eq!(counted("\"periodic\"", "warp"), 0);
    assert_eq!(counted("\"nearest\"", "warp"), 3 * RULE + (3 + 4 + 5) * FOUND_CELL);
    assert_eq!(counted("\"reflect\"", "warp"), 3 * REFLECTION + (5 + 7 + 9) * FOUND_CELL);
}

#[test]
fn code_of_several_kernels_adds_up() {
    let context = stencil_dialects::context().unwrap();
    let module = Module::parse(&context, &program(2)).unwrap();
    let program = Program::read(&module).unwrap();
    let applies: Vec<_> = program.applies.iter().collect();
    let (strategy, total) = (strategies::named("naive").unwrap(), Total::default());
    let each = 2 * (800 + 12);
    // Each kernel is below the limit of one.
    let half = MOST_OF_ALL / each / 2;
    assert!(total.add(&program, strategy, &applies, (&[1, 1], half)).is_ok());
    assert!(total.add(&program, strategy, &applies, (&[1, 1], half)).is_ok());
    let error = total.add(&program, strategy, &applies, (&[1, 1], 2)).unwrap_err();
    assert!(error.is_decline() && error.message.contains("the limit is 300000"), "{error:?}");
}

/// A height of nine leaves kernels of eight, four, two and one.
#[test]
fn heights_have_room_for_the_kernels_of_the_steps_left_over() {
    let context = stencil_dialects::context().unwrap();
    let module = Module::parse(&context, &reads("i32", 25)).unwrap();
    let program = Program::read(&module).unwrap();
    let applies: Vec<_> = program.applies.iter().collect();
    let (strategy, total) = (strategies::named("stream").unwrap(), Total::default());
    let shape: &[i64] = &[4, 1];
    let most = most_steps(&program, strategy, &applies, (shape, 2)).unwrap();
    let own = operations(&program, strategy, &applies, shape).unwrap();
    assert!((most + 1) * own <= MOST_OPERATIONS, "{own} {most}");
    for steps in heights(most) {
        total.add(&program, strategy, &applies, (shape, steps)).unwrap();
    }
    let beyond = heights(most + 1).into_iter().sum::<i64>();
    assert!(beyond * own > MOST_OF_ALL, "{own} {most}");
}

#[test]
fn code_is_declined_by_its_operations() {
    let context = stencil_dialects::context().unwrap();
    let module = Module::parse(&context, &program(2)).unwrap();
    let program = Program::read(&module).unwrap();
    let applies: Vec<_> = program.applies.iter().collect();
    let strategy = strategies::named("block").unwrap();
    let declined = |steps| {
        check(&program, strategy, &applies, (&[4, 1], steps)).err().map(|error| error.message)
    };
    // An apply is 800 operations, and four evaluations of its function and return and 10 each.
    let each = 2 * (800 + 4 * (2 + 10));
    assert_eq!(declined(MOST_OPERATIONS / each), None);
    let message = declined(MOST_OPERATIONS / each + 1).unwrap();
    assert!(message.contains("the limit is 200000"), "{message}");
}
