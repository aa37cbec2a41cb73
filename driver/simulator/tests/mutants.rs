//! Plants errors in correct kernels: the simulator must find every one of them.

mod common;

use common::{Case, bind, compile, difference, expected, simulate};
use std::collections::BTreeMap;
use stencil_dialects::mlir;
use stencil_passes::launch_plan;
use stencil_runtime::array::{Array, Data};
use stencil_runtime::plan::Plan;
use stencil_simulator::mutate::Mutation::{self, *};
use stencil_simulator::mutate::Space::{Global, Shared};
use stencil_simulator::{Options, Settings};

/// The error that was found, or what differs from the oracle, or `clean`.
fn verdict(result: Result<common::Outcome, String>, expected: &BTreeMap<String, Array>) -> String {
    match result {
        Err(error) => {
            let line = error.lines().next().unwrap_or_default();
            let what = line.split_once(": ").map_or(line, |(_, rest)| rest);
            format!("error: {}", what.split(" in kernel").next().unwrap_or(what))
        }
        Ok(outcome) => match difference(&outcome.outputs, expected) {
            Some(difference) => {
                format!("differs: {}", difference.split(" (first").next().unwrap_or_default())
            }
            None => "clean".to_owned(),
        },
    }
}

fn options() -> Options {
    Options {
        settings: Settings { instruction_limit: 1 << 20, ..Settings::default() },
        ..Options::default()
    }
}

fn of_case(name: &str, case: &Case, mutations: &[Mutation], table: &mut String) {
    for mutation in [None].into_iter().chain(mutations.iter().map(|mutation| Some(*mutation))) {
        let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
        let (module, plan) = compile(&context, case);
        // A size that leaves tiles at the rim and tiles inside.
        let (bound, inputs) = bind(&plan, 70, 3);
        let expected = expected(case, &bound, &inputs);
        let mut plan = plan;
        if let Some(mutation) = mutation {
            assert!(
                mutation
                    .plant(&context, &module)
                    .unwrap_or_else(|error| panic!("{mutation:?}: {error}")),
                "{name}: {mutation:?} has no place"
            );
            mlir::verify(&context, &module).unwrap_or_else(|error| panic!("{mutation:?}: {error}"));
            plan = launch_plan::of(&context, &module).unwrap_or_else(|error| panic!("{error}"));
        }
        let verdict = verdict(simulate(&module, &plan, &bound, &inputs, options()), &expected);
        add(table, name, mutation, &verdict);
    }
}

fn add(table: &mut String, kernel: &str, mutation: Option<Mutation>, verdict: &str) {
    let planted = mutation.map_or("nothing".to_owned(), |mutation| format!("{mutation:?}"));
    *table += &format!("{kernel:<8} {planted:<28} {verdict}\n");
    match mutation {
        Some(_) => assert_ne!(verdict, "clean", "{kernel}: {planted}"),
        None => assert_eq!(verdict, "clean", "{kernel} without an error"),
    }
}

fn of_wave(mutations: &[Mutation], table: &mut String) {
    let text = include_str!("data/wave.mlir");
    let plan = Plan::from_json(include_str!("data/wave.plan.json"), "wave.plan.json")
        .unwrap_or_else(|error| panic!("{error}"));
    let (bound, inputs) = bind(&plan, 9, 1);
    let mut expected = inputs.clone();
    let columns = bound.shapes[0][1];
    for array in expected.values_mut() {
        let Data::F32(mut cells) = array.data().clone() else { panic!("A is f32") };
        for cell in columns..cells.len() {
            cells[cell] = cells[cell - columns] * 0.5 + 1.0;
        }
        *array = Array::new(array.shape().to_vec(), Data::F32(cells))
            .unwrap_or_else(|error| panic!("{error}"));
    }
    for seed in [None, Some(1), Some(2)] {
        let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
        let module = mlir::parse_module(&context, text, "wave.mlir")
            .unwrap_or_else(|error| panic!("{error}"));
        let options =
            Options { settings: Settings { seed, ..options().settings }, ..Options::default() };
        let verdict = verdict(simulate(&module, &plan, &bound, &inputs, options), &expected);
        add(table, "wave", None, &verdict);
    }
    for mutation in mutations {
        let context = stencil_dialects::context().unwrap_or_else(|error| panic!("{error}"));
        let module = mlir::parse_module(&context, text, "wave.mlir")
            .unwrap_or_else(|error| panic!("{error}"));
        assert!(
            mutation
                .plant(&context, &module)
                .unwrap_or_else(|error| panic!("{mutation:?}: {error}")),
            "wave: {mutation:?} has no place"
        );
        let verdict = verdict(simulate(&module, &plan, &bound, &inputs, options()), &expected);
        add(table, "wave", Some(*mutation), &verdict);
    }
}

#[test]
fn every_planted_error_is_found() {
    let mut table = String::new();
    let naive = [
        SwapLoadIndices(Global, 0),
        ShiftLoad(Global, 1),
        ShiftStore(Global, 0),
        DropStore(Global, 0),
        OpenGuard(0),
        OpenGuard(1),
        CloseGuard(0),
        WrongPitch(0),
        WrongPitch(2),
        ReadOutput,
        WriteInput,
        ShortGrid,
        SwapThreads,
    ];
    of_case("naive", &Case::naive("heat2d"), &naive, &mut table);
    let block = [
        DropBarrier(0),
        DropBarrier(1),
        DropBarrier(-1),
        DivergentBarrier(0),
        ShrinkLoop(0),
        ShrinkLoop(1),
        GrowLoop(0),
        DoubleStep(0),
        SwapLoadIndices(Shared, 0),
        SwapStoreIndices(Shared, 0),
        ShiftLoad(Shared, 1),
        ShiftStore(Shared, 0),
        ShiftStore(Global, 0),
        DropStore(Shared, 0),
        DropStore(Shared, -1),
        DropStore(Global, 0),
        OpenGuard(0),
        OpenGuard(-1),
        CloseGuard(1),
        WrongPitch(0),
        AliasShared,
        ShortGrid,
        WrongOrigin,
        SwapThreads,
    ];
    of_case("block 2", &Case::block("heat2d", &[16, 32], 2), &block, &mut table);
    let block = [
        DropBarrier(0),
        DropBarrier(1),
        DropBarrier(2),
        ShrinkLoop(2),
        ShiftLoad(Shared, 3),
        AliasShared,
        WrongOrigin,
    ];
    of_case("block 3", &Case::block("heat2d", &[16, 32], 3), &block, &mut table);
    let wave = [
        DropBarrier(0),
        DropBarrier(1),
        DivergentBarrier(0),
        DropSignal,
        DropWait,
        WeakenRelease,
        WrongFlag,
        LateEpoch,
        OpenGuard(1),
        ShortGrid,
    ];
    of_wave(&wave[..9], &mut table);
    insta::assert_snapshot!(table);
}
