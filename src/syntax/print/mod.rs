//! Trees back to source text, in both forms, and rule files in one style. What is printed parses to the same tree (up to
//! spans).

mod kina;
mod rules;
mod sexpr;
mod spacing;

pub use rules::format_rules;

use super::ast::{Expr, Pattern, Program};
use super::comments::Comment;
use super::form::{Form, PROGRAM_HEAD};

/// What is printed along with a program, as comments.
#[derive(Clone, Copy, Debug)]
pub enum Remarks<'a> {
    None,
    /// The comments of the text that the program was read from, in their order; each keeps its place among the lines.
    Source(&'a [Comment]),
    /// One beside each `let` of the outermost chain, none where it is empty.
    Lets(&'a [String]),
}

/// A whole program, with an end of line.
pub fn print_program(program: &Program, form: Form, remarks: Remarks<'_>) -> String {
    let mut writer = Writer::new(form, remarks);
    let body = &program.body;
    writer.comments_before(body.span.start, 0);
    match form {
        Form::Kina => {
            let start = writer.out.len();
            writer.kina(body, 0);
            // In a tree that no check accepts the name may come first: parentheses keep such a text Kina.
            if Form::of(&writer.out[start..]) == Form::Sexpr {
                writer.out.insert(start, '(');
                writer.out.push(')');
            }
        }
        Form::Sexpr => {
            writer.out.push('(');
            writer.out.push_str(PROGRAM_HEAD);
            writer.line(2, body.span.start);
            writer.sexpr(body, 2);
            writer.out.push(')');
        }
    }
    writer.line(0, u32::MAX);
    writer.out
}

/// An expression.
pub fn print_expr(expr: &Expr, form: Form) -> String {
    let mut writer = Writer::new(form, Remarks::None);
    match form {
        Form::Kina => writer.kina(expr, 0),
        Form::Sexpr => writer.sexpr(expr, 0),
    }
    writer.out
}

/// Deepest indentation: a tree of a thousand levels is not to be mostly spaces.
const MAX_INDENT: usize = 80;

/// Longest line to which the head of a `fn` is written.
const MAX_LINE: usize = 100;

struct Writer<'a> {
    out: String,
    form: Form,
    remarks: Remarks<'a>,
    /// The outermost block is being written or was: [`Remarks::Lets`] belong to it.
    in_block: bool,
}

impl<'a> Writer<'a> {
    fn new(form: Form, remarks: Remarks<'a>) -> Self {
        Writer { out: String::new(), form, remarks, in_block: false }
    }

    /// Takes the first comment that stands before byte `next` of the source, on request only one beside something.
    fn next_comment(&mut self, next: u32, beside_only: bool) -> Option<&'a Comment> {
        let Remarks::Source(comments) = &mut self.remarks else { return None };
        let (first, rest) = comments.split_first()?;
        if first.start >= next || beside_only && !first.beside {
            return None;
        }
        *comments = rest;
        Some(first)
    }

    /// Enters a block. The result is what stands beside each of its `let`s.
    fn enter_block(&mut self) -> &'a [String] {
        match self.remarks {
            Remarks::Lets(lets) if !self.in_block => {
                self.in_block = true;
                lets
            }
            _ => &[],
        }
    }

    /// A remark beside what was just written.
    fn beside(&mut self, remark: Option<&String>) {
        if let Some(remark) = remark.filter(|r| !r.is_empty()) {
            self.out.push_str("  ");
            self.comment(remark);
        }
    }

    fn comment(&mut self, text: &str) {
        self.out.push_str(self.form.comment());
        self.out.push_str(text);
    }

    /// Ends the line and starts the next. Comments of the source that stand before byte `next` of it go between; a
    /// comment that stood beside something ends the line.
    fn line(&mut self, indent: usize, next: u32) {
        if let Some(comment) = self.next_comment(next, true) {
            self.out.push_str("  ");
            self.comment(&comment.text);
        }
        self.new_line(indent);
        self.comments_before(next, indent);
    }

    /// Whole lines of comments, at the start of a line.
    fn comments_before(&mut self, next: u32, indent: usize) {
        while let Some(comment) = self.next_comment(next, false) {
            self.comment(&comment.text);
            if comment.before_gap {
                self.out.push('\n');
            }
            self.new_line(indent);
        }
    }

    fn new_line(&mut self, indent: usize) {
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent.min(MAX_INDENT)));
    }
}

/// Where a pattern starts in the source.
fn start(pattern: &Pattern) -> u32 {
    match pattern {
        Pattern::Name(name) => name.span.start,
        Pattern::Tuple(_, span) => span.start,
    }
}
