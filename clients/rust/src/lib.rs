//! Client of Nodewise: how fast a distributed training job would be on configurations that never ran, how sure that
//! is, how many nodes it is worth, and which devices each job should get.
//!
//! ```no_run
#![doc = include_str!("../examples/readme.rs")]
//! ```
//!
//! A [`Client`] has a method for every RPC, which takes the contract's own request ([`v1`], [`v1beta1`]) and gives its
//! reply; units are in the names of fields. Around them stand:
//!
//! - shorter ways to make what requests hold: [`v1::ProfileSource::stored`], [`v1::ConfigurationRange::over_nodes`],
//!   [`v1::Objective::knee`], [`v1::Configurations::from_rows`], [`v1::NodePool::of_nodes`];
//! - answers row by row: [`v1::PredictResponse::rows`] and [`v1::BatchPredictResponse::jobs`];
//! - listings over all their pages: [`Client::pages`];
//! - long calls that start again if they are interrupted: [`Progress`]; and a watch that resumes: [`Watch`];
//! - a writer that neither loses nor doubles what a program records: [`Client::ingest`];
//! - one [`Error`] with code, reason, violations and the delay that the server asks for.
//!
//! Every call has a deadline: that of [`Client::with_timeout`], else the client's, else what the service config says, which
//! the clients of all languages share. It holds for all attempts together. A call is cancelled by dropping its future, a
//! stream by dropping it. Nothing needs a particular executor but that Tokio's runtime runs.

#![warn(missing_docs)]
#![forbid(unsafe_code)]

mod batch;
mod builders;
mod call;
mod client;
mod columns;
mod error;
mod ids;
mod ingest;
mod options;
mod pages;
mod progress;
mod resume;
mod retry;
mod rows;

#[rustfmt::skip]
#[allow(clippy::all, missing_docs, rustdoc::all)]
#[path = "gen/nodewise.v1.rs"]
pub mod v1;

#[rustfmt::skip]
#[allow(clippy::all, missing_docs, rustdoc::all)]
#[path = "gen/nodewise.v1beta1.rs"]
pub mod v1beta1;

#[rustfmt::skip]
#[path = "gen/methods.rs"]
mod methods;

pub use batch::{Job, Jobs};
pub use builders::{ConfigurationRow, WorkerGroup};
pub use call::{Listing, Progressive, Replies, Rpc};
pub use client::{Client, HealthStatus};
pub use error::{Code, Error, FieldViolation};
pub use ingest::{Ingest, IngestWriter};
#[cfg(feature = "tls")]
pub use options::Tls;
pub use options::{Builder, VERSION};
pub use pages::Pages;
pub use progress::{Outcome, Progress, Watch};
pub use resume::ResumePolicy;
pub use rows::{Prediction, Rows};

/// The gRPC channel that carries calls, for [`Client::channel`].
pub use tonic::transport::Channel;
