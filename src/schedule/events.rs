//! The unfused work in order: nests of every live operator, and the bounds checks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::nest::{Nest, ValueId};
use super::{Place, Schedule, ScheduleError, Site, Value};
use crate::ir::kernel::{BinaryFn, MapDim, Read, Scalar, Source};
use crate::ir::{Check, DType, Graph, Kernel, Level, Loop, NodeId, NodeKind, Registry, Shape, TensorType};

/// A piece of work before grouping.
#[derive(Clone, Debug)]
pub(super) enum Unit {
    Check(usize),
    Nest(Nest),
}

/// What checks are looked up by.
type CheckKey = (NodeId, u64, Arc<str>);

struct Events<'a> {
    graph: &'a Graph,
    registry: &'a Registry,
    schedule: Schedule,
    units: Vec<Unit>,
    done: Vec<bool>,
    /// By node: is every element one of another value, at a place known from the shapes, which is no plain map of indices?
    moved: Vec<bool>,
    /// Sites whose check has been emitted, by (indices, size).
    emitted: BTreeMap<(ValueId, u64), usize>,
}

/// The values, sites and unfused units of `graph`.
pub(super) fn units(graph: &Graph, registry: &Registry, level: Level) -> Result<(Schedule, Vec<Unit>), ScheduleError> {
    if !graph.handlers.is_empty() {
        return Err(ScheduleError::NotDifferentiated);
    }
    let values = graph.iter().map(|(node, n)| Value { ty: n.ty.clone(), node, place: Place::Inlined }).collect();
    let sites = graph
        .checks
        .iter()
        .map(|c| Site { indices: c.indices.into(), size: c.size, operator: c.operator.clone() })
        .collect();
    let schedule =
        Schedule { level, values, sites, groups: Vec::new(), steps: Vec::new(), workspace: 0, least: 0, scratch: 0 };
    let mut events = Events {
        graph,
        registry,
        schedule,
        units: Vec::new(),
        done: vec![false; graph.len()],
        moved: vec![false; graph.len()],
        emitted: BTreeMap::new(),
    };
    for (i, input) in graph.inputs.iter().enumerate() {
        events.schedule.values[input.index()].place = Place::Input(i);
    }
    let live = graph.live();
    events.program_checks(&live)?;
    for (id, _) in graph.iter().filter(|(id, _)| live[id.index()]) {
        events.node(id)?;
    }
    Ok((events.schedule, events.units))
}

impl Events<'_> {
    /// The checks of the program in their order, each after what its indices need. Unfused, a check whose operator
    /// is live stands directly before that operator.
    fn program_checks(&mut self, live: &[bool]) -> Result<(), ScheduleError> {
        let mut carriers: BTreeMap<CheckKey, Vec<NodeId>> = BTreeMap::new();
        if !self.schedule.level.fuses() {
            for (id, _) in self.graph.iter().rev().filter(|(id, _)| live[id.index()]) {
                if let Some(check) = self.graph.check_of(self.registry, id) {
                    carriers.entry((check.indices, check.size, check.operator)).or_default().push(id);
                }
            }
        }
        for (k, check) in self.graph.checks.iter().enumerate() {
            let key = (check.indices, check.size, check.operator.clone());
            if let Some(carrier) = carriers.get_mut(&key).and_then(Vec::pop) {
                self.with_operands(carrier)?;
            } else {
                self.with_operands(check.indices)?;
                self.check(k);
            }
        }
        Ok(())
    }

    /// Emits a node after everything it needs.
    fn with_operands(&mut self, id: NodeId) -> Result<(), ScheduleError> {
        let mut needed = Vec::new();
        let mut stack = vec![id];
        let mut seen = vec![false; id.index() + 1];
        while let Some(n) = stack.pop() {
            if !self.done[n.index()] && !std::mem::replace(&mut seen[n.index()], true) {
                needed.push(n);
                stack.extend(self.graph.node(n).operands());
            }
        }
        needed.sort_unstable();
        needed.into_iter().try_for_each(|n| self.node(n))
    }

    fn check(&mut self, site: usize) {
        let s = &self.schedule.sites[site];
        let key = (s.indices, s.size);
        if self.schedule.level.fuses() && self.emitted.contains_key(&key) {
            return;
        }
        self.emitted.entry(key).or_insert(site);
        self.units.push(Unit::Check(site));
    }

    /// The check that an operator itself asks for. At fusing levels a check of the program usually covers it; where
    /// none does, the operator still never reads out of range.
    fn own_check(&mut self, check: &Check) {
        let indices = ValueId::from(check.indices);
        let covered = self.emitted.range((indices, 0)..=(indices, check.size)).next().is_some();
        if self.schedule.level.fuses() && covered {
            return;
        }
        let same = |s: &Site| s.indices == indices && s.size == check.size && s.operator == check.operator;
        let site = self.schedule.sites.iter().position(same).unwrap_or_else(|| {
            self.schedule.sites.push(Site { indices, size: check.size, operator: check.operator.clone() });
            self.schedule.sites.len() - 1
        });
        self.check(site);
    }

    fn node(&mut self, id: NodeId) -> Result<(), ScheduleError> {
        if std::mem::replace(&mut self.done[id.index()], true) {
            return Ok(());
        }
        let node = self.graph.node(id);
        let (op, operands) = match &node.kind {
            NodeKind::Input => return Ok(()),
            NodeKind::Op { op, operands, .. } => (*op, operands),
            NodeKind::Param { .. } | NodeKind::Gradient { .. } => return Err(ScheduleError::NotDifferentiated),
        };
        if let Some(check) = self.graph.check_of(self.registry, id) {
            self.own_check(&check);
        }
        let operator = || self.registry.op(op).name().to_owned();
        let kernel = self.graph.with_call(id, |op, call| self.registry.op(op).kernel(call, &node.ty));
        match kernel {
            None | Some(Kernel::Composite) => Err(ScheduleError::Composite { operator: operator() }),
            Some(Kernel::Reshape) => {
                let from = *operands.first().ok_or_else(|| ScheduleError::Kernel { operator: operator() })?;
                self.reshape(id, from);
                Ok(())
            }
            Some(Kernel::Loops(loops)) => {
                let fits = loops.last().is_some_and(|l| l.shape[..] == node.ty.shape[..] && l.dtype == node.ty.dtype);
                if !fits {
                    return Err(ScheduleError::Kernel { operator: operator() });
                }
                self.loops(id, operands, &loops, &operator)
            }
        }
    }

    fn loops(
        &mut self,
        id: NodeId,
        operands: &[NodeId],
        loops: &[Loop],
        operator: &dyn Fn() -> String,
    ) -> Result<(), ScheduleError> {
        let first = self.schedule.values.len() as u32;
        for (i, l) in loops.iter().enumerate() {
            let value = if i + 1 == loops.len() {
                id.into()
            } else {
                let shape = Shape::new(l.shape.clone()).map_err(|_| ScheduleError::Kernel { operator: operator() })?;
                let ty = TensorType::new(l.dtype, shape, self.graph.ty(id).placement);
                self.schedule.values.push(Value { ty, node: id, place: Place::Inlined });
                ValueId(first + i as u32)
            };
            let resolve = |source: Source| {
                let value = match source {
                    Source::Operand(o) => operands[o].into(),
                    Source::Temporary(t) => ValueId(first + t as u32),
                };
                (value, self.schedule.value(value).ty.shape.clone())
            };
            let nest = Nest::of(id, l, value, &resolve);
            self.nest(id, nest);
        }
        Ok(())
    }

    /// A view; where loops are fused, one that only adds or drops dimensions of size 1 is a map of indices instead.
    fn reshape(&mut self, id: NodeId, from: NodeId) {
        let (to_shape, from_shape) = (self.graph.ty(id).shape.clone(), self.graph.ty(from).shape.clone());
        let long = |shape: &[u64]| -> Vec<usize> { (0..shape.len()).filter(|d| shape[*d] != 1).collect() };
        let (to_long, from_long) = (long(&to_shape), long(&from_shape));
        let sizes = |shape: &[u64], dims: &[usize]| -> Vec<u64> { dims.iter().map(|d| shape[*d]).collect() };
        if !self.schedule.level.fuses() || sizes(&to_shape, &to_long) != sizes(&from_shape, &from_long) {
            match self.split(&from_shape, &to_shape).filter(|_| self.only_moved(from)) {
                Some(at) => {
                    let body = Scalar::Gather(Source::Operand(0), at);
                    let l = Loop::elementwise(&to_shape, self.graph.ty(id).dtype, 0, body);
                    let nest = Nest::of(id, &l, id.into(), &|_| (from.into(), from_shape.clone()));
                    self.nest(id, nest);
                }
                None => self.schedule.values[id.index()].place = Place::View(from.into()),
            }
            return;
        }
        let mut map = vec![MapDim::Zero; from_shape.len()];
        for (f, t) in from_long.iter().zip(&to_long) {
            map[*f] = MapDim::Dim(*t);
        }
        let dtype: DType = self.graph.ty(id).dtype;
        let mut l = Loop::elementwise(&to_shape, dtype, 0, Scalar::Input(0));
        l.inputs.push(Read { source: Source::Operand(0), map });
        let nest = Nest::of(id, &l, id.into(), &|_| (from.into(), from_shape.clone()));
        self.units.push(Unit::Nest(nest));
    }

    fn nest(&mut self, id: NodeId, nest: Nest) {
        self.moved[id.index()] = nest.is_map() && !nest.gathers.is_empty() && nest.work() == (0, 0);
        self.units.push(Unit::Nest(nest));
    }

    /// Is the value elements of others at places known from the shapes, like those of a slice? It is then read where they are,
    /// whereas a view of it would have to be stored. (Nothing is gained where it is stored anyway.)
    fn only_moved(&self, value: NodeId) -> bool {
        self.moved[value.index()] && self.graph.outputs.iter().all(|o| o.node != value)
    }

    /// Where the elements of a reshape that only splits dimensions stand in its operand.
    fn split(&self, from: &Shape, to: &Shape) -> Option<Vec<Scalar>> {
        let mut dims = to.iter().enumerate().filter(|(_, size)| **size != 1);
        let int = |v: u64| Scalar::constant(v as f64, DType::I64);
        let mut at = Vec::with_capacity(from.rank());
        for size in from.iter() {
            let (mut covered, mut place) = (1u64, int(0));
            while covered < *size {
                let (d, extent) = dims.next()?;
                place = match covered {
                    1 => Scalar::Index(d),
                    _ => Scalar::binary(
                        BinaryFn::Add,
                        Scalar::binary(BinaryFn::Mul, place, int(*extent)),
                        Scalar::Index(d),
                    ),
                };
                covered = covered.checked_mul(*extent)?;
            }
            if covered != *size {
                return None;
            }
            at.push(place);
        }
        dims.next().is_none().then_some(at)
    }
}
