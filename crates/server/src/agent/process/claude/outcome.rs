//! The line that ends a turn.

use nuncio_protocol::Value;

use super::super::jsonl::verdict::{lacks_credentials, mentions};
use super::super::jsonl::{brief, text};
use super::super::report::Report;
use super::stream::Stream;
use crate::agent::Usage;

/// The longest explanation of a failure.
const LONGEST: usize = 2000;
/// Words that mean missing credentials where the program has no key.
const KEYLESS: [&str; 4] = ["api key", "credential", "authenticat", "log in"];

/// Reads a `result` line.
pub(super) fn read(stream: &mut Stream, result: &Value, out: &mut Vec<Report>) {
    usage(stream, result, out);
    let failed = result.get("is_error").and_then(Value::as_bool) == Some(true)
        || text(result, "subtype").starts_with("error")
        || stream.wire.api_error.is_some_and(|begin| text(result, "result").starts_with(begin));
    if failed {
        return stream.verdict.give(failure(stream, result), out);
    }
    if !stream.answer.has_begun() {
        out.extend(stream.answer.piece(text(result, "result")).map(Report::Text));
    }
    if text(result, "stop_reason") == "refusal" {
        let why = Some(text(result, "result")).filter(|why| !why.is_empty()).unwrap_or("the model refuses");
        return stream.verdict.give(Report::Rejected(brief(why, LONGEST)), out);
    }
    match stream.unfinished() {
        0 => stream.verdict.give(Report::Done, out),
        count => {
            stream.held = true;
            let tasks = if count == 1 { "a background task".to_owned() } else { format!("{count} background tasks") };
            out.push(Report::Status(format!("Waiting for {tasks}")));
        }
    }
}

/// Why it failed: an API error comes as `success` with the error as its result.
fn failure(stream: &Stream, result: &Value) -> Report {
    if text(result, "terminal_reason").starts_with("aborted_") {
        return Report::Failed("agent was interrupted".to_owned());
    }
    let errors: Vec<&str> = match result.get("errors").and_then(Value::as_array) {
        Some(errors) => errors.iter().map(|error| error.as_str().unwrap_or_else(|| text(error, "message"))).collect(),
        None => Vec::new(),
    };
    let errors = errors.into_iter().filter(|error| !error.is_empty()).collect::<Vec<_>>().join("; ");
    let error = result.get("error").map(|error| error.as_str().unwrap_or_else(|| text(error, "message")));
    let why =
        [&*errors, error.unwrap_or_default(), text(result, "result")].into_iter().find(|why| !why.trim().is_empty());
    let Some(why) = why else {
        return Report::Failed(match text(result, "subtype") {
            "" | "success" => "agent failed without saying why".to_owned(),
            subtype => format!("agent stopped: {}", brief(subtype, LONGEST)),
        });
    };
    if mentions(why, &[stream.wire.no_session]) {
        return Report::Lost(brief(why, LONGEST));
    }
    let status = result.get("api_error_status").and_then(Value::as_i64);
    let lacks = status == Some(401)
        || lacks_credentials(why, stream.wire.no_credentials)
        || (stream.keyless && lacks_credentials(why, &KEYLESS));
    if lacks { Report::AuthRequired(brief(why, LONGEST)) } else { Report::Failed(brief(why, LONGEST)) }
}

fn usage(stream: &Stream, result: &Value, out: &mut Vec<Report>) {
    let Some(usage) = result.get("usage").filter(|usage| usage.is_object()) else { return };
    let tokens = |member: &str| usage.get(member).and_then(Value::as_u64);
    let (read, written) = (tokens("cache_read_input_tokens"), tokens("cache_creation_input_tokens"));
    let mut input = tokens("input_tokens").unwrap_or_default();
    if stream.wire.cache_apart {
        input = input.saturating_add(read.unwrap_or_default()).saturating_add(written.unwrap_or_default());
    }
    let used = || result.get("modelUsage")?.as_object()?.keys().next().map(|model| brief(model, 200));
    out.push(Report::Usage(Usage {
        input_tokens: input,
        output_tokens: tokens("output_tokens").unwrap_or_default(),
        cache_read_tokens: read,
        cache_write_tokens: written,
        cost_usd: result.get("total_cost_usd").and_then(Value::as_f64),
        duration_ms: result.get("duration_ms").and_then(Value::as_u64),
        model: stream.model.clone().or_else(used),
    }));
}
