//! Buffers in constant memory: their memory is a variable of the code, which kernels find by its
//! name.

use super::{BufferDecl, BufferKind, BufferLayout, Plan, Start};
use crate::expr::Expr;

/// Bytes of constant memory on every CUDA device (CUDA C++ Programming Guide, table of technical
/// specifications per compute capability).
const MOST_BYTES: u64 = 64 << 10;

impl BufferDecl {
    /// Its bytes, if its extents are constants.
    fn constant_bytes(&self) -> Option<u64> {
        let extent = |extent: &Expr| extent.as_int().and_then(|cells| u64::try_from(cells).ok());
        let mut extents = self.extents.iter().map(extent);
        extents.try_fold(self.element.size() as u64, |bytes, cells| bytes.checked_mul(cells?))
    }
}

/// Checks that buffers in constant memory begin with an input, keep it, and fit.
pub(super) fn fit(plan: &Plan) -> Result<(), String> {
    let mut names: Vec<&str> = Vec::new();
    let mut all = 0_u64;
    for buffer in &plan.buffers {
        let Some(name) = &buffer.constant else { continue };
        let wrong = |message: &str| Err(format!("buffer `{}` {message}", buffer.name));
        if name.is_empty() || name.contains('\0') {
            return wrong("lies in a variable without a name");
        }
        if names.contains(&name.as_str()) {
            return wrong(&format!("lies in the variable `{name}`, which another buffer has"));
        }
        names.push(name);
        let input = matches!(buffer.start, Start::Input(_));
        if buffer.kind != BufferKind::Field || !input || buffer.layout != BufferLayout::RowMajor {
            return wrong(
                "lies in constant memory; it must be of the kind `field`, row-major, and begin \
                 with an input",
            );
        }
        let Some(bytes) = buffer.constant_bytes() else {
            return wrong("lies in constant memory, and an extent of it is no constant");
        };
        all = all.saturating_add(bytes);
        if all > MOST_BYTES {
            return wrong(&format!("does not fit in the {MOST_BYTES} bytes of constant memory"));
        }
        let takes = |name: &str| *name == buffer.name;
        let rotates = |launch: &super::Launch| launch.rotate.iter().flatten().any(|it| takes(it));
        let mut launches = plan.launches();
        if let Some(launch) = launches.find(|launch| {
            rotates(launch) || launch.arguments.iter().any(|at| at.buffer().is_some_and(takes))
        }) {
            let kernel = &launch.kernel;
            return wrong(&format!("lies in constant memory, and is an argument of `{kernel}`"));
        }
        if plan.fields.iter().flat_map(|field| &field.value).any(|part| takes(&part.buffer)) {
            return wrong("lies in constant memory, and holds a field's value");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::tests::heat;

    /// A plan whose input `K` is in constant memory too.
    fn with_constant(change: impl Fn(&mut Plan, usize)) -> Result<(), String> {
        let mut plan = heat();
        let field = plan.fields.iter_mut().find(|field| field.name == "K").unwrap();
        field.extents = vec!["16".parse().unwrap()];
        let own = plan.buffers.iter_mut().find(|buffer| buffer.name == "K").unwrap();
        own.extents = vec!["16".parse().unwrap()];
        let own = own.clone();
        plan.buffers.push(BufferDecl {
            name: "constant K".to_owned(),
            constant: Some("two_constant".to_owned()),
            ..own
        });
        let place = plan.buffers.len() - 1;
        change(&mut plan, place);
        plan.validate().map_err(|error| error.to_string())
    }

    fn refused(change: impl Fn(&mut Plan, usize), wanted: &str) {
        let found = with_constant(change).unwrap_err();
        assert!(found.contains(wanted), "{wanted}\n{found}");
    }

    #[test]
    fn buffers_in_constant_memory_are_inputs_that_stay() {
        assert_eq!(with_constant(|_, _| ()), Ok(()));
        let extent = |text: &str| vec![text.parse().unwrap()];
        refused(|plan, at| plan.buffers[at].constant = Some(String::new()), "without a name");
        refused(|plan, at| plan.buffers[at].start = Start::Zeros, "begin with an input");
        refused(|plan, at| plan.buffers[at].extents = extent("N"), "is no constant");
        refused(|plan, at| plan.buffers[at].extents = extent("16385"), "65536 bytes");
        refused(
            |plan, at| {
                let other = BufferDecl { name: "other".to_owned(), ..plan.buffers[at].clone() };
                plan.buffers.push(other);
            },
            "which another buffer has",
        );
        refused(|plan, at| plan.buffers[at].name = "K".to_owned(), "is declared twice");
        refused(
            |plan, _| {
                let own = plan.buffers.iter_mut().find(|buffer| buffer.name == "K").unwrap();
                own.constant = Some("one_constant".to_owned());
            },
            "is an argument of `two`",
        );
    }
}
