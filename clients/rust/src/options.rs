//! Options of a client.

use std::{fmt, net::IpAddr, sync::Arc, time::Duration};

use tonic::{
    Status,
    metadata::{Ascii, MetadataValue},
    transport::Endpoint,
};

use crate::{
    Client,
    error::{Code, Error, Result},
    retry::Throttle,
};

/// Version of this crate.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");
const MAX_RECEIVE_BYTES: usize = 4 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

type Source = dyn Fn() -> String + Send + Sync;

/// The bearer token of every call, asked for at each.
#[derive(Clone)]
pub(crate) struct Token(Arc<Source>);

impl Token {
    pub(crate) fn value(&self) -> std::result::Result<MetadataValue<Ascii>, Status> {
        let parsed = format!("Bearer {}", self.0()).parse::<MetadataValue<Ascii>>();
        let mut value = parsed.map_err(|_| Status::invalid_argument("it has characters that a header must not have"))?;
        value.set_sensitive(true);
        Ok(value)
    }
}

/// What a [`Client`] is made of: `Client::builder("127.0.0.1:50551").timeout(...).build()`.
#[derive(Clone)]
pub struct Builder {
    target: String,
    timeout: Option<Duration>,
    token: Option<Token>,
    user_agent: Option<String>,
    retry: bool,
    max_receive_bytes: usize,
    #[cfg(feature = "tls")]
    tls: Option<Tls>,
}

impl fmt::Debug for Builder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The token stays where it is.
        f.debug_struct("Builder").field("target", &self.target).finish_non_exhaustive()
    }
}

impl Builder {
    pub(crate) fn new(target: impl Into<String>) -> Self {
        Self {
            target: target.into(),
            timeout: None,
            token: None,
            user_agent: None,
            retry: true,
            max_receive_bytes: MAX_RECEIVE_BYTES,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Deadline of every call that is given none of its own. Without it the service config's holds: 10 s, or 60 s where
    /// much may be computed or stored, or 600 s for what tells its progress.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = Some(timeout);
        self
    }

    /// Sent with every call as `authorization: Bearer ...`. Beyond loopback it needs TLS: over plain text others on the
    /// network could read it.
    pub fn token(self, token: impl Into<String>) -> Self {
        let token = token.into();
        self.token_from(move || token.clone())
    }

    /// The same, asked for at every call: for tokens that change while the client lives.
    pub fn token_from(mut self, source: impl Fn() -> String + Send + Sync + 'static) -> Self {
        self.token = Some(Token(Arc::new(source)));
        self
    }

    /// TLS, and with which certificates. Without it calls go in plain text.
    #[cfg(feature = "tls")]
    pub fn tls(mut self, tls: Tls) -> Self {
        self.tls = Some(tls);
        self
    }

    /// What the server is told of the caller, before the client's own `nodewise-rust/<version>`.
    pub fn user_agent(mut self, user_agent: impl Into<String>) -> Self {
        self.user_agent = Some(user_agent.into());
        self
    }

    /// Whether calls that a second attempt cannot harm are retried while the server is unavailable or shuts down, and
    /// interrupted streams start again. Default true.
    pub fn retry(mut self, retry: bool) -> Self {
        self.retry = retry;
        self
    }

    /// Largest message that is accepted from the server, bytes. Default 4 MiB.
    pub fn max_receive_bytes(mut self, bytes: usize) -> Self {
        self.max_receive_bytes = bytes;
        self
    }

    /// A client that connects at its first call. Must be called within a Tokio runtime.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming the option that is wrong.
    pub fn build(self) -> Result<Client> {
        let endpoint = self.endpoint()?;
        if tokio::runtime::Handle::try_current().is_err() {
            return Err(Error::new(
                Code::FailedPrecondition,
                "build() must be called within a Tokio runtime",
            ));
        }
        let channel = endpoint.connect_lazy();
        self.client(channel)
    }

    /// A client that is connected.
    ///
    /// # Errors
    /// As of [`build`](Self::build); `UNAVAILABLE` where no server answers.
    pub async fn connect(self) -> Result<Client> {
        let endpoint = self.endpoint()?;
        let channel = endpoint.connect().await.map_err(|failed| {
            let status = Status::unavailable(told(&failed));
            Error::of_call(&status, Code::Unavailable, &self.target, "connect")
        })?;
        self.client(channel)
    }

    fn client(self, channel: tonic::transport::Channel) -> Result<Client> {
        if let Some(Err(status)) = self.token.as_ref().map(Token::value) {
            return Err(Error::invalid("token", status.message()));
        }
        Ok(Client {
            timeout: self.timeout,
            shared: Arc::new(crate::client::Shared {
                target: self.target,
                channel,
                token: self.token,
                retry: self.retry,
                max_receive_bytes: self.max_receive_bytes,
                throttle: Throttle::new(),
            }),
        })
    }

    fn endpoint(&self) -> Result<Endpoint> {
        if self.target.is_empty() || self.target.contains("://") || self.target.contains('/') {
            let found = &self.target;
            return Err(Error::invalid("target", format!("give the server as host:port, found {found:?}")));
        }
        if self.timeout.is_some_and(|timeout| timeout.is_zero()) {
            return Err(Error::invalid("timeout", "every call has a deadline, so give a time above 0"));
        }
        if self.token.is_some() && !self.is_encrypted() && !is_loopback(&self.target) {
            let target = &self.target;
            return Err(Error::invalid(
                "token",
                format!("it would cross the network to {target} in plain text; use TLS, or a server on loopback"),
            ));
        }
        let own = format!("nodewise-rust/{VERSION}");
        let user_agent = self
            .user_agent
            .as_ref()
            .map_or_else(|| own.clone(), |stated| format!("{stated} {own}"));
        let scheme = if self.is_encrypted() { "https" } else { "http" };
        let endpoint = Endpoint::from_shared(format!("{scheme}://{}", self.target))
            .map_err(|_| Error::invalid("target", format!("give the server as host:port, found {:?}", self.target)))?
            .user_agent(user_agent)
            .map_err(|_| Error::invalid("user_agent", "it has characters that a header must not have"))?
            .connect_timeout(CONNECT_TIMEOUT);
        #[cfg(feature = "tls")]
        if let Some(tls) = &self.tls {
            return endpoint
                .tls_config(tls.config())
                .map_err(|failed| Error::invalid("tls", told(&failed)));
        }
        Ok(endpoint)
    }

    #[cfg(feature = "tls")]
    fn is_encrypted(&self) -> bool {
        self.tls.is_some()
    }

    #[cfg(not(feature = "tls"))]
    fn is_encrypted(&self) -> bool {
        false
    }
}

/// An error with what lies behind it.
fn told(failed: &dyn std::error::Error) -> String {
    let mut text = failed.to_string();
    let mut source = failed.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

fn is_loopback(target: &str) -> bool {
    let host = target
        .rsplit_once(':')
        .map_or(target, |(host, _)| host)
        .trim_start_matches('[')
        .trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// TLS: trusted roots, and the identity of the client.
#[cfg(feature = "tls")]
#[derive(Clone, Debug, Default)]
pub struct Tls {
    roots: Option<tonic::transport::Certificate>,
    identity: Option<tonic::transport::Identity>,
    server_name: Option<String>,
}

#[cfg(feature = "tls")]
impl Tls {
    /// The system's root certificates.
    pub fn system() -> Self {
        Self::default()
    }

    /// These root certificates alone, PEM.
    pub fn with_roots(pem: impl AsRef<[u8]>) -> Self {
        Self {
            roots: Some(tonic::transport::Certificate::from_pem(pem)),
            ..Self::default()
        }
    }

    /// The client's own certificate with its chain, and its key, PEM, where the server asks for one.
    pub fn identity(mut self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.identity = Some(tonic::transport::Identity::from_pem(certificate, key));
        self
    }

    /// Name that the server's certificate must have, where it is not the target's host.
    pub fn server_name(mut self, name: impl Into<String>) -> Self {
        self.server_name = Some(name.into());
        self
    }

    fn config(&self) -> tonic::transport::ClientTlsConfig {
        let config = match &self.roots {
            Some(roots) => tonic::transport::ClientTlsConfig::new().ca_certificate(roots.clone()),
            None => tonic::transport::ClientTlsConfig::new().with_native_roots(),
        };
        let config = match &self.identity {
            Some(identity) => config.identity(identity.clone()),
            None => config,
        };
        match &self.server_name {
            Some(name) => config.domain_name(name.clone()),
            None => config,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn loopback_is_told_from_the_network() {
        for target in ["localhost:1", "127.0.0.1:50551", "127.8.9.1:1", "[::1]:50551"] {
            assert!(is_loopback(target), "{target}");
        }
        for target in ["10.0.0.1:50551", "localhost.example.com:1", "nodewise:50551", "[2001:db8::1]:1"] {
            assert!(!is_loopback(target), "{target}");
        }
    }
}
