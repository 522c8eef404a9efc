//! The ingest writer: batches, numbers, resends and resumes, so that what it acknowledged is there once.

use std::{
    mem,
    sync::{Arc, OnceLock},
    time::Duration,
};

use tokio::{
    select,
    sync::{mpsc, oneshot},
    time::{Instant, sleep, sleep_until},
};

use crate::{
    Client,
    call::Rpc,
    columns::{Gathered, pieces},
    error::{Code, Error, Result},
    resume::{Patience, ResumePolicy, is_resumable},
    v1::{IngestBatchRequest, IngestState, Network, Observations, PhaseTimings, ProfileBatch, TraceChunk, Workload},
};

const BATCH_ROWS: usize = 1000;
const LINGER: Duration = Duration::from_millis(100);
/// Pieces that may wait for the one batch that is on its way.
const QUEUE: usize = 64;
/// A server that has not answered a batch after this long is asked again.
const ACKNOWLEDGE_TIMEOUT: Duration = Duration::from_secs(10);
/// A piece of a trace is a batch of its own: well below what a message may have.
const CHUNK_BYTES: usize = 512 << 10;

/// A writer that is not open yet: `client.ingest("team-a/a1").open().await?`.
#[derive(Clone, Debug)]
pub struct Ingest {
    client: Client,
    profile_id: String,
    session_id: String,
    batch_rows: usize,
    linger: Duration,
    policy: ResumePolicy,
}

impl Ingest {
    pub(crate) fn new(client: &Client, profile_id: String, session_id: String) -> Self {
        Self {
            client: client.clone(),
            profile_id,
            session_id,
            batch_rows: BATCH_ROWS,
            linger: LINGER,
            policy: ResumePolicy::default(),
        }
    }

    /// The session, where an earlier process's goes on. One writer at a time may use it. Default: one of its own.
    pub fn session(mut self, session_id: impl Into<String>) -> Self {
        self.session_id = session_id.into();
        self
    }

    /// Rows of a batch. Default 1000.
    pub fn batch_rows(mut self, rows: usize) -> Self {
        self.batch_rows = rows.max(1);
        self
    }

    /// How long rows wait for more before they are sent. Default 100 ms.
    pub fn linger(mut self, linger: Duration) -> Self {
        self.linger = linger;
        self
    }

    /// How a server that is away is waited for.
    pub fn resume(mut self, policy: ResumePolicy) -> Self {
        self.policy = policy;
        self
    }

    /// Opens the session, or goes on with it: the server tells what it holds.
    ///
    /// # Errors
    /// Of the call; `UNAVAILABLE` where no server answers in time.
    pub async fn open(self) -> Result<IngestWriter> {
        let mut session = Session {
            client: self.client,
            profile_id: self.profile_id.clone(),
            session_id: self.session_id.clone(),
            patience: Patience::new(self.policy),
            state: IngestState::default(),
            last_number: 0,
        };
        session.state = session.ask(None).await?;
        session.last_number = session.state.durable_sequence_number;
        session.patience.progressed();
        let (commands, queue) = mpsc::channel(QUEUE);
        let failure = Arc::new(OnceLock::new());
        let batches = Batches {
            session,
            batch: ProfileBatch::default(),
            observations: Gathered::default(),
            phase_timings: Gathered::default(),
            since: None,
            batch_rows: self.batch_rows,
            linger: self.linger,
        };
        tokio::spawn(batches.run(queue, Arc::clone(&failure)));
        Ok(IngestWriter {
            commands,
            failure,
            profile_id: self.profile_id,
            session_id: self.session_id,
            batch_rows: self.batch_rows,
        })
    }
}

/// Writes one session into a profile.
///
/// Rows are sent in batches of 1,000 or after 100 ms, whichever comes first, one batch at a time. What is not acknowledged
/// is sent again under the same number, which the server stores once, when a server that is away comes back; meanwhile
/// calls wait as soon as the queue is full. Nothing counts before a [`commit`](Self::commit); a writer that is dropped
/// commits nothing. After an error that waiting cannot help every call gives that error.
#[derive(Debug)]
pub struct IngestWriter {
    commands: mpsc::Sender<Command>,
    failure: Arc<OnceLock<Error>>,
    profile_id: String,
    session_id: String,
    batch_rows: usize,
}

#[derive(Debug)]
enum Command {
    Observations(Observations, usize),
    PhaseTimings(PhaseTimings, usize),
    Facts(Option<Workload>, Option<Network>),
    Batch(Box<ProfileBatch>),
    Flush(oneshot::Sender<IngestState>),
    Commit(oneshot::Sender<IngestState>),
}

impl IngestWriter {
    /// The profile that is written to.
    pub fn profile_id(&self) -> &str {
        &self.profile_id
    }

    /// The session; given to [`Ingest::session`] it goes on in another process.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// Adds measured runs, one or many.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` naming a column that does not fit; else why the writer has failed.
    pub async fn observations(&self, observations: Observations) -> Result<()> {
        for (piece, count) in pieces(observations, self.batch_rows, "observations.")? {
            self.send(Command::Observations(piece, count)).await?;
        }
        Ok(())
    }

    /// Adds timed phases, of one run or many.
    ///
    /// # Errors
    /// As of [`observations`](Self::observations).
    pub async fn phase_timings(&self, timings: PhaseTimings) -> Result<()> {
        for (piece, count) in pieces(timings, self.batch_rows, "phase_timings.")? {
            self.send(Command::PhaseTimings(piece, count)).await?;
        }
        Ok(())
    }

    /// Adds facts of the workload, of the network, or of both. Facts already known must agree.
    ///
    /// # Errors
    /// Why the writer has failed.
    pub async fn facts(&self, workload: Option<Workload>, network: Option<Network>) -> Result<()> {
        self.send(Command::Facts(workload, network)).await
    }

    /// Adds a trace: `trace.data` has all of it and is sent in pieces, the other fields as of its first chunk.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` where it has no bytes; else why the writer has failed.
    pub async fn trace(&self, mut trace: TraceChunk) -> Result<()> {
        let data = mem::take(&mut trace.data);
        if data.is_empty() {
            return Err(Error::invalid("trace.data", "it is empty; a trace must have bytes"));
        }
        let chunks = data.len().div_ceil(CHUNK_BYTES);
        for (number, piece) in data.chunks(CHUNK_BYTES).enumerate() {
            let mut chunk = TraceChunk {
                trace_id: trace.trace_id.clone(),
                ..TraceChunk::default()
            };
            if number == 0 {
                chunk = trace.clone();
            }
            chunk.offset_bytes = (number * CHUNK_BYTES) as i64;
            chunk.last = number + 1 == chunks;
            chunk.data = piece.to_vec();
            let batch = ProfileBatch {
                trace_chunks: vec![chunk],
                ..ProfileBatch::default()
            };
            self.batch(batch).await?;
        }
        Ok(())
    }

    /// Adds a batch as it is, after what was added before; its number is the writer's to give.
    ///
    /// # Errors
    /// Why the writer has failed.
    pub async fn batch(&self, batch: ProfileBatch) -> Result<()> {
        self.send(Command::Batch(Box::new(batch))).await
    }

    /// Sends what waits, and waits until it is durable. It counts after a commit only.
    ///
    /// # Errors
    /// Why the writer has failed.
    pub async fn flush(&self) -> Result<IngestState> {
        self.ask(Command::Flush).await
    }

    /// Ends the unit: all that was added is durable and counts when this returns.
    ///
    /// # Errors
    /// Why the writer has failed.
    pub async fn commit(&self) -> Result<IngestState> {
        self.ask(Command::Commit).await
    }

    /// Commits what is not committed, and ends the writer.
    ///
    /// # Errors
    /// Why the writer has failed.
    pub async fn close(self) -> Result<IngestState> {
        self.commit().await
    }

    async fn ask(&self, command: impl FnOnce(oneshot::Sender<IngestState>) -> Command) -> Result<IngestState> {
        let (told, answer) = oneshot::channel();
        self.send(command(told)).await?;
        answer.await.map_err(|_| self.failed())
    }

    async fn send(&self, command: Command) -> Result<()> {
        self.commands.send(command).await.map_err(|_| self.failed())
    }

    fn failed(&self) -> Error {
        let unexpected = || Error::new(Code::Internal, "the writer ended unexpectedly");
        self.failure.get().cloned().unwrap_or_else(unexpected)
    }
}

/// Rows that were added and not sent yet. It has a task of its own, beside the writer.
struct Batches {
    session: Session,
    batch: ProfileBatch,
    observations: Gathered<Observations>,
    phase_timings: Gathered<PhaseTimings>,
    since: Option<Instant>,
    batch_rows: usize,
    linger: Duration,
}

impl Batches {
    async fn run(mut self, mut queue: mpsc::Receiver<Command>, failure: Arc<OnceLock<Error>>) {
        loop {
            let overdue = self.since.map(|since| since + self.linger);
            let done = select! {
                biased;
                command = queue.recv() => match command {
                    Some(command) => self.follow(command).await,
                    None => return,
                },
                () = sleep_until(overdue.unwrap_or_else(Instant::now)), if overdue.is_some() => self.seal().await,
            };
            if let Err(error) = done {
                // Set before the queue closes, so that a writer that finds it closed can read why.
                let _ = failure.set(error);
                return;
            }
        }
    }

    async fn follow(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Observations(rows, count) => {
                if !self.observations.fits(&rows) || self.rows() + count > self.batch_rows {
                    self.seal().await?;
                }
                self.observations.add(rows, count);
            }
            Command::PhaseTimings(rows, count) => {
                if !self.phase_timings.fits(&rows) || self.rows() + count > self.batch_rows {
                    self.seal().await?;
                }
                self.phase_timings.add(rows, count);
            }
            Command::Facts(workload, network) => {
                let is_said = (workload.is_some() && self.batch.workload.is_some()) || (network.is_some() && self.batch.network.is_some());
                if is_said {
                    self.seal().await?;
                }
                self.batch.workload = workload.or(self.batch.workload.take());
                self.batch.network = network.or(self.batch.network.take());
            }
            Command::Batch(batch) => {
                self.seal().await?;
                return self.session.write(*batch).await;
            }
            Command::Flush(told) => {
                self.seal().await?;
                let _ = told.send(self.session.state);
                return Ok(());
            }
            Command::Commit(told) => {
                if self.since.is_some() || self.session.is_uncommitted() {
                    let mut batch = self.take();
                    batch.commit = true;
                    self.session.write(batch).await?;
                }
                let _ = told.send(self.session.state);
                return Ok(());
            }
        }
        self.since.get_or_insert_with(Instant::now);
        if self.rows() >= self.batch_rows {
            self.seal().await
        } else {
            Ok(())
        }
    }

    fn rows(&self) -> usize {
        self.observations.count + self.phase_timings.count
    }

    /// Sends what waits, if anything does.
    async fn seal(&mut self) -> Result<()> {
        if self.since.is_none() {
            return Ok(());
        }
        let batch = self.take();
        self.session.write(batch).await
    }

    fn take(&mut self) -> ProfileBatch {
        self.since = None;
        let mut batch = mem::take(&mut self.batch);
        batch.observations = self.observations.take();
        batch.phase_timings = self.phase_timings.take();
        batch
    }
}

/// The session at the server: numbers, and what is known to be durable.
struct Session {
    client: Client,
    profile_id: String,
    session_id: String,
    patience: Patience,
    state: IngestState,
    last_number: i64,
}

impl Session {
    fn is_uncommitted(&self) -> bool {
        self.last_number > self.state.committed_sequence_number
    }

    /// Numbers a batch and returns when it is durable.
    async fn write(&mut self, mut batch: ProfileBatch) -> Result<()> {
        let (number, is_commit) = (self.last_number + 1, batch.commit);
        batch.sequence_number = number;
        let state = self.ask(Some(batch)).await?;
        let held = state.durable_sequence_number;
        if held > number {
            let text = format!(
                "session {} holds batch {held}, which this writer has not written: another writer uses the same session; give every \
                 writer a session of its own",
                self.session_id
            );
            return Err(self.explained(Code::Aborted, text, held));
        }
        if held < number || (is_commit && state.committed_sequence_number < number) {
            let text = format!(
                "the server acknowledged batch {number} of session {} and now has only {held}",
                self.session_id
            );
            return Err(self.explained(Code::DataLoss, text, held));
        }
        self.last_number = number;
        self.state = state;
        self.patience.progressed();
        Ok(())
    }

    /// Sends a batch, or asks what is durable, as often as it takes and the policy allows.
    async fn ask(&mut self, batch: Option<ProfileBatch>) -> Result<IngestState> {
        let request = Arc::new(IngestBatchRequest {
            profile_id: self.profile_id.clone(),
            session_id: self.session_id.clone(),
            batch,
        });
        let timeout = self.client.timeout_of(IngestBatchRequest::PATH).min(ACKNOWLEDGE_TIMEOUT);
        loop {
            let error = match self.client.once(&request, timeout).await {
                Ok(reply) => return Ok(reply.state.unwrap_or_default()),
                Err(error) => error,
            };
            // A server with too much to do says when to come back; without that a message was too large, and stays so.
            let is_busy = error.code() == Code::ResourceExhausted && error.retry_delay().is_some();
            if !is_resumable(&error) && !is_busy {
                return Err(error);
            }
            match self.patience.pause(Some(&error)) {
                Some(pause) => sleep(pause).await,
                None => {
                    let durable = self.state.durable_sequence_number;
                    return Err(error.with_metadata("durableSequenceNumber", durable));
                }
            }
        }
    }

    fn explained(&self, code: Code, text: String, held: i64) -> Error {
        Error::new(code, text)
            .with_metadata("sessionId", &self.session_id)
            .with_metadata("sequenceNumber", held)
    }
}
