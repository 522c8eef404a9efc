//! What went wrong: the status of a call with its details, or the problem of one job or question.

use std::{collections::BTreeMap, error::Error as StdError, fmt, time::Duration};

/// Codes of gRPC.
pub use tonic::Code;
use tonic::Status;
use tonic_types::StatusExt;

use crate::{retry, v1};

/// A field that holds what it must not, and what would be right.
pub use crate::v1::FieldViolation;

const DOMAIN: &str = "nodewise";
const MISSING_FIELDS: &str = "missingFields";

/// A call that failed, or a job or question that has no answer.
///
/// [`reason`](Self::reason) is stable and meant to be matched on; the text is for people.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{0}")]
pub struct Error(Box<Told>);

#[derive(Clone, Debug)]
struct Told {
    code: Code,
    message: String,
    reason: String,
    metadata: BTreeMap<String, String>,
    violations: Vec<FieldViolation>,
    retry_delay: Option<Duration>,
}

/// Results of this crate.
pub(crate) type Result<T> = std::result::Result<T, Error>;

impl Error {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self(Box::new(Told {
            code,
            message: message.into(),
            reason: String::new(),
            metadata: BTreeMap::new(),
            violations: Vec::new(),
            retry_delay: None,
        }))
    }

    /// What the client itself refuses, as the server would say it.
    pub(crate) fn invalid(field: impl Into<String>, description: impl Into<String>) -> Self {
        let violation = FieldViolation {
            field: field.into(),
            description: description.into(),
        };
        let mut error = Self::new(Code::InvalidArgument, format!("{}: {}", violation.field, violation.description));
        error.0.reason = "INVALID_FIELD".into();
        error.0.violations.push(violation);
        error
    }

    /// The error of a call to a method of a server.
    pub(crate) fn of_call(status: &Status, code: Code, target: &str, path: &str) -> Self {
        let details = status.get_error_details();
        let mut error = Self::new(code, status.message());
        let told = &mut *error.0;
        told.retry_delay = retry_info(status).or_else(|| retry::pushback(status).flatten());
        if let Some(info) = details.error_info().filter(|info| info.domain == DOMAIN) {
            told.reason.clone_from(&info.reason);
            told.metadata = info.metadata.clone().into_iter().collect();
        }
        for violation in details.bad_request().into_iter().flat_map(|bad| &bad.field_violations) {
            told.violations.push(FieldViolation {
                field: violation.field.clone(),
                description: violation.description.clone(),
            });
        }
        if told.reason.is_empty() && told.violations.is_empty() {
            told.message = explained(code, status.message(), target, path.rsplit('/').next().unwrap_or(path));
        }
        error
    }

    pub(crate) fn with_metadata(mut self, key: &str, value: impl ToString) -> Self {
        self.0.metadata.insert(key.into(), value.to_string());
        self
    }

    /// Code of the status.
    pub fn code(&self) -> Code {
        self.0.code
    }

    /// Name of the code as gRPC writes it, e.g. `INVALID_ARGUMENT`.
    pub fn code_name(&self) -> &'static str {
        name_of(self.0.code)
    }

    /// Reason from the server's catalogue of errors, e.g. `PROFILE_NOT_FOUND`; empty where the server gave none.
    pub fn reason(&self) -> &str {
        &self.0.reason
    }

    /// The text for people, without what the other parts say.
    pub fn message(&self) -> &str {
        &self.0.message
    }

    /// The dynamic parts of the message, by name.
    pub fn metadata(&self) -> &BTreeMap<String, String> {
        &self.0.metadata
    }

    /// Fields that hold what they must not.
    pub fn violations(&self) -> &[FieldViolation] {
        &self.0.violations
    }

    /// After which time the server asks to be tried again; `None` where it did not say.
    ///
    /// An overloaded server (`RESOURCE_EXHAUSTED`) says so to the caller: the client does not call again by itself.
    pub fn retry_delay(&self) -> Option<Duration> {
        self.0.retry_delay
    }

    /// Whether Nodewise refuses to guess: it cannot answer this from what it knows, and callers may go on without it.
    pub fn is_refusal(&self) -> bool {
        REFUSALS.contains(&self.reason())
    }

    /// Fields of the profile that would make an answer possible.
    pub fn missing_fields(&self) -> Vec<&str> {
        let named = self.0.metadata.get(MISSING_FIELDS).map_or("", String::as_str);
        named.split(',').map(str::trim).filter(|field| !field.is_empty()).collect()
    }
}

impl fmt::Display for Told {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = if self.reason.is_empty() { name_of(self.code) } else { &self.reason };
        write!(f, "{name}: {}", self.message)?;
        for violation in self.violations.iter().filter(|each| !self.message.contains(&each.description)) {
            write!(f, "; {}: {}", violation.field, violation.description)?;
        }
        match self.retry_delay {
            Some(delay) => write!(f, "; try again in {} s", delay.as_secs_f64()),
            None => Ok(()),
        }
    }
}

/// The error of one job of a batch, or of one question of a stream.
impl From<&v1::Problem> for Error {
    fn from(problem: &v1::Problem) -> Self {
        let mut metadata = problem.metadata.clone();
        if !problem.missing_fields.is_empty() {
            metadata
                .entry(MISSING_FIELDS.into())
                .or_insert_with(|| problem.missing_fields.join(","));
        }
        Self(Box::new(Told {
            code: code_of(&problem.reason),
            message: problem.message.clone(),
            reason: problem.reason.clone(),
            metadata,
            violations: problem.violations.clone(),
            retry_delay: problem
                .retry_delay_seconds
                .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()),
        }))
    }
}

/// The delay that a status asks for.
pub(crate) fn retry_info(status: &Status) -> Option<Duration> {
    if status.details().is_empty() {
        return None;
    }
    status.get_error_details().retry_info()?.retry_delay
}

/// The code of a status as gRPC has it, where the transport ended the call and no server spoke.
pub(crate) fn code_of_status(status: &Status) -> Code {
    if status.code() == Code::OutOfRange && status.message().starts_with("Error, ") && status.message().contains("length too large") {
        return Code::ResourceExhausted;
    }
    let Some(first) = status.source() else {
        return status.code();
    };
    let mut source = Some(first);
    while let Some(error) = source {
        if error.is::<tonic::TimeoutExpired>() {
            return Code::DeadlineExceeded;
        }
        if let Some(reset) = error.downcast_ref::<h2::Error>().filter(|error| error.is_reset()) {
            return code_of_reset(reset.reason());
        }
        source = error.source();
    }
    // A connection that could not be made, was lost, or is being left by the server.
    Code::Unavailable
}

fn code_of_reset(reason: Option<h2::Reason>) -> Code {
    match reason {
        Some(h2::Reason::REFUSED_STREAM) => Code::Unavailable,
        Some(h2::Reason::CANCEL) => Code::Cancelled,
        Some(h2::Reason::ENHANCE_YOUR_CALM) => Code::ResourceExhausted,
        Some(h2::Reason::INADEQUATE_SECURITY) => Code::PermissionDenied,
        _ => Code::Internal,
    }
}

fn explained(code: Code, text: &str, target: &str, method: &str) -> String {
    match code {
        Code::Unavailable => format!(
            "no answer from a Nodewise server at {target} ({text}). Check that it runs (`nodewise serve` prints where it listens), \
             that host and port are right and reachable from here, and that both sides agree on TLS"
        ),
        Code::DeadlineExceeded => {
            format!("{method} at {target} was not answered in time ({text}); allow more with `with_timeout`")
        }
        Code::ResourceExhausted if text.contains("length too large") => {
            format!("{text}; ask for fewer rows, use `stream_predict`, or allow more with `max_receive_bytes`")
        }
        Code::Unimplemented => format!("the server at {target} does not offer {method} ({text})"),
        _ if text.is_empty() => "no details were given".into(),
        _ => text.into(),
    }
}

const REFUSALS: [&str; 4] = [
    "EVIDENCE_MISSING",
    "OBJECTIVE_UNREACHABLE",
    "UNSUPPORTED_CONFIGURATION",
    "MODEL_NOT_CACHED",
];

/// The code that a reason of the catalogue of errors implies.
fn code_of(reason: &str) -> Code {
    match reason {
        "INVALID_FIELD" | "CONTRADICTORY_FACTS" | "MALFORMED_MESSAGE" | "LIMIT_EXCEEDED" => Code::InvalidArgument,
        "ETAG_MISMATCH" | "GENERATION_BUSY" => Code::Aborted,
        "BATCH_CONFLICT" | "REQUEST_ID_REUSED" => Code::AlreadyExists,
        "SESSION_NOT_OPEN" | "BATCH_OUT_OF_ORDER" => Code::FailedPrecondition,
        "REVISION_NOT_REACHED" | "ESTIMATOR_UNAVAILABLE" | "STORE_UNAVAILABLE" | "COMPUTE_LOST" => Code::Unavailable,
        "OVERLOADED" | "QUOTA_EXCEEDED" => Code::ResourceExhausted,
        "UNAUTHENTICATED" => Code::Unauthenticated,
        "PERMISSION_DENIED" => Code::PermissionDenied,
        "NOT_IMPLEMENTED" => Code::Unimplemented,
        "DEADLINE_EXCEEDED" | "ESTIMATOR_TIMEOUT" => Code::DeadlineExceeded,
        "INTERNAL" => Code::Internal,
        _ if REFUSALS.contains(&reason) => Code::FailedPrecondition,
        _ if reason.ends_with("_NOT_FOUND") => Code::NotFound,
        _ if reason.ends_with("_FAILED") || reason.ends_with("_INVALID_RESULT") => Code::Internal,
        _ => Code::Unknown,
    }
}

const NAMES: [&str; 17] = [
    "OK",
    "CANCELLED",
    "UNKNOWN",
    "INVALID_ARGUMENT",
    "DEADLINE_EXCEEDED",
    "NOT_FOUND",
    "ALREADY_EXISTS",
    "PERMISSION_DENIED",
    "RESOURCE_EXHAUSTED",
    "FAILED_PRECONDITION",
    "ABORTED",
    "OUT_OF_RANGE",
    "UNIMPLEMENTED",
    "INTERNAL",
    "UNAVAILABLE",
    "DATA_LOSS",
    "UNAUTHENTICATED",
];

fn name_of(code: Code) -> &'static str {
    NAMES[code as usize]
}

/// The code that goes by a name of gRPC.
pub(crate) fn code_named(name: &str) -> Option<Code> {
    NAMES
        .iter()
        .position(|each| *each == name)
        .map(|number| Code::from_i32(number as i32))
}
