//! `bank-pad` against every pad of 0 to 32 words, tried one after the other: no conflict is left
//! that another pad avoids, and results stay the same bit for bit.

use crate::common::hand::Kernel;
use stencil_runtime::array::DataRef;

/// Each thread reads the first cell of its own row.
const COLUMN: &str = "%x = memref.load %s[%t, %c0] : TYPE";

/// A kernel that fills a shared buffer and reads it in its own way.
struct Case {
    name: &'static str,
    threads: u32,
    rows: i64,
    columns: i64,
    /// The element of the buffer.
    element: &'static str,
    /// Whether each thread fills its own row; otherwise all threads fill each.
    own: bool,
    /// Reads `%x`, an f32, from `%s` of the type `TYPE`.
    read: String,
}

fn case(name: &'static str, rows: i64, columns: i64, read: &str) -> Case {
    Case { name, threads: 32, rows, columns, element: "f32", own: false, read: read.to_owned() }
}

impl Case {
    /// The conflicts and the result with rows so much longer, or after the pass.
    fn run(&self, longer: i64, passes: &str) -> (u64, u64, Vec<u32>) {
        let Self { threads, rows, columns, element, .. } = self;
        let cells = rows * columns;
        let ty =
            format!("memref<{rows}x{}x{element}, #gpu.address_space<workgroup>>", columns + longer);
        let convert = match *element {
            "f64" => "%n = arith.extf %m : f32 to f64",
            "f16" => "%n = arith.truncf %m : f32 to f16",
            _ => "%n = arith.addf %m, %m : f32",
        };
        let (fill, place) = if self.own {
            (
                "scf.for %k = %c0 to %row step %c1",
                "%i0 = arith.addi %t, %c0 : index\n%i1 = \
              arith.addi %k, %c0 : index",
            )
        } else {
            (
                "scf.for %k = %t to %cells step %threads",
                "%i0 = arith.divui %k, %row : index\n%i1 = \
              arith.remui %k, %row : index",
            )
        };
        let body = format!(
            "%cells = arith.constant {cells} : index\n%row = arith.constant {columns} : index\n\
             %threads = arith.constant {threads} : index\n%m0 = memref.load %A[%t] : memref<?xf32, \
             strided<[1]>>\n\
             {fill} {{\n%ki = arith.index_cast %k : index to i32\n\
             %kf = arith.sitofp %ki : i32 to f32\n%m = arith.mulf %m0, %kf : f32\n{convert}\n\
             {place}\nmemref.store %n, %s[%i0, %i1] : {ty}\n}}\ngpu.barrier\n{}\n\
             memref.store %x, %B[%t] : memref<?xf32, strided<[1]>>",
            self.read.replace("TYPE", &ty)
        );
        let shared = format!("%s: {ty}");
        let kernel = Kernel { shared: &shared, passes, ..Kernel::new(*threads, &body) };
        let outcome = kernel.run().unwrap_or_else(|error| panic!("{}: {error}", self.name));
        let total = outcome.report.total();
        let DataRef::F32(cells) = outcome.outputs["B"].data() else { panic!("B is f32") };
        let moved = total.shared_read.moved + total.shared_write.moved;
        let ideal = total.shared_read.ideal + total.shared_write.ideal;
        (moved, ideal, cells.iter().map(|cell| cell.to_bits()).collect())
    }
}

fn cases() -> Vec<Case> {
    let mut cases: Vec<Case> =
        [(1, "stride 1"), (2, "stride 2"), (4, "stride 4"), (8, "stride 8"), (16, "stride 16")]
            .into_iter()
            .chain([(32, "stride 32"), (33, "stride 33"), (24, "stride 24"), (48, "stride 48")])
            .flat_map(|(columns, name)| {
                let mixed = case(name, 32, columns, COLUMN);
                [Case { own: true, ..case(name, 32, columns, COLUMN) }, mixed]
            })
            .collect();
    // A diagonal has no conflict in rows of 32 words, and many in rows of 31 or 33.
    let diagonal = "%x = memref.load %s[%t, %t] : TYPE";
    cases.push(case("diagonal", 32, 32, diagonal));
    cases.push(case("diagonal of longer rows", 32, 63, diagonal));
    cases.push(case("one word for all", 32, 32, "%x = memref.load %s[%c0, %c1] : TYPE"));
    // The column wants an odd row, the diagonal an even one; the loop decides.
    let both = |column: i64, diagonal: i64| {
        format!(
            "%z = arith.constant 0.0 : f32\n%cn = arith.constant {column} : index\n%dn = \
             arith.constant {diagonal} : index\n%mod = arith.constant 32 : index\n\
             %p = scf.for %k = %c0 to %cn step %c1 iter_args(%sum = %z) -> f32 {{\n\
             %y = memref.load %s[%t, %k] : TYPE\n%n = arith.addf %sum, %y : f32\nscf.yield %n : \
             f32\n}}\n\
             %x = scf.for %k = %c0 to %dn step %c1 iter_args(%sum = %p) -> f32 {{\n\
             %tk = arith.addi %t, %k : index\n%col = arith.remui %tk, %mod : index\n\
             %y = memref.load %s[%t, %col] : TYPE\n%n = arith.addf %sum, %y : f32\nscf.yield %n : \
             f32\n}}"
        )
    };
    cases.push(case("columns above diagonals", 32, 32, &both(12, 2)));
    cases.push(case("diagonals above columns", 32, 32, &both(1, 24)));
    // Half a warp a row.
    let halves = "%h = arith.constant 16 : index\n%r = arith.divui %t, %h : index\n%c = \
                  arith.remui %t, %h : index\n%x = memref.load %s[%r, %c] : TYPE";
    cases.push(Case { threads: 64, ..case("two rows a warp", 32, 18, halves) });
    // Some lanes alone.
    let some = "%h = arith.constant 8 : index\n%z = arith.constant 0.0 : f32\n%few = arith.cmpi \
                ult, %t, %h : index\n\
                %x = scf.if %few -> f32 {\n%y = memref.load %s[%t, %c1] : TYPE\nscf.yield %y : \
                f32\n} else {\nscf.yield %z : f32\n}";
    cases.push(case("eight lanes", 32, 32, some));
    let vector = "%v = vector.load %s[%t, %c0] {alignment = 16 : i64} : TYPE, vector<4xf32>\n%x = \
                  vector.extract %v[2] : f32 from vector<4xf32>";
    cases.push(case("vectors of 16 bytes", 32, 32, vector));
    let pairs = "%v = vector.load %s[%t, %c0] {alignment = 8 : i64} : TYPE, vector<2xf32>\n%x = \
                 vector.extract %v[1] : f32 from vector<2xf32>";
    cases.push(case("vectors of 8 bytes", 32, 16, pairs));
    let wide = "%d = memref.load %s[%t, %c1] : TYPE\n%x = arith.truncf %d : f64 to f32";
    cases.push(Case { element: "f64", ..case("doubles", 32, 16, wide) });
    let narrow = "%d = memref.load %s[%t, %c1] : TYPE\n%x = arith.extf %d : f16 to f32";
    cases.push(Case { element: "f16", ..case("halves", 32, 64, narrow) });
    cases
}

#[test]
fn no_avoidable_conflict_is_left_and_results_are_the_same() {
    let mut padded = 0;
    for case in cases() {
        let (plain, _, expected) = case.run(0, "");
        let element = match case.element {
            "f64" => 8,
            "f16" => 2,
            _ => 4,
        };
        let promises = [("alignment = 16", 16), ("alignment = 8", 8)];
        let promised = promises.into_iter().find(|(text, _)| case.read.contains(text));
        let vector = promised.map_or(element, |(_, bytes)| bytes);
        let fits =
            |bytes: &i64| bytes % element == 0 && (case.columns * element + bytes) % vector == 0;
        let pads = (0..=32).map(|words| 4 * words).filter(fits);
        let tried = pads.map(|bytes| case.run(bytes / element, "").0);
        let least = tried.min().unwrap_or_else(|| panic!("{}: no pad", case.name));
        let (moved, ideal, result) = case.run(0, "bank-pad");
        println!(
            "{}: {plain} wavefronts, {moved} padded, {least} at least, {ideal} ideal",
            case.name
        );
        assert_eq!(moved, least, "{}", case.name);
        assert_eq!(result, expected, "{}", case.name);
        padded += u32::from(moved < plain);
    }
    assert!(padded >= 10, "{padded} kernels have fewer conflicts");
}
