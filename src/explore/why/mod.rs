//! Why a value is computed the way it is: from the program's operator and its VJP rule, through each rewrite, to what was chosen.
//!
//! [`Why`] finds the value and the way to it: stages from the tape (`derive`), each with a proof of [`crate::egraph::explain`], flattened into
//! steps (`steps`) with the changed part marked (`phrase`). `text` and `json` show it.

mod derive;
mod json;
mod names;
mod phrase;
mod steps;
mod text;

use crate::diagnostics::{Diagnostic, SourceMap};
use crate::egraph::explain::Explainer;
use crate::egraph::explain::check::{Checked, check};
use crate::egraph::explain::closure::EquationId;
use crate::egraph::explain::proof::{By, LemmaId};
use crate::egraph::{Differentiated, Optimised};
use crate::ir::print::Printer;
use crate::ir::{Level, NodeId};
use crate::rules::RuleSet;
use derive::{Made, Stage, stages};
use names::Names;
use phrase::Line;
use steps::{Flat, flatten};

/// What is asked for beside the derivation itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Replay every step, those of operands included.
    pub proof: bool,
    /// Show the derivations of operands too, however many steps they have.
    pub all: bool,
}

/// Steps that are shown unless all are asked for.
pub const SHOWN: usize = 24;

/// The derivation of one value.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The value's name in the extracted graph.
    pub value: String,
    /// `exp(sub_1e0b)`
    pub call: String,
    pub ty: String,
    /// From the tape to the value.
    pub parts: Vec<Part>,
    /// Derivations of operands, if all were asked for: each once, in the order in which they are needed.
    pub lemmas: Vec<LemmaShown>,
    /// What the replay went through, if it was asked for.
    pub checked: Option<Checked>,
    /// Lemmas and rule instances that the derivation rests on, those of operands included.
    pub size: (usize, usize),
}

/// A part of a derivation: where it starts, and steps from there.
#[derive(Clone, Debug)]
pub struct Part {
    pub start: Start,
    pub flat: Flat,
}

/// A lemma that is shown by itself.
#[derive(Clone, Debug)]
pub struct LemmaShown {
    pub lemma: LemmaId,
    pub title: String,
    pub flat: Flat,
}

/// Where a part starts.
#[derive(Clone, Debug)]
pub enum Start {
    /// The program has it.
    Program { what: String, place: String },
    /// A VJP rule concluded it, or has it in what it concluded.
    Vjp {
        rule: String,
        place: String,
        forward: String,
        forward_place: String,
        operand: String,
        lines: Vec<Line>,
        whole: bool,
    },
    /// Differentiation added up cotangents, put a mask back on, or started with it.
    Walk { what: String, place: String },
    /// The rule of the last step before has it on its right side.
    Inside { name: String },
}

/// A program about whose values `why` is asked.
///
/// ```
/// use kina_ad::explore::why::{Options, Why};
/// use kina_ad::{CheckOptions, Level, RuleOptions, Session};
///
/// let mut session = Session::new(&RuleOptions::default())?;
/// let text = "let f = fn(x: tensor<F32, [3], @host>) -> tensor<F32, [3], @host> { x.log_softmax(axis=0).exp() } in
///             let x = tensor<F32, [3], @host> in
///             handle f(x) with reverseMode";
/// let graph = session.check("p.kina", text, &CheckOptions::default())?;
/// let mut program = session.differentiate(&graph)?;
/// program.keep_record();
/// let optimised = session.optimise(&mut program, Level::O2)?;
/// let mut why = Why::new(&program, &optimised, &session.rules, &session.sources);
/// let answer = why.answer("primal", Options { proof: true, all: false }).unwrap();
/// assert!(answer.to_text().contains("exp_of_log_softmax [real]"));
/// assert!(answer.checked.is_some_and(|checked| checked.steps > 0));
/// # Ok::<(), kina_ad::Refusal>(())
/// ```
pub struct Why<'a> {
    explainer: Explainer<'a>,
    names: Names,
    printer: Printer<'a>,
    level: Level,
}

impl<'a> Why<'a> {
    /// `program` must have the record of the saturation that `optimised` comes from ([`Differentiated::keep_record`]), unless there was none.
    pub fn new(
        program: &'a Differentiated,
        optimised: &'a Optimised,
        rules: &'a RuleSet,
        sources: &'a SourceMap,
    ) -> Why<'a> {
        let printer = Printer::new(&optimised.graph, &rules.registry, sources);
        let explainer = Explainer::new(program, rules, &optimised.graph);
        let names = Names::new(&explainer, &printer);
        Why { explainer, names, printer, level: optimised.level }
    }

    /// The derivation of a value.
    ///
    /// # Errors
    /// A name that no value has (E0951); a value that nothing in the result needs (E0952); a step that does not hold when it is replayed
    /// (E0953), which is a fault of kina-ad.
    pub fn answer(&mut self, name: &str, options: Options) -> Result<Answer, Box<Diagnostic>> {
        let value = find(name, &self.printer, &self.explainer)?;
        let stages = stages(&mut self.explainer, value).ok_or_else(|| Box::new(unexplained(name)))?;
        let goals: Vec<LemmaId> = stages.iter().map(|s| s.lemma).collect();
        let mut parts = Vec::new();
        let mut budget = if options.all { usize::MAX } else { SHOWN };
        let mut number = 0;
        let mut mentioned = Vec::new();
        for stage in &stages {
            let start = start(stage, &mut self.explainer, &self.names, &self.printer);
            let flat = flatten(stage, &mut self.explainer, &self.names, &mut number, &mut budget);
            mentioned.extend(flat.mentioned());
            parts.push(Part { start, flat });
        }
        let lemmas = if options.all { lemmas(mentioned, &mut self.explainer, &self.names) } else { Vec::new() };
        let instances: Vec<EquationId> = stages.iter().flat_map(Stage::instances).collect();
        let (lemma_count, steps) = size(&self.explainer, &goals);
        let checked = match options.proof {
            true => Some(check(&mut self.explainer, self.level, &instances, &goals).map_err(|fault| {
                Box::new(
                    Diagnostic::error("E0953", format!("the derivation of `{name}` does not hold: {fault}"))
                        .help("this is a fault of kina-ad: please report it with the program and the rule files"),
                )
            })?),
            false => None,
        };
        Ok(Answer {
            value: self.printer.names()[value.index()].clone(),
            call: self.printer.call(value),
            ty: self.printer.graph.ty(value).to_string(),
            parts,
            lemmas,
            checked,
            size: (lemma_count, steps + instances.len()),
        })
    }
}

impl Answer {
    /// For people.
    pub fn to_text(&self) -> String {
        text::text(self)
    }

    /// For programs; the fields are described in docs/explorer.md.
    pub fn to_json(&self) -> serde_json::Value {
        json::json(self)
    }
}

/// The extracted value of a name: as the graph prints it, the name of a result, or a name of the program.
fn find(name: &str, printer: &Printer<'_>, explainer: &Explainer<'_>) -> Result<NodeId, Box<Diagnostic>> {
    if let Some(index) = printer.names().iter().position(|n| n == name) {
        return Ok(NodeId(index as u32));
    }
    if let Some(node) = printer.graph.output(name) {
        return Ok(node);
    }
    let named: Vec<NodeId> = explainer
        .program
        .tape
        .iter()
        .filter(|(_, node)| node.name.as_deref() == Some(name))
        .map(|(id, _)| id)
        .collect();
    let extracted = named.iter().find_map(|id| {
        let class = explainer.class_of_tape(*id);
        explainer.classes.iter().position(|c| *c == Some(class))
    });
    if let Some(index) = extracted {
        return Ok(NodeId(index as u32));
    }
    if !named.is_empty() {
        return Err(Box::new(
            Diagnostic::error("E0952", format!("`{name}` is not computed: nothing in the result needs it any more"))
                .help("`kina-ad grad` prints the values that are; with `-O0` all that the program says are"),
        ));
    }
    let tape = explainer.program.tape.iter().filter_map(|(_, node)| node.name.as_deref());
    let candidates = printer.names().iter().map(String::as_str).chain(tape);
    Err(Box::new(Diagnostic::error("E0951", format!("there is no value `{name}`")).did_you_mean_or(
        name,
        candidates,
        "`kina-ad grad` prints the values with their names",
    )))
}

fn unexplained(name: &str) -> Diagnostic {
    Diagnostic::error("E0953", format!("no derivation of `{name}` was found in the record of the rewriting"))
        .help("this is a fault of kina-ad: please report it with the program and the rule files")
}

/// What is said of where a stage starts.
fn start(stage: &Stage, explainer: &mut Explainer<'_>, names: &Names, printer: &Printer<'_>) -> Start {
    let tape = &explainer.program.tape;
    let place = |node: NodeId| printer.origin(&tape.node(node).origin);
    match &stage.made {
        Made::Forward(node) => {
            let what = names.definition_of(explainer, *node);
            Start::Program { what, place: place(*node) }
        }
        Made::Walk(node) => {
            let what = names.definition_of(explainer, *node);
            Start::Walk { what, place: place(*node) }
        }
        Made::Vjp { concluded, equation, node } => {
            let used = &explainer.program.concluded[*concluded];
            let signature = explainer.rules.registry.op(used.rule.op).signature();
            let count = match &tape.node(used.call).kind {
                crate::ir::NodeKind::Op { operands, .. } => operands.len(),
                _ => 1,
            };
            let right = explainer.equations[*equation as usize].right;
            let marked = explainer.tape[node.index()];
            let bound = explainer.equations[*equation as usize].by.bound();
            Start::Vjp {
                rule: used.rule.head.rule.name.to_string(),
                place: used.rule.head.rule.location.to_string(),
                forward: names.definition_of(explainer, used.call),
                forward_place: place(used.call),
                operand: signature.operand_label(used.operand, count),
                lines: phrase::conclusion(explainer, names, right, marked, &bound),
                whole: right == marked,
            }
        }
        Made::Inside(term) => Start::Inside { name: names.label(explainer, *term) },
    }
}

/// Each lemma that was mentioned, then those that these mention.
fn lemmas(mentioned: Vec<LemmaId>, explainer: &mut Explainer<'_>, names: &Names) -> Vec<LemmaShown> {
    let mut known = std::collections::BTreeSet::new();
    let mut queue = std::collections::VecDeque::from(mentioned);
    let mut shown = Vec::new();
    while let Some(lemma) = queue.pop_front() {
        if !known.insert(lemma) {
            continue;
        }
        let (left, right) = {
            let proved = &explainer.proof().lemmas[lemma];
            (proved.left, proved.right)
        };
        let title = format!("{} is {}", names.label(explainer, left), names.definition(explainer, right));
        let (mut number, mut budget) = (0, usize::MAX);
        let stage = Stage { made: Made::Inside(left), lemma, left, marked: None, by: None };
        let flat = flatten(&stage, explainer, names, &mut number, &mut budget);
        queue.extend(flat.mentioned());
        shown.push(LemmaShown { lemma, title, flat });
    }
    shown
}

/// Lemmas and rule instances below some lemmas, each once.
fn size(explainer: &Explainer<'_>, goals: &[LemmaId]) -> (usize, usize) {
    let lemmas = &explainer.proof().lemmas;
    let mut needed = vec![false; lemmas.len()];
    goals.iter().for_each(|g| needed[*g] = true);
    let (mut count, mut steps) = (0, 0);
    for id in (0..lemmas.len()).rev() {
        if !needed[id] {
            continue;
        }
        count += 1;
        for link in &lemmas[id].links {
            match &link.by {
                By::Rule { .. } => steps += 1,
                By::Operands(used) => used.iter().for_each(|(_, lemma)| needed[*lemma] = true),
            }
        }
    }
    (count, steps)
}
