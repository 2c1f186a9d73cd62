//! Mutations of texts that keep whole tokens: most of what the fuzzer makes of a text otherwise ends in its first line.

use std::ops::Range;

/// Numbers at which something changes.
const NUMBERS: [&str; 14] = [
    "0",
    "1",
    "2",
    "3",
    "4",
    "63",
    "64",
    "65",
    "4096",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "1e-5",
    "1e400",
];

/// Changes a text of `size` bytes in place, half of the time by the fuzzer's own mutations; returns its new size.
pub fn mutate(data: &mut [u8], size: usize, max_size: usize, seed: u32, vocabulary: &str) -> usize {
    let mut random = Random(u64::from(seed) | 1 << 32);
    let text = match std::str::from_utf8(&data[..size]) {
        Ok(text) if random.below(2) == 0 => text.to_owned(),
        _ => return libfuzzer_sys::fuzzer_mutate(data, size, max_size),
    };
    let mut text = text;
    for _ in 0..=random.below(3) {
        text = change(&text, &mut random, vocabulary);
    }
    // Cut between characters.
    let mut end = text.len().min(max_size).min(data.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    data[..end].copy_from_slice(&text.as_bytes()[..end]);
    end
}

/// xorshift; the quality of the numbers does not matter.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % n.max(1)
    }

    fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        from.get(self.below(from.len()))
    }
}

/// One change of one token, or of a run of them.
fn change(text: &str, random: &mut Random, vocabulary: &str) -> String {
    let tokens = tokens(text);
    let Some(at) = random.pick(&tokens).cloned() else { return vocabulary.to_owned() };
    let kind = kind(&text[at.clone()]);
    let word = |random: &mut Random| {
        let words: Vec<&str> = entries(vocabulary).collect();
        random.pick(&words).map_or(String::new(), |w| (*w).to_owned())
    };
    match random.below(9) {
        // Another token of its kind from the same text.
        0 | 1 => {
            let like: Vec<&Range<usize>> = tokens.iter().filter(|t| self::kind(&text[(*t).clone()]) == kind).collect();
            let other = random.pick(&like).map_or("", |t| &text[(*t).clone()]).to_owned();
            replaced(text, at, &other)
        }
        // One of the language's.
        2 if kind == Kind::Number => {
            let number = random.pick(&NUMBERS).copied().unwrap_or("0");
            replaced(text, at, number)
        }
        2 => {
            let word = word(random);
            replaced(text, at, &word)
        }
        3 => {
            let word = word(random);
            replaced(text, at.end..at.end, &format!(" {word} "))
        }
        // A run of tokens goes, or stands twice, or somewhere else too.
        4 => replaced(text, run(&tokens, random), ""),
        5 => {
            let run = run(&tokens, random);
            let copy = format!(" {} ", &text[run.clone()]);
            replaced(text, run.end..run.end, &copy)
        }
        6 => {
            let copy = format!(" {} ", &text[run(&tokens, random)]);
            replaced(text, at.start..at.start, &copy)
        }
        // An operand becomes an expression.
        7 if kind == Kind::Word => {
            let (callee, name) = (word(random), text[at.clone()].to_owned());
            let call = match random.below(4) {
                0 => format!("{callee}({name})"),
                1 => format!("{name}.{callee}()"),
                2 => format!("({name} {callee} {name})"),
                _ => format!("(-{name})"),
            };
            replaced(text, at, &call)
        }
        // A bracket and what it holds goes or stands twice.
        _ => {
            let Some(group) = group(text, &tokens, at.start) else { return replaced(text, at, "") };
            let copy = if random.below(2) == 0 { String::new() } else { text[group.clone()].repeat(2) };
            replaced(text, group, &copy)
        }
    }
}

fn replaced(text: &str, range: Range<usize>, by: &str) -> String {
    [&text[..range.start], by, &text[range.end..]].concat()
}

/// A few neighbouring tokens.
fn run(tokens: &[Range<usize>], random: &mut Random) -> Range<usize> {
    let first = random.below(tokens.len());
    let length = if random.below(4) == 0 { 40 } else { 6 };
    let last = (first + random.below(length)).min(tokens.len() - 1);
    tokens[first].start..tokens[last].end
}

/// The bracketed part that the first opening bracket at or behind `start` opens.
fn group(text: &str, tokens: &[Range<usize>], start: usize) -> Option<Range<usize>> {
    let mut depth = 0;
    let mut from = None;
    for token in tokens.iter().filter(|t| t.start >= start) {
        match &text[token.clone()] {
            "(" | "[" | "{" => {
                from.get_or_insert(token.start);
                depth += 1;
            }
            ")" | "]" | "}" if depth > 0 => {
                depth -= 1;
                if depth == 0 {
                    return from.map(|from| from..token.end);
                }
            }
            _ => {}
        }
    }
    None
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Word,
    Number,
    Other,
}

fn kind(token: &str) -> Kind {
    match token.bytes().next() {
        Some(b'0'..=b'9') => Kind::Number,
        Some(b) if b.is_ascii_alphabetic() || b == b'_' => Kind::Word,
        _ => Kind::Other,
    }
}

/// Words, numbers, and every other character that is no space.
fn tokens(text: &str) -> Vec<Range<usize>> {
    let mut tokens: Vec<Range<usize>> = Vec::new();
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        match tokens.last_mut() {
            Some(last) if word(c) && word(before) => last.end = end,
            _ if c.is_whitespace() => {}
            _ => tokens.push(at..end),
        }
        before = c;
    }
    tokens
}

/// The entries of a dictionary of libFuzzer, `"text"` one a line.
fn entries(dictionary: &str) -> impl Iterator<Item = &str> {
    dictionary.lines().filter_map(|line| line.strip_prefix('"')?.strip_suffix('"'))
}
