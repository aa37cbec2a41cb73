//! The typed views of each dialect list what its IRDL text declares.

use stencil_dialects::mlir::Op;
use stencil_dialects::{IRDL, Signature, attribute, context, mlir, peer, stencil, tiled};

/// One operation: its name, then the names of operands, results and attributes.
type Declaration = (String, [Vec<String>; 3]);

fn names(op: Op, attribute: &str) -> Vec<String> {
    let names = mlir::attribute(op, attribute).and_then(attribute::as_strings);
    names
        .unwrap_or_else(|| panic!("{attribute} is missing"))
        .into_iter()
        .map(str::to_owned)
        .collect()
}

fn symbol<'c>(op: Op<'c>) -> &'c str {
    mlir::attribute(op, "sym_name").and_then(attribute::as_string).expect("a name")
}

/// The operations that an IRDL text declares, in order.
fn declared(text: &str) -> Vec<Declaration> {
    let context = context().expect("a context");
    let module = mlir::parse_module(&context, text, "irdl").expect("IRDL");
    let mut found = Vec::new();
    for dialect in mlir::operations(mlir::body(&module)) {
        assert_eq!(mlir::name(dialect), "irdl.dialect");
        for op in mlir::operations(mlir::entry(dialect).expect("a body")) {
            if mlir::name(op) != "irdl.operation" {
                continue;
            }
            let mut parts = [const { Vec::new() }; 3];
            for inner in mlir::operations(mlir::entry(op).expect("a body")) {
                match mlir::name(inner) {
                    "irdl.operands" => parts[0] = names(inner, "names"),
                    "irdl.results" => parts[1] = names(inner, "names"),
                    "irdl.attributes" => parts[2] = names(inner, "attributeValueNames"),
                    _ => {}
                }
            }
            found.push((format!("{}.{}", symbol(dialect), symbol(op)), parts));
        }
    }
    found
}

fn listed(operations: &[Signature]) -> Vec<Declaration> {
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let parts = |op: &Signature| [owned(op.operands), owned(op.results), owned(op.attributes)];
    operations.iter().map(|op| (op.name.to_owned(), parts(op))).collect()
}

#[test]
fn the_typed_views_list_what_irdl_declares() {
    let views = [
        ("stencil", stencil::OPERATIONS),
        ("tiled", tiled::OPERATIONS),
        ("peer", peer::OPERATIONS),
    ];
    assert_eq!(IRDL.len(), views.len());
    for ((file, text), (name, operations)) in IRDL.into_iter().zip(views) {
        assert_eq!(file, format!("{name}.irdl.mlir"));
        assert_eq!(listed(operations), declared(text), "{file}");
    }
}
