//! How calls are made: one attempt, and the loop around it.

use std::{future::Future, marker::PhantomData, pin::Pin, sync::Arc, task, time::Duration};

use futures_util::{Stream, StreamExt, stream};
use prost::Message;
use tokio::time::{Instant, sleep, timeout_at};
use tonic::{
    Request, Status, Streaming,
    client::Grpc,
    codec::{Codec, EncodeBuf, Encoder},
    codegen::http::uri::PathAndQuery,
    transport::Channel,
};
use tonic_prost::ProstDecoder;

use crate::{
    Client,
    error::{self, Code, Error, Result},
    retry::{self, Attempts, RetryPolicy},
};

/// An RPC, by the request that the contract names after it.
pub trait Rpc: Message + Default + Clone + 'static {
    /// What it answers with.
    type Response: Message + Default + 'static;
    /// Its path, e.g. `/nodewise.v1.PredictionService/Predict`.
    const PATH: &'static str;

    /// Fills in what makes a repeated call harmless, where the caller left it open.
    #[doc(hidden)]
    fn fill(&mut self) {}
}

/// A listing, which comes in pages.
pub trait Listing: Rpc {
    /// What it lists.
    type Item: Send + 'static;

    #[doc(hidden)]
    fn set_page_token(&mut self, token: String);
    #[doc(hidden)]
    fn split(response: Self::Response) -> (Vec<Self::Item>, String);
}

/// A long call, which tells how far it is before it answers.
pub trait Progressive: Rpc {
    /// What it ends with.
    type Result: Send + 'static;

    #[doc(hidden)]
    fn is_progress(event: &Self::Response) -> bool;
    #[doc(hidden)]
    fn is_result(event: &Self::Response) -> bool;
    #[doc(hidden)]
    fn result(event: Self::Response) -> Option<Self::Result>;
}

/// Answers of a stream of questions, as they come. Dropping it cancels the call.
pub struct Replies<T>(pub(crate) Pin<Box<dyn Stream<Item = Result<T>> + Send>>);

impl<T> Replies<T> {
    /// The next answer; `None` = there are no more.
    pub async fn next(&mut self) -> Option<Result<T>> {
        self.0.next().await
    }
}

impl<T> Stream for Replies<T> {
    type Item = Result<T>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

impl Client {
    /// One request, one reply, and further attempts as the service config allows.
    pub(crate) async fn unary<R: Rpc>(&self, mut request: R) -> Result<R::Response> {
        request.fill();
        let request = Arc::new(request);
        let deadline = self.deadline(R::PATH);
        let mut attempts = Attempts::new(self.policy(R::PATH));
        loop {
            match self.attempt(&request, deadline).await {
                Ok(reply) => return Ok(reply),
                Err(status) => self.again::<R>(&mut attempts, status, deadline).await?,
            }
        }
    }

    /// One attempt of a call, without what follows where it fails.
    pub(crate) async fn once<R: Rpc>(&self, request: &Arc<R>, timeout: Duration) -> Result<R::Response> {
        let attempt = self.attempt(request, Instant::now() + timeout).await;
        attempt.map_err(|status| self.error_of::<R>(&status))
    }

    async fn attempt<R: Rpc>(&self, request: &Arc<R>, deadline: Instant) -> std::result::Result<R::Response, Status> {
        let request = self.request(Shared(Arc::clone(request)), Some(deadline))?;
        let reply = within(Some(deadline), async {
            let mut grpc = self.grpc().await?;
            grpc.unary(request, PathAndQuery::from_static(R::PATH), SharedCodec::<R>::new())
                .await
        });
        let reply = reply.await?;
        self.shared.throttle.succeeded();
        Ok(reply.into_inner())
    }

    /// A stream of replies to one request; `None` = it has no deadline.
    pub(crate) async fn open<R: Rpc>(
        &self,
        request: &Arc<R>,
        deadline: Option<Instant>,
    ) -> std::result::Result<Streaming<R::Response>, Status> {
        let request = self.request(Shared(Arc::clone(request)), deadline)?;
        let opened = within(deadline, async {
            let mut grpc = self.grpc().await?;
            grpc.server_streaming(request, PathAndQuery::from_static(R::PATH), SharedCodec::<R>::new())
                .await
        });
        Ok(opened.await?.into_inner())
    }

    /// A stream of requests and one of replies. What was sent is gone: nothing is tried again.
    pub(crate) fn streaming<R: Rpc>(&self, requests: impl Stream<Item = R> + Send + 'static) -> Replies<R::Response> {
        let client = self.clone();
        let deadline = self.deadline(R::PATH);
        let requests = requests.map(|request| Shared(Arc::new(request)));
        let opening = async move {
            let request = client
                .request(requests, Some(deadline))
                .map_err(|status| client.error_of::<R>(&status))?;
            let opened = within(Some(deadline), async {
                let mut grpc = client.grpc().await?;
                grpc.streaming(request, PathAndQuery::from_static(R::PATH), SharedCodec::<R>::new())
                    .await
            });
            let replies = opened.await.map_err(|status| client.error_of::<R>(&status))?.into_inner();
            Ok::<_, Error>(stream::try_unfold((client, replies), move |(client, mut replies)| async move {
                match within(Some(deadline), replies.message()).await {
                    Ok(reply) => Ok(reply.map(|reply| (reply, (client, replies)))),
                    Err(status) => Err(client.error_of::<R>(&status)),
                }
            }))
        };
        Replies(Box::pin(stream::once(opening).flat_map(|opened| match opened {
            Ok(replies) => replies.left_stream(),
            Err(error) => stream::once(async { Err(error) }).right_stream(),
        })))
    }

    /// Waits for the next attempt after one that ended so, or gives the error of the call.
    pub(crate) async fn again<R: Rpc>(&self, attempts: &mut Attempts, status: Status, deadline: Instant) -> Result<()> {
        let code = error::code_of_status(&status);
        let left = deadline.saturating_duration_since(Instant::now());
        match attempts.pause(code, &status, &self.shared.throttle, left) {
            Some(pause) => sleep(pause).await,
            None => return Err(self.error_of::<R>(&status)),
        }
        Ok(())
    }

    pub(crate) fn error_of<R: Rpc>(&self, status: &Status) -> Error {
        Error::of_call(status, error::code_of_status(status), &self.shared.target, R::PATH)
    }

    /// When the attempts of a call that begins now must be over.
    pub(crate) fn deadline(&self, path: &str) -> Instant {
        Instant::now() + self.timeout_of(path)
    }

    pub(crate) fn timeout_of(&self, path: &str) -> Duration {
        self.timeout.unwrap_or_else(|| retry::timeout_of(path))
    }

    pub(crate) fn policy(&self, path: &str) -> Option<&'static RetryPolicy> {
        self.shared.retry.then(|| retry::policy_of(path)).flatten()
    }

    fn request<T>(&self, message: T, deadline: Option<Instant>) -> std::result::Result<Request<T>, Status> {
        let mut request = Request::new(message);
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Status::deadline_exceeded("the deadline passed before this attempt"));
            }
            request.set_timeout(left);
        }
        if let Some(token) = &self.shared.token {
            request.metadata_mut().insert("authorization", token.value()?);
        }
        Ok(request)
    }

    async fn grpc(&self) -> std::result::Result<Grpc<Channel>, Status> {
        let mut grpc = Grpc::new(self.shared.channel.clone())
            .max_decoding_message_size(self.shared.max_receive_bytes)
            .max_encoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|failed| Status::from_error(Box::new(failed)))?;
        Ok(grpc)
    }
}

/// What comes before the deadline. tonic itself watches it only until the head of the reply is there.
pub(crate) async fn within<T>(
    deadline: Option<Instant>,
    work: impl Future<Output = std::result::Result<T, Status>>,
) -> std::result::Result<T, Status> {
    match deadline {
        Some(deadline) => match timeout_at(deadline, work).await {
            Ok(done) => done,
            Err(_) => Err(Status::new(Code::DeadlineExceeded, "the deadline of the call has passed")),
        },
        None => work.await,
    }
}

/// A request that all attempts of a call share, rather than each its copy.
struct Shared<R>(Arc<R>);

struct SharedCodec<R>(PhantomData<fn() -> R>);

impl<R> SharedCodec<R> {
    fn new() -> Self {
        Self(PhantomData)
    }
}

impl<R: Rpc> Codec for SharedCodec<R> {
    type Encode = Shared<R>;
    type Decode = R::Response;
    type Encoder = Self;
    type Decoder = ProstDecoder<R::Response>;

    fn encoder(&mut self) -> Self {
        Self::new()
    }

    fn decoder(&mut self) -> Self::Decoder {
        ProstDecoder::default()
    }
}

impl<R: Rpc> Encoder for SharedCodec<R> {
    type Item = Shared<R>;
    type Error = Status;

    fn encode(&mut self, item: Self::Item, buffer: &mut EncodeBuf<'_>) -> std::result::Result<(), Status> {
        item.0.encode(buffer).map_err(|failed| Status::internal(failed.to_string()))
    }
}
