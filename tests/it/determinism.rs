//! The same program and rules give the same bytes, in whatever order the rule files come.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::path::Path;

use crate::support::{directory, kina};

/// How many orders are tried.
const ORDERS: u64 = 20;
/// What takes long is printed for one order in so many; which orders those are differs from command to command.
const SAMPLED: u64 = 5;

/// A program that needs many rules, whose gradient has reductions, products and a scatter.
const PROGRAM: &str =
    "let f = fn(x: tensor<F32, [2, 3], @host>, w: tensor<F32, [3, 4], @host>) -> tensor<F32, [2], @host> {
  let i = tensor<I64, [2], @host> in
  let h = relu(x.matmul(w)) in
  let p = cube(h.softmax(axis=1)) + h * h in
  -p.log_softmax(axis=1).take_along_axis(i, axis=1) + mean(tanh(p) - p, axis=1)
} in
let x = tensor<F32, [2, 3], @host> in
let w = tensor<F32, [3, 4], @host> in
handle f(x, w) with reverseMode
";

/// Several mistakes at once.
const WRONG: &str = "let f = fn(x: tensor<F16, [2], @gpu>) -> tensor<F32, [2], @host> { x.rleu() } in
let y = tensor<F32, [2, 3], @host> in
(f(y), z, y.sum(axis=7), y + tensor<F32, [3], @host>)
";

/// Rules of a user: an override, an alternative, rewrites, and a definition with a VJP, which another file holds.
const RULES: &[(&str, &str)] = &[
    (
        "user_a.rules",
        "/// Masked by a comparison.\noverride vjp relu {\n  y = relu(x)\n  ---\n  g_x = select(x > 0.0, g_y, 0.0)\n}\n\
         /// d\nrewrite sub_itself [real] {\n  a - a => 0.0\n}\n",
    ),
    (
        "user_b.rules",
        "/// Costs more.\nvjp take_along_axis as by_zero {\n  y = take_along_axis(values, indices, axis)\n  ---\n  \
         g_values = scatter_along_axis(axis, g_y + 0.0, indices, type(values))\n  g_indices = none\n}\n\
         /// d\nrewrite twice [exact] {\n  a + a => a * 2.0\n}\n",
    ),
    (
        "user_c.rules",
        "import \"user_d.rules\"\n/// d\nvjp cube {\n  y = cube(x)\n  ---\n  g_x = g_y * 3.0 * squared(x)\n}\n",
    ),
    ("user_d.rules", "/// d\ndef squared(x) {\n  => x * x\n}\n/// d\ndef cube(x) {\n  => x * squared(x)\n}\n"),
];

/// Rules that mean nothing, and that contradict each other.
const WRONG_RULES: &[(&str, &str)] = &[
    ("wrong_a.rules", "/// d\nvjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_z\n}\n/// d\ndef s(x) {\n  => t(x)\n}\n"),
    ("wrong_b.rules", "/// d\nvjp tanh {\n  y = tanh(x)\n  ---\n  g_z = g_y\n}\n/// d\ndef t(x) {\n  => x * u\n}\n"),
    ("wrong_c.rules", "/// d\nrewrite twice [exact] {\n  a + a => b\n}\n/// d\ndef t(x) {\n  => x\n}\n"),
    (
        "wrong_d.rules",
        "/// d\nrewrite odd [approx] {\n  a + a => a\n}\n/// d\nvjp none_such {\n  y = none_such(x)\n  ---\n  g_x = g_y\n}\n",
    ),
];

/// Texts that are no rules, and files that are not there.
const UNREADABLE_RULES: &[(&str, &str)] = &[
    ("wrong_e.rules", "/// d\nvjp tanh {\n  y = tanh(x)\n  g_x = g_y\n}\nimport \"absent_a.rules\"\n"),
    ("wrong_f.rules", "import \"absent_b.rules\"\nimport \"wrong_g.rules\"\nrewrite odd [exact] { a => }\n"),
    ("wrong_g.rules", "import \"absent_b.rules\"\ndef (x) { => x }\n"),
];

/// A command line without its rule files, how it must end, and whether it is tried with every order.
struct Command {
    arguments: String,
    code: i32,
    wrong_rules: &'static [(&'static str, &'static str)],
    always: bool,
}

fn commands() -> Vec<Command> {
    let mut commands = Vec::new();
    let right: &[(&str, &str)] = &[];
    let mut push = |arguments: &str, code, wrong_rules, always| {
        commands.push(Command { arguments: arguments.to_owned(), code, wrong_rules, always });
    };
    let run = if cfg!(feature = "codegen") { "run p.kina" } else { "run p.kina --interpret" };
    push(&format!("{run} --json --output out.npz"), 0, right, true);
    push("grad p.kina", 0, right, true);
    push("rules list", 0, right, true);
    push("grad wrong.kina", 1, right, true);
    push("rules list", 1, WRONG_RULES, true);
    push("rules list", 4, UNREADABLE_RULES, true);
    push(&format!("{run} --output out.safetensors"), 0, right, false);
    push("run p.kina --interpret --check --json", 0, right, false);
    for format in ["json", "dot", "kina", "sexpr"] {
        push(&format!("grad p.kina --format {format}"), 0, right, false);
    }
    push("grad p.kina -O1", 0, right, false);
    push("rules list --json", 0, right, false);
    push("grad wrong.kina --json", 1, right, false);
    push("grad p.kina --json", 1, WRONG_RULES, false);
    push("grad p.kina --json", 4, UNREADABLE_RULES, false);
    for stage in ["program", "graph", "schedule", "schedule --format dot", "schedule -O1"] {
        push(&format!("emit p.kina --stage {stage} -o out"), 0, right, false);
    }
    if cfg!(feature = "codegen") {
        for stage in ["linalg", "linalg --locations -O1", "llvm", "llvm-ir", "asm", "object", "header"] {
            push(&format!("emit p.kina --stage {stage} -o out"), 0, right, false);
        }
    }
    commands
}

/// The rules of `rules/`, one file for each rule, and those of the user.
fn rule_files() -> Vec<(String, String)> {
    let mut files: Vec<(String, String)> = Vec::new();
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("rules");
    for entry in std::fs::read_dir(folder).expect("the rules") {
        let path = entry.expect("an entry").path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&path).expect("a rule file");
        let mut rule = String::new();
        for line in text.split_inclusive('\n') {
            rule.push_str(line);
            if line.trim_end() == "}" {
                files.push((format!("{stem}_{:03}.rules", files.len()), std::mem::take(&mut rule)));
            }
        }
        let rest = rule.lines().all(|line| line.is_empty() || line.starts_with("//"));
        assert!(rest, "{}: rules end with `}}` on a line of its own", path.display());
    }
    assert!(files.len() > 50, "{} rules", files.len());
    files.extend(RULES.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())));
    files
}

/// `names` in another order for each `seed`.
fn shuffled(names: &[&str], seed: u64) -> Vec<String> {
    let mut names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
    let mut state = seed;
    for i in (1..names.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        names.swap(i, (state >> 33) as usize % (i + 1));
    }
    names
}

/// Everything that a command leaves.
#[derive(PartialEq)]
struct Left {
    code: Option<i32>,
    stdout: String,
    stderr: String,
    files: BTreeMap<String, Vec<u8>>,
}

fn left(place: &Path, arguments: &str) -> Left {
    let outcome = kina(place, arguments);
    let mut files = BTreeMap::new();
    for name in ["out", "out.npz", "out.safetensors"] {
        if let Ok(content) = std::fs::read(place.join(name)) {
            std::fs::remove_file(place.join(name)).expect("a file just written");
            files.insert(name.to_owned(), content);
        }
    }
    Left { code: outcome.code, stdout: outcome.stdout, stderr: outcome.stderr, files }
}

/// A folder of rule files is its files.
#[test]
fn a_folder_is_its_rule_files() {
    let place = directory(&[RULES, &[("p.kina", PROGRAM)]].concat());
    let files: String = RULES.iter().map(|(name, _)| format!(" --rules {name}")).collect();
    for command in ["grad p.kina", "grad p.kina --format dot", "rules list --json"] {
        let folder = kina(place.path(), &format!("{command} --rules .")).ok();
        assert_eq!(folder.replace("./", ""), kina(place.path(), &format!("{command}{files}")).ok(), "{command}");
    }
}

#[test]
fn the_order_of_rule_files_changes_no_byte() {
    let rules = rule_files();
    let mut files: Vec<(&str, &str)> = rules.iter().map(|(name, text)| (&**name, &**text)).collect();
    let names: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
    files.extend(WRONG_RULES.iter().chain(UNREADABLE_RULES));
    files.extend([("p.kina", PROGRAM), ("wrong.kina", WRONG)]);
    let commands = commands();
    let with_rules = |command: &Command, order: u64| {
        let wrong = command.wrong_rules.iter().map(|(name, _)| *name);
        let names: Vec<&str> = names.iter().copied().chain(wrong).collect();
        let options = shuffled(&names, order).join(" --rules ");
        format!("{} --no-default-rules --rules {options}", command.arguments)
    };
    let place = directory(&files);
    let reference: Vec<Left> = commands.iter().map(|command| left(place.path(), &with_rules(command, 0))).collect();
    for (command, left) in commands.iter().zip(&reference) {
        assert_eq!(left.code, Some(command.code), "{}: {}", command.arguments, left.stderr);
        let printed = if command.code == 0 { left.files.len() + left.stdout.len() } else { left.stderr.len() };
        assert!(printed > 0, "{} prints something", command.arguments);
    }
    // The user's rules are among those that made the gradient.
    for rule in ["user_a.rules:2 vjp relu", "user_c.rules:3 vjp cube"] {
        assert!(reference[1].stdout.contains(rule), "{}", reference[1].stdout);
    }
    let compare = |place: &Path, order: u64| {
        for (i, command) in commands.iter().enumerate() {
            if !command.always && !(i as u64 + order).is_multiple_of(SAMPLED) {
                continue;
            }
            let (left, first) = (left(place, &with_rules(command, order)), &reference[i]);
            let what = format!("order {order}: {}", command.arguments);
            assert_eq!((left.code, &left.stdout), (first.code, &first.stdout), "{what}");
            assert_eq!(left.stderr, first.stderr, "{what}");
            assert!(left.files == first.files, "{what}: files differ");
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, NonZero::get) as u64;
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let (compare, files) = (&compare, &files);
            scope.spawn(move || {
                let place = directory(files);
                for order in (1..ORDERS).filter(|order| order % threads == thread) {
                    compare(place.path(), order);
                }
            });
        }
    });
}
