//! What is needed of LLVM's own C interface, for which mlir-sys has no declarations. Signatures as in `llvm-c/Core.h`,
//! `Target.h`, `TargetMachine.h`, `Error.h` and `Transforms/PassBuilder.h` of LLVM 19; opaque pointers are `void *` here.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr;

use melior::Context;
use melior::ir::Module;

use super::{LowerError, Messages};

type Pointer = *mut c_void;

unsafe extern "C" {
    fn LLVMContextCreate() -> Pointer;
    fn LLVMContextDispose(context: Pointer);
    fn LLVMPrintModuleToString(module: Pointer) -> *mut c_char;
    fn LLVMDisposeMessage(message: *mut c_char);
    fn LLVMDisposeModule(module: Pointer);
    fn LLVMSetTarget(module: Pointer, triple: *const c_char);
    fn LLVMSetModuleDataLayout(module: Pointer, layout: Pointer);
    fn LLVMGetDefaultTargetTriple() -> *mut c_char;
    fn LLVMGetTargetFromTriple(triple: *const c_char, target: *mut Pointer, error: *mut *mut c_char) -> c_int;
    fn LLVMCreateTargetMachine(
        target: Pointer,
        triple: *const c_char,
        cpu: *const c_char,
        features: *const c_char,
        level: c_uint,
        relocation: c_uint,
        model: c_uint,
    ) -> Pointer;
    fn LLVMDisposeTargetMachine(machine: Pointer);
    fn LLVMCreateTargetDataLayout(machine: Pointer) -> Pointer;
    fn LLVMDisposeTargetData(layout: Pointer);
    fn LLVMTargetMachineEmitToMemoryBuffer(
        machine: Pointer,
        module: Pointer,
        file: c_uint,
        error: *mut *mut c_char,
        buffer: *mut Pointer,
    ) -> c_int;
    fn LLVMGetBufferStart(buffer: Pointer) -> *const c_char;
    fn LLVMGetBufferSize(buffer: Pointer) -> usize;
    fn LLVMDisposeMemoryBuffer(buffer: Pointer);
    fn LLVMCreatePassBuilderOptions() -> Pointer;
    fn LLVMDisposePassBuilderOptions(options: Pointer);
    fn LLVMRunPasses(module: Pointer, passes: *const c_char, machine: Pointer, options: Pointer) -> Pointer;
    fn LLVMGetErrorMessage(error: Pointer) -> *mut c_char;
    fn LLVMDisposeErrorMessage(message: *mut c_char);
}

/// A processor as LLVM names it, and features to add to it or to take away.
#[derive(Clone, Copy, Debug)]
pub(super) struct Processor {
    pub name: &'static CStr,
    pub features: &'static CStr,
}

/// The processor that files are made for: fixed, so that they do not depend on the machine that makes them.
const PROCESSOR: Processor =
    Processor { name: if cfg!(target_arch = "x86_64") { c"x86-64-v3" } else { c"generic" }, features: c"" };

/// Makes LLVM know the target of this build.
#[cfg(target_arch = "x86_64")]
fn initialize_target() {
    unsafe extern "C" {
        fn LLVMInitializeX86TargetInfo();
        fn LLVMInitializeX86Target();
        fn LLVMInitializeX86TargetMC();
        fn LLVMInitializeX86AsmPrinter();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: they take nothing and register static tables, once, while nobody else runs them.
    ONCE.call_once(|| unsafe {
        LLVMInitializeX86TargetInfo();
        LLVMInitializeX86Target();
        LLVMInitializeX86TargetMC();
        LLVMInitializeX86AsmPrinter();
    });
}

#[cfg(target_arch = "aarch64")]
fn initialize_target() {
    unsafe extern "C" {
        fn LLVMInitializeAArch64TargetInfo();
        fn LLVMInitializeAArch64Target();
        fn LLVMInitializeAArch64TargetMC();
        fn LLVMInitializeAArch64AsmPrinter();
    }
    static ONCE: std::sync::Once = std::sync::Once::new();
    // SAFETY: as for x86-64.
    ONCE.call_once(|| unsafe {
        LLVMInitializeAArch64TargetInfo();
        LLVMInitializeAArch64Target();
        LLVMInitializeAArch64TargetMC();
        LLVMInitializeAArch64AsmPrinter();
    });
}

/// Others have no files: the target is then not found, which is an error.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn initialize_target() {}

/// An LLVM module in a context of its own.
pub(super) struct LlvmModule {
    context: Pointer,
    module: Pointer,
}

impl Drop for LlvmModule {
    fn drop(&mut self) {
        // SAFETY: both were made by `translate`, belong to nobody else, and the module goes first.
        unsafe {
            LLVMDisposeModule(self.module);
            LLVMContextDispose(self.context);
        }
    }
}

/// The kinds of files that LLVM makes; the numbers are LLVM's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileKind {
    Assembly = 0,
    Object = 1,
}

fn fault(stage: &'static str, message: String) -> LowerError {
    LowerError::Invalid { stage, message }
}

/// The text of a C string.
///
/// # Safety
/// `text` must point to a C string.
unsafe fn owned(text: *const c_char) -> String {
    // SAFETY: passed on.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

impl LlvmModule {
    /// Translates a module in the LLVM dialect.
    pub fn translate(context: &Context, module: &Module<'_>) -> Result<LlvmModule, LowerError> {
        let messages = Messages::capture(context);
        // SAFETY: the operation belongs to `module`, which outlives the call and is only read. The result is null on
        // failure, otherwise a module that is ours and lives in the context made here.
        unsafe {
            let target = LLVMContextCreate();
            let translated: Pointer =
                mlir_sys::mlirTranslateModuleToLLVMIR(module.as_operation().to_raw(), target.cast()).cast();
            if translated.is_null() {
                LLVMContextDispose(target);
                return Err(fault("LLVM dialect", messages.take()));
            }
            Ok(LlvmModule { context: target, module: translated })
        }
    }

    pub fn text(&self) -> String {
        // SAFETY: the module exists; the text is LLVM's until it is handed back, after it has been copied.
        unsafe {
            let printed = LLVMPrintModuleToString(self.module);
            let text = owned(printed);
            LLVMDisposeMessage(printed);
            text
        }
    }

    /// Optimises the module as `-O{level}` does and makes a file of it for [`PROCESSOR`], position-independent.
    pub fn file(&mut self, level: u8, kind: FileKind) -> Result<Vec<u8>, LowerError> {
        self.file_for(PROCESSOR, level, kind)
    }

    /// As [`file`](Self::file), for another processor.
    pub fn file_for(&mut self, processor: Processor, level: u8, kind: FileKind) -> Result<Vec<u8>, LowerError> {
        initialize_target();
        // SAFETY: every pointer passed is one that LLVM gave just before and that has not been disposed of, or a C
        // string that outlives the call; what LLVM gives is disposed of as its headers ask. `Machine` owns the target
        // machine.
        unsafe {
            let triple = LLVMGetDefaultTargetTriple();
            let machine = Machine::new(triple, processor);
            if machine.is_ok() {
                LLVMSetTarget(self.module, triple);
            }
            LLVMDisposeMessage(triple);
            let machine = machine?;
            let layout = LLVMCreateTargetDataLayout(machine.0);
            LLVMSetModuleDataLayout(self.module, layout);
            LLVMDisposeTargetData(layout);

            let passes = CString::new(format!("default<O{level}>")).unwrap_or_default();
            let options = LLVMCreatePassBuilderOptions();
            let error = LLVMRunPasses(self.module, passes.as_ptr(), machine.0, options);
            LLVMDisposePassBuilderOptions(options);
            if !error.is_null() {
                let message = LLVMGetErrorMessage(error);
                let text = owned(message);
                LLVMDisposeErrorMessage(message);
                return Err(fault("LLVM module", text));
            }

            let (mut message, mut buffer) = (ptr::null_mut(), ptr::null_mut());
            if LLVMTargetMachineEmitToMemoryBuffer(machine.0, self.module, kind as c_uint, &mut message, &mut buffer)
                != 0
            {
                let text = owned(message);
                LLVMDisposeMessage(message);
                return Err(fault("LLVM module", text));
            }
            let start = LLVMGetBufferStart(buffer).cast::<u8>();
            let bytes = std::slice::from_raw_parts(start, LLVMGetBufferSize(buffer)).to_vec();
            LLVMDisposeMemoryBuffer(buffer);
            Ok(bytes)
        }
    }
}

/// An LLVM target machine.
struct Machine(Pointer);

impl Machine {
    /// # Safety
    /// `triple` must be a C string.
    unsafe fn new(triple: *const c_char, processor: Processor) -> Result<Machine, LowerError> {
        const AGGRESSIVE: c_uint = 3;
        const POSITION_INDEPENDENT: c_uint = 2;
        const DEFAULT_MODEL: c_uint = 0;
        // SAFETY: as in `LlvmModule::file`.
        unsafe {
            let (mut target, mut message) = (ptr::null_mut(), ptr::null_mut());
            if LLVMGetTargetFromTriple(triple, &mut target, &mut message) != 0 {
                let text = owned(message);
                LLVMDisposeMessage(message);
                return Err(fault("target", text));
            }
            let machine = LLVMCreateTargetMachine(
                target,
                triple,
                processor.name.as_ptr(),
                processor.features.as_ptr(),
                AGGRESSIVE,
                POSITION_INDEPENDENT,
                DEFAULT_MODEL,
            );
            if machine.is_null() { Err(fault("target", owned(triple))) } else { Ok(Machine(machine)) }
        }
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        // SAFETY: made in `new`, disposed of once.
        unsafe { LLVMDisposeTargetMachine(self.0) }
    }
}
