//! The type of an array's cells, as NumPy, PyTorch and DLPack name it.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::sync::{Mutex, PoisonError};
use stencil_runtime::array::Element;
use stencil_runtime::cell::Layout;

/// The type of a cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Kind {
    Number(Element),
    Bool,
    /// A complex number of two floats.
    Complex(Element),
    /// A structured type: its bytes, and its members with their places.
    Struct(usize, Vec<(String, usize, Kind)>),
    /// A fixed number of cells of a type.
    Lanes(Vec<usize>, Box<Kind>),
    /// A type that no field has: its name and its bytes.
    Other(String, usize),
}

/// Types that were seen.
static KNOWN: Mutex<Vec<(Py<PyAny>, Kind)>> = Mutex::new(Vec::new());

/// The kind of a type's object, found once.
fn known(dtype: &Bound<'_, PyAny>, find: impl FnOnce() -> PyResult<Kind>) -> PyResult<Kind> {
    let seen = |known: &[(Py<PyAny>, Kind)]| {
        known.iter().find(|(one, _)| one.is(dtype)).map(|(_, kind)| kind.clone())
    };
    if let Some(kind) = seen(&KNOWN.lock().unwrap_or_else(PoisonError::into_inner)) {
        return Ok(kind);
    }
    let kind = find()?;
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    // Structured types are made anew by each expression; only the others are few.
    if !matches!(kind, Kind::Struct(..) | Kind::Lanes(..)) && known.len() < 64 {
        known.push((dtype.clone().unbind(), kind.clone()));
    }
    Ok(kind)
}

impl Kind {
    /// A type of NumPy.
    pub fn of_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        known(dtype, || Self::find_numpy(dtype))
    }

    fn find_numpy(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        let size: usize = dtype.getattr("itemsize")?.extract()?;
        let name: String = dtype.getattr("name")?.extract()?;
        if let Some((base, shape)) =
            dtype.getattr("subdtype")?.extract::<Option<(Bound<'_, PyAny>, Vec<usize>)>>()?
        {
            return Ok(Self::Lanes(shape, Box::new(Self::find_numpy(&base)?)));
        }
        if let Some(names) = dtype.getattr("names")?.extract::<Option<Vec<String>>>()? {
            let fields = dtype.getattr("fields")?;
            let members = names.into_iter().map(|name| {
                let field = fields.get_item(&name)?.cast_into::<PyTuple>()?;
                let offset: usize = field.get_item(1)?.extract()?;
                Ok((name, offset, Self::find_numpy(&field.get_item(0)?)?))
            });
            return Ok(Self::Struct(size, members.collect::<PyResult<_>>()?));
        }
        // `=` and `|` are the machine's order; the other one is none that a field has.
        let order: String = dtype.getattr("byteorder")?.extract()?;
        let native = order != if cfg!(target_endian = "little") { ">" } else { "<" };
        Ok(match Self::named(&name) {
            Some(kind) if native => kind,
            _ => Self::Other(format!("{name} (byte order {order})"), size),
        })
    }

    /// A type of PyTorch.
    pub fn of_torch(dtype: &Bound<'_, PyAny>) -> PyResult<Self> {
        known(dtype, || {
            let text = dtype.str()?.to_string();
            let name = text.strip_prefix("torch.").unwrap_or(&text);
            let size = dtype.getattr("itemsize")?.extract()?;
            Ok(Self::named(name).unwrap_or_else(|| Self::Other(name.to_owned(), size)))
        })
    }

    /// A type of DLPack: a code, bits and lanes.
    pub fn of_dlpack(element: (u8, u8, u16)) -> Self {
        const NAMES: [&str; 7] = ["int", "uint", "float", "", "bfloat", "complex", "bool"];
        let (code, bits, lanes) = element;
        let name = NAMES.get(usize::from(code)).copied().unwrap_or_default();
        let full = if name == "bool" { name.to_owned() } else { format!("{name}{bits}") };
        let known = Self::named(&full).filter(|_| lanes == 1);
        known.unwrap_or_else(|| Self::Other(full, usize::from(bits / 8) * usize::from(lanes)))
    }

    fn named(name: &str) -> Option<Self> {
        let element = match name {
            "bool" => return Some(Self::Bool),
            "complex64" => return Some(Self::Complex(Element::F32)),
            "complex128" => return Some(Self::Complex(Element::F64)),
            "float16" => Element::F16,
            "bfloat16" | "bfloat" => Element::Bf16,
            "float32" => Element::F32,
            "float64" => Element::F64,
            "int8" => Element::I8,
            "int16" => Element::I16,
            "int32" => Element::I32,
            "int64" => Element::I64,
            "uint8" => Element::U8,
            "uint16" => Element::U16,
            "uint32" => Element::U32,
            "uint64" => Element::U64,
            _ => return None,
        };
        Some(Self::Number(element))
    }

    /// Bytes of a cell.
    pub fn size(&self) -> usize {
        match self {
            Self::Number(element) => element.size(),
            Self::Bool => 1,
            Self::Complex(element) => 2 * element.size(),
            Self::Struct(size, _) | Self::Other(_, size) => *size,
            Self::Lanes(shape, kind) => shape.iter().product::<usize>() * kind.size(),
        }
    }

    /// NumPy's name of the type.
    pub fn text(&self) -> String {
        match self {
            Self::Number(element) => numpy_name(*element).to_owned(),
            Self::Bool => "bool".to_owned(),
            Self::Complex(element) => format!("complex{}", 16 * element.size()),
            Self::Struct(_, members) => {
                let each = members.iter().map(|(name, _, kind)| format!("{name}: {}", kind.text()));
                format!("a struct of {}", each.collect::<Vec<_>>().join(", "))
            }
            Self::Lanes(shape, kind) => format!("{shape:?} of {}", kind.text()),
            Self::Other(name, _) => name.clone(),
        }
    }
}

/// NumPy's name of a number's type.
pub fn numpy_name(element: Element) -> &'static str {
    match element {
        Element::F16 => "float16",
        Element::Bf16 => "bfloat16",
        Element::F32 => "float32",
        Element::F64 => "float64",
        Element::I8 => "int8",
        Element::I16 => "int16",
        Element::I32 => "int32",
        Element::I64 => "int64",
        Element::U8 => "uint8",
        Element::U16 => "uint16",
        Element::U32 => "uint32",
        Element::U64 => "uint64",
    }
}

/// The name of a declared type, for messages: that of the array that fits it.
pub fn layout_text(layout: &Layout) -> String {
    if let Some(element) = layout.complex() {
        return Kind::Complex(element).text();
    }
    match layout {
        Layout::Number(element) => numpy_name(*element).to_owned(),
        Layout::Bool => "bool".to_owned(),
        Layout::Vec(length, of) => {
            format!("{} with one more dimension of {length}", layout_text(of))
        }
        Layout::Struct(members) => {
            let each = members.iter().map(|(name, of)| format!("{name}: {}", layout_text(of)));
            format!("a struct of {}", each.collect::<Vec<_>>().join(", "))
        }
    }
}

/// What `numpy.dtype` makes the type of: a name, or a list of members.
pub fn numpy_type<'py>(py: Python<'py>, layout: &Layout) -> PyResult<Bound<'py, PyAny>> {
    if let Some(element) = layout.complex() {
        return Kind::Complex(element)
            .text()
            .into_pyobject(py)
            .map(Bound::into_any)
            .map_err(Into::into);
    }
    Ok(match layout {
        Layout::Number(element) => numpy_name(*element).into_pyobject(py)?.into_any(),
        Layout::Bool => "bool".into_pyobject(py)?.into_any(),
        Layout::Vec(length, of) => (numpy_type(py, of)?, (*length,)).into_pyobject(py)?.into_any(),
        Layout::Struct(members) => {
            let (names, formats): (Vec<_>, Vec<_>) =
                members.iter().map(|(name, of)| (name.clone(), numpy_type(py, of))).unzip();
            let formats = formats.into_iter().collect::<PyResult<Vec<_>>>()?;
            let fields = PyDict::new(py);
            fields.set_item("names", names)?;
            fields.set_item("formats", formats)?;
            fields.into_any()
        }
    })
}
