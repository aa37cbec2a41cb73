//! Builds the driver, and runs a test on it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

pub fn here(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// The folder of the driver.
fn driver() -> &'static Path {
    static FOLDER: OnceLock<PathBuf> = OnceLock::new();
    FOLDER.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("fake-cuda");
        std::fs::create_dir_all(&folder).unwrap();
        // Tests of other processes may be about to load it.
        let new = tempfile::NamedTempFile::new_in(&folder).unwrap().into_temp_path();
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O1", "-ffp-contract=off", "-Wall", "-Werror", "-pthread"])
            .arg("-o")
            .args([&*new, &here("cuda/driver.c")])
            .status()
            .unwrap();
        assert!(status.success());
        new.persist(folder.join("libcuda.so")).unwrap();
        folder
    })
}

/// Runs `body` in a process of its own that finds the driver with these settings, and returns the
/// log of its calls; nothing in that process. The driver must find no fault.
pub fn on_driver(
    test: &str,
    settings: &[(&str, &str)],
    body: impl FnOnce(),
) -> Option<Vec<String>> {
    if std::env::var_os("FAKE_CUDA_LOG").is_some() {
        body();
        return None;
    }
    let log = tempfile::NamedTempFile::new().unwrap();
    let output = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--nocapture"])
        .env("LD_LIBRARY_PATH", driver())
        .env("FAKE_CUDA_LOG", log.path())
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    let text = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
    let log = std::fs::read_to_string(log.path()).unwrap();
    assert!(!log.contains("FAULT"), "{log}");
    Some(log.lines().map(str::to_owned).collect())
}

pub fn count(log: &[String], line: &str) -> usize {
    log.iter().filter(|found| *found == line).count()
}
