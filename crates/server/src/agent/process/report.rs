//! The seam between a program and a turn.
//!
//! ```text
//!   stdout line ──▶ Dialect::line ──▶ Report … ──▶ the turn, or the program's stdin
//!   decision    ──▶ Dialect::decided ──▶ Report …
//!   exit        ──▶ Dialect::end ──▶ Report …      Done or Failed, if nothing said so before
//! ```

use std::path::PathBuf;

use nuncio_protocol::{Artifact, Value};

use crate::agent::Usage;
use crate::engine::approval::{Approval, Decision};

/// What a program is started for.
#[derive(Clone, Debug, Default)]
pub struct Order {
    /// What the caller wants.
    pub prompt: String,
    /// Pictures and files for programs that take them.
    pub attachments: Vec<File>,
    /// The program's own conversation, to be continued.
    pub session: Option<String>,
    /// The model to use; the program's own choice otherwise.
    pub model: Option<String>,
    /// Whether the program may do everything without asking.
    pub force: bool,
    /// Where it works.
    pub workspace: PathBuf,
}

/// A file that came with a message.
#[derive(Clone, Debug)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its media type.
    pub media_type: String,
    /// What is in it.
    pub bytes: Vec<u8>,
}

/// How a program is started.
#[derive(Clone, Debug, Default)]
pub struct Launch {
    /// Arguments after the program and those of the configuration.
    pub args: Vec<String>,
    /// Variables to set.
    pub env: Vec<(String, String)>,
    /// What it reads.
    pub input: Input,
}

/// What a program finds on its stdin.
#[derive(Clone, Debug, Default)]
pub enum Input {
    /// Nothing.
    #[default]
    Closed,
    /// These bytes, then the end.
    All(Vec<u8>),
    /// These bytes; more may follow by [`Report::Write`] until [`Report::CloseInput`].
    Open(Vec<u8>),
}

/// A kind of program: how it is started and how its output is read.
pub trait Program: Send + Sync + 'static {
    /// The name of the kind.
    fn name(&self) -> &'static str;
    /// What the program is called where the configuration does not say.
    fn binary(&self) -> &str;
    /// Variables of the server's environment that it may see beside the common ones. A name that ends
    /// in `*` is a prefix.
    fn variables(&self) -> &'static [&'static str] {
        &[]
    }
    /// Whether a conversation can be continued by its id.
    fn can_resume(&self) -> bool {
        false
    }
    /// Whether it takes pictures.
    fn takes_images(&self) -> bool {
        false
    }
    /// The command line of a turn, and the reader of what it prints.
    fn start(&self, order: &Order) -> (Launch, Box<dyn Dialect>);
}

/// Reads what one run of a program prints. No I/O.
pub trait Dialect: Send {
    /// A line of stdout, without its end.
    fn line(&mut self, line: &str, out: &mut Vec<Report>);
    /// The program has been silent for a while in the middle of a line: it may wait for an answer to
    /// what it wrote. The line, whole, comes by [`Dialect::line`] later all the same.
    fn partial(&mut self, unfinished: &str, out: &mut Vec<Report>) {
        let _ = (unfinished, out);
    }
    /// An approval that this dialect asked for was decided.
    fn decided(&mut self, id: &str, decision: &Decision, out: &mut Vec<Report>) {
        let _ = (id, decision, out);
    }
    /// A question that this dialect asked was answered; `None` if nobody did.
    fn answered(&mut self, id: &str, answer: Option<&str>, out: &mut Vec<Report>) {
        let _ = (id, answer, out);
    }
    /// The turn is to stop: what to tell the program before its stdin is closed.
    fn interrupt(&mut self, out: &mut Vec<Report>) {
        let _ = out;
    }
    /// The program is gone. Says how the turn ended if nothing did before.
    fn end(&mut self, exit: &Exit, out: &mut Vec<Report>);
}

/// How a program ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Exit {
    /// Its exit code; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// The end of what it wrote to stderr, cleaned.
    pub stderr: String,
}

impl Exit {
    /// Whether it ended as it should.
    pub fn is_success(&self) -> bool {
        self.code == Some(0)
    }

    /// Why the turn failed, for the caller: `agent exited with code 3`, and the end of stderr.
    pub fn describe(&self) -> String {
        let how = match (self.code, self.signal) {
            (Some(code), _) => format!("agent exited with code {code}"),
            (None, Some(signal)) => format!("agent was ended by signal {signal}"),
            (None, None) => "agent ended".to_owned(),
        };
        match self.stderr.trim() {
            "" => how,
            said => format!("{how}: {said}"),
        }
    }
}

/// What a program says, in the words that all agents share.
#[derive(Clone, Debug, PartialEq)]
pub enum Report {
    /// The id under which the program continues this conversation later.
    Session(String),
    /// The model that answers.
    Model(String),
    /// A piece of the answer.
    Text(String),
    /// A piece of thinking.
    Think(String),
    /// A step of a tool call.
    Tool {
        /// Names the call; the same in all of its steps.
        id: String,
        /// The tool.
        name: String,
        /// What happened.
        step: Step,
    },
    /// What it does, in words.
    Status(String),
    /// A whole artifact.
    Artifact(Artifact),
    /// Tokens used so far; the last report counts.
    Usage(Usage),
    /// It wants to do something and waits for [`Dialect::decided`].
    Approve {
        /// What the dialect calls the request.
        id: String,
        /// What it wants to do.
        approval: Approval,
    },
    /// It asks something and waits for [`Dialect::answered`].
    Ask {
        /// What the dialect calls the question.
        id: String,
        /// The question.
        question: String,
    },
    /// It no longer waits for the answer to an approval or a question.
    Withdraw {
        /// What the dialect calls it.
        id: String,
    },
    /// To be written to the program's stdin.
    Write(Vec<u8>),
    /// The program's stdin is to be closed.
    CloseInput,
    /// The turn is done. The program gets time to end by itself.
    Done,
    /// The turn failed, in words for the caller.
    Failed(String),
    /// The program lacks credentials, in words for the caller.
    AuthRequired(String),
    /// The program refuses, in words for the caller.
    Rejected(String),
    /// The program does not know the conversation that it was to continue, in words for the caller. It is
    /// started again for a new one.
    Lost(String),
}

/// What happened to a tool call.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// It was started.
    Started,
    /// Its input is known.
    Input(Value),
    /// A piece of its output.
    Delta(String),
    /// It is done.
    Completed(Value),
    /// It failed.
    Failed(String),
}
