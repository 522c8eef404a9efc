//! What is tried again, how often and after which pauses: read from the service config that all clients share.

use std::{
    collections::HashMap,
    sync::{LazyLock, Mutex, PoisonError},
    time::Duration,
};

use serde_json::Value;
use tonic::{Code, Status};

use crate::{error, ids};

/// The shared file, as it was when this client was generated.
const SERVICE_CONFIG: &str = include_str!("nodewise_grpc_service_config.json");
/// Of methods that the file gives no time: a stream of questions lasts as long as its caller wishes.
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);
const STREAM_TIMEOUT: Duration = Duration::from_secs(600);
const STREAMS: [&str; 1] = ["/nodewise.v1.PredictionService/StreamPredict"];
const PUSHBACK_KEY: &str = "grpc-retry-pushback-ms";
const JITTER: f64 = 0.2;

static METHODS: LazyLock<HashMap<String, MethodConfig>> = LazyLock::new(|| parsed(SERVICE_CONFIG).0);
static THROTTLING: LazyLock<(f64, f64)> = LazyLock::new(|| parsed(SERVICE_CONFIG).1);

/// When and how a method is tried again.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RetryPolicy {
    max_attempts: u32,
    initial_backoff: Duration,
    max_backoff: Duration,
    backoff_multiplier: f64,
    retryable: Vec<Code>,
}

#[derive(Clone, Debug, Default)]
struct MethodConfig {
    timeout: Option<Duration>,
    policy: Option<RetryPolicy>,
}

/// The deadline of a method that is given none by its caller.
pub(crate) fn timeout_of(path: &str) -> Duration {
    let stated = METHODS.get(path).and_then(|method| method.timeout);
    stated.unwrap_or(if STREAMS.contains(&path) { STREAM_TIMEOUT } else { DEFAULT_TIMEOUT })
}

/// How a method is tried again; `None` = it is not.
pub(crate) fn policy_of(path: &str) -> Option<&'static RetryPolicy> {
    METHODS.get(path)?.policy.as_ref()
}

/// Methods by their paths, and the numbers of retry throttling.
fn parsed(text: &str) -> (HashMap<String, MethodConfig>, (f64, f64)) {
    // The file is part of the crate: a test reads every value of it.
    let config: Value = serde_json::from_str(text).expect("the service config is JSON");
    let mut methods = HashMap::new();
    for entry in config["methodConfig"].as_array().into_iter().flatten() {
        let method = MethodConfig {
            timeout: seconds(&entry["timeout"]),
            policy: policy(&entry["retryPolicy"]),
        };
        for name in entry["name"].as_array().into_iter().flatten() {
            let text = |key: &str| name[key].as_str().unwrap_or_default().to_owned();
            methods.insert(format!("/{}/{}", text("service"), text("method")), method.clone());
        }
    }
    let throttling = &config["retryThrottling"];
    let number = |key: &str| throttling[key].as_f64().unwrap_or(0.0);
    (methods, (number("maxTokens"), number("tokenRatio")))
}

fn policy(given: &Value) -> Option<RetryPolicy> {
    Some(RetryPolicy {
        max_attempts: u32::try_from(given["maxAttempts"].as_u64()?).ok()?,
        initial_backoff: seconds(&given["initialBackoff"])?,
        max_backoff: seconds(&given["maxBackoff"])?,
        backoff_multiplier: given["backoffMultiplier"].as_f64()?,
        retryable: given["retryableStatusCodes"]
            .as_array()?
            .iter()
            .filter_map(|code| error::code_named(code.as_str()?))
            .collect(),
    })
}

/// `"0.05s"` as a duration.
fn seconds(given: &Value) -> Option<Duration> {
    Duration::try_from_secs_f64(given.as_str()?.strip_suffix('s')?.parse().ok()?).ok()
}

/// A pause, longer or shorter by a random share.
pub(crate) fn with_jitter(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + JITTER * (2.0 * ids::uniform() - 1.0))
}

/// Tokens that failures cost and successes bring back: below half of them nothing is tried again, so that a server in
/// trouble is not asked four times as much.
#[derive(Debug)]
pub(crate) struct Throttle(Mutex<f64>);

impl Throttle {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(THROTTLING.0))
    }

    pub(crate) fn succeeded(&self) {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = (*tokens + THROTTLING.1).min(THROTTLING.0);
    }

    /// Counts a failure; whether trying again is allowed.
    fn failed(&self) -> bool {
        let mut tokens = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *tokens = (*tokens - 1.0).max(0.0);
        *tokens > THROTTLING.0 / 2.0
    }
}

/// The attempts of one call.
pub(crate) struct Attempts {
    policy: Option<&'static RetryPolicy>,
    made: u32,
    /// Attempts since the pause was last set by the server: the backoff starts afresh there.
    since_pushback: u32,
}

impl Attempts {
    pub(crate) fn new(policy: Option<&'static RetryPolicy>) -> Self {
        Self {
            policy,
            made: 1,
            since_pushback: 1,
        }
    }

    /// The pause before the next attempt after one that ended so; `None` = there is none.
    pub(crate) fn pause(&mut self, code: Code, status: &Status, throttle: &Throttle, left: Duration) -> Option<Duration> {
        let policy = self.policy.filter(|policy| policy.retryable.contains(&code))?;
        let allowed = throttle.failed();
        let pushback = pushback(status);
        if !allowed || self.made >= policy.max_attempts || pushback == Some(None) {
            return None;
        }
        let pause = match pushback.flatten() {
            Some(asked) => {
                self.since_pushback = 0;
                asked
            }
            None => {
                let factor = policy.backoff_multiplier.powi(self.since_pushback.saturating_sub(1).min(60) as i32);
                let backoff = policy.initial_backoff.as_secs_f64() * factor;
                let backoff = with_jitter(Duration::from_secs_f64(backoff.min(policy.max_backoff.as_secs_f64())));
                backoff.max(error::retry_info(status).unwrap_or_default())
            }
        };
        self.made += 1;
        self.since_pushback += 1;
        (pause < left).then_some(pause)
    }
}

/// What the server says of the next attempt: `Some(None)` = there must be none.
pub(crate) fn pushback(status: &Status) -> Option<Option<Duration>> {
    let given = status.metadata().get(PUSHBACK_KEY)?;
    let milliseconds = given.to_str().ok().and_then(|text| text.parse::<i64>().ok());
    Some(
        milliseconds
            .and_then(|number| u64::try_from(number).ok())
            .map(Duration::from_millis),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const PREDICT: &str = "/nodewise.v1.PredictionService/Predict";
    const LEFT: Duration = Duration::from_secs(10);

    fn unavailable(pushback: Option<&str>) -> Status {
        let mut status = Status::unavailable("away");
        if let Some(text) = pushback {
            status.metadata_mut().insert(PUSHBACK_KEY, text.parse().expect("metadata"));
        }
        status
    }

    fn pause(attempts: &mut Attempts, pushback: Option<&str>) -> Option<Duration> {
        attempts.pause(Code::Unavailable, &unavailable(pushback), &Throttle::new(), LEFT)
    }

    #[test]
    fn every_value_of_the_file_is_read() {
        let policy = policy_of(PREDICT).expect("a policy");
        let expected = RetryPolicy {
            max_attempts: 4,
            initial_backoff: Duration::from_millis(50),
            max_backoff: Duration::from_secs(1),
            backoff_multiplier: 2.0,
            retryable: vec![Code::Unavailable, Code::Cancelled],
        };
        assert_eq!(policy, &expected);
        assert_eq!(timeout_of(PREDICT), Duration::from_secs(10));
        assert_eq!(timeout_of("/nodewise.v1beta1.PlanService/Plan"), Duration::from_secs(600));
        assert_eq!(timeout_of(STREAMS[0]), STREAM_TIMEOUT);
        assert!(policy_of("/nodewise.v1beta1.AdminService/Reload").is_none());
        assert_eq!(*THROTTLING, (100.0, 0.1));
    }

    #[test]
    fn pauses_double_within_their_jitter_and_end_after_four_attempts() {
        let mut attempts = Attempts::new(policy_of(PREDICT));
        for base in [0.05, 0.1, 0.2] {
            let found = pause(&mut attempts, None).expect("a further attempt").as_secs_f64();
            assert!((base * 0.8..=base * 1.2).contains(&found), "{found} is not near {base}");
        }
        assert_eq!(pause(&mut attempts, None), None);
    }

    #[test]
    fn the_server_says_how_long_and_whether() {
        let mut attempts = Attempts::new(policy_of(PREDICT));
        assert!(pause(&mut attempts, None).is_some());
        assert_eq!(pause(&mut attempts, Some("700")), Some(Duration::from_millis(700)));
        assert!(pause(&mut attempts, None).expect("afresh") <= Duration::from_millis(60));
        for stop in ["-1", "soon"] {
            assert_eq!(pause(&mut Attempts::new(policy_of(PREDICT)), Some(stop)), None);
        }
    }

    #[test]
    fn no_attempt_is_begun_that_the_deadline_would_cut() {
        let throttle = Throttle::new();
        let mut attempts = Attempts::new(policy_of(PREDICT));
        let left = Duration::from_millis(10);
        assert_eq!(attempts.pause(Code::Unavailable, &unavailable(None), &throttle, left), None);
    }

    #[test]
    fn failures_cost_tokens_that_successes_bring_back() {
        let throttle = Throttle::new();
        assert_eq!((0..100).filter(|_| throttle.failed()).count(), 49);
        for _ in 0..600 {
            throttle.succeeded();
        }
        assert!(throttle.failed());
    }

    #[test]
    fn the_copy_is_the_contracts_file() {
        let shared = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/../../protos/nodewise/v1/nodewise_grpc_service_config.json"
        );
        // In a crate that was packed there is no contract beside it.
        if let Ok(text) = std::fs::read_to_string(shared) {
            assert_eq!(text, SERVICE_CONFIG);
        }
    }
}
