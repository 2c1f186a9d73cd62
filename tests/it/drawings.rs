//! Drawings are read as their readers' programs see them: parsed as XML, boxes by their rectangles, edges by points on their paths.
//! What they show is compared with `--json`.

mod read;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use roxmltree::Document;
use serde_json::Value;

use self::read::{Box, Drawing, parse};
use crate::support::{directory, kina};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const EXAMPLES: [&str; 4] =
    ["examples/storylm0_nll.kina", "examples/storylm0_nll_mean.kina", "examples/mlp.kina", "examples/story/story.kina"];

fn drawing(arguments: &str) -> Drawing {
    parse(&kina(Path::new(ROOT), arguments).ok())
}

fn json(directory: &Path, arguments: &str) -> Value {
    serde_json::from_str(&kina(directory, &format!("{arguments} --json")).ok()).unwrap()
}

/// The values of `--json` by name.
fn by_name(graph: &Value) -> BTreeMap<String, Value> {
    let values = graph["values"].as_array().unwrap();
    values.iter().map(|v| (v["name"].as_str().unwrap().to_owned(), v.clone())).collect()
}

fn strings(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(|v| v.as_str().unwrap().to_owned()).collect()
}

/// An unfolded drawing has the values, operands and results of the graph: each once, and no others.
#[track_caller]
fn shows(drawing: &Drawing, graph: &Value) {
    let values = by_name(graph);
    let (names, _) = drawing.values();
    assert_eq!(names, values.keys().cloned().collect::<BTreeSet<_>>());
    let box_of: BTreeMap<&str, &str> =
        drawing.boxes.iter().filter_map(|(id, b)| Some((b.value.as_deref()?, id.as_str()))).collect();
    let drawn: BTreeSet<(String, String)> = drawing.edges.iter().map(|e| (e.from.clone(), e.to.clone())).collect();
    let mut expected = BTreeSet::new();
    for (name, value) in &values {
        let Some(to) = box_of.get(name.as_str()) else { continue };
        for operand in strings(&value["operands"]) {
            match box_of.get(operand.as_str()) {
                Some(from) => {
                    expected.insert(((*from).to_owned(), (*to).to_owned()));
                }
                None => assert!(drawing.boxes[*to].constants.contains(&operand), "{operand} of {name}"),
            }
        }
    }
    let results: BTreeMap<String, String> = drawing
        .boxes
        .iter()
        .filter(|(_, b)| b.class == "result")
        .map(|(id, b)| (b.result[0].clone(), id.clone()))
        .collect();
    let wanted: Vec<Value> = graph["results"].as_array().unwrap().clone();
    assert_eq!(results.len(), wanted.len());
    for result in &wanted {
        let from = box_of[result["value"].as_str().unwrap()];
        expected.insert((from.to_owned(), results[result["name"].as_str().unwrap()].clone()));
    }
    let checks = drawing.boxes.iter().filter(|(_, b)| b.class == "check").map(|(id, _)| id.clone());
    let checks: BTreeSet<String> = checks.collect();
    assert_eq!(checks.len(), graph["checks"].as_array().unwrap().len());
    let (of_checks, others): (BTreeSet<_>, BTreeSet<_>) = drawn.into_iter().partition(|(_, to)| checks.contains(to));
    assert_eq!(of_checks.len(), checks.len());
    assert_eq!(others, expected);
    // Backward values say which rule made them, and where it stands.
    for b in drawing.boxes.values() {
        let Some(value) = b.value.as_ref().and_then(|v| values.get(v)) else { continue };
        if let Some(place) = value["rule"]["location"].as_str() {
            assert!(b.lines.iter().any(|l| l.split(' ').next() == Some(place)), "{place} is not in {:?}", b.lines);
            for served in strings(&value["serves"]) {
                assert!(b.title.contains(&served), "{served} is not in {}", b.title);
            }
        }
    }
}

#[test]
fn examples_show_every_value_once_and_nothing_overlaps() {
    for file in EXAMPLES {
        for level in ["-O0", "-O2"] {
            let svg = drawing(&format!("grad {file} {level} --format svg"));
            assert!(svg.frames.is_empty(), "{file}");
            svg.sound();
            shows(&svg, &json(Path::new(ROOT), &format!("grad {file} {level}")));
        }
        drawing(&format!("emit {file} --stage program --format svg")).sound();
        let whole =
            kina(Path::new(ROOT), &format!("grad {file} --format svg")).ok().replace("the gradient", "the graph");
        assert_eq!(kina(Path::new(ROOT), &format!("emit {file} --stage graph --format svg")).ok(), whole);
    }
}

#[test]
fn what_is_there_for_the_gradient_is_marked() {
    let svg = drawing("grad examples/storylm0_nll.kina --format svg");
    let class = |name: &str| {
        svg.boxes.values().find(|b| b.value.as_deref() == Some(name)).map(|b| b.class.clone()).unwrap_or_default()
    };
    for name in ["g_logits", "scatter_along_axis_deae", "mul_41b7"] {
        assert_eq!(class(name), "backward", "{name}");
    }
    // Rewrites made these of what the program says.
    for name in ["loss", "max_5506", "log_9485"] {
        assert_eq!(class(name), "forward", "{name}");
    }
    assert_eq!((class("logits").as_str(), class("targets").as_str()), ("input", "input"));
    // Inputs at the top, results at the bottom.
    let tops: Vec<f64> = svg.boxes.values().filter(|b| b.class == "input").map(|b| b.rect.top).collect();
    assert!(svg.boxes.values().all(|b| b.rect.top >= tops[0]) && tops.iter().all(|t| *t == tops[0]));
    let results: Vec<f64> = svg.boxes.values().filter(|b| b.class == "result").map(|b| b.rect.top).collect();
    assert!(svg.boxes.values().all(|b| b.rect.top <= results[0]) && results.iter().all(|t| *t == results[0]));
}

#[test]
fn schedules_show_every_step_in_order() {
    for file in EXAMPLES {
        let text = kina(Path::new(ROOT), &format!("emit {file} --stage schedule")).ok();
        let svg = drawing(&format!("emit {file} --stage schedule --format svg"));
        svg.sound();
        let mut steps = BTreeMap::new();
        for b in svg.boxes.values().filter(|b| ["step", "check", "forward"].contains(&b.class.as_str())) {
            let (number, what) = b.lines[0].split_once(". ").unwrap();
            assert!(steps.insert(number.parse::<usize>().unwrap(), (what.to_owned(), b)).is_none());
        }
        let wanted: Vec<&str> =
            text.lines().filter(|l| ["group", "check", "copy "].iter().any(|w| l.starts_with(w))).collect();
        assert_eq!(steps.keys().copied().collect::<Vec<_>>(), (1..=wanted.len()).collect::<Vec<_>>());
        for ((what, b), line) in steps.values().zip(&wanted) {
            assert_eq!(what.split(' ').next(), line.split(' ').next(), "{line}");
            if let Some(rest) = line.strip_prefix("group ") {
                let number = rest.split(' ').next().unwrap();
                assert!(what.starts_with(&format!("group {number}: ")), "{what}: {line}");
                for operator in rest.split_once(": ").unwrap().1.split(", ") {
                    assert!(b.title.contains(operator), "{operator} is not in {}", b.title);
                }
            }
        }
        // Where values live, as the text has it.
        for line in text.lines().filter(|l| l.starts_with("  over")) {
            let place =
                line.split_once('[').and_then(|(_, l)| l.split_once(" [")).unwrap().1.split(']').next().unwrap();
            assert!(svg.boxes.values().any(|b| b.lines.iter().any(|l| l.contains(&format!("[{place}]")))), "{line}");
        }
        let results = svg.boxes.values().filter(|b| b.class == "result").count();
        assert_eq!(results, json(Path::new(ROOT), &format!("grad {file}"))["results"].as_array().unwrap().len());
    }
}

/// A small transformer: attention, a network, residuals, an embedding before them and a loss behind.
fn transformer(layers: usize) -> String {
    let (rows, width) = (6, 8);
    let ty = format!("tensor<F32, [{rows}, {width}], @host>");
    let square = format!("tensor<F32, [{width}, {width}], @host>");
    let mut params = vec![("first".to_owned(), square.clone())];
    let mut body = String::from("  let x0 = data.matmul(first) in\n");
    for i in 0..layers {
        for name in ["q", "k", "v", "o", "up", "down"] {
            params.push((format!("w_{name}{i}"), square.clone()));
        }
        params.push((format!("b{i}"), format!("tensor<F32, [{width}], @host>")));
        body += &format!(
            "  let n{i} = x{i}.layer_norm(axis=1) in
  let s{i} = (matmul(n{i}.matmul(w_q{i}), n{i}.matmul(w_k{i}).transpose([1, 0])) * 0.5 + mask).softmax(axis=1) in
  let y{i} = x{i} + matmul(s{i}, n{i}.matmul(w_v{i})).matmul(w_o{i}) in
  let h{i} = (y{i}.matmul(w_up{i}) + b{i}.broadcast([{rows}, {width}])).relu() in
  let x{} = y{i} + h{i}.matmul(w_down{i}) in\n",
            i + 1
        );
    }
    body += &format!("  x{layers}.log_softmax(axis=1).take_along_axis(targets, axis=1).mean()");
    let list = |f: &dyn Fn(&(String, String)) -> String, by: &str| params.iter().map(f).collect::<Vec<_>>().join(by);
    format!(
        "let data = {ty} in\nlet mask = tensor<F32, [{rows}, {rows}], @host> in\nlet targets = tensor<I64, [{rows}], @host> in\n\
         let f = fn({}) -> tensor<F32, [], @host> {{\n{body}\n}} in\n{}\nhandle f({}) with reverseMode\n",
        list(&|(n, t)| format!("{n}: {t}"), ", "),
        list(&|(n, t)| format!("let {n} = {t} in"), "\n"),
        list(&|(n, _)| n.clone(), ", "),
    )
}

/// The copies that a frame hides are what it says: each value has the operator, type and attributes of the one that is drawn,
/// and operands inside of a copy are those at the same places.
#[track_caller]
fn does_not_lie(drawing: &Drawing, graph: &Value) {
    let values = by_name(graph);
    let mut seen = BTreeSet::new();
    // Names of constants of the copies: they have no boxes.
    let mut constants = BTreeSet::new();
    for (id, frame) in &drawing.frames {
        let members: Vec<&Box> =
            drawing.boxes.values().filter(|b| b.frame.as_ref() == Some(id) && b.value.is_some()).collect();
        // The name of each member in each copy.
        let copies: BTreeMap<&str, &[String]> =
            members.iter().map(|b| (b.value.as_deref().unwrap(), b.copies.as_slice())).collect();
        for (name, names) in &copies {
            assert_eq!(names.len(), frame.copies);
            assert_eq!(names[0], *name);
            assert!(names.iter().all(|n| seen.insert(n.clone())), "a copy of {name} is somewhere else too");
            let first = &values[*name];
            for (c, copy) in names.iter().enumerate() {
                let value = &values[copy];
                for field in ["op", "type", "attributes"] {
                    assert_eq!(value[field], first[field], "{copy} is no copy of {name}");
                }
                let (mine, theirs) = (strings(&first["operands"]), strings(&value["operands"]));
                assert_eq!(mine.len(), theirs.len());
                for (a, b) in mine.iter().zip(&theirs) {
                    if let Some(of_operand) = copies.get(a.as_str()) {
                        assert_eq!(&of_operand[c], b, "operand {a} of {name}, copy {c}");
                    } else if frame.members.contains(a) {
                        constants.insert(b.clone());
                    }
                }
            }
        }
        let hidden = (frame.copies - 1) * frame.members.len();
        assert!(frame.lines.iter().any(|l| l.contains(&format!("{hidden} values are hidden"))), "{:?}", frame.lines);
        assert!(frame.lines[0].ends_with(&format!("x {}", frame.copies)), "{:?}", frame.lines);
    }
    let (names, folded) = drawing.values();
    let others = names.iter().filter(|n| !seen.contains(*n) && !constants.contains(*n)).count();
    assert_eq!(folded + others, values.len(), "copies times members and all others are all values");
    // Results in frames are one for each copy.
    let results: Vec<&String> = drawing.boxes.values().flat_map(|b| &b.result).collect();
    let wanted = graph["results"].as_array().unwrap();
    assert_eq!(results.len(), wanted.len());
    assert_eq!(results.into_iter().collect::<BTreeSet<_>>().len(), wanted.len());
}

#[test]
fn repeated_layers_are_folded_and_folding_does_not_lie() {
    for layers in [3, 4, 12] {
        let place = directory(&[("p.kina", transformer(layers))]);
        for level in ["-O0", "-O1", "-O2"] {
            let graph = json(place.path(), &format!("grad p.kina {level}"));
            let folded = parse(&kina(place.path(), &format!("grad p.kina {level} --format svg")).ok());
            let copies: Vec<usize> = folded.frames.values().map(|f| f.copies).collect();
            assert_eq!(copies, [layers, layers], "forward and backward, {level}");
            does_not_lie(folded.sound(), &graph);
            // The first layers' weights are in the frame that uses them, and as many gradients come out of the other one.
            let of_copy: Vec<&String> = folded.frames.values().flat_map(|f| &f.members).collect();
            for name in ["w_q0", "b0"] {
                assert!(of_copy.iter().any(|m| **m == name), "{name}");
            }
            let gradients = folded.boxes.values().filter(|b| b.result.len() == layers).count();
            assert_eq!(gradients, 7, "{level}");
            // Marks of what goes from copy to copy.
            let says = |text: &str| folded.boxes.values().any(|b| b.lines.iter().any(|l| l.contains(text)));
            assert!(says("to the next copy") && says("of the previous copy") && says("the same for all copies"));
            assert!(says(&format!("of frame 1, copies {layers}..1")), "{level}");
            if layers < 12 {
                let whole = parse(&kina(place.path(), &format!("grad p.kina {level} --format svg --unfold")).ok());
                assert!(whole.frames.is_empty());
                shows(whole.sound(), &graph);
            }
        }
        let program = parse(&kina(place.path(), "emit p.kina --stage program --format svg").ok());
        does_not_lie(program.sound(), &json(place.path(), "emit p.kina --stage program"));
        parse(&kina(place.path(), "emit p.kina --stage schedule --format svg").ok()).sound();
    }
}

#[test]
fn the_size_of_a_drawing_of_layers_does_not_depend_on_their_number() {
    let boxes = |layers: usize| {
        let place = directory(&[("p.kina", transformer(layers))]);
        parse(&kina(place.path(), "grad p.kina --format svg").ok()).boxes.len()
    };
    assert_eq!(boxes(4), boxes(12));
}

/// `operators` operators in a row, as `step` says.
fn chain(operators: usize, step: impl Fn(usize) -> String) -> String {
    let ty = "tensor<F32, [2], @host>";
    let body: String = (1..=operators).map(|i| format!("let v{i} = {} in\n", step(i))).collect();
    format!(
        "let f = fn(v0: {ty}, w: {ty}) -> {ty} {{\n{body}v{operators}\n}} in\nhandle f({ty}, {ty}) with reverseMode"
    )
}

#[test]
fn a_program_of_any_size_is_drawn_folded_or_refused() {
    let regular = |i: usize| match i % 3 {
        0 => format!("v{} * w", i - 1),
        1 => format!("v{}.tanh()", i - 1),
        _ => format!("v{} + w", i - 1),
    };
    let place = directory(&[("p.kina", chain(6_000, regular))]);
    let folded = parse(&kina(place.path(), "grad p.kina --format svg").ok());
    assert!(!folded.frames.is_empty() && folded.boxes.len() < 150, "{} boxes", folded.boxes.len());
    let members: BTreeSet<&String> = folded.frames.values().flat_map(|f| &f.members).collect();
    let (names, in_frames) = folded.values();
    let others = names.iter().filter(|n| !members.contains(n)).count();
    assert_eq!(in_frames + others, json(place.path(), "grad p.kina")["values"].as_array().unwrap().len());
    for command in ["grad p.kina --format svg --unfold", "emit p.kina --stage schedule --format svg --unfold -O0"] {
        kina(place.path(), command).refusal(1, &["E0606", "2000", "leave `--unfold` out"]).unwrap();
    }
    // Nothing repeats: one of five operators by a pseudo-random sequence.
    let mut state = 1u64;
    let choices: Vec<u64> = (0..1500)
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % 5
        })
        .collect();
    let irregular = |i: usize| match choices[i - 1] {
        0 => format!("v{}.tanh()", i - 1),
        1 => format!("v{}.exp()", i - 1),
        2 => format!("v{} * w", i - 1),
        3 => format!("v{}.sin()", i - 1),
        _ => format!("v{} + v{}", i - 1, i.saturating_sub(7)),
    };
    let place = directory(&[("p.kina", chain(1500, irregular))]);
    kina(place.path(), "grad p.kina --format svg").refusal(1, &["E0606", "2000", "--format text"]).unwrap();
}

#[test]
fn the_same_program_gives_the_same_bytes() {
    let place = directory(&[("p.kina", transformer(3))]);
    for command in ["grad p.kina --format svg", "emit p.kina --stage schedule --format svg"] {
        let first = kina(place.path(), command).ok();
        for _ in 0..3 {
            assert_eq!(kina(place.path(), command).ok(), first);
        }
    }
    kina(place.path(), "emit p.kina --stage graph --format svg -o p.svg").ok();
    let graph = kina(place.path(), "emit p.kina --stage graph --format svg").ok();
    assert_eq!(std::fs::read_to_string(place.path().join("p.svg")).unwrap(), graph);
}

#[test]
fn names_are_escaped_and_long_ones_shortened() {
    let long = format!("a_{}", "very_".repeat(12).trim_end_matches('_'));
    let program = format!(
        "let f = fn({long}: tensor<F32, [2], @host>) {{ let {long}_too = {long}.exp() in {long}_too * {long}_too }} in
         let {long} = tensor<F32, [2], @host> in handle f({long}) with reverseMode"
    );
    let file = "p<&\">\u{1}]]>--\u{4e16}.kina";
    let place = directory(&[(file, program)]);
    for command in ["grad FILE --format svg", "emit FILE --stage schedule --format svg"] {
        let svg = kina(place.path(), &command.replace("FILE", file)).ok();
        let drawing = parse(&svg);
        drawing.sound();
        assert!(drawing.boxes.values().all(|b| b.rect.right - b.rect.left < 480.0));
        assert!(drawing.boxes.values().any(|b| b.title.contains(&long)), "the whole name is in the tooltip");
        let document = Document::parse(&svg).unwrap();
        let title = document.root_element().children().find(|n| n.has_tag_name("title")).unwrap().text().unwrap();
        assert!(title.starts_with("p<&\">?]]>--\u{4e16}.kina"), "{title}");
    }
}

#[test]
fn a_stage_without_a_drawing_is_refused() {
    let place = directory(&[("p.kina", "let x = tensor<F32, [2], @host> in (x, x * x)")]);
    kina(place.path(), "emit p.kina --stage linalg --format svg").refusal(1, &["E0603", "`schedule`"]).unwrap();
    // An input that is a result, and a program of nothing else.
    parse(&kina(place.path(), "grad p.kina --format svg").ok()).sound();
    parse(&kina(place.path(), "emit p.kina --stage schedule --format svg").ok()).sound();
    let place = directory(&[("p.kina", "2.0 * tensor<F32, [], @host>")]);
    parse(&kina(place.path(), "grad p.kina --format svg").ok()).sound();
}

#[test]
fn a_small_drawing() {
    let program = "let f = fn(x: tensor<F32, [3], @host>) { (x * x).sum() } in
let x = tensor<F32, [3], @host> in
handle f(x) with reverseMode
";
    let place = directory(&[("square.kina", program)]);
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(ROOT).join("snapshots"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings
        .bind(|| insta::assert_snapshot!("square.drawing", kina(place.path(), "grad square.kina --format svg").ok()));
}

/// With UPDATE_DOCS in the environment the drawings are written anew; look at them.
#[test]
fn drawings_in_the_documentation_are_what_is_drawn() {
    let text = std::fs::read_to_string(Path::new(ROOT).join("docs/drawings.md")).unwrap();
    for (name, command) in [
        ("storylm0_nll.svg", "grad examples/storylm0_nll.kina --format svg"),
        ("mlp.svg", "emit examples/mlp.kina --stage schedule --format svg"),
    ] {
        assert!(text.contains(&format!("drawings/{name}")) && text.contains(command), "{name}");
        let svg = kina(Path::new(ROOT), command).ok();
        let file = Path::new(ROOT).join("docs/drawings").join(name);
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(&file, &svg).unwrap();
        }
        assert!(
            std::fs::read_to_string(&file).unwrap_or_default() == svg,
            "{name} has changed: UPDATE_DOCS=1 writes it"
        );
    }
    // The limit that the text states.
    assert!(text.contains(&format!("{} boxes", kina_ad::draw::MAX_BOXES)));
}
