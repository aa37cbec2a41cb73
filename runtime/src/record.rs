//! Fields whose cells are structs or vecs. Files hold them as they are declared; everything else
//! has one array of numbers for each leaf. This module turns one form into the other.
//!
//! A `vec<N, T>` is an array with one more last dimension of N. A struct is a NumPy structured
//! type, packed, in order of declaration.

use crate::array::{Array, ArrayError, Backing, Element, shape_text};
pub use crate::cell::Layout;
use crate::expr::Expr;
use crate::npy::{self, NpyError, ReadLeaf};
use crate::plan::{FieldDecl, Role};
use crate::whole_file::write_whole;
use std::io::{self, Write};
use std::path::Path;

/// The fields that a declared one consists of, and the type of its cells.
pub struct Record<'p> {
    /// Its name.
    pub name: &'p str,
    /// The fields, in order; their places in the plan.
    pub leaves: Vec<(usize, &'p FieldDecl)>,
    /// The type of a cell.
    pub layout: Layout,
}

/// The declared fields of some that are leaves or whole, in order.
pub fn records(fields: &[FieldDecl]) -> Vec<Record<'_>> {
    let mut records: Vec<Record> = Vec::new();
    for (place, field) in fields.iter().enumerate() {
        let name = field.declared_name();
        match records.last_mut() {
            Some(record) if record.name == name => record.leaves.push((place, field)),
            _ => {
                records.push(Record { name, leaves: vec![(place, field)], layout: field.layout() })
            }
        }
    }
    for record in &mut records {
        let path = |field: &'_ FieldDecl| {
            field.name.get(record.name.len()..).unwrap_or_default().to_owned()
        };
        let leaves: Vec<(String, Layout)> =
            record.leaves.iter().map(|(_, field)| (path(field), field.layout())).collect();
        let leaves: Vec<(&str, Layout)> =
            leaves.iter().map(|(path, leaf)| (path.as_str(), leaf.clone())).collect();
        if let Some(layout) = Layout::of(&leaves) {
            record.layout = layout;
        }
    }
    records
}

impl Record<'_> {
    /// The use of the field by the caller.
    pub fn role(&self) -> Option<Role> {
        self.leaves.first().map(|(_, field)| field.role)
    }

    fn elements(&self) -> impl Iterator<Item = Element> {
        self.leaves.iter().map(|(_, field)| field.element)
    }

    /// Reads the cells of a file into one array per leaf.
    ///
    /// # Errors
    /// As [`npy::read_as`], for the type that the record has.
    pub fn read(&self, path: &Path) -> Result<Vec<Array>, NpyError> {
        self.read_on(path, &Backing::Memory)
    }

    /// As [`Record::read`], to where the arrays are to lie.
    pub(crate) fn read_on(&self, path: &Path, backing: &Backing) -> Result<Vec<Array>, NpyError> {
        let rank = self.leaves.first().map_or(0, |(_, field)| field.extents.len());
        let no_array = |source| NpyError::Array { path: path.to_path_buf(), source };
        let (lanes, inner) = self.layout.lanes();
        let dimensions = rank + lanes.len();
        let of_vecs = |error| match error {
            NpyError::Rank { path, shape, .. } if !lanes.is_empty() => {
                NpyError::Vecs { path, found: shape, wanted: self.shape_text(&lanes) }
            }
            other => other,
        };
        if let Layout::Number(element) = inner {
            let array = npy::read_as(path, *element, dimensions, backing).map_err(of_vecs)?;
            if lanes.is_empty() {
                return Ok(vec![array]);
            }
            let shape = self.without_lanes(path, array.shape(), &lanes)?;
            return self.split(shape, array.bytes(), backing).map_err(no_array);
        }
        if *backing != Backing::Memory {
            return Err(NpyError::Parts { path: path.to_path_buf() });
        }
        let (shape, bytes) = npy::read_records(path, inner, dimensions).map_err(of_vecs)?;
        self.split(self.without_lanes(path, &shape, &lanes)?, &bytes, backing).map_err(no_array)
    }

    /// The shape of a file's array without the dimensions that count the lanes of vecs.
    fn without_lanes<'s>(
        &self,
        path: &Path,
        shape: &'s [usize],
        lanes: &[usize],
    ) -> Result<&'s [usize], NpyError> {
        let (cells, found) = shape.split_at(shape.len().saturating_sub(lanes.len()));
        if found == lanes {
            return Ok(cells);
        }
        let (found, wanted) = (shape_text(shape), self.shape_text(lanes));
        Err(NpyError::Vecs { path: path.to_path_buf(), found, wanted })
    }

    /// The shape of a file's array, such as `NxMx3`.
    fn shape_text(&self, lanes: &[usize]) -> String {
        let extents = self.leaves.first().map_or(&[][..], |(_, field)| &field.extents);
        let extents = extents.iter().map(|extent| match extent {
            Expr::Int(_) | Expr::Name(_) => extent.to_string(),
            _ => format!("({extent})"),
        });
        let all: Vec<_> = extents.chain(lanes.iter().map(ToString::to_string)).collect();
        all.join("x")
    }

    /// Writes one array per leaf as cells of a file.
    ///
    /// # Errors
    /// As [`npy::write`].
    pub fn write(&self, path: &Path, leaves: &[&Array]) -> Result<(), NpyError> {
        write_whole(path, |file| self.write_to(file, leaves))
            .map_err(|source| NpyError::Write { path: path.to_path_buf(), source })
    }

    /// Writes one array per leaf as the bytes of an `.npy` file.
    ///
    /// # Errors
    /// The system's error.
    pub fn write_to(&self, out: &mut dyn Write, leaves: &[&Array]) -> io::Result<()> {
        npy::write_arrays(out, &self.layout, leaves)
    }

    /// Writes cells of a shape as the bytes of an `.npy` file; `read` gives the numbers of a leaf
    /// from a cell on.
    ///
    /// # Errors
    /// The system's error, or that of `read`.
    pub fn write_parts(
        &self,
        out: &mut dyn Write,
        shape: &[usize],
        read: ReadLeaf<'_>,
    ) -> io::Result<()> {
        let sizes: Vec<_> = self.elements().map(Element::size).collect();
        npy::write_records(out, &self.layout, shape, &sizes, read)
    }

    /// Seeded noise for all leaves: that of an array whose last dimension counts the numbers of a
    /// cell.
    ///
    /// # Errors
    /// When the machine has too little memory.
    pub fn noise(&self, shape: &[usize], seed: u64) -> Result<Vec<Array>, ArrayError> {
        self.noise_on(shape, seed, &Backing::Memory)
    }

    /// As [`Record::noise`], where the arrays are to lie.
    pub(crate) fn noise_on(
        &self,
        shape: &[usize],
        seed: u64,
        backing: &Backing,
    ) -> Result<Vec<Array>, ArrayError> {
        let count = self.leaves.len() as u64;
        let leaf = |(place, (_, field)): (u64, &(usize, &FieldDecl))| {
            let mut array = Array::noise_of(field.element, (shape, backing), seed, |cell| {
                cell * count + place
            })?;
            if field.boolean {
                // The upper half of the bytes is true.
                array.bytes_mut().iter_mut().for_each(|byte| *byte >>= 7);
            }
            Ok(array)
        };
        (0..count).zip(&self.leaves).map(leaf).collect()
    }

    fn split(
        &self,
        shape: &[usize],
        bytes: &[u8],
        backing: &Backing,
    ) -> Result<Vec<Array>, ArrayError> {
        let cell: usize = self.elements().map(Element::size).sum();
        let mut offset = 0;
        let mut arrays = Vec::new();
        for element in self.elements() {
            let size = element.size();
            let mut array = Array::zeros_on(element, shape, backing)?;
            for (to, from) in
                array.bytes_mut().chunks_exact_mut(size).zip(bytes.chunks_exact(cell.max(1)))
            {
                to.copy_from_slice(from.get(offset..offset + size).unwrap_or_default());
            }
            offset += size;
            arrays.push(array);
        }
        Ok(arrays)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Member;

    fn fields(name: &str, leaves: &[(&str, Element)]) -> Vec<FieldDecl> {
        let size = leaves.iter().map(|(_, element)| element.size()).sum();
        let mut offset = 0;
        let leaf = |(path, element): &(&str, Element)| {
            offset += element.size();
            FieldDecl {
                name: format!("{name}{path}"),
                element: *element,
                boolean: false,
                member: Some(Member {
                    field: name.to_owned(),
                    offset: offset - element.size(),
                    size,
                }),
                role: Role::State,
                extents: vec!["N".parse().unwrap(), "3".parse().unwrap()],
                value: Vec::new(),
            }
        };
        leaves.iter().map(leaf).collect()
    }

    #[test]
    fn structs_go_through_files_with_every_member() {
        let leaves = [
            (".u", Element::F32),
            (".v.0", Element::F16),
            (".v.1", Element::F16),
            (".in.a", Element::U64),
            (".in.b", Element::I32),
        ];
        let fields = fields("C", &leaves);
        let records = records(&fields);
        let [record] = records.as_slice() else { panic!("one field") };
        let half = Layout::Number(Element::F16);
        let inner = vec![
            ("a".into(), Layout::Number(Element::U64)),
            ("b".into(), Layout::Number(Element::I32)),
        ];
        assert_eq!(
            record.layout,
            Layout::Struct(vec![
                ("u".into(), Layout::Number(Element::F32)),
                ("v".into(), Layout::Vec(2, Box::new(half))),
                ("in".into(), Layout::Struct(inner)),
            ])
        );
        let arrays = record.noise(&[2, 3], 5).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npy");
        record.write(&path, &arrays.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(record.read(&path).unwrap(), arrays);
        // 20 bytes a cell, nothing between them.
        let bytes = std::fs::read(&path).unwrap();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(text.contains("('v', '<f2', (2,))") && text.contains("('in', ["), "{text}");
        assert_eq!(bytes.len() % 64, 6 * 20 % 64);
        let error = npy::read(&path).unwrap_err().to_string();
        assert!(error.contains("holds cells of type [('u', '<f4')"), "{error}");
    }

    /// More cells than are in memory at a time.
    #[test]
    fn many_structs_go_through_files() {
        let fields = fields("C", &[(".u", Element::F64), (".v", Element::I16)]);
        let records = records(&fields);
        let record = records.first().unwrap();
        let arrays = record.noise(&[700, 1001], 5).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("c.npy");
        record.write(&path, &arrays.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(record.read(&path).unwrap(), arrays);
    }

    /// A file of the largest cells that a plan may have can be read again.
    #[test]
    fn types_at_the_limits_go_through_files() {
        let names: Vec<_> = (0..64).map(|n| format!(".{}{n:02}", "a".repeat(125))).collect();
        let long: Vec<_> = names.iter().map(|name| (name.as_str(), Element::F32)).collect();
        let deep = [(".a.b.c.d.0", Element::F32), (".a.b.c.d.1", Element::F32)];
        for (leaves, structs, characters) in [(&deep[..], 4, 55), (&long, 1, 8_962)] {
            let fields = fields("C", leaves);
            let records = records(&fields);
            let record = records.first().unwrap();
            assert_eq!(record.layout.structs(), structs);
            assert_eq!(npy::description(&record.layout), characters);
            let arrays = record.noise(&[2, 3], 5).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("c.npy");
            record.write(&path, &arrays.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(record.read(&path).unwrap(), arrays);
        }
    }

    #[test]
    fn complex_numbers_are_those_of_numpy() {
        for (element, descr) in [(Element::F32, "'<c8'"), (Element::F64, "'<c16'")] {
            let fields = fields("U", &[(".re", element), (".im", element)]);
            let records = records(&fields);
            let record = records.first().unwrap();
            let arrays = record.noise(&[2, 3], 5).unwrap();
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("u.npy");
            record.write(&path, &arrays.iter().collect::<Vec<_>>()).unwrap();
            assert_eq!(record.read(&path).unwrap(), arrays);
            let text = String::from_utf8_lossy(&std::fs::read(&path).unwrap()).into_owned();
            assert!(text.contains(descr) && text.contains("'shape': (2, 3, )"), "{text}");
            npy::write(&path, &Array::zeros(element, &[2, 3]).unwrap()).unwrap();
            let error = record.read(&path).unwrap_err().to_string();
            assert!(error.contains(&format!("where {descr} is wanted")), "{error}");
        }
    }

    #[test]
    fn vecs_have_a_last_dimension() {
        let fields = fields("V", &[(".0", Element::F32), (".1", Element::F32)]);
        let records = records(&fields);
        let record = records.first().unwrap();
        let arrays = record.noise(&[2, 3], 5).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.npy");
        record.write(&path, &arrays.iter().collect::<Vec<_>>()).unwrap();
        // Noise is that of the array as it is declared.
        let whole = npy::read(&path).unwrap();
        assert_eq!(whole, Array::noise(Element::F32, &[2, 3, 2], 5).unwrap());
        assert_eq!(record.read(&path).unwrap(), arrays);
        npy::write(&path, &Array::zeros(Element::F32, &[2, 3, 4]).unwrap()).unwrap();
        let error = record.read(&path).unwrap_err().to_string();
        assert!(
            error.ends_with(
                "has the shape 2x3x4 where Nx3x2 is wanted, with the lanes of vecs last; reshape it"
            ),
            "{error}"
        );
        npy::write(&path, &Array::zeros(Element::F32, &[2, 3]).unwrap()).unwrap();
        assert!(
            record
                .read(&path)
                .unwrap_err()
                .to_string()
                .contains("has the shape 2x3 where Nx3x2 is wanted")
        );
    }
}
