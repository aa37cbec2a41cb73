//! The programs of the test suite check and run.

use super::{sizes_for, suite};
use crate::oracle;
use crate::program::Role;
use std::collections::BTreeMap;
use stencil_runtime::array::Array;

#[test]
fn all_programs_run() {
    let sources = suite("programs");
    assert!(sources.len() >= 25, "{}", sources.len());
    for source in sources {
        let (program, errors) = crate::load(&source, &[]);
        let program = program.unwrap_or_else(|| panic!("{}: {errors:?}", source.name));
        let all = [11, 13, 17];
        let declared = program.grids.values().filter(|grid| !grid.name.contains('.'));
        let rank = declared.map(|grid| grid.region.lower.len()).next().unwrap();
        let shape = &all[..rank];
        let sizes = sizes_for(&program, shape);
        let extents = crate::sizes::extents(&program, &sizes).unwrap();
        let mut fields = BTreeMap::new();
        let is_input = |role| matches!(role, Role::State | Role::Const);
        for (id, field) in program.fields.iter().filter(|(_, field)| is_input(field.role)) {
            fields
                .insert(field.name.clone(), Array::noise(field.element, &extents[id], 7).unwrap());
        }
        let before = fields.clone();
        let mut calls = 0;
        oracle::run(&program, &sizes, &BTreeMap::new(), 3, &mut fields, &mut |_, _| {
            calls += 1;
            std::ops::ControlFlow::Continue(())
        })
        .unwrap();
        assert_eq!(calls, 3);
        for field in program.fields.values().filter(|field| is_input(field.role)) {
            let changed = before[&field.name] != fields[&field.name];
            assert_eq!(changed, field.role == Role::State, "{}: {}", source.name, field.name);
        }
    }
}
