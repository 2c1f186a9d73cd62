//! The pass pipeline, and what comes after it: the LLVM dialect and LLVM IR.

use melior::Context;
use melior::ir::Module;
use melior::pass::PassManager;
use melior::utility::parse_pass_pipeline;

use super::llvm::LlvmModule;
use super::{LowerError, Messages, TrapMode};

/// Loops, then control flow, then LLVM. Functions take bare pointers in the status form: all shapes are static.
fn pipeline(traps: TrapMode) -> String {
    let (before, convention) = match traps {
        TrapMode::Assert => (
            "eliminate-empty-tensors,\
             one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},\
             func.func(canonicalize,cse,scf-forall-to-for,buffer-loop-hoisting,promote-buffers-to-stack{max-alloc-size-in-bytes=1024 max-rank-of-allocated-memref=2}),\
             buffer-deallocation-pipeline,convert-bufferization-to-memref,",
            "",
        ),
        TrapMode::Status => ("", "{use-bare-ptr-memref-call-conv=1}"),
    };
    format!(
        "builtin.module({before}\
         func.func(canonicalize,cse,scf-forall-to-parallel,convert-linalg-to-loops),\
         fold-memref-alias-ops,canonicalize,cse,expand-strided-metadata,lower-affine,convert-scf-to-cf,\
         convert-math-to-llvm,convert-math-to-libm,convert-arith-to-llvm,convert-index-to-llvm,\
         finalize-memref-to-llvm,convert-func-to-llvm{convention},convert-cf-to-llvm,canonicalize,\
         reconcile-unrealized-casts)"
    )
}

/// Runs the pipeline: afterwards the module is in the LLVM dialect, and verified.
///
/// # Errors
/// If a pass fails, with what it reported.
pub fn llvm_dialect(context: &Context, module: &mut Module<'_>, traps: TrapMode) -> Result<(), LowerError> {
    let messages = Messages::capture(context);
    let fault = |message: String| LowerError::Invalid { stage: "pass pipeline", message };
    let passes = PassManager::new(context);
    parse_pass_pipeline(passes.as_operation_pass_manager(), &pipeline(traps)).map_err(|e| fault(e.to_string()))?;
    passes.enable_verifier(true);
    passes.run(module).map_err(|_| fault(messages.take()))?;
    if module.as_operation().verify() { Ok(()) } else { Err(fault(messages.take())) }
}

/// LLVM IR of a module in the LLVM dialect, before LLVM's own optimisation.
///
/// # Errors
/// If the module cannot be translated.
pub fn llvm_ir(context: &Context, module: &Module<'_>) -> Result<String, LowerError> {
    Ok(LlvmModule::translate(context, module)?.text())
}
