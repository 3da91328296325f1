//! Asking a server over HTTP: what it refuses, what it is too busy for, what it finds too large, and that an import goes on where it
//! was. The server is a thread of the test.

#![cfg(feature = "http")]
#![allow(clippy::unwrap_used)] // a test that cannot set itself up has failed wherever that happens

use std::cell::RefCell;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use nodecast_observed::prometheus::fetch::{Broken, Pace, Reply, Transport, fetch};
use nodecast_observed::prometheus::http::{Access, Server};
use nodecast_observed::prometheus::saved::read_list;
use nodecast_observed::prometheus::{Answers, Query, QueryList, import};

/// A request as the server saw it.
#[derive(Clone, Debug)]
struct ReceivedRequest {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    form: Vec<(String, String)>,
}

impl ReceivedRequest {
    fn field(&self, name: &str) -> &str {
        self.form.iter().find(|pair| pair.0 == name).map_or("", |pair| pair.1.as_str())
    }

    fn number(&self, name: &str) -> i64 {
        self.field(name).parse().unwrap()
    }
}

/// What the server answers: a status, headers, a body, and how long it takes.
struct Answered(u16, &'static str, String, Duration);

/// The header of an answer of which half is sent.
const BROKEN_OFF: &str = "X-Test: broken off\r\n";

fn quick(status: u16, body: impl Into<String>) -> Answered {
    Answered(status, "", body.into(), Duration::ZERO)
}

/// A server on a port of its own that answers by a function of the request and of how many came before; returns its address and
/// what it has been asked.
fn serve(
    answer: impl Fn(&ReceivedRequest, usize) -> Answered + Send + Sync + 'static,
) -> (String, Arc<Mutex<Vec<ReceivedRequest>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let seen = Arc::new(Mutex::new(Vec::new()));
    let all = Arc::clone(&seen);
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let (all, answer) = (Arc::clone(&all), Arc::clone(&answer));
            thread::spawn(move || one(stream.unwrap(), &all, &*answer));
        }
    });
    (address, seen)
}

fn one(mut stream: TcpStream, all: &Mutex<Vec<ReceivedRequest>>, answer: &dyn Fn(&ReceivedRequest, usize) -> Answered) {
    let Some(asked) = read_request(&mut stream) else { return };
    let number = {
        let mut all = all.lock().unwrap();
        all.push(asked.clone());
        all.len() - 1
    };
    let Answered(status, headers, body, pause) = answer(&asked, number);
    thread::sleep(pause);
    let sent = if headers == BROKEN_OFF { &body[..body.len() / 2] } else { &body };
    let _ = write!(
        stream,
        "HTTP/1.1 {status} X\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{sent}",
        body.len()
    );
}

fn read_request(stream: &mut TcpStream) -> Option<ReceivedRequest> {
    let mut bytes = Vec::new();
    let mut byte = [0_u8; 1];
    while !bytes.ends_with(b"\r\n\r\n") {
        if stream.read(&mut byte).ok()? == 0 {
            return None;
        }
        bytes.push(byte[0]);
    }
    let text = String::from_utf8(bytes).unwrap();
    let mut lines = text.lines();
    let mut first = lines.next()?.split(' ');
    let (method, target) = (first.next()?.to_owned(), first.next()?.to_owned());
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let length =
        headers.iter().find(|header| header.0 == "content-length").map_or(0, |header| header.1.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).unwrap();
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let encoded = if method == "POST" { String::from_utf8(body).unwrap() } else { query.to_owned() };
    let form =
        encoded.split('&').filter_map(|pair| pair.split_once('=')).map(|(name, value)| (decoded(name), decoded(value)));
    Some(ReceivedRequest { method, path: path.to_owned(), headers, form: form.collect() })
}

fn decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let pair = [rest.next().unwrap(), rest.next().unwrap()];
                bytes.push(u8::from_str_radix(std::str::from_utf8(&pair).unwrap(), 16).unwrap());
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).unwrap()
}

/// Remembers what it is told, and pauses for nobody.
#[derive(Default)]
struct Heard {
    recorded: RefCell<Vec<String>>,
    remarks: RefCell<Vec<String>>,
    pauses: RefCell<Vec<u64>>,
}

impl Pace for Heard {
    fn progress(&self, _: usize, _: usize, _: &str) {}

    fn recorded(&self, text: &str) {
        self.recorded.borrow_mut().push(text.to_owned());
    }

    fn remark(&self, text: &str) {
        self.remarks.borrow_mut().push(text.to_owned());
    }

    fn wait(&self, pause: Duration) {
        self.pauses.borrow_mut().push(pause.as_secs());
    }
}

fn server(address: &str) -> Server {
    Server::new(address, &Access { timeout: Duration::from_secs(20), ..Access::default() }).unwrap()
}

fn query(points: i64) -> Query {
    Query {
        file: "cpu.json".to_owned(),
        query: "sum(up)".to_owned(),
        start: 600,
        end: 600 + (points - 1) * 60,
        step: 60,
    }
}

fn list(points: i64) -> QueryList {
    QueryList { queries: vec![query(points)] }
}

/// A constant at every point that is asked for.
fn ones(asked: &ReceivedRequest) -> String {
    let (start, end, step) = (asked.number("start"), asked.number("end"), asked.number("step"));
    let values: Vec<String> = (0..=(end - start) / step).map(|at| format!("[{},\"1\"]", start + at * step)).collect();
    matrix(&format!("[{{\"metric\":{{}},\"values\":[{}]}}]", values.join(",")))
}

fn matrix(result: &str) -> String {
    format!(r#"{{"status":"success","data":{{"resultType":"matrix","result":{result}}}}}"#)
}

fn error(kind: &str, message: &str) -> String {
    format!(r#"{{"status":"error","errorType":"{kind}","error":"{message}"}}"#)
}

fn instants(folder: &Path) -> Vec<i64> {
    let answers = Answers::read(folder).unwrap();
    answers.answer("cpu").unwrap().series[0].samples.iter().map(|sample| sample.at / 1_000_000).collect()
}

#[test]
fn busy_prometheus_is_retried_after_requested_delay() {
    let (address, _) = serve(|asked, number| match number {
        0 => Answered(429, "Retry-After: 7\r\n", String::new(), Duration::ZERO),
        1 => quick(500, "oops"),
        2 => quick(502, "<html>"),
        _ => quick(200, ones(asked)),
    });
    let (folder, heard) = (tempfile::tempdir().unwrap(), Heard::default());
    fetch(&list(3), folder.path(), &server(&address), &heard).unwrap();
    assert_eq!(*heard.pauses.borrow(), [7, 2, 4]);
    assert_eq!(heard.remarks.borrow().len(), 3);
    assert_eq!(instants(folder.path()), [600, 660, 720]);
}

#[test]
fn recorded_families_are_reported_before_other_queries() {
    let families = Query { file: "families.json".to_owned(), ..query(3) };
    let (address, _) = serve(|asked, number| match number {
        0 => {
            quick(200, matrix(r#"[{"metric":{"__name__":"kube_node_info"},"values":[[600,"3"],[660,"3"],[720,"3"]]}]"#))
        }
        _ => quick(200, ones(asked)),
    });
    let (folder, heard) = (tempfile::tempdir().unwrap(), Heard::default());
    let both = QueryList { queries: vec![families, query(2)] };
    fetch(&both, folder.path(), &server(&address), &heard).unwrap();
    let [line] = &heard.recorded.borrow()[..] else { panic!("it is told once") };
    assert!(line.starts_with("recorded: kube-state-metrics; not recorded: its labels of nodes, "), "{line}");
}

#[test]
fn interrupted_response_is_retried_and_saved_when_complete() {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join("cpu.json");
    let seen_early = Arc::new(Mutex::new(false));
    let (early, place) = (Arc::clone(&seen_early), saved.clone());
    let (address, _) = serve(move |asked, number| {
        *early.lock().unwrap() |= place.exists();
        match number {
            0 => Answered(200, BROKEN_OFF, ones(asked), Duration::ZERO),
            1 => quick(200, &ones(asked)[..100]),
            _ => quick(200, ones(asked)),
        }
    });
    let heard = Heard::default();
    fetch(&list(30_000), folder.path(), &server(&address), &heard).unwrap();
    assert_eq!(*heard.pauses.borrow(), [1, 2]);
    assert!(heard.remarks.borrow()[1].contains("the answer was cut off"), "{:?}", heard.remarks.borrow());
    assert!(!*seen_early.lock().unwrap());
    assert_eq!(instants(folder.path()).len(), 30_000);
    // What is saved is what was sent.
    let again = Answers::read(folder.path()).unwrap().answer("cpu").unwrap();
    let text = std::fs::read_to_string(&saved).unwrap();
    assert!(text.starts_with("{\"status\"") && text.ends_with("]}]}}") && again.series.len() == 1);
}

#[test]
fn invalid_response_is_reported_and_not_saved() {
    let bad = matrix(r#"[{"metric":{},"values":[[600,"one"]]}]"#);
    for (body, message) in [
        ("<html>log in</html>".to_owned(), "the answer to `cpu`:1:1: is not JSON"),
        (bad, "the answer to `cpu`: the sample `one` at 600 is not a number"),
    ] {
        let (address, seen) = serve(move |_, _| quick(200, body.clone()));
        let folder = tempfile::tempdir().unwrap();
        let failure = fetch(&list(2), folder.path(), &server(&address), &Heard::default()).unwrap_err();
        assert_eq!((failure.message(), seen.lock().unwrap().len()), (message, 1));
        assert!(!folder.path().join("cpu.json").exists() && !folder.path().join("cpu.json.part").exists());
    }
}

#[test]
fn oversized_query_is_split_without_duplicate_samples() {
    let too_large = |asked: &ReceivedRequest| (asked.number("end") - asked.number("start")) / 60 >= 4;
    let (address, seen) = serve(move |asked, _| {
        if too_large(asked) {
            return quick(422, error("execution", "query processing would load too many samples into memory"));
        }
        quick(200, ones(asked))
    });
    let folder = tempfile::tempdir().unwrap();
    fetch(&list(13), folder.path(), &server(&address), &Heard::default()).unwrap();
    assert_eq!(instants(folder.path()), (0..13).map(|at| 600 + at * 60).collect::<Vec<_>>());
    // Asked again, nothing is: the folder knows into what it was cut.
    let before = seen.lock().unwrap().len();
    fetch(&list(13), folder.path(), &server(&address), &Heard::default()).unwrap();
    assert_eq!(seen.lock().unwrap().len(), before);
}

#[test]
fn halving_ends_after_six_times() {
    let (address, seen) = serve(|_, _| quick(503, error("timeout", "query timed out in expression evaluation")));
    let folder = tempfile::tempdir().unwrap();
    let failure = fetch(&list(10_000), folder.path(), &server(&address), &Heard::default()).unwrap_err();
    assert_eq!(failure.message(), "no answer to `cpu` of 157 points: query timed out in expression evaluation");
    assert_eq!(seen.lock().unwrap().len(), 7);
}

/// A server whose answers exceed the limit after a few bytes; the number of questions it got.
#[derive(Default)]
struct Endless(RefCell<u32>);

impl Transport for Endless {
    fn ask(&self, _: &Query) -> Result<Reply, Broken> {
        *self.0.borrow_mut() += 1;
        Ok(Reply { status: 200, retry_after: None, body: Box::new(b"{\"status\":\"".chain(Cut)) })
    }
}

struct Cut;

impl Read for Cut {
    fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
        Err(std::io::Error::other(Broken::Limit(3 << 20)))
    }
}

#[test]
fn answer_above_limit_is_refused_once_without_leftovers() {
    let (folder, server) = (tempfile::tempdir().unwrap(), Endless::default());
    let failure = fetch(&list(4_000), folder.path(), &server, &Heard::default()).unwrap_err();
    assert_eq!(failure.message(), "no answer to `cpu` of 4,000 points: the answer is larger than 3 MiB");
    assert_eq!(*server.0.borrow(), 1);
    let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["queries.json"]);
}

#[test]
fn a_slow_server_is_asked_for_less() {
    let (address, _) = serve(|asked, _| {
        let long = asked.number("end") - asked.number("start") > 60;
        let pause = if long { Duration::from_millis(1_500) } else { Duration::ZERO };
        Answered(200, "", ones(asked), pause)
    });
    let folder = tempfile::tempdir().unwrap();
    let access = Access { timeout: Duration::from_millis(500), ..Access::default() };
    fetch(&list(4), folder.path(), &Server::new(&address, &access).unwrap(), &Heard::default()).unwrap();
    assert_eq!(instants(folder.path()), [600, 660, 720, 780]);
}

#[test]
fn invalid_query_fails_without_retry() {
    for (status, message) in [(422, "found duplicate series for the match group"), (400, "invalid parameter")] {
        let (address, seen) = serve(move |_, _| quick(status, error("execution", message)));
        let folder = tempfile::tempdir().unwrap();
        let failure = fetch(&list(13), folder.path(), &server(&address), &Heard::default()).unwrap_err();
        assert!(failure.message().contains(message) && failure.way_out().unwrap().contains("sum(up)"));
        assert_eq!(seen.lock().unwrap().len(), 1);
    }
    let (address, _) = serve(|_, _| quick(401, ""));
    let folder = tempfile::tempdir().unwrap();
    let failure = fetch(&list(1), folder.path(), &server(&address), &Heard::default()).unwrap_err();
    assert!(failure.way_out().unwrap().contains("--bearer-file"));
}

#[test]
fn interrupted_import_resumes_at_next_query() {
    let mut two = list(3);
    two.queries.push(Query { file: "memory.json".to_owned(), ..query(3) });
    let (address, _) = serve(|asked, number| if number == 0 { quick(200, ones(asked)) } else { quick(403, "") });
    let folder = tempfile::tempdir().unwrap();
    assert!(fetch(&two, folder.path(), &server(&address), &Heard::default()).is_err());
    assert!(Answers::read(folder.path()).unwrap_err().message().starts_with("1 of 2 answers are missing"));
    let (address, seen) = serve(|asked, _| quick(200, ones(asked)));
    fetch(&two, folder.path(), &server(&address), &Heard::default()).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 1);
    let other = QueryList { queries: vec![Query { query: "other".to_owned(), ..query(3) }] };
    let failure = fetch(&other, folder.path(), &server(&address), &Heard::default()).unwrap_err();
    assert!(failure.message().ends_with("holds answers to other questions"));
    assert_eq!(read_list(folder.path()).unwrap(), two);
}

#[test]
fn multiple_clusters_are_rejected_before_other_queries() {
    let (address, seen) = serve(|asked, _| match asked.field("query") {
        "count by (cluster) (kube_node_info)" => quick(
            200,
            matrix(
                r#"[{"metric":{"cluster":"a"},"values":[[600,"1"]]},{"metric":{"cluster":"b"},"values":[[600,"1"]]}]"#,
            ),
        ),
        _ => quick(200, ones(asked)),
    });
    let clusters = |query: &str| Query { file: "clusters.json".to_owned(), query: query.to_owned(), ..query_of_two() };
    let all = QueryList { queries: vec![clusters("count by (cluster) (kube_node_info)"), query(2)] };
    let folder = tempfile::tempdir().unwrap();
    let failure = fetch(&all, folder.path(), &server(&address), &Heard::default()).unwrap_err();
    assert!(failure.message().contains("several clusters: a, b"), "{failure}");
    assert_eq!(seen.lock().unwrap().len(), 1);
    // With another choice the same folder does.
    let chosen = QueryList { queries: vec![clusters("count by (cluster) (kube_node_info{cluster=\"a\"})"), query(2)] };
    fetch(&chosen, folder.path(), &server(&address), &Heard::default()).unwrap();
    assert_eq!(read_list(folder.path()).unwrap(), chosen);
}

fn query_of_two() -> Query {
    query(2)
}

#[test]
fn secrets_use_files_and_long_queries_use_post() {
    let folder = tempfile::tempdir().unwrap();
    let (token, tenant) = (folder.path().join("token"), folder.path().join("tenant"));
    std::fs::write(&token, "s3cret\n").unwrap();
    std::fs::write(&tenant, "team-a\n").unwrap();
    let (address, seen) = serve(|asked, _| quick(200, ones(asked)));
    let headers = [("X-Scope-OrgID".to_owned(), tenant)];
    let parameters = [("dedup".to_owned(), "true".to_owned())];
    let access = Access {
        bearer: Some(&token),
        headers: &headers,
        parameters: &parameters,
        timeout: Duration::from_secs(5),
        ..Access::default()
    };
    let long = Query { file: "long.json".to_owned(), query: format!("up{{a=\"{}\"}}", "x".repeat(3_000)), ..query(2) };
    let queries = QueryList { queries: vec![query(2), long.clone()] };
    let answers = folder.path().join("answers");
    let prefixed = format!("{address}/select/0/prometheus/");
    fetch(&queries, &answers, &Server::new(&prefixed, &access).unwrap(), &Heard::default()).unwrap();
    let seen = seen.lock().unwrap();
    assert_eq!(
        seen.iter().map(|received_request| received_request.method.as_str()).collect::<Vec<_>>(),
        ["GET", "POST"]
    );
    assert_eq!(seen[1].field("query"), long.query);
    for received_request in seen.iter() {
        let header = |name: &str| {
            received_request.headers.iter().find(|header| header.0 == name).map(|header| header.1.as_str())
        };
        assert_eq!(received_request.path, "/select/0/prometheus/api/v1/query_range");
        assert_eq!((header("authorization"), header("x-scope-orgid")), (Some("Bearer s3cret"), Some("team-a")));
        assert_eq!(received_request.field("dedup"), "true");
    }
    for dir in std::fs::read_dir(&answers).unwrap() {
        assert!(!std::fs::read_to_string(dir.unwrap().path()).unwrap().contains("s3cret"));
    }
}

#[test]
fn no_redirect_leads_to_another_host() {
    let (elsewhere, visited) = serve(|asked, _| quick(200, ones(asked)));
    let target: &'static str = Box::leak(format!("Location: {elsewhere}/api/v1/query_range\r\n").into_boxed_str());
    let (address, _) = serve(move |_, _| Answered(302, target, String::new(), Duration::ZERO));
    let folder = tempfile::tempdir().unwrap();
    let failure = fetch(&list(1), folder.path(), &server(&address), &Heard::default()).unwrap_err();
    assert!(failure.message().contains("no other address is asked"), "{failure}");
    assert!(visited.lock().unwrap().is_empty());
    // On the same host it is followed, with its parameters.
    let (address, seen) = serve(|asked, number| match number {
        0 => Answered(307, "Location: /prefix/api/v1/query_range\r\n", String::new(), Duration::ZERO),
        _ => quick(200, ones(asked)),
    });
    fetch(&list(2), folder.path(), &server(&address), &Heard::default()).unwrap();
    assert_eq!(seen.lock().unwrap()[1].path, "/prefix/api/v1/query_range");
}

#[test]
fn an_address_with_a_password_is_refused() {
    for address in ["http://user:secret@host", "ftp://host", "host:9090", "http://host?x=y"] {
        let failure = Server::new(address, &Access::default()).err().unwrap();
        assert!(!failure.message().contains("secret"), "{failure}");
    }
}

#[test]
fn live_and_saved_responses_import_identically() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/shop-prod");
    let list = read_list(&sample).unwrap();
    let by_query: Vec<(String, String)> = list
        .queries
        .iter()
        .map(|query| (query.query.clone(), std::fs::read_to_string(sample.join(&query.file)).unwrap()))
        .collect();
    let (address, _) = serve(move |asked, _| {
        let query = by_query.iter().find(|query| query.0 == asked.field("query"));
        query.map_or_else(|| quick(404, ""), |query| quick(200, query.1.clone()))
    });
    let folder = tempfile::tempdir().unwrap();
    fetch(&list, folder.path(), &server(&address), &Heard::default()).unwrap();
    let live = import(&Answers::read(folder.path()).unwrap()).unwrap();
    let saved = import(&Answers::read(&sample).unwrap()).unwrap();
    assert_eq!(live.files(), saved.files());
}
