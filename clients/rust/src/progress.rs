//! Streams of the server that go on after a cut: long calls with progress, and watches.

use std::{collections::VecDeque, mem, pin::Pin, sync::Arc, task};

use futures_util::{Stream, StreamExt, stream};
use tokio::time::{Instant, sleep};
use tonic::{Status, Streaming};

use crate::{
    Client,
    call::{Progressive, Rpc, within},
    error::{Code, Error, Result, code_of_status},
    resume::{Patience, ResumePolicy, is_resumable},
    retry::Attempts,
};

/// A long call: how far it is, then the pieces of its answer and its result.
///
/// The call changes nothing: if the connection is lost, it starts again, as often as the service config allows and within
/// its one deadline. Progress is reported as it arrives; pieces and result once the answer is complete, so none occurs twice.
/// Nothing is sent before it is first read. Dropping it cancels the call.
pub struct Progress<P: Progressive>(Pin<Box<dyn Stream<Item = Result<P::Response>> + Send>>);

/// What a long call ends with.
pub struct Outcome<P: Progressive> {
    /// What came before the result, besides progress.
    pub pieces: Vec<P::Response>,
    /// The result.
    pub result: P::Result,
}

impl<P: Progressive> Progress<P> {
    pub(crate) fn new(client: &Client, request: P) -> Self {
        let start = LongCall {
            deadline: client.deadline(P::PATH),
            attempts: Attempts::new(client.policy(P::PATH)),
            client: client.clone(),
            request: Arc::new(request),
            stream: None,
            is_heard: false,
            held: VecDeque::new(),
            is_whole: false,
        };
        Self(Box::pin(stream::try_unfold(start, |mut call| async move {
            Ok(call.next().await?.map(|event| (event, call)))
        })))
    }

    /// The next event; `None` = the result was told.
    ///
    /// # Errors
    /// Of the call, if starting again does not help; nothing follows it.
    pub async fn next(&mut self) -> Option<Result<P::Response>> {
        self.0.next().await
    }

    /// Reads to the end, past the progress.
    ///
    /// # Errors
    /// Of the call, if starting again does not help.
    pub async fn outcome(mut self) -> Result<Outcome<P>> {
        let mut pieces = Vec::new();
        while let Some(event) = self.next().await {
            let event = event?;
            if !P::is_progress(&event) {
                pieces.push(event);
            }
        }
        let result = pieces.pop().and_then(P::result).ok_or_else(without_a_result::<P>)?;
        Ok(Outcome { pieces, result })
    }
}

impl<P: Progressive> Stream for Progress<P> {
    type Item = Result<P::Response>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}

struct LongCall<P: Progressive> {
    client: Client,
    request: Arc<P>,
    deadline: Instant,
    attempts: Attempts,
    stream: Option<Streaming<P::Response>>,
    /// This attempt has told something: only a server that went away is then worth another one.
    is_heard: bool,
    held: VecDeque<P::Response>,
    is_whole: bool,
}

impl<P: Progressive> LongCall<P> {
    async fn next(&mut self) -> Result<Option<P::Response>> {
        while !self.is_whole {
            let told = self.message().await;
            let was_heard = mem::replace(&mut self.is_heard, told.is_ok());
            match told {
                Ok(Some(event)) if P::is_progress(&event) => return Ok(Some(event)),
                Ok(Some(event)) => self.held.push_back(event),
                Ok(None) => {
                    self.is_whole = true;
                    self.client.shared.throttle.succeeded();
                    if !self.held.back().is_some_and(P::is_result) {
                        return Err(without_a_result::<P>());
                    }
                }
                Err(status) if was_heard && code_of_status(&status) != Code::Unavailable => {
                    return Err(self.client.error_of::<P>(&status));
                }
                Err(status) => {
                    self.stream = None;
                    self.held.clear();
                    self.client.again::<P>(&mut self.attempts, status, self.deadline).await?;
                }
            }
        }
        Ok(self.held.pop_front())
    }

    async fn message(&mut self) -> std::result::Result<Option<P::Response>, Status> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => empty.insert(self.client.open(&self.request, Some(self.deadline)).await?),
        };
        within(Some(self.deadline), stream.message()).await
    }
}

fn without_a_result<P: Progressive>() -> Error {
    let method = P::PATH.rsplit('/').next().unwrap_or(P::PATH);
    Error::new(Code::Internal, format!("the server ended {method} without a result"))
}

type Events<R> = Pin<Box<dyn Stream<Item = Result<<R as Rpc>::Response>> + Send>>;

/// A watch, for as long as it is read. Dropping it ends it.
///
/// If the connection is lost, the watch starts again: it reports everything again, and `caught_up` once more. Without
/// [`Client::with_timeout`] or a timeout of the client it has no end.
pub struct Watch<R: Rpc> {
    start: Option<(Client, R, ResumePolicy)>,
    stream: Option<Events<R>>,
}

impl<R: Rpc> Watch<R> {
    pub(crate) fn new(client: &Client, request: R) -> Self {
        Self {
            start: Some((client.clone(), request, ResumePolicy::default())),
            stream: None,
        }
    }

    /// Goes on under another policy; to be said before it is first read.
    pub fn resume(mut self, policy: ResumePolicy) -> Self {
        if let Some(start) = &mut self.start {
            start.2 = policy;
        }
        self
    }

    /// What the server tells next; `None` = it ended the watch, and the client was made not to go on.
    ///
    /// # Errors
    /// Where going on does not help, or patience is over; nothing follows it.
    pub async fn next(&mut self) -> Option<Result<R::Response>> {
        StreamExt::next(self).await
    }
}

impl<R: Rpc> Unpin for Watch<R> {}

impl<R: Rpc> Stream for Watch<R> {
    type Item = Result<R::Response>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Option<Self::Item>> {
        if let Some((client, request, policy)) = self.start.take() {
            self.stream = Some(Box::pin(watching(client, request, policy)));
        }
        match &mut self.stream {
            Some(stream) => stream.as_mut().poll_next(cx),
            None => task::Poll::Ready(None),
        }
    }
}

fn watching<R: Rpc>(client: Client, request: R, policy: ResumePolicy) -> impl Stream<Item = Result<R::Response>> + Send {
    let deadline = client.timeout.map(|timeout| Instant::now() + timeout);
    let start = (client, Arc::new(request), Patience::new(policy), None::<Streaming<R::Response>>);
    stream::try_unfold(start, move |(client, request, mut patience, mut open)| async move {
        loop {
            let stream = match open.take() {
                Some(stream) => Ok(stream),
                None => client.open(&request, deadline).await,
            };
            let told = match stream {
                Ok(mut stream) => within(deadline, stream.message())
                    .await
                    .map(|event| event.map(|event| (event, stream))),
                Err(status) => Err(status),
            };
            let error = match told {
                Ok(Some((event, stream))) => {
                    patience.progressed();
                    return Ok(Some((event, (client, request, patience, Some(stream)))));
                }
                Ok(None) => None,
                Err(status) => Some(client.error_of::<R>(&status)),
            };
            let is_over = !client.shared.retry || deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let pause = match &error {
                _ if is_over => None,
                Some(error) if !is_resumable(error) => None,
                error => patience.pause(error.as_ref()),
            };
            match (pause, error) {
                (Some(pause), _) => sleep(pause).await,
                (None, Some(error)) => return Err(error),
                (None, None) if is_over => return Ok(None),
                (None, None) => {
                    return Err(Error::new(
                        Code::Unavailable,
                        "the server ended the watch repeatedly without a reply",
                    ));
                }
            }
        }
    })
}
