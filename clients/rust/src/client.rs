//! The client: a connection, and what is not an RPC of the contract.

use std::{fmt, sync::Arc, time::Duration};

use tonic::transport::Channel;

use crate::{
    call::{Listing, Rpc},
    error::Result,
    ids,
    ingest::Ingest,
    options::{Builder, Token},
    pages::Pages,
    retry::Throttle,
};

/// A connection to a Nodewise server. Cheap to clone: clones share the connection, which is made again by itself.
#[derive(Clone)]
pub struct Client {
    pub(crate) timeout: Option<Duration>,
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) target: String,
    pub(crate) channel: Channel,
    pub(crate) token: Option<Token>,
    pub(crate) retry: bool,
    pub(crate) max_receive_bytes: usize,
    pub(crate) throttle: Throttle,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({:?})", self.shared.target)
    }
}

impl Client {
    /// A client connected to `host:port`, in plain text and without a token; [`builder`](Self::builder) has all options.
    ///
    /// # Errors
    /// `UNAVAILABLE` where no server answers.
    pub async fn connect(target: impl Into<String>) -> Result<Self> {
        Self::builder(target).connect().await
    }

    /// Options of a client of the server at `host:port`.
    pub fn builder(target: impl Into<String>) -> Builder {
        Builder::new(target)
    }

    /// The same client with another deadline for its calls, and for all attempts of each together:
    /// `client.with_timeout(Duration::from_secs(2)).predict(request)`.
    pub fn with_timeout(&self, timeout: Duration) -> Self {
        Self {
            timeout: Some(timeout),
            shared: Arc::clone(&self.shared),
        }
    }

    /// The channel that carries the calls, for the generated stubs in [`v1`](crate::v1) and [`v1beta1`](crate::v1beta1), which try
    /// nothing again and send no token.
    pub fn channel(&self) -> Channel {
        self.shared.channel.clone()
    }

    /// All items of a listing, page after page as they are read: `client.pages(ListProfilesRequest::default())`. Of
    /// [`GetProfileRequest`](crate::v1::GetProfileRequest) the pages themselves: the profile, then more of its observations.
    pub fn pages<L: Listing>(&self, request: L) -> Pages<L> {
        Pages::new(self, request)
    }

    /// A writer into a profile that outlives restarts of the server; see [`Ingest`] for its options.
    pub fn ingest(&self, profile_id: impl Into<String>) -> Ingest {
        Ingest::new(self, profile_id.into(), ids::new_id())
    }

    /// What the server says of itself (the empty name) or of one service, e.g. `nodewise.v1.PredictionService`.
    ///
    /// # Errors
    /// `NOT_FOUND` where the server has no such service.
    pub async fn health(&self, service: impl Into<String>) -> Result<HealthStatus> {
        let service = service.into();
        Ok(self.unary(HealthCheckRequest { service }).await?.status())
    }
}

/// What a server says of itself, or of one of its services.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, prost::Enumeration)]
#[repr(i32)]
pub enum HealthStatus {
    /// It does not say.
    Unknown = 0,
    /// Calls are answered.
    Serving = 1,
    /// It is starting, or going away.
    NotServing = 2,
    /// There is no such service.
    ServiceUnknown = 3,
}

// The two messages of grpc.health.v1; that is all that a crate of stubs for it would bring.
#[derive(Clone, PartialEq, prost::Message)]
struct HealthCheckRequest {
    #[prost(string, tag = "1")]
    service: String,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct HealthCheckResponse {
    #[prost(enumeration = "HealthStatus", tag = "1")]
    status: i32,
}

impl Rpc for HealthCheckRequest {
    type Response = HealthCheckResponse;
    const PATH: &'static str = "/grpc.health.v1.Health/Check";
}
