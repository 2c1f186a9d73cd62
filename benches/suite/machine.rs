//! What the figures were measured on.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

/// Names and values, in the order of the report.
pub fn describe() -> Vec<(String, String)> {
    let cores = cores();
    let memory = field("/proc/meminfo", "MemTotal").and_then(|m| m.strip_suffix(" kB")?.trim().parse::<f64>().ok());
    let system = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let system = system.lines().find_map(|l| l.strip_prefix("PRETTY_NAME=")).unwrap_or("unknown").trim_matches('"');
    [
        ("processor", format!("{}, {}", cpu(), std::env::consts::ARCH)),
        ("cores", cores.to_string()),
        ("caches", caches()),
        ("memory", memory.map_or("unknown".to_owned(), |kib| format!("{:.1} GiB", kib / f64::from(1 << 20)))),
        ("system", format!("{system}, Linux {}", said("uname", &["-r"]))),
        ("Rust", said("rustc", &["--version"])),
        ("C compiler of the reference", said("clang-19", &["--version"])),
        ("date", said("date", &["-u", "+%Y-%m-%d %H:%M UTC"])),
        ("commit", commit()),
        ("load average before", load()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// The processors of this process, as it was started.
struct Processors {
    count: usize,
    /// As `taskset` takes them: `0-1`.
    list: Option<String>,
}

/// Asked first at the start: OpenMP binds the main thread to one processor when it is first used.
fn processors() -> &'static Processors {
    static PROCESSORS: OnceLock<Processors> = OnceLock::new();
    PROCESSORS.get_or_init(|| Processors {
        count: std::thread::available_parallelism().map_or(1, usize::from),
        list: field("/proc/self/status", "Cpus_allowed_list"),
    })
}

/// How many processors there are for this process.
pub fn cores() -> usize {
    processors().count
}

/// A program that may run on all processors, although the thread that starts it may be bound to one.
pub fn unbound(program: impl AsRef<OsStr>) -> Command {
    match &processors().list {
        Some(list) if said("taskset", &["--version"]) != "unknown" => {
            let mut command = Command::new("taskset");
            command.args(["-c", list]).arg(program);
            command
        }
        _ => Command::new(program),
    }
}

/// How many processes wanted to run, over 1, 5 and 15 minutes: on a machine that does nothing else, 0 or few.
pub fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split_whitespace().take(3).collect::<Vec<_>>().join(" ")
}

fn cpu() -> String {
    let model = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown".to_owned());
    let flags = field("/proc/cpuinfo", "flags").unwrap_or_default();
    let flags: BTreeSet<&str> = flags.split_whitespace().collect();
    // The vectors decide what to expect.
    let vectors = ["avx512f", "avx2", "avx"].into_iter().find(|v| flags.contains(v));
    let family = [("family", "cpu family"), ("model", "model\t")]
        .map(|(name, key)| field("/proc/cpuinfo", key).map_or(String::new(), |value| format!(" {name} {value}")));
    format!("{model}{}{}", family.concat(), vectors.map_or(String::new(), |v| format!(" with {v}")))
}

/// The caches of the first core.
fn caches() -> String {
    let mut out = Vec::new();
    for index in 0..8 {
        let read = |name: &str| {
            let text = fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/{name}")).ok()?;
            Some(text.trim().to_owned())
        };
        if let (Some(level), Some(kind), Some(size), Some(cores)) =
            (read("level"), read("type"), read("size"), read("shared_cpu_list"))
        {
            let kind = if kind == "Unified" { String::new() } else { format!(" {}", kind.to_lowercase()) };
            out.push(format!("L{level}{kind} {size} (of cores {cores})"));
        }
    }
    if out.is_empty() { "unknown".to_owned() } else { out.join(", ") }
}

/// The value of the first `name: value` of a file.
fn field(file: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The first line that a program prints.
fn said(program: &str, arguments: &[&str]) -> String {
    let output = Command::new(program).args(arguments).current_dir(env!("CARGO_MANIFEST_DIR")).output();
    let text = output.ok().filter(|o| o.status.success()).map(|o| String::from_utf8_lossy(&o.stdout).into_owned());
    text.as_deref().and_then(|t| t.lines().next()).unwrap_or("unknown").to_owned()
}

/// What was measured, and whether it is what the commit says.
fn commit() -> String {
    let commit = said("git", &["rev-parse", "--short=10", "HEAD"]);
    let changed = Command::new("git")
        .args(["status", "--porcelain", "--untracked-files=no", "--", ".", ":!docs/benchmarks.md"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .is_ok_and(|o| !o.stdout.is_empty());
    if changed { format!("{commit}, with changes") } else { commit }
}
