//! Questions over HTTP, to one address and no other: no redirect to another host is followed, and no proxy of the environment is
//! used.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use base64::Engine;
use nodecast_model::domain::words::refusal;
use nodecast_model::text::InputError;
use ureq::http::{HeaderName, HeaderValue, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};

use super::fetch::{Broken, Reply, Transport};
use super::list::Query;

/// Queries longer than this, encoded, are posted.
const GET_MAX: usize = 2_048;
/// How many redirects on one host are followed.
const REDIRECTS_MAX: usize = 3;
/// The largest answer that is taken, bytes.
const ANSWER_MAX: u64 = 1 << 30;

/// A server, and how to speak to it.
pub struct Server {
    agent: ureq::Agent,
    base: Uri,
    headers: Vec<(HeaderName, HeaderValue)>,
    parameters: Vec<(String, String)>,
}

/// How a server is spoken to. Secrets come from files.
#[derive(Clone, Copy, Debug, Default)]
pub struct Access<'a> {
    /// A file with a bearer token.
    pub bearer: Option<&'a Path>,
    /// A file with `user:password`.
    pub basic: Option<&'a Path>,
    /// Headers: a name, and the file that holds the value.
    pub headers: &'a [(String, std::path::PathBuf)],
    /// Parameters of every query, for example `dedup=true` for Thanos.
    pub parameters: &'a [(String, String)],
    /// A file with the certificates (PEM) of those who may vouch for the server, in place of those that browsers know.
    pub authorities: Option<&'a Path>,
    /// How long one answer may take.
    pub timeout: Duration,
}

impl Server {
    /// The server at `address`, whose `/api/v1/query_range` is asked.
    ///
    /// # Errors
    /// If the address is none of HTTP or holds a password, or a file cannot be read or does not hold what it should.
    pub fn new(address: &str, access: &Access<'_>) -> Result<Self, InputError> {
        let base = base_of(address)?;
        let mut headers = Vec::new();
        if let Some(path) = access.bearer {
            headers.push(header("authorization", &format!("Bearer {}", secret(path)?), path)?);
        }
        if let Some(path) = access.basic {
            let text = secret(path)?;
            if !text.contains(':') {
                return Err(InputError::new(format!("{} does not hold user:password", path.display())));
            }
            let encoded = base64::engine::general_purpose::STANDARD.encode(text);
            headers.push(header("authorization", &format!("Basic {encoded}"), path)?);
        }
        for (name, path) in access.headers {
            headers.push(header(name, &secret(path)?, path)?);
        }
        let mut tls = TlsConfig::builder();
        if let Some(path) = access.authorities {
            tls = tls.root_certs(RootCerts::from(certificates(path)?));
        }
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(access.timeout))
            .max_redirects(0)
            .max_redirects_will_error(false)
            .http_status_as_error(false)
            .proxy(None)
            .tls_config(tls.build())
            .user_agent(concat!("nodecast/", env!("CARGO_PKG_VERSION")))
            .build();
        Ok(Self { agent: config.new_agent(), base, headers, parameters: access.parameters.to_vec() })
    }

    /// The form of a question.
    fn form(&self, query: &Query) -> Vec<(String, String)> {
        let item = [
            ("query", query.query.clone()),
            ("start", query.start.to_string()),
            ("end", query.end.to_string()),
            ("step", query.step.to_string()),
        ];
        let item = item.into_iter().map(|(name, value)| (name.to_owned(), value));
        item.chain(self.parameters.iter().cloned()).collect()
    }

    /// Sends one question to `uri`.
    fn send(&self, uri: &str, form: &[(String, String)]) -> Result<ureq::http::Response<ureq::Body>, ureq::Error> {
        let size: usize = form.iter().map(|(name, value)| name.len() + value.len()).sum();
        if size > GET_MAX {
            let mut request = self.agent.post(uri);
            for (name, value) in &self.headers {
                request = request.header(name, value);
            }
            return request.send_form(form.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        }
        let mut request = self.agent.get(uri);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        request.query_pairs(form.iter().map(|(name, value)| (name.as_str(), value.as_str()))).call()
    }

    /// Where a redirect leads on the same host; `None` if it leads elsewhere.
    fn redirected(&self, location: &str) -> Option<String> {
        if let Some(path) = location.strip_prefix('/').filter(|path| !path.starts_with('/')) {
            let origin = format!("{}://{}", self.base.scheme_str()?, self.base.authority()?);
            return Some(format!("{origin}/{}", path.split('?').next().unwrap_or_default()));
        }
        let target: Uri = location.parse().ok()?;
        let same = target.scheme() == self.base.scheme() && target.authority() == self.base.authority();
        same.then(|| location.split('?').next().unwrap_or_default().to_owned())
    }
}

impl Transport for Server {
    fn ask(&self, query: &Query) -> Result<Reply, Broken> {
        let form = self.form(query);
        let mut uri = format!("{}/api/v1/query_range", self.base.to_string().trim_end_matches('/'));
        for _ in 0..=REDIRECTS_MAX {
            let response = self.send(&uri, &form).map_err(|error| broken(&error))?;
            let status = response.status().as_u16();
            if (300..400).contains(&status) {
                let location = response.headers().get("location").and_then(|value| value.to_str().ok());
                let location = location.unwrap_or_default().to_owned();
                uri = self.redirected(&location).ok_or_else(|| {
                    let host = location.split('?').next().unwrap_or_default();
                    Broken::Refused(format!("the server redirects to {host}, and no other address is asked"))
                })?;
                continue;
            }
            let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.parse().ok());
            let body = response.into_body().into_with_config().limit(ANSWER_MAX).reader();
            return Ok(Reply { status, retry_after, body: Box::new(Body(body)) });
        }
        Err(Broken::Refused("the server redirects without end".to_owned()))
    }
}

/// A body that says as [`Broken`] why it ceases.
struct Body<R>(R);

impl<R: Read> Read for Body<R> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        self.0.read(buffer).map_err(|error| match error.kind() {
            std::io::ErrorKind::Interrupted => error,
            _ => std::io::Error::other(broken(&error.into())),
        })
    }
}

fn base_of(address: &str) -> Result<Uri, InputError> {
    let form = "write for example http://localhost:9090 or https://thanos.example.com/prefix";
    let uri: Uri = address.parse().map_err(|_| InputError::new(format!("`{address}` is not an address")).help(form))?;
    if !matches!(uri.scheme_str(), Some("http" | "https")) || uri.authority().is_none() || uri.query().is_some() {
        return Err(InputError::new(format!("`{address}` is not an address of HTTP")).help(form));
    }
    if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        return Err(InputError::new("the address holds a password, which others can read in the list of processes")
            .help("write user:password into a file and name it with --basic-file"));
    }
    Ok(uri)
}

/// What a file of secrets holds, without the line feed at its end.
fn secret(path: &Path) -> Result<String, InputError> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| InputError::new(format!("cannot read {}: {}", path.display(), refusal(&error))))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

fn header(name: &str, value: &str, path: &Path) -> Result<(HeaderName, HeaderValue), InputError> {
    let name: HeaderName =
        name.parse().map_err(|_| InputError::new(format!("`{name}` is not the name of a header")))?;
    let mut value: HeaderValue = value.parse().map_err(|_| {
        InputError::new(format!("{} holds more than one line, or what no header may hold", path.display()))
    })?;
    value.set_sensitive(true);
    Ok((name, value))
}

fn certificates(path: &Path) -> Result<Vec<Certificate<'static>>, InputError> {
    let bytes = std::fs::read(path)
        .map_err(|error| InputError::new(format!("cannot read {}: {}", path.display(), refusal(&error))))?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() {
        return Err(InputError::new(format!("{} holds no certificate in PEM", path.display())));
    }
    Ok(certificates)
}

fn broken(error: &ureq::Error) -> Broken {
    match error {
        ureq::Error::Timeout(_) => Broken::TimedOut,
        ureq::Error::BodyExceedsLimit(limit) => Broken::Limit(*limit),
        ureq::Error::HostNotFound => Broken::Refused("there is no such host".to_owned()),
        ureq::Error::Tls(_) | ureq::Error::Rustls(_) => Broken::Refused(format!("no safe connection: {error}")),
        other => Broken::Connection(other.to_string()),
    }
}
