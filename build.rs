//! Links the OpenMP runtime that shares rows among threads (`src/exec/team.rs`); code generation needs LLVM anyway, and
//! LLVM's own runtime stands beside it.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-env-changed=MLIR_SYS_190_PREFIX");
    if std::env::var_os("CARGO_FEATURE_CODEGEN").is_none() {
        return;
    }
    let prefix = std::env::var("MLIR_SYS_190_PREFIX").unwrap_or_else(|_| "/usr/lib/llvm-19".to_owned());
    println!("cargo:rustc-link-search=native={prefix}/lib");
    println!("cargo:rustc-link-lib=dylib=omp");
    // Where LLVM is not among the system's libraries, the runtime is found beside it when the program starts.
    println!("cargo:rustc-link-arg=-Wl,-rpath,{prefix}/lib");
}
