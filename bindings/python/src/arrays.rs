//! Arrays of Python as memory: NumPy, PyTorch and CuPy by their own attributes, others by DLPack,
//! `__cuda_array_interface__` or `__array_interface__`. No cell is copied here.

use crate::errors::argument;
use crate::kinds::Kind;
use crate::memory;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyCapsule, PyDict, PyType};
use std::sync::{Mutex, PoisonError};

/// Where the cells of an array lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    Host,
    Cuda(i32),
}

/// The library that an array comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    Numpy,
    Torch,
    Cupy,
    Other,
}

/// An array as memory.
#[derive(Clone)]
pub struct Cells {
    pub library: Library,
    pub kind: Kind,
    pub address: u64,
    pub shape: Vec<usize>,
    /// Bytes from a cell to the next one of each dimension.
    pub strides: Vec<i64>,
    pub place: Place,
    pub writable: bool,
    /// The stream of the producer, where the protocol tells it.
    pub stream: Option<usize>,
}

impl Cells {
    /// Bytes of all cells.
    pub fn bytes(&self) -> usize {
        self.shape.iter().product::<usize>() * self.kind.size()
    }

    /// Whether the cells lie row-major without padding.
    pub fn is_dense(&self) -> bool {
        let mut wanted = self.kind.size() as i64;
        self.shape.iter().zip(&self.strides).rev().all(|(extent, stride)| {
            let fits = *extent <= 1 || *stride == wanted;
            wanted = wanted.saturating_mul(*extent as i64);
            fits
        }) || self.shape.contains(&0)
    }

    /// The cells at a place of a dimension, which they lose.
    pub fn at(mut self, dimension: usize, place: usize) -> Self {
        self.shape.remove(dimension);
        let offset = self.strides.remove(dimension).wrapping_mul(place as i64);
        self.address = self.address.wrapping_add(offset.cast_unsigned());
        self
    }

    /// The first address, and the one behind the last byte.
    pub fn span(&self) -> (u64, u64) {
        let (mut first, mut last) = (self.address, self.address);
        if self.bytes() == 0 {
            return (first, last);
        }
        for (extent, stride) in self.shape.iter().zip(&self.strides) {
            let reach = stride.wrapping_mul(*extent as i64 - 1);
            if reach < 0 {
                first = first.wrapping_add_signed(reach);
            } else {
                last = last.wrapping_add_signed(reach);
            }
        }
        (first, last.wrapping_add(self.kind.size() as u64))
    }
}

/// An argument with what keeps its memory.
pub struct Held<'py> {
    pub cells: Cells,
    /// A capsule of DLPack.
    pub _capsule: Option<Bound<'py, PyAny>>,
}

/// Types of objects that were seen, with their library.
static LIBRARIES: Mutex<Vec<(Py<PyType>, Library)>> = Mutex::new(Vec::new());

/// The library of an object; a subclass counts as its base.
pub fn library(object: &Bound<'_, PyAny>) -> PyResult<Library> {
    let kind = object.get_type();
    let mut known = LIBRARIES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, library)) = known.iter().find(|(one, _)| one.is(&kind)) {
        return Ok(*library);
    }
    let mut library = Library::Other;
    for base in kind.mro() {
        let base = base.cast_into::<PyType>()?;
        let name = (base.module()?.to_string(), base.name()?.to_string());
        library = match (name.0.as_str(), name.1.as_str()) {
            ("numpy", "ndarray") => Library::Numpy,
            ("torch", "Tensor") => Library::Torch,
            ("cupy" | "cupy._core.core", "ndarray") => Library::Cupy,
            _ => continue,
        };
        break;
    }
    known.push((kind.unbind(), library));
    Ok(library)
}

/// The memory of an array.
///
/// # Errors
/// When the object is no array, or one whose memory can't be used.
pub fn view<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Held<'py>> {
    let cells = match library(object)? {
        Library::Numpy => numpy(object)?,
        Library::Torch => torch(object, name)?,
        Library::Cupy => cupy(object)?,
        Library::Other => return other(object, name),
    };
    Ok(Held { cells, _capsule: None })
}

fn numpy(array: &Bound<'_, PyAny>) -> PyResult<Cells> {
    let py = array.py();
    let interface = array.getattr(intern!(py, "__array_interface__"))?.cast_into::<PyDict>()?;
    let data = interface.get_item(intern!(py, "data"))?;
    let data = data.ok_or_else(|| argument(py, "an array interface without data"))?;
    let (address, read_only): (u64, bool) = data.extract()?;
    let dtype = array.getattr(intern!(py, "dtype"))?;
    Ok(Cells {
        library: Library::Numpy,
        kind: Kind::of_numpy(&dtype)?,
        address,
        shape: array.getattr(intern!(py, "shape"))?.extract()?,
        strides: array.getattr(intern!(py, "strides"))?.extract()?,
        place: Place::Host,
        writable: !read_only,
        stream: None,
    })
}

fn cupy(array: &Bound<'_, PyAny>) -> PyResult<Cells> {
    let py = array.py();
    let dtype = array.getattr(intern!(py, "dtype"))?;
    let device = array.getattr(intern!(py, "device"))?.getattr(intern!(py, "id"))?;
    let data = array.getattr(intern!(py, "data"))?;
    Ok(Cells {
        library: Library::Cupy,
        kind: Kind::of_numpy(&dtype)?,
        address: data.getattr(intern!(py, "ptr"))?.extract()?,
        shape: array.getattr(intern!(py, "shape"))?.extract()?,
        strides: array.getattr(intern!(py, "strides"))?.extract()?,
        place: Place::Cuda(device.extract()?),
        writable: true,
        stream: None,
    })
}

fn torch(tensor: &Bound<'_, PyAny>, name: &str) -> PyResult<Cells> {
    let py = tensor.py();
    if tensor.getattr(intern!(py, "requires_grad"))?.is_truthy()? {
        return Err(argument(
            py,
            format!("`{name}` requires a gradient, and a run has none; give {name}.detach()"),
        ));
    }
    let device: i32 = tensor.call_method0(intern!(py, "get_device"))?.extract()?;
    let place = match tensor.getattr(intern!(py, "is_cuda"))?.is_truthy()? {
        true => Place::Cuda(device),
        false if device < 0 => Place::Host,
        false => {
            let text = format!("`{name}` lies on a device that is neither the CPU nor CUDA");
            return Err(argument(py, text));
        }
    };
    let kind = Kind::of_torch(&tensor.getattr(intern!(py, "dtype"))?)?;
    let strides: Vec<i64> = tensor.call_method0(intern!(py, "stride"))?.extract()?;
    let size = kind.size() as i64;
    Ok(Cells {
        library: Library::Torch,
        kind,
        address: tensor.call_method0(intern!(py, "data_ptr"))?.extract()?,
        shape: tensor.getattr(intern!(py, "shape"))?.extract()?,
        strides: strides.into_iter().map(|stride| stride.saturating_mul(size)).collect(),
        place,
        writable: true,
        stream: None,
    })
}

fn other<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Held<'py>> {
    let py = object.py();
    for (attribute, cuda) in [("__cuda_array_interface__", true), ("__array_interface__", false)] {
        // JAX has the first one, and it waits for nothing; DLPack does.
        let dlpack = object.hasattr(intern!(py, "__dlpack__"))?;
        if let Some(interface) = object.getattr_opt(attribute)?.filter(|_| !dlpack) {
            let interface = interface.cast_into::<PyDict>()?;
            return Ok(Held { cells: interface_cells(&interface, cuda, name)?, _capsule: None });
        }
    }
    if object.hasattr(intern!(py, "__dlpack__"))? {
        return dlpack(object, name);
    }
    let kind = object.get_type().name()?.to_string();
    Err(argument(
        py,
        format!(
            "`{name}` is no array but {kind}; give a NumPy array, or one with __dlpack__ or \
             __cuda_array_interface__"
        ),
    ))
}

/// An array by one of the interfaces that are dictionaries.
fn interface_cells(interface: &Bound<'_, PyDict>, cuda: bool, name: &str) -> PyResult<Cells> {
    let py = interface.py();
    let item = |key: &str| {
        let found = interface.get_item(key)?;
        found.ok_or_else(|| argument(py, format!("`{name}`: its array interface has no {key}")))
    };
    let (address, read_only): (u64, bool) = item("data")?.extract()?;
    let shape: Vec<usize> = item("shape")?.extract()?;
    let dtype = py.import("numpy")?.call_method1("dtype", (item("typestr")?,))?;
    let kind = Kind::of_numpy(&dtype)?;
    let strides = interface.get_item("strides")?.filter(|strides| !strides.is_none());
    let strides = match strides {
        Some(strides) => strides.extract()?,
        None => row_major(&shape, kind.size()),
    };
    let stream = interface.get_item("stream")?.filter(|stream| !stream.is_none());
    // The interface tells no device; the first one is the usual one.
    let place = if cuda { Place::Cuda(0) } else { Place::Host };
    Ok(Cells {
        library: Library::Other,
        kind,
        address,
        shape,
        strides,
        place,
        writable: !read_only,
        stream: stream.map(|stream| stream.extract()).transpose()?,
    })
}

/// Strides of an array.
pub fn row_major(shape: &[usize], size: usize) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    let mut stride = size as i64;
    for (place, extent) in strides.iter_mut().zip(shape).rev() {
        *place = stride;
        stride = stride.saturating_mul((*extent).max(1) as i64);
    }
    strides
}

fn dlpack<'py>(object: &Bound<'py, PyAny>, name: &str) -> PyResult<Held<'py>> {
    const CPU: i32 = 1;
    const CUDA: i32 = 2;
    const CUDA_HOST: i32 = 3;
    /// The default stream of all threads, in the words of the protocol.
    const DEFAULT_STREAM: i32 = 1;
    let py = object.py();
    let device: (i32, i32) = object.call_method0(intern!(py, "__dlpack_device__"))?.extract()?;
    let capsule = match device.0 {
        CUDA => {
            // The producer makes this stream wait for its own work.
            let options = PyDict::new(py);
            options.set_item(intern!(py, "stream"), DEFAULT_STREAM)?;
            object.call_method(intern!(py, "__dlpack__"), (), Some(&options))?
        }
        _ => object.call_method0(intern!(py, "__dlpack__"))?,
    };
    let tensor = memory::dlpack(capsule.cast::<PyCapsule>()?)?;
    let place = match tensor.device_type {
        CPU | CUDA_HOST => Place::Host,
        CUDA => Place::Cuda(tensor.device),
        other => {
            let text = format!("`{name}` lies on a device of DLPack's kind {other}, not on CUDA");
            return Err(argument(py, text));
        }
    };
    let kind = Kind::of_dlpack(tensor.element);
    let extents: Result<Vec<usize>, _> = tensor.shape.iter().map(|n| usize::try_from(*n)).collect();
    let shape = extents.map_err(|_| argument(py, format!("`{name}` has a negative extent")))?;
    let size = kind.size() as i64;
    let strides = match tensor.strides {
        Some(strides) => strides.iter().map(|stride| stride.saturating_mul(size)).collect(),
        None => row_major(&shape, kind.size()),
    };
    let cells = Cells {
        library: Library::Other,
        kind,
        address: tensor.address,
        shape,
        strides,
        place,
        writable: true,
        stream: matches!(place, Place::Cuda(_)).then_some(DEFAULT_STREAM as usize),
    };
    Ok(Held { cells, _capsule: Some(capsule) })
}

/// The stream that a library works in now, by its handle.
pub fn current_stream(py: Python<'_>, library: Library, device: i32) -> PyResult<Option<usize>> {
    static TORCH: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    static CUPY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    match library {
        Library::Torch => {
            let of = TORCH.get_or_try_init(py, || {
                let quick = py.import("torch._C")?.getattr_opt("_cuda_getCurrentRawStream")?;
                match quick {
                    Some(of) => PyResult::Ok(of.unbind()),
                    None => Ok(py.import("torch.cuda")?.getattr("current_stream")?.unbind()),
                }
            })?;
            handle(&of.bind(py).call1((device,))?).map(Some)
        }
        Library::Cupy => {
            let of = CUPY.get_or_try_init(py, || {
                let of = py.import("cupy.cuda")?.getattr("get_current_stream")?;
                PyResult::Ok(of.unbind())
            })?;
            handle(&of.bind(py).call0()?).map(Some)
        }
        Library::Numpy | Library::Other => Ok(None),
    }
}

/// The handle of a stream: a number, or an object of PyTorch, CuPy or CUDA's own package.
pub fn handle(stream: &Bound<'_, PyAny>) -> PyResult<usize> {
    let py = stream.py();
    if let Ok(number) = stream.extract::<usize>() {
        return Ok(number);
    }
    for name in ["cuda_stream", "ptr", "handle"] {
        if let Some(found) = stream.getattr_opt(name)? {
            return found.extract();
        }
    }
    if stream.hasattr("__cuda_stream__")? {
        let (_version, found): (i32, usize) = stream.call_method0("__cuda_stream__")?.extract()?;
        return Ok(found);
    }
    Err(argument(py, "the stream is no number and no stream of PyTorch, CuPy or CUDA's package"))
}
