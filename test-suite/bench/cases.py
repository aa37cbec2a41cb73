"""The cases of check.py: programs, sizes, schedules, and how they are compiled into an archive."""

import concurrent.futures
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time

import common

# Sizes per rank. The first and the last meet kernels with sizes of a run, the second and the last
# those with sizes in their code. Rows of the second are whole accesses of 64-bit cells.
SMALL = {1: {"N": 403}, 2: {"N": 67, "M": 131}, 3: {"N": 19, "M": 23, "L": 37}}
MIDDLE = {1: {"N": 10007}, 2: {"N": 211, "M": 398}, 3: {"N": 31, "M": 29, "L": 53}}
LARGE = {1: {"N": (1 << 22) + 3}, 2: {"N": 4096, "M": 3001}, 3: {"N": 257, "M": 200, "L": 301}}
# Just above 2^31 cells, where indices must have 64 bits.
HUGE = {
    "jacobi1d3_f16": {"N": (1 << 31) + 5},
    "heat2d_f16": {"N": 46341, "M": 46342},
    "star3d1r_f16": {"N": 1289, "M": 1301, "L": 1301},
}
# Steps are no multiple of the heights below, and make three launches at least of a stream's main
# kernel: bands overlap with those of the next launch.
STEPS = {1: 47, 2: 37, 3: 15}
# Fewer for a program whose values grow seventeenfold a step.
FEWER_STEPS = {"poisson2d": 29}
# Params that are no extent of the main grid; `None` is the extent N.
PARAMS = {
    "lookup": {"K": 13},
    "pathfinder": {"N": 19, "M": None},
    "acoustic2d": {"R": 100, "NT": 50},
}
# Per rank: strategy, tile, cells a thread, steps a launch; the compiler's own where there is none.
SCHEDULES = {
    1: [
        ("naive", None, None, None),
        ("block", None, None, None),
        ("block", "300", "1", 5),
        ("block", "2000", "8", 3),
        ("warp", None, None, None),
        ("warp", "90", "6", 5),
        ("warp", None, None, 40),
    ],
    2: [
        ("naive", None, None, None),
        ("block", None, None, None),
        ("block", "15,33", "3,1", 2),
        ("block", "8,32", "1", 5),
        ("stream", None, None, None),
        ("stream", None, None, 1),
        ("stream", "7,96", None, 3),
        ("relay", None, None, None),
        ("relay", None, None, 4),
    ],
    3: [
        ("naive", None, None, None),
        ("block", None, None, None),
        ("block", "5,7,17", "2,1,1", 2),
        ("stream", None, None, None),
        ("stream", None, None, 1),
        ("stream", "5,12,24", None, 2),
    ],
}
# The same for programs that read values of their own sweep.
SWEEPS = {
    2: [
        ("strip", None, None, None),
        ("strip", "96,8", "1,1", None),
        ("strip", "192,16", "3,1", None),
        ("wavefront", None, None, None),
        ("wavefront", "33,16", None, None),
    ],
    3: [("wavefront", None, None, None), ("wavefront", "3,7,16", None, None)],
}
# Programs that are taken in more types than their own.
TYPES = {
    "f16": ["heat2d", "jacobi1d3", "star3d1r", "fdtd2d", "insulated2d", "flow2d"],
    "f64": [
        "heat2d", "hotspot2d", "star3d1r", "wave3d", "advect2d", "torus3d", "flow2d", "lookup",
        "box2d2r", "j3d27pt", "d2q9", "d3q19", "star2d1r",
    ],
}
# Programs of hundreds of reads, whose streams take the compiler minutes.
WITHOUT_STREAMS = ["box3d3r", "box3d4r"]
# A strategy that does not take a schedule declines it with a code.
DECLINED = re.compile(r"declined \[[a-z-]+\]")
# Seconds that one call may take.
PATIENCE = 100


def alive(shape, seed):
    """A quarter of the cells 1 and the others 0, from the numbers of stencil-bench's own noise."""
    import numpy

    with numpy.errstate(over="ignore"):
        z = numpy.arange(1, numpy.prod(shape) + 1, dtype=numpy.uint64)
        z = numpy.uint64(seed) + z * numpy.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> numpy.uint64(30))) * numpy.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> numpy.uint64(27))) * numpy.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> numpy.uint64(31))) >> numpy.uint64(62)
    return (z == 0).astype(numpy.int32).reshape(shape)


def telling(file):
    """Whether a result has more than one number; one of one number or of none proves nothing."""
    import numpy

    array = numpy.load(file)
    if array.dtype.names:
        array = numpy.concatenate([array[name].ravel() for name in array.dtype.names])
    finite = array[numpy.isfinite(array)]
    return finite.size >= array.size / 2 and not (finite == finite[0]).all()


class Program(common.Program):
    """A program in one type, with its steps, schedules and sizes."""

    def __init__(self, source, kind=None):
        super().__init__(source, kind)
        self.name = f"{self.stem}_{kind}" if kind else self.stem
        self.steps = FEWER_STEPS.get(self.stem, STEPS[self.rank])
        self.others = PARAMS.get(self.stem, {})
        streams = self.stem not in WITHOUT_STREAMS
        self.schedules = [one for one in SCHEDULES[self.rank] if streams or one[0] != "stream"]
        self.sweeps = "'[" in self.text
        if self.sweeps:
            self.schedules = SWEEPS[self.rank]

    def sizes(self, extents):
        """A value for each param."""
        return {n: self.others.get(n) or extents.get(n) or extents["N"] for n in self.params}

    def data(self, extents):
        """Where each input comes from: noise from a seed, or a file of zeros and ones."""
        shape = common.size(extents.values())
        data = {}
        for seed, (name, kind) in enumerate(self.inputs.items(), 1):
            whole = kind == "i32" and not self.sweeps and not self.others
            data[name] = f"alive.{shape}.{seed}.npy" if whole else f"random:{seed}"
        return data


def ways(strategy, plan):
    """The ways that the launches of a plan are sent."""
    if strategy == "naive":
        return ["one by one"]
    # The launches of a step that takes several are never cut.
    bodies = [loop["body"] for node in plan["schedule"] for loop in node.values()]
    can_be_cut = any("bands" in body[0].get("launch", {}) for body in bodies if len(body) == 1)
    return ["whole", "in bands"] if can_be_cut else ["whole"]


def attempt(words, patience=PATIENCE):
    """Runs a command; its exit code and what it said."""
    try:
        words = [str(word) for word in words]
        done = subprocess.run(words, capture_output=True, text=True, timeout=patience)
    except OSError as error:
        sys.exit(f"error: {words[0]}: {error.strerror}")
    except subprocess.TimeoutExpired:
        return 124, f"took more than {patience:.0f} seconds"
    return done.returncode, (done.stdout + done.stderr).strip()


def located(folder, data):
    """The inputs as options; files of zeros and ones are made where they are missing."""
    for source in data.values():
        if source.startswith("alive.") and not (folder / source).exists():
            import numpy

            shape, seed = source.split(".")[1:3]
            numpy.save(folder / source, alive([int(n) for n in shape.split("x")], int(seed)))
    files = {name: folder / text if text.endswith(".npy") else text for name, text in data.items()}
    return common.pairs("--in", files)


class Builder:
    """Compiles a program under all schedules into a folder."""

    def __init__(self, stencilc, folder, program):
        self.stencilc, self.folder, self.program = stencilc, folder, program
        self.source = folder / f"{program.name}.stencil"
        self.source.write_text(program.text)
        self.groups, self.declined = [], []

    def compiled(self, label, options, schedules):
        """Plans of some schedules; those that are declined are noted."""
        plans = []
        for place, (strategy, tile, cells, height) in enumerate(schedules):
            words = {"--strategy": strategy, "--tile": tile, "--per-thread": cells}
            words["--pyramid-height"] = height
            words = [str(word) for pair in words.items() if pair[1] for word in pair]
            stem = f"{self.program.name}.{label}.{place}"
            fixed = ["--fp-contract=off", "--emit=ptx,plan", "-o", self.folder / stem]
            code, said = attempt([self.stencilc, self.source, *fixed, *words, *options])
            if code == 0:
                plan = json.loads((self.folder / f"{stem}.plan.json").read_text())
                plans.append({
                    "plan": f"{stem}.plan.json", "strategy": strategy, "schedule": " ".join(words),
                    "ways": ways(strategy, plan),
                })
            elif code == 1 and DECLINED.search(said):
                self.declined.append(f"{self.program.name} {label} {' '.join(words)}")
            else:
                sys.exit(f"{self.program.name} {options} {words}: exit code {code}\n{said}")
        return plans

    def group(self, why, extents, plans, **more):
        """Plans that run on the same data, and what their results are held against."""
        codes = [self.folder / plan["plan"].replace(".plan.json", ".ptx") for plan in plans]
        self.groups.append({
            "program": self.program.name, "why": why, "sizes": self.program.sizes(extents),
            "steps": self.program.steps, "inputs": self.program.data(extents), "plans": plans,
            "code": sum(code.stat().st_size for code in codes), **more,
        })

    def wanted(self, label, extents):
        """The oracle's results."""
        program = self.program
        files = {field: f"{program.name}.{label}.{field}.npy" for field in program.outputs}
        words = [self.stencilc, "run", self.source, "--target", "reference"]
        words += ["--steps", program.steps]
        words += located(self.folder, program.data(extents))
        words += common.pairs("--size", program.sizes(extents))
        words += common.pairs("--out", {field: self.folder / file for field, file in files.items()})
        code, said = attempt(words, 600)
        if code:
            sys.exit(f"the oracle on {program.name}: exit code {code}\n{said}")
        if not all(telling(self.folder / file) for file in files.values()):
            sys.exit(f"the oracle's result for {program.name} tells nothing")
        return {"expected": files}

    def all_groups(self):
        """All groups of the program."""
        start, program = time.monotonic(), self.program
        small, middle, large = (sizes[program.rank] for sizes in (SMALL, MIDDLE, LARGE))

        def fixed(label, extents, schedules):
            return self.compiled(label, common.pairs("-D", program.sizes(extents)), schedules)

        of_a_run = self.compiled("run", [], program.schedules)
        self.group("sizes of a run", small, of_a_run, **self.wanted("small", small))
        in_code = fixed("code", middle, program.schedules)
        self.group("sizes in the code", middle, in_code, **self.wanted("middle", middle))
        naive, others = of_a_run[0]["plan"], of_a_run[1:]
        own = [schedule for schedule in program.schedules if not any(schedule[1:])][1:]
        others += fixed("large", large, own)
        if others:
            self.group("large", large, others, reference=naive)
        if huge := HUGE.get(program.name):
            self.group("huge", huge, fixed("huge", huge, own), reference=naive)
        print(f"{program.name}: {time.monotonic() - start:.0f} s", flush=True)
        return self


def build(args):
    """Compiles everything into an archive."""
    import affine

    release, target = args.release or common.ROOT / "target/release", args.folder
    every = sorted((common.ROOT / "test-suite/programs").glob("*.stencil"))
    # A program in the language and a function of affine loops may have one name: both are built.
    loops = [name for name in affine.names() if not args.programs or name in args.programs]
    if unknown := set(args.programs) - {path.stem for path in every} - set(loops):
        sys.exit(f"error: no programs {', '.join(sorted(unknown))} in test-suite/programs or nests")
    common.take_along(target, release, "check.py", "cases.py")
    sources = [path for path in every if not args.programs or path.stem in args.programs]
    programs = [Program(path) for path in sources]
    for kind, names in TYPES.items():
        programs += [Program(path, kind) for path in sources if path.stem in names]
    manifest = {"commit": common.commit(), "groups": [], "declined": []}
    pool = concurrent.futures.ThreadPoolExecutor(args.jobs)
    with tempfile.TemporaryDirectory() as scratch, pool:
        folder = pathlib.Path(scratch)
        builders = [Builder(release / "stencilc", folder, program) for program in programs]
        builders += [affine.Builder(release / "stencilc", folder, name) for name in loops]
        for built in pool.map(lambda builder: builder.all_groups(), builders):
            manifest["groups"] += built.groups
            manifest["declined"] += built.declined
        (folder / "cases.json").write_text(json.dumps(manifest, indent=1) + "\n")
        shutil.move(target / "stencil-bench", folder / "stencil-bench")
        for file in [*folder.glob("*.stencil"), *folder.glob("alive.*")]:
            file.unlink()
        with tarfile.open(target / "check.tar.xz", "w:xz", preset=3) as archive:
            archive.add(folder, arcname=".")
    runs = sum(len(plan["ways"]) for group in manifest["groups"] for plan in group["plans"])
    count = len(programs) + len(loops)
    print(f"{count} programs, {runs} runs, {len(manifest['declined'])} schedules declined")


