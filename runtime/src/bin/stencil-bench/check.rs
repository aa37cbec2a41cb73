//! Compares results with those of a reference plan or of files.

use serde::Serialize;
use std::collections::BTreeMap;
use std::error::Error;
use std::path::PathBuf;
use stencil_runtime::array::Array;
use stencil_runtime::compare::{Comparison, compare};
use stencil_runtime::npy;
use stencil_runtime::plan::FieldDecl;
use stencil_runtime::record::records;

/// A comparison with a reference.
#[derive(Clone, Debug, Serialize)]
pub struct Check {
    /// The plan or files that it was compared with.
    pub against: String,
    /// The largest error allowed, relative to the field's largest value.
    pub tolerance: f64,
    /// Whether the last measured run gave the bits of the checked one; none where it took other
    /// steps.
    pub repeats: Option<bool>,
    /// Whether every field is within the tolerance, and the last run gave the same.
    pub passed: bool,
    /// The comparison of each field.
    pub fields: BTreeMap<String, Comparison>,
}

/// The arrays of the files to compare with, one for each leaf of a struct or vec.
pub fn read_wanted(
    fields: &[FieldDecl],
    files: &[(String, PathBuf)],
) -> Result<BTreeMap<String, Array>, Box<dyn Error>> {
    let records = records(fields);
    let mut wanted = BTreeMap::new();
    for (field, path) in files {
        match records.iter().find(|record| record.name == field) {
            Some(record) => {
                let leaves = record.leaves.iter().map(|(_, leaf)| leaf.name.clone());
                wanted.extend(leaves.zip(record.read(path)?));
            }
            // `check` says which outputs there are.
            None => drop(wanted.insert(field.clone(), npy::read(path)?)),
        }
    }
    Ok(wanted)
}

/// Compares each wanted field with the output of its name.
pub fn check(
    against: String,
    tolerance: f64,
    outputs: &BTreeMap<String, Array>,
    wanted: &BTreeMap<String, Array>,
) -> Result<Check, Box<dyn Error>> {
    let mut fields = BTreeMap::new();
    for (name, wanted) in wanted {
        let Some(output) = outputs.get(name) else {
            let known: Vec<&str> = outputs.keys().map(String::as_str).collect();
            return Err(
                format!("the program has no output `{name}`; it has {}", known.join(", ")).into()
            );
        };
        fields.insert(
            name.clone(),
            compare(output, wanted).map_err(|e| format!("output `{name}`: {e}"))?,
        );
    }
    let within =
        |found: &Comparison| found.exact() || (tolerance > 0.0 && found.error() <= tolerance);
    Ok(Check { against, tolerance, repeats: None, passed: fields.values().all(within), fields })
}

/// Whether two results have the same bits.
pub fn are_same(one: &BTreeMap<String, Array>, other: &BTreeMap<String, Array>) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|((_, one), (_, other))| one.bytes() == other.bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use stencil_runtime::array::{Data, Element};
    use stencil_runtime::plan::{Member, Role};

    #[test]
    fn wanted_vecs_come_as_their_leaves() {
        let leaf = |lane: usize| FieldDecl {
            name: format!("V.{lane}"),
            element: Element::F32,
            boolean: false,
            member: Some(Member { field: "V".to_owned(), offset: 4 * lane, size: 8 }),
            role: Role::State,
            extents: vec!["N".parse().unwrap()],
            value: Vec::new(),
        };
        let fields = [leaf(0), leaf(1)];
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.npy");
        npy::write(&path, &Array::new(vec![2, 2], Data::F32(vec![1.0, 2.0, 3.0, 4.0])).unwrap())
            .unwrap();
        let wanted = read_wanted(&fields, &[("V".to_owned(), path.clone())]).unwrap();
        assert_eq!(wanted["V.0"], Array::new(vec![2], Data::F32(vec![1.0, 3.0])).unwrap());
        assert_eq!(wanted["V.1"], Array::new(vec![2], Data::F32(vec![2.0, 4.0])).unwrap());
        assert!(read_wanted(&fields, &[("W".to_owned(), path)]).unwrap().contains_key("W"));
    }

    #[test]
    fn checks_want_the_same_bits_unless_told_otherwise() {
        let array = |x| {
            BTreeMap::from([("A".to_string(), Array::new(vec![1], Data::F64(vec![x])).unwrap())])
        };
        let passed =
            |tolerance, x| check("r".into(), tolerance, &array(x), &array(1.0)).unwrap().passed;
        assert!(passed(0.0, 1.0));
        assert!(!passed(0.0, 1.0 + f64::EPSILON));
        assert!(passed(1e-12, 1.0 + f64::EPSILON));
        assert!(!passed(1e-12, 1.1));
        assert!(!passed(1e-12, f64::NAN));
        let error = check("r".into(), 0.0, &BTreeMap::new(), &array(1.0)).unwrap_err();
        assert_eq!(error.to_string(), "the program has no output `A`; it has ");
    }
}
