//! Why goals were missed: written by hand into a run's directory, shown beside the goals.

use std::fs;
use std::path::Path;

use crate::comparison::goals;

/// What somebody wrote to `causes.md` in the run's directory after looking: lines `- GOAL: CAUSE`, each for one goal
/// in the words of its table, and text.
#[derive(Default)]
pub(crate) struct Causes {
    pub(crate) of: Vec<(String, String)>,
    pub(crate) text: String,
}

impl Causes {
    pub(crate) fn read(directory: &Path) -> Causes {
        // Without the file nobody has looked yet.
        let all = fs::read_to_string(directory.join("causes.md")).unwrap_or_default();
        let mut causes = Causes::default();
        for line in all.lines() {
            let goal = |line: &str| {
                let known = |goal: &&goals::Goal| line.starts_with(&format!("{}: ", goal.text));
                goals::GOALS.iter().find(known).map(|goal| goal.text)
            };
            match line.strip_prefix("- ").and_then(|line| Some((goal(line)?, line))) {
                Some((goal, line)) => causes.of.push((goal.to_owned(), line[goal.len() + 2..].to_owned())),
                None => causes.text.push_str(&format!("{line}\n")),
            }
        }
        causes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_goes_to_its_goal_and_text_stays() {
        let directory = std::env::temp_dir().join(format!("bench-causes-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let goal = goals::GOALS[0].text;
        fs::write(
            directory.join("causes.md"),
            format!("Looked at with perf.\n\n- {goal}: a lock\n- another\n"),
        )
        .unwrap();
        let causes = Causes::read(&directory);
        fs::remove_dir_all(&directory).unwrap();
        assert_eq!(causes.of, [(goal.to_owned(), "a lock".to_owned())]);
        assert_eq!(causes.text, "Looked at with perf.\n\n- another\n");
        assert!(Causes::read(&directory).of.is_empty());
    }
}
