//! The two functions: `@main` on tensors, and the entry on buffers with a status.

use melior::Context;
use melior::ir::attribute::{ArrayAttribute, StringAttribute, TypeAttribute};
use melior::ir::r#type::FunctionType;
use melior::ir::{Attribute, BlockRef, Location, Module, OperationRef, Type, Value};

use super::builder::{Builder, Generic, Operand, argument, refused};
use super::emit::{Emitter, Memory, load_at};
use super::forall::has_rows;
use super::part::Strip;
use super::{LowerError, LowerOptions, TrapMode};
use crate::ir::kernel::identity;
use crate::ir::{DType, Graph};
use crate::schedule::{Group, Phase, Schedule, Step};

/// The symbol of a phase of the status form.
pub fn entry(phase: usize) -> String {
    format!("kina_phase_{phase}")
}

/// Builds the module, not yet verified.
pub(super) fn build<'c>(
    context: &'c Context,
    graph: &Graph,
    schedule: &Schedule,
    options: &LowerOptions,
) -> Result<Module<'c>, LowerError> {
    let unknown = Location::unknown(context);
    let module = Module::new(unknown);
    let b = Builder { context, block: module.body(), module: module.body(), location: unknown };
    match options.traps {
        TrapMode::Assert => main_function(&b, graph, schedule, options)?,
        TrapMode::Status => match &options.symbol {
            Some(symbol) => status_function(&b, graph, schedule, options, symbol, None)?,
            None => {
                for (i, phase) in schedule.phases().iter().enumerate() {
                    status_function(&b, graph, schedule, options, &entry(i), Some(phase))?;
                }
            }
        },
    }
    Ok(module)
}

fn name_attribute<'c>(b: &Builder<'c, '_>, name: &str, more: &str) -> Result<Attribute<'c>, LowerError> {
    b.attribute(&format!("{{kina.name = {}{more}}}", StringAttribute::new(b.context, name)))
}

/// Appends a function with an empty first block.
fn function<'c, 'a>(
    b: &Builder<'c, 'a>,
    name: &str,
    arguments: &[(Type<'c>, Attribute<'c>)],
    results: &[(Type<'c>, Attribute<'c>)],
    more: &[(&str, Attribute<'c>)],
) -> Result<(OperationRef<'c, 'a>, BlockRef<'c, 'a>), LowerError> {
    let split =
        |all: &[(Type<'c>, Attribute<'c>)]| -> (Vec<Type<'c>>, Vec<Attribute<'c>>) { all.iter().copied().unzip() };
    let ((argument_types, argument_attrs), (result_types, result_attrs)) = (split(arguments), split(results));
    let ty = FunctionType::new(b.context, &argument_types, &result_types);
    let mut attributes = vec![
        ("sym_name", b.string(name)),
        ("function_type", TypeAttribute::new(ty.into()).into()),
        ("arg_attrs", ArrayAttribute::new(b.context, &argument_attrs).into()),
        ("res_attrs", ArrayAttribute::new(b.context, &result_attrs).into()),
    ];
    attributes.extend_from_slice(more);
    b.region_op("func.func", &[], &[], &attributes, &argument_types)
}

/// `func.func @main(inputs) -> (results)` on tensors.
fn main_function(
    b: &Builder<'_, '_>,
    graph: &Graph,
    schedule: &Schedule,
    options: &LowerOptions,
) -> Result<(), LowerError> {
    let ty = |n: crate::ir::NodeId| b.tensor(&graph.ty(n).shape, b.stored(graph.ty(n).dtype));
    let mut arguments = Vec::new();
    for i in &graph.inputs {
        arguments.push((ty(*i), name_attribute(b, graph.node(*i).name.as_deref().unwrap_or(""), "")?));
    }
    let mut results = Vec::new();
    for o in &graph.outputs {
        results.push((ty(o.node), name_attribute(b, &o.name, "")?));
    }
    let interface = [("llvm.emit_c_interface", b.attribute("unit")?)];
    let (_, block) = function(b, "main", &arguments, &results, &interface)?;
    let inputs = (0..graph.inputs.len()).map(|i| argument(block, i)).collect::<Result<Vec<_>, _>>()?;
    let mut emitter = Emitter::new(schedule, options.level, inputs, None);
    let mut steps = Steps { graph, options, b: b.at(block), exits: None, share: None };
    steps.run(&mut emitter, &schedule.steps)?;
    let b = steps.b;
    let mut values = Vec::new();
    for o in &graph.outputs {
        values.push(emitter.whole(&b, o.node.into())?);
    }
    b.op("func.return", &values, &[], &[])?;
    Ok(())
}

/// `func.func @NAME(inputs.., outputs.., workspace) -> i32` on buffers: all steps, or those of a phase. No two arguments
/// overlap, except inputs with each other. A phase has three more arguments, `scratch`, which no other thread uses, `begin`
/// and `end`; a phase of rows computes those in `begin..end`, others ignore the range. Where there are no phases, the scratch
/// memory is the end of the workspace.
fn status_function(
    b: &Builder<'_, '_>,
    graph: &Graph,
    schedule: &Schedule,
    options: &LowerOptions,
    name: &str,
    phase: Option<&Phase>,
) -> Result<(), LowerError> {
    // Bare pointers to buffers without elements have no lowering in MLIR. Nothing touches such an argument, so it may be
    // of any type.
    let ty = |n: crate::ir::NodeId| {
        let (shape, element) = (&graph.ty(n).shape, b.stored(graph.ty(n).dtype));
        if shape.elements() == 0 { b.memref(&[1], element) } else { b.memref(shape, element) }
    };
    let alone = ", llvm.noalias";
    let mut arguments = Vec::new();
    for i in &graph.inputs {
        arguments.push((ty(*i), name_attribute(b, graph.node(*i).name.as_deref().unwrap_or(""), alone)?));
    }
    for o in &graph.outputs {
        arguments.push((ty(o.node), name_attribute(b, &o.name, alone)?));
    }
    let mut memory = |name: &str, bytes: u64| -> Result<(), LowerError> {
        arguments.push((b.memref(&[bytes.max(1)], b.int_type(8)), name_attribute(b, name, alone)?));
        Ok(())
    };
    if phase.is_none() {
        memory("workspace", schedule.temporaries(1))?;
    } else {
        memory("workspace", schedule.workspace)?;
        memory("scratch", schedule.scratch)?;
        arguments.push((b.index_type(), name_attribute(b, "begin", "")?));
        arguments.push((b.index_type(), name_attribute(b, "end", "")?));
    }
    let status = b.int_type(32);
    let (op, block) = function(b, name, &arguments, &[(status, b.attribute("{}")?)], &[])?;
    let all = (0..arguments.len()).map(|i| argument(block, i)).collect::<Result<Vec<_>, _>>()?;
    let (inputs, rest) = all.split_at(graph.inputs.len());
    let (outputs, rest) = rest.split_at(graph.outputs.len());
    let (workspace, scratch, range) = match *rest {
        [workspace] => {
            let start = b.at(block).constant_index(schedule.workspace)?;
            let ty = b.memref(&[schedule.scratch.max(1)], b.int_type(8));
            let scratch = match schedule.scratch {
                0 => workspace,
                _ => b.at(block).value("memref.view", &[workspace, start], ty, &[])?,
            };
            (workspace, scratch, None)
        }
        [workspace, scratch, begin, end] => (workspace, scratch, Some((begin, end))),
        _ => return Err(refused("no workspace")),
    };
    let memory = Memory {
        outputs: outputs.iter().zip(&graph.outputs).map(|(v, o)| (*v, graph.ty(o.node).shape.clone())).collect(),
        workspace,
        scratch,
        entry: block,
    };
    let fail = b.append_block(op, &[status])?;
    b.at(fail).op("func.return", &[argument(fail, 0)?], &[], &[])?;
    let mut emitter = Emitter::new(schedule, options.level, inputs.to_vec(), Some(memory));
    let share = range.filter(|_| phase.is_some_and(|p| p.rows.is_some()));
    let part = phase.map_or(0..schedule.steps.len(), |p| p.steps.clone());
    let mut steps = Steps { graph, options, b: b.at(block), exits: Some((op, fail)), share };
    steps.run(&mut emitter, &schedule.steps[part])?;
    let b = steps.b;
    let ok = b.constant_int(0, status)?;
    b.op("func.return", &[ok], &[], &[])?;
    Ok(())
}

/// The steps of a schedule, emitted one after the other.
struct Steps<'c, 'a, 's> {
    graph: &'s Graph,
    options: &'s LowerOptions,
    b: Builder<'c, 'a>,
    /// Where failed checks go: the function, and its block that returns a status. `None`: they assert.
    exits: Option<(OperationRef<'c, 'a>, BlockRef<'c, 'a>)>,
    /// The range of rows to compute, counted through all row dimensions; everything if `None`.
    share: Option<(Value<'c, 'a>, Value<'c, 'a>)>,
}

impl<'c, 'a> Steps<'c, 'a, '_> {
    fn run(&mut self, emitter: &mut Emitter<'c, 'a, '_>, steps: &[Step]) -> Result<(), LowerError> {
        let schedule = emitter.schedule;
        for step in steps {
            match step {
                Step::Check(site) => self.check(emitter, *site)?,
                Step::Run(g) => self.group(emitter, &schedule.groups[*g])?,
                Step::Copy { from, output } => {
                    // On tensors a result may be named twice.
                    if emitter.shape(*from).elements() == 0 {
                        continue;
                    }
                    if let Some(to) = emitter.memory.as_ref().and_then(|m| m.outputs.get(*output)).map(|(v, _)| *v) {
                        let from = emitter.whole(&self.b, *from)?;
                        self.b.op("memref.copy", &[from, to], &[], &[])?;
                    }
                }
            }
        }
        Ok(())
    }

    fn locate(&self, node: crate::ir::NodeId) -> Builder<'c, 'a> {
        let location = match self.options.locations.get(node.index()) {
            Some(Some((file, line))) => Location::new(self.b.context, file, *line as usize, 1),
            _ => Location::unknown(self.b.context),
        };
        let name = self.graph.node(node).name.as_deref();
        let location = match name {
            Some(name) => Location::name(self.b.context, name, location),
            None => location,
        };
        Builder { location, ..self.b }
    }

    fn group(&mut self, emitter: &mut Emitter<'c, 'a, '_>, group: &Group) -> Result<(), LowerError> {
        emitter.start_group();
        if emitter.memory.is_some() && group.rows().contains(&0) {
            return Ok(());
        }
        if emitter.memory.is_none() && has_rows(emitter, group) {
            return emitter.forall(group, &|node| self.locate(node));
        }
        // Other nests on tensors stand one after the other: rows are a matter of memory.
        let rows = if emitter.memory.is_some() { group.rows() } else { &[] };
        if rows.is_empty() {
            emitter.share = match (self.share, emitter.schedule.shared_dim(group)) {
                (Some((begin, end)), Some(dim)) => {
                    let length = self.b.value("arith.subi", &[end, begin], self.b.index_type(), &[])?;
                    Some((dim, Strip::between(begin, length)))
                }
                _ => None,
            };
            for nest in &group.nests {
                emitter.nest(&self.locate(nest.node), &[], nest)?;
            }
            emitter.share = None;
            return Ok(());
        }
        let first = group.nests.first().map_or(self.b, |n| self.locate(n.node));
        let (block, at, last) = match self.share {
            Some((begin, end)) => {
                let step = first.constant_index(1)?;
                let (_, block) = first.region_op("scf.for", &[begin, end, step], &[], &[], &[self.b.index_type()])?;
                (block, coordinates(&first.at(block), argument(block, 0)?, rows)?, false)
            }
            None => {
                let extents: Vec<i64> = rows.iter().map(|d| *d as i64).collect();
                let attributes = [
                    ("staticLowerBound", self.b.i64s(&vec![0; rows.len()])),
                    ("staticUpperBound", self.b.i64s(&extents)),
                    ("staticStep", self.b.i64s(&vec![1; rows.len()])),
                    ("operandSegmentSizes", self.b.i32s(&[0, 0, 0, 0])),
                ];
                let index = vec![self.b.index_type(); rows.len()];
                let (_, block) = first.region_op("scf.forall", &[], &[], &attributes, &index)?;
                (block, (0..rows.len()).map(|i| argument(block, i)).collect::<Result<Vec<_>, _>>()?, true)
            }
        };
        let at = emitter.enter(&first.at(block), group, &at)?;
        for nest in &group.nests {
            emitter.nest(&self.locate(nest.node).at(block), at, nest)?;
        }
        if last {
            self.b.at(block).region_op("scf.forall.in_parallel", &[], &[], &[], &[])?;
        } else {
            self.b.at(block).op("scf.yield", &[], &[], &[])?;
        }
        Ok(())
    }

    /// Counts nothing, only remembers whether any index is out of range: one pass that vectorises. The assertion
    /// itself stands outside, where it cannot be removed as dead code.
    fn check(&mut self, emitter: &mut Emitter<'c, 'a, '_>, site: usize) -> Result<(), LowerError> {
        let s = &emitter.schedule.sites[site];
        if emitter.memory.is_some() && emitter.shape(s.indices).elements() == 0 {
            return Ok(());
        }
        let b = self.locate(emitter.schedule.value(s.indices).node);
        let indices = emitter.whole(&b, s.indices)?;
        let shape = emitter.shape(s.indices);
        let dtype = emitter.dtype(s.indices);
        let flag = b.int_type(8);
        let none = b.constant_int(0, flag)?;
        let (start, results): (Value<'c, 'a>, Vec<Type<'c>>) = if emitter.memory.is_some() {
            let slot = emitter.slot(&b, DType::Bool, 0)?;
            b.op("memref.store", &[none, slot], &[], &[])?;
            (slot, Vec::new())
        } else {
            let ty = b.tensor(&[], flag);
            (b.value("tensor.from_elements", &[none], ty, &[])?, vec![ty])
        };
        let ins = [Operand { value: indices, map: identity(shape.rank()), element: b.stored(dtype) }];
        let outs = [Operand { value: start, map: Vec::new(), element: flag }];
        let iterators = vec![true; shape.rank()];
        let (op, block) = b.generic(&Generic { ins: &ins, outs: &outs, iterators: &iterators, results: &results })?;
        let inner = b.at(block);
        let index = argument(block, 0)?;
        let ty = b.computed(dtype);
        let below = inner.cmpi(2, index, inner.constant_int(0, ty)?)?;
        let greatest = if dtype == DType::I32 { i64::from(i32::MAX) } else { i64::MAX };
        // A bound above all that the dtype holds excludes nothing.
        let outside = match i64::try_from(s.size).ok().filter(|size| *size <= greatest) {
            Some(size) => {
                let above = inner.cmpi(5, index, inner.constant_int(size, ty)?)?;
                inner.value("arith.ori", &[below, above], b.int_type(1), &[])?
            }
            None => below,
        };
        let outside = inner.value("arith.extui", &[outside], flag, &[])?;
        let any = inner.value("arith.ori", &[argument(block, 1)?, outside], flag, &[])?;
        inner.op("linalg.yield", &[any], &[], &[])?;
        let from = if emitter.memory.is_some() { start } else { super::builder::result_of(op, 0)? };
        let any = load_at(&b, from, emitter.memory.is_some(), &[], DType::Bool)?;
        let fine = b.cmpi(0, any, none)?;
        match self.exits {
            None => {
                b.op("cf.assert", &[fine], &[], &[("msg", b.string(&s.message()))])?;
            }
            Some((function, fail)) => {
                let status = b.constant_int(site as i64 + 1, b.int_type(32))?;
                let next = b.append_block(function, &[])?;
                b.branch(fine, next, fail, status)?;
                self.b = self.b.at(next);
            }
        }
        Ok(())
    }
}

/// The coordinates of the point number `linear` of a box, in row-major order.
fn coordinates<'c, 'a>(
    b: &Builder<'c, 'a>,
    linear: Value<'c, 'a>,
    extents: &[u64],
) -> Result<Vec<Value<'c, 'a>>, LowerError> {
    let mut rest = linear;
    let mut at = Vec::with_capacity(extents.len());
    for (d, extent) in extents.iter().enumerate().rev() {
        if d == 0 {
            at.push(rest);
            break;
        }
        let extent = b.constant_index(*extent)?;
        at.push(b.value("arith.remui", &[rest, extent], b.index_type(), &[])?);
        rest = b.value("arith.divui", &[rest, extent], b.index_type(), &[])?;
    }
    at.reverse();
    Ok(at)
}
