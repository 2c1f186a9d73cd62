//! The pipeline as calls: one [`Session`] has the rules, and takes programs from text to running code.

use std::sync::Arc;

use crate::check::{CheckOptions, Composites, check_program};
use crate::diagnostics::{Diagnostic, Diagnostics, SourceMap, Style, render};
use crate::draw::{self, Options as DrawOptions};
use crate::egraph::{self, Budget, Differentiated, Optimised};
use crate::exec::Tensor;
#[cfg(feature = "codegen")]
use crate::exec::jit::Compiled;
use crate::interp::GradReport;
use crate::ir::print::Printer;
use crate::ir::{
    AttrValue, Graph, Level, NodeId, NodeKind, Origin, Precision, Signature, TypeError, TypeErrorKind, Where,
};
use crate::rules::{self, RuleOptions, RuleSet};
use crate::run::{self, Engine, RunError};
use crate::schedule::{self, Schedule};
use crate::syntax::ast::Program;
use crate::syntax::{Form, Remarks, comments, parse_program, print_program};
use crate::verify::{self, cache::Cache};

/// Why an input was refused, with the texts to show it against.
#[derive(Clone, Debug)]
pub struct Refusal {
    pub diagnostics: Diagnostics,
    pub sources: SourceMap,
}

impl Refusal {
    /// The diagnostics as text for people.
    pub fn render(&self, style: Style) -> String {
        render(&self.diagnostics, &self.sources, style)
    }

    /// Is it about a file that cannot be read or written?
    pub fn is_io(&self) -> bool {
        self.diagnostics.iter().any(|d| matches!(d.code, "E0701" | "E0702"))
    }
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.render(Style::Plain).trim_end())
    }
}

impl std::error::Error for Refusal {}

/// Rules and sources of a compilation.
///
/// ```
/// use kina_ad::{CheckOptions, Level, RuleOptions, Session};
///
/// let mut session = Session::new(&RuleOptions::default())?;
/// let graph = session.check(
///     "square.kina",
///     "let f = fn(x: tensor<F32, [3], @host>) -> tensor<F32, [3], @host> { x * x } in
///      let x = tensor<F32, [3], @host> in
///      handle f(x) with reverseMode",
///     &CheckOptions::default(),
/// )?;
/// let mut program = session.differentiate(&graph)?;
/// let optimised = session.optimise(&mut program, Level::O2)?;
/// let names: Vec<&str> = optimised.graph.outputs.iter().map(|o| &*o.name).collect();
/// assert_eq!(names, ["primal", "g_x"]);
/// # Ok::<(), kina_ad::Refusal>(())
/// ```
#[derive(Clone, Debug)]
pub struct Session {
    pub rules: RuleSet,
    pub sources: SourceMap,
    /// Warnings of rule loading.
    pub warnings: Diagnostics,
}

impl Session {
    /// Loads and checks the rules.
    ///
    /// # Errors
    /// Everything that is wrong with the rule files.
    pub fn new(options: &RuleOptions) -> Result<Session, Refusal> {
        Session::load(options, SourceMap::new())
    }

    fn load(options: &RuleOptions, mut sources: SourceMap) -> Result<Session, Refusal> {
        let mut bag = Diagnostics::new();
        match rules::load(options, &mut sources, &mut bag) {
            Some(rules) => Ok(Session { rules, sources, warnings: bag }),
            None => Err(Refusal { diagnostics: bag, sources }),
        }
    }

    /// A session with other rules. Its texts come after those of this one, so that the places of both can be shown from it.
    ///
    /// # Errors
    /// As for [`new`](Session::new).
    pub fn beside(&self, options: &RuleOptions) -> Result<Session, Refusal> {
        Session::load(options, self.sources.clone())
    }

    /// Parses and checks a program. `name` is what its diagnostics call it.
    ///
    /// # Errors
    /// Everything that is wrong with the program.
    pub fn check(&mut self, name: &str, text: &str, options: &CheckOptions) -> Result<Graph, Refusal> {
        let program = self.parse(name, text)?;
        self.check_tree(&program, options)
    }

    /// Parses a program of either form.
    ///
    /// # Errors
    /// Everything that is wrong with its syntax.
    pub fn parse(&mut self, name: &str, text: &str) -> Result<Program, Refusal> {
        let mut bag = Diagnostics::new();
        let file = self.sources.add(name, text);
        let program = parse_program(&self.sources, file, &mut bag);
        if bag.has_errors() { Err(self.refusal(bag)) } else { Ok(program) }
    }

    /// Checks a program that [`parse`](Session::parse) gave.
    ///
    /// # Errors
    /// Everything that is wrong with its names and types.
    pub fn check_tree(&self, program: &Program, options: &CheckOptions) -> Result<Graph, Refusal> {
        let mut bag = Diagnostics::new();
        match check_program(program, &self.sources, &self.rules.registry, &self.rules, options, &mut bag) {
            Some(graph) if !bag.has_errors() => Ok(graph),
            _ => Err(self.refusal(bag)),
        }
    }

    /// A program that [`parse`](Session::parse) gave, written in a form, with the comments of its text.
    pub fn print(&self, program: &Program, form: Form) -> String {
        let comments = comments(&self.sources.file(program.body.span.file).text);
        print_program(program, form, Remarks::Source(&comments))
    }

    /// Verifies rules without a test written for them: those that were loaded as candidates, or all. `cache` knows verdicts of
    /// earlier runs and learns those of this one. What is wrong with a rule is in the report.
    ///
    /// ```
    /// use kina_ad::verify::{Options, cache::Cache};
    /// use kina_ad::{RuleOptions, Session};
    ///
    /// let directory = tempfile::tempdir()?;
    /// let file = directory.path().join("my.rules");
    /// std::fs::write(&file, "/// The sign is wrong.\nvjp atan {\n  y = atan(x)\n  -----------\n  g_x = g_y / (1.0 - x * x)\n}\n")?;
    /// let session = Session::new(&RuleOptions { candidates: vec![file], ..RuleOptions::default() })?;
    /// let report = session.verify(&Options::default(), &mut Cache::none());
    /// assert!(!report.passed());
    /// assert!(session.refusal(report.diagnostics()).to_string().contains("is not the derivative"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn verify(&self, options: &verify::Options<'_>, cache: &mut Cache) -> verify::Report {
        let mut subjects = verify::subjects(&self.rules);
        subjects.retain(|s| self.rules.is_in_question(s.head().span));
        verify::check(&subjects, &self.rules, &self.sources, options, cache)
    }

    /// Differentiates the handlers of a program.
    ///
    /// # Errors
    /// An operator without a VJP, a rule that is ill-typed where it is used.
    pub fn differentiate(&self, graph: &Graph) -> Result<Differentiated, Refusal> {
        egraph::differentiate(graph, &self.rules).map_err(|bag| self.refusal(bag))
    }

    /// Rewrites and extracts at a level.
    ///
    /// # Errors
    /// A rule that is ill-typed where it fired.
    pub fn optimise(&self, program: &mut Differentiated, level: Level) -> Result<Optimised, Refusal> {
        egraph::optimise(program, &self.rules, level, Budget::default()).map_err(|bag| self.refusal(bag))
    }

    /// Rewrites at a level, keeps the record of it and extracts nothing; `None` at -O0, where nothing is rewritten.
    ///
    /// # Errors
    /// A rule that is ill-typed where it fired.
    pub fn record(&self, program: &mut Differentiated, level: Level) -> Result<Option<egraph::Report>, Refusal> {
        if level == Level::O0 {
            return Ok(None);
        }
        program.keep_record();
        let report = egraph::saturate(program, &self.rules, level, Budget::default());
        report.map(Some).map_err(|bag| self.refusal(bag))
    }

    /// The order of work, fusion groups and the buffer plan.
    ///
    /// # Errors
    /// Values too large to be planned; a graph that cannot be scheduled, which is a fault of kina-ad.
    pub fn schedule(&self, program: &Optimised) -> Result<Schedule, Refusal> {
        schedule::schedule(&program.graph, &self.rules.registry, program.level)
            .map_err(|error| self.refused(error.code(), error.to_string(), error.help()))
    }

    /// Code for this machine, which any number of threads may [call](Compiled::call) at once.
    ///
    /// # Errors
    /// Operators on the device, each named; faults of kina-ad and of MLIR.
    #[cfg(feature = "codegen")]
    pub fn compile(&self, program: &Optimised) -> Result<Compiled, Refusal> {
        Compiled::new(&program.graph, &self.rules.registry, program.level)
            .map_err(|error| self.refused(error.code(), error.to_string(), error.help()))
    }

    /// Runs the reference interpreter, on inputs in the order of the graph's and for results in the order of its outputs.
    ///
    /// # Errors
    /// A trap, tensors that do not fit, too little memory.
    pub fn interpret(
        &self,
        program: &Optimised,
        inputs: &[&Tensor],
        precision: Precision,
    ) -> Result<Vec<Tensor>, RunError> {
        let engine = Engine::Interpreted(precision);
        let results = run::run(&program.graph, &self.rules.registry, program.level, engine, inputs)?;
        Ok(results.into_iter().map(|(_, tensor)| tensor).collect())
    }

    /// Compares every gradient with finite differences at the given inputs. `seed` picks what is sampled of large ones.
    ///
    /// # Errors
    /// As for [`interpret`](Session::interpret).
    pub fn check_gradients(
        &self,
        program: &Differentiated,
        inputs: &[&Tensor],
        seed: u64,
    ) -> Result<GradReport, RunError> {
        run::check_program(program, &self.rules.registry, inputs, seed)
    }

    /// A graph as a drawing (SVG) under a title: of what repeats, such as the layers of a network, one copy in a frame.
    ///
    /// ```
    /// use kina_ad::{CheckOptions, RuleOptions, Session};
    ///
    /// let mut session = Session::new(&RuleOptions::default())?;
    /// let graph = session.check("p.kina", "let x = tensor<F32, [3], @host> in x.exp()", &CheckOptions::default())?;
    /// let drawing = session.draw_graph(&graph, "p.kina", Default::default())?;
    /// assert!(drawing.starts_with("<svg") && drawing.contains("exp(x)"));
    /// # Ok::<(), kina_ad::Refusal>(())
    /// ```
    ///
    /// # Errors
    /// More boxes than anyone could read.
    pub fn draw_graph(&self, graph: &Graph, title: &str, options: DrawOptions) -> Result<String, Refusal> {
        let printer = Printer::new(graph, &self.rules.registry, &self.sources);
        draw::graph(&printer, title, options).map_err(|error| self.refusal(Diagnostic::from(error).into()))
    }

    /// The schedule of a program as a drawing (SVG) under a title: its steps, groups and buffers.
    ///
    /// # Errors
    /// As for [`schedule`](Session::schedule) and [`draw_graph`](Session::draw_graph).
    pub fn draw_schedule(&self, program: &Optimised, title: &str, options: DrawOptions) -> Result<String, Refusal> {
        let schedule = self.schedule(program)?;
        let printer = Printer::new(&program.graph, &self.rules.registry, &self.sources);
        draw::schedule(&schedule, &printer, title, options)
            .map_err(|error| self.refusal(Diagnostic::from(error).into()))
    }

    /// The file and line of each node of a graph: of the program, or of the rule that made it.
    pub fn locations(&self, graph: &Graph) -> Vec<Option<(Arc<str>, u32)>> {
        graph
            .iter()
            .map(|(_, node)| match &node.origin {
                Origin::Program(span) | Origin::Handler(span) => {
                    Some((self.sources.file(span.file).name.clone(), self.sources.position(*span).line))
                }
                Origin::Rule { rule, .. } => {
                    let (file, line) = rule.location.rsplit_once(':')?;
                    Some((file.into(), line.parse().ok()?))
                }
                Origin::Accumulate { .. } => None,
            })
            .collect()
    }

    /// A refusal of a whole program.
    fn refused(&self, code: &'static str, message: String, help: &'static str) -> Refusal {
        self.refusal(Diagnostic::error(code, message).help(help).into())
    }

    /// Diagnostics with the texts to show them against.
    pub fn refusal(&self, diagnostics: Diagnostics) -> Refusal {
        Refusal { diagnostics, sources: self.sources.clone() }
    }
}

/// The `def`s of the rule files, for the checker. Those with a VJP are operators of the registry instead.
impl Composites for RuleSet {
    fn names(&self) -> Vec<&str> {
        self.defs().map(|d| &*d.name).collect()
    }

    fn signature(&self, name: &str) -> Option<&Signature> {
        if self.registry.id(name).is_some() {
            return None;
        }
        self.def(name).map(|d| &d.signature)
    }

    fn expand(
        &self,
        name: &str,
        graph: &mut Graph,
        operands: Vec<NodeId>,
        attrs: Vec<AttrValue>,
        origin: Origin,
    ) -> Result<NodeId, TypeError> {
        let first = graph.len();
        let expanded = RuleSet::expand(self, name, graph, &operands, &attrs, vec![name.into()])?;
        let Some(id) = expanded else {
            let message = format!("there is no definition of `{name}`");
            return Err(TypeError::new(TypeErrorKind::Attribute, Where::Call, message));
        };
        // What stands for the call itself belongs to the program's line; the nodes inside name the `def`.
        if id.index() >= first && matches!(graph.node(id).kind, NodeKind::Op { .. }) {
            graph.node_mut(id).origin = origin;
        }
        Ok(id)
    }
}
