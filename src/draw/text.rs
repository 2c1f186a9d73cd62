//! Text of a drawing: how wide it is, how it is shortened, how it is escaped.

/// Characters of a shortened text that stand behind the gap at least.
const TAIL: usize = 8;

/// How many cells of a fixed-width font a text takes. No font is asked: names of programs are ASCII, and what is not (a file's name
/// may be anything) is taken to be as wide as any character gets.
pub fn cells(text: &str) -> usize {
    text.chars().map(|c| if c.is_ascii() { 1 } else { 2 }).sum()
}

/// The text, with a gap in its middle where it takes more than `most` cells: names often differ at their ends.
pub fn shorten(text: &str, most: usize) -> String {
    if cells(text) <= most {
        return text.to_owned();
    }
    let room = most.saturating_sub(2);
    let tail = TAIL.min(room / 3);
    let mut front = String::new();
    let mut taken = 0;
    for c in text.chars() {
        let width = if c.is_ascii() { 1 } else { 2 };
        if taken + width > room - tail {
            break;
        }
        taken += width;
        front.push(c);
    }
    let mut back: Vec<char> = Vec::new();
    let mut taken = 0;
    for c in text.chars().rev() {
        let width = if c.is_ascii() { 1 } else { 2 };
        if taken + width > tail {
            break;
        }
        taken += width;
        back.push(c);
    }
    front + ".." + &back.into_iter().rev().collect::<String>()
}

/// Items in a row, the first and the last of them where all would take more than `most` cells: `w0, w1, .., w11`.
pub fn list(items: &[String], most: usize) -> String {
    let all = items.join(", ");
    match items {
        [first, .., last] if cells(&all) > most => {
            let each = most.saturating_sub(4) / 2;
            format!("{} .. {}", shorten(first, each), shorten(last, each))
        }
        _ => shorten(&all, most),
    }
}

/// Text in XML: what has a meaning there is written as a reference, and what XML cannot hold at all as a question mark.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c if c.is_control() => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_text_keeps_both_ends() {
        assert_eq!(shorten("abc", 3), "abc");
        let short = shorten("a_very_long_name_that_ends_in_17", 20);
        assert!(cells(&short) <= 20 && short.starts_with("a_very") && short.ends_with("_17"), "{short}");
        assert!(cells(&shorten(&"\u{4e16}".repeat(40), 21)) <= 21);
        for most in 0..8 {
            assert!(cells(&shorten("abcdefghijkl", most)) <= most.max(2), "{most}");
        }
        assert_eq!(list(&["w0".into(), "w1".into()], 20), "w0, w1");
        assert_eq!(list(&(0..12).map(|i| format!("w{i}")).collect::<Vec<_>>(), 20), "w0 .. w11");
    }

    #[test]
    fn nothing_is_left_that_xml_gives_a_meaning() {
        assert_eq!(escape("<&\">\u{1}\u{ffff}"), "&lt;&amp;&quot;&gt;??");
    }
}
