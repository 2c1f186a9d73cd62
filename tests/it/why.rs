//! `kina-ad why`: the derivation of a value.

use std::path::Path;

use serde_json::Value;

use crate::support::{directory, kina};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");

fn root(arguments: &str) -> crate::support::Outcome {
    kina(Path::new(ROOT), arguments)
}

fn json(arguments: &str) -> Value {
    serde_json::from_str(&root(&format!("{arguments} --json")).ok()).expect("JSON")
}

#[test]
fn a_gradient_is_told_from_its_operator_and_rule_on() {
    let text = root("why examples/storylm0_nll.kina mul_41b7 --proof").ok();
    for part in [
        "mul_41b7 = mul(exp_105e, broadcast_2839) : tensor<F32, [1, 4, 8], @host>",
        "log_probs = log_softmax(logits, axis=2)                           // examples/storylm0_nll.kina:8",
        "vjp log_softmax has in what it concludes for its operand x        // rules/phase1.rules:12",
        " 1  exp_of_log_softmax [real]                                     // rules/softmax.rules:5",
        "     mul(broadcast(reshape_5ace, shape=[1, 4, 8]), exp(log_softmax(logits, axis=2)))\n\
         \x20                                                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^\n\
         \x20 => mul(broadcast(reshape_5ace, shape=[1, 4, 8]), softmax(logits, axis=2))\n\
         \x20                                                  ^^^^^^^^^^^^^^^^^^^^^^^\n",
        "operand broadcast(..) is broadcast_2839: 3 steps",
        "every step holds",
    ] {
        assert!(text.contains(part), "{part}\n--- is not in\n{text}");
    }
}

/// Every value of every example has a derivation, and every proof holds.
#[test]
fn every_value_of_the_examples_is_proved() {
    for (file, level) in [
        ("examples/storylm0_nll.kina", "-O2"),
        ("examples/storylm0_nll.kina", "-O1"),
        ("examples/storylm0_nll.kina", "-O0"),
        ("examples/mlp.kina", "-O2"),
        ("examples/storylm0_nll_mean.kina", "-O2"),
    ] {
        let graph: Value = serde_json::from_str(&root(&format!("grad {file} {level} --json")).ok()).unwrap();
        for value in graph["values"].as_array().unwrap() {
            let name = value["name"].as_str().unwrap();
            let answer = json(&format!("why {file} {name} {level} --proof --all"));
            assert_eq!(answer["proof"]["holds"], true, "{file} {name}");
            assert_eq!(answer["value"], name);
            // The rule that the graph names as the maker of a value is in its derivation.
            if let Some(rule) = value["rule"]["location"].as_str()
                && level != "-O0"
            {
                let whole = answer.to_string();
                assert!(whole.contains(rule), "{file} {name}: {rule} is not in {whole}");
            }
        }
    }
}

#[test]
fn results_and_names_of_the_program_are_values_too() {
    let by_result = json("why examples/storylm0_nll.kina primal");
    let by_name = json("why examples/storylm0_nll.kina loss");
    assert_eq!(by_result, by_name);
    assert_eq!(by_name["value"], "loss");
    let input = root("why examples/storylm0_nll.kina logits").ok();
    assert!(input.contains("logits = input") && input.contains("no rewrite changed it"), "{input}");
}

#[test]
fn a_name_that_no_value_has_is_refused_with_a_way_out() {
    root("why examples/storylm0_nll.kina logit")
        .refusal(1, &["E0951", "there is no value `logit`", "did you mean `logits`?"])
        .unwrap();
    root("why examples/storylm0_nll.kina zzzzzz").refusal(1, &["E0951", "`kina-ad grad` prints the values"]).unwrap();
    root("why examples/storylm0_nll.kina log_probs")
        .refusal(1, &["E0952", "nothing in the result needs it any more", "-O0"])
        .unwrap();
    root("why examples/none.kina x").refusal(4, &["E0701"]).unwrap();
}

/// Rules with conditions, computed attributes and facts of domains are replayed with them.
#[test]
fn conditions_and_facts_are_replayed() {
    let directory = directory(&[
        (
            "my.rules",
            "/// The absolute value of what is not negative.\n\
             rewrite abs_of_positive [exact] {\n  abs(x) => x\n  domain x >= 0.0\n}\n",
        ),
        (
            "p.kina",
            "let x = tensor<F32, [4], @host> in\nlet e = x.exp() in\nlet y = (e * e).abs() in\nlet z = x.log_softmax(axis=0).exp().abs() in\ny + z",
        ),
    ]);
    let answer: Value =
        serde_json::from_str(&kina(directory.path(), "why p.kina result --rules my.rules --proof --all --json").ok())
            .unwrap();
    assert_eq!(answer["proof"]["holds"], true);
    assert!(answer["proof"]["facts"].as_u64().unwrap() >= 1, "{answer:#}");
}

/// Steps beyond a screenful are counted, and `--all` shows each lemma once.
#[test]
fn long_derivations_are_summarised() {
    let mut program = String::from("let x = tensor<F64, [2], @host> in\nlet y0 = x in\n");
    for i in 0..80 {
        program.push_str(&format!("let y{} = -(-(y{i} * 1.0)) in\n", i + 1));
    }
    program.push_str("y80.exp()");
    let directory = directory(&[("p.kina", program)]);
    let short = kina(directory.path(), "why p.kina result").ok();
    let whole = kina(directory.path(), "why p.kina result --all --proof").ok();
    assert!(short.lines().count() < 120, "{short}");
    assert!(whole.contains("every step holds"), "{whole}");
    let lemmas: Vec<&str> = whole.lines().filter(|l| l.starts_with("lemma ")).collect();
    let mut once = lemmas.clone();
    once.sort_unstable();
    once.dedup();
    assert_eq!(once.len(), lemmas.len());
}

/// A deep program is no problem: nothing recurses over its depth.
#[test]
fn deep_programs_are_explained() {
    let mut program =
        String::from("let f = fn(x: tensor<F64, [2], @host>) -> tensor<F64, [2], @host> {\nlet y0 = x in\n");
    for i in 0..2_000 {
        program.push_str(&format!("let y{} = y{i}.tanh() + (-(-y{i})) in\n", i + 1));
    }
    program.push_str("y2000 } in\nlet x = tensor<F64, [2], @host> in\nhandle f(x) with reverseMode");
    let directory = directory(&[("p.kina", program)]);
    let answer: Value = serde_json::from_str(&kina(directory.path(), "why p.kina g_x --proof --json").ok()).unwrap();
    assert_eq!(answer["proof"]["holds"], true);
}
