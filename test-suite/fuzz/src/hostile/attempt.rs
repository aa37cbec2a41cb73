//! One attempt: how it is run, and the conditions that must hold afterwards.

use super::folder::{self, Thing, Tree};
use crate::check::Fault;
use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use stencil_runtime::plan::Plan;
use stencil_runtime::{checkpoint, npy};

/// Time for a tool.
const LIMIT: Duration = Duration::from_secs(20);

/// Words that no tool may print.
const FORBIDDEN: [&str; 5] =
    ["panicked at", "internal fault", "LLVM ERROR", "stack overflow", "RUST_BACKTRACE"];

/// Kinds of attempts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Command lines.
    Options,
    /// Files in the way.
    Files,
    /// Signals at any moment.
    Signals,
    /// Damaged launch plans.
    Plans,
    /// Damaged headers of arrays.
    Headers,
}

/// A signal with its number.
pub type Signal = (&'static str, i32);

/// A command in a folder.
#[derive(Clone, Debug)]
pub struct Attempt {
    /// Its kind.
    pub class: Class,
    /// The content of the folder.
    pub things: Vec<(String, Thing)>,
    /// The tool's name.
    pub tool: &'static str,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Files that a success makes.
    pub outputs: Vec<OsString>,
    /// Files that a success may make.
    pub may_make: Vec<OsString>,
    /// Whether standard output and standard error are full.
    pub full: [bool; 2],
    /// Blocks that a file can have, of 512 bytes: a full disk. Standard output is none then.
    pub blocks: Option<u32>,
    /// Signals, each with how long after the start it comes, in order.
    pub signals: Vec<(Signal, Duration)>,
    /// A plan that the runtime reads by itself too.
    pub plan: Option<String>,
}

/// A failure, or how it went.
pub type Judged = Result<&'static str, (Fault, String)>;

impl Attempt {
    /// A command that names no outputs.
    pub fn new(class: Class, tool: &'static str, things: Vec<(String, Thing)>) -> Self {
        Self {
            class,
            things,
            tool,
            arguments: Vec::new(),
            outputs: Vec::new(),
            may_make: Vec::new(),
            full: [false; 2],
            blocks: None,
            signals: Vec::new(),
            plan: None,
        }
    }

    /// The same with more arguments.
    pub fn with<I: IntoIterator<Item: Into<OsString>>>(mut self, arguments: I) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// The attempt as a script of the shell, for an empty folder.
    pub fn script(&self) -> String {
        let mut text = format!("# {:?}\n{}", self.class, folder::script(&self.things));
        let words = self.arguments.iter().map(|word| folder::quoted(word));
        text += &self.blocks.map(|blocks| format!("ulimit -f {blocks}\n")).unwrap_or_default();
        text += self.tool;
        words.for_each(|word| text += &format!(" {word}"));
        for (full, redirection) in self.full.iter().zip([" >/dev/full", " 2>/dev/full"]) {
            text += if *full { redirection } else { "" };
        }
        let mut time = Duration::ZERO;
        for (place, ((name, _), after)) in self.signals.iter().enumerate() {
            text += if place == 0 { " &" } else { "" };
            text += &format!("\nsleep {}\nkill -{name} $!", (*after - time).as_secs_f64());
            time = *after;
        }
        text + if self.signals.is_empty() { "\n" } else { "\nwait $!\n" }
    }

    /// Runs the tool in `work`, which is laid out, with what it says in `words`.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn run(&self, tools: &Path, work: &Path, words: &Path) -> io::Result<Judged> {
        let work = &fs::canonicalize(work)?;
        let before = folder::tree(work)?;
        let outputs: Vec<_> =
            self.outputs.iter().map(|output| folder::target(work, output)).collect();
        let places = [words.join("out"), words.join("err")];
        let sink = |at: usize| match self.full[at] {
            true => File::options().write(true).open("/dev/full"),
            false if at == 0 && self.blocks.is_some() => File::create("/dev/null"),
            false => File::create(&places[at]),
        };
        let mut child = super::command(tools, self.tool, self.blocks)
            .args(&self.arguments)
            .current_dir(work)
            .stdin(Stdio::null())
            .stdout(sink(0)?)
            .stderr(sink(1)?)
            .spawn()?;
        let Some(status) = self.wait(&mut child)? else {
            child.kill()?;
            child.wait()?;
            return Ok(Err((Fault::Slow, format!("over {LIMIT:?}"))));
        };
        let read = |at: usize| match self.full[at] {
            true => Ok(None),
            false => {
                fs::read(&places[at]).map(|bytes| Some(String::from_utf8_lossy(&bytes).into()))
            }
        };
        let after = folder::tree(work)?;
        if let Some(output) = self.outputs.iter().find(|output| {
            status.success() && folder::target(work, output).is_none() && !takes_all(work, output)
        }) {
            let output = output.display();
            return Ok(Err((Fault::Lost, format!("exit code 0, and {output} can't be written"))));
        }
        Ok(self
            .ended(status, read(1)?)
            .and_then(|how| self.nothing_lost(status, &before, &after, &outputs).map(|()| how)))
    }

    /// Waits for the end, sends the signals on the way; none when it takes too long.
    fn wait(&self, child: &mut Child) -> io::Result<Option<ExitStatus>> {
        let begin = Instant::now();
        let mut signals = self.signals.iter().peekable();
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if let Some(((name, _), _)) = signals.next_if(|(_, after)| begin.elapsed() >= *after) {
                let line = format!("kill -{name} {}", child.id());
                // It may have ended meanwhile.
                Command::new("sh").args(["-c", &line]).stderr(Stdio::null()).status()?;
            }
            if begin.elapsed() > LIMIT {
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// The exit code is one of those that are documented, and a failure has words.
    fn ended(&self, status: ExitStatus, said: Option<String>) -> Judged {
        let last = said.as_deref().unwrap_or_default().lines().last().unwrap_or_default();
        if let Some(word) =
            said.iter().find_map(|said| FORBIDDEN.iter().find(|w| said.contains(*w)))
        {
            let fault = if word.starts_with("panic") { Fault::Panic } else { Fault::Internal };
            let said = said.unwrap_or_default();
            let line = said.lines().find(|line| line.contains(word)).unwrap_or_default();
            return Err((fault, line.to_owned()));
        }
        match (status.code(), status.signal()) {
            (Some(0), _) => Ok("done"),
            (Some(1), _) if said.as_ref().is_some_and(|said| said.trim().is_empty()) => {
                Err((Fault::Silent, "exit code 1 without a word".to_owned()))
            }
            (Some(1), _) => Ok("refused"),
            (Some(101), _) => Err((Fault::Panic, last.to_owned())),
            (None, Some(number)) if self.signals.iter().any(|((_, sent), _)| *sent == number) => {
                Ok("ended by the signal")
            }
            _ => Err((Fault::Crash, format!("{status}: {last}"))),
        }
    }

    /// Whether files may be there though the command fails later.
    fn writes_as_it_goes(&self) -> bool {
        let during = ["--checkpoint", "--snapshot-every"];
        let given = |word: &OsString| {
            during.iter().any(|name| word.as_encoded_bytes().starts_with(name.as_bytes()))
        };
        self.arguments.iter().any(given)
    }

    /// Inputs are as before, outputs are whole or as before, and nothing else is there.
    fn nothing_lost(
        &self,
        status: ExitStatus,
        before: &Tree,
        after: &Tree,
        outputs: &[Option<PathBuf>],
    ) -> Result<(), (Fault, String)> {
        let lost = |path: &Path, what: &str| {
            let name = path.file_name().unwrap_or_default().display();
            Err((Fault::Lost, format!("{name}: {what}")))
        };
        let is_output = |path: &PathBuf| {
            let named = path.file_name().unwrap_or_default();
            outputs.iter().flatten().any(|output| output == path)
                || self.may_make.iter().any(|name| name == named)
        };
        for (path, (mode, thing)) in before {
            match after.get(path) {
                None => return lost(path, "it is gone"),
                Some((new, _)) if new != mode => return lost(path, "other permissions"),
                Some((_, new)) if new != thing && !is_output(path) => {
                    return lost(path, "it was changed, and is no output");
                }
                Some(_) => {}
            }
        }
        if let Some(path) =
            after.keys().find(|path| !before.contains_key(*path) && !is_output(path))
        {
            return lost(path, "it was left behind");
        }
        let succeeded = status.success();
        // Standard output is written last; files may be there if it can't be.
        let may_stand = !self.signals.is_empty() || self.full[0];
        let all = after.keys().chain(outputs.iter().flatten()).filter(|path| is_output(path));
        for path in all {
            let (old, new) = (before.get(path), after.get(path));
            if old != new && !succeeded && !may_stand && !self.writes_as_it_goes() {
                return lost(path, "it was written by a command that failed");
            }
            match new {
                None if succeeded => return lost(path, "the output is missing"),
                Some((_, Thing::File(bytes))) if old != new || succeeded => {
                    if let Err(why) = whole(path, bytes) {
                        return lost(path, &format!("the output is not whole: {why}"));
                    }
                }
                _ => {}
            }
        }
        let distinct = outputs.iter().flatten().collect::<std::collections::BTreeSet<_>>().len();
        if succeeded && distinct < outputs.iter().flatten().count() {
            return Err((Fault::Lost, "two outputs went to one file".to_owned()));
        }
        Ok(())
    }
}

/// Whether a device takes whatever is written to it.
fn takes_all(work: &Path, output: &OsStr) -> bool {
    let is_device =
        fs::metadata(work.join(output)).is_ok_and(|data| !data.is_file() && !data.is_dir());
    is_device && output != "/dev/full"
}

/// Whether an output has an end, told by its kind.
fn whole(path: &Path, bytes: &[u8]) -> Result<(), String> {
    if bytes.starts_with(b"\x93NUMPY") {
        return npy::read(path).map(drop).map_err(|error| error.to_string());
    }
    if bytes.starts_with(b"stencilc checkpoint") {
        return checkpoint::read(path).map(drop).map_err(|error| error.to_string());
    }
    let pictures: [(&[u8], &[u8]); 2] =
        [(b"\x89PNG", b"IEND\xae\x42\x60\x82"), (b"GIF89a", b"\x3b")];
    if let Some((_, end)) = pictures.iter().find(|(begin, _)| bytes.starts_with(begin)) {
        let cut = || Err("its end is missing".to_owned());
        return if bytes.ends_with(end) { Ok(()) } else { cut() };
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    if !text.ends_with('\n') {
        return Err("its last line has no end".to_owned());
    }
    if text.starts_with("{\n  \"format\"") {
        let name = path.display().to_string();
        return Plan::from_json(text, &name).map(drop).map_err(|error| error.to_string());
    }
    let is_kernels = text.contains(".version") || text.starts_with("module");
    match is_kernels && !text.trim_end().ends_with('}') {
        true => Err("its last bracket is missing".to_owned()),
        false => Ok(()),
    }
}

/// An argument made of two.
pub fn joined(name: &str, value: &OsStr) -> OsString {
    let mut word = OsString::from(name);
    word.push(value);
    word
}
