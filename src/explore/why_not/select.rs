//! From a question to its answers: which rules, which values, and the program compiled.

use std::collections::BTreeSet;
use std::sync::Arc;

use egg::Id;

use super::context::{Compiled, Context};
use super::{Answer, Options, RuleAnswer, defs, rewrites, vjps};
use crate::diagnostics::Diagnostic;
use crate::egraph::extract::restricted::Restrictions;
use crate::egraph::{Budget, Differentiated, no_form, result, saturate};
use crate::ir::{Graph, Level, Origin};
use crate::rules::listing::{Entry, entries};
use crate::rules::{Def, Rewrite, RuleHead, RuleOptions, RuleSet, Vjp};
use crate::{Refusal, Session};

/// A rule that a name means.
enum Subject {
    Rewrite(Arc<Rewrite>),
    Vjp(Arc<Vjp>),
    Def(Arc<Def>),
}

/// Answers why a rule was not used in a checked program, or what became of it where it was. `name` is that of a rule, as `rules list` has it,
/// of an operator, whose VJPs it then means, or the place of a rule.
///
/// # Errors
/// An unknown rule or value; a program that cannot be differentiated or rewritten.
pub fn why_not(session: &Session, graph: &Graph, name: &str, options: &Options<'_>) -> Result<Answer, Refusal> {
    let subjects = subjects(&session.rules, name, session);
    if subjects.is_empty() {
        return absent(session, name, options);
    }
    let mut program = session.differentiate(graph)?;
    let (compiled, restrictions) = compile(session, &mut program, options)?;
    let mut ctx = Context::new(session, &program, graph, &compiled, restrictions);
    let at = match options.at {
        Some(at) => Some(values(&ctx, at)?),
        None => None,
    };
    let at = at.as_ref();
    let answers = subjects.iter().map(|subject| match subject {
        Subject::Rewrite(rule) => rewrites::answer(&mut ctx, rule, at, options.shown),
        Subject::Vjp(rule) => vjps::answer(&mut ctx, rule, at, options.shown),
        Subject::Def(def) => defs::answer(&mut ctx, def, at, options.shown),
    });
    let rules = answers.collect();
    let Compiled { level, cost, stop, .. } = compiled;
    Ok(Answer { level, cost, stop, at: options.at.map(str::to_owned), rules })
}

/// The rules of a name. A rule of both directions is two.
fn subjects(rules: &RuleSet, name: &str, session: &Session) -> Vec<Subject> {
    let is_place = |head: &RuleHead| *head.rule.location == *name;
    let rewrites = rules.rewrites();
    let named: Vec<_> = rewrites.iter().filter(|r| *r.head.rule.name == *name || is_place(&r.head)).collect();
    // The direction that is named after its rule stands for both.
    let means = |r: &Arc<Rewrite>| {
        named.iter().any(|n| Arc::ptr_eq(n, r) || (n.head.span == r.head.span && r.head.rule.name.len() > name.len()))
    };
    let rewrites = rewrites.iter().filter(|r| means(r)).cloned().map(Subject::Rewrite);
    let vjps = rules.all_vjps().filter(|v| {
        let subject = v.head.rule.name.strip_prefix("vjp ").unwrap_or(&v.head.rule.name);
        let replaced = rules.replaced(v).is_some_and(|span| session.sources.file_line(span) == name);
        let by_operator = subject == name || subject.split(' ').next() == Some(name);
        *v.head.rule.name == *name || by_operator || is_place(&v.head) || replaced
    });
    let defs =
        rules.defs().filter(|d| *d.name == *name || name.strip_prefix("def ") == Some(&d.name) || is_place(&d.head));
    let vjps = vjps.cloned().map(Subject::Vjp);
    rewrites.chain(vjps).chain(defs.cloned().map(Subject::Def)).collect()
}

/// A rule that is not loaded: the default profile may have it.
fn absent(session: &Session, name: &str, options: &Options<'_>) -> Result<Answer, Refusal> {
    let other = Session::new(&RuleOptions::default())?;
    let all = entries(&other.rules);
    let answers_to = |e: &&Entry| e.answers_to(name) || *e.rule.location == *name;
    let rules: Vec<RuleAnswer> = all
        .iter()
        .filter(answers_to)
        .map(|e| RuleAnswer {
            remarks: vec![
                "it is not loaded: the default profile has it, and the rules in effect here do not".to_owned(),
            ],
            ..RuleAnswer::new(e.kind, &e.rule, &e.doc)
        })
        .collect();
    if !rules.is_empty() {
        let at = options.at.map(str::to_owned);
        return Ok(Answer { level: options.level, cost: None, stop: None, at, rules });
    }
    let loaded = entries(&session.rules);
    let names = loaded.iter().chain(&all).flat_map(|e| [&*e.rule.name, e.subject()]);
    let diagnostic = Diagnostic::error("E0402", format!("there is no rule named `{name}`"))
        .did_you_mean(name, names)
        .help("`kina-ad rules list` prints all names");
    Err(session.refusal(diagnostic.into()))
}

/// Saturates with a record, and extracts.
fn compile(
    session: &Session,
    program: &mut Differentiated,
    options: &Options<'_>,
) -> Result<(Compiled, Option<Restrictions>), Refusal> {
    let refuse = |bag| session.refusal(bag);
    let level = options.level;
    if level == Level::O0 {
        // Nothing is rewritten; the e-graph is put in order, so that it can be searched.
        let budget = Budget { iterations: 0, ..options.budget };
        saturate(program, &session.rules, level, budget).map_err(refuse)?;
        let result =
            program.program(&session.rules).map_err(|e| refuse(Diagnostic::error(e.kind.code(), e.message).into()))?;
        return Ok((Compiled { level, result, cost: None, stop: None }, None));
    }
    program.keep_record();
    let report = saturate(program, &session.rules, level, options.budget).map_err(refuse)?;
    let solved = result::problem(program).solve();
    let found = solved.and_then(|solution| Some((result::assemble(program, &solution)?, solution)));
    let Some((extracted, solution)) = found else { return Err(refuse(no_form().into())) };
    let compiled = Compiled { level, result: extracted.graph, cost: Some(extracted.cost), stop: Some(report.stop) };
    Ok((compiled, Some(Restrictions::new(solution))))
}

/// The classes that `at` means.
fn values(ctx: &Context<'_>, at: &str) -> Result<BTreeSet<Id>, Refusal> {
    let tape = &ctx.program.tape;
    let sources = &ctx.session.sources;
    if let Some((file, line)) = at.rsplit_once(':').and_then(|(f, l)| Some((f, l.parse::<u32>().ok()?))) {
        let mut classes = BTreeSet::new();
        for (id, node) in tape.iter() {
            let Origin::Program(span) = node.origin else { continue };
            let name = &*sources.file(span.file).name;
            let is_file = name == file || name.strip_suffix(file).is_some_and(|before| before.ends_with('/'));
            if is_file && sources.position(span).line == line {
                classes.insert(ctx.program.class_of_node(id));
            }
        }
        if !classes.is_empty() {
            return Ok(classes);
        }
        let diagnostic = Diagnostic::error("E0941", format!("no value of the program begins on line {line} of `{file}`"))
            .help("name the program's file and the line on which a call begins, or the value: `kina-ad grad` prints all names");
        return Err(ctx.session.refusal(diagnostic.into()));
    }
    let classes = ctx.names.classes(at);
    if !classes.is_empty() {
        return Ok(classes);
    }
    let diagnostic = Diagnostic::error("E0940", format!("there is no value named `{at}`"))
        .did_you_mean(at, ctx.names.all())
        .help("`kina-ad grad` prints the names of all values of the result; names of the program are known too");
    Err(ctx.session.refusal(diagnostic.into()))
}
