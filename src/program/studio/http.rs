//! The server: one thread, the loopback interface, a handful of addresses behind the token. What takes long is done by other threads.

use std::cell::Cell;
use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::TcpListener;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::thread::Scope;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Bytes, Frame, Incoming, SizeHint};
use hyper::header::{self, HeaderName, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use tokio::sync::mpsc::UnboundedReceiver;

use super::guard::{Guard, Shown};
use super::jobs::{Job, Pool, Side};
use super::page;
use super::session::{Session, told};
use super::writing::Entry;
use crate::recommend::controls::State;

/// Bytes of what a page sends at most.
const BODY_MAX: usize = 1 << 18;
/// Connections with the token at once; a browser opens six.
const CONNECTIONS_MAX: usize = 64;
/// Connections at once that have not shown the token; a further one replaces the oldest of them.
const WITHOUT_TOKEN_MAX: usize = 32;
/// Time that a connection has to show the token.
const TOKEN_WITHIN: Duration = Duration::from_secs(2);
/// How often somebody looks whether it is over.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// Time that a client has for the head of a request, and for what it sends.
const PATIENCE: Duration = Duration::from_secs(10);

/// What is served, and where threads come from.
#[derive(Clone, Copy)]
pub(super) struct Site<'s, 'e> {
    pub session: &'s Session,
    pub pool: &'s Pool,
    pub guard: &'s Guard,
    pub threads: &'s Scope<'s, 'e>,
}

impl<'s> Site<'s, '_> {
    /// Does what takes long on a thread of its own; nothing if there are too many already.
    async fn aside<T: Send + 's>(self, work: impl FnOnce() -> T + Send + 's) -> Option<T> {
        let place = self.pool.place_aside()?;
        let (give, take) = tokio::sync::oneshot::channel();
        self.threads.spawn(move || {
            // Who asked may have gone.
            let _ = give.send(work());
            drop(place);
        });
        take.await.ok()
    }
}

/// Serves until `is_over`.
///
/// # Errors
/// If the system gives no sockets or timers.
pub(super) fn serve(listener: TcpListener, site: Site<'_, '_>, is_over: &(dyn Fn() -> bool + Sync)) -> io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().enable_time().build()?;
    runtime.block_on(async {
        let listener = tokio::net::TcpListener::from_std(listener)?;
        let mut look = tokio::time::interval(LOOK_EVERY);
        // They borrow what is served, so no task can outlive it.
        let mut open: Vec<Served<'_>> = Vec::new();
        poll_fn(|context| {
            while look.poll_tick(context).is_ready() {
                if is_over() {
                    return Poll::Ready(());
                }
            }
            loop {
                let came = accept(&listener, context, &mut open, site);
                let before = open.len();
                open.retain_mut(|connection| connection.serving.as_mut().poll(context).is_pending());
                // Where one has ended there is room for another, which may be waiting.
                if !came && open.len() == before {
                    return Poll::Pending;
                }
            }
        })
        .await;
        Ok(())
    })
}

/// A connection that is being served.
struct Served<'s> {
    serving: Pin<Box<dyn Future<Output = ()> + 's>>,
    /// Whether a request on it had the token.
    has_token: Rc<Cell<bool>>,
}

/// Takes a connection if one has come and there is a place for it; whether it did.
fn accept<'s, 'e: 's>(
    listener: &tokio::net::TcpListener,
    context: &mut Context<'_>,
    open: &mut Vec<Served<'s>>,
    site: Site<'s, 'e>,
) -> bool {
    let without = open.iter().filter(|connection| !connection.has_token.get()).count();
    if open.len() - without >= CONNECTIONS_MAX {
        return false;
    }
    match listener.poll_accept(context) {
        Poll::Ready(Ok((stream, _))) => {
            // Any user of the machine can connect, so these connections must not use up the places.
            let oldest = open.iter().position(|connection| !connection.has_token.get());
            if let Some(oldest) = oldest.filter(|_| without >= WITHOUT_TOKEN_MAX) {
                open.remove(oldest);
            }
            let has_token = Rc::new(Cell::new(false));
            open.push(Served { serving: Box::pin(connection(stream, site, Rc::clone(&has_token))), has_token });
            true
        }
        // One that is gone already is no matter; where the system has no more sockets, the next look tries again.
        Poll::Ready(Err(_)) | Poll::Pending => false,
    }
}

/// Serves a connection until it ends, or until it is late with the token.
async fn connection(stream: tokio::net::TcpStream, site: Site<'_, '_>, has_token: Rc<Cell<bool>>) {
    // Events are small and wanted at once.
    let _ = stream.set_nodelay(true);
    let shown = &*has_token;
    let service = service_fn(move |request| async move { Ok::<_, Infallible>(answer(request, site, shown).await) });
    let mut serving = pin!(
        http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(PATIENCE)
            .max_buf_size(64 << 10)
            .serve_connection(TokioIo::new(stream), service)
    );
    // A browser need not learn what went wrong with its connection.
    let in_time = tokio::time::timeout(TOKEN_WITHIN, serving.as_mut()).await.is_ok();
    if !in_time && has_token.get() {
        let _ = serving.await;
    }
}

/// What is answered: a whole text, or events as they come.
pub(super) enum Reply {
    Whole(Option<Bytes>),
    Events(Events),
}

/// The events of a job; dropped with the connection, they take the job with them.
pub(super) struct Events {
    events: UnboundedReceiver<Bytes>,
    job: Arc<Job>,
}

impl Events {
    pub(super) fn new(events: UnboundedReceiver<Bytes>, job: Arc<Job>) -> Self {
        Self { events, job }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.job.drop_it();
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(text) => Poll::Ready(text.take().map(|text| Ok(Frame::data(text)))),
            Self::Events(events) => {
                events.events.poll_recv(context).map(|event| event.map(|event| Ok(Frame::data(event))))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(text) => SizeHint::with_exact(text.as_ref().map_or(0, Bytes::len) as u64),
            Self::Events(_) => SizeHint::default(),
        }
    }
}

/// An answer of a kind.
fn reply(status: StatusCode, kind: &'static str, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    let mut set = |name: HeaderName, value: &'static str| {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    };
    set(header::CONTENT_TYPE, kind);
    set(header::CACHE_CONTROL, "no-store");
    set(header::X_CONTENT_TYPE_OPTIONS, "nosniff");
    // The address holds the token.
    set(header::REFERRER_POLICY, "no-referrer");
    set(header::CONTENT_SECURITY_POLICY, "frame-ancestors 'self'");
    set(HeaderName::from_static("cross-origin-resource-policy"), "same-origin");
    set(HeaderName::from_static("cross-origin-opener-policy"), "same-origin");
    response
}

fn html(text: String) -> Response<Reply> {
    reply(StatusCode::OK, "text/html; charset=utf-8", Reply::Whole(Some(text.into())))
}

fn as_json(status: StatusCode, value: &serde_json::Value) -> Response<Reply> {
    reply(status, "application/json", Reply::Whole(Some(value.to_string().into())))
}

fn refusal(status: StatusCode, why: &str) -> Response<Reply> {
    as_json(status, &json!({ "why": why }))
}

/// Where to go instead.
fn to(address: &str) -> Response<Reply> {
    let mut response = reply(StatusCode::SEE_OTHER, "text/plain", Reply::Whole(None));
    if let Ok(place) = HeaderValue::from_str(address) {
        response.headers_mut().insert(header::LOCATION, place);
    }
    response
}

/// A state, and what it is held against.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QueryParams {
    /// The page's name for itself.
    page: String,
    values: State,
    /// Whether today is held against it under the same circumstances.
    #[serde(default)]
    same_circumstances: bool,
}

/// What is to be written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    entries: Vec<Entry>,
}

/// The answer to a request; notes that it had the token.
async fn answer(request: Request<Incoming>, site: Site<'_, '_>, has_token: &Cell<bool>) -> Response<Reply> {
    let header = |name: HeaderName| request.headers().get(name).map(|value| value.to_str().unwrap_or("?"));
    let shown = Shown {
        path: request.uri().path(),
        host: header(header::HOST),
        origin: header(header::ORIGIN),
        site: header(HeaderName::from_static("sec-fetch-site")),
    };
    if let Some(address) = site.guard.redeem(shown) {
        has_token.set(true);
        return to(&address);
    }
    let Some(place) = site.guard.admit(shown).map(str::to_owned) else {
        let mut refused = refusal(StatusCode::FORBIDDEN, "open the full URL that `nodecast studio` printed");
        refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        return refused;
    };
    has_token.set(true);
    let query = request.uri().query().unwrap_or_default().to_owned();
    match (request.method().clone(), place.as_str()) {
        (Method::GET, "") => html(page::render(site.session)),
        (Method::GET, "ready") => as_json(StatusCode::OK, &readiness(site.session)),
        (Method::GET, "replay") => html(page::side_by_side(site.session, &query)),
        (Method::GET, "report") => report(&query, site).await,
        (Method::POST, "run") => match body::<QueryParams>(request).await {
            Ok(asked) => run(&asked, site),
            Err(refused) => refused,
        },
        (Method::POST, "write") => match body::<Wanted>(request).await {
            Ok(wanted) => match site.aside(move || site.session.write(&wanted.entries)).await {
                Some(Ok(written)) => as_json(StatusCode::OK, &written),
                Some(Err(why)) => refusal(StatusCode::UNPROCESSABLE_ENTITY, &why),
                None => busy(),
            },
            Err(refused) => refused,
        },
        (_, "" | "ready" | "replay" | "report" | "run" | "write") => {
            refusal(StatusCode::METHOD_NOT_ALLOWED, "method not allowed")
        }
        _ => refusal(StatusCode::NOT_FOUND, "not found"),
    }
}

/// What was sent, read as JSON.
async fn body<T: DeserializeOwned>(request: Request<Incoming>) -> Result<T, Response<Reply>> {
    let whole = tokio::time::timeout(PATIENCE, Limited::new(request.into_body(), BODY_MAX).collect()).await;
    let bytes = match whole {
        Ok(Ok(whole)) => whole.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => {
            return Err(refusal(StatusCode::PAYLOAD_TOO_LARGE, "request too large"));
        }
        Ok(Err(_)) => return Err(refusal(StatusCode::BAD_REQUEST, "incomplete request body")),
        Err(_) => return Err(refusal(StatusCode::REQUEST_TIMEOUT, "what was announced did not come")),
    };
    serde_json::from_slice(&bytes).map_err(|error| refusal(StatusCode::BAD_REQUEST, &error.to_string()))
}

/// How far the studio has come before the page can be used.
fn readiness(session: &Session) -> serde_json::Value {
    let [tried, controls] = session.tried();
    let why = session.found().and_then(Result::err);
    json!({ "ready": session.found().is_some(), "why": why, "tried": tried, "controls": controls })
}

fn run(asked: &QueryParams, site: Site<'_, '_>) -> Response<Reply> {
    let Site { session, pool, .. } = site;
    let controls = match session.ready() {
        Ok(found) => &found.controls,
        Err(why) => return refusal(StatusCode::SERVICE_UNAVAILABLE, &why),
    };
    let base = if asked.same_circumstances { controls.circumstances(&asked.values) } else { State::new() };
    let side = |state: &State| session.setting(state).map(|(setting, key)| Side { setting, key });
    match (side(&asked.values), side(&base)) {
        (Ok(side), Ok(today)) => {
            let (job, events) = Job::new(session, side, today);
            let page: String = asked.page.chars().take(64).collect();
            pool.take_up(&page, job);
            reply(StatusCode::OK, "text/event-stream", Reply::Events(events))
        }
        (Err(why), _) | (_, Err(why)) => refusal(StatusCode::UNPROCESSABLE_ENTITY, &why),
    }
}

/// The report of a state: a run of its own, on a thread of its own.
async fn report(query: &str, site: Site<'_, '_>) -> Response<Reply> {
    let state = match serde_json::from_str::<State>(&decoded(query.strip_prefix("values=").unwrap_or("{}"))) {
        Ok(state) => state,
        Err(error) => return refusal(StatusCode::BAD_REQUEST, &error.to_string()),
    };
    let setting = match site.session.setting(&state) {
        Ok((setting, _)) => setting,
        Err(why) => return refusal(StatusCode::UNPROCESSABLE_ENTITY, &why),
    };
    match site.aside(move || site.session.report(&setting, site.pool.ended())).await {
        Some(Ok(page)) => html(page),
        Some(Err(failure)) => refusal(StatusCode::UNPROCESSABLE_ENTITY, &told(&failure)),
        None => busy(),
    }
}

fn busy() -> Response<Reply> {
    refusal(StatusCode::SERVICE_UNAVAILABLE, "too many requests at once; try again")
}

/// What `%7B` and the like stand for.
fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = bytes.get(at + 1..at + 3).and_then(|two| std::str::from_utf8(two).ok());
        match code.filter(|_| bytes[at] == b'%').and_then(|two| u8::from_str_radix(two, 16).ok()) {
            Some(byte) => {
                plain.push(byte);
                at += 3;
            }
            None => {
                plain.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn what_browsers_encode_is_decoded_and_nonsense_stays() {
        assert_eq!(decoded("%7B%22a%22%3A%22%C3%A9%22%7D"), "{\"a\":\"\u{e9}\"}");
        assert_eq!(decoded("%"), "%");
        assert_eq!(decoded("%zz%2"), "%zz%2");
        assert_eq!(decoded("%ff"), "\u{fffd}");
    }
}
