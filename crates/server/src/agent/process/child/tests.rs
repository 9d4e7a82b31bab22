use super::*;

const SHORT: Patience = Patience { eof: Duration::from_millis(100), term: Duration::from_millis(200) };

fn shell(script: &str) -> Child {
    let args = ["-c".to_owned(), script.to_owned()];
    let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
    let start = Start { program: "sh", args: &args, environment: &environment, cwd: Path::new("/") };
    Child::start(start, &Kin::new("tests")).unwrap()
}

async fn text(child: &mut Child) -> Option<String> {
    child.line().await.unwrap().map(|line| String::from_utf8_lossy(&line).into_owned())
}

/// Whether a process exists and is more than a name in the table.
fn alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(')').next().is_some_and(|rest| !rest.trim().is_empty() && !rest.trim_start().starts_with('Z'))
}

#[tokio::test]
async fn what_it_prints_and_how_it_ends_is_known() {
    let mut child = shell("read word; echo got $word; echo oops >&2; exit 3");
    child.write("hello\n");
    assert_eq!(text(&mut child).await.as_deref(), Some("got hello"));
    assert_eq!(text(&mut child).await, None);
    let exit = child.end(SHORT).await;
    assert_eq!((exit.code, exit.stderr.as_str()), (Some(3), "oops"));
    assert_eq!(exit.describe(), "agent exited with code 3: oops");
}

#[tokio::test]
async fn whoever_ignores_sigterm_is_killed_with_all_that_it_started() {
    let mut child = shell(
        "trap '' TERM; (trap '' TERM; while :; do sleep 0.05; done) & echo $!; \
         setsid sh -c 'trap \"\" TERM; echo $$; while :; do sleep 0.05; done' & echo $$; while :; do sleep 0.05; done",
    );
    let mut pids = Vec::new();
    for _ in 0..3 {
        pids.push(text(&mut child).await.unwrap());
    }
    assert!(pids.iter().all(|pid| alive(pid)), "{pids:?}");
    let exit = child.end(SHORT).await;
    assert_eq!(exit.signal, Some(9));
    for _ in 0..100 {
        if !pids.iter().any(|pid| alive(pid)) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("left over: {pids:?}");
}

#[tokio::test]
async fn a_program_that_is_given_up_is_gone() {
    let mut child = shell("sleep 60 & echo $!; wait");
    let pid = text(&mut child).await.unwrap();
    drop(child);
    for _ in 0..200 {
        if !alive(&pid) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{pid} is left over");
}

#[tokio::test]
async fn a_background_process_that_holds_the_pipe_holds_nobody_up() {
    let mut child = shell("sleep 60 & echo done");
    assert_eq!(text(&mut child).await.as_deref(), Some("done"));
    assert_eq!(text(&mut child).await, None);
    assert!(child.end(SHORT).await.is_success());
}

#[tokio::test]
async fn a_program_that_never_reads_does_not_block_the_writer() {
    let mut child = shell("for i in 1 2 3; do echo $i; done; exec sleep 60");
    child.write(vec![b'x'; 4 << 20]);
    assert_eq!(text(&mut child).await.as_deref(), Some("1"));
    child.end(SHORT).await;
}

#[tokio::test]
async fn orphans_of_the_same_home_are_found_and_others_left_alone() {
    let own = std::process::id();
    let (mine, other) = (Kin::new(&format!("orphans of {own}")), Kin::new(&format!("neighbours of {own}")));
    let start = |kin: &Kin| {
        let args = ["60".to_owned()];
        let environment = vec![("PATH".into(), std::env::var_os("PATH").unwrap())];
        Child::start(Start { program: "sleep", args: &args, environment: &environment, cwd: Path::new("/") }, kin)
            .unwrap()
    };
    let (mut left, mut kept) = (start(&mine.before_a_restart()), start(&other));
    let mut ours = start(&mine);
    let (left_pid, kept_pid) = (left.process.id().unwrap().to_string(), kept.process.id().unwrap().to_string());
    assert_eq!(mine.end_orphans().await, 1);
    assert_eq!(left.end(SHORT).await.signal, Some(9));
    assert!(!alive(&left_pid) && alive(&kept_pid));
    assert!(ours.process.try_wait().unwrap().is_none(), "its server still runs");
    ours.end(SHORT).await;
    kept.end(SHORT).await;
}
