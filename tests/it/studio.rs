//! `nodecast studio`: who is let in, what it answers, and that what it shows is what `run` says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use assert_cmd::cargo::cargo_bin;
use serde_json::{Value, json};

use crate::cli::nodecast;

const SCENARIO: &str = "scenarios/consolidation-tuning/scenario.yaml";
const SHORT: [&str; 4] = ["--duration", "40m", "--replications", "3"];

/// A studio that is being served; it ends with the test.
struct Studio {
    process: Child,
    port: u16,
    token: String,
}

impl Drop for Studio {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// What was answered.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The events of a stream by their names.
    fn events(&self, name: &str) -> Vec<Value> {
        let start = format!("event: {name}\ndata: ");
        let texts = self.body.split("\n\n").filter_map(|part| part.strip_prefix(&start).map(str::to_owned));
        texts.map(|text| serde_json::from_str(&text).unwrap()).collect()
    }
}

impl Studio {
    fn from_arguments(arguments: &[&str]) -> Self {
        let mut process = Command::new(cargo_bin!("nodecast"))
            .args(["studio", "--no-open"])
            .args(arguments)
            .current_dir(env!("CARGO_MANIFEST_DIR"))
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let place = line.trim().strip_prefix("http://127.0.0.1:").unwrap_or_else(|| panic!("an address, not `{line}`"));
        let (port, token) = place.split_once('/').unwrap();
        let token = token.trim_end_matches('/').to_owned();
        let studio = Self { process, port: port.parse().unwrap(), token };
        studio.wait_for_controls();
        studio
    }

    /// The page can be opened at once; its controls follow.
    fn wait_for_controls(&self) {
        let begun = Instant::now();
        let path = format!("/{}/ready", self.token);
        while read(self.send("GET", &path, "", "")).json()["ready"] != true {
            assert!(begun.elapsed() < Duration::from_secs(120), "no controls");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
        stream
    }

    /// Sends these bytes and reads until the other side is done.
    fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        let _ = stream.write_all(bytes);
        read(stream)
    }

    /// A request as the page makes it; `more` are further headers, each with its line feed.
    fn send(&self, method: &str, path: &str, body: &str, more: &str) -> TcpStream {
        let host = if more.contains("Host:") { String::new() } else { format!("Host: 127.0.0.1:{}\r\n", self.port) };
        let head = format!(
            "{method} {path} HTTP/1.1\r\n{host}{more}Connection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = self.connect();
        // Who is refused early may be cut off while he still sends.
        let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body.as_bytes()));
        stream
    }

    fn ask(&self, method: &str, path: &str, body: &str) -> Answer {
        read(self.send(method, &format!("/{}/{path}", self.token), body, ""))
    }

    fn run(&self, values: &Value) -> Answer {
        self.ask("POST", "run", &json!({ "page": "test", "values": values }).to_string())
    }

    /// What the page's script works with.
    fn about(&self) -> Value {
        let page = self.ask("GET", "", "");
        assert_eq!(page.status, 200);
        let (_, rest) = page.body.split_once("id=\"data\">").unwrap();
        serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
    }
}

fn read(mut stream: TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    let body =
        if head.to_lowercase().contains("transfer-encoding: chunked") { unchunked(body) } else { body.to_owned() };
    Answer { status, head: head.to_owned(), body }
}

/// What a body in chunks holds.
fn unchunked(mut body: &str) -> String {
    let mut whole = String::new();
    while let Some((size, rest)) = body.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || rest.len() < size {
            break;
        }
        whole.push_str(&rest[..size]);
        body = rest[size..].trim_start_matches("\r\n");
    }
    whole
}

/// Today's value of the control called `id`, and another one.
fn another(about: &Value, id: &str) -> String {
    let controls = about["controls"].as_array().unwrap();
    let control =
        controls.iter().find(|control| control["id"] == id).unwrap_or_else(|| panic!("{id} among {controls:#?}"));
    let other = control["stops"].as_array().unwrap().iter().find(|stop| stop["value"] == "10m");
    assert_ne!(control["today"], "10m");
    other.unwrap()["value"].as_str().unwrap().to_owned()
}

const AFTER: &str = "consolidate-after.NodePool-spot";

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn nobody_is_let_in_but_the_page_itself() {
    let studio = Studio::from_arguments(&[&[SCENARIO][..], &SHORT].concat());
    let text = format!("/{}/", studio.token);
    let status = |path: &str, more: &str| read(studio.send("GET", path, "", more)).status;
    assert_eq!(status(&text, ""), 200);
    assert_eq!(
        status(&text, &format!("Origin: http://127.0.0.1:{}\r\nSec-Fetch-Site: same-origin\r\n", studio.port)),
        200
    );
    for path in ["/", "/favicon.ico", "/0123456789abcdef0123456789abcdef/", &text[..text.len() - 1], "/../etc/passwd"] {
        assert_eq!(status(path, ""), 403, "{path}");
    }
    for more in [
        "Host: localhost\r\n",
        "Host: evil.example\r\n",
        "Origin: http://evil.example\r\n",
        "Origin: null\r\n",
        "Origin: \u{e9}\r\n",
        "Sec-Fetch-Site: cross-site\r\n",
    ] {
        assert_eq!(status(&text, more), 403, "{more}");
    }
    // No file, whatever leads to it.
    for path in ["scenario.yaml", "../scenario.yaml", "%2e%2e/Cargo.toml", "report/..", "run/"] {
        assert_eq!(studio.ask("GET", path, "").status, 404, "{path}");
    }
    let page = studio.ask("GET", "", "");
    for header in ["referrer-policy: no-referrer", "cache-control: no-store", "frame-ancestors 'self'"] {
        assert!(page.head.contains(header), "{}", page.head);
    }
    assert!(page.body.contains("default-src 'none'") && !page.body.contains(&studio.token));
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn connections_without_token_leave_room_for_the_page() {
    let studio = Studio::from_arguments(&[&[SCENARIO][..], &SHORT].concat());
    let host = format!("Host: 127.0.0.1:{}\r\n", studio.port);
    let slow: Vec<TcpStream> = (0..90).map(|_| studio.connect()).collect();
    for (number, mut stream) in slow.iter().enumerate() {
        let head =
            if number % 2 == 0 { "GET / HTTP/1.1\r\nX".to_owned() } else { format!("GET /x HTTP/1.1\r\n{host}\r\n") };
        // The server may have closed it already.
        let _ = stream.write_all(head.as_bytes());
    }
    let begun = Instant::now();
    assert_eq!(studio.ask("GET", "", "").status, 200);
    assert!(begun.elapsed() < Duration::from_secs(2), "{:?}", begun.elapsed());
    // They end without a further word.
    for mut stream in slow {
        let _ = stream.read_to_end(&mut Vec::new());
    }
    assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn hostile_input_is_refused_and_harms_nobody() {
    let studio = Studio::from_arguments(&[&[SCENARIO][..], &SHORT].concat());
    let status = |method: &str, path: &str, body: &str| studio.ask(method, path, body).status;
    assert_eq!(status("PUT", "", ""), 405);
    assert_eq!(status("GET", "run", ""), 405);
    assert_eq!(status("DELETE", "write", ""), 405);
    for body in ["", "{", "[]", "null", "{\"page\": 1}", "{\"page\": \"a\", \"values\": {\"x\": 1}}", "\u{0}\u{ff}"] {
        assert_eq!(status("POST", "run", body), 400, "{body}");
    }
    assert_eq!(status("POST", "run", &format!("{}1{}", "[".repeat(60_000), "]".repeat(60_000))), 400, "deep");
    assert_eq!(status("POST", "run", &"x".repeat(300_000)), 413);
    assert_eq!(status("POST", "write", &"x".repeat(300_000)), 413);
    for values in [
        json!({"nothing": "1"}),
        json!({AFTER: "-5m"}),
        json!({AFTER: "10m\nfaults: []"}),
        json!({"families.NodePool-spot": ","}),
        json!({"families.NodePool-spot": "x9"}),
    ] {
        let answer = studio.run(&values);
        assert_eq!(answer.status, 422, "{values}");
        assert!(answer.json()["why"].as_str().is_some_and(|why| !why.is_empty()));
    }
    for query in ["values=%7B", "values=%ff", "values=7", "values=%7B%22a%22%3A%22b%22%7D"] {
        assert!([400, 422].contains(&status("GET", &format!("report?{query}"), "")), "{query}");
    }
    let page = studio.ask("GET", "replay?%22%3E<script>alert(1)</script>", "");
    assert!(!page.body.contains("<script>alert"), "{}", page.body);
    for entries in [
        json!([]),
        json!([{"name": "a", "values": {}}]),
        json!(vec![json!({"name": "a", "values": {AFTER: "10m"}}); 21]),
    ] {
        assert_eq!(status("POST", "write", &json!({ "entries": entries }).to_string()), 422);
    }
    for bytes in [&b"\x16\x03\x01\x02\x00\x01"[..], b"GET / HTTP/9.9\r\n\r\n", b"\r\n\r\n\r\n\r\n", &[0; 4096]] {
        assert!(studio.raw(bytes).status != 200);
    }
    let long = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(200_000));
    assert!(studio.raw(long.as_bytes()).status != 200);
    // Some connect and say nothing; others go in the middle of a word.
    let silent: Vec<TcpStream> = (0..40).map(|_| studio.connect()).collect();
    let half = studio.send("POST", &format!("/{}/run", studio.token), "", "Content-Length: 50\r\n");
    let _ = half.shutdown(Shutdown::Both);
    assert_eq!(status("GET", "", ""), 200, "others are served as before");
    drop(silent);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn studio_matches_run_for_same_values() {
    let studio = Studio::from_arguments(&[&[SCENARIO][..], &SHORT].concat());
    let about = studio.about();
    let values = json!({ AFTER: another(&about, AFTER), "load": "1.3", "spot-storm": "50" });
    let answer = studio.run(&values);
    assert_eq!(answer.status, 200, "{}", answer.body);
    assert_eq!(answer.events("done").len(), 1, "{}", answer.body);
    let curves = answer.events("curves");
    assert!(
        curves.iter().any(|curve| curve["of"] == "own")
            && curves.iter().all(|curve| curve["data"]["charts"].is_array())
    );
    let setting = &answer.events("setting")[0];
    let command = setting["command"].as_str().unwrap();
    assert!(command.contains("--set 'NodePool[spot].spec.disruption.consolidateAfter=10m'"), "{command}");
    assert!(command.contains("load[2].requests.scale=0.65"), "a load that is scaled already: {command}");
    let changed: Vec<&str> =
        setting["changes"].as_array().unwrap().iter().filter_map(|array| array["object"].as_str()).collect();
    assert!(changed.contains(&"NodePool spot") && changed.contains(&"the scenario"), "{changed:?}");

    // The command is run as it is shown, but for the place of its report.
    let place = tempfile::tempdir().unwrap();
    let out = place.path().display();
    let line = format!("{} --format json --quiet --out {out}/report", command.strip_prefix("nodecast ").unwrap());
    let output = Command::new("sh")
        .args(["-c", &format!("exec '{}' {line}", cargo_bin!("nodecast").display())])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    let held = &answer.events("figures")[0]["held"];
    assert_eq!(held["seeds"], 1);
    let figure = |name: &str| held["figures"].as_array().unwrap().iter().find(|array| array["name"] == name).unwrap();
    assert_eq!(figure("cost_per_month")["own"]["value"], summary["cost"]["per_month"]);
    assert_eq!(figure("pending_p99")["own"]["value"], summary["pods"]["wait_for_node"]["p99_seconds"]);
    assert_eq!(figure("evictions")["own"]["value"].as_f64(), summary["pods"]["evicted"].as_f64());
    assert_eq!(figure("unavailable_pod_minutes")["own"]["value"], summary["availability"]["unavailable_pod_minutes"]);
    let last = answer.events("figures").pop().unwrap();
    assert_eq!((&last["held"]["seeds"], last["held"]["rows"].as_array().unwrap().len()), (&json!(3), 3));

    // As it is today there is no difference, and asked again the answer is the same.
    let today = studio.run(&json!({})).events("figures").pop().unwrap();
    assert!(today["held"]["figures"].as_array().unwrap().iter().all(|array| array["verdict"] == "same"), "{today}");
    let again = studio.run(&values).events("figures").pop().unwrap();
    assert_eq!(again["held"], last["held"]);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn a_later_move_ends_the_one_before() {
    let studio = Studio::from_arguments(&[SCENARIO, "--replications", "200", "--threads", "1"]);
    let begin = |after: &str| {
        let body = json!({ "page": "test", "values": { AFTER: after } }).to_string();
        studio.send("POST", &format!("/{}/run", studio.token), &body, "")
    };
    let first = begin("10m");
    std::thread::sleep(Duration::from_millis(200));
    let second = begin("15m");
    let asked = Instant::now();
    let answer = read(first);
    assert!(asked.elapsed() < Duration::from_secs(2), "{:?}", asked.elapsed());
    assert!(answer.events("done").is_empty());
    // A page that goes takes its job with it: the next page is answered at once.
    drop(second);
    let answer = read({
        let body = json!({ "page": "other", "values": { AFTER: "nothing" } }).to_string();
        studio.send("POST", &format!("/{}/run", studio.token), &body, "")
    });
    assert_eq!(answer.status, 422);
}

/// How long a run that is no longer wanted may go on. A release lets go within a tenth of a second; what is not optimised, and debug
/// assertions that work everything out twice, take their time between two events.
const LETS_GO_WITHIN: Duration =
    if cfg!(debug_assertions) { Duration::from_secs(5) } else { Duration::from_millis(100) };

#[test]
#[ignore = "slow: .ci/run slow-tests"]
#[expect(clippy::print_stdout, reason = "the time that is measured is for people, too")]
fn studio_cancels_outdated_simulations() {
    // One thread, so that the state that is asked for next waits for the one before to let go.
    let studio = Studio::from_arguments(&[SCENARIO, "--replications", "200", "--threads", "1"]);
    // Today with the first seed is known from the start: whoever takes it up has its number at once.
    let mut longest = Duration::ZERO;
    for (after, millis) in [("10m", 5), ("15m", 40), ("20m", 130), ("30m", 250), ("45m", 370)] {
        let body = json!({ "page": "test", "values": { AFTER: after, "load": "4" } }).to_string();
        let first = studio.send("POST", &format!("/{}/run", studio.token), &body, "");
        std::thread::sleep(Duration::from_millis(millis));
        let body = json!({ "page": "test", "values": {} }).to_string();
        let second = BufReader::new(studio.send("POST", &format!("/{}/run", studio.token), &body, ""));
        let told = second.lines().map_while(Result::ok).find_map(|line| line.strip_prefix("data: ").map(str::to_owned));
        let told: Value = serde_json::from_str(&told.expect("the first event of a known state is its number")).unwrap();
        let waited = Duration::from_secs_f64(told["waited_ms"].as_f64().expect("how long it waited") / 1e3);
        longest = longest.max(waited);
        drop(first);
    }
    println!("let go of after {longest:?} at most");
    assert!(longest <= LETS_GO_WITHIN, "{longest:?}");
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn what_is_written_is_a_scenario_that_compares() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("kept");
    let folder = folder.to_str().unwrap();
    let studio = Studio::from_arguments(&[&[SCENARIO, "--write", folder][..], &SHORT].concat());
    let entries = json!([
        { "name": "calm", "values": { AFTER: "10m" } },
        { "name": "calm", "values": { AFTER: "30m", "consolidation.NodePool-spot": "WhenEmpty" } },
        { "name": "Black Friday!", "values": { AFTER: "10m", "load": "2" } },
        { "name": "smaller", "values": { "requests-memory.Deployment-shop/search": "512Mi" } },
    ]);
    let answer = studio.ask("POST", "write", &json!({ "entries": entries }).to_string());
    assert_eq!(answer.status, 200, "{}", answer.body);
    let written = answer.json();
    assert_eq!(written["policies"], json!(["calm", "calm-2", "black-friday", "smaller"]));
    let commands: Vec<&str> = written["commands"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    assert!(
        commands[0].starts_with("nodecast compare ")
            && commands[0].ends_with("--policies after-1m,calm,calm-2,smaller"),
        "{commands:?}"
    );
    assert!(
        commands[1].starts_with("nodecast diff ") && commands[1].ends_with("after-black-friday.yaml"),
        "{commands:?}"
    );
    for file in ["scenario.yaml", "after-black-friday.yaml"] {
        let (out, err, code) = nodecast(&["validate", &format!("{folder}/{file}")]);
        assert_eq!(code, Some(0), "{out}{err}");
    }
    let smaller = std::fs::read_to_string(format!("{folder}/smaller.yaml")).unwrap();
    assert_eq!(smaller.matches("memory: 512Mi").count(), 2, "the request, and the limit that is as large: {smaller}");
    // What is written comes to what was set, whatever other policies call their objects.
    let run = |scenario: &str, more: &[&str]| -> Value {
        let out = place.path().join("run");
        let leading =
            ["run", scenario, "--duration", "20m", "--quiet", "--format", "json", "--out", out.to_str().unwrap()];
        let (out, err, code) = nodecast(&[&leading[..], more].concat());
        assert_eq!(code, Some(0), "{err}");
        serde_json::from_str::<Value>(&out).unwrap()["event_hash"].clone()
    };
    let set = "NodePool[spot].spec.disruption.consolidateAfter=10m";
    let stated = run(SCENARIO, &["--policy", "after-1m", "--set", set]);
    assert_eq!(run(&format!("{folder}/scenario.yaml"), &["--policy", "calm"]), stated);
    let out = place.path().join("compared");
    let arguments = commands[0].strip_prefix("nodecast ").unwrap().split(' ').collect::<Vec<_>>();
    let more =
        ["--replications", "1", "--duration", "20m", "--quiet", "--format", "json", "--out", out.to_str().unwrap()];
    let (out, err, code) = nodecast(&[&arguments[..], &more].concat());
    assert!(code == Some(0) && out.contains("calm-2"), "{err}");
    // Its own folder is replaced; one in which somebody put something is not.
    let again = json!({ "entries": [{ "name": "calm", "values": { AFTER: "15m" } }] }).to_string();
    assert_eq!(studio.ask("POST", "write", &again).status, 200);
    std::fs::write(format!("{folder}/mine.txt"), "mine").unwrap();
    let refused = studio.ask("POST", "write", &again);
    assert!(refused.status == 422 && refused.body.contains("mine.txt"), "{}", refused.body);
}

#[test]
#[ignore = "slow: .ci/run slow-tests"]
fn what_cannot_be_served_is_told() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    for (arguments, expected, exit) in [
        (vec![SCENARIO, "--port", &port, "--duration", "10m"], "the port may be in use", 3),
        (vec!["none.yaml"], "none.yaml", 2),
        (vec![SCENARIO, "--policy", "none"], "none", 2),
        (vec![SCENARIO, "--replications", "0"], "1..=200", 2),
    ] {
        let (_, err, code) = nodecast(&[&["studio", "--no-open"][..], &arguments].concat());
        assert!(code == Some(exit) && err.contains(expected), "{code:?}: {err}");
    }
}
