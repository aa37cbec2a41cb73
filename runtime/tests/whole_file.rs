//! Files written whole: links, permissions, full disks, signals, several together.

#![cfg(all(unix, feature = "signals"))]

use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use stencil_runtime::whole_file::{
    Body, check_distinct, check_place, write_all_whole, write_whole,
};
use tempfile::TempDir;

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

/// A folder with a file `a` of the text "old".
fn with_file() -> (TempDir, PathBuf) {
    let folder = folder();
    let path = folder.path().join("a");
    std::fs::write(&path, "old").unwrap();
    (folder, path)
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

fn text(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    write_whole(path, |file| file.write_all(text.as_bytes()))
}

/// The names in a folder, in order.
fn names(folder: &TempDir) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn body<'b>(text: &'b str) -> Body<'b> {
    Box::new(move |file| file.write_all(text.as_bytes()))
}

#[test]
fn a_file_is_replaced_and_nothing_else_is_left() {
    let (folder, path) = with_file();
    write(&path, "new").unwrap();
    write(&folder.path().join("b"), "other").unwrap();
    assert_eq!((text(&path), names(&folder)), ("new".to_owned(), vec!["a".into(), "b".into()]));
}

#[test]
fn a_failed_write_leaves_the_old_file() {
    let (folder, path) = with_file();
    let failure = write_whole(&path, |file| {
        file.write_all(b"half")?;
        Err(io::Error::other("no more"))
    });
    assert_eq!(failure.unwrap_err().to_string(), "no more");
    assert_eq!((text(&path), names(&folder)), ("old".to_owned(), vec!["a".into()]));
}

#[test]
fn permissions_stay_and_new_files_get_the_usual_ones() {
    let (folder, path) = with_file();
    for wanted in [0o600, 0o640, 0o755] {
        set_mode(&path, wanted);
        write(&path, "new").unwrap();
        assert_eq!(mode(&path), wanted);
    }
    let (ours, usual) = (folder.path().join("ours"), folder.path().join("usual"));
    write(&ours, "new").unwrap();
    std::fs::write(&usual, "new").unwrap();
    assert_eq!(mode(&ours), mode(&usual));
}

#[test]
fn a_file_of_a_private_kind_is_private_while_it_is_written() {
    let (folder, path) = with_file();
    set_mode(&path, 0o600);
    write_whole(&path, |_| {
        let temporary = names(&folder).into_iter().find(|name| name.starts_with(".stencil-"));
        assert_eq!(mode(&folder.path().join(temporary.unwrap())), 0o600);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_link_leads_to_the_file_that_is_written() {
    let (folder, path) = with_file();
    let link = folder.path().join("link");
    symlink("a", &link).unwrap();
    write(&link, "new").unwrap();
    assert!(link.is_symlink());
    assert_eq!((text(&path), names(&folder)), ("new".to_owned(), vec!["a".into(), "link".into()]));
    let nowhere = folder.path().join("nowhere");
    symlink("missing", &nowhere).unwrap();
    let error = write(&nowhere, "new").unwrap_err();
    assert_eq!(error.to_string(), "it is a symbolic link to nothing; remove the link");
}

#[test]
fn files_that_a_write_would_change_otherwise_are_refused() {
    let (folder, path) = with_file();
    set_mode(&path, 0o444);
    let wanted = "the file is read-only; allow writing or choose another name";
    assert_eq!(write(&path, "new").unwrap_err().to_string(), wanted);
    assert_eq!(check_place(&path).unwrap_err().to_string(), wanted);
    set_mode(&path, 0o644);
    check_place(&path).unwrap();
    std::fs::hard_link(&path, folder.path().join("b")).unwrap();
    let error = write(&path, "new").unwrap_err();
    assert!(error.to_string().starts_with("the file has several names (hard links)"), "{error}");
    assert_eq!((text(&path), names(&folder)), ("old".to_owned(), vec!["a".into(), "b".into()]));
    let error = check_place(folder.path()).unwrap_err();
    assert_eq!(error.to_string(), "a folder of that name is there; choose another name");
    let error = check_place(&folder.path().join("no/a")).unwrap_err();
    assert!(error.to_string().starts_with("there is no folder "), "{error}");
}

#[test]
fn a_device_is_written_and_stays_one() {
    write(Path::new("/dev/null"), "new").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
    let error = write(Path::new("/dev/full"), "new").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::StorageFull);
    let words = "No space left on device (os error 28); make room or write elsewhere";
    assert_eq!(error.to_string(), words);
}

#[test]
fn several_files_are_written_or_none() {
    let (folder, a) = with_file();
    let b = folder.path().join("b");
    write_all_whole(vec![(&a, body("new a")), (&b, body("new b"))]).unwrap();
    assert_eq!((text(&a), text(&b)), ("new a".to_owned(), "new b".to_owned()));

    let missing = folder.path().join("no/c");
    let fails: Body = Box::new(|_| Err(io::Error::other("no more")));
    let attempts = [
        vec![(&*a, body("newer")), (&*b, fails)],
        vec![(&*a, body("newer")), (&*missing, body("newer"))],
    ];
    for outputs in attempts {
        let error = write_all_whole(outputs).unwrap_err().to_string();
        assert!(error.starts_with(&format!("can't write {}", folder.path().display())), "{error}");
        assert_eq!((text(&a), text(&b)), ("new a".to_owned(), "new b".to_owned()));
        assert_eq!(names(&folder), ["a", "b"]);
    }
}

#[test]
fn what_was_renamed_is_put_back_when_a_later_rename_fails() {
    let (folder, a) = with_file();
    let (b, c) = (folder.path().join("b"), folder.path().join("c"));
    // The place of the last file becomes a folder while it is written.
    let late: Body = Box::new(|_| std::fs::create_dir_all(c.join("inside")));
    let error = write_all_whole(vec![(&a, body("new")), (&b, body("new")), (&c, late)]);
    let error = error.unwrap_err().to_string();
    assert!(error.starts_with(&format!("can't write {}: ", c.display())), "{error}");
    assert_eq!((text(&a), names(&folder)), ("old".to_owned(), vec!["a".into(), "c".into()]));
}

#[test]
fn one_file_under_two_names_is_seen() {
    let (folder, a) = with_file();
    let at = |name: &str| folder.path().join(name);
    symlink("a", at("link")).unwrap();
    std::fs::hard_link(&a, at("hard")).unwrap();
    std::fs::create_dir(at("sub")).unwrap();
    for other in ["a", "./a", "sub/../a", "link", "hard"] {
        let other = at(other);
        let error = check_distinct(&[&other], &[&a]).unwrap_err();
        assert!(error.is_input);
        let words = format!("writing {} would replace the input {}", other.display(), a.display());
        assert!(error.to_string().starts_with(&words), "{error}");
        assert!(!check_distinct(&[&a, &other], &[]).unwrap_err().is_input);
    }
    // Neither is there yet.
    let (new, same) = (at("new"), at("sub/.././new"));
    assert!(check_distinct(&[&new, &same], &[]).is_err());
    let outputs = vec![(&*new, body("one")), (&*same, body("two"))];
    assert!(write_all_whole(outputs).is_err() && !new.exists());
    let null = Path::new("/dev/null");
    assert_eq!(check_distinct(&[&a, &new, &at("sub/new"), null, null], &[null, &at("b")]), Ok(()));
}

/// The process that `signalled` and `a_full_disk_leaves_the_old_file` start: it writes more than
/// fits, or waits in the middle of a write.
#[test]
fn in_another_process() {
    let Some(path) = std::env::var_os("WHOLE_FILE_PATH") else { return };
    stencil_runtime::signals::end_in_order(|| false).unwrap();
    let result = write_whole(path.as_ref(), |file| {
        file.write_all(&[b'x'; 1 << 20])?;
        println!("begun");
        io::stdin().read_to_end(&mut Vec::new()).map(drop)
    });
    eprintln!("{}", result.unwrap_err());
}

fn another_process(path: &Path, shell: &str) -> Command {
    // Signals are as usual, however the tests were started.
    let mut command = Command::new("env");
    command
        .args([
            "--default-signal",
            "sh",
            "-c",
            &format!("{shell} exec \"$0\" in_another_process --exact --nocapture"),
        ])
        .arg(std::env::current_exe().unwrap())
        .env("WHOLE_FILE_PATH", path);
    command
}

#[test]
fn a_signal_leaves_the_old_file_and_nothing_else() {
    for (name, number) in [
        ("HUP", 1),
        ("INT", 2),
        ("QUIT", 3),
        ("ABRT", 6),
        ("USR1", 10),
        ("USR2", 12),
        ("ALRM", 14),
        ("TERM", 15),
        ("XCPU", 24),
        ("VTALRM", 26),
        ("PROF", 27),
    ] {
        let (folder, path) = with_file();
        let mut child = another_process(&path, "ulimit -c 0;")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut seen = String::new();
        let out = child.stdout.as_mut().unwrap();
        while !seen.contains("begun") {
            let mut byte = [0];
            out.read_exact(&mut byte).unwrap();
            seen.push(char::from(byte[0]));
        }
        assert_eq!(names(&folder).len(), 2, "the temporary file is there");
        // `wait` would close it, and the write would end.
        let input = child.stdin.take();
        let kill = format!("kill -{name} {}", child.id());
        assert!(Command::new("sh").args(["-c", &kill]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().signal(), Some(number));
        drop(input);
        assert_eq!((text(&path), names(&folder)), ("old".to_owned(), vec!["a".into()]));
    }
}

#[test]
fn a_full_disk_leaves_the_old_file() {
    let (folder, path) = with_file();
    let output = another_process(&path, "ulimit -f 8; trap '' XFSZ;").output().unwrap();
    let words = String::from_utf8_lossy(&output.stderr);
    assert!(words.contains("File too large"), "{words}");
    assert!(words.contains("make room or write elsewhere"), "{words}");
    assert_eq!((text(&path), names(&folder)), ("old".to_owned(), vec!["a".into()]));
}
