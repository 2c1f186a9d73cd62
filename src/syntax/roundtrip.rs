//! Every tree has one text in each form, and reading that text gives the tree: generated trees, and trees of the greatest
//! height.

use proptest::prelude::*;

use super::ast::{Arg, BinaryOp, Expr, ExprKind, FnParam, Function, Ident, Let, Pattern, Program, TypeExpr, UnaryOp};
use super::{Form, MAX_HEIGHT, Remarks, on_big_stack, parse_program, print_program};
use crate::diagnostics::{Diagnostics, SourceMap, Span};

/// A place for what stands nowhere.
fn nowhere() -> Span {
    let mut sources = SourceMap::new();
    let file = sources.add("", "");
    sources.span(file, 0, 0)
}

fn expr(kind: ExprKind) -> Expr {
    Expr { kind, span: nowhere() }
}

fn ident(name: &str) -> Ident {
    Ident { name: name.into(), span: nowhere() }
}

/// The tree as text without places. (NaN is unequal to itself, but not its text.)
fn shape(program: &Program) -> String {
    without_places(&format!("{:?}", program.body))
}

/// The text that `Debug` gives a tree, without places.
pub(super) fn without_places(text: &str) -> String {
    let mut parts = text.split("Span {");
    let first = parts.next().unwrap_or_default().to_owned();
    // A span holds no braces.
    parts.fold(first, |shape, part| shape + part.split_once('}').map_or("", |(_, behind)| behind))
}

fn read(text: &str) -> Result<Program, String> {
    let mut sources = SourceMap::new();
    let file = sources.add("p", text);
    let mut bag = Diagnostics::new();
    let program = parse_program(&sources, file, &mut bag);
    match bag.iter().next() {
        None => Ok(program),
        Some(d) => Err(format!("{} {}", d.code, d.message)),
    }
}

/// Both forms of a tree read back as the tree, and then print as they did.
fn round_trip(program: &Program) -> Result<(), String> {
    let expected = shape(program);
    for form in [Form::Kina, Form::Sexpr] {
        let text = print_program(program, form, Remarks::None);
        if Form::of(&text) != form {
            return Err(format!("not recognised: {text}"));
        }
        let again = read(&text).map_err(|e| format!("{e}: {text}"))?;
        if shape(&again) != expected {
            return Err(format!("another tree: {text}"));
        }
        for other in [Form::Kina, Form::Sexpr] {
            if print_program(&again, other, Remarks::None) != print_program(program, other, Remarks::None) {
                return Err(format!("another text: {text}"));
            }
        }
    }
    Ok(())
}

/// Names, among them those of heads and types, and some that begin like a reserved word or a number.
pub(super) fn names() -> impl Strategy<Value = Ident> {
    const NAMES: [&str; 13] =
        ["x", "y", "_", "e1", "program", "tuple", "F32", "host", "axis", "let_", "infx", "reverseMode", "f"];
    prop::sample::select(&NAMES[..]).prop_map(ident)
}

fn types() -> impl Strategy<Value = TypeExpr> {
    let dim = prop_oneof![Just(None), any::<u64>().prop_map(Some), (0u64..4).prop_map(Some)];
    (names(), prop::collection::vec(dim, 0..4), names()).prop_map(|(dtype, dims, placement)| TypeExpr {
        dtype,
        dims: dims.into_iter().map(|d| (d, nowhere())).collect(),
        placement,
        span: nowhere(),
    })
}

/// The leaves of trees that a parser makes: numbers have no sign, but for the least integer.
fn leaves() -> impl Strategy<Value = ExprKind> {
    prop_oneof![
        names().prop_map(|n| ExprKind::Name(n.name)),
        (0..=i64::MAX).prop_map(ExprKind::Int),
        (0..9i64).prop_map(ExprKind::Int),
        Just(ExprKind::Int(i64::MIN)),
        any::<f64>().prop_map(|v| ExprKind::Float(v.abs())),
        (0..100u32).prop_map(|v| ExprKind::Float(f64::from(v) / 8.0)),
        any::<bool>().prop_map(ExprKind::Bool),
        Just(ExprKind::NoCotangent),
        types().prop_map(ExprKind::Input),
    ]
}

fn args(inner: impl Strategy<Value = Expr> + Clone) -> impl Strategy<Value = Vec<Arg>> {
    let arg = (prop::option::of(names()), any::<bool>(), inner);
    prop::collection::vec(arg.prop_map(|(name, spread, value)| Arg { name, spread, value }), 0..4)
}

pub(super) fn trees() -> impl Strategy<Value = Expr> {
    const BINARY: [BinaryOp; 14] = [
        BinaryOp::Add,
        BinaryOp::Sub,
        BinaryOp::Mul,
        BinaryOp::Div,
        BinaryOp::Rem,
        BinaryOp::Concat,
        BinaryOp::Eq,
        BinaryOp::Ne,
        BinaryOp::Lt,
        BinaryOp::Le,
        BinaryOp::Gt,
        BinaryOp::Ge,
        BinaryOp::And,
        BinaryOp::Or,
    ];
    leaves().prop_map(expr).prop_recursive(6, 60, 4, |inner| {
        let boxed = || inner.clone().prop_map(Box::new);
        let several = |least| prop::collection::vec(inner.clone(), least..4);
        let pattern = prop_oneof![
            names().prop_map(Pattern::Name),
            prop::collection::vec(names(), 2..4).prop_map(|names| Pattern::Tuple(names, nowhere())),
        ];
        let binding = (pattern, inner.clone()).prop_map(|(pattern, value)| Let { pattern, value });
        let param = (names(), types()).prop_map(|(name, ty)| FnParam { name, ty });
        let function = (prop::collection::vec(param, 0..4), prop::option::of(types()), inner.clone());
        let method = (names(), inner.clone(), args(inner.clone())).prop_map(|(callee, receiver, mut args)| {
            args.insert(0, Arg { name: None, spread: false, value: receiver });
            ExprKind::Call { callee, args, method: true }
        });
        prop_oneof![
            several(0).prop_map(ExprKind::List),
            several(2).prop_map(ExprKind::Tuple),
            (names(), args(inner.clone())).prop_map(|(callee, args)| ExprKind::Call { callee, args, method: false }),
            method,
            (prop::sample::select(&[UnaryOp::Neg, UnaryOp::Not][..]), boxed())
                .prop_map(|(op, operand)| ExprKind::Unary(op, operand)),
            (prop::sample::select(&BINARY[..]), boxed(), boxed()).prop_map(|(op, a, b)| ExprKind::Binary(op, a, b)),
            (boxed(), boxed(), boxed()).prop_map(|(c, a, b)| ExprKind::If(c, a, b)),
            (boxed(), boxed()).prop_map(|(list, index)| ExprKind::Index(list, index)),
            (boxed(), names(), boxed(), prop::option::of(boxed())).prop_map(|(element, name, list, condition)| {
                ExprKind::Comprehension { element, name, list, condition }
            }),
            (prop::collection::vec(binding, 1..4), boxed()).prop_map(|(lets, body)| ExprKind::Block(lets, body)),
            function.prop_map(|(params, result, body)| ExprKind::Fn(Box::new(Function { params, result, body }))),
            (names(), args(inner), names()).prop_map(|(callee, args, handler)| ExprKind::Handle {
                callee,
                args,
                handler
            }),
        ]
        .prop_map(expr)
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn generated_trees_read_back_as_themselves(body in trees()) {
        prop_assert_eq!(round_trip(&Program { body }), Ok(()));
    }
}

type Growth = (&'static str, fn(Expr) -> ExprKind);

/// The ways in which a tree grows higher by one.
fn growths() -> Vec<Growth> {
    fn arg(value: Expr) -> Vec<Arg> {
        vec![Arg { name: None, spread: false, value }]
    }
    fn x() -> Box<Expr> {
        Box::new(expr(ExprKind::Int(1)))
    }
    fn let_x(value: Expr) -> Vec<Let> {
        vec![Let { pattern: Pattern::Name(ident("x")), value }]
    }
    vec![
        ("list", |e| ExprKind::List(vec![e])),
        ("tuple", |e| ExprKind::Tuple(vec![*x(), e])),
        ("call", |e| ExprKind::Call { callee: ident("f"), args: arg(e), method: false }),
        ("method", |e| ExprKind::Call { callee: ident("f"), args: arg(e), method: true }),
        ("minus", |e| ExprKind::Unary(UnaryOp::Neg, Box::new(e))),
        ("method of a minus", |e| match e.kind {
            ExprKind::Unary(..) => ExprKind::Call { callee: ident("f"), args: arg(e), method: true },
            _ => ExprKind::Unary(UnaryOp::Neg, Box::new(e)),
        }),
        ("left operand", |e| ExprKind::Binary(BinaryOp::Sub, Box::new(e), x())),
        ("right operand", |e| ExprKind::Binary(BinaryOp::Sub, x(), Box::new(e))),
        ("value of a let", |e| ExprKind::Block(let_x(e), x())),
        ("body of a let", |e| ExprKind::Block(let_x(*x()), Box::new(e))),
        ("let and fn in turn", |e| match e.kind {
            ExprKind::Block(..) => ExprKind::Fn(Box::new(Function { params: Vec::new(), result: None, body: e })),
            _ => ExprKind::Block(let_x(e), x()),
        }),
        ("handle", |e| ExprKind::Handle { callee: ident("f"), args: arg(e), handler: ident("reverseMode") }),
    ]
}

#[test]
fn trees_of_the_greatest_height_read_back_in_both_forms() {
    on_big_stack(|| {
        for (name, grow) in growths() {
            let mut body = expr(ExprKind::Name("x".into()));
            for _ in 1..MAX_HEIGHT {
                body = expr(grow(body));
            }
            let mut program = Program { body };
            assert_eq!(round_trip(&program), Ok(()), "{name}");
            program.body = expr(grow(program.body));
            for form in [Form::Kina, Form::Sexpr] {
                let refused = read(&print_program(&program, form, Remarks::None)).unwrap_err();
                assert!(refused.starts_with("E0103"), "{name}, {form:?}: {refused}");
            }
        }
    });
}

#[test]
fn long_chains_of_lets_read_back_in_both_forms() {
    let lets = (0..100_000)
        .map(|i| Let { pattern: Pattern::Name(ident(&format!("a{i}"))), value: expr(ExprKind::Int(i)) })
        .collect();
    let program = Program { body: expr(ExprKind::Block(lets, Box::new(expr(ExprKind::Name("a7".into()))))) };
    for form in [Form::Kina, Form::Sexpr] {
        let again = read(&print_program(&program, form, Remarks::None)).unwrap();
        assert!(matches!(&again.body.kind, ExprKind::Block(lets, _) if lets.len() == 100_000));
        assert_eq!(
            print_program(&again, Form::Kina, Remarks::None),
            print_program(&program, Form::Kina, Remarks::None)
        );
    }
}
