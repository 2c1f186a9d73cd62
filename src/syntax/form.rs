//! The two written forms of a program.

/// How a program is written. Both forms are forms of one syntax tree ([`super::ast`]).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `let x = tensor<F32, [2], @host> in x.relu()`
    Kina,
    /// `(program (let ((x (tensor F32 [2] @host))) (.relu x)))`
    Sexpr,
}

/// The word that a program in S-expressions begins with. No `def` may have this name (`rules::load`).
pub const PROGRAM_HEAD: &str = "program";

impl Form {
    /// The form of a text, by its content alone: a text that begins with `(program`, or with a `;` comment, is an
    /// S-expression.
    ///
    /// No Kina program begins so. `;` starts nothing in Kina; and where a Kina text says `(program`, that is a name or a
    /// call, which nothing has bound yet and no operator or `def` is called.
    pub fn of(text: &str) -> Form {
        let text = behind_blanks(text.strip_prefix('\u{FEFF}').unwrap_or(text), false);
        if text.starts_with(';') {
            return Form::Sexpr;
        }
        let Some(inside) = text.strip_prefix('(') else { return Form::Kina };
        let inside = behind_blanks(inside, true);
        let word = inside.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(inside.len());
        if &inside[..word] == PROGRAM_HEAD { Form::Sexpr } else { Form::Kina }
    }

    /// What starts a comment, which ends with its line.
    pub fn comment(self) -> &'static str {
        match self {
            Form::Kina => "//",
            Form::Sexpr => ";",
        }
    }
}

/// `text` behind white space and comments: those of Kina, on request those of S-expressions too.
fn behind_blanks(text: &str, semicolons: bool) -> &str {
    let mut text = text;
    loop {
        text = text.trim_start_matches([' ', '\t', '\n', '\r']);
        if !(text.starts_with("//") || semicolons && text.starts_with(';')) {
            return text;
        }
        text = &text[text.find(['\n', '\r']).unwrap_or(text.len())..];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_content_tells_the_form() {
        let sexprs = [
            "(program x)",
            "\u{FEFF} \r\n( program\tx)",
            "; c",
            ";",
            "// c\n(program",
            "(; c\r// d\rprogram(",
            "(program",
        ];
        for text in sexprs {
            assert_eq!(Form::of(text), Form::Sexpr, "{text:?}");
        }
        let kina =
            ["", "// (program x)", "(programs)", "((program))", "program", "let program = 1 in (program)", "(x)", "/"];
        for text in kina {
            assert_eq!(Form::of(text), Form::Kina, "{text:?}");
        }
    }
}
