//! Does a mutant mean something else than its rule? Decided by values, not by the checker.
//!
//! - A `vjp`: its conclusions are compared with those of the original, kinks with the conclusions they state.
//! - A `def`: its value is compared with that of the original.
//! - A `rewrite` makes one claim: both sides are equal. So a mutant means something else if its own sides differ, or if it never
//!   fires. `[exact]` claims every bit in F32 and F64 as well.
//!
//! Values are those of 256-bit arithmetic with exponents that do not run out.

use std::collections::BTreeMap;
use std::sync::Mutex;

use kina_ad::interp::precise::{Big, PreciseArray, evaluate};
use kina_ad::ir::{Array, DType, Graph, NodeId, Output, TensorType, Values};
use kina_ad::rules::{Def, DomainCompare, Rewrite, RewriteClass, RuleSet, Vjp};

use super::build::{Expanding, Sides, Silent, input, premise, said, typed};
use super::instances;
use super::mutants::{Mutant, Rule};
use super::points::{Draw, Points, integer_bounds};

/// Elements at which what counts as equal was compared.
pub const POINTS: usize = 10_000;
/// Rounds over all instances, whatever they have to compare.
const ROUNDS: usize = 3_000;

/// In this order: a difference at ordinary points is found before one at ties, infinities and NaN.
const ORDER: [Draw; 8] =
    [Draw::Plain, Draw::Unit, Draw::Positive, Draw::Large, Draw::Wide, Draw::Crowded, Draw::Grid, Draw::Special];

#[derive(Clone, Debug, PartialEq)]
pub enum Meaning {
    /// It means something else, as this shows; the kind of points that showed it.
    Changed { shown: String, at: At },
    /// Equal at that many points.
    Same(usize),
}

/// Where a difference was found first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum At {
    /// The rule fires elsewhere, or is ill-typed.
    Types,
    Ordinary,
    /// At ties and multiples of a half only.
    Ties,
    /// At zeros, infinities and NaN only.
    Special,
    /// In the last bits of F32 or F64 only.
    Bits,
}

fn types(shown: impl Into<String>) -> Meaning {
    Meaning::Changed { shown: shown.into(), at: At::Types }
}

/// Two values that should be equal; `None` is zero.
struct Pair {
    left: Option<NodeId>,
    right: Option<NodeId>,
    slot: usize,
}

/// `value` is stated for `conclusion` where `condition` holds.
struct Claim {
    condition: NodeId,
    value: NodeId,
    conclusion: Option<NodeId>,
}

/// An instance.
struct Case {
    graph: Graph,
    pairs: Vec<Pair>,
    cotangent: Option<NodeId>,
    /// By input.
    domain: Vec<Vec<(DomainCompare, f64)>>,
    /// Every bit counts in the dtypes' own arithmetic too.
    exact: bool,
    claims: [Vec<Claim>; 2],
}

/// What is known of rewrites as they are.
#[derive(Default)]
pub struct Known {
    /// Do the sides of the original agree at infinities and NaN?
    special: Mutex<BTreeMap<String, bool>>,
}

/// Decides.
pub fn of(mutant: &Mutant, original: &RuleSet, changed: &RuleSet, known: &Known) -> Meaning {
    match &mutant.rule {
        Rule::Vjp { op, alternative } => {
            let find = |rules: &RuleSet| {
                let id = rules.registry.id(op)?;
                rules.vjps(id).iter().find(|v| v.alternative == *alternative).cloned()
            };
            match (find(original), find(changed)) {
                (Some(a), Some(b)) => vjp(&a, &b, original, changed),
                _ => types("the rule is gone"),
            }
        }
        Rule::Rewrite(name) => rewrite(name, original, changed, known),
        Rule::Def(name) => match (original.def(name), changed.def(name)) {
            (Some(a), Some(b)) => def(a, b, original, changed),
            _ => types("the definition is gone"),
        },
    }
}

fn vjp(original: &Vjp, mutant: &Vjp, rules: &RuleSet, changed: &RuleSet) -> Meaning {
    let mut cases = Vec::new();
    for (operands, attrs) in rules.registry.op(original.op).instances() {
        let mut graph = Graph::new();
        let Some(premise) = premise(&mut graph, original.op, rules, &operands, &attrs, original.head.span) else {
            continue;
        };
        let first = said(&mut graph, original, rules, &premise);
        let second = said(&mut graph, mutant, changed, &premise);
        let (first, second) = match (first, second) {
            (Err(Silent::DoesNotFire), Err(Silent::DoesNotFire)) | (Err(Silent::IllTyped(_)), _) => continue,
            (Ok(_), Err(Silent::DoesNotFire)) => return types("does not fire where the rule does"),
            (Err(Silent::DoesNotFire), Ok(_)) => return types("fires where the rule does not"),
            (_, Err(Silent::IllTyped(why))) => return types(why),
            (Ok(first), Ok(second)) => (first, second),
        };
        let pairs = first
            .conclusions
            .iter()
            .zip(&second.conclusions)
            .enumerate()
            .filter(|(_, (a, b))| a.is_some() || b.is_some())
            .map(|(slot, (a, b))| Pair { left: *a, right: *b, slot })
            .collect();
        let claims = [&first, &second].map(|said| {
            let claim = |(operand, condition, value): &(usize, NodeId, NodeId)| Claim {
                condition: *condition,
                value: *value,
                conclusion: said.conclusions.get(*operand).copied().flatten(),
            };
            said.kinks.iter().map(claim).collect()
        });
        // Outside its domain a rule says nothing. Inputs are the operands and the cotangent.
        let of_input = |i: usize| {
            first
                .domain
                .iter()
                .filter(|(operand, ..)| *operand == i)
                .map(|(_, compare, bound)| (*compare, *bound))
                .collect()
        };
        let domain = (0..graph.inputs.len()).map(of_input).collect();
        cases.push(Case { graph, pairs, cotangent: Some(premise.cotangent), domain, exact: false, claims });
    }
    compare(cases, rules, true)
}

fn def(original: &Def, mutant: &Def, rules: &RuleSet, changed: &RuleSet) -> Meaning {
    if original.signature != mutant.signature {
        return types("its signature is another");
    }
    let mut cases = Vec::new();
    for (operands, attrs) in instances::of_def(&original.name, rules) {
        let mut graph = Graph::new();
        let inputs: Vec<NodeId> = operands.iter().map(|ty| input(&mut graph, ty.clone(), original.head.span)).collect();
        let mut build = |rules: &RuleSet, def: &Def| {
            let mut builder = Expanding { rules, graph: &mut graph, span: def.head.span };
            kina_ad::rules::term::expand(def, &inputs, &attrs, &mut builder)
        };
        let Ok(left) = build(rules, original) else { continue };
        let right = match build(changed, mutant) {
            Ok(right) => right,
            Err(error) => return types(error.to_string()),
        };
        if graph.ty(left) != graph.ty(right) {
            return types(format!("{} for {}", graph.ty(right), graph.ty(left)));
        }
        let pairs = vec![Pair { left: Some(left), right: Some(right), slot: 0 }];
        let domain = vec![Vec::new(); graph.inputs.len()];
        let claims = [Vec::new(), Vec::new()];
        cases.push(Case { graph, pairs, cotangent: None, domain, exact: false, claims });
    }
    compare(cases, rules, true)
}

fn rewrite(name: &str, original: &RuleSet, changed: &RuleSet, known: &Known) -> Meaning {
    let find = |rules: &RuleSet| rules.rewrites().iter().find(|r| &*r.head.rule.name == name).cloned();
    let (Some(before), Some(after)) = (find(original), find(changed)) else { return types("the rule is gone") };
    let special = {
        let mut known = known.special.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        *known.entry(name.to_owned()).or_insert_with(|| {
            let cases = cases_of_rewrite(&before, original).unwrap_or_default();
            matches!(compare(cases, original, true), Meaning::Same(_))
        })
    };
    match cases_of_rewrite(&after, changed) {
        Err(meaning) => meaning,
        Ok(cases) if cases.is_empty() => types("it never fires"),
        Ok(cases) => compare(cases, changed, special),
    }
}

fn cases_of_rewrite(rewrite: &Rewrite, rules: &RuleSet) -> Result<Vec<Case>, Meaning> {
    let mut cases = Vec::new();
    for Sides { graph, left, inputs, right, domain } in instances::of_rewrite(rewrite, rules) {
        let Some(right) = right else { return Err(types("the right side has another type")) };
        let of_input = |node: &NodeId| {
            let var = inputs.iter().position(|i| *i == Some(*node));
            domain.iter().filter(|(v, ..)| Some(*v) == var).map(|(_, compare, bound)| (*compare, *bound)).collect()
        };
        let domain = graph.inputs.iter().map(of_input).collect();
        let pairs = vec![Pair { left: Some(left), right: Some(right), slot: 0 }];
        let exact = rewrite.class == RewriteClass::Exact;
        cases.push(Case { graph, pairs, cotangent: None, domain, exact, claims: [Vec::new(), Vec::new()] });
    }
    Ok(cases)
}

/// Compares all pairs at [`POINTS`] elements or more each.
fn compare(mut cases: Vec<Case>, rules: &RuleSet, special: bool) -> Meaning {
    for case in &mut cases {
        let pairs = case.pairs.iter().flat_map(|p| [p.left, p.right]).flatten();
        let claims = case.claims.iter().flatten().flat_map(|c| [c.condition, c.value]);
        case.graph.outputs = pairs.chain(claims).map(|node| Output { name: "value".into(), node }).collect();
    }
    let mut points = Points::new(11);
    let mut compared: BTreeMap<usize, usize> = cases.iter().flat_map(|c| &c.pairs).map(|p| (p.slot, 0)).collect();
    let mut met = [0, 0];
    let mut broken = [false, false];
    for round in 0..ROUNDS {
        let draw = ORDER[round % ORDER.len()];
        if draw == Draw::Special && !special {
            continue;
        }
        for case in &cases {
            let inputs = draw_inputs(case, draw, &mut points);
            if let Some(found) = at_point(case, rules, &inputs, draw, &mut compared, &mut met, &mut broken) {
                return found;
            }
        }
        if round + 1 >= ORDER.len() && compared.values().all(|n| *n >= POINTS) {
            break;
        }
    }
    if broken[1] && !broken[0] {
        return Meaning::Changed { shown: "a kink states what the rule does not conclude".into(), at: At::Ties };
    }
    if met[1] == 0 && met[0] > 0 {
        return Meaning::Changed { shown: "a kink that no point has".into(), at: At::Ties };
    }
    Meaning::Same(compared.values().copied().min().unwrap_or(0))
}

fn draw_inputs(case: &Case, draw: Draw, points: &mut Points) -> Vec<Array> {
    let bounds = integer_bounds(&case.graph);
    let mut inputs = Vec::new();
    for (node, domain) in case.graph.inputs.iter().zip(&case.domain) {
        let ty = case.graph.ty(*node);
        if case.cotangent == Some(*node) {
            inputs.push(points.cotangent(ty));
            continue;
        }
        let keep = |v: f64| {
            v.is_nan()
                || domain.iter().all(|(compare, bound)| match compare {
                    DomainCompare::Lt => v < *bound,
                    DomainCompare::Le => v <= *bound,
                    DomainCompare::Gt => v > *bound,
                    DomainCompare::Ge => v >= *bound,
                })
        };
        inputs.push(points.array(ty, draw, bounds.get(node).copied(), &keep));
    }
    inputs
}

/// The first difference at one point.
fn at_point(
    case: &Case,
    rules: &RuleSet,
    inputs: &[Array],
    draw: Draw,
    compared: &mut BTreeMap<usize, usize>,
    met: &mut [usize; 2],
    broken: &mut [bool; 2],
) -> Option<Meaning> {
    // An index out of its bound is no point.
    let values = evaluate(&case.graph, &rules.registry, inputs).ok()?;
    let greatest = values.iter().flat_map(|v| v.floats()).filter_map(|b| b.exponent()).max().unwrap_or(0);
    let at = match draw {
        Draw::Special => At::Special,
        Draw::Grid | Draw::Crowded => At::Ties,
        _ => At::Ordinary,
    };
    for pair in &case.pairs {
        let ty = case.graph.ty(pair.left.or(pair.right)?);
        let value = |node: Option<NodeId>| node.map(|n| &values[n.index()]);
        let (left, right) = (value(pair.left), value(pair.right));
        if let Some(element) = first_difference(left, right, ty, greatest) {
            let shown = format!("{} at {}", show_pair(left, right, element), show_inputs(inputs, element));
            return Some(Meaning::Changed { shown, at });
        }
        *compared.entry(pair.slot).or_insert(0) += ty.shape.elements() as usize;
    }
    for (side, claims) in case.claims.iter().enumerate() {
        for claim in claims {
            let (condition, stated) = (&values[claim.condition.index()], &values[claim.value.index()]);
            let concluded = claim.conclusion.map(|c| &values[c.index()]);
            for (i, holds) in condition.bools().iter().enumerate() {
                if *holds {
                    met[side] += 1;
                    let found = concluded.map_or(Big::ZERO, |c| c.floats()[i]);
                    broken[side] |= !equal(found, stated.floats()[i], greatest);
                }
            }
        }
    }
    if case.exact {
        let nodes: Vec<NodeId> = case.pairs.iter().flat_map(|p| [p.left, p.right]).flatten().collect();
        let arrays = typed(&case.graph, &rules.registry, inputs, &nodes)?;
        for (pair, both) in case.pairs.iter().zip(arrays.chunks(2)) {
            let _ = pair;
            if let [left, right] = both
                && let Some(i) = bit_difference(left, right)
            {
                let shown = format!("{:?} and {:?} at {}", left.floats()[i], right.floats()[i], show_inputs(inputs, i));
                return Some(Meaning::Changed { shown, at: At::Bits });
            }
        }
    }
    None
}

/// Equal to 60 bits, or within 2^-170 of the greatest value that occurred on the way.
fn equal(a: Big, b: Big, greatest: i64) -> bool {
    if a.is_nan() || b.is_nan() {
        return a.is_nan() && b.is_nan();
    }
    if a == b {
        return true;
    }
    if a.is_infinite() || b.is_infinite() {
        return false;
    }
    let size = a.exponent().max(b.exponent()).unwrap_or(0);
    (a - b).exponent().is_none_or(|e| e <= size - 60 || e <= greatest - 170)
}

fn first_difference(
    left: Option<&PreciseArray>,
    right: Option<&PreciseArray>,
    ty: &TensorType,
    greatest: i64,
) -> Option<usize> {
    match ty.dtype {
        DType::F32 | DType::F64 => (0..ty.shape.elements() as usize).find(|i| {
            let at = |array: Option<&PreciseArray>| array.map_or(Big::ZERO, |a| a.floats()[*i]);
            !equal(at(left), at(right), greatest)
        }),
        _ => {
            let (left, right) = (left?, right?);
            let ints = left.ints().iter().zip(right.ints()).position(|(a, b)| a != b);
            ints.or_else(|| left.bools().iter().zip(right.bools()).position(|(a, b)| a != b))
        }
    }
}

fn bit_difference(left: &Array, right: &Array) -> Option<usize> {
    let bits = |v: f64| if v.is_nan() { f64::NAN.to_bits() } else { v.to_bits() };
    left.floats().iter().zip(right.floats()).position(|(a, b)| bits(*a) != bits(*b))
}

fn show_pair(left: Option<&PreciseArray>, right: Option<&PreciseArray>, element: usize) -> String {
    let at = |array: Option<&PreciseArray>| match array.map(|a| &a.values) {
        None => "0".to_owned(),
        Some(Values::Float(v)) => v.get(element).map_or_else(String::new, |b| b.to_string()),
        Some(Values::Int(v)) => v.get(element).map_or_else(String::new, ToString::to_string),
        Some(Values::Bool(v)) => v.get(element).map_or_else(String::new, ToString::to_string),
    };
    format!("{} and {}", at(left), at(right))
}

fn show_inputs(inputs: &[Array], element: usize) -> String {
    let one = |array: &Array| match &array.values {
        Values::Float(v) => format!("{:?}", v.get(element).or(v.first())),
        Values::Int(v) => format!("{:?}", v.get(element).or(v.first())),
        Values::Bool(v) => format!("{:?}", v.get(element).or(v.first())),
    };
    let shown: Vec<String> = inputs.iter().map(|a| one(a).replace("Some(", "").replace(')', "")).collect();
    format!("({})", shown.join(", "))
}
