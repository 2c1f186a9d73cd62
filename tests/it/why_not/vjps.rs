//! The same for VJPs, and definitions.

use std::collections::BTreeMap;

use kina_ad::explore::why_not::{Options, Outcome};
use kina_ad::rules::listing::entries;
use kina_ad::{Level, RuleOptions, Session};

use super::{NLL, ask, complaint, program};

/// What it is about, rules, the program, the rule, how it is asked, what came of it, and what is said.
type Case<'a> = (&'a str, String, String, &'a str, Options<'a>, Outcome, &'a [&'a str]);

#[test]
fn every_reason_of_a_vjp_is_told() {
    let o2 = Options::default();
    let o1 = Options { level: Level::O1, ..o2 };
    let o0 = Options { level: Level::O0, ..o2 };
    let other = |lines: &str, conclusion: &str| {
        format!("/// d\nvjp tanh as other {{\n  y = tanh(x)\n  ---\n{lines}  g_x = {conclusion}\n}}\n")
    };
    let dear = "g_y * exp(log(1.0 - y * y))";
    let cheap = "g_y * (1.0 - y * y)";
    let keep = "/// d\nvjp max as kept {\n  y = max(x, axis, keepdims=true)\n  ---\n  \
                g_x = broadcast(g_y, shape(x)) * cast(x == broadcast(y, shape(x)), dtype(x))\n}\n";
    let text = |body: &str| program("[3]", body);
    let nothing = String::new();
    let cases: Vec<Case<'_>> = vec![
        (
            "used",
            nothing.clone(),
            text("x.tanh()"),
            "vjp tanh",
            o2,
            Outcome::Chosen,
            &["operand x  // p.kina:4", "made    "],
        ),
        ("used at -O0", nothing.clone(), text("x.tanh()"), "tanh", o0, Outcome::Chosen, &["operand x"]),
        ("no call", nothing.clone(), text("x"), "vjp tanh", o2, Outcome::Chosen, &["has a call of `tanh`"]),
        (
            "inactive",
            nothing.clone(),
            text("z.tanh() * x"),
            "vjp tanh",
            o2,
            Outcome::Inactive,
            &["the operand depends on no parameter of a handler"],
        ),
        (
            "no handler",
            nothing.clone(),
            "let x = tensor<F32, [3], @host> in x.tanh()".into(),
            "vjp tanh",
            o2,
            Outcome::NotDifferentiated,
            &["the program has no handler"],
        ),
        (
            "outside",
            nothing.clone(),
            "let f = fn(x: tensor<F32, [], @host>) { x * x } in let x = tensor<F32, [], @host> in\n\
             let (p, g) = handle f(x) with reverseMode in (p, g.tanh())"
                .into(),
            "vjp tanh",
            o2,
            Outcome::NotDifferentiated,
            &["no handler differentiates what it stands in"],
        ),
        (
            "integers",
            nothing.clone(),
            std::fs::read_to_string(NLL).unwrap(),
            "vjp take_along_axis",
            o2,
            Outcome::Inactive,
            &["operand indices", "which carries no cotangent"],
        ),
        (
            "none",
            nothing.clone(),
            text("stop_gradient(x) * y"),
            "vjp stop_gradient",
            o2,
            Outcome::NoConclusion,
            &["the rule concludes `none` for x"],
        ),
        (
            "no cotangent",
            nothing.clone(),
            text("stop_gradient(x.tanh()) * y"),
            "vjp tanh",
            o2,
            Outcome::NoCotangent,
            &["nothing that is differentiated depends on the value"],
        ),
        (
            "alternative -O1",
            other("", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o1,
            Outcome::Level,
            &["-O2 uses it"],
        ),
        (
            "alternative where",
            other("  where rank(x) == 7\n", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Where,
            &["where rank(x) == 7 (", "rank(x) = 1"],
        ),
        (
            "alternative type",
            other("  where dtype(x) == F64\n", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Type,
            &["dtype(x) = F32"],
        ),
        (
            "alternative domain",
            other("  domain x >= 0.0\n", cheap),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Domain,
            &["domain x >= 0.0 (", "nothing is known of the elements of x"],
        ),
        (
            "alternative attribute",
            keep.into(),
            text("x.max(axis=0).broadcast([3])"),
            "vjp max as kept",
            o2,
            Outcome::Attribute,
            &["expects keepdims=true of max, found keepdims=false"],
        ),
        (
            "alternative cost",
            other("", dear),
            text("x.tanh()"),
            "vjp tanh as other",
            o2,
            Outcome::Cost,
            &["made    exp(log_", "chosen  ", " more)"],
        ),
    ];
    let mut complaints = Vec::new();
    for (what, rules, text, rule, options, outcome, words) in cases {
        let answer = ask(&rules, &text, rule, &options);
        let said = answer.text();
        let found = answer.rules.iter().any(|r| r.outcomes.contains_key(&outcome)) || what == "no call";
        complaints.extend(complaint(what, found.then_some(outcome), &said, words));
    }
    assert!(complaints.is_empty(), "{}", complaints.join("\n"));
    // By its operator: the primary one and its alternatives.
    let answer = ask(&other("", cheap), &text("x.tanh()"), "tanh", &o2);
    let names: Vec<&str> = answer.rules.iter().map(|r| &*r.rule.name).collect();
    assert_eq!(names, ["vjp tanh", "vjp tanh as other"]);
    // What an override replaces is named, and is itself a name for what replaced it.
    let rules = "/// d\noverride vjp tanh {\n  y = tanh(x)\n  ---\n  g_x = g_y - g_y * y * y\n}\n";
    let default = Session::new(&RuleOptions::default()).unwrap();
    let all = entries(&default.rules);
    let place = &all.iter().find(|e| &*e.rule.name == "vjp tanh").unwrap().rule.location;
    for name in ["vjp tanh", &**place] {
        let said = ask(rules, &text("x.tanh()"), name, &o2).text();
        assert!(said.contains(&format!("it says `override`: the rule at {place} is not in effect")), "{said}");
        assert!(said.contains("fired, "), "{said}");
    }
}

#[test]
fn definitions_are_expanded_before_or_after() {
    let rules = "/// Square.\ndef sq(x) {\n  => x * x\n}\n/// Twice.\ndef twice(x) {\n  => x + x\n}\n/// d\n\
                 vjp twice {\n  y = twice(x)\n  ---\n  g_x = g_y + g_y\n}\n";
    let text = program("[3]", "    x.sq().sq() + twice(y)");
    let before = ask(rules, &text, "sq", &Options::default());
    assert_eq!(before.rules[0].outcomes, BTreeMap::from([(Outcome::Expanded, 2)]), "{}", before.text());
    assert!(before.text().contains("before anything was differentiated: 2 calls\n"), "{}", before.text());
    let unused = ask(rules, &program("[3]", "x"), "sq", &Options::default()).text();
    assert!(unused.contains("no value that was asked about is a call of `sq`"), "{unused}");
    for (level, outcome) in [(Level::O2, Outcome::Cost), (Level::O0, Outcome::Expanded)] {
        let after = ask(rules, &text, "def twice", &Options { level, ..Options::default() });
        let said = after.text();
        let fired = after.rules[0].outcomes.keys().all(|o| o.fired());
        assert!(after.rules[0].outcomes.contains_key(&outcome) || (level == Level::O2 && fired), "{said}");
        assert!(said.contains("differentiated whole and expanded afterwards"), "{said}");
    }
}
