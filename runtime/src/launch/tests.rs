//! Launches of small plans, and what happens between them.

use super::*;
use crate::bind::{Bound, Request, bind};
use crate::plan::tests::{heat, launch};
use crate::plan::{Node, Plan};

pub(crate) fn bound(n: i64, steps: i64) -> Bound {
    let sizes = [("N".to_string(), n), ("M".to_string(), 1)].into();
    bind(&heat(), &Request { sizes, steps: Some(steps), ..Request::default() }).unwrap()
}

/// The launches of a plan that has no other actions.
fn launches<'p>(plan: &'p Plan, bound: &Bound) -> Vec<Launch<'p>> {
    let launch = |action| match action {
        Action::Launch(launch) => launch,
        other => panic!("{other:?}"),
    };
    Launches::new(plan, bound).unwrap().map(launch).collect()
}

#[test]
fn launches_carry_grids_steps_and_arguments() {
    let (plan, bound) = (heat(), bound(20, 5));
    let launches = launches(&plan, &bound);
    let summary: Vec<_> =
        launches.iter().map(|l| (l.kernel.name.as_str(), l.index, l.step, l.grid)).collect();
    assert_eq!(
        summary,
        [("two", 0, 0, [2, 1, 1]), ("two", 0, 2, [2, 1, 1]), ("one", 1, 4, [20, 1, 1])]
    );
    let buffer = |id| Value::Buffer(BufferId(id));
    assert_eq!(
        launches[1].arguments,
        [
            buffer(1),
            buffer(2),
            buffer(0),
            Value::Number(Number::I32(20)),
            Value::Number(Number::F32(0.1)),
            Value::Number(Number::I64(2))
        ]
    );
    assert_eq!(launches[2].arguments, [buffer(0), buffer(1), buffer(3)]);
    let mut wide = plan.clone();
    wide.index_width = 64;
    let first = self::launches(&wide, &bound).remove(0);
    assert_eq!(first.arguments[3], Value::Number(Number::I64(20)));
}

#[test]
fn an_empty_grid_neither_launches_nor_rotates() {
    let mut plan = heat();
    launch(&mut plan, 0).grid[1] = "N - 20".parse().unwrap();
    let bound = bound(20, 5);
    let mut all = Launches::new(&plan, &bound).unwrap();
    let Some(Action::Launch(only)) = all.next() else { panic!("no launch") };
    assert_eq!((only.kernel.name.as_str(), only.step), ("one", 4));
    assert_eq!(only.arguments[0], Value::Buffer(BufferId(0)));
    assert!(all.next().is_none());
    assert_eq!((all.step(), all.current()[0]), (5, BufferId(1)));
}

// Two turns take two steps together; buffers rotate after the second.
#[test]
fn a_launch_of_several_turns_ends_with_the_last() {
    let mut plan = heat();
    let two = launch(&mut plan, 0);
    two.turns = Some("N - 18".parse().unwrap());
    two.arguments.push(Argument::Turn);
    two.epochs = 3;
    two.arguments.push(Argument::Epoch);
    plan.validate().unwrap();
    let all = launches(&plan, &bound(20, 5));
    let number = |number| Value::Number(Number::I32(number));
    let seen: Vec<_> = all.iter().take(4).map(|l| (l.step, l.arguments[0])).collect();
    let first = |step, buffer| (step, Value::Buffer(BufferId(buffer)));
    assert_eq!(seen, [first(0, 0), first(0, 0), first(2, 1), first(2, 1)]);
    let counts: Vec<_> = all.iter().take(4).map(|l| l.arguments[6..].to_vec()).collect();
    assert_eq!(counts, [[0, 0], [1, 0], [0, 3], [1, 3]].map(|counts| counts.map(number).to_vec()));
    assert_eq!((all.len(), all[4].step), (5, 4));
    // Without turns it is left out, and its steps count.
    launch(&mut plan, 0).turns = Some("N - 20".parse().unwrap());
    let none = launches(&plan, &bound(20, 5));
    assert_eq!((none.len(), none[0].step), (1, 4));
    // A run has so many launches at most.
    launch(&mut plan, 0).turns = Some("N * 1000000".parse().unwrap());
    let text = Launches::new(&plan, &bound(20, 5)).unwrap_err().to_string();
    assert!(text.contains("needs 20000000 launches, one for each diagonal of tiles"), "{text}");
}

#[test]
fn a_kernel_that_follows_itself_may_be_cut() {
    let rows = |change: &dyn Fn(&mut Plan), n: i64, steps: i64| {
        let mut plan = plan::tests::banded();
        change(&mut plan);
        launches(&plan, &bound(n, steps)).remove(0).rows
    };
    assert_eq!(rows(&|_| (), 40, 5), Some(Rows { all: 3, first: 0, count: 3, reach: 1 }));
    // A single launch, one among others, and blocks that make up no whole rows.
    assert_eq!(rows(&|_| (), 40, 3), None);
    let twice = |plan: &mut Plan| {
        let Node::Repeat(repeat) = &mut plan.schedule[0] else { panic!("no repeat") };
        repeat.count = "steps floordiv 4".parse().unwrap();
        repeat.body.push(repeat.body[0].clone());
    };
    assert_eq!(rows(&twice, 40, 8), None);
    let uneven = |plan: &mut Plan| launch(plan, 0).grid[0] = "N ceildiv 16 + 1".parse().unwrap();
    assert_eq!(rows(&uneven, 40, 5), None);
    let mut wide = plan::tests::banded();
    wide.index_width = 64;
    let bound = bound(40, 5);
    let launch = launches(&wide, &bound).remove(0);
    assert_eq!(launch.band(&(1..3)).arguments.last(), Some(&Value::Number(Number::I64(1))));
    assert_eq!(launch.band(&(1..3)).grid, [2, 1, 1]);
}

#[test]
fn impossible_launches_are_refused() {
    let error = |change: &dyn Fn(&mut Plan)| {
        let mut plan = heat();
        change(&mut plan);
        Launches::new(&plan, &bound(20, 5)).unwrap_err().to_string()
    };
    let text = error(&|plan| launch(plan, 0).grid[2] = "65536".parse().unwrap());
    assert!(text.starts_with("kernel `two` would be launched with [2, 1, 65536] blocks"), "{text}");
    let text = error(&|plan| {
        let Node::Repeat(repeat) = &mut plan.schedule[1] else { panic!("no repeat") };
        repeat.count = "1 + steps mod 2".parse().unwrap();
    });
    assert_eq!(
        text,
        "the plan of heat is not valid: its schedule takes 6 of 5 steps; compile the program \
         again"
    );
    let mut bound = bound(20, 5);
    bound.sizes.insert("N".to_string(), 1 << 31);
    let text = Launches::new(&heat(), &bound).unwrap_err().to_string();
    assert!(
        text.starts_with("size overflow: `N` = 2147483648 does not fit in the 32-bit argument"),
        "{text}"
    );
}

#[test]
fn launches_have_as_many_blocks_as_documented() {
    for (dimension, most) in [(0, i64::from(i32::MAX)), (1, 65_535), (2, 65_535)] {
        let blocks = |count: i64| {
            let mut plan = heat();
            launch(&mut plan, 0).grid[dimension] = count.into();
            Launches::new(&plan, &bound(20, 5)).map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(blocks(most), Ok(()));
        assert!(blocks(most + 1).unwrap_err().contains("would be launched with"), "{dimension}");
    }
}

/// A run of five steps has as many actions as six times 2^20.
#[test]
fn runs_have_as_many_actions_as_documented() {
    let actions = |count: i64| {
        let mut plan = heat();
        let mut free = launch(&mut plan, 0).clone();
        free.steps = 0;
        let body = vec![Node::Launch(free)];
        // The others are three.
        plan.schedule.push(Node::Repeat(plan::Repeat { count: (count - 3).into(), body }));
        Launches::new(&plan, &bound(20, 5)).map(|_| ()).map_err(|error| error.to_string())
    };
    assert_eq!(actions(6 << 20), Ok(()));
    let text = actions((6 << 20) + 1).unwrap_err();
    assert!(text.contains("its schedule has 6291457 actions in 5 steps"), "{text}");
}

#[test]
fn what_stands_behind_a_loop_is_done_where_its_condition_was_never_met() {
    let mut plan = heat();
    plan.buffers.push(plan::BufferDecl {
        name: "met".to_owned(),
        kind: plan::BufferKind::Reduction,
        element: crate::array::Element::I32,
        extents: vec!["1".parse().unwrap()],
        origin: Vec::new(),
        layout: plan::BufferLayout::default(),
        start: plan::Start::Value("7".parse().unwrap()),
        constant: None,
        device: 0,
    });
    let Some(Node::Repeat(rest)) = plan.schedule.pop() else { panic!("no loop") };
    let Some(Node::Repeat(pairs)) = plan.schedule.pop() else { panic!("no loop") };
    plan.schedule = vec![Node::Until(plan::Until {
        reduction: "met".to_owned(),
        is: Relation::NotEqual,
        limit: plan::Limit::Value("0".parse().unwrap()),
        every: 1,
        text: "met".to_owned(),
        most: pairs.count,
        ahead: false,
        body: pairs.body,
        otherwise: vec![Node::Repeat(rest)],
    })];
    plan.validate().unwrap();
    let sizes = [("N".to_string(), 20), ("M".to_string(), 1)].into();
    let request = Request { sizes, steps: Some(5), ..Request::default() };
    let bound = bind(&plan, &request).unwrap();
    assert_eq!(bound.buffers.last().unwrap().fill, Number::I32(7));
    // The steps that a run takes where the condition is met at its n-th look.
    let steps = |met: usize| {
        let (mut all, mut looks, mut kernels) = (Launches::new(&plan, &bound).unwrap(), 0, vec![]);
        while let Some(action) = all.next() {
            match action {
                Action::Launch(launch) => kernels.push(launch.kernel.name.clone()),
                Action::Compare(_) => {
                    looks += 1;
                    if looks == met {
                        all.stop();
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        (all.step(), kernels.join(" "), all.iterations()[0])
    };
    let ended = |count, met| Iterations { count, met };
    assert_eq!(steps(1), (2, "two".to_owned(), ended(1, true)));
    assert_eq!(steps(2), (4, "two two".to_owned(), ended(2, true)));
    assert_eq!(steps(3), (5, "two two one".to_owned(), ended(2, false)));
}
