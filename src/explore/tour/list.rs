//! The rows of the list of applications.

use crate::egraph::record::Record;

/// A row of the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Row {
    /// Before any application.
    Start,
    /// The heading of an iteration, counted from 1; 0 stands for what was done before the first.
    Iteration(usize),
    /// Counted from 1.
    Application(usize),
    /// The fuel ends; so many applications are not done.
    Spent(usize),
}

/// The rows: iterations with their applications, of which those count that are in `passing` and up to `limit`.
pub fn rows(record: &Record, passing: Option<&[usize]>, limit: usize, hide_empty: bool) -> Vec<Row> {
    let all = record.applications.len();
    let mut rows = vec![Row::Start];
    let first = record.iterations.first().map_or(all, |i| i.applications.0);
    let before = (first > 0).then_some((0, (0, first)));
    let iterations = record.iterations.iter().enumerate().map(|(i, iteration)| (i + 1, iteration.applications));
    for (number, (from, to)) in before.into_iter().chain(iterations) {
        let to = to.min(limit);
        if from > limit || (from == limit && from < all && limit < all) {
            break;
        }
        let shown: Vec<Row> = match passing {
            None => (from + 1..=to).map(Row::Application).collect(),
            Some(passing) => {
                let (a, b) = (passing.partition_point(|p| *p <= from), passing.partition_point(|p| *p <= to));
                passing.get(a..b).unwrap_or_default().iter().map(|p| Row::Application(*p)).collect()
            }
        };
        if !(shown.is_empty() && hide_empty) {
            rows.push(Row::Iteration(number));
        }
        rows.extend(shown);
    }
    if limit < all {
        rows.push(Row::Spent(all - limit));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::egraph::record::{Application, Cause, Iteration, Moment};

    fn record(applications: usize, iterations: &[(usize, usize)]) -> Record {
        let id = egg::Id::from(0);
        let one =
            Application { cause: Cause::Alternative, iteration: 1, class: id, value: id, after: Moment::default() };
        let iteration =
            |applications: &(usize, usize)| Iteration { applications: *applications, ..Iteration::default() };
        Record {
            applications: vec![one; applications],
            iterations: iterations.iter().map(iteration).collect(),
            ..Record::default()
        }
    }

    #[test]
    fn rows_are_iterations_with_what_passes() {
        use Row::{Application as A, Iteration as I, Spent, Start};
        let record = record(4, &[(1, 3), (3, 3), (3, 4)]);
        assert_eq!(rows(&record, None, 4, false), [Start, I(0), A(1), I(1), A(2), A(3), I(2), I(3), A(4)]);
        assert_eq!(rows(&record, None, 4, true), [Start, I(0), A(1), I(1), A(2), A(3), I(3), A(4)]);
        assert_eq!(rows(&record, Some(&[3, 4]), 4, true), [Start, I(1), A(3), I(3), A(4)]);
        assert_eq!(rows(&record, None, 2, false), [Start, I(0), A(1), I(1), A(2), Spent(2)]);
        assert_eq!(rows(&record, None, 0, false), [Start, Spent(4)]);
        assert_eq!(rows(&Record::default(), None, 0, false), [Start]);
    }
}
