//! The explorer on a terminal: reads keys, draws, and has another thread make what takes long.

use std::io::{self, IsTerminal, Stdout};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Once};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::cursor::Show;
use ratatui::crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use ratatui::crossterm::terminal::{EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode};
use ratatui::crossterm::{QueueableCommand, execute};

use super::Tour;
use super::screen::{Flow, Screen};
use super::state::{Done, Source, Task};
use crate::diagnostics::Diagnostic;

/// How long to wait for a key while something is being made, and while nothing is.
const SOON: Duration = Duration::from_millis(30);
const LATER: Duration = Duration::from_millis(500);
/// What takes no longer than this is not spoken of.
const SHORT: Duration = Duration::from_millis(150);

/// Colours are for terminals that have them and people who want them.
pub fn has_colour(no_color: bool) -> bool {
    let is_set = |name: &str| std::env::var_os(name).is_some_and(|v| !v.is_empty());
    !no_color && !is_set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb")
}

/// Is there a terminal to draw on?
///
/// # Errors
/// The refusal, if there is none.
pub fn check() -> Result<(), Diagnostic> {
    if io::stdout().is_terminal() && io::stdin().is_terminal() {
        return Ok(());
    }
    Err(Diagnostic::error("E0932", "`explore` draws on a terminal, and this is none")
        .help("`--script -` reads commands from a pipe and prints the answers; `--script FILE` from a file"))
}

/// The terminal as it was, on whatever way this is left.
struct Restored(());

impl Restored {
    fn enter() -> io::Result<Restored> {
        static HOOK: Once = Once::new();
        let main = thread::current().id();
        HOOK.call_once(|| {
            // What a panic says would be lost on the other screen. Other threads' panics are caught.
            let previous = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                if thread::current().id() == main {
                    restore();
                    previous(info);
                }
            }));
        });
        let restored = Restored(());
        enable_raw_mode()?;
        execute!(io::stdout(), EnterAlternateScreen)?;
        Ok(restored)
    }
}

impl Drop for Restored {
    fn drop(&mut self) {
        restore();
    }
}

/// A terminal that is gone needs nothing.
fn restore() {
    let _ = disable_raw_mode();
    let mut out: Stdout = io::stdout();
    let _ = out.queue(Show);
    let _ = execute!(out, LeaveAlternateScreen);
}

/// The thread that does tasks, one at a time.
struct Worker {
    tasks: Sender<Task>,
    done: Receiver<Option<Done>>,
    /// What it does, and since when.
    at_work: Option<(String, Instant)>,
    is_broken: bool,
}

impl Worker {
    fn start(source: Arc<Source>) -> io::Result<Worker> {
        let (tasks, orders) = channel::<Task>();
        let (results, done) = channel();
        thread::Builder::new().name("explore".to_owned()).stack_size(64 << 20).spawn(move || {
            while let Ok(task) = orders.recv() {
                let made = catch_unwind(AssertUnwindSafe(|| source.run(&task))).ok();
                if results.send(made).is_err() {
                    break;
                }
            }
        })?;
        Ok(Worker { tasks, done, at_work: None, is_broken: false })
    }

    /// Gives it the most urgent task, unless it is at work.
    fn order(&mut self, tour: &Tour, screen: &Screen) {
        if self.at_work.is_some() || self.is_broken {
            return;
        }
        let Some(task) = tour.wanted(screen.rows()).into_iter().next() else { return };
        let what = match &task {
            Task::State(at) => format!("the graph after {at}"),
            Task::Cost(at) => format!("the cost after {at}"),
            Task::Linalg { .. } => "linalg".to_owned(),
        };
        match self.tasks.send(task) {
            Ok(()) => self.at_work = Some((what, Instant::now())),
            Err(_) => self.is_broken = true,
        }
    }

    /// Takes what it has done; true if there was something.
    fn collect(&mut self, tour: &mut Tour) -> bool {
        match self.done.try_recv() {
            Ok(Some(done)) => {
                self.at_work = None;
                tour.take(done);
                true
            }
            Ok(None) | Err(TryRecvError::Disconnected) => {
                (self.at_work, self.is_broken) = (None, true);
                true
            }
            Err(TryRecvError::Empty) => false,
        }
    }
}

/// Becomes true once the process is told to end: it then does, but leaves the terminal as it was.
fn told_to_end() -> io::Result<Arc<AtomicBool>> {
    let told = Arc::new(AtomicBool::new(false));
    #[cfg(unix)]
    for signal in [signal_hook::consts::SIGTERM, signal_hook::consts::SIGHUP] {
        signal_hook::flag::register(signal, told.clone())?;
    }
    Ok(told)
}

/// Shows a tour until somebody leaves it.
///
/// # Errors
/// If the terminal cannot be read or drawn on.
pub fn run(tour: &mut Tour, colour: bool) -> io::Result<()> {
    let mut worker = Worker::start(tour.source())?;
    let told = told_to_end()?;
    let _restored = Restored::enter()?;
    let mut terminal = Terminal::new(CrosstermBackend::new(io::stdout()))?;
    let mut screen = Screen::new(colour);
    loop {
        screen.busy = worker.at_work.as_ref().map(|(what, since)| (what.clone(), since.elapsed()));
        screen.busy = screen.busy.take().filter(|(_, since)| *since > SHORT);
        if worker.is_broken {
            screen.say("what was to be made cannot be made: this is a fault of kina-ad, please report it");
        }
        terminal.draw(|frame| screen.draw(tour, frame))?;
        worker.order(tour, &screen);
        // A key, something made, or some time that is to be shown: whatever comes first.
        let drawn = Instant::now();
        loop {
            if worker.collect(tour) {
                break;
            }
            let wait = if worker.at_work.is_some() { SOON } else { LATER };
            if event::poll(wait)? {
                // All keys that are there are done before the next drawing.
                let mut flow = Flow::GoOn;
                while flow == Flow::GoOn && event::poll(Duration::ZERO)? {
                    if let Event::Key(key) = event::read()?
                        && let Some(key) = name(&key)
                    {
                        flow = screen.press(tour, &key);
                    }
                }
                if flow == Flow::Quit {
                    return Ok(());
                }
                break;
            }
            if told.load(Ordering::Relaxed) {
                return Ok(());
            }
            if worker.at_work.is_some() && drawn.elapsed() > SHORT {
                break;
            }
        }
    }
}

/// A key as the table of commands calls it.
fn name(key: &KeyEvent) -> Option<String> {
    if key.kind == KeyEventKind::Release {
        return None;
    }
    let name = match key.code {
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(format!("ctrl-{c}")),
        KeyCode::Char(' ') => "space",
        KeyCode::Char(c) => return Some(c.to_string()),
        KeyCode::Left => "left",
        KeyCode::Right => "right",
        KeyCode::Up => "up",
        KeyCode::Down => "down",
        KeyCode::PageUp => "pageup",
        KeyCode::PageDown => "pagedown",
        KeyCode::Home => "home",
        KeyCode::End => "end",
        KeyCode::Enter => "enter",
        KeyCode::Esc => "esc",
        KeyCode::Backspace => "backspace",
        KeyCode::Tab => "tab",
        _ => return None,
    };
    Some(name.to_owned())
}
