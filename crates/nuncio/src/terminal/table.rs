//! Tables that fit the terminal, and that nobody cuts where no terminal is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{Paint, one_line};

/// Columns are not made narrower than this, unless the table says so.
const NARROWEST: usize = 8;
const GAP: &str = "  ";

/// A table. Columns that are too wide together are cut.
#[derive(Debug)]
pub(crate) struct Table {
    head: Vec<&'static str>,
    /// Which columns give way, in this order, and to which width.
    order: Vec<(usize, usize)>,
    rows: Vec<Vec<Cell>>,
}

/// One cell: a line of text and how it looks.
#[derive(Debug)]
pub(crate) struct Cell {
    text: String,
    paint: Paint,
}

impl Cell {
    /// Foreign text; what would break the table is taken out.
    pub(crate) fn new(text: &str) -> Self {
        Self::painted(text, Paint::Plain)
    }

    pub(crate) fn painted(text: &str, paint: Paint) -> Self {
        Self { text: one_line(text), paint }
    }
}

impl Table {
    pub(crate) fn new(head: &[&'static str]) -> Self {
        let order = (0..head.len()).rev().map(|column| (column, NARROWEST)).collect();
        Self { head: head.to_vec(), order, rows: Vec::new() }
    }

    /// Only these columns give way, in this order, and to which width; instead of all, the last ones first.
    pub(crate) fn giving_way(self, order: &[(usize, usize)]) -> Self {
        Self { order: order.to_vec(), ..self }
    }

    pub(crate) fn row(&mut self, cells: Vec<Cell>) {
        self.rows.push(cells);
    }

    /// The table, in lines of at most `width` if there is one.
    pub(crate) fn render(&self, width: Option<usize>, colours: bool) -> String {
        let widths = self.widths(width);
        let head: Vec<Cell> = self.head.iter().map(|name| Cell::painted(name, Paint::Bold)).collect();
        let rule: Vec<Cell> = widths.iter().map(|width| Cell::painted(&"-".repeat(*width), Paint::Dim)).collect();
        let mut text = String::new();
        for cells in [&head, &rule].into_iter().chain(&self.rows) {
            let shown: Vec<String> =
                cells.iter().zip(&widths).map(|(cell, width)| pad(cell, *width, colours)).collect();
            text.push_str(shown.join(GAP).trim_end());
            text.push('\n');
        }
        text
    }

    fn widths(&self, most: Option<usize>) -> Vec<usize> {
        let widest = |(column, name): (usize, &&str)| {
            let cells = self.rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.text.width());
            cells.max().unwrap_or(0).max(name.len())
        };
        let mut widths: Vec<usize> = self.head.iter().enumerate().map(widest).collect();
        let gaps = GAP.len() * widths.len().saturating_sub(1);
        let Some(most) = most else { return widths };
        for (column, least) in &self.order {
            let over = (widths.iter().sum::<usize>() + gaps).saturating_sub(most);
            if let Some(width) = widths.get_mut(*column) {
                *width = width.saturating_sub(over).max((*least).min(*width));
            }
        }
        widths
    }
}

fn pad(cell: &Cell, width: usize, colours: bool) -> String {
    let text = cut(&cell.text, width);
    let padding = " ".repeat(width.saturating_sub(text.width()));
    format!("{}{padding}", cell.paint.on(colours, &text))
}

/// The text, or its beginning with a sign that there is more.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut short = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        short.push(c);
    }
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn table(rows: &[[&str; 3]]) -> Table {
        let mut table = Table::new(&["ID", "Status", "Message"]);
        for row in rows {
            table.row(row.iter().map(|text| Cell::new(text)).collect());
        }
        table
    }

    #[test]
    fn the_last_columns_give_way_first() {
        let table =
            table(&[["0123456789", "working", "a long message that does not fit"], ["1", "done", "你好你好你好"]]);
        let whole = table.render(None, false);
        assert!(whole.contains("a long message that does not fit"), "{whole}");
        let narrow = table.render(Some(30), false);
        let lines: Vec<&str> = narrow.lines().collect();
        assert_eq!(lines[2], "0123456789  working  a long m…");
        assert_eq!(lines[3], "1           done     你好你好…");
        assert!(lines.iter().all(|line| line.width() <= 30), "{narrow}");
    }

    #[test]
    fn cells_cannot_break_the_table() {
        let text = table(&[["a\nb", "\x1b[2Jx", "c\td"]]).render(None, false);
        assert_eq!(text.lines().count(), 3);
        assert_eq!(text.lines().last(), Some("a b  x       c d"));
        assert!(!text.contains('\x1b'));
        assert!(table(&[]).render(None, true).contains("\x1b[1mID\x1b[0m"));
    }

    proptest! {
        #[test]
        fn a_wide_enough_terminal_is_never_left(cells in prop::array::uniform3("\\PC{0,60}"), width in 28_usize..200) {
            let cells = [cells[0].as_str(), &cells[1], &cells[2]];
            for line in table(&[cells]).render(Some(width), false).lines() {
                prop_assert!(line.width() <= width, "{line:?}");
            }
        }
    }
}
