//! The command line.

use crate::wire::{Binding, Target};

pub const USAGE: &str = "\
usage: a2abench CASE --url URL [options] [-- COMMAND ...]

cases
  send    SendMessage in a closed loop: requests/s and latency
  stream  SendStreamingMessage: streams/s, events/s, time to first event
  get     GetTask of tasks made beforehand
  open    SendMessage at --rate, whether answers come or not: latency
  fanout  --count subscribers of one task: cost of a delivered event
  fill    SendMessage until --count tasks exist (or --secs are over)
  list    ListTasks, one caller: latency
  hold    opens --count streams that stay idle, measures the server, closes them
  cold    starts COMMAND and times its first agent card; ends it again
  show    one call of each method, prints what came back

options
  --binding B    jsonrpc, jsonrpc03 (A2A 0.3), rest, grpc or ws (jsonrpc)
  --conc N       concurrent connections (16)
  --secs S       measured seconds, at most 300 (5)
  --warm S       seconds before measuring (1)
  --count N      tasks (fill), calls (send, list), streams (hold), subscribers (fanout)
  --chunks N     artifact chunks a stream is asked for (100)
  --pause MS     between the chunks of fanout (50)
  --rate R       calls per second (open)
  --word W       what a stream asks for: stream, or burst (no yield between chunks)
  --text-bytes N size of the text sent (64)
  --page N       ListTasks pageSize (50)
  --context C    ListTasks contextId filter; `fill` spreads tasks over ctx-0000..ctx-0999
  --pid P        server process: adds its CPU time and memory
  --max-rss-mib M  fill stops when the server is larger (8192)
";

pub struct Args {
    pub case: String,
    pub target: Target,
    pub conc: usize,
    pub secs: f64,
    pub warm: f64,
    pub count: Option<u64>,
    pub chunks: u64,
    pub pause: u64,
    pub rate: f64,
    pub word: String,
    pub text_bytes: usize,
    pub page: u64,
    pub context: Option<String>,
    pub pid: Option<u32>,
    pub max_rss_mib: u64,
    pub command: Vec<String>,
}

impl Args {
    /// The text of an ordinary message.
    pub fn text(&self) -> String {
        "lorem ipsum dolor sit amet ".chars().cycle().take(self.text_bytes).collect()
    }
}

pub fn parse() -> Result<Args, String> {
    let mut words = std::env::args().skip(1);
    let case = words.next().ok_or(USAGE)?;
    let (mut url, mut binding) = (None, Binding::JsonRpc);
    let mut a = Args {
        case,
        target: Target::parse("http://127.0.0.1:1/", binding)?,
        conc: 16,
        secs: 5.0,
        warm: 1.0,
        count: None,
        chunks: 100,
        pause: 50,
        rate: 0.0,
        word: "stream".into(),
        text_bytes: 64,
        page: 50,
        context: None,
        pid: None,
        max_rss_mib: 8192,
        command: Vec::new(),
    };
    while let Some(flag) = words.next() {
        if flag == "--" {
            a.command = words.collect();
            break;
        }
        let value = words.next().ok_or_else(|| format!("{flag} needs a value"))?;
        match flag.as_str() {
            "--url" => url = Some(value),
            "--binding" => binding = Binding::parse(&value)?,
            "--conc" => a.conc = number::<usize>(&value)?.clamp(1, 1024),
            "--secs" => a.secs = number::<f64>(&value)?.clamp(0.1, 300.0),
            "--warm" => a.warm = number::<f64>(&value)?.clamp(0.0, 30.0),
            "--count" => a.count = Some(number::<u64>(&value)?.min(1_000_000)),
            "--chunks" => a.chunks = number(&value)?,
            "--pause" => a.pause = number(&value)?,
            "--rate" => a.rate = number::<f64>(&value)?.clamp(1.0, 1e6),
            "--word" => a.word = value,
            "--text-bytes" => a.text_bytes = number(&value)?,
            "--page" => a.page = number(&value)?,
            "--context" => a.context = Some(value),
            "--pid" => a.pid = Some(number(&value)?),
            "--max-rss-mib" => a.max_rss_mib = number(&value)?,
            _ => return Err(format!("{flag}: unknown option\n\n{USAGE}")),
        }
    }
    a.target = Target::parse(&url.ok_or("--url is needed")?, binding)?;
    Ok(a)
}

fn number<T: std::str::FromStr>(value: &str) -> Result<T, String> {
    value.parse().map_err(|_| format!("{value}: not a number"))
}
