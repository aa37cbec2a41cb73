//! SL: the applications of the paper equal their twins, and what a block means.

use super::{sizes_for, suite};
use crate::diagnostics::{Look, render};
use crate::oracle;
use crate::program::{Boundary, Program, Role};
use crate::sizes::Sizes;
use crate::source::Source;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use stencil_runtime::array::Array;
use stencil_runtime::number::Numeral;

/// The program, or the rendered diagnostics as a panic.
fn program(name: &str, text: &str) -> Program {
    let source = Source::new(name, text);
    match crate::load(&source, &[]) {
        (Some(program), _) => program,
        (None, errors) => panic!("{}", render(&errors, &source, Look::Plain)),
    }
}

/// Runs some steps on noise.
fn run(program: &Program, shape: &[usize], layers: i64, steps: u64) -> Array {
    let mut sizes = sizes_for(program, shape);
    let more =
        program.params.iter().filter(|(_, param)| ["layers", "count"].contains(&&*param.name));
    sizes.extend(more.map(|(id, _)| (id, layers)));
    let shapes = crate::sizes::extents(program, &sizes).unwrap();
    let inputs = program.fields.iter().filter(|(_, field)| field.role != Role::Temp);
    let mut fields: BTreeMap<String, Array> = inputs
        .map(|(id, field)| {
            (field.name.clone(), Array::noise(field.element, &shapes[id], 7).unwrap())
        })
        .collect();
    let scalars = program.scalars.values().enumerate().map(|(number, scalar)| {
        (scalar.name.clone(), format!("{}.25", number + 1).parse::<Numeral>().unwrap())
    });
    let scalars = scalars.collect();
    let on = &mut |_, _| ControlFlow::Continue(());
    oracle::run(program, &sizes, &scalars, steps, &mut fields, on).unwrap();
    fields.remove("data").unwrap()
}

#[test]
fn applications_equal_their_twins() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/sl");
    let twins = suite("sl");
    assert_eq!(twins.len(), 6);
    for twin in twins {
        let name = twin.name.replace(".stencil", ".sl");
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let (own, twin) = (program(&name, &text), program(&twin.name, &twin.text));
        let rank = own.grids.values().next().unwrap().region.lower.len();
        let shape = &[7, 5, 11][3 - rank..];
        for steps in [1, 2, 9] {
            let (own, twin) = (run(&own, shape, 9, steps), run(&twin, shape, 9, steps));
            assert_eq!(own.bytes(), twin.bytes(), "{name}, {steps} steps");
        }
    }
}

/// A program in one dimension of five cells, whose cells become a value; the third one after a
/// step.
fn value(element: &str, block: &str) -> String {
    let text = format!(
        "NumDimensions 1 StencilSize 1 DataType {element} FunctionName runTest\n\
         ScalarVariables (int i, unsigned int u, float f, double d)\n\
         CellValue {{ {block} }} EdgeValue {{ return value; }}"
    );
    let program = program("test.sl", &text);
    let sizes: Sizes = program.params.keys().map(|id| (id, 5)).collect();
    let data = Array::zeros(program.fields.values().next().unwrap().element, &[5]).unwrap();
    let mut fields = BTreeMap::from([("data".to_owned(), data)]);
    if program.fields.len() > 1 {
        let read = Array::noise(program.fields.values().next().unwrap().element, &[5], 1).unwrap();
        fields.insert("read".to_owned(), read);
    }
    let numbers = [("i", "-7"), ("u", "7"), ("f", "0.1"), ("d", "0.1")];
    let scalars = numbers.map(|(name, value)| (name.to_owned(), value.parse().unwrap())).into();
    let on = &mut |_, _| ControlFlow::Continue(());
    oracle::run(&program, &sizes, &scalars, 1, &mut fields, on).unwrap();
    fields["data"].get(2).unwrap().to_string()
}

#[test]
fn numbers_are_those_of_c() {
    for (element, block, expected) in [
        ("int", "return i / 2;", "-3"),
        ("int", "return i % 2;", "-1"),
        ("int", "return i / 2.0;", "-3"),
        ("int64", "return i + u;", "0"),
        ("int64", "return i + 1u;", "4294967290"),
        ("int", "return i < u;", "0"),
        ("int", "return i < (int) u;", "1"),
        ("unsigned int", "return i;", "4294967289"),
        ("double", "return f;", "0.10000000149011612"),
        ("double", "return f == 0.1f;", "1"),
        ("double", "return f == 0.1;", "0"),
        ("double", "return d == 0.1;", "1"),
        ("double", "return 1 / 2;", "0"),
        ("double", "return 1 / 2.;", "0.5"),
        ("double", "return 16777217 + 0.0f;", "16777216"),
        ("int64", "return 2147483647 + (int64) 1;", "2147483648"),
        ("int64", "return 2147483648 + 1;", "2147483649"),
        ("int", "return 1 + (2 > 1) + !0 + !3;", "3"),
        ("int", "return (i > 0 && f > 0) + 2 * (i || 0);", "2"),
        ("int", "return x + 10 * iteration + 100 * input_size.x;", "512"),
        ("int", "return 1 << 4 | 3 ^ 1 & ~0;", "18"),
        ("int", "return 5 - 3 - 1;", "1"),
        ("int", "return 1 ? 2 : 0 ? 3 : 4;", "2"),
        ("double", "return x ? 1 : 0.5;", "1"),
        ("double", "return sqrt(2.0f) == (float) sqrt(2.0);", "1"),
        ("double", "return fmod(7.5, 2);", "1.5"),
        ("int", "return max(i, 3) + min(3, 4) + abs(i);", "13"),
        ("int", "return fabs(i);", "7"),
    ] {
        assert_eq!(value(element, block), expected, "{block}");
    }
}

#[test]
fn statements_are_those_of_c() {
    for (block, expected) in [
        ("int a; a = 2; a += 3; a *= a; a -= 1; a /= 5; a %= 3; return a;", "1"),
        ("int a = 1, b = a + 1; { int a = 5; b += a; } return a + 10 * b;", "71"),
        ("int a = 1; if (x > 1) a = 2; else a = 3; return a;", "2"),
        (
            "int a, b; if (x > 2) { a = 1; b = 2; } else { a = 3; b = a + 1; } return a + 10 * b;",
            "43",
        ),
        ("if (x == 0) return 1; if (x == 2) { int q = 7; return q; } return 2;", "7"),
        ("if (x > 0) { if (x > 3) return 1; } else return 5; return 9;", "9"),
        ("int a = 1; { int a = 2; if (x > 9) return a; } return a;", "1"),
        ("int s = 0; for (int k = 1; k <= 4; k++) s += k; return s;", "10"),
        ("int s = 0, k; for (k = 9; k > 0; k -= 4) if (k != 5) s += k; return s + k;", "7"),
        (
            "int w[3] = {1, 2}; w[2] += 5; w[0]--; int s = 0; \
          for (int k = 0; k < 3; k++) s = 10 * s + w[k]; return s;",
            "25",
        ),
        ("const int n = 3; int w[n]; for (int k = 0; k < n; ++k) w[k] = k * x; return w[2];", "4"),
        ("float a = 0.5; a += 0.1; return 1000000 * a;", "600000"),
        ("unsigned a = 0; a--; return a >> 31;", "1"),
        ("int a = 5; int b = a; a = 6; return b;", "5"),
        (
            "int a = 1; for (int a = 7; a < 8; a++) { int a = 3; a++; } { int a = 2; } return a;",
            "1",
        ),
    ] {
        assert_eq!(value("int", block), expected, "{block}");
    }
}

/// The text of a tree has the same tree, and the same meaning.
#[test]
fn a_syntax_tree_is_text_of_the_same_tree() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../test-suite/sl");
    let tree = |text: &str| crate::syntax_tree(&Source::new("tree.sl", text)).unwrap();
    for twin in suite("sl") {
        let name = twin.name.replace(".stencil", ".sl");
        let text = std::fs::read_to_string(folder.join(&name)).unwrap();
        let printed = tree(&text);
        assert_eq!(tree(&printed), printed, "{name}");
        let (own, again) = (program(&name, &text), program(&name, &printed));
        let rank = own.grids.values().next().unwrap().region.lower.len();
        let shape = &[7, 5, 11][3 - rank..];
        assert_eq!(run(&own, shape, 9, 2), run(&again, shape, 9, 2), "{name}");
    }
    let all = "NumDimensions 1\nStencilSize (1)\nDataType unsigned int64\nFunctionName runAll\n\
        ScalarVariables (float a, int n)\nCellValue {\n  \
        const float w[2] = {1, 2.5f}, v = a;\n  unsigned int u = 3u, k;\n  {\n    u <<= 1;\n  }\n  \
        for (k = 0; k < 2 * n; k += 1) {\n    if (w[k] && !-n) {\n      u -= 4;\n    } \
        else {\n      u = ~k;\n    }\n  }\n  return a < 1.5 ? (int64) +u : \
        input_size.x - get(-1);\n}\nEdgeValue {\n  return 5000000000ll;\n}\nConverged {\n  \
        return 1ull;\n}\nConvergedEvery 3\n";
    assert_eq!(tree(all), all);
    assert!(crate::syntax_tree(&Source::new("tree.sl", "NumDimensions two")).is_err());
}

#[test]
fn the_text_of_a_tree_nests_no_deeper_than_its_source() {
    let chain = |many: usize, one: &str, between: &str| vec![one; many].join(between);
    let branches = chain(120, "if (value < 1) { value = 2; }", " else ");
    for (block, part) in [
        (format!("return {};", chain(400, "get(1)", " + ")), "get(1) + get(1) + get(1)"),
        (format!("return {};", chain(100, "a * (b - ", "") + "1" + &")".repeat(100)), "a * (b - a"),
        (format!("return {} 2;", chain(100, "a < b ? 1 :", " ")), "a < b ? 1 : a < b ? 1 : a"),
        (format!("return {} 2;", chain(100, "-", " ")), "- - -"),
        (branches + " else { value = 3; }", "\n  } else if (value < 1) {\n"),
        (
            "return (a - (b - 1)) / (2 * 3) * -(a + 1) << (1 << 2);".to_owned(),
            "return (a - (b - 1)) / (2 * 3) * -(a + 1) << (1 << 2);",
        ),
    ] {
        let text = format!("CellValue {{ {block} }}");
        let tree = |text: &str| crate::syntax_tree(&Source::new("tree.sl", text)).unwrap();
        let printed = tree(&text);
        assert!(printed.contains(part), "{printed}");
        assert_eq!(tree(&printed), printed);
    }
}

#[test]
fn reads_take_the_form_that_they_have() {
    let with = |dimensions: usize, read: &str| {
        let sizes = &["1", "(1, 1)", "(1, 1, 1)"][dimensions - 1];
        let text = format!(
            "NumDimensions {dimensions} StencilSize {sizes} DataType float FunctionName runTest\n\
             CellValue {{ {read} }}"
        );
        let program = program("test.sl", &text);
        let field = program.fields.values().find(|field| field.name == "read").unwrap();
        let shape = program.grids[field.grid].region.upper.len();
        let checks = program.checks.iter().map(|check| check.message.clone()).collect::<Vec<_>>();
        (shape, checks)
    };
    for (dimensions, read, rank) in [
        (2, "return read(y * input_size.x + x);", 2),
        (2, "int i = x; i += input_size.x * y; return read(i);", 2),
        (3, "return read((z * input_size.y + y) * input_size.x + x);", 3),
        (2, "return read(y * input_size.x + x + 2 * input_size.x * input_size.y);", 3),
        (1, "return read(x);", 1),
        (1, "return read(x) + read(iteration * input_size.x + x);", 2),
    ] {
        assert_eq!(with(dimensions, read).0, rank, "{read}");
    }
    let (_, checks) = with(1, "return read((iteration - 1) * input_size.x + x);");
    assert_eq!(checks.len(), 1, "{checks:?}");
    assert!(checks[0].contains("layers >= steps"), "{checks:?}");
    let (rank, checks) = with(2, "return read(7) + read(x);");
    assert_eq!(rank, 1);
    assert!(checks.iter().any(|check| check.contains("count >= 8")), "{checks:?}");
    assert!(checks.iter().any(|check| check.contains("count >= size_x")), "{checks:?}");
}

/// An index that comes from a read: the places of the inner one are as in 64 bits.
#[test]
fn reads_stand_in_indices_of_reads() {
    let inner = "read(min(max((INT)(get(0) * 7), 2), 3)) * 6";
    for block in [
        "INT v = (INT)(INNER); return read(min(max(v, 0), 5));",
        "INT v = (INT)(INNER); v = (INT)(read(min(max(v, 0), 5)) * 6); return read(v & 3);",
        "return read(min(max((INT)(INNER), 0), 5));",
        "INT v = (INT)(6 * read(1)); return read(v & 3);",
    ] {
        let of = |kind: &str| {
            let block = block.replace("INNER", inner).replace("INT", kind);
            let text = format!(
                "NumDimensions 1 StencilSize 0 DataType double FunctionName f\n\
                 CellValue {{ {block} }} EdgeValue {{ return value; }}"
            );
            run(&program("test.sl", &text), &[9], 6, 1)
        };
        assert_eq!(of("int").bytes(), of("int64").bytes(), "{block}");
    }
}

#[test]
fn a_run_ends_where_all_cells_have_converged() {
    for (every, expected) in [("", 4), ("ConvergedEvery 3", 6)] {
        let text = format!(
            "NumDimensions 1 StencilSize 1 DataType double FunctionName f {every}\n\
             CellValue {{ double half = get(0) / 2; return half; }} EdgeValue {{ return 0; }}\n\
             Converged {{ double moved = get(0) - value; return fabs(moved) <= 0.0625; }}"
        );
        let program = program("test.sl", &text);
        let sizes: Sizes = program.params.keys().map(|id| (id, 5)).collect();
        let data = Array::filled(stencil_runtime::number::Number::F64(1.0), &[5]).unwrap();
        let mut fields = BTreeMap::from([("data".to_owned(), data)]);
        let on = &mut |_, _| ControlFlow::Continue(());
        let ended = oracle::run(&program, &sizes, &BTreeMap::new(), 100, &mut fields, on).unwrap();
        assert!(ended.met);
        assert_eq!(ended.steps, expected);
        let last = 0.5_f64.powi(expected as i32);
        assert_eq!(fields["data"].get(4).unwrap().to_string(), last.to_string());
    }
}

#[test]
fn the_nearest_cell_is_a_rule_of_its_own() {
    let boundary = |edge: &str| {
        let text = format!(
            "NumDimensions 1 StencilSize 1 DataType float FunctionName f\n\
             CellValue {{ return get(1); }} EdgeValue {{ {edge} }}"
        );
        program("test.sl", &text).fields.values().next().unwrap().boundary.clone().unwrap()
    };
    assert_eq!(boundary("return value;"), Boundary::Nearest);
    assert_eq!(boundary("float a = value; return (a);"), Boundary::Nearest);
    assert!(matches!(boundary("return value + 0;"), Boundary::Value(_)));
}
