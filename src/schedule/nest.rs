//! Loop nests over the values of a schedule: kernels with their operands resolved, in a form that fuses.
//!
//! A [`Nest`] is an [`ir::kernel::Loop`](crate::ir::kernel::Loop) whose body is a list of instructions, equal ones
//! shared, so that substituting a producer into its consumers never grows a tree exponentially.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::ir::kernel::{self, BinaryFn, Combine, CompareFn, MapDim, Scalar, Source, UnaryFn};
use crate::ir::{DType, F64Bits, Loop, NodeId, Shape, volume};

/// A value of a [`Schedule`](super::Schedule). The first ids are those of the graph's nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ValueId(pub u32);

impl ValueId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl From<NodeId> for ValueId {
    fn from(node: NodeId) -> Self {
        ValueId(node.0)
    }
}

/// An instruction of one [`Body`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct InstId(pub u32);

impl InstId {
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// One scalar instruction; operands are earlier instructions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Inst {
    /// The element that `reads[i]` reads at this point.
    Input(usize),
    /// The iteration index, as I64.
    Index(usize),
    Constant(F64Bits, DType),
    Unary(UnaryFn, InstId),
    Binary(BinaryFn, InstId, InstId),
    Compare(CompareFn, InstId, InstId),
    Select(InstId, InstId, InstId),
    Cast(InstId, DType),
    /// What the nest wrote at the point before this one along the dimension of its scan; 0 at the first.
    Previous,
    /// An element of `gathers[i]` at I64 coordinates.
    Gather(usize, SmallVec<[InstId; 4]>),
}

impl Inst {
    /// The instruction with its operands renamed.
    #[must_use]
    pub fn map(&self, mut f: impl FnMut(InstId) -> InstId) -> Inst {
        match self {
            Inst::Input(_) | Inst::Index(_) | Inst::Constant(..) | Inst::Previous => self.clone(),
            Inst::Unary(g, a) => Inst::Unary(*g, f(*a)),
            Inst::Binary(g, a, b) => Inst::Binary(*g, f(*a), f(*b)),
            Inst::Compare(g, a, b) => Inst::Compare(*g, f(*a), f(*b)),
            Inst::Select(c, a, b) => Inst::Select(f(*c), f(*a), f(*b)),
            Inst::Cast(a, dtype) => Inst::Cast(f(*a), *dtype),
            Inst::Gather(g, coords) => Inst::Gather(*g, coords.iter().map(|c| f(*c)).collect()),
        }
    }

    pub fn operands(&self) -> SmallVec<[InstId; 4]> {
        let mut all = SmallVec::new();
        let _ = self.map(|i| {
            all.push(i);
            i
        });
        all
    }
}

/// A list of instructions in which no two are equal.
#[derive(Clone, Debug, Default)]
pub struct Body {
    insts: Vec<Inst>,
    /// Looked up only, never iterated over.
    known: FxHashMap<Inst, InstId>,
}

impl Body {
    /// The instruction's id, adding it if there is none equal to it.
    pub fn add(&mut self, inst: Inst) -> InstId {
        let next = InstId(self.insts.len() as u32);
        *self.known.entry(inst).or_insert_with_key(|inst| {
            self.insts.push(inst.clone());
            next
        })
    }

    pub fn insts(&self) -> &[Inst] {
        &self.insts
    }

    pub fn inst(&self, id: InstId) -> &Inst {
        &self.insts[id.index()]
    }

    /// Which instructions the `roots` need, as a mask.
    pub fn needed(&self, roots: impl IntoIterator<Item = InstId>) -> Vec<bool> {
        let mut needed = vec![false; self.insts.len()];
        for r in roots {
            needed[r.index()] = true;
        }
        for i in (0..self.insts.len()).rev() {
            if needed[i] {
                for o in self.insts[i].operands() {
                    needed[o.index()] = true;
                }
            }
        }
        needed
    }
}

/// A value read at a place that depends on the iteration dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Access {
    pub value: ValueId,
    pub map: Vec<MapDim>,
}

/// One of the values that a nest writes.
#[derive(Clone, Debug)]
pub struct NestResult {
    pub value: ValueId,
    pub map: Vec<MapDim>,
    /// What is written, or combined if `reduce`.
    pub root: InstId,
    pub reduce: Option<Combine>,
}

/// [`kernel::Sequence`] with its scalar as an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sequence {
    Scan(usize),
    Scatter(InstId),
}

/// A perfect loop nest that writes one or more values.
#[derive(Clone, Debug)]
pub struct Nest {
    /// The node whose operator this is.
    pub node: NodeId,
    /// All nodes whose operators it computes, ascending: `node` and those inlined into it.
    pub nodes: Vec<NodeId>,
    pub domain: Vec<u64>,
    pub reads: Vec<Access>,
    pub gathers: Vec<ValueId>,
    pub body: Body,
    pub results: Vec<NestResult>,
    /// A nest whose points are visited in order has one result and is never a part of another nest.
    pub sequence: Option<Sequence>,
}

/// Where a coordinate of an inlined nest comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Coordinate {
    Dim(usize),
    Zero,
    Computed(InstId),
}

impl From<MapDim> for Coordinate {
    fn from(dim: MapDim) -> Self {
        match dim {
            MapDim::Dim(d) => Coordinate::Dim(d),
            MapDim::Zero => Coordinate::Zero,
        }
    }
}

impl Nest {
    /// A nest over `domain` that writes nothing yet.
    pub fn empty(node: NodeId, domain: Vec<u64>) -> Nest {
        Nest {
            node,
            nodes: vec![node],
            domain,
            reads: Vec::new(),
            gathers: Vec::new(),
            body: Body::default(),
            results: Vec::new(),
            sequence: None,
        }
    }

    /// The instructions that are wanted: those of the results in their order, then the row of a scatter.
    pub fn roots(&self) -> Vec<InstId> {
        let row = match self.sequence {
            Some(Sequence::Scatter(row)) => Some(row),
            Some(Sequence::Scan(_)) | None => None,
        };
        self.results.iter().map(|r| r.root).chain(row).collect()
    }

    /// Writes what `other` writes, `roots` being its roots here.
    pub fn write_as(&mut self, other: &Nest, roots: &[InstId]) {
        self.results =
            other.results.iter().zip(roots).map(|(r, root)| NestResult { root: *root, ..r.clone() }).collect();
        self.sequence = match (other.sequence, roots.last()) {
            (Some(Sequence::Scatter(_)), Some(row)) => Some(Sequence::Scatter(*row)),
            (sequence, _) => sequence,
        };
    }

    /// The nest of a kernel's loop; `resolve` names its sources, with the extent of each of their dimensions.
    pub fn of(node: NodeId, l: &Loop, value: ValueId, resolve: &dyn Fn(Source) -> (ValueId, Shape)) -> Nest {
        let mut nest = Nest::empty(node, l.domain.clone());
        let inputs: Vec<Access> =
            l.inputs.iter().map(|r| Access { value: resolve(r.source).0, map: r.map.clone() }).collect();
        let root = nest.add_scalar(&l.body, &inputs, resolve);
        nest.results.push(NestResult { value, map: l.result_map.clone(), root, reduce: l.reduce });
        nest.sequence = match &l.sequence {
            Some(kernel::Sequence::Scan(d)) => Some(Sequence::Scan(*d)),
            Some(kernel::Sequence::Scatter(row)) => Some(Sequence::Scatter(nest.add_scalar(row, &inputs, resolve))),
            None => None,
        };
        nest
    }

    fn add_scalar(&mut self, s: &Scalar, inputs: &[Access], resolve: &dyn Fn(Source) -> (ValueId, Shape)) -> InstId {
        let mut go = |s: &Scalar| self.add_scalar(s, inputs, resolve);
        let inst = match s {
            Scalar::Input(i) => return self.read(inputs[*i].clone()),
            Scalar::Index(d) => Inst::Index(*d),
            Scalar::Constant(v, dtype) => Inst::Constant(F64Bits::new(*v), *dtype),
            Scalar::Previous => Inst::Previous,
            Scalar::Unary(f, a) => Inst::Unary(*f, go(a)),
            Scalar::Binary(f, a, b) => Inst::Binary(*f, go(a), go(b)),
            Scalar::Compare(f, a, b) => Inst::Compare(*f, go(a), go(b)),
            Scalar::Select(c, a, b) => Inst::Select(go(c), go(a), go(b)),
            Scalar::Cast(a, dtype) => Inst::Cast(go(a), *dtype),
            Scalar::Gather(source, coords) => {
                let mut coords: SmallVec<[InstId; 4]> = coords.iter().map(&mut go).collect();
                let (value, shape) = resolve(*source);
                for (coord, extent) in coords.iter_mut().zip(shape.iter()) {
                    // A part of a dimension is never taken for all of it: its coordinate is computed.
                    if let Inst::Index(d) = self.body.inst(*coord)
                        && self.domain.get(*d) != Some(extent)
                    {
                        let zero = self.coordinate(Coordinate::Zero);
                        *coord = self.body.add(Inst::Binary(BinaryFn::Add, *coord, zero));
                    }
                }
                Inst::Gather(self.gather_from(value), coords)
            }
        };
        self.body.add(inst)
    }

    /// The element that `access` reads.
    pub fn read(&mut self, access: Access) -> InstId {
        let place = self.reads.iter().position(|r| *r == access).unwrap_or_else(|| {
            self.reads.push(access);
            self.reads.len() - 1
        });
        self.body.add(Inst::Input(place))
    }

    fn gather_from(&mut self, value: ValueId) -> usize {
        self.gathers.iter().position(|g| *g == value).unwrap_or_else(|| {
            self.gathers.push(value);
            self.gathers.len() - 1
        })
    }

    /// An element of `value` at coordinates of any kind.
    pub fn read_at(&mut self, value: ValueId, coords: &[Coordinate]) -> InstId {
        let plain: Option<Vec<MapDim>> = coords
            .iter()
            .map(|c| match c {
                Coordinate::Dim(d) => Some(MapDim::Dim(*d)),
                Coordinate::Zero => Some(MapDim::Zero),
                Coordinate::Computed(_) => None,
            })
            .collect();
        if let Some(map) = plain {
            return self.read(Access { value, map });
        }
        let coords = coords.iter().map(|c| self.coordinate(*c)).collect();
        let place = self.gather_from(value);
        self.body.add(Inst::Gather(place, coords))
    }

    fn coordinate(&mut self, c: Coordinate) -> InstId {
        match c {
            Coordinate::Dim(d) => self.body.add(Inst::Index(d)),
            Coordinate::Zero => self.body.add(Inst::Constant(F64Bits::new(0.0), DType::I64)),
            Coordinate::Computed(i) => i,
        }
    }

    /// Copies what `other` computes for its instruction `root` into this nest, `other`'s iteration dimension `d` being
    /// `dims[d]` here. Reads and gathers of a value go through `fetch`, which may inline further.
    pub fn import(
        &mut self,
        other: &Nest,
        roots: &[InstId],
        dims: &[Coordinate],
        fetch: &mut dyn FnMut(&mut Nest, ValueId, &[Coordinate]) -> InstId,
    ) -> Vec<InstId> {
        for node in &other.nodes {
            if let Err(place) = self.nodes.binary_search(node) {
                self.nodes.insert(place, *node);
            }
        }
        let needed = other.body.needed(roots.iter().copied());
        let mut renamed = vec![InstId(0); other.body.insts.len()];
        for (i, inst) in other.body.insts.iter().enumerate() {
            if !needed[i] {
                continue;
            }
            renamed[i] = match inst {
                Inst::Input(r) => {
                    let access = &other.reads[*r];
                    let coords: Vec<Coordinate> = access
                        .map
                        .iter()
                        .map(|m| match m {
                            MapDim::Dim(d) => dims[*d],
                            MapDim::Zero => Coordinate::Zero,
                        })
                        .collect();
                    fetch(self, access.value, &coords)
                }
                Inst::Index(d) => self.coordinate(dims[*d]),
                Inst::Gather(g, coords) => {
                    let coords: Vec<Coordinate> =
                        coords.iter().map(|c| self.as_coordinate(renamed[c.index()])).collect();
                    fetch(self, other.gathers[*g], &coords)
                }
                inst => {
                    let inst = inst.map(|o| renamed[o.index()]);
                    self.body.add(inst)
                }
            };
        }
        roots.iter().map(|r| renamed[r.index()]).collect()
    }

    /// A computed coordinate that is an iteration index or zero is known as such.
    fn as_coordinate(&self, id: InstId) -> Coordinate {
        match self.body.inst(id) {
            Inst::Index(d) => Coordinate::Dim(*d),
            Inst::Constant(v, _) if v.get() == 0.0 => Coordinate::Zero,
            _ => Coordinate::Computed(id),
        }
    }

    /// The same nest without instructions and reads that no result needs.
    #[must_use]
    pub fn compact(&self) -> Nest {
        let mut out = Nest::empty(self.node, self.domain.clone());
        let dims: Vec<Coordinate> = (0..self.domain.len()).map(Coordinate::Dim).collect();
        let roots = out.import(self, &self.roots(), &dims, &mut |out, value, coords| out.read_at(value, coords));
        out.write_as(self, &roots);
        out
    }

    /// The same nest with its iteration dimensions in another order: dimension `i` is what `order[i]` was.
    #[must_use]
    pub fn reordered(&self, order: &[usize]) -> Nest {
        let place = |d: usize| order.iter().position(|o| *o == d).unwrap_or(d);
        let dims: Vec<Coordinate> = (0..self.domain.len()).map(|d| Coordinate::Dim(place(d))).collect();
        let mut out = Nest::empty(self.node, order.iter().map(|d| self.domain[*d]).collect());
        let roots: Vec<InstId> = self.results.iter().map(|r| r.root).collect();
        let roots = out.import(self, &roots, &dims, &mut |out, value, coords| out.read_at(value, coords));
        let moved = |m: &MapDim| match m {
            MapDim::Dim(d) => MapDim::Dim(place(*d)),
            MapDim::Zero => MapDim::Zero,
        };
        let results = self.results.iter().zip(roots);
        out.results =
            results.map(|(r, root)| NestResult { root, map: r.map.iter().map(moved).collect(), ..r.clone() }).collect();
        out
    }

    /// Number of points: see [`volume`].
    pub fn points(&self) -> u64 {
        volume(&self.domain)
    }

    /// Does it only map points to elements (no reduction, in any order)?
    pub fn is_map(&self) -> bool {
        self.sequence.is_none() && self.results.iter().all(|r| r.reduce.is_none())
    }

    /// Values it reads, in any way, each once.
    pub fn operands(&self) -> Vec<ValueId> {
        let mut all: Vec<ValueId> = self.reads.iter().map(|r| r.value).chain(self.gathers.iter().copied()).collect();
        all.sort_unstable();
        all.dedup();
        all
    }

    /// Which instructions are made of indices and constants by `+`, `-` and `*`: a loop steps through their values.
    fn affine(&self) -> Vec<bool> {
        let mut affine: Vec<bool> = Vec::with_capacity(self.body.insts.len());
        let constant = |id: &InstId| matches!(self.body.inst(*id), Inst::Constant(_, DType::I64));
        for inst in &self.body.insts {
            affine.push(match inst {
                Inst::Index(_) | Inst::Constant(_, DType::I64) => true,
                Inst::Binary(BinaryFn::Add | BinaryFn::Sub, a, b) => affine[a.index()] && affine[b.index()],
                Inst::Binary(BinaryFn::Mul, a, b) => {
                    affine[a.index()] && affine[b.index()] && (constant(a) || constant(b))
                }
                _ => false,
            });
        }
        affine
    }

    /// Instructions that compute: (arithmetic, of those the expensive ones). Reading at an affine place is reading.
    pub fn work(&self) -> (usize, usize) {
        let mut work = (0, 0);
        let affine = self.affine();
        for (i, inst) in self.body.insts().iter().enumerate() {
            match inst {
                _ if affine[i] => {}
                Inst::Gather(_, coords) if coords.iter().all(|c| affine[c.index()]) => {}
                Inst::Input(_) | Inst::Index(_) | Inst::Constant(..) | Inst::Previous => {}
                Inst::Unary(f, _) => {
                    work.0 += 1;
                    work.1 += usize::from(f.is_transcendental() || matches!(f, UnaryFn::Sqrt | UnaryFn::Rsqrt));
                }
                Inst::Binary(f, ..) => {
                    work.0 += 1;
                    work.1 += usize::from(f.is_transcendental() || *f == BinaryFn::Div);
                }
                Inst::Compare(..) | Inst::Select(..) | Inst::Cast(..) => work.0 += 1,
                Inst::Gather(..) => {
                    work.0 += 1;
                    work.1 += 1;
                }
            }
        }
        work
    }
}
