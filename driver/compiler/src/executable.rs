//! A program that is ready to run, and its runs.

mod run_on;

use crate::control::{Control, Progress};
use crate::copies::{self, copies};
use crate::declarations::declarations;
use crate::element;
use crate::failure::Failure;
use crate::gpus::Gpus;
use crate::nest;
use crate::outcome::{Ended, Outcome};
use crate::pauses;
use crate::placement::Placement;
use crate::processor::Machine;
use crate::session::Session;
use crate::stages::{self, Compilation, Timing, text_with_places};
use crate::written::Written;
use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::time::Instant;
use stencil_frontend::oracle;
use stencil_frontend::program::{Program, Role};
use stencil_frontend::source::Source;
use stencil_passes::llvm::emit_object::Object;
use stencil_runtime::array::Array;
use stencil_runtime::bind::{Bound, Request, bind};
use stencil_runtime::execute;
use stencil_runtime::number::Numeral;
use stencil_runtime::plan::{self, FieldDecl, Plan};
use stencil_runtime::ranks::DeviceList;

/// What a program runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// A plain interpreter of the program, which shares no code with any pass.
    Reference,
    /// A simulated GPU: every thread executed, every access checked.
    Simulator {
        /// Permutes the order in which blocks run.
        seed: Option<u64>,
    },
    /// The processor of this machine.
    Cpu {
        /// How many threads take tiles; none for as many as the machine runs at once.
        threads: Option<NonZeroUsize>,
    },
    /// A CUDA device, by its number.
    Cuda(i32),
}

/// A program compiled for a target. Threads may share it, and it runs any number of times.
#[derive(Clone, Debug)]
pub struct Executable {
    source: Source,
    plan: Plan,
    code: Code,
    /// A function of affine loops has no steps to choose.
    written: Written,
    /// After how many steps it looks whether it ends early.
    every: Option<i64>,
    timing: Timing,
    /// Where runs go that another program starts.
    pub(crate) placement: Placement,
}

#[derive(Clone, Debug)]
enum Code {
    Program(Box<Program>),
    /// The source itself, a function of affine loops.
    Nest,
    /// The gpu level with the places of its operations, by which the simulator counts.
    Simulated {
        gpu: String,
        seed: Option<u64>,
    },
    /// Machine code of this processor.
    Object(Machine),
    Ptx(Gpus),
}

impl Executable {
    pub(crate) fn new(
        session: &Session,
        source: &Source,
        target: Target,
        control: Control<'_>,
    ) -> Result<Self, Failure> {
        session.check_target(target)?;
        match target {
            Target::Reference if stages::is_mlir(source) => {
                nest::required(source)?;
                Self::compiled(session, source, control, target, |_, _| Ok(Code::Nest))
            }
            Target::Reference => {
                let start = Instant::now();
                let program = element::checked(session, source)?;
                let timing = vec![(stages::CHECK.to_owned(), start.elapsed())];
                let plan = declarations(&program)?;
                let every = program.until.as_ref().map(|until| until.every);
                let code = Code::Program(Box::new(program));
                Ok(Self {
                    source: source.clone(),
                    plan,
                    code,
                    written: Written::Program,
                    every,
                    timing,
                    placement: Placement::default(),
                })
            }
            Target::Simulator { seed } => {
                Self::compiled(session, source, control, target, |compilation, _| {
                    Ok(Code::Simulated { gpu: text_with_places(&compilation.module), seed })
                })
            }
            Target::Cpu { threads } => {
                let session = session.for_this_processor();
                Self::compiled(&session, source, control, target, |compilation, plan| {
                    Ok(Code::Object(Machine::new(compilation.object(plan)?, threads)))
                })
            }
            Target::Cuda(device) => {
                Self::compiled(session, source, control, target, |compilation, _| {
                    compilation.to_nvvm()?;
                    let code = compilation.code()?;
                    Ok(Code::Ptx(Gpus::new(compilation.ptx(&code)?, device)))
                })
            }
        }
    }

    /// A program that was compiled for the processor before, from its plan and its machine code.
    pub fn kept(
        source: &Source,
        plan: Plan,
        object: Object,
        threads: Option<NonZeroUsize>,
    ) -> Self {
        Self::of_code(source, plan, Code::Object(Machine::new(object, threads)))
    }

    /// A program that was compiled for GPUs before, from its plan and its PTX. `device` is the
    /// first GPU.
    pub fn kept_ptx(source: &Source, plan: Plan, ptx: String, device: i32) -> Self {
        Self::of_code(source, plan, Code::Ptx(Gpus::new(ptx, device)))
    }

    fn of_code(source: &Source, plan: Plan, code: Code) -> Self {
        let every = plan.steps_between_looks();
        Self {
            source: source.clone(),
            plan,
            code,
            written: Written::Program,
            every,
            timing: Timing::new(),
            placement: Placement::default(),
        }
    }

    /// The same for runs that another program starts ([`stencil_runtime::host`]) and that go there.
    /// The session that compiled it was [`Session::shared_by`] as many devices, or
    /// [`Session::in_windows`].
    pub fn placed(self, placement: Placement) -> Self {
        Self { placement, ..self }
    }

    /// Compiles to the gpu level, and from there to what `code` makes of it.
    fn compiled(
        session: &Session,
        source: &Source,
        mut control: Control<'_>,
        target: Target,
        code: impl FnOnce(&mut Compilation<'_, '_>, &Plan) -> Result<Code, Failure>,
    ) -> Result<Self, Failure> {
        let context = stages::context(source)?;
        let mut compilation = session.begin(&context, source, control.reborrow())?;
        match target {
            Target::Simulator { .. } => {
                stencil_simulator::mark_applies(&context, &compilation.module);
            }
            Target::Cuda(_) => compilation.check_libdevice()?,
            Target::Reference | Target::Cpu { .. } => {}
        }
        let lowered = |compilation: &mut Compilation<'_, '_>| {
            compilation.to_gpu()?;
            let plan = compilation.plan()?;
            let code = code(compilation, &plan)?;
            Ok((plan, code))
        };
        let (plan, code) =
            lowered(&mut compilation).map_err(|failure| session.with_origin(failure))?;
        let (written, timing) = (compilation.written, compilation.timing);
        let every = plan.steps_between_looks();
        let (source, placement) = (source.clone(), Placement::default());
        Ok(Self { source, plan, code, written, every, timing, placement })
    }

    /// Its launch plan; for the reference the declarations alone.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Its machine code; none where it is not for the processor.
    pub fn object(&self) -> Option<&Object> {
        let Code::Object(machine) = &self.code else { return None };
        Some(machine.object())
    }

    /// How long each pass and step of its compile took, in order.
    pub fn timing(&self) -> &Timing {
        &self.timing
    }

    /// Runs the program on arrays, one for each state and const field. Sizes that the shapes of
    /// the arrays tell need not be in the request.
    ///
    /// # Errors
    /// When arrays, sizes or scalars are missing or do not fit, when the device fails, when the
    /// run is cancelled.
    pub fn run(
        &self,
        inputs: &BTreeMap<String, Array>,
        mut request: Request,
        mut control: Control<'_>,
    ) -> Result<Outcome, Failure> {
        let paused = control.pauses.is_some() || request.first_step != 0;
        if self.written == Written::Nest && (request.steps.is_some() || paused) {
            let why = "a function of affine loops has no steps to choose; leave them out";
            return Err(Failure::user(format!("{}: {why}", self.source.name)));
        }
        self.check_devices(&control)?;
        if let Some(list) = &mut control.devices {
            let chosen = self.plan.target.devices.as_ref();
            list.devices = list.devices.or_chosen(chosen.and_then(|text| text.parse().ok()));
        }
        pauses::check(self.every, &request, &control)?;
        let shapes = inputs.iter().map(|(name, array)| (name.clone(), array.shape().to_vec()));
        request.shapes.extend(shapes);
        let run = pauses::Run { plan: &self.plan, request: &request, inputs };
        match &self.code {
            Code::Program(program) => run.go(control, |bound, inputs, control| {
                self.interpret(program, bound, inputs, control)
            }),
            Code::Nest => {
                let bound = bind(&self.plan, &request).map_err(Failure::user)?;
                self.interpret_nest(&bound, inputs, &control)
            }
            Code::Simulated { gpu, seed } => self.simulate(gpu, *seed, &run, control),
            Code::Object(machine) => self.on_processor(machine, &run, control),
            Code::Ptx(gpus) => self.launch(gpus, &run, control),
        }
    }

    fn interpret(
        &self,
        program: &Program,
        bound: &Bound,
        inputs: &BTreeMap<String, Array>,
        mut control: Control<'_>,
    ) -> Result<Outcome, Failure> {
        let sizes = program.params.iter();
        let sizes =
            sizes.filter_map(|(id, param)| Some((id, *bound.sizes.get(&param.name)?))).collect();
        let scalars = bound.scalars.iter();
        let scalars = scalars.map(|(name, value)| (name.clone(), Numeral::from(*value))).collect();
        let number = |step: i64| u64::try_from(step).map_err(Failure::internal);
        let steps = number(bound.first_step)?..number(bound.first_step + bound.steps)?;
        execute::check_inputs(&self.plan, bound, inputs).map_err(Failure::user)?;
        copies::require(&self.plan, bound)?;
        let mut outputs = copies(inputs)?;
        let start = Instant::now();
        let finite = control.finite;
        let ran = oracle::go_on(
            program,
            &sizes,
            &scalars,
            steps,
            finite,
            &mut outputs,
            &mut |done, of| {
                control.report(Progress::Steps { done, of });
                match control.is_cancelled() {
                    true => ControlFlow::Break(()),
                    false => ControlFlow::Continue(()),
                }
            },
        )
        .map_err(|error| Failure::of_oracle(&error, &self.source))?;
        let elapsed = Some(start.elapsed());
        let temps = control.pauses.is_some();
        let is_output =
            |role| matches!(role, Role::State | Role::Reduction) || (temps && role == Role::Temp);
        outputs.retain(|name, _| {
            program.fields.values().any(|field| field.name == *name && is_output(field.role))
        });
        let steps = i64::try_from(ran.steps).map_or(bound.steps, |last| last - bound.first_step);
        let until = program.until.as_ref();
        let ended = until.map(|until| Ended { condition: until.text.clone(), met: ran.met });
        Ok(Outcome { outputs, elapsed, steps, ended, ..Outcome::of(bound) })
    }

    fn interpret_nest(
        &self,
        bound: &Bound,
        inputs: &BTreeMap<String, Array>,
        control: &Control<'_>,
    ) -> Result<Outcome, Failure> {
        execute::check_inputs(&self.plan, bound, inputs).map_err(Failure::user)?;
        let mut outputs = copies(inputs)?;
        let start = Instant::now();
        nest::interpret(&self.source, bound, &mut outputs, &control.cancel)?;
        let elapsed = Some(start.elapsed());
        let state = |field: &FieldDecl| field.role == plan::Role::State;
        let states: Vec<_> = self.plan.fields.iter().filter(|field| state(field)).collect();
        outputs.retain(|name, _| states.iter().any(|field| field.name == *name));
        Ok(Outcome { outputs, elapsed, ..Outcome::of(bound) })
    }

    /// Checks that the devices of a run can share it.
    fn check_devices(&self, control: &Control<'_>) -> Result<(), Failure> {
        if control.device_memory.is_some() && matches!(self.code, Code::Program(_) | Code::Nest) {
            let why = "a run out of core is for --target cuda, sim or cpu; add one of them, or \
                       leave --device-memory out";
            return Err(Failure::user(format!("{}: {why}", self.source.name)));
        }
        let Some(DeviceList { devices, gpus }) = &control.devices else { return Ok(()) };
        let several = devices.count() > 1;
        let why = match &self.code {
            Code::Program(_) | Code::Nest if several => {
                "several devices are those of CUDA, of the simulator or of the processor; add \
                 --target cuda, --target sim or --target cpu, or leave --devices out"
            }
            Code::Ptx(_) => return Ok(()),
            _ if gpus.is_empty() => return Ok(()),
            _ => {
                "--devices names GPUs, and the target is another one; give how many devices there \
                 are, or add --target cuda"
            }
        };
        Err(Failure::user(format!("{}: {why}", self.source.name)))
    }

    /// Gives back what is kept for the next run: threads, and code that is loaded on GPUs.
    pub(crate) fn release_kept(&self) {
        match &self.code {
            Code::Object(machine) => machine.release(),
            Code::Ptx(gpus) => gpus.release(),
            Code::Program(_) | Code::Nest | Code::Simulated { .. } => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_runtime::array::{Data, Element};
    use stencil_runtime::plan::{
        BufferDecl, BufferKind, Limit, Node, Relation, Snapshot, Start, Until,
    };

    /// A plan with a loop that ends by a value, and a snapshot in each turn.
    #[test]
    fn a_run_tells_the_steps_that_it_took_and_hands_snapshots_over() {
        let text = "param N\ngrid G = [0..N-1]\nfield A : f32 on G\n\
                    fn f -> A [0..N-1] = A[0] + 1.0\nsteps 9\n";
        let source = Source::new("count.stencil", text);
        let target = Target::Simulator { seed: None };
        let naive = Some("naive".to_owned());
        let session = Session::new(crate::Options {
            config: crate::Config {
                choice: crate::Choice { strategy: naive, ..crate::Choice::default() },
                ..crate::Config::default()
            },
            ..crate::Options::default()
        });
        let mut executable = session.executable(&source, target, Control::default()).unwrap();
        let plan = &mut executable.plan;
        plan.buffers.push(BufferDecl {
            name: "zero".to_owned(),
            kind: BufferKind::Reduction,
            element: Element::F32,
            extents: vec!["1".parse().unwrap()],
            origin: Vec::new(),
            layout: plan::BufferLayout::default(),
            start: Start::Zeros,
            constant: None,
            device: 0,
        });
        let Some(Node::Repeat(mut turn)) = plan.schedule.pop() else { panic!("no loop") };
        turn.body.push(Node::Snapshot(Snapshot { field: "A".to_owned() }));
        plan.schedule = vec![Node::Until(Until {
            reduction: "zero".to_owned(),
            is: Relation::Less,
            limit: Limit::Value("1".parse().unwrap()),
            every: 2,
            text: String::new(),
            otherwise: Vec::new(),
            most: turn.count,
            ahead: false,
            body: turn.body,
        })];
        let inputs = [("A".to_owned(), Array::zeros(Element::F32, &[5]).unwrap())].into();
        let mut taken = Vec::new();
        let mut snapshot = |one: execute::Taken| taken.push((one.step, one.value));
        let control = Control { snapshot: Some(&mut snapshot), ..Control::default() };
        let outcome = executable.run(&inputs, Request::default(), control).unwrap();
        assert_eq!((outcome.steps, outcome.launches), (2, 2));
        let all = |value| Array::new(vec![5], Data::F32(vec![value; 5])).unwrap();
        assert_eq!(outcome.outputs["A"], all(2.0));
        assert_eq!(taken, [(1, all(1.0)), (2, all(2.0))]);
    }
}
