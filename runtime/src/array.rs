//! Dense arrays of numbers: the data of a field outside the device.
//!
//! Arrays are row-major without padding. `array/data.rs` holds their numbers, `array/mapped.rs`
//! those of arrays in files, `array/noise.rs` seeded noise ([`noise_bits`]).

mod data;
mod mapped;
mod noise;

pub use crate::element::{Element, bf16, f16, with_cell};
use crate::number::Number;
use data::each;
pub use data::{Cell, Data, DataMut, DataRef, each_cell};
use mapped::Mapped;
pub use noise::noise_bits;
use std::path::PathBuf;
use thiserror::Error;

/// Why an array could not be made or compared.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ArrayError {
    /// The product of the extents does not fit in this machine's address space.
    #[error(
        "size overflow: an array of {} {element} cells does not fit in memory addresses; use \
         smaller sizes",
        shape_text(shape)
    )]
    TooLarge {
        /// Cells per dimension.
        shape: Vec<usize>,
        /// Type of a cell.
        element: Element,
    },
    /// The machine refused the memory.
    #[error(
        "out of memory: no {bytes} bytes for an array of {} {element} cells; use smaller sizes",
        shape_text(shape)
    )]
    OutOfMemory {
        /// Cells per dimension.
        shape: Vec<usize>,
        /// Type of a cell.
        element: Element,
        /// Bytes wanted.
        bytes: usize,
    },
    /// The folder has too little room for the array.
    #[error(
        "no file of {bytes} bytes in {} for an array of {} {element} cells: {error}; make room \
         there, or use smaller sizes",
        folder.display(),
        shape_text(shape)
    )]
    File {
        /// Cells per dimension.
        shape: Vec<usize>,
        /// Type of a cell.
        element: Element,
        /// Bytes wanted.
        bytes: usize,
        /// Where the file would be.
        folder: PathBuf,
        /// The system's error.
        error: String,
    },
    /// The data's length is not the product of the extents.
    #[error("{found} cells of data do not fill a shape of {} ({wanted} cells)", shape_text(shape))]
    Length {
        /// Cells per dimension.
        shape: Vec<usize>,
        /// Cells found.
        found: usize,
        /// Cells that the shape holds.
        wanted: usize,
    },
    /// Two arrays that were to be compared have different shapes or types.
    #[error("can't compare {left} with {right}: shape and type must be the same")]
    Unlike {
        /// Type and shape of the first.
        left: String,
        /// Type and shape of the second.
        right: String,
    },
}

impl ArrayError {
    /// Whether the machine has too little memory for an array.
    pub fn lacks_memory(&self) -> bool {
        matches!(self, Self::TooLarge { .. } | Self::OutOfMemory { .. })
    }
}

/// A dense array: row-major, no padding, the last dimension is contiguous.
#[derive(Debug)]
pub struct Array {
    shape: Vec<usize>,
    store: Store,
}

/// What holds the numbers.
#[derive(Debug)]
enum Store {
    Memory(Data),
    File(Element, Mapped),
}

/// Where the cells of an array lie.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Backing {
    /// In memory.
    #[default]
    Memory,
    /// In a file without a name in this folder, which goes with the array. The system keeps as much
    /// of it in memory as there is room for.
    Files(PathBuf),
}

/// A clone lies in memory.
impl Clone for Array {
    fn clone(&self) -> Self {
        Self { shape: self.shape.clone(), store: Store::Memory(self.copied()) }
    }
}

impl PartialEq for Array {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.data() == other.data()
    }
}

impl Array {
    /// An array of the given numbers.
    ///
    /// # Errors
    /// When the data's length is not the product of the extents.
    pub fn new(shape: Vec<usize>, data: Data) -> Result<Array, ArrayError> {
        let array = Array { shape, store: Store::Memory(data) };
        let found = array.len();
        let wanted = cells(&array.shape, array.element())?;
        if wanted != found {
            return Err(ArrayError::Length { shape: array.shape, found, wanted });
        }
        Ok(array)
    }

    /// The shape and the numbers, which are copied out of a file.
    pub fn into_parts(self) -> (Vec<usize>, Data) {
        match self.store {
            Store::Memory(data) => (self.shape, data),
            Store::File(..) => {
                let data = self.copied();
                (self.shape, data)
            }
        }
    }

    fn copied(&self) -> Data {
        each!(self.data(), v => Cell::data(v.to_vec()))
    }

    /// An array of zeros.
    ///
    /// # Errors
    /// When the size overflows or the machine has too little memory.
    pub fn zeros(element: Element, shape: &[usize]) -> Result<Array, ArrayError> {
        let cells = cells(shape, element)?;
        // Memory that is only read costs nothing then, as the system gives it out when written.
        let data = with_cell!(element, T => {
            let cells = bytemuck::allocation::try_zeroed_vec::<T>(cells);
            T::data(cells.map_err(|()| out_of_memory(shape, element))?)
        });
        Ok(Array { shape: shape.to_vec(), store: Store::Memory(data) })
    }

    /// An array of zeros that lies in memory or in a file.
    ///
    /// # Errors
    /// As [`Array::zeros`], and when the folder of the file has too little room.
    pub fn zeros_on(
        element: Element,
        shape: &[usize],
        backing: &Backing,
    ) -> Result<Array, ArrayError> {
        let Backing::Files(folder) = backing else { return Self::zeros(element, shape) };
        let bytes = cells(shape, element)? * element.size();
        let file = Mapped::zeros(folder, bytes).map_err(|error| ArrayError::File {
            shape: shape.to_vec(),
            element,
            bytes,
            folder: folder.clone(),
            error: error.to_string(),
        })?;
        Ok(Array { shape: shape.to_vec(), store: Store::File(element, file) })
    }

    /// An array of one number, in each cell.
    ///
    /// # Errors
    /// As [`Array::zeros`].
    pub fn filled(value: Number, shape: &[usize]) -> Result<Array, ArrayError> {
        fn filled<T: Clone>(
            value: T,
            element: Element,
            shape: &[usize],
        ) -> Result<Vec<T>, ArrayError> {
            let cells = cells(shape, element)?;
            let mut v: Vec<T> = Vec::new();
            v.try_reserve_exact(cells).map_err(|_| out_of_memory(shape, element))?;
            v.resize(cells, value);
            Ok(v)
        }
        let element = value.element();
        let data = with_cell!(element, T => {
            T::data(filled(T::of_number(value).unwrap_or_default(), element, shape)?)
        });
        Ok(Array { shape: shape.to_vec(), store: Store::Memory(data) })
    }

    /// A copy of the array.
    ///
    /// # Errors
    /// When the machine has too little memory.
    pub fn copy(&self) -> Result<Array, ArrayError> {
        let mut copy = Array::zeros(self.element(), &self.shape)?;
        copy.bytes_mut().copy_from_slice(self.bytes());
        Ok(copy)
    }

    /// The first cell that is a NaN or an infinity.
    pub fn first_not_finite(&self) -> Option<usize> {
        match self.data() {
            DataRef::F16(cells) => cells.iter().position(|cell| !cell.is_finite()),
            DataRef::F32(cells) => cells.iter().position(|cell| !cell.is_finite()),
            DataRef::F64(cells) => cells.iter().position(|cell| !cell.is_finite()),
            _ => None,
        }
    }

    /// Cells per dimension, slowest first.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Type of a cell.
    pub fn element(&self) -> Element {
        fn of<T: Cell>(_: &[T]) -> Element {
            T::ELEMENT
        }
        each!(self.data(), v => of(v))
    }

    /// Number of cells.
    pub fn len(&self) -> usize {
        each!(self.data(), v => v.len())
    }

    /// Whether there are no cells.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers.
    pub fn data(&self) -> DataRef<'_> {
        match &self.store {
            Store::Memory(data) => data.view(),
            Store::File(element, bytes) => {
                with_cell!(*element, T => T::view(bytemuck::cast_slice(bytes.bytes())))
            }
        }
    }

    /// The numbers, to be changed in place.
    pub fn data_mut(&mut self) -> DataMut<'_> {
        match &mut self.store {
            Store::Memory(data) => data.view_mut(),
            Store::File(element, bytes) => with_cell!(*element, T => {
                T::view_mut(bytemuck::cast_slice_mut(bytes.bytes_mut()))
            }),
        }
    }

    /// The memory of the numbers, in this machine's byte order.
    pub fn bytes(&self) -> &[u8] {
        each!(self.data(), v => bytemuck::cast_slice(v))
    }

    /// The memory of the numbers, to be overwritten.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        each_cell!(DataMut, self.data_mut(), _wrap(v) => bytemuck::cast_slice_mut(v))
    }

    /// A cell; `None` outside the array.
    pub fn number(&self, index: usize) -> Option<Number> {
        each!(self.data(), v => v.get(index).map(|x| x.number()))
    }

    /// A cell as f64 (integers beyond 2^53 are rounded); `None` outside the array.
    pub fn get(&self, index: usize) -> Option<f64> {
        self.number(index).map(Number::as_f64)
    }

    /// Type and shape for messages: `f32 344x403`.
    pub fn kind(&self) -> String {
        format!("{} {}", self.element(), shape_text(&self.shape))
    }
}

/// A shape for messages: `344x403`; `scalar` for none.
pub fn shape_text(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "scalar".to_string();
    }
    shape.iter().map(usize::to_string).collect::<Vec<_>>().join("x")
}

/// The number of cells of a shape; no more than the machine can address in bytes.
fn cells(shape: &[usize], element: Element) -> Result<usize, ArrayError> {
    let too_large = || ArrayError::TooLarge { shape: shape.to_vec(), element };
    // An extent of 0 counts as 1 here, so that no product of some extents overflows anywhere.
    let most = shape
        .iter()
        .try_fold(1usize, |n, &extent| n.checked_mul(extent.max(1)))
        .ok_or_else(too_large)?;
    match most.checked_mul(element.size()) {
        Some(bytes) if isize::try_from(bytes).is_ok() => {
            Ok(if shape.contains(&0) { 0 } else { most })
        }
        _ => Err(too_large()),
    }
}

fn out_of_memory(shape: &[usize], element: Element) -> ArrayError {
    let bytes = shape.iter().fold(element.size(), |all, cells| all.saturating_mul(*cells));
    ArrayError::OutOfMemory { shape: shape.to_vec(), element, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_that_overflow_are_refused() {
        let error = Array::zeros(Element::F64, &[1 << 40, 1 << 40]).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("size overflow: an array of 1099511627776x1099511627776 f64"),
            "{error}"
        );
        assert_eq!(Array::zeros(Element::F32, &[0, 1 << 40]).unwrap().len(), 0);
        assert!(Array::zeros(Element::F32, &[0, usize::MAX, usize::MAX]).is_err());
        let error = Array::new(vec![2, 2], Data::I32(vec![1, 2, 3])).unwrap_err();
        assert_eq!(error.to_string(), "3 cells of data do not fill a shape of 2x2 (4 cells)");
    }

    #[test]
    fn bytes_are_the_memory() {
        let mut a = Array::zeros(Element::I32, &[2]).unwrap();
        a.bytes_mut().copy_from_slice(bytemuck::cast_slice(&[7i32, -1]));
        assert_eq!(a.data(), DataRef::I32(&[7, -1]));
        assert_eq!(a.bytes().len(), 8);
    }
}
