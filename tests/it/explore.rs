//! `kina-ad explore`: its screens as people see them, its commands as scripts use them.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use kina_ad::explore::tour::command::{self, Press, SCROLLS, TABLE};
use kina_ad::explore::tour::screen::{Flow, Screen};
use kina_ad::explore::tour::{Command, Tour, TourError, View};
use kina_ad::{CheckOptions, Level, RuleOptions, Session};
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};

use crate::support::{directory, kina};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const NLL: &str = include_str!("../../examples/storylm0_nll.kina");

fn tour_of(name: &str, text: &str, level: Level, rules: &RuleOptions) -> Tour {
    let mut session = Session::new(rules).unwrap();
    let graph = session.check(name, text, &CheckOptions::default()).unwrap();
    Tour::open(session, &graph, name, level).unwrap()
}

fn nll() -> Tour {
    tour_of("nll.kina", NLL, Level::O2, &RuleOptions::default())
}

fn buffer(tour: &mut Tour, screen: &mut Screen, (width, height): (u16, u16)) -> Buffer {
    let area = Rect::new(0, 0, width, height);
    // The first drawing finds out what is seen; then all of that is there.
    let mut buffer = Buffer::empty(area);
    screen.draw_into(tour, area, &mut buffer);
    tour.settle(screen.rows());
    let mut buffer = Buffer::empty(area);
    screen.draw_into(tour, area, &mut buffer);
    buffer
}

fn text_of(buffer: &Buffer) -> String {
    let mut out = String::new();
    for y in 0..buffer.area.height {
        let mut line = String::new();
        let mut skip = 0;
        for x in 0..buffer.area.width {
            let symbol = buffer.cell((x, y)).unwrap().symbol();
            if skip == 0 {
                line.push_str(symbol);
                skip = ratatui::text::Span::raw(symbol).width().max(1);
            }
            skip -= 1;
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

fn seen(tour: &mut Tour, screen: &mut Screen, size: (u16, u16)) -> String {
    text_of(&buffer(tour, screen, size))
}

fn press(tour: &mut Tour, screen: &mut Screen, keys: &[&str]) {
    for key in keys {
        assert_eq!(screen.press(tour, key), Flow::GoOn, "{key}");
    }
}

fn typed(tour: &mut Tour, screen: &mut Screen, line: &str) {
    press(tour, screen, &[":"]);
    for c in line.chars() {
        press(tour, screen, &[&c.to_string()]);
    }
    press(tour, screen, &["enter"]);
}

const SIZES: [(u16, u16); 3] = [(100, 30), (60, 20), (40, 12)];

/// Compares what is seen in three sizes with what was.
fn snapshot(name: &str, prepare: impl Fn(&mut Tour, &mut Screen)) {
    let mut text = String::new();
    for size in SIZES {
        let (mut tour, mut screen) = (nll(), Screen::new(false));
        prepare(&mut tour, &mut screen);
        let edge = "=".repeat(usize::from(size.0));
        text.push_str(&format!("{edge}\n{}{edge}\n", seen(&mut tour, &mut screen, size)));
    }
    compare(name, &text);
}

fn compare(name: &str, text: &str) {
    let mut settings = insta::Settings::new();
    settings.set_snapshot_path(Path::new(ROOT).join("tests/ui"));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}

#[test]
fn screens_look_as_they_did() {
    snapshot("explore_start", |_, _| {});
    snapshot("explore_list", |tour, screen| press(tour, screen, &["right", "right", "right", "]"]));
    snapshot("explore_filter", |tour, screen| {
        typed(tour, screen, "filter op exp");
        press(tour, screen, &["e", "right"]);
    });
    snapshot("explore_class", |tour, screen| press(tour, screen, &["]", "enter"]));
    snapshot("explore_before_after", |tour, screen| press(tour, screen, &["]", "b"]));
    snapshot("explore_rule", |tour, screen| press(tour, screen, &["right", "r"]));
    snapshot("explore_graph", |tour, screen| press(tour, screen, &["G", "6", "down", "down"]));
    snapshot("explore_help", |tour, screen| press(tour, screen, &["?"]));
    snapshot("explore_fuel", |tour, screen| typed(tour, screen, "fuel 3"));
    snapshot("explore_wrapped", |tour, screen| press(tour, screen, &["G", "6", "w", "pagedown"]));
    snapshot("explore_sideways", |tour, screen| press(tour, screen, &["G", "6", ">", ">"]));
}

#[cfg(feature = "codegen")]
#[test]
fn the_linalg_of_a_value_looks_as_it_did() {
    snapshot("explore_linalg", |tour, screen| {
        press(tour, screen, &["G"]);
        typed(tour, screen, "linalg g_logits");
    });
}

#[cfg(not(feature = "codegen"))]
#[test]
fn without_code_generation_there_is_no_linalg() {
    let (mut tour, mut screen) = (nll(), Screen::new(false));
    typed(&mut tour, &mut screen, "linalg g_logits");
    assert!(seen(&mut tour, &mut screen, (80, 20)).contains("without code generation"));
}

#[test]
fn colours_say_nothing_that_signs_do_not() {
    for keys in [&["right"][..], &["]", "enter"], &["G", "b"], &["right", "r"], &["?"]] {
        let (mut plain, mut colourful) = ((nll(), Screen::new(false)), (nll(), Screen::new(true)));
        press(&mut plain.0, &mut plain.1, keys);
        press(&mut colourful.0, &mut colourful.1, keys);
        let plain = buffer(&mut plain.0, &mut plain.1, (90, 24));
        let colourful = buffer(&mut colourful.0, &mut colourful.1, (90, 24));
        assert_eq!(text_of(&plain), text_of(&colourful));
        let empty = Buffer::empty(Rect::new(0, 0, 1, 1)).content()[0].style();
        assert!(plain.content().iter().all(|cell| cell.style() == empty));
        let styles: Vec<Style> = colourful.content().iter().map(|cell| cell.style()).collect();
        assert!(styles.iter().any(|s| *s != empty));
        for style in styles {
            // The standard colours, whose look is the terminal's matter.
            assert!(!matches!(style.fg, Some(Color::Rgb(..) | Color::Indexed(_))), "{style:?}");
            assert!(matches!(style.bg, None | Some(Color::Reset)), "{style:?}");
            assert!((style.add_modifier - Modifier::BOLD).is_empty(), "{style:?}");
        }
    }
}

#[test]
fn before_anything_is_made_the_screen_is_there_and_says_so() {
    let (mut tour, mut screen) = (nll(), Screen::new(false));
    press(&mut tour, &mut screen, &["right", "enter"]);
    screen.busy = Some(("the graph after 1".to_owned(), std::time::Duration::from_millis(1250)));
    let area = Rect::new(0, 0, 80, 12);
    let mut buffer = Buffer::empty(area);
    screen.draw_into(&mut tour, area, &mut buffer);
    let text = text_of(&buffer);
    assert!(text.contains("computing ..") && text.contains("computing the graph after 1 1.2 s"), "{text}");
    // A list needs no graph.
    press(&mut tour, &mut screen, &["esc"]);
    let mut buffer = Buffer::empty(area);
    screen.draw_into(&mut tour, area, &mut buffer);
    assert!(text_of(&buffer).contains(">     1  "), "{}", text_of(&buffer));
}

#[test]
fn tiny_terminals_say_that_they_are() {
    let (mut tour, mut screen) = (nll(), Screen::new(false));
    for size in [(19, 30), (80, 4), (1, 1), (0, 0)] {
        let text = seen(&mut tour, &mut screen, size);
        assert!("terminal too small".starts_with(text.lines().next().unwrap_or("").trim()), "{text}");
    }
    for view in ["applications", "class c1", "before-after", "graph", "help", "rule"] {
        typed(&mut tour, &mut screen, "goto 2");
        typed(&mut tour, &mut screen, view);
        let text = seen(&mut tour, &mut screen, (20, 5));
        assert_eq!(text.lines().count(), 5);
        assert!(text.contains("2 of"), "{text}");
    }
}

#[test]
fn forward_and_back_are_the_same_screens() {
    for view in ["1", "2", "b", "6"] {
        let (mut tour, mut screen) = (nll(), Screen::new(false));
        press(&mut tour, &mut screen, &["right", view]);
        let limit = tour.limit().min(8);
        let mut forward = vec![seen(&mut tour, &mut screen, (100, 30))];
        for _ in 1..limit {
            press(&mut tour, &mut screen, &["right"]);
            forward.push(seen(&mut tour, &mut screen, (100, 30)));
        }
        assert_ne!(forward[0], forward[1]);
        for (n, text) in forward.iter().enumerate().rev().skip(1) {
            press(&mut tour, &mut screen, &["left"]);
            assert_eq!(seen(&mut tour, &mut screen, (100, 30)), *text, "view {view}, application {}", n + 1);
        }
    }
}

#[test]
fn going_somewhere_is_stepping_there() {
    let mut stepping = nll();
    for n in 1..=stepping.limit().min(12) {
        stepping.run(&Command::Next(1)).unwrap();
        let mut going = nll();
        going.run(&Command::Goto(n)).unwrap();
        let mut both = [&mut stepping, &mut going].map(|tour| {
            for view in [Command::Class(None), Command::Graph, Command::BeforeAfter, Command::Applications(0)] {
                tour.run_settled(&view).unwrap();
            }
            let pages =
                [Command::Class(None), Command::Graph, Command::BeforeAfter, Command::Applications(0)].map(|c| {
                    tour.run_settled(&c).unwrap();
                    tour.page().text()
                });
            (tour.position(), tour.iteration(), pages)
        });
        let other = both[1].clone();
        assert_eq!(both[0], other);
        both.reverse();
    }
    // An iteration is all its applications.
    let mut tour = nll();
    tour.run(&Command::Iteration(1)).unwrap();
    let end = tour.history().record.iterations[0].applications.1;
    assert_eq!(tour.position(), end);
    tour.run(&Command::First).unwrap();
    tour.run(&Command::NextIteration).unwrap();
    assert_eq!(tour.position(), end);
    tour.run(&Command::PreviousIteration).unwrap();
    assert_eq!(tour.position(), 0);
}

#[test]
fn filters_decide_what_is_next() {
    let mut tour = nll();
    let all = tour.limit();
    let rule = tour.history().rule(&tour.history().record.applications[all / 2]).unwrap().name.to_string();
    tour.run(&Command::parse(&format!("filter rule {rule}")).unwrap()).unwrap();
    let passing = tour.passing();
    assert!(passing > 0 && passing < all);
    let mut met = 0;
    while tour.run(&Command::Next(1)).is_ok() {
        let application = tour.application().unwrap().clone();
        assert_eq!(&*tour.history().rule(&application).unwrap().name, rule);
        met += 1;
    }
    assert_eq!(met, passing);
    assert!(matches!(tour.run(&Command::Next(1)), Err(TourError::NoneFurther(_))));
    for _ in 0..passing {
        tour.run(&Command::Back(1)).unwrap();
    }
    assert_eq!((tour.position(), tour.run(&Command::Back(1))), (0, Err(TourError::AtTheStart)));

    // By operator: the sides of whatever passes have it.
    tour.run(&Command::parse("filter op exp").unwrap()).unwrap();
    assert!(tour.passing() > 0 && tour.passing() < all);
    while tour.run(&Command::Next(1)).is_ok() {
        tour.run(&Command::Applications(0)).unwrap();
        assert!(tour.page().text().contains("exp("), "{}", tour.page().text());
    }
    tour.run(&Command::parse("filter none").unwrap()).unwrap();
    assert_eq!(tour.passing(), all);
    assert_eq!(
        tour.run(&Command::parse("filter rule no_such").unwrap()),
        Err(TourError::UnknownRule("no_such".to_owned()))
    );
}

#[test]
fn fuel_shows_the_result_of_so_many_applications() {
    let mut tour = nll();
    let all = tour.limit();
    tour.run_settled(&Command::Goto(5)).unwrap();
    let cost = tour.cost_at(5).unwrap();
    tour.run_settled(&Command::First).unwrap();
    tour.run_settled(&Command::Fuel(Some(5))).unwrap();
    assert_eq!((tour.limit(), tour.position(), tour.cost_at(tour.limit())), (5, 5, Some(cost)));
    assert_eq!(tour.run(&Command::Next(1)), Err(TourError::OutOfFuel(5)));
    assert_eq!(tour.run(&Command::Goto(6)), Err(TourError::OutOfFuel(5)));
    tour.run(&Command::Fuel(None)).unwrap();
    assert_eq!(tour.limit(), all);
    tour.run(&Command::Next(1)).unwrap();
    assert_eq!(tour.position(), 6);
    // None at all is the program before rewriting; more than is needed is no limit.
    tour.run(&Command::Fuel(Some(0))).unwrap();
    assert_eq!((tour.limit(), tour.position()), (0, 0));
    tour.run(&Command::Fuel(Some(usize::MAX))).unwrap();
    assert_eq!((tour.limit(), tour.position()), (all, all));
}

#[test]
fn what_is_extracted_at_the_end_is_what_the_compiler_extracts() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let graph = session.check("nll.kina", NLL, &CheckOptions::default()).unwrap();
    let mut program = session.differentiate(&graph).unwrap();
    let optimised = session.optimise(&mut program, Level::O2).unwrap();
    let mut tour = Tour::open(session, &graph, "nll.kina", Level::O2).unwrap();
    tour.run_settled(&Command::Last).unwrap();
    let state = tour.state().unwrap();
    assert_eq!(state.graph.as_deref(), Some(&optimised.graph));
    assert_eq!(tour.cost_at(tour.limit()), Some(optimised.cost));

    // The chosen form of a result costs, with all that it needs, no more than any other; and every form says who made it.
    for value in ["loss", "g_logits"] {
        tour.run_settled(&Command::Class(Some(value.to_owned()))).unwrap();
        tour.run(&Command::Forms(Some(true))).unwrap();
        let text = tour.page().text();
        assert!(text.contains("\n* "), "{text}");
        assert_eq!(text.matches("    by ").count(), text.lines().filter(|l| l.contains("    by ")).count());
        assert!(!text.contains("more hidden"), "{text}");
    }
}

/// A script's stdout, stderr and exit code.
fn scripted(directory: &Path, arguments: &str, commands: &str) -> (String, String, Option<i32>) {
    let mut process = Process::new(env!("CARGO_BIN_EXE_kina-ad"))
        .args(["explore", "--script", "-"])
        .args(arguments.split_whitespace())
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    process.stdin.take().unwrap().write_all(commands.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (text(output.stdout), text(output.stderr), output.status.code())
}

#[test]
fn every_command_answers_a_script() {
    let directory = directory(&[("nll.kina", NLL)]);
    // `quit` last.
    let all: Vec<String> = TABLE.iter().filter(|e| e.name != "quit").map(|e| e.example.to_owned()).collect();
    let mut lines = vec!["# a comment".to_owned(), String::new(), "goto 4".to_owned()];
    lines.extend(all.iter().filter(|l| !l.starts_with("linalg")).cloned());
    lines.extend(["filter none", "goto 4", "class loss", "fuel 2", "quit", "next"].map(str::to_owned));
    let text = lines.join("\n");
    let (stdout, stderr, code) = scripted(directory.path(), "nll.kina", &text);
    assert_eq!((&*stderr, code), ("", Some(0)));
    compare("explore_script", &stdout);

    let (stdout, stderr, code) = scripted(directory.path(), "nll.kina --json", &text);
    assert_eq!((&*stderr, code), ("", Some(0)));
    let values: Vec<serde_json::Value> = stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let commands: Vec<&str> = values.iter().map(|v| v["command"].as_str().unwrap()).collect();
    let expected: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|l| !l.is_empty() && !l.starts_with('#') && !matches!(*l, "quit"))
        .collect();
    assert_eq!(commands, expected[..expected.len() - 1]);
    for value in &values {
        assert!(value["position"].is_u64() && value["view"].is_string(), "{value}");
    }
    let class = values.iter().find(|v| v["command"] == "class loss").unwrap();
    let forms = class["class"]["forms"].as_array().unwrap();
    assert_eq!(class["class"]["name"], "loss");
    assert_eq!(forms.iter().filter(|f| f["chosen"] == true).count(), 1);
    let next = values.iter().find(|v| v["command"] == "goto 4").unwrap();
    assert!(next["application"]["left"].is_string() && next["application"]["rule"].is_string(), "{next}");
    assert!(next["cost"].is_u64() || next["cost"].is_null());
}

#[cfg(feature = "codegen")]
#[test]
fn a_script_sees_the_linalg_of_a_value() {
    let directory = directory(&[("nll.kina", NLL)]);
    let (stdout, stderr, code) =
        scripted(directory.path(), "nll.kina", "last\nlinalg g_logits\nlinalg loss\nlinalg logits\n");
    assert_eq!((&*stderr, code), ("", Some(0)));
    assert!(stdout.contains("linalg.generic") && stdout.contains("input of the program"), "{stdout}");
    assert!(!stdout.contains("loc("), "{stdout}");
}

#[test]
fn wrong_commands_are_refused_by_line_and_the_others_done() {
    let directory = directory(&[("nll.kina", NLL)]);
    let commands = "next\njump\ngoto 99999\nclass losss\nback 7\nfilter rule log_sofmax\nnext\n";
    let (stdout, stderr, code) = scripted(directory.path(), "nll.kina", commands);
    assert_eq!(code, Some(1));
    let answers: Vec<&str> = stdout.lines().filter(|l| l.starts_with("> ")).collect();
    assert_eq!(answers, ["> next", "> next"]);
    assert!(stdout.contains("2 of "), "{stdout}");
    for part in [
        "stdin:2:1",
        "there is no command `jump`",
        "the commands are next, back",
        "stdin:3:1",
        "stdin:4:1",
        "did you mean `loss`?",
        "stdin:5:1",
        "this is the start",
        "stdin:6:1",
        "E0930",
        "E0931",
    ] {
        assert!(stderr.contains(part), "{part}: {stderr}");
    }
    // As JSON each has a value, and all are one value on stderr.
    let (stdout, stderr, code) = scripted(directory.path(), "nll.kina --json", commands);
    assert_eq!(code, Some(1));
    let values: Vec<serde_json::Value> = stdout.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    assert_eq!(values.len(), 7);
    assert_eq!(values.iter().filter(|v| v["error"].is_string()).count(), 5);
    let errors: serde_json::Value = serde_json::from_str(&stderr).unwrap();
    assert_eq!(errors["diagnostics"].as_array().unwrap().len(), 5);
}

#[test]
fn a_script_may_be_a_file_and_a_terminal_is_needed_without_one() {
    let directory = directory(&[("nll.kina", NLL), ("walk.txt", "next 2\n# done\n")]);
    let stdout = kina(directory.path(), "explore nll.kina --script walk.txt").ok();
    assert!(stdout.starts_with("> next 2\n  2 of "), "{stdout}");
    let missing = kina(directory.path(), "explore nll.kina --script none.txt");
    missing.refusal(4, &["cannot read `none.txt`"]).unwrap();
    kina(directory.path(), "explore nll.kina").refusal(1, &["E0932", "--script"]).unwrap();
    kina(directory.path(), "explore nll.kina --json").refusal(1, &["E0933", "--script"]).unwrap();
    kina(directory.path(), "explore none.kina --script walk.txt").refusal(4, &["none.kina"]).unwrap();
    let help = kina(directory.path(), "explore --help").ok();
    assert!(help.contains("Example: kina-ad explore") && help.contains("--no-color"), "{help}");
}

/// All commands of the table and all keys, in every size.
fn roam(tour: &mut Tour) {
    let mut screen = Screen::new(false);
    for size in SIZES {
        for entry in TABLE.iter().filter(|e| !matches!(e.name, "quit" | "linalg")) {
            typed(tour, &mut screen, entry.example);
            let text = seen(tour, &mut screen, size);
            assert_eq!(text.lines().count(), usize::from(size.1));
        }
    }
}

#[test]
fn programs_with_nothing_to_step_through_say_so() {
    // -O0; rules that never match; no rules and no handler.
    let plain = "let x = tensor<F32, [3], @host> in x + x";
    let none = RuleOptions { no_default_rules: true, ..RuleOptions::default() };
    let cases = [
        tour_of("a.kina", NLL, Level::O0, &RuleOptions::default()),
        tour_of("b.kina", plain, Level::O2, &none),
        tour_of("c.kina", "tensor<F32, [3], @host>", Level::O2, &RuleOptions::default()),
    ];
    for mut tour in cases {
        assert_eq!(tour.limit(), 0, "{}", tour.file);
        let error = tour.run(&Command::Next(1)).unwrap_err();
        assert!(matches!(error, TourError::Nothing(_)), "{error}");
        let mut screen = Screen::new(false);
        let text = seen(&mut tour, &mut screen, (80, 24));
        assert!(text.contains("no applications"), "{text}");
        tour.run_settled(&Command::Graph).unwrap();
        assert!(tour.page().text().contains("graph at the start"), "{}", tour.page().text());
        roam(&mut tour);
    }
}

#[test]
fn device_programs_and_strange_names_are_walked_through_as_well() {
    let device = NLL.replace("@host", "@device");
    let mut tour = tour_of("device.kina", &device, Level::O2, &RuleOptions::default());
    assert!(tour.limit() > 0);
    roam(&mut tour);
    #[cfg(feature = "codegen")]
    {
        tour.run_settled(&Command::Last).unwrap();
        tour.run_settled(&Command::Linalg(Some("loss".to_owned()))).unwrap();
        assert!(tour.page().text().contains("device lowering is not available"), "{}", tour.page().text());
    }

    // Names like the numbers of classes; a file with a name that a terminal would obey, in wide letters.
    let names = "let f = fn(c1: tensor<F32, [3], @host>) -> tensor<F32, [3], @host> {
                   let c2 = c1 * 1.0 in let c3 = c2.exp() in (c3 * c2) / 1.0
                 } in
                 let c4 = tensor<F32, [3], @host> in
                 handle f(c4) with reverseMode";
    let mut tour = tour_of("日本\u{1b}[31m語\u{202e}.kina", names, Level::O2, &RuleOptions::default());
    assert!(tour.limit() > 0);
    roam(&mut tour);
    let mut screen = Screen::new(true);
    typed(&mut tour, &mut screen, "goto 1");
    let text = seen(&mut tour, &mut screen, (120, 30));
    assert!(text.contains("日本U+001B[31m語U+202E.kina") && !text.contains('\u{1b}'), "{text}");
    // A number is not taken for a name.
    let id = tour.history().find("c2").unwrap();
    assert_eq!(tour.history().find("cc0").map(usize::from), Some(0));
    assert!(usize::from(id) > 0);
    assert!(tour.history().find("c0").is_none());
}

#[test]
fn keys_do_what_the_table_says() {
    for entry in TABLE.iter().filter(|e| e.name != "quit") {
        for key in entry.keys {
            let (mut tour, mut screen) = (nll(), Screen::new(false));
            press(&mut tour, &mut screen, &["right", "right"]);
            let before = seen(&mut tour, &mut screen, (100, 30));
            press(&mut tour, &mut screen, &[key]);
            let after = seen(&mut tour, &mut screen, (100, 30));
            match entry.press {
                Press::Ask(start) => assert!(after.contains(&format!(": {start}_")), "{key}: {after}"),
                // The list is where one was.
                Press::Run("applications") => assert_eq!(tour.view(), View::Applications),
                Press::Run(_) => assert_ne!(before, after, "{key}"),
            }
        }
    }
    let (mut tour, mut screen) = (nll(), Screen::new(false));
    assert_eq!(screen.press(&mut tour, "q"), Flow::Quit);
    press(&mut tour, &mut screen, &[":", "q", "backspace"]);
    assert_eq!(screen.press(&mut tour, "ctrl-c"), Flow::Quit);
    // Tab goes through all views and comes back.
    let (mut tour, mut screen) = (nll(), Screen::new(false));
    press(&mut tour, &mut screen, &["right"]);
    let views: Vec<View> = View::ALL
        .iter()
        .map(|_| {
            press(&mut tour, &mut screen, &["tab"]);
            tour.view()
        })
        .collect();
    assert_eq!((views.len(), views[0], views[6]), (7, View::Class, View::Applications));
    // All of that stands on the screen of keys.
    let shown = command::table().join("\n");
    for key in SCROLLS.iter().flat_map(|(keys, _)| keys.iter()).chain(TABLE.iter().flat_map(|e| e.keys)) {
        assert!(shown.contains(key), "{key}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn no_commands_and_keys_in_any_order_are_too_much(
        steps in proptest::collection::vec((0..TABLE.len() + 30, 0..60usize, 20..110u16, 5..32u16), 1..40)
    ) {
        let keys = ["up", "down", "pageup", "pagedown", "home", "end", "<", ">", "w", "tab", "n", "enter", "esc", ":",
            "x", "backspace", "ctrl-u", "left", "right", "a", "e", "[", "]"];
        let (mut tour, mut screen) = (nll(), Screen::new(false));
        for (which, number, width, height) in steps {
            match TABLE.get(which) {
                // Lowering takes long, and has its own test.
                Some(entry) if entry.name == "quit" || entry.name == "linalg" => {}
                Some(entry) => {
                    let line = match entry.arguments {
                        "N" | "[N]" | "N|off" => format!("{} {number}", entry.name),
                        "[VALUE|cN]" => format!("{} c{number}", entry.name),
                        "[TEXT]" => format!("{} {}", entry.name, number % 10),
                        _ => entry.example.to_owned(),
                    };
                    press(&mut tour, &mut screen, &["esc"]);
                    typed(&mut tour, &mut screen, &line);
                }
                None => {
                    let key = keys[(which + number) % keys.len()];
                    press(&mut tour, &mut screen, &[key]);
                }
            }
            prop_assert!(tour.position() <= tour.limit());
            let text = seen(&mut tour, &mut screen, (width, height));
            prop_assert_eq!(text.lines().count(), usize::from(height));
            prop_assert!(text.contains(" of "), "{}", text);
        }
    }
}
