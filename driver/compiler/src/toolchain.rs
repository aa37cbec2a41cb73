//! NVIDIA's parts that a compile may use when they are there: libdevice, and ptxas.

use crate::failure::Failure;
use std::path::{Path, PathBuf};
use std::process::Command;

/// `libdevice.10.bc`: of `STENCILC_LIBDEVICE`, the project's own tool folder, or a CUDA
/// installation.
pub fn libdevice() -> Option<PathBuf> {
    find("STENCILC_LIBDEVICE", "nvvm/libdevice/libdevice.10.bc")
}

/// `ptxas`: of `STENCILC_PTXAS`, the project's own tool folder, or a CUDA installation.
pub fn ptxas() -> Option<PathBuf> {
    find("STENCILC_PTXAS", "bin/ptxas")
}

fn find(variable: &str, inside: &str) -> Option<PathBuf> {
    if let Some(named) = std::env::var_os(variable) {
        return Some(PathBuf::from(named));
    }
    roots().into_iter().map(|root| root.join(inside)).find(|path| path.exists())
}

/// Folders laid out like a CUDA installation.
fn roots() -> Vec<PathBuf> {
    let mut roots = Vec::new();
    let executable = std::env::current_exe().ok();
    for folder in executable.iter().flat_map(|path| path.ancestors()) {
        roots.push(folder.join(".toolchain/cuda/nvidia/cu13"));
    }
    roots.extend(
        ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(std::env::var_os).map(PathBuf::from),
    );
    roots.push(PathBuf::from("/usr/local/cuda"));
    roots
}

/// What ptxas says of one kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelResources {
    /// The kernel's name.
    pub name: String,
    /// Registers a thread.
    pub registers: u32,
    /// Bytes of registers spilled to memory, stores and loads together.
    pub spills: u32,
    /// Bytes of static shared memory.
    pub shared: u32,
}

/// Assembles PTX and returns what ptxas says of each kernel.
///
/// # Errors
/// A fault of the compiler where ptxas names a line of the PTX as wrong; of the user where the tool
/// can't be run, fails otherwise, or is too old for the PTX.
pub fn assemble(ptxas: &Path, ptx: &str, arch: &str) -> Result<Vec<KernelResources>, Failure> {
    let run = || -> std::io::Result<std::process::Output> {
        let folder = tempfile::tempdir()?;
        let input = folder.path().join(INPUT);
        std::fs::write(&input, ptx)?;
        Command::new(ptxas)
            .arg(format!("-arch={arch}"))
            .args(["-v", "-o"])
            .arg(folder.path().join("kernels.cubin"))
            .arg(&input)
            .output()
    };
    let output = run().map_err(|error| {
        Failure::user(format!(
            "{}: ptxas can't be run: {error}; name another by STENCILC_PTXAS",
            ptxas.display()
        ))
    })?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    let (tool, status, said) = (ptxas.display(), output.status, text.trim_end());
    let kernels = parse(&text);
    if status.success() && !kernels.is_empty() {
        return Ok(kernels);
    }
    let message = match (status.success(), said.is_empty()) {
        (true, _) => format!("{tool} reported no kernel, as ptxas does"),
        (false, true) => format!("{tool} failed ({status}) and printed no error"),
        (false, false) => format!("{tool} failed ({status}):\n{said}"),
    };
    if refuses(&text) {
        return Err(Failure::internal(message));
    }
    Err(Failure::user(message).note(format!(
        "help: set STENCILC_PTXAS to a ptxas that knows {arch}, or leave the report out"
    )))
}

/// The name of the file that ptxas reads, which is in its complaints about a line.
const INPUT: &str = "kernels.ptx";

/// Whether the words of ptxas are about a line of the PTX, and not about its version.
fn refuses(text: &str) -> bool {
    text.lines().any(|line| {
        line.contains(INPUT) && line.contains(", line ") && !line.contains("Unsupported .")
    })
}

fn parse(text: &str) -> Vec<KernelResources> {
    let mut kernels: Vec<KernelResources> = Vec::new();
    for line in text.lines() {
        if let Some(rest) = line.split("Compiling entry function '").nth(1) {
            kernels.push(KernelResources {
                name: rest.split('\'').next().unwrap_or_default().to_owned(),
                ..KernelResources::default()
            });
        }
        let Some(kernel) = kernels.last_mut() else { continue };
        for part in line.split(',') {
            let number = part.split_whitespace().find_map(|word| word.parse::<u32>().ok());
            let Some(number) = number else { continue };
            if part.contains("registers") {
                kernel.registers = number;
            } else if part.contains("bytes spill") {
                kernel.spills += number;
            } else if part.contains("bytes smem") {
                kernel.shared = number;
            }
        }
    }
    kernels
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Class;

    #[test]
    fn the_words_of_ptxas_are_understood() {
        let text = "ptxas info    : Compiling entry function 'heat_4' for 'sm_90'\n\
                    ptxas info    : Function properties for heat_4\n    8 bytes stack frame, 4 \
                    bytes spill stores, 12 bytes spill loads\n\
                    ptxas info    : Used 38 registers, used 1 barriers, 20992 bytes smem, 400 \
                    bytes cmem[0]\n";
        let kernel =
            KernelResources { name: "heat_4".to_owned(), registers: 38, spills: 16, shared: 20992 };
        assert_eq!(parse(text), [kernel]);
        let wrong = |words: &str| refuses(&format!("ptxas {words}"));
        assert!(wrong("/tmp/a/kernels.ptx, line 12; error   : Unknown symbol 'r1'"));
        assert!(!wrong("/tmp/a/kernels.ptx, line 9; fatal   : Unsupported .version 9.0"));
        assert!(!wrong("fatal   : Value 'sm_130' is not defined for option 'gpu-name'"));
    }

    #[test]
    fn a_tool_that_fails_is_not_the_compiler_failing() {
        let failure = assemble(Path::new("/bin/false"), ".version 8.0", "sm_90").unwrap_err();
        assert_eq!(failure.class, Class::Input);
        let text = failure.to_string();
        assert!(text.contains("/bin/false failed (exit status: 1)"), "{text}");
        assert!(text.contains("set STENCILC_PTXAS"), "{text}");
        let failure = assemble(Path::new("/bin/true"), ".version 8.0", "sm_90").unwrap_err();
        assert!(failure.to_string().contains("/bin/true reported no kernel"), "{failure}");
    }
}
