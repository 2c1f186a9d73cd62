//! The pest parser, and its rules in human words.

use pest_derive::Parser;

/// One parser over all grammar files, so that both forms of programs and rule files have one `Rule` type.
#[derive(Parser)]
#[grammar = "grammar/expr.pest"]
#[grammar = "grammar/kina.pest"]
#[grammar = "grammar/sexpr.pest"]
#[grammar = "grammar/rules.pest"]
pub(super) struct KinaParser;

/// How specific an expectation is; of several, only the most specific ones are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Weight {
    /// What may always follow an expression: worth a word only if nothing else would do.
    Continuation,
    Specific,
}

/// What a missing `rule` is called. `None`: not worth a word.
pub(super) fn describe(rule: Rule) -> Option<(&'static str, Weight)> {
    let continuation = match rule {
        Rule::infix => Some("an operator"),
        Rule::dot | Rule::method | Rule::index | Rule::args => Some("a call"),
        _ => None,
    };
    if let Some(words) = continuation {
        return Some((words, Weight::Continuation));
    }
    let words = match rule {
        Rule::ident => "a name",
        Rule::tuple_pattern => "a name or a tuple of names",
        Rule::kw_let | Rule::binding | Rule::block => "`let`",
        Rule::kw_in => "`in`",
        Rule::kw_fn | Rule::function => "`fn`",
        Rule::kw_handle | Rule::handle => "`handle`",
        Rule::kw_with => "`with`",
        Rule::kw_tensor | Rule::tensor => "a type such as `tensor<F32, [2, 3], @host>`",
        Rule::kw_if | Rule::choice => "`if`",
        Rule::kw_then => "`then`",
        Rule::kw_else => "`else`",
        Rule::kw_for | Rule::each => "`for`",
        Rule::open_paren => "`(`",
        Rule::close_paren => "`)`",
        Rule::open_bracket => "`[`",
        Rule::close_bracket => "`]`",
        Rule::open_brace => "`{`",
        Rule::close_brace => "`}`",
        Rule::open_angle => "`<`",
        Rule::close_angle => "`>`",
        Rule::comma => "`,`",
        Rule::colon => "`:`",
        Rule::at | Rule::placement => "a placement (`@host` or `@device`)",
        Rule::thin_arrow => "`->`",
        Rule::assign => "`=`",
        Rule::dim => "a dimension (a whole number)",
        Rule::dims => "a list of dimensions such as `[2, 3]`",
        Rule::param => "a parameter such as `x: tensor<F32, [2, 3], @host>`",
        Rule::arg | Rule::spread => "an argument",
        Rule::expr | Rule::operand | Rule::reference | Rule::neg | Rule::not => "an expression",
        Rule::EOI => "the end",
        Rule::path => "a path in double quotes",
        Rule::kw_vjp => "`vjp`",
        Rule::kw_as => "`as`",
        Rule::import | Rule::vjp | Rule::rewrite | Rule::def | Rule::item => "`vjp`, `rewrite`, `def` or `import`",
        Rule::premise => "the premise, `y = op(x, ..)`",
        Rule::bar => "a bar of three or more minus signs",
        Rule::one_way => "`=>`",
        Rule::both_ways => "`<=>`",
        Rule::def_param => "a parameter",
        Rule::line | Rule::bind | Rule::bind_each => "a statement such as `name = expression`",
        _ => return None,
    };
    Some((words, Weight::Specific))
}
