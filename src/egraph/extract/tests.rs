//! Small problems, against all combinations.

mod optimum;

use std::collections::BTreeMap;

use super::*;
use crate::ir::AttrValue;

/// A problem from rows of (class, cost, children).
fn problem(classes: usize, rows: &[(usize, Cost, &[usize])], roots: &[usize]) -> Problem {
    let mut candidates: Vec<Vec<Candidate>> = vec![Vec::new(); classes];
    for (i, (class, cost, children)) in rows.iter().enumerate() {
        candidates[*class].push(Candidate {
            node: ENode::Attr(AttrValue::Int(i as i64)),
            cost: *cost,
            children: children.to_vec(),
        });
    }
    Problem { classes: (0..classes).map(Id::from).collect(), candidates, roots: roots.to_vec() }
}

/// All combinations.
fn optimum(problem: &Problem) -> Cost {
    let mut best = Cost::MAX;
    let sizes: Vec<usize> = problem.candidates.iter().map(Vec::len).collect();
    let total: usize = sizes.iter().product();
    for mut code in 0..total {
        let mut chosen = Vec::new();
        for size in &sizes {
            chosen.push(code % size);
            code /= size;
        }
        if acyclic(problem, &chosen) {
            best = best.min(cost_of(problem, &chosen));
        }
    }
    best
}

/// The cost of a choice, counted afresh.
fn cost_of(problem: &Problem, chosen: &[usize]) -> Cost {
    problem.order(chosen).iter().map(|c| problem.candidates[*c][chosen[*c]].cost).sum()
}

fn acyclic(problem: &Problem, chosen: &[usize]) -> bool {
    let order = problem.order(chosen);
    let place: BTreeMap<usize, usize> = order.iter().enumerate().map(|(i, c)| (*c, i)).collect();
    order.iter().all(|c| problem.candidates[*c][chosen[*c]].children.iter().all(|k| place[k] < place[c]))
}

#[test]
fn sharing_beats_the_tree_solution() {
    // Two roots, each cheaper alone (7 and 6.6); through a shared class 4 both cost 0.5 beyond 10.
    let p = problem(
        5,
        &[(0, 70, &[2]), (0, 5, &[4]), (1, 66, &[2]), (1, 5, &[4]), (2, 0, &[]), (3, 0, &[]), (4, 100, &[2])],
        &[0, 1],
    );
    let found = p.clone().solve().unwrap();
    assert_eq!(found.cost, 110);
    assert_eq!(found.cost, optimum(&p));
    assert_eq!(found.cost, cost_of(&found.problem, &found.chosen));
}

/// Problems from a linear congruential sequence: the same on every machine.
fn small_problems(count: usize) -> Vec<Problem> {
    let mut state: u64 = 12345;
    let mut next = |n: u64| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) % n
    };
    let mut problems = Vec::new();
    for _ in 0..count {
        let mut rows: Vec<(usize, Cost, Vec<usize>)> = Vec::new();
        for class in 0..9usize {
            for _ in 0..=next(2) {
                let mut children: Vec<usize> = Vec::new();
                for _ in 0..next(3) {
                    if class < 8 {
                        children.push(class + 1 + next(8 - class as u64) as usize);
                    }
                }
                children.sort_unstable();
                children.dedup();
                rows.push((class, 1 + next(50), children));
            }
        }
        let rows: Vec<(usize, Cost, &[usize])> = rows.iter().map(|(a, b, c)| (*a, *b, c.as_slice())).collect();
        problems.push(problem(9, &rows, &[0, 1]));
    }
    problems
}

#[test]
fn random_problems_stay_close_to_the_optimum() {
    let (mut sum, mut best) = (0, 0);
    for p in small_problems(60) {
        let found = p.clone().solve().unwrap();
        assert_eq!(found.cost, cost_of(&found.problem, &found.chosen));
        assert!(acyclic(&found.problem, &found.chosen));
        sum += found.cost;
        best += optimum(&p);
    }
    assert!(sum as f64 <= best as f64 * 1.005, "{sum} against the optimum {best}");
}

#[test]
fn cycles_are_never_chosen() {
    // 0 and 1 can each be had from the other for 1, or from 2 for 50.
    let p = problem(3, &[(0, 1, &[1]), (0, 50, &[2]), (1, 1, &[0]), (1, 50, &[2]), (2, 1, &[])], &[0, 1]);
    let found = p.clone().solve().unwrap();
    assert!(acyclic(&found.problem, &found.chosen));
    assert_eq!(found.cost, 52);
}

#[test]
fn out_of_steps_the_choice_is_right_and_says_so() {
    let rows: [(usize, Cost, &[usize]); 7] =
        [(0, 70, &[2]), (0, 5, &[4]), (1, 66, &[2]), (1, 5, &[4]), (2, 0, &[]), (3, 0, &[]), (4, 100, &[2])];
    let p = problem(5, &rows, &[0, 1]);
    for fuel in 0..20 {
        let found = p.clone().solve_within(Fuel(fuel)).unwrap();
        assert!(acyclic(&found.problem, &found.chosen) && found.cost == cost_of(&found.problem, &found.chosen));
        assert!(found.cost <= 136 && (found.complete || fuel < 19), "{fuel}: {found:?}");
    }
    assert!(!p.clone().solve_within(Fuel(0)).unwrap().complete && p.clone().solve().unwrap().complete);
}

#[test]
fn a_class_without_candidates_has_no_solution() {
    assert!(problem(2, &[(0, 1, &[1])], &[0]).solve().is_none());
}

#[test]
fn a_restricted_solution_stays_close_to_the_restricted_optimum() {
    let (mut sum, mut best, mut asked) = (0, 0, 0);
    for p in small_problems(40) {
        let solution = p.clone().solve().unwrap();
        let cost = solution.cost;
        let mut restrictions = restricted::Restrictions::new(solution);
        for class in 0..p.classes.len() {
            for candidate in &p.candidates[class] {
                let mut only = p.clone();
                only.candidates[class] = vec![candidate.clone()];
                let found = restrictions.restrict(class, vec![candidate.clone()], &mut Fuel(1_000_000)).unwrap();
                let optimum = optimum(&only);
                assert!(found.complete && found.cost >= optimum, "{found:?}, the optimum is {optimum}");
                sum += found.cost;
                best += optimum;
                asked += 1;
                // The solution is as it was.
                assert_eq!(restrictions.solution.cost, cost);
                assert_eq!(cost_of(&restrictions.solution.problem, &restrictions.solution.chosen), cost);
            }
        }
    }
    assert!(asked > 300 && sum as f64 <= best as f64 * 1.01, "{sum} against the optimum {best}, {asked} times");
}

#[test]
fn a_restriction_to_a_cycle_is_solved_without_it_or_not_at_all() {
    // 0 and 1 can each be had from the other for 1, or from 2 for 50.
    let p = problem(3, &[(0, 1, &[1]), (0, 50, &[2]), (1, 1, &[0]), (1, 50, &[2]), (2, 1, &[])], &[0, 1]);
    let solution = p.clone().solve().unwrap();
    assert_eq!(solution.cost, 52);
    let mut restrictions = restricted::Restrictions::new(solution);
    for class in [0, 1] {
        for (candidate, cost) in p.candidates[class].iter().zip([52, 52]) {
            let found = restrictions.restrict(class, vec![candidate.clone()], &mut Fuel(1000)).unwrap();
            assert_eq!((found.cost, found.used), (cost, true));
        }
    }
    let alone = problem(1, &[(0, 1, &[])], &[0]);
    let mut restrictions = restricted::Restrictions::new(alone.solve().unwrap());
    let own = Candidate { node: ENode::Attr(AttrValue::Int(9)), cost: 1, children: vec![0] };
    assert!(restrictions.restrict(0, vec![own], &mut Fuel(1000)).is_none());
    assert!(restrictions.restrict(0, Vec::new(), &mut Fuel(1000)).is_none());
}
