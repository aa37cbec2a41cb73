//! Buffers whose cells are the records of a declared field of structs or vecs.

use super::{BufferDecl, BufferKind, BufferLayout, Part, Plan, Start};

/// Checks that a buffer of records begins with all numbers of a declared field, in order, or with
/// zeros. Only a buffer with the layout `records` may begin with a record.
pub(super) fn buffer(plan: &Plan, buffer: &BufferDecl) -> Result<(), String> {
    let BufferLayout::Records { numbers, block } = &buffer.layout else {
        return match &buffer.start {
            Start::Record(_) => {
                Err("starts with a record, and has another layout than `records`".to_string())
            }
            _ => Ok(()),
        };
    };
    if !block.is_power_of_two() {
        return Err(format!("has blocks of {block} cells; their number is a power of two"));
    }
    if buffer.kind != BufferKind::Field {
        return Err("has the layout `records`, and is not of the kind `field`".to_string());
    }
    let name = match &buffer.start {
        Start::Record(name) => name,
        Start::Zeros => return Ok(()),
        _ => {
            return Err(
                "has the layout `records`, and starts with neither a record nor zeros".to_string()
            );
        }
    };
    let fields = plan.fields.iter().filter(|field| field.declared_name() == name);
    let fields: Vec<_> = fields.filter(|field| field.member.is_some()).collect();
    if fields.is_empty() || fields.len() != *numbers as usize {
        let found = fields.len();
        return Err(format!("has records of {numbers} numbers, and `{name}` has {found}"));
    }
    match fields.iter().find(|field| {
        (field.element, &field.extents) != (buffer.element, &buffer.extents)
            || !field.role.is_input()
    }) {
        Some(field) => Err(format!(
            "starts with the record `{name}`, of which `{}` differs in its cells or is no input",
            field.name
        )),
        None => Ok(()),
    }
}

/// Checks that a part names a number of its buffer's records if, and only if, it has some.
pub(super) fn part(part: &Part, buffer: &BufferDecl) -> Result<(), String> {
    let numbers = match buffer.layout {
        BufferLayout::Records { numbers, .. } => Some(numbers),
        _ => None,
    };
    match (part.number, numbers) {
        (None, None) => Ok(()),
        (Some(number), Some(numbers)) if number < numbers => Ok(()),
        (number, numbers) => {
            let number = number.map_or("no number".to_owned(), |one| format!("number {one}"));
            let numbers = numbers.unwrap_or(0);
            Err(format!("lies in `{}` as {number}, of records of {numbers} numbers", part.buffer))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::plan::tests::heat;

    /// A plan with an array of structs `P` of two numbers, in two buffers.
    pub fn points() -> Plan {
        let mut plan = heat();
        let field = plan.fields.first().cloned().unwrap();
        let number = |name: &str, place: u32| {
            let mut field = field.clone();
            field.name = format!("P.{name}");
            field.extents = ["N", "M"].map(|size| size.parse().unwrap()).to_vec();
            let offset = 4 * place as usize;
            field.member = Some(crate::plan::Member { field: "P".to_owned(), offset, size: 8 });
            let buffer = "P".to_owned();
            field.value = vec![Part { buffer, cells: None, number: Some(place) }];
            field
        };
        plan.fields = vec![number("x", 0), number("y", 1)];
        let mut buffer = plan.buffers.first().cloned().unwrap();
        buffer.extents.clone_from(&plan.fields[0].extents);
        buffer.layout = BufferLayout::Records { numbers: 2, block: 1 };
        buffer.start = Start::Record("P".to_owned());
        buffer.name = "P".to_owned();
        plan.buffers = vec![buffer.clone(), BufferDecl { name: "P'".to_owned(), ..buffer }];
        plan.schedule.clear();
        plan.checks.clear();
        plan.scalars.clear();
        plan
    }

    fn refused(change: impl FnOnce(&mut Plan)) -> String {
        let mut plan = points();
        change(&mut plan);
        plan.validate().unwrap_err().to_string()
    }

    #[test]
    fn buffers_of_records_hold_all_numbers_of_a_field() {
        points().validate().unwrap();
        let text =
            refused(|plan| plan.buffers[0].layout = BufferLayout::Records { numbers: 3, block: 1 });
        assert!(text.contains("records of 3 numbers, and `P` has 2"), "{text}");
        let text = refused(|plan| plan.buffers[1].layout = BufferLayout::RowMajor);
        assert!(text.contains("starts with a record, and has another layout"), "{text}");
        let mut zeros = points();
        zeros.buffers[1].start = Start::Zeros;
        zeros.validate().unwrap();
        let text = refused(|plan| plan.buffers[1].start = Start::Input("P.x".to_owned()));
        assert!(text.contains("and starts with neither a record nor zeros"), "{text}");
        let text = refused(|plan| plan.fields[1].value[0].number = Some(2));
        assert!(text.contains("lies in `P` as number 2, of records of 2 numbers"), "{text}");
        let text = refused(|plan| plan.fields[1].value[0].number = None);
        assert!(text.contains("lies in `P` as no number, of records of 2 numbers"), "{text}");
        let text = refused(|plan| plan.buffers[1].start = Start::Record("Q".to_owned()));
        assert!(text.contains("records of 2 numbers, and `Q` has 0"), "{text}");
        let text = refused(|plan| plan.buffers[1].kind = BufferKind::Reduction);
        assert!(text.contains("is not of the kind `field`"), "{text}");
    }
}
