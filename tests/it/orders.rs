//! Third order: every operator that programs can write, differentiated three times and compared with finite differences.

use kina_ad::exec::{Data, Tensor};
use kina_ad::ir::operator::Visibility;
use kina_ad::ir::{AttrValue, DType, Param, TensorType};
use kina_ad::verify::statics::{Orders, orders};
use kina_ad::{CheckOptions, RuleOptions, Session};

/// A call as Kina text, operand `varied` by the name `z`.
fn call(session: &Session, name: &str, attrs: &[AttrValue], operands: usize, varied: usize) -> String {
    let (_, op) = session.rules.registry.by_name(name).unwrap();
    let mut args: Vec<String> =
        (0..operands).map(|i| if i == varied { "z".to_owned() } else { format!("a{i}") }).collect();
    for ((param, _, _), value) in op.signature().attrs().zip(attrs) {
        let value = match value {
            AttrValue::Ints(list) => format!("{list:?}"),
            other => other.to_string(),
        };
        args.push(format!("{param}={value}"));
    }
    format!("{name}({})", args.join(", "))
}

/// A type in F64.
fn wide(ty: &TensorType) -> TensorType {
    if ty.dtype.is_float() { ty.with_dtype(DType::F64) } else { ty.clone() }
}

/// Numbers between 0.2 and 0.8, where all functions are smooth; indices 0.
fn numbers(ty: &TensorType, salt: usize) -> Tensor {
    let count = ty.shape.elements() as usize;
    let float = |i: usize| 0.2 + 0.6 * (((i * 37 + salt * 61 + 17) % 101) as f64 / 101.0);
    let data = match ty.dtype {
        DType::F64 => Data::F64((0..count).map(float).collect()),
        DType::F32 => Data::F32((0..count).map(|i| float(i) as f32).collect()),
        DType::I64 => Data::I64(vec![0; count]),
        DType::I32 => Data::I32(vec![0; count]),
        DType::Bool => Data::Bool((0..count).map(|i| u8::from(i % 2 == 0)).collect()),
    };
    Tensor::new(ty.shape.clone(), data).unwrap()
}

#[test]
fn every_operator_is_right_to_third_order() {
    let mut session = Session::new(&RuleOptions::default()).unwrap();
    let all = orders(&session.rules);
    let mut tried = 0;
    for (op, orders) in all {
        let operator = session.rules.registry.op(op);
        if orders != Orders::All || operator.visibility() != Visibility::Surface {
            continue;
        }
        let name = operator.name().to_owned();
        let typed = operator
            .signature()
            .params()
            .iter()
            .all(|p| !matches!(p, Param::Attr { kind, .. } if *kind == kina_ad::ir::AttrKind::Type));
        let instance = operator.instances().into_iter().find(|(types, attrs)| {
            let types: Vec<TensorType> = types.iter().map(wide).collect();
            let refs: Vec<&TensorType> = types.iter().collect();
            types.first().is_some_and(|t| t.shape.elements() > 1 && t.dtype.is_float())
                && attrs.iter().all(|a| !matches!(a, AttrValue::DType(d) if *d != DType::F64))
                && session
                    .rules
                    .registry
                    .infer(op, &refs, attrs)
                    .is_ok_and(|r| r.dtype == DType::F64 && r.shape.elements() > 0)
        });
        let (true, Some((types, attrs))) = (typed, instance) else { continue };
        let types: Vec<TensorType> = types.iter().map(wide).collect();
        for varied in (0..types.len()).filter(|i| types[*i].dtype.is_float()) {
            let ty = &types[varied];
            let body = call(&session, &name, &attrs, types.len(), varied);
            let inputs: String = types.iter().enumerate().map(|(i, t)| format!("let a{i} = {t} in\n")).collect();
            let text = format!(
                "{inputs}let f3 = fn(x: {ty}) {{
                   let f2 = fn(y: {ty}) {{
                     let f1 = fn(z: {ty}) {{ {body} }} in
                     let (v, g) = handle f1(y) with reverseMode in g * y }} in
                   let (w, h) = handle f2(x) with reverseMode in h * x }} in
                 handle f3(a{varied}) with reverseMode"
            );
            let graph =
                session.check("p.kina", &text, &CheckOptions::default()).unwrap_or_else(|e| panic!("{text}\n{e}"));
            let program = session.differentiate(&graph).unwrap_or_else(|e| panic!("{text}\n{e}"));
            let tensors: Vec<Tensor> = program
                .tape
                .inputs
                .iter()
                .map(|id| {
                    let number = program.tape.node(*id).name.as_deref().unwrap()[1..].parse().unwrap();
                    numbers(program.tape.ty(*id), number)
                })
                .collect();
            let refs: Vec<&Tensor> = tensors.iter().collect();
            let report = session.check_gradients(&program, &refs, 0).unwrap();
            assert!(report.passed(), "{name}, operand {varied}:\n{report}\n{text}");
            tried += 1;
        }
    }
    assert!(tried > 60, "{tried}");
}
