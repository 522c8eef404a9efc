//! How interrupted streams start again, within the limits of a policy.

use std::time::Duration;

use tokio::time::Instant;

use crate::{
    error::{Code, Error},
    retry,
};

/// Pauses and limits of resuming a watch or a writer. Progress starts the count and the clock afresh.
#[derive(Clone, Debug, PartialEq)]
pub struct ResumePolicy {
    /// Attempts in a row without progress, the first included. Default 40.
    pub max_attempts: u32,
    /// Pause before the second attempt; each further one is twice as long. Default 50 ms.
    pub initial_pause: Duration,
    /// Longest pause. Default 1 s.
    pub max_pause: Duration,
    /// Time without progress after which there is no further attempt. Default 30 s.
    pub patience: Duration,
    /// The same before the server has ever answered: one that restarts is awaited, one that is not there is told. Default
    /// 10 s.
    pub opening_patience: Duration,
}

impl Default for ResumePolicy {
    fn default() -> Self {
        Self {
            max_attempts: 40,
            initial_pause: Duration::from_millis(50),
            max_pause: Duration::from_secs(1),
            patience: Duration::from_secs(30),
            opening_patience: Duration::from_secs(10),
        }
    }
}

/// Whether starting again can help after this error: the server went away, cancelled a call before it started it, or
/// reached its own time limit. A full store stays full until somebody frees space.
pub(crate) fn is_resumable(error: &Error) -> bool {
    let cause = error.metadata().get("cause").map(String::as_str);
    if error.reason() == "STORE_UNAVAILABLE" && cause == Some("full") {
        return false;
    }
    matches!(error.code(), Code::Unavailable | Code::Cancelled | Code::DeadlineExceeded)
}

/// The attempts since there was progress.
#[derive(Debug)]
pub(crate) struct Patience {
    policy: ResumePolicy,
    opened: bool,
    attempts: u32,
    gone_at: Option<Instant>,
}

impl Patience {
    pub(crate) fn new(policy: ResumePolicy) -> Self {
        Self {
            policy,
            opened: false,
            attempts: 0,
            gone_at: None,
        }
    }

    pub(crate) fn progressed(&mut self) {
        self.opened = true;
        self.attempts = 0;
        self.gone_at = None;
    }

    /// The pause before the next attempt after one that failed with this, if any; `None` = patience is over.
    pub(crate) fn pause(&mut self, error: Option<&Error>) -> Option<Duration> {
        let now = Instant::now();
        let gone_at = *self.gone_at.get_or_insert(now);
        self.attempts += 1;
        let factor = 2f64.powi(self.attempts.saturating_sub(1).min(60) as i32);
        let pause = self.policy.initial_pause.as_secs_f64() * factor;
        let pause = retry::with_jitter(Duration::from_secs_f64(pause.min(self.policy.max_pause.as_secs_f64())));
        let pause = pause.max(error.and_then(Error::retry_delay).unwrap_or_default());
        let patience = if self.opened {
            self.policy.patience
        } else {
            self.policy.opening_patience.min(self.policy.patience)
        };
        (self.attempts < self.policy.max_attempts && now - gone_at + pause <= patience).then_some(pause)
    }
}
