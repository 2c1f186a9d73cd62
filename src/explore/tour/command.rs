//! The commands of the explorer, in one table: their names, keys, arguments and help. The key map, the `?` screen, the parser of
//! scripts and the documentation are made from it.

use std::fmt::Write as _;

/// What one can ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Next(usize),
    Back(usize),
    NextIteration,
    PreviousIteration,
    First,
    Last,
    Goto(usize),
    Iteration(usize),
    Filter(Filter),
    /// `None` turns it round.
    HideEmpty(Option<bool>),
    /// So many rows around the position.
    Applications(usize),
    Class(Option<String>),
    /// `None` turns it round.
    Forms(Option<bool>),
    BeforeAfter,
    Rule,
    Linalg(Option<String>),
    Graph,
    Cost,
    Fuel(Option<usize>),
    /// `None` looks for the last text again.
    Search(Option<String>),
    Help,
    Quit,
}

/// Which applications count.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    #[default]
    None,
    Rule(String),
    Op(String),
}

impl Filter {
    /// As it is written in a command.
    pub fn text(&self) -> String {
        match self {
            Filter::None => "none".to_owned(),
            Filter::Rule(name) => format!("rule {name}"),
            Filter::Op(name) => format!("op {name}"),
        }
    }
}

/// What a key does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    /// It is this command.
    Run(&'static str),
    /// It begins this command; the rest is typed.
    Ask(&'static str),
}

/// A row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    pub name: &'static str,
    /// How its arguments are written.
    pub arguments: &'static str,
    /// The keys, as the screen of keys shows them.
    pub keys: &'static [&'static str],
    pub press: Press,
    pub help: &'static str,
    /// A call that every program understands.
    pub example: &'static str,
}

const fn entry(
    name: &'static str,
    arguments: &'static str,
    keys: &'static [&'static str],
    press: Press,
    help: &'static str,
    example: &'static str,
) -> Entry {
    Entry { name, arguments, keys, press, help, example }
}

use Press::{Ask, Run};

/// All commands.
pub const TABLE: &[Entry] = &[
    entry("next", "[N]", &["right", "l", "space"], Run("next"), "the next application, or the Nth", "next"),
    entry("back", "[N]", &["left", "h", "backspace"], Run("back"), "the application before, or the Nth", "back"),
    entry("next-iteration", "", &["]"], Run("next-iteration"), "the end of the next iteration", "next-iteration"),
    entry(
        "previous-iteration",
        "",
        &["["],
        Run("previous-iteration"),
        "the end of the one before",
        "previous-iteration",
    ),
    entry("first", "", &["0", "home"], Run("first"), "the program before any rewriting", "first"),
    entry("last", "", &["G", "end"], Run("last"), "the program after the last application", "last"),
    entry("goto", "N", &["g"], Ask("goto "), "the state after N applications", "goto 1"),
    entry("iteration", "N", &["i"], Ask("iteration "), "the state after iteration N", "iteration 1"),
    entry(
        "filter",
        "rule NAME | op NAME | none",
        &["f"],
        Ask("filter "),
        "only applications of a rule, or with an operator",
        "filter op exp",
    ),
    entry("hide-empty", "[on|off]", &["e"], Run("hide-empty"), "hide iterations that changed nothing", "hide-empty on"),
    entry(
        "applications",
        "[N]",
        &["1", "esc"],
        Run("applications"),
        "the list, in a script N rows of it around the position",
        "applications 10",
    ),
    entry(
        "class",
        "[VALUE|cN]",
        &["2", "enter", "c"],
        Run("class"),
        "all forms of a value, or of the one just rewritten",
        "class",
    ),
    entry("forms", "[all|few]", &["a"], Run("forms"), "show what is hidden in a view, or hide it", "forms all"),
    entry("before-after", "", &["3", "b"], Run("before-after"), "the extracted graph before and after", "before-after"),
    entry("rule", "", &["4", "r"], Run("rule"), "the rule that was applied, in its file", "rule"),
    entry("linalg", "[VALUE|cN]", &["5", "L"], Run("linalg"), "what a value is lowered to", "linalg"),
    entry("graph", "", &["6"], Run("graph"), "the graph extracted here", "graph"),
    entry("cost", "", &["="], Run("cost"), "its cost here, at the start and at the end", "cost"),
    entry("fuel", "N|off", &["u"], Ask("fuel "), "as if only N applications had been allowed", "fuel off"),
    entry("search", "[TEXT]", &["/"], Ask("search "), "the next place of a text in this view; `n` again", "search exp"),
    entry("help", "", &["?"], Run("help"), "commands and keys", "help"),
    entry("quit", "", &["q", "ctrl-c"], Run("quit"), "leave", "quit"),
];

/// Keys that are about the screen and no commands: they change what is seen of a view.
pub const SCROLLS: &[(&[&str], &str)] = &[
    (&["up", "k", "down", "j"], "scroll by a line; in the list, step"),
    (&["pageup", "pagedown"], "scroll by a page; in the list, step by a page"),
    (&["<", ">"], "scroll sideways"),
    (&["w"], "wrap long lines, or not"),
    (&["tab"], "the next view"),
    (&["n"], "search again"),
    (&["C"], "type the name of a value to see its forms"),
    (&[":"], "type any command"),
];

/// Why a line is no command.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    #[error("there is no command `{0}`")]
    Unknown(String),
    #[error("`{0}` is written `{0} {1}`")]
    Arguments(&'static str, &'static str),
}

/// The row of a command.
pub fn entry_of(name: &str) -> Option<&'static Entry> {
    TABLE.iter().find(|e| e.name == name)
}

/// What a key does; `key` is as in the table.
pub fn press_of(key: &str) -> Option<Press> {
    TABLE.iter().find(|e| e.keys.contains(&key)).map(|e| e.press)
}

/// The names of all commands.
pub fn names() -> impl Iterator<Item = &'static str> {
    TABLE.iter().map(|e| e.name)
}

impl Command {
    /// Reads a command as it is written in a script.
    ///
    /// # Errors
    /// No such command, or other arguments than it has.
    pub fn parse(line: &str) -> Result<Command, CommandError> {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let rest = rest.trim();
        let entry = entry_of(name).ok_or_else(|| CommandError::Unknown(name.to_owned()))?;
        let wrong = || CommandError::Arguments(entry.name, entry.arguments);
        let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
        let or = |text: &str, otherwise: usize| if text.is_empty() { Ok(otherwise) } else { number(text) };
        let named = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        let switch = |text: &str, on: &str, off: &str| match text {
            "" => Ok(None),
            t if t == on => Ok(Some(true)),
            t if t == off => Ok(Some(false)),
            _ => Err(wrong()),
        };
        let bare = |command: Command| if rest.is_empty() { Ok(command) } else { Err(wrong()) };
        match entry.name {
            "next" => Ok(Command::Next(or(rest, 1)?)),
            "back" => Ok(Command::Back(or(rest, 1)?)),
            "next-iteration" => bare(Command::NextIteration),
            "previous-iteration" => bare(Command::PreviousIteration),
            "first" => bare(Command::First),
            "last" => bare(Command::Last),
            "goto" => Ok(Command::Goto(number(rest)?)),
            "iteration" => Ok(Command::Iteration(number(rest)?)),
            "filter" => match rest.split_once(char::is_whitespace) {
                None if rest == "none" => Ok(Command::Filter(Filter::None)),
                Some(("rule", name)) => Ok(Command::Filter(Filter::Rule(name.trim().to_owned()))),
                Some(("op", name)) => Ok(Command::Filter(Filter::Op(name.trim().to_owned()))),
                _ => Err(wrong()),
            },
            "hide-empty" => Ok(Command::HideEmpty(switch(rest, "on", "off")?)),
            "applications" => Ok(Command::Applications(or(rest, ROWS)?)),
            "class" => Ok(Command::Class(named(rest))),
            "forms" => Ok(Command::Forms(switch(rest, "all", "few")?)),
            "before-after" => bare(Command::BeforeAfter),
            "rule" => bare(Command::Rule),
            "linalg" => Ok(Command::Linalg(named(rest))),
            "graph" => bare(Command::Graph),
            "cost" => bare(Command::Cost),
            "fuel" if rest == "off" => Ok(Command::Fuel(None)),
            "fuel" => Ok(Command::Fuel(Some(number(rest)?))),
            "search" => Ok(Command::Search(named(rest))),
            "help" => bare(Command::Help),
            "quit" => bare(Command::Quit),
            _ => Err(CommandError::Unknown(name.to_owned())),
        }
    }

    /// The name under which it stands in the table.
    pub fn name(&self) -> &'static str {
        match self {
            Command::Next(_) => "next",
            Command::Back(_) => "back",
            Command::NextIteration => "next-iteration",
            Command::PreviousIteration => "previous-iteration",
            Command::First => "first",
            Command::Last => "last",
            Command::Goto(_) => "goto",
            Command::Iteration(_) => "iteration",
            Command::Filter(_) => "filter",
            Command::HideEmpty(_) => "hide-empty",
            Command::Applications(_) => "applications",
            Command::Class(_) => "class",
            Command::Forms(_) => "forms",
            Command::BeforeAfter => "before-after",
            Command::Rule => "rule",
            Command::Linalg(_) => "linalg",
            Command::Graph => "graph",
            Command::Cost => "cost",
            Command::Fuel(_) => "fuel",
            Command::Search(_) => "search",
            Command::Help => "help",
            Command::Quit => "quit",
        }
    }
}

/// Rows of a list that a script gets unless it says how many.
pub const ROWS: usize = 20;

impl Entry {
    /// `goto N`
    pub fn written(&self) -> String {
        format!("{} {}", self.name, self.arguments).trim_end().to_owned()
    }
}

/// The table for people: each command, its keys and what it does.
pub fn table() -> Vec<String> {
    let keys = |keys: &[&str]| keys.join(" ");
    let commands = TABLE.iter().map(|e| (e.written(), keys(e.keys), e.help));
    let scrolls = SCROLLS.iter().map(|(k, help)| (String::new(), keys(k), *help));
    let all: Vec<(String, String, &str)> = commands.chain(scrolls).collect();
    let width = |f: &dyn Fn(&(String, String, &str)) -> usize| all.iter().map(f).max().unwrap_or(0);
    let (first, second) = (width(&|r| r.1.len()), width(&|r| r.0.len()));
    let mut out = Vec::new();
    for (written, keys, help) in &all {
        let mut line = String::new();
        let _ = write!(line, "{keys:first$}  {written:second$}  {help}");
        out.push(line.trim_end().to_owned());
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_command_has_a_key_and_help_and_says_what_it_is() {
        let mut keys = BTreeSet::new();
        for entry in TABLE {
            assert!(!entry.keys.is_empty() && !entry.help.is_empty(), "{}", entry.name);
            for key in entry.keys {
                assert!(keys.insert(*key), "two commands have the key {key}");
            }
            let parsed = Command::parse(entry.example).unwrap_or_else(|e| panic!("{}: {e}", entry.example));
            assert_eq!(parsed.name(), entry.name);
            match entry.press {
                Press::Run(line) => assert_eq!(Command::parse(line).map(|c| c.name()), Ok(entry.name)),
                Press::Ask(start) => assert_eq!(start.trim(), entry.name),
            }
        }
        for key in SCROLLS.iter().flat_map(|(keys, _)| *keys) {
            assert!(keys.insert(key), "two meanings of the key {key}");
        }
        assert_eq!(table().len(), TABLE.len() + SCROLLS.len());
    }

    #[test]
    fn wrong_lines_are_refused_with_the_way_out() {
        assert_eq!(Command::parse("jump"), Err(CommandError::Unknown("jump".to_owned())));
        for line in
            ["goto", "goto x", "goto 1 2", "filter", "filter rule", "fuel", "forms some", "graph all", "next -1"]
        {
            let error = Command::parse(line).unwrap_err();
            assert!(matches!(error, CommandError::Arguments(..)), "{line}: {error}");
        }
        assert_eq!(
            Command::parse("  filter   rule  vjp exp ").unwrap(),
            Command::Filter(Filter::Rule("vjp exp".into()))
        );
    }
}
