//! The forms of a class: every e-node that it can be computed by, with what that costs and who made it.

use egg::{Id, Language};
use rustc_hash::FxHashMap;

use super::Differentiated;
use super::cost::Cost;
use super::extract::{ClassIndex, Prices, Problem, Solution};
use super::language::ENode;
use crate::ir::{Origin, TensorType};

/// One way to compute a class.
#[derive(Clone, Debug)]
pub struct Form {
    /// With the classes of its operands as they are now.
    pub node: ENode,
    /// Cost of the call itself; `None` for what cannot be computed: a composite, a cotangent in waiting.
    pub own: Option<Cost>,
    pub total: Total,
    /// Is it what the extraction computes the class by?
    pub chosen: bool,
    /// Who made the first e-node of this form.
    pub origin: Option<Origin>,
    /// The number of that e-node.
    pub made: usize,
}

/// What a form costs with all that it needs, each value in the form that was chosen for it and paid once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Total {
    Cost(Cost),
    /// It needs the class itself.
    Circular,
    /// Something that it needs cannot be computed.
    Impossible,
    /// Too much to add up: very many forms, or a value of a very large program that no result needs.
    Unknown,
}

/// The forms of one class.
#[derive(Clone, Debug)]
pub struct Forms {
    /// As the e-graph calls it now.
    pub class: Id,
    pub ty: Option<TensorType>,
    /// Is it among the values of the extracted graph, or could it be: does any form of a result need it?
    pub is_needed: bool,
    /// The chosen one, then cheapest first, then those that cannot be computed.
    pub forms: Vec<Form>,
}

/// Classes that are looked at to add up the totals of one class.
const STEPS: usize = 4_000_000;

/// Programs of more e-nodes are extracted once and not again for a value that no result needs.
const LARGE: usize = 50_000;

/// What computes each class, ready for questions about forms.
#[derive(Clone, Debug)]
pub struct Choices {
    solution: Solution,
    index: FxHashMap<Id, ClassIndex>,
}

impl Choices {
    pub fn new(solution: Solution) -> Choices {
        let index = solution.classes().iter().enumerate().map(|(i, id)| (*id, i)).collect();
        Choices { solution, index }
    }

    /// The cost of all that is reachable from the operands of an e-node, and its own.
    fn total(&self, own: Cost, operands: &[Id], class: Id, seen: &mut Vec<u32>, walk: u32, fuel: &mut usize) -> Total {
        seen.resize(self.solution.classes().len(), 0);
        let mut sum = own;
        let mut stack: Vec<ClassIndex> = Vec::new();
        for operand in operands {
            if *operand == class {
                return Total::Circular;
            }
            match self.index.get(operand) {
                Some(index) => stack.push(*index),
                None => return Total::Impossible,
            }
        }
        while let Some(index) = stack.pop() {
            if seen[index] == walk {
                continue;
            }
            seen[index] = walk;
            if self.solution.classes()[index] == class {
                return Total::Circular;
            }
            if *fuel == 0 {
                return Total::Unknown;
            }
            *fuel -= 1;
            let Some(choice) = self.solution.choice(index) else { return Total::Impossible };
            sum = sum.saturating_add(choice.cost);
            stack.extend(&choice.children);
        }
        Total::Cost(sum)
    }
}

/// The forms of the class of an e-node; `None` if there is no such e-node or it is an attribute. Without `choices` (nothing can be
/// extracted) no form has a total.
pub fn forms(program: &Differentiated, id: Id, choices: Option<&Choices>) -> Option<Forms> {
    let space = &program.space;
    let egraph = &space.egraph;
    if usize::from(id) >= egraph.nodes().len() || egraph[id].data.attr().is_some() {
        return None;
    }
    let class = egraph.find(id);
    let is_needed = choices.is_some_and(|c| c.index.contains_key(&class));
    // What no result needs was not thought of when the program was extracted. In a large program that takes too long now.
    let is_large = egraph.nodes().len() > LARGE;
    let apart = match choices {
        Some(_) if !is_needed && !is_large => Problem::new(space, &[class]).solve().map(Choices::new),
        _ => None,
    };
    let is_unknown = choices.is_some() && !is_needed && is_large;
    let choices = if is_unknown { None } else { apart.as_ref().or(choices) };
    let chosen = choices.and_then(|c| c.solution.choice(*c.index.get(&class)?)).map(|c| space.canonical(&c.node));

    let mut makers: FxHashMap<ENode, usize> = FxHashMap::default();
    for (index, node) in egraph.nodes().iter().enumerate() {
        if egraph.find(Id::from(index)) == class {
            makers.entry(space.canonical(node)).or_insert(index);
        }
    }
    let mut prices = Prices::default();
    let mut forms: Vec<Form> = Vec::new();
    for node in &egraph[class].nodes {
        let node = space.canonical(node);
        let made = makers.get(&node).copied().unwrap_or(usize::from(class));
        let own = prices.of(space, class, &node);
        let chosen = chosen.as_ref() == Some(&node);
        let origin = space.class_origin(Id::from(made)).cloned();
        let total = if is_unknown && own.is_some() { Total::Unknown } else { Total::Impossible };
        forms.push(Form { node, own, total, chosen, origin, made });
    }
    let key = |form: &Form| (!form.chosen, form.own.is_none(), form.own, form.made);
    forms.sort_by_key(key);
    if let Some(choices) = choices {
        let (mut seen, mut fuel) = (Vec::new(), STEPS);
        for (walk, form) in forms.iter_mut().enumerate() {
            let Some(own) = form.own else { continue };
            let operands: Vec<Id> =
                form.node.children().iter().copied().filter(|child| space.ty(*child).is_some()).collect();
            form.total = choices.total(own, &operands, class, &mut seen, walk as u32 + 1, &mut fuel);
        }
    }
    forms.sort_by_key(|form| (!form.chosen, form.total.rank(), form.own, form.made));
    Some(Forms { class, ty: space.ty(class).map(|ty| (**ty).clone()), is_needed, forms })
}

impl Total {
    /// Known costs first, ascending.
    fn rank(self) -> (u8, Cost) {
        match self {
            Total::Cost(cost) => (0, cost),
            Total::Unknown => (1, 0),
            Total::Circular => (2, 0),
            Total::Impossible => (3, 0),
        }
    }
}

impl Differentiated {
    /// For each class, by the number that it has now, its first e-node.
    pub fn first_of_classes(&self) -> Vec<Id> {
        let egraph = &self.space.egraph;
        let count = egraph.nodes().len();
        let mut first: Vec<Id> = (0..count).map(Id::from).collect();
        for index in (0..count).rev() {
            first[usize::from(egraph.find(Id::from(index)))] = Id::from(index);
        }
        first
    }

    /// The class of an e-node as it is called now; `None` if there is no such e-node.
    pub fn class_of(&self, id: Id) -> Option<Id> {
        (usize::from(id) < self.space.egraph.nodes().len()).then(|| self.space.egraph.find(id))
    }
}
