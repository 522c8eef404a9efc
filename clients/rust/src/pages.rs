//! Listings over all their pages.

use std::{pin::Pin, task};

use futures_util::{Stream, StreamExt, TryStreamExt, stream};

use crate::{
    Client,
    call::Listing,
    error::{Error, Result},
};

/// The items of a listing as a stream; a page is asked for when it is needed.
pub struct Pages<L: Listing>(Pin<Box<dyn Stream<Item = Result<L::Item>> + Send>>);

impl<L: Listing> Pages<L> {
    pub(crate) fn new(client: &Client, request: L) -> Self {
        let start = (client.clone(), Some(request));
        let pages = stream::try_unfold(start, |(client, request)| async move {
            let Some(mut request) = request else { return Ok::<_, Error>(None) };
            let (items, token) = L::split(client.unary(request.clone()).await?);
            let next = (!token.is_empty()).then(|| {
                request.set_page_token(token);
                request
            });
            Ok(Some((stream::iter(items.into_iter().map(Ok)), (client, next))))
        });
        Self(Box::pin(pages.try_flatten()))
    }

    /// The next item; `None` = there are no more.
    ///
    /// # Errors
    /// Of the call that asked for the page; nothing follows it.
    pub async fn next(&mut self) -> Option<Result<L::Item>> {
        self.0.next().await
    }

    /// All items that are left.
    ///
    /// # Errors
    /// Of a call that asked for a page.
    pub async fn all(self) -> Result<Vec<L::Item>> {
        self.0.try_collect().await
    }
}

impl<L: Listing> Stream for Pages<L> {
    type Item = Result<L::Item>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(cx)
    }
}
