//! A thin builder over melior: operations are appended to a block of the module that is being built.
//!
//! Regions are filled after their operation stands in the module, so that every reference has the module's lifetime.

use melior::Context;
use melior::ir::attribute::{
    DenseI32ArrayAttribute, DenseI64ArrayAttribute, FlatSymbolRefAttribute, FloatAttribute, IntegerAttribute,
    StringAttribute, TypeAttribute,
};
use melior::ir::operation::OperationBuilder;
use melior::ir::r#type::{FunctionType, IntegerType, MemRefType, RankedTensorType};
use melior::ir::{
    Attribute, Block, BlockLike, BlockRef, Identifier, Location, OperationRef, Region, RegionLike, Type, Value,
};

use super::LowerError;
use crate::ir::DType;
use crate::ir::kernel::MapDim;

/// An integer that MLIR takes for "known at run time only".
pub(super) const DYNAMIC: i64 = i64::MIN;

/// Appends operations to one block.
#[derive(Clone, Copy)]
pub(super) struct Builder<'c, 'a> {
    pub context: &'c Context,
    pub block: BlockRef<'c, 'a>,
    /// The body of the module, where functions stand.
    pub module: BlockRef<'c, 'a>,
    pub location: Location<'c>,
}

/// The error for an operation that could not even be created.
pub(super) fn refused(what: impl std::fmt::Display) -> LowerError {
    LowerError::Invalid { stage: "operation", message: what.to_string() }
}

impl<'c, 'a> Builder<'c, 'a> {
    /// The same builder at the end of another block.
    pub fn at(&self, block: BlockRef<'c, 'a>) -> Self {
        Self { block, ..*self }
    }

    pub fn attribute(&self, text: &str) -> Result<Attribute<'c>, LowerError> {
        Attribute::parse(self.context, text).ok_or_else(|| refused(format_args!("attribute `{text}`")))
    }

    pub fn i32s(&self, values: &[i32]) -> Attribute<'c> {
        DenseI32ArrayAttribute::new(self.context, values).into()
    }

    pub fn i64s(&self, values: &[i64]) -> Attribute<'c> {
        DenseI64ArrayAttribute::new(self.context, values).into()
    }

    pub fn string(&self, text: &str) -> Attribute<'c> {
        StringAttribute::new(self.context, text).into()
    }

    fn create(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        regions: usize,
        successors: &[&Block<'c>],
    ) -> Result<melior::ir::Operation<'c>, LowerError> {
        let attributes: Vec<_> = attributes.iter().map(|(n, a)| (Identifier::new(self.context, n), *a)).collect();
        OperationBuilder::new(name, self.location)
            .add_operands(operands)
            .add_results(results)
            .add_attributes(&attributes)
            .add_regions_vec((0..regions).map(|_| Region::new()).collect())
            .add_successors(successors)
            .build()
            .map_err(|e| refused(format_args!("{name}: {e}")))
    }

    /// Appends an operation.
    pub fn op(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<OperationRef<'c, 'a>, LowerError> {
        Ok(self.block.append_operation(self.create(name, operands, results, attributes, 0, &[])?))
    }

    /// Appends an operation of one result.
    pub fn value(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        result: Type<'c>,
        attributes: &[(&str, Attribute<'c>)],
    ) -> Result<Value<'c, 'a>, LowerError> {
        result_of(self.op(name, operands, &[result], attributes)?, 0)
    }

    /// Appends an operation with one region of one block; returns the operation and the block to fill.
    pub fn region_op(
        &self,
        name: &str,
        operands: &[Value<'c, 'a>],
        results: &[Type<'c>],
        attributes: &[(&str, Attribute<'c>)],
        arguments: &[Type<'c>],
    ) -> Result<(OperationRef<'c, 'a>, BlockRef<'c, 'a>), LowerError> {
        let op = self.block.append_operation(self.create(name, operands, results, attributes, 1, &[])?);
        let block = self.append_block(op, arguments)?;
        Ok((op, block))
    }

    /// Appends a block to the first region of an operation of the module.
    pub fn append_block(
        &self,
        op: OperationRef<'c, 'a>,
        arguments: &[Type<'c>],
    ) -> Result<BlockRef<'c, 'a>, LowerError> {
        let arguments: Vec<_> = arguments.iter().map(|t| (*t, self.location)).collect();
        // SAFETY: `op` stands in the module, which lives for 'a and from which nothing is removed while it is built.
        let op = unsafe { op.to_ref() };
        let region = op.region(0).map_err(refused)?;
        Ok(region.append_block(Block::new(&arguments)))
    }

    /// Appends a conditional branch; `no` takes one argument.
    pub fn branch(
        &self,
        condition: Value<'c, 'a>,
        yes: BlockRef<'c, 'a>,
        no: BlockRef<'c, 'a>,
        argument: Value<'c, 'a>,
    ) -> Result<(), LowerError> {
        let segments = [("operandSegmentSizes", self.i32s(&[1, 0, 1]))];
        let op = self.create("cf.cond_br", &[condition, argument], &[], &segments, 0, &[&yes, &no])?;
        self.block.append_operation(op);
        Ok(())
    }

    /// A stack slot of one element. It stands first in `entry`, where LLVM can turn it into a register.
    pub fn stack_slot(&self, entry: BlockRef<'c, 'a>, element: Type<'c>) -> Result<Value<'c, 'a>, LowerError> {
        let ty = self.memref(&[], element);
        let segments = [("operandSegmentSizes", self.i32s(&[0, 0]))];
        let op = self.create("memref.alloca", &[], &[ty], &segments, 0, &[])?;
        result_of(entry.insert_operation(0, op), 0)
    }

    pub fn index_type(&self) -> Type<'c> {
        Type::index(self.context)
    }

    pub fn int_type(&self, bits: u32) -> Type<'c> {
        IntegerType::new(self.context, bits).into()
    }

    /// How an element is stored: Bool as one byte.
    pub fn stored(&self, dtype: DType) -> Type<'c> {
        match dtype {
            DType::Bool => self.int_type(8),
            other => self.computed(other),
        }
    }

    /// How a scalar is computed with: Bool as one bit.
    pub fn computed(&self, dtype: DType) -> Type<'c> {
        match dtype {
            DType::Bool => self.int_type(1),
            DType::I32 => self.int_type(32),
            DType::I64 => self.int_type(64),
            DType::F32 => Type::float32(self.context),
            DType::F64 => Type::float64(self.context),
        }
    }

    pub fn tensor(&self, shape: &[u64], element: Type<'c>) -> Type<'c> {
        RankedTensorType::new(shape, element, None).into()
    }

    pub fn memref(&self, shape: &[u64], element: Type<'c>) -> Type<'c> {
        let shape: Vec<i64> = shape.iter().map(|d| *d as i64).collect();
        MemRefType::new(element, &shape, None, None).into()
    }

    pub fn constant_index(&self, value: u64) -> Result<Value<'c, 'a>, LowerError> {
        self.constant_int(value as i64, self.index_type())
    }

    pub fn constant_int(&self, value: i64, ty: Type<'c>) -> Result<Value<'c, 'a>, LowerError> {
        self.value("arith.constant", &[], ty, &[("value", IntegerAttribute::new(ty, value).into())])
    }

    pub fn constant_float(&self, value: f64, ty: Type<'c>) -> Result<Value<'c, 'a>, LowerError> {
        self.value("arith.constant", &[], ty, &[("value", FloatAttribute::new(self.context, ty, value).into())])
    }

    /// Calls a pure function of the C library's `libm`, of one value of its own type, declaring it once.
    pub fn library_call(&self, name: &str, x: Value<'c, 'a>, ty: Type<'c>) -> Result<Value<'c, 'a>, LowerError> {
        let symbol = self.string(name);
        let mut function = self.module.first_operation();
        while let Some(op) = function.filter(|op| op.attribute("sym_name") != Ok(symbol)) {
            // SAFETY: it stands in the module, which lives for 'a and from which nothing is removed while it is built.
            function = unsafe { op.to_ref() }.next_in_block();
        }
        if function.is_none() {
            let ty = FunctionType::new(self.context, &[ty], &[ty]);
            let attributes = [
                ("sym_name", symbol),
                ("function_type", TypeAttribute::new(ty.into()).into()),
                ("sym_visibility", self.string("private")),
                ("llvm.readnone", self.attribute("unit")?),
            ];
            let declaration = self.create("func.func", &[], &[], &attributes, 1, &[])?;
            self.module.insert_operation(0, declaration);
        }
        let callee = FlatSymbolRefAttribute::new(self.context, name).into();
        self.value("func.call", &[x], ty, &[("callee", callee)])
    }

    /// Compares integers; `predicate` is arith's: 0 eq, 1 ne, 2 slt, 3 sle, 4 sgt, 5 sge, 6 ult, 7 ule, 8 ugt, 9 uge.
    pub fn cmpi(&self, predicate: i64, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>, LowerError> {
        let predicate = IntegerAttribute::new(self.int_type(64), predicate).into();
        self.value("arith.cmpi", &[a, b], self.int_type(1), &[("predicate", predicate)])
    }

    /// Compares floats; `predicate` is arith's: 1 oeq, 2 ogt, 3 oge, 4 olt, 5 ole, 13 une.
    pub fn cmpf(&self, predicate: i64, a: Value<'c, 'a>, b: Value<'c, 'a>) -> Result<Value<'c, 'a>, LowerError> {
        let predicate = IntegerAttribute::new(self.int_type(64), predicate).into();
        self.value("arith.cmpf", &[a, b], self.int_type(1), &[("predicate", predicate)])
    }

    /// `select(condition, a, b)`, of the type of the arms.
    pub fn select(
        &self,
        condition: Value<'c, 'a>,
        a: Value<'c, 'a>,
        b: Value<'c, 'a>,
        ty: Type<'c>,
    ) -> Result<Value<'c, 'a>, LowerError> {
        self.value("arith.select", &[condition, a, b], ty, &[])
    }

    /// A `linalg.generic`. On tensors the results are those of the operation, of the types of `outs`; on buffers there
    /// are none. Returns the operation and the block to fill, whose arguments are one element of each operand.
    pub fn generic(&self, spec: &Generic<'_, 'c, 'a>) -> Result<(OperationRef<'c, 'a>, BlockRef<'c, 'a>), LowerError> {
        let all = || spec.ins.iter().chain(spec.outs);
        let maps: Vec<String> = all().map(|o| affine_map(spec.iterators.len(), &o.map)).collect();
        let iterators: Vec<&str> = spec
            .iterators
            .iter()
            .map(|r| if *r { "#linalg.iterator_type<reduction>" } else { "#linalg.iterator_type<parallel>" })
            .collect();
        let attributes = [
            ("indexing_maps", self.attribute(&format!("[{}]", maps.join(", ")))?),
            ("iterator_types", self.attribute(&format!("[{}]", iterators.join(", ")))?),
            ("operandSegmentSizes", self.i32s(&[spec.ins.len() as i32, spec.outs.len() as i32])),
        ];
        let operands: Vec<_> = all().map(|o| o.value).collect();
        let elements: Vec<_> = all().map(|o| o.element).collect();
        self.region_op("linalg.generic", &operands, spec.results, &attributes, &elements)
    }
}

/// An operand of a `linalg.generic`.
#[derive(Clone)]
pub(super) struct Operand<'c, 'a> {
    pub value: Value<'c, 'a>,
    pub map: Vec<MapDim>,
    pub element: Type<'c>,
}

/// A `linalg.generic` without its body.
pub(super) struct Generic<'s, 'c, 'a> {
    pub ins: &'s [Operand<'c, 'a>],
    pub outs: &'s [Operand<'c, 'a>],
    /// For each iteration dimension: is it a reduction?
    pub iterators: &'s [bool],
    /// Result types; empty on buffers.
    pub results: &'s [Type<'c>],
}

/// Result `index` of an operation.
pub(super) fn result_of<'c, 'a>(op: OperationRef<'c, 'a>, index: usize) -> Result<Value<'c, 'a>, LowerError> {
    op.result(index).map(Into::into).map_err(refused)
}

/// Argument `index` of a block.
pub(super) fn argument<'c, 'a>(block: BlockRef<'c, 'a>, index: usize) -> Result<Value<'c, 'a>, LowerError> {
    block.argument(index).map(Into::into).map_err(refused)
}

fn affine_map(dims: usize, map: &[MapDim]) -> String {
    let dims: Vec<String> = (0..dims).map(|d| format!("d{d}")).collect();
    let results: Vec<String> = map
        .iter()
        .map(|m| match m {
            MapDim::Dim(d) => format!("d{d}"),
            MapDim::Zero => "0".to_owned(),
        })
        .collect();
    format!("affine_map<({}) -> ({})>", dims.join(", "), results.join(", "))
}
