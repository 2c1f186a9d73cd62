//! The pass pipeline, and what comes after it: the LLVM dialect and LLVM IR.

use std::ffi::CStr;

use melior::Context;
use melior::ir::Module;
use melior::pass::PassManager;
use melior::utility::parse_pass_pipeline;

use super::{LowerError, Messages, TrapMode};

/// Loops, then control flow, then LLVM. Functions take bare pointers in the status form: all shapes are static.
fn pipeline(traps: TrapMode) -> String {
    let (before, convention) = match traps {
        TrapMode::Assert => (
            "eliminate-empty-tensors,\
             one-shot-bufferize{bufferize-function-boundaries function-boundary-type-conversion=identity-layout-map},\
             func.func(canonicalize,cse,promote-buffers-to-stack{max-alloc-size-in-bytes=1024 max-rank-of-allocated-memref=2}),\
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
    let messages = Messages::capture(context);
    let operation = module.as_operation().to_raw();
    // SAFETY: the operation belongs to `module`, which outlives the call and is only read. Translation gives null on
    // failure, otherwise a module that is ours and lives in the LLVM context made here; both are disposed of, the
    // module first. The text is a C string of LLVM's, copied before it is handed back.
    unsafe {
        let target = llvm::LLVMContextCreate();
        let translated = mlir_sys::mlirTranslateModuleToLLVMIR(operation, target.cast());
        let text = if translated.is_null() {
            None
        } else {
            let printed = llvm::LLVMPrintModuleToString(translated.cast());
            let text = CStr::from_ptr(printed).to_string_lossy().into_owned();
            llvm::LLVMDisposeMessage(printed);
            llvm::LLVMDisposeModule(translated.cast());
            Some(text)
        };
        llvm::LLVMContextDispose(target);
        text.ok_or_else(|| LowerError::Invalid { stage: "LLVM dialect", message: messages.take() })
    }
}

/// What is needed of LLVM's own C interface, for which mlir-sys has no declarations. Signatures as in
/// `llvm-c/Core.h`; its opaque pointers are `void *` here.
mod llvm {
    use std::ffi::{c_char, c_void};

    unsafe extern "C" {
        pub fn LLVMContextCreate() -> *mut c_void;
        pub fn LLVMContextDispose(context: *mut c_void);
        pub fn LLVMPrintModuleToString(module: *mut c_void) -> *mut c_char;
        pub fn LLVMDisposeMessage(message: *mut c_char);
        pub fn LLVMDisposeModule(module: *mut c_void);
    }
}
