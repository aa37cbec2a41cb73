//! The search for the fastest tile of affine loops.

use stencil_compiler::{Control, FoundTile, Level, Options, Plan, Progress, Session, Source};
use stencil_runtime::tune::{Entry, Schedules};

/// A mean over four cells, whose weights all threads read alike.
const MEAN: &str = r#"
func.func @mean(
    %a: memref<?xf32> {stencil.name = "A", stencil.extents = ["P"]},
    %w: memref<4xf32> {stencil.name = "W"},
    %b: memref<?xf32> {stencil.name = "B", stencil.extents = ["N"]},
    %n: index {stencil.name = "N"}) {
  affine.for %i = 0 to %n {
    affine.for %l = 0 to 4 {
      %0 = affine.load %a[%i + %l] : memref<?xf32>
      %1 = affine.load %w[%l] : memref<4xf32>
      %2 = arith.mulf %0, %1 : f32
      %3 = affine.load %b[%i] : memref<?xf32>
      %4 = arith.addf %3, %2 : f32
      affine.store %4, %b[%i] : memref<?xf32>
    }
  }
  return
}
"#;

fn source(text: &str) -> Source {
    Source { name: "mean.mlir".to_owned(), text: text.to_owned() }
}

#[test]
fn a_tile_that_was_found_is_compiled_as_it_was_measured() {
    let (session, source) = (Session::new(Options::default()), source(MEAN));
    let mut seen = Vec::new();
    let mut follow = |progress: Progress<'_>| {
        if let Progress::Candidates { done, of } = progress {
            seen.push((done, of));
        }
    };
    let control = Control { progress: Some(&mut follow), ..Control::default() };
    let search = session.search_tiles(&source, &[Level::Gpu], control).unwrap();
    let left: Vec<_> = search.limits.iter().map(|(_, left)| *left).collect();
    // Each limit leaves some of what the one before has left, and all of that was compiled.
    assert!(left.len() == 3 && left[0] >= left[1] && left[1] >= left[2], "{left:?}");
    assert_eq!((seen.len(), search.tiles.len()), (left[1], left[2]));
    // The compiler's own tile comes first, then those without spills; of each kind, those that move
    // least.
    let order = |tile: &FoundTile| (!tile.own, tile.spilled.is_some_and(|bytes| bytes > 0));
    assert!(search.tiles[0].own);
    assert!(search.tiles.windows(2).all(|pair| {
        let [one, next] = [&pair[0], &pair[1]];
        (order(one), one.moved) <= (order(next), next.moved)
    }));
    let fingerprint = session.fingerprint(&source).unwrap();
    for found in &search.tiles {
        // By hand: cells and three more, four weights, and a cell of B loaded and stored, in four
        // iterations of each cell.
        let cells = (found.tile.threads[0] * found.tile.per_thread[0]) as f64;
        let moved = (cells + 3.0 + 4.0) / (cells * 4.0) + 2.0 / 4.0;
        assert!((found.moved - moved).abs() < 1e-12, "{found:?} {moved}");
        let entry = Entry {
            fingerprint: fingerprint.clone(),
            device: "NVIDIA H200".to_owned(),
            size_class: 20,
            program: "mean".to_owned(),
            settings: found.plan().unwrap().settings,
            gcells: 1.0,
        };
        let text = Plan::to_json(&found.plan().unwrap()).unwrap();
        assert_eq!(Plan::from_json(&text, "plan").unwrap(), found.plan().unwrap());
        let schedules = Schedules { entries: vec![entry] };
        let remembered = session.with_schedules(&source, &schedules, "a file").unwrap();
        assert_eq!(remembered.options().config.nest_tile.as_ref(), Some(&found.tile));
        let compiled = remembered.compile(&source, &[Level::Gpu], Control::default()).unwrap();
        assert_eq!(compiled.text(Level::Gpu), found.compiled.text(Level::Gpu));
    }
}

#[test]
fn functions_without_a_loop_to_tile_have_no_candidates() {
    let text = MEAN.replace("affine.for %l = 0 to 4 {", "affine.for %l = 0 to 1 {");
    let alone = text.replace("%i + %l", "%i").replace("%w[%l]", "%w[0]");
    let alone = alone.replace("affine.for %l = 0 to 1 {\n", "").replacen("    }\n", "", 1);
    let session = Session::new(Options::default());
    let failure = session.search_tiles(&source(&alone), &[], Control::default()).unwrap_err();
    assert!(failure.to_string().contains("no loop of this function can be tiled"), "{failure}");
}
