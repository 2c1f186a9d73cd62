//! What is emitted.

use super::*;
use crate::ir::{AttrValue, DType};
use crate::schedule::schedule;
use crate::schedule::tests::{Program, nll, ty};

fn module_text(registry: &Registry, graph: &Graph, level: Level, traps: TrapMode) -> String {
    let context = context();
    let schedule = schedule(graph, registry, level).unwrap();
    let module = lower(&context, graph, registry, &schedule, &LowerOptions::new(level, traps)).unwrap();
    text(&module, false).unwrap()
}

#[test]
fn scatter_is_lowered_as_the_specification_says() {
    let mut p = Program::new();
    let u = p.input("updates", DType::F32, &[2, 3]);
    let i = p.input("indices", DType::I64, &[2, 3]);
    let s = p.call("scatter_along_axis", &[u, i], &[AttrValue::Int(1), AttrValue::Type(ty(DType::F32, &[2, 5, 3]))]);
    p.output("result", s);
    let text = module_text(&p.registry, &p.graph, Level::O0, TrapMode::Assert);
    let expected = r#"#map = affine_map<(d0, d1) -> (d0, d1)>
#map1 = affine_map<(d0, d1) -> ()>
#map2 = affine_map<(d0, d1, d2) -> (d0, d2)>
#map3 = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
module {
  func.func @main(%arg0: tensor<2x3xf32> {kina.name = "updates"}, %arg1: tensor<2x3xi64> {kina.name = "indices"}) -> (tensor<2x5x3xf32> {kina.name = "result"}) attributes {llvm.emit_c_interface} {
    %c0_i8 = arith.constant 0 : i8
    %from_elements = tensor.from_elements %c0_i8 : tensor<i8>
    %0 = linalg.generic {indexing_maps = [#map, #map1], iterator_types = ["reduction", "reduction"]} ins(%arg1 : tensor<2x3xi64>) outs(%from_elements : tensor<i8>) {
    ^bb0(%in: i64, %out: i8):
      %c0_i64 = arith.constant 0 : i64
      %4 = arith.cmpi slt, %in, %c0_i64 : i64
      %c5_i64 = arith.constant 5 : i64
      %5 = arith.cmpi sge, %in, %c5_i64 : i64
      %6 = arith.ori %4, %5 : i1
      %7 = arith.extui %6 : i1 to i8
      %8 = arith.ori %out, %7 : i8
      linalg.yield %8 : i8
    } -> tensor<i8>
    %extracted = tensor.extract %0[] : tensor<i8>
    %1 = arith.cmpi eq, %extracted, %c0_i8 : i8
    cf.assert %1, "scatter_along_axis index out of bounds"
    %2 = tensor.empty() : tensor<2x5x3xf32>
    %3 = linalg.generic {indexing_maps = [#map2, #map2, #map3], iterator_types = ["parallel", "parallel", "parallel"]} ins(%arg1, %arg0 : tensor<2x3xi64>, tensor<2x3xf32>) outs(%2 : tensor<2x5x3xf32>) {
    ^bb0(%in: i64, %in_0: f32, %out: f32):
      %4 = linalg.index 1 : index
      %5 = arith.index_cast %4 : index to i64
      %6 = arith.cmpi eq, %5, %in : i64
      %cst = arith.constant 0.000000e+00 : f32
      %7 = arith.select %6, %in_0, %cst : f32
      linalg.yield %7 : f32
    } -> tensor<2x5x3xf32>
    return %3 : tensor<2x5x3xf32>
  }
}
"#;
    assert_eq!(text, expected);
}

/// Running sums of a function of the C library, then rows of a table and what scatters back to them.
fn in_order() -> (Registry, Graph) {
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &[3, 2]);
    let ids = p.input("ids", DType::I32, &[4]);
    let y = p.call("erfc", &[x], &[]);
    let sums = p.call("cumsum", &[y], &[AttrValue::Int(0)]);
    let start = [AttrValue::Int(1), AttrValue::float(1.0)];
    let products = p.call("linear_recurrence", &[sums, x], &start);
    let rows = p.call("gather", &[products, ids], &[]);
    let back = p.call("scatter_add", &[rows, ids], &[AttrValue::Type(ty(DType::F32, &[3, 2]))]);
    p.output("sums", sums);
    p.output("back", back);
    (p.registry, p.graph)
}

#[test]
fn points_in_order_are_loops_and_library_functions_are_declared_once() {
    let (registry, graph) = in_order();
    for level in Level::ALL {
        for traps in [TrapMode::Assert, TrapMode::Status] {
            let text = module_text(&registry, &graph, level, traps);
            // From -O1 on, erfc is inline code.
            let declared = text.matches("func.func private @erfcf(f32) -> f32").count();
            assert_eq!(declared, usize::from(level == Level::O0), "{text}");
            assert_eq!(text.matches("scf.for").count(), 6, "{level} {traps:?}\n{text}");
        }
    }
}

#[test]
fn every_form_reaches_llvm() {
    for (registry, graph) in [nll(&[2, 3, 1000]), in_order()] {
        reaches_llvm(&registry, &graph);
    }
}

fn reaches_llvm(registry: &Registry, graph: &Graph) {
    for level in Level::ALL {
        for (traps, entry) in [(TrapMode::Assert, "@main("), (TrapMode::Status, "@kina_phase_0(")] {
            let context = context();
            let schedule = schedule(graph, registry, level).unwrap();
            let options = LowerOptions::new(level, traps);
            let mut module = lower(&context, graph, registry, &schedule, &options).unwrap();
            llvm_dialect(&context, &mut module, traps).unwrap();
            let dialect = text(&module, false).unwrap();
            for other in ["unrealized_conversion_cast", "memref.", "linalg.", "func.func"] {
                assert!(!dialect.contains(other), "{level} {traps:?} {other}\n{dialect}");
            }
            let ir = llvm_ir(&context, &module).unwrap();
            assert!(ir.lines().any(|l| l.starts_with("define") && l.contains(entry)), "{level} {traps:?}\n{ir}");
        }
    }
}

#[test]
fn locations_name_values_and_source_lines() {
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &[2]);
    let y = p.call("neg", &[x], &[]);
    p.output("result", y);
    p.graph.node_mut(y).name = Some("negated".into());
    let context = context();
    let schedule = schedule(&p.graph, &p.registry, Level::O0).unwrap();
    let mut options = LowerOptions::new(Level::O0, TrapMode::Assert);
    options.locations = vec![None, Some(("rules/phase1.rules".into(), 12))];
    let module = lower(&context, &p.graph, &p.registry, &schedule, &options).unwrap();
    let with = text(&module, true).unwrap();
    for part in [r#"loc("rules/phase1.rules":12:1)"#, r#"loc("negated"("#] {
        assert!(with.contains(part), "{with}");
    }
    assert!(!text(&module, false).unwrap().contains("phase1"));
}

#[test]
fn a_module_that_is_not_lowered_has_no_llvm_ir() {
    let (registry, graph) = nll(&[2, 4]);
    let context = context();
    let schedule = schedule(&graph, &registry, Level::O0).unwrap();
    let options = LowerOptions::new(Level::O0, TrapMode::Status);
    let module = lower(&context, &graph, &registry, &schedule, &options).unwrap();
    let error = llvm_ir(&context, &module).unwrap_err().to_string();
    assert!(error.contains("func.func"), "{error}");
}

#[test]
fn objects_define_the_symbol_of_their_header() {
    let (registry, graph) = nll(&[2, 3, 8]);
    let name = symbol("my nll.v2");
    let make = |kind| object(&graph, &registry, Level::O2, &name, kind).unwrap();
    let assembly = String::from_utf8(make(FileKind::Assembly)).unwrap();
    assert!(assembly.contains("kina_my_nll_v2:"), "{assembly}");
    for runtime in ["malloc", "abort", "puts"] {
        assert!(!assembly.contains(runtime), "{runtime}");
    }
    let bytes = make(FileKind::Object);
    assert!(bytes.len() > 500 && bytes == make(FileKind::Object));
    let expected = r#"#ifndef KINA_MY_NLL_V2_H
#define KINA_MY_NLL_V2_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Bytes of the workspace, which must be aligned to 64. */
#define KINA_MY_NLL_V2_WORKSPACE 1

/* Arrays are dense and row-major; Bool is one byte, 0 or 1. Results and workspace overlap nothing.
 *   in0: logits, F32 [2, 3, 8]
 *   in1: targets, I64 [2, 3]
 *   out0: primal, F32 [2, 3]
 *   out1: g_logits, F32 [2, 3, 8]
 *
 * Returns 0, or the number of a failed check:
 *   1: take_along_axis index out of bounds
 *
 * Link with -lm. */
int32_t kina_my_nll_v2(const float *in0, const int64_t *in1, float *out0, float *out1, void *workspace);

#ifdef __cplusplus
}
#endif

#endif
"#;
    assert_eq!(header(&graph, &registry, Level::O2, &name).unwrap(), expected);
}

/// Memory holds one row of the exponentials at a time; a tensor is always whole.
#[test]
fn values_that_memory_holds_by_rows_are_tensors_too() {
    let mut p = Program::new();
    let x = p.input("x", DType::F32, &[8, 1000]);
    let y = p.call("softmax", &[x], &[AttrValue::Int(1)]);
    let z = p.call("mul", &[y, y], &[]);
    let s = p.call("sum", &[z], &[AttrValue::Ints(vec![1]), AttrValue::Bool(false)]);
    p.output("result", s);
    let schedule = schedule(&p.graph, &p.registry, Level::O2).unwrap();
    assert!(schedule.values.iter().any(|v| matches!(v.place, crate::schedule::Place::Row(_))));
    for (traps, form) in [(TrapMode::Assert, "tensor<8x1000xf32>"), (TrapMode::Status, "memref<1000xf32>")] {
        let text = module_text(&p.registry, &p.graph, Level::O2, traps);
        assert!(text.contains(form), "{text}");
    }
}

/// The assembly of a loop over 4096 elements that computes one function.
#[cfg(target_arch = "x86_64")]
fn assembly(function: &str, dtype: DType, processor: llvm::Processor) -> String {
    let mut p = Program::new();
    let x = p.input("x", dtype, &[4096]);
    let y = p.call(function, &[x], &[]);
    p.output("y", y);
    let context = context();
    let schedule = schedule(&p.graph, &p.registry, Level::O2).unwrap();
    let options = LowerOptions { symbol: Some("f".into()), ..LowerOptions::new(Level::O2, TrapMode::Status) };
    let mut module = lower(&context, &p.graph, &p.registry, &schedule, &options).unwrap();
    llvm_dialect(&context, &mut module, TrapMode::Status).unwrap();
    let mut module = llvm::LlvmModule::translate(&context, &module).unwrap();
    String::from_utf8(module.file_for(processor, 3, FileKind::Assembly).unwrap()).unwrap()
}

/// At every width of registers: no call, no arithmetic on single elements, and all of it on whole registers.
#[cfg(target_arch = "x86_64")]
#[test]
fn elementary_functions_vectorise_at_every_width() {
    let widths = [
        ("xmm", llvm::Processor { name: c"x86-64-v3", features: c"+prefer-128-bit" }),
        ("ymm", llvm::Processor { name: c"x86-64-v3", features: c"" }),
        ("zmm", llvm::Processor { name: c"x86-64-v4", features: c"-prefer-256-bit" }),
    ];
    let functions = [
        "exp", "exp2", "expm1", "log", "log1p", "sinh", "cosh", "tanh", "sigmoid", "erf", "erfc", "sin", "cos", "tan",
        "rsqrt",
    ];
    for (register, processor) in widths {
        for function in functions {
            for (dtype, packed, single) in [(DType::F32, "ps", "ss"), (DType::F64, "pd", "sd")] {
                let text = assembly(function, dtype, processor);
                let what = format!("{function} {dtype} {register}\n{text}");
                let instructions = text.lines().filter_map(|l| l.strip_prefix('\t'));
                let instructions: Vec<(&str, &str)> =
                    instructions.filter(|l| !l.starts_with('.')).filter_map(|l| l.split_once('\t')).collect();
                assert!(instructions.iter().all(|(name, _)| !name.starts_with("call")), "{what}");
                let arithmetic = |name: &str, kind: &str| {
                    name.strip_suffix(kind).is_some_and(|n| n.starts_with("vf") || n == "vsqrt")
                };
                let computes = |kind: &str, with: &str| {
                    instructions
                        .iter()
                        .filter(|(name, operands)| arithmetic(name, kind) && operands.contains(with))
                        .count()
                };
                assert_eq!(computes(single, "") + computes("sd", ""), 0, "{what}");
                // Sines of F32s are computed in F64, of as many lanes in registers twice as wide.
                let wide = dtype == DType::F32 && matches!(function, "sin" | "cos" | "tan");
                let whole =
                    if wide { computes("pd", "ymm") + computes("pd", "zmm") } else { computes(packed, register) };
                assert!(whole > 0, "{what}");
            }
        }
    }
}
