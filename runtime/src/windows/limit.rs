//! How much memory of the device a run may use.

use std::fmt;
use std::str::FromStr;

/// Bytes of device memory, such as `4GiB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceMemory(pub u64);

const UNITS: [(&str, u32); 4] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40)];

impl FromStr for DeviceMemory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = UNITS.iter().find_map(|(unit, bits)| Some((text.strip_suffix(unit)?, *bits)));
        let (number, bits) = found.unwrap_or((text, 0));
        let number = number.trim_end().parse::<u64>().ok().filter(|number| *number > 0);
        let bytes = number.and_then(|number| number.checked_mul(1 << bits));
        bytes.map(Self).ok_or_else(|| {
            "expected bytes, or a number with a unit of KiB, MiB, GiB or TiB: 4GiB".to_owned()
        })
    }
}

impl fmt::Display for DeviceMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let divides = |(_, bits): &&(&str, u32)| self.0.is_multiple_of(1 << bits);
        match UNITS.iter().rev().find(divides) {
            Some((unit, bits)) => write!(f, "{}{unit}", self.0 >> bits),
            None => write!(f, "{} bytes", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_read_and_written() {
        for text in ["4GiB", "3MiB", "1KiB", "5TiB"] {
            assert_eq!(text.parse::<DeviceMemory>().unwrap().to_string(), text);
        }
        assert_eq!("4096".parse(), Ok(DeviceMemory(4096)));
        assert_eq!(DeviceMemory(1000).to_string(), "1000 bytes");
        for text in ["", "0", "GiB", "-1GiB", "4GB", "1.5GiB", "99999999999TiB", "4 giB"] {
            assert!(text.parse::<DeviceMemory>().is_err(), "{text}");
        }
    }
}
