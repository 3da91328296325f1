//! Who is let in: a request to this very address, with the token that only who was given the address knows, and not from another page.

use std::sync::Mutex;

use super::session::lock;

/// Bytes of a token.
const TOKEN_BYTES: usize = 16;

/// What a request has to show.
#[derive(Debug)]
pub(super) struct Guard {
    host: String,
    token: String,
    /// What leads to the page once: others on the machine can read what a browser is started with.
    ticket: Mutex<Option<String>>,
}

/// What is looked at of a request.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Shown<'r> {
    /// The path of its address.
    pub path: &'r str,
    /// `Host`.
    pub host: Option<&'r str>,
    /// `Origin`; browsers state it where a page asks.
    pub origin: Option<&'r str>,
    /// `Sec-Fetch-Site`: what the page that asks has to do with this one.
    pub site: Option<&'r str>,
}

impl Guard {
    /// The guard of a port, with a token of its own.
    ///
    /// # Errors
    /// Why the system gives no randomness.
    pub(super) fn at(port: u16) -> Result<Self, String> {
        Ok(Self { host: format!("127.0.0.1:{port}"), token: random()?, ticket: Mutex::new(None) })
    }

    /// An address that leads to the page once.
    ///
    /// # Errors
    /// Why the system gives no randomness.
    pub(super) fn ticket(&self) -> Result<String, String> {
        let ticket = random()?;
        let address = format!("http://{}/once/{ticket}", self.host);
        *lock(&self.ticket) = Some(ticket);
        Ok(address)
    }

    /// The address of the page for who comes with the ticket, which is then used up.
    pub(super) fn redeem(&self, shown: Shown<'_>) -> Option<String> {
        let rest = self.is_from_here(shown).then_some(shown.path)?.strip_prefix("/once/")?;
        let mut ticket = lock(&self.ticket);
        ticket.take_if(|known| is_equal(known.as_bytes(), rest.as_bytes()))?;
        Some(self.address())
    }

    /// The address of the page.
    pub(super) fn address(&self) -> String {
        format!("http://{}/{}/", self.host, self.token)
    }

    /// Whether a request names this address, and comes from no other page.
    fn is_from_here(&self, shown: Shown<'_>) -> bool {
        let is_own = |origin: &str| origin.strip_prefix("http://") == Some(self.host.as_str());
        shown.host == Some(self.host.as_str())
            && shown.origin.is_none_or(is_own)
            // `none`: somebody typed the address, or a program opened it.
            && shown.site.is_none_or(|site| matches!(site, "same-origin" | "none"))
    }

    /// The part of the path behind the token, if the request may come in.
    ///
    /// A name that somebody lets point to this machine (DNS rebinding) comes with another `Host`, another page with another `Origin`.
    pub(super) fn admit<'r>(&self, shown: Shown<'r>) -> Option<&'r str> {
        let path = self.is_from_here(shown).then_some(shown.path)?;
        let (token, rest) = path.strip_prefix('/')?.split_once('/')?;
        is_equal(token.as_bytes(), self.token.as_bytes()).then_some(rest)
    }
}

/// A text that nobody can guess.
fn random() -> Result<String, String> {
    let mut bytes = [0; TOKEN_BYTES];
    getrandom::fill(&mut bytes).map_err(|reason| reason.to_string())?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Whether two texts are equal, in a time that does not tell how far they are.
fn is_equal(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len() && one.iter().zip(other).fold(0, |differs, (one, other)| differs | (one ^ other)) == 0
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::{Guard, Shown};

    #[test]
    fn studio_requires_token_and_same_origin() {
        let guard = Guard { host: "127.0.0.1:7".into(), token: "ab".into(), ticket: Mutex::new(None) };
        let shown = Shown { path: "/ab/run", host: Some("127.0.0.1:7"), origin: None, site: None };
        assert_eq!(guard.admit(shown), Some("run"));
        let text = Some("http://127.0.0.1:7");
        assert_eq!(guard.admit(Shown { origin: text, site: Some("same-origin"), path: "/ab/", ..shown }), Some(""));
        assert_eq!(guard.admit(Shown { site: Some("none"), ..shown }), Some("run"));
        let refused = [
            Shown { path: "/ac/run", ..shown },
            Shown { path: "/ab", ..shown },
            Shown { path: "/", ..shown },
            Shown { path: "/abc/run", ..shown },
            Shown { host: None, ..shown },
            Shown { host: Some("localhost:7"), ..shown },
            Shown { host: Some("evil.example:7"), ..shown },
            Shown { origin: Some("http://evil.example"), ..shown },
            Shown { origin: Some("null"), ..shown },
            Shown { origin: Some("https://127.0.0.1:7"), ..shown },
            Shown { origin: Some("http://127.0.0.1:70"), ..shown },
            Shown { site: Some("cross-site"), ..shown },
            Shown { site: Some("same-site"), ..shown },
        ];
        for item in refused {
            assert_eq!(guard.admit(item), None, "{item:?}");
        }
    }

    #[test]
    fn a_ticket_is_good_once_and_only_here() -> Result<(), String> {
        let guard = Guard::at(7)?;
        let shown = |path| Shown { path, host: Some("127.0.0.1:7"), origin: None, site: None };
        assert_eq!(guard.redeem(shown("/once/")), None);
        let ticket = guard.ticket()?;
        let path = ticket.strip_prefix("http://127.0.0.1:7").unwrap_or_default();
        assert_eq!(guard.redeem(shown("/once/0")), None);
        assert_eq!(guard.redeem(Shown { site: Some("cross-site"), ..shown(path) }), None);
        assert_eq!(guard.redeem(shown(path)), Some(guard.address()));
        assert_eq!(guard.redeem(shown(path)), None);
        assert!(!guard.address().contains(path), "it is not the token");
        Ok(())
    }

    #[test]
    fn tokens_are_new_each_time() {
        let (one, other) = (Guard::at(1), Guard::at(1));
        let token = |guard: &Result<Guard, String>| guard.as_ref().map(|guard| guard.token.clone()).unwrap_or_default();
        assert!(token(&one).len() == 32 && token(&one) != token(&other));
    }
}
