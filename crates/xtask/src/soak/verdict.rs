//! Samples, and whether they stay where they were.

use std::fmt;
use std::time::Duration;

use anyhow::Result;

use super::load::Load;
use super::server::Server;

pub(super) const HEAD: &str =
    "seconds,store,rss_kib,descriptors,threads,disk_kib,calls,errors,send_p50_us,send_p99_us,get_p50_us,get_p99_us";

/// One sample of one server.
pub(super) struct Row {
    seconds: f64,
    store: String,
    rss_kib: u64,
    descriptors: u64,
    threads: u64,
    disk_kib: u64,
    calls: u64,
    errors: u64,
    send: [u64; 2],
    get: [u64; 2],
}

impl Row {
    pub(super) fn take(at: Duration, server: &Server, load: &Load) -> Result<Self> {
        let (sends, gets) = load.take_latencies();
        let pair = |sorted: &[u32]| [quantile(sorted, 50), quantile(sorted, 99)];
        Ok(Self {
            seconds: at.as_secs_f64(),
            store: server.store.clone(),
            rss_kib: server.rss_kib()?,
            descriptors: server.descriptors()?,
            threads: server.threads()?,
            disk_kib: server.disk_kib()?,
            calls: load.calls(),
            errors: load.failed(),
            send: pair(&sends),
            get: pair(&gets),
        })
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { seconds, store, rss_kib, descriptors, threads, disk_kib, calls, errors, send, get } = self;
        let ([send50, send99], [get50, get99]) = (send, get);
        write!(
            f,
            "{seconds:.0},{store},{rss_kib},{descriptors},{threads},{disk_kib},{calls},{errors},{send50},{send99},{get50},{get99}"
        )
    }
}

fn quantile(sorted: &[u32], percent: usize) -> u64 {
    sorted.get(sorted.len().saturating_sub(1) * percent / 100).copied().unwrap_or(0).into()
}

/// What is judged: its name, its value, and by how much the last third may be above the middle one, as a factor
/// and on top of it.
type Measure = (&'static str, fn(&Row) -> u64, f64, u64);

const MEASURES: [Measure; 8] = [
    ("resident memory, KiB", |row| row.rss_kib, 1.05, 4096),
    ("descriptors", |row| row.descriptors, 1.10, 8),
    ("threads", |row| row.threads, 1.0, 4),
    ("files, KiB", |row| row.disk_kib, 1.10, 16_384),
    ("send p50, µs", |row| row.send[0], 1.25, 100),
    ("send p99, µs", |row| row.send[1], 1.50, 2000),
    ("get p50, µs", |row| row.get[0], 1.25, 100),
    ("get p99, µs", |row| row.get[1], 1.50, 2000),
];

/// Compares the median of the last third of the samples with that of the middle third; the first third is for
/// warming up. Says in words what it found, and whether all is well.
pub(super) fn judge(stores: &[String], rows: &[Row]) -> (String, bool) {
    let (mut text, mut flat) = (String::new(), true);
    for store in stores {
        let rows: Vec<&Row> = rows.iter().filter(|row| row.store == *store).collect();
        let third = rows.len() / 3;
        let (middle, last) = (&rows[third..third * 2], &rows[third * 2..]);
        let (calls, errors) = rows.last().map_or((0, 0), |row| (row.calls, row.errors));
        text += &format!("{store}: {} samples, {calls} calls, {errors} errors\n", rows.len());
        flat &= errors == 0 && third > 0;
        for (name, value, factor, more) in MEASURES {
            let (before, after) = (median(middle, value), median(last, value));
            let most = before as f64 * factor + more as f64;
            let grew = after as f64 > most;
            let mark = if grew { "GREW" } else { "flat" };
            text += &format!("  {mark}  {name:22} {before:>10} then {after:>10}, at most {most:.0}\n");
            flat &= !grew;
        }
    }
    (text, flat)
}

fn median(rows: &[&Row], value: fn(&Row) -> u64) -> u64 {
    let mut values: Vec<u64> = rows.iter().map(|row| value(row)).collect();
    values.sort_unstable();
    values.get(values.len() / 2).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(seconds: f64, rss_kib: u64, errors: u64) -> Row {
        let store = "memory".to_owned();
        let zero = [100, 500];
        Row {
            seconds,
            store,
            rss_kib,
            descriptors: 40,
            threads: 3,
            disk_kib: 0,
            calls: 1,
            errors,
            send: zero,
            get: zero,
        }
    }

    #[test]
    fn memory_that_climbs_is_not_flat() {
        let stores = ["memory".to_owned()];
        let level: Vec<Row> = (0..30_u32).map(|n| row(f64::from(n), 100_000 + u64::from(n % 3) * 500, 0)).collect();
        assert!(judge(&stores, &level).1);
        let climbing: Vec<Row> = (0..30_u32).map(|n| row(f64::from(n), 100_000 + u64::from(n) * 2000, 0)).collect();
        let (text, flat) = judge(&stores, &climbing);
        assert!(!flat && text.contains("GREW"), "{text}");
    }

    #[test]
    fn one_error_is_one_too_many() {
        let rows: Vec<Row> = (0..9).map(|n| row(f64::from(n), 1000, u64::from(n == 8))).collect();
        assert!(!judge(&["memory".to_owned()], &rows).1);
        assert!(!judge(&["memory".to_owned()], &[]).1, "nothing was measured");
    }
}
