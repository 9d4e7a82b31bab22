//! "Did you mean …?"

/// The candidate that was probably meant, if one is near enough.
pub(crate) fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // Two slips, or one in four letters of a long word; more would be guessing.
    let limit = (word.chars().count() / 4).max(2);
    candidates
        .into_iter()
        .map(|candidate| (distance(word, candidate), candidate))
        .filter(|(slips, candidate)| *slips <= limit && *slips < candidate.chars().count())
        .min()
        .map(|(_, candidate)| candidate)
}

/// Edit distance where swapping two neighbours is one slip (optimal string alignment).
pub(crate) fn distance(left: &str, right: &str) -> usize {
    let left: Vec<char> = left.chars().collect();
    let right: Vec<char> = right.chars().collect();
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=right.len()).collect();
    for i in 1..=left.len() {
        let mut row = vec![i];
        for j in 1..=right.len() {
            let changed = usize::from(left[i - 1] != right[j - 1]);
            let mut best = (last[j] + 1).min(row[j - 1] + 1).min(last[j - 1] + changed);
            let swapped = i > 1 && j > 1 && left[i - 1] == right[j - 2] && left[i - 2] == right[j - 1];
            if swapped {
                best = best.min(before[j - 2] + 1);
            }
            row.push(best);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_slips() {
        assert_eq!(distance("port", "port"), 0);
        assert_eq!(distance("prot", "port"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("max-bdy", "max-body"), 1);
        assert_eq!(distance("kitten", "sitting"), 3);
    }

    #[test]
    fn suggests_only_what_is_near() {
        let keys = ["port", "host", "token", "tokens"];
        assert_eq!(nearest("prot", keys), Some("port"));
        assert_eq!(nearest("tokns", keys), Some("tokens"));
        assert_eq!(nearest("unrelated", keys), None);
        assert_eq!(nearest("", keys), None);
    }
}
