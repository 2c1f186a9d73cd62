//! How the tokens of one statement of a rule file stand together: where a space is, and where a long line may break.

use crate::syntax::scan::{Kind, Token};

/// What a token is to its neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// A name, a number, a word that is an operand.
    Operand,
    /// A word that is none: `if`, `in`, `where`, the head of an item.
    Keyword,
    /// `-x`, `!x`, `*xs`
    Prefix,
    /// Between two operands. The number tells how tightly it binds.
    Infix(u8),
    /// `=>` and `<=>`
    Arrow,
    /// `=` of a statement, or of the default of a parameter.
    Assign,
    /// `=` of a named argument.
    Named,
    /// `(` of a call, `[` of an index.
    OpenTight,
    /// `(` of a group, `[` of a list.
    OpenLoose,
    Close,
    Brace,
    Comma,
    Colon,
    /// What touches on both sides: `.`, and `<` of a type.
    Tight,
    /// `>` of a type.
    CloseAngle,
    At,
    Bar,
}

/// Where the tokens stand, as far as that decides about spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Setting {
    /// From the keyword of an item to its brace.
    Head,
    /// A statement that begins with a word such as `where`.
    Keyword,
    /// Any other statement.
    Plain,
}

/// A token as it is written.
#[derive(Clone, Copy, Debug)]
pub(super) struct Atom<'t> {
    pub text: &'t str,
    pub role: Role,
    /// Brackets of the statement that are open before it.
    pub depth: usize,
    /// A space is before it unless it begins a line.
    pub space: bool,
}

/// The tokens of a statement with their roles.
pub(super) fn atoms<'t>(tokens: &[Token], source: &'t str, setting: Setting) -> Vec<Atom<'t>> {
    let mut atoms: Vec<Atom<'t>> = Vec::with_capacity(tokens.len());
    let mut depth = 0usize;
    for token in tokens {
        let text = token.text(source);
        let role = role(&atoms, depth, token.kind, text, setting);
        let space = match atoms.last() {
            // Three minus signs in a row would be a bar.
            Some(before) if before.role == Role::Prefix => (before.text, text) == ("-", "-"),
            Some(before) => !touches_next(before.role) && !touches_last(role),
            None => false,
        };
        atoms.push(Atom { text, role, depth, space });
        match token.kind {
            Kind::Open(_) => depth += 1,
            Kind::Close(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    atoms
}

fn touches_next(role: Role) -> bool {
    matches!(role, Role::Prefix | Role::OpenTight | Role::OpenLoose | Role::Tight | Role::At | Role::Named)
}

fn touches_last(role: Role) -> bool {
    matches!(
        role,
        Role::OpenTight | Role::Close | Role::Comma | Role::Colon | Role::Tight | Role::CloseAngle | Role::Named
    )
}

/// Reserved words that stand for no value.
const KEYWORDS: [&str; 10] = ["let", "in", "fn", "handle", "with", "tensor", "if", "then", "else", "for"];

fn role(before: &[Atom<'_>], depth: usize, kind: Kind, text: &str, setting: Setting) -> Role {
    let last = before.last();
    let last_text = last.map_or("", |a| a.text);
    let second_last = before.len().checked_sub(2).map_or("", |k| before[k].text);
    let behind_operand = last.is_some_and(|a| matches!(a.role, Role::Operand | Role::Close | Role::CloseAngle));
    match kind {
        Kind::Word if KEYWORDS.contains(&text) => Role::Keyword,
        Kind::Word if last.is_none() && setting != Setting::Plain => Role::Keyword,
        Kind::Word | Kind::Number | Kind::Text | Kind::Stray => Role::Operand,
        Kind::Bar => Role::Bar,
        Kind::Open(b'{') | Kind::Close(b'{') => Role::Brace,
        Kind::Open(b'(') if last_text == "fn" || behind_operand => Role::OpenTight,
        // `rewrite name [class]`
        Kind::Open(b'[') if behind_operand && (setting != Setting::Head || depth > 0) => Role::OpenTight,
        Kind::Open(_) => Role::OpenLoose,
        Kind::Close(_) => Role::Close,
        Kind::Punctuation => match text {
            "," => Role::Comma,
            ":" => Role::Colon,
            "." => Role::Tight,
            "@" => Role::At,
            "<" if last_text == "tensor" => Role::Tight,
            ">" if second_last == "@" => Role::CloseAngle,
            "=>" | "<=>" => Role::Arrow,
            "=" => assign(before, second_last, setting),
            "-" | "!" | "*" if !behind_operand => Role::Prefix,
            "||" => Role::Infix(1),
            "&&" => Role::Infix(2),
            "+" | "-" | "++" => Role::Infix(4),
            "*" | "/" | "%" => Role::Infix(5),
            _ => Role::Infix(3),
        },
    }
}

/// `name =` behind a bracket, a comma or `*` is an argument; in the head of a `def` it is a parameter.
fn assign(before: &[Atom<'_>], second_last: &str, setting: Setting) -> Role {
    let is_parameter = setting == Setting::Head && before.last().is_some_and(|a| a.depth <= 1);
    if matches!(second_last, "(" | "," | "*") && !is_parameter { Role::Named } else { Role::Assign }
}

/// The longest line that is left as it is, in characters.
pub(super) const WIDTH: usize = 120;

/// Words that begin an item at the start of a line (`syntax::rules`), wherever they stand.
const ITEMS: [&str; 5] = ["vjp", "rewrite", "def", "override", "import"];

/// Where a line of these atoms that is too long breaks: before the atom of that number. `None` where it cannot.
///
/// Behind an arrow if there is one, otherwise at the least depth, between arguments rather than between operands, and as
/// far to the right as there is room.
pub(super) fn break_at(atoms: &[Atom<'_>], indent: usize) -> Option<usize> {
    let mut width = indent;
    let mut best: Option<((usize, u8), usize)> = None;
    for (i, atom) in atoms.iter().enumerate() {
        if let Some(before) = i.checked_sub(1).map(|k| &atoms[k])
            && !ITEMS.contains(&atom.text)
        {
            let rank = match (before.role, atom.role) {
                (Role::Arrow, _) if i > 1 => Some(0),
                (Role::Comma, _) => Some(1),
                (_, Role::Keyword) if matches!(atom.text, "then" | "else" | "for") => Some(2),
                (_, Role::Infix(level)) => Some(2 + level),
                _ => None,
            };
            if let Some(rank) = rank {
                let cost = (atom.depth, rank);
                let fits = width <= WIDTH;
                if best.is_none_or(|(least, _)| fits && cost <= least) {
                    best = Some((cost, i));
                }
            }
        }
        width += usize::from(i > 0 && atom.space) + atom.text.chars().count();
    }
    if width > WIDTH { best.map(|(_, i)| i) } else { None }
}
