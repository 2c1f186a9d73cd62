//! The way out of syntax errors that writers of rules make.

use super::ast::BinaryOp;
use super::grammar::Rule;

/// Where in a rule file a syntax error is.
pub(super) struct Place<'a> {
    /// `vjp`, `rewrite`, `def` or `import`.
    pub item: &'a str,
    /// Texts of the token before the one that was found, of that one, and of the next.
    pub near: [&'a str; 3],
    /// What the grammar expected.
    pub positives: &'a [Rule],
    /// Is the token that was found the first of its line?
    pub first_of_line: bool,
}

impl Place<'_> {
    fn wants(&self, rule: Rule) -> bool {
        self.positives.contains(&rule)
    }

    /// What was expected, in better words than those for the grammar's rules. `None` where those will do.
    pub fn expected(&self, found_end: bool) -> Option<&'static str> {
        let [_, found, _] = self.near;
        let behind_expression = self.wants(Rule::infix);
        let statement = self.wants(Rule::EOI) || self.wants(Rule::line) || self.wants(Rule::bind);
        if found_end && self.wants(Rule::close_brace) {
            Some("`}`")
        } else if found == "->" && self.item == "rewrite" {
            Some("`=>`")
        } else if behind_expression && statement && !found_end && !matches!(found, ")" | "]" | "}" | "=") {
            Some(if self.first_of_line { "a statement such as `name = expression`" } else { "an operator" })
        } else {
            None
        }
    }

    /// The way out.
    pub fn help(&self) -> Option<String> {
        let [before, found, next] = self.near;
        let behind_expression = self.wants(Rule::infix);
        let help = if found == ";" {
            "nothing ends with `;`: a statement ends with its line"
        } else if self.wants(Rule::bar) {
            match found {
                "-" => "a bar has at least three minus signs, and a line of its own",
                _ if self.first_of_line => {
                    "a bar such as `-----`, on a line of its own, separates the premise from the conclusions"
                }
                _ => {
                    "the premise is one call, `y = op(x)`; a bar such as `-----` follows on the next line, and below it what is \
                     computed"
                }
            }
        } else if self.item == "vjp" && self.wants(Rule::open_paren) && !behind_expression {
            return operator_name(found)
                .map(|name| format!("in a premise the operator has its name: `{name}({before}, {next})`"));
        } else if self.item == "rewrite"
            && self.wants(Rule::open_bracket)
            && !behind_expression
            && !self.wants(Rule::assign)
        {
            "the class of a rewrite follows its name: `[exact]` or `[real]`"
        } else if self.item == "rewrite" && (found == "->" || self.wants(Rule::one_way)) {
            "a rewrite is written `left => right`, or `left <=> right` for both ways; `==` compares"
        } else if self.item == "def" && found == "return" {
            "the result of a `def` stands behind `=>`"
        } else if self.item == "import" && !found.starts_with('"') {
            "write `import \"FILE.rules\"`"
        } else if self.wants(Rule::colon) && behind_expression && found != "=" {
            "a kink states a value: `kink x == 0.0: g_x = 0.0`"
        } else if self.wants(Rule::comma) && is_word(found) && !self.first_of_line {
            return Some(format!("arguments stand between commas: put `,` before `{found}`"));
        } else if behind_expression && matches!(self.expected(false), Some("an operator")) && is_word(found) {
            "put an operator such as `*` here; a new statement starts on a new line"
        } else {
            return None;
        };
        Some(help.to_owned())
    }
}

fn is_word(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '_')
}

/// The name of the operator that a sign stands for.
fn operator_name(sign: &str) -> Option<&'static str> {
    use BinaryOp as B;
    let all = [B::Add, B::Sub, B::Mul, B::Div, B::Eq, B::Ne, B::Lt, B::Le, B::Gt, B::Ge];
    all.into_iter().find(|op| op.symbol() == sign).and_then(BinaryOp::operator_name)
}
