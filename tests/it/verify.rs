//! Verification of rules: every embedded rule, and wrong ones.

use kina_ad::{RuleOptions, Session, verify};

#[test]
fn all_embedded_rules_are_verified() {
    let session = Session::new(&RuleOptions {
        files: std::env::var("R").map(|r| vec![r.into()]).unwrap_or_default(),
        ..RuleOptions::default()
    })
    .unwrap();
    let subjects = verify::subjects(&session.rules);
    let start = std::time::Instant::now();
    let report = verify::check(
        &subjects,
        &session.rules,
        &session.sources,
        &verify::Options::default(),
        &mut verify::cache::Cache::none(),
    );
    for v in &report.verdicts {
        println!("{}", v.line());
    }
    println!("{}", session.refusal(report.diagnostics()));
    println!("{} {}", report.programs, report.nodes);
    println!("{:?}", start.elapsed());
    panic!();
}
