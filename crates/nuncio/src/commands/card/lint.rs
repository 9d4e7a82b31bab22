//! `nuncio card lint`.

use nuncio_protocol::json;
use nuncio_protocol::lint::{Finding, Level, lint};

use super::args::{CardOutput, LintArgs};
use super::{print_json, source};
use crate::failure::Failure;
use crate::output::{print, tell};
use crate::terminal::one_line;

pub(super) async fn run(args: &LintArgs) -> Result<(), Failure> {
    let mut all = Vec::new();
    for card in &args.cards {
        all.push((card, lint(&source::read(card).await?)));
    }
    match args.output {
        CardOutput::Json => {
            let cards: Vec<_> = all.iter().map(|(card, found)| json!({ "card": card, "findings": found })).collect();
            print_json(&cards)?;
        }
        CardOutput::Text => {
            let text: String =
                all.iter().flat_map(|(card, found)| found.iter().map(|finding| line(card, finding))).collect();
            print(&text)?;
        }
    }
    let count = |level| all.iter().flat_map(|(_, found)| found).filter(|finding| finding.level == level).count();
    let (errors, warnings) = (count(Level::Error), count(Level::Warning));
    if errors > 0 || (args.strict && warnings > 0) {
        return Err(Failure::failed(format!("{errors} error(s) and {warnings} warning(s)")));
    }
    tell(&format!("No errors, {warnings} warning(s).\n"));
    Ok(())
}

/// One mistake. What the card says may try to drive the terminal.
fn line(card: &str, finding: &Finding) -> String {
    let Finding { rule, level, section, at, message } = finding;
    let at = if at.is_empty() { String::new() } else { format!("{}: ", one_line(at)) };
    format!("{card}: {level}: {at}{} [{rule}, section {section}]\n", one_line(message))
}
