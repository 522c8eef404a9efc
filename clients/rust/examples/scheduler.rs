//! A small cluster scheduler on Nodewise: clients/examples.md says what it does, step by step, in every language.
//!
//! `cargo run --example scheduler [TARGET [DEVICES [ROUNDS]]]`

use std::{collections::HashMap, env, error::Error, process::ExitCode, time::Duration};

use nodewise_client::{Client, ConfigurationRow, v1::*};
use prost_types::Timestamp;
use tokio::{sync::watch, time::timeout};

const PREFIX: &str = "examples/scheduler-rust/";
const DEVICES_PER_NODE: i32 = 4;
const BATCH_SAMPLES: f64 = 32.0;
const ROUND_SECONDS: i64 = 600;
const PATIENCE: Duration = Duration::from_secs(30);
/// 2026-01-01, seconds since 1970.
const BEGIN_SECONDS: i64 = 1_767_225_600;

type Outcome<T> = Result<T, Box<dyn Error>>;

/// A job of the cluster, and what it holds.
struct Job {
    name: &'static str,
    parameter_bytes: f64,
    compute_seconds: f64,
    transfer_seconds: f64,
    samples_left: f64,
    holds: Option<CurrentAllocation>,
    runs: Option<JobAllocation>,
}

impl Job {
    fn profile_id(&self) -> String {
        format!("{PREFIX}{}", self.name)
    }
}

/// What the watch has told: the newest revision of each profile, and whether those of the start are all told.
#[derive(Default)]
struct Told {
    revisions: HashMap<String, i64>,
    caught_up: bool,
}

/// Predicts, schedules, applies and reports, round by round.
struct Scheduler {
    client: Client,
    devices: i32,
    told: watch::Receiver<Told>,
    policy_state: Vec<u8>,
    decisions: usize,
    observations: usize,
}

impl Scheduler {
    /// Runs so many rounds, or until all jobs are finished.
    async fn run(&mut self, jobs: &mut [Job], rounds: i64) -> Outcome<()> {
        timeout(PATIENCE, self.told.wait_for(|told| told.caught_up)).await??;
        println!("watching {} profiles", self.told.borrow().revisions.len());
        let mut done = 0;
        while done < rounds && jobs.iter().any(|job| job.samples_left > 0.0) {
            println!("round {}", done + 1);
            let mut left: Vec<&mut Job> = jobs.iter_mut().filter(|job| job.samples_left > 0.0).collect();
            self.round(&mut left, BEGIN_SECONDS + done * ROUND_SECONDS).await?;
            done += 1;
        }
        println!(
            "done: {done} rounds, {} decisions, {} observations",
            self.decisions, self.observations
        );
        Ok(())
    }

    async fn round(&mut self, jobs: &mut [&mut Job], now_seconds: i64) -> Outcome<()> {
        self.predict(jobs).await?;
        self.schedule(jobs, now_seconds).await?;
        for job in jobs {
            let (Some(holds), Some(runs)) = (&mut job.holds, job.runs.clone()) else {
                continue;
            };
            holds.age_seconds += ROUND_SECONDS as f64;
            job.samples_left = (job.samples_left - ROUND_SECONDS as f64 * runs.samples_per_second).max(0.0);
            let revision = self.report(job, &runs, now_seconds + ROUND_SECONDS).await?;
            let id = job.profile_id();
            let heard = self
                .told
                .wait_for(|told| told.revisions.get(&id).is_some_and(|&known| known >= revision));
            timeout(PATIENCE, heard).await??;
            if job.samples_left == 0.0 {
                job.holds = None;
                println!("  {}: finished", job.name);
            }
        }
        Ok(())
    }

    /// Asks about all jobs in one call, on every number of workers.
    async fn predict(&self, jobs: &[&mut Job]) -> Outcome<()> {
        let request = BatchPredictRequest {
            jobs: jobs
                .iter()
                .map(|job| BatchJob {
                    profile: Some(self.source(job)),
                    ..Default::default()
                })
                .collect(),
            ranges: vec![ConfigurationRange::over_workers(1, self.devices).with_workers_per_node(DEVICES_PER_NODE)],
            ..Default::default()
        };
        let answer = self.client.batch_predict(request).await?;
        for (job, answered) in jobs.iter().zip(answer.jobs()) {
            let recommended = answered.outcome().recommendation.as_ref();
            match answered.rows() {
                Ok(rows) => match recommended.and_then(|best| rows.get(best.row as usize)) {
                    Some(best) => println!(
                        "  {}: best {} workers, {} samples/s",
                        job.name,
                        best.workers().unwrap_or_default(),
                        whole(best.samples_per_second().unwrap_or_default())
                    ),
                    None => println!("  {}: no prediction, NO_RECOMMENDATION", job.name),
                },
                Err(error) => println!("  {}: no prediction, {}", job.name, error.reason()),
            }
        }
        Ok(())
    }

    /// Shares the cluster, and applies what was decided.
    async fn schedule(&mut self, jobs: &mut [&mut Job], now_seconds: i64) -> Outcome<()> {
        let nodes = (self.devices / DEVICES_PER_NODE) as usize;
        let asked = jobs.iter().map(|job| ScheduleJob {
            job_id: job.name.into(),
            profile: Some(self.source(job)),
            remaining_samples: job.samples_left,
            submit_time: Some(at(BEGIN_SECONDS)),
            current_allocation: job.holds.clone(),
            ..Default::default()
        });
        let request = ScheduleRequest {
            now: Some(at(now_seconds)),
            cluster: Some(Cluster {
                pools: vec![NodePool::of_nodes("v100", "V100", nodes, DEVICES_PER_NODE)],
            }),
            policy_state: self.policy_state.clone(),
            jobs: asked.collect(),
            ..Default::default()
        };
        let reply = self.client.schedule(request).await?;
        self.policy_state = reply.policy_state;
        for (job, given) in jobs.iter_mut().zip(reply.allocations) {
            self.decisions += 1;
            apply(job, given);
        }
        Ok(())
    }

    /// Tells what the job was measured to do, a little less than predicted; returns the profile's revision.
    async fn report(&mut self, job: &Job, runs: &JobAllocation, end_seconds: i64) -> Outcome<i64> {
        let measured = 0.95 * runs.samples_per_second;
        let writer = self.client.ingest(job.profile_id()).open().await?;
        writer
            .observations(Observations {
                configurations: Some(ran_on(runs.nodes_count, runs.devices_count)?),
                steps_per_second: vec![measured / BATCH_SAMPLES],
                measured_at_unix_seconds: vec![end_seconds as f64],
                ..Default::default()
            })
            .await?;
        let revision = writer.commit().await?.revision;
        writer.close().await?;
        self.observations += 1;
        println!("  {}: reported {} samples/s, revision {revision}", job.name, whole(measured));
        Ok(revision)
    }

    /// A job's profile, at least as new as the watch has told.
    fn source(&self, job: &Job) -> ProfileSource {
        let source = ProfileSource::stored(job.profile_id());
        match self.told.borrow().revisions.get(&job.profile_id()) {
            Some(&revision) => source.with_minimum_revision(revision),
            None => source,
        }
    }
}

/// Lets a job hold what it was given.
fn apply(job: &mut Job, given: JobAllocation) {
    let action = given.action();
    match action {
        ScheduleAction::Start | ScheduleAction::Change => {
            let (pool, placement) = (given.pool.clone(), given.placement.clone());
            job.holds = Some(CurrentAllocation {
                pool,
                placement,
                ..Default::default()
            });
            job.runs = Some(given);
        }
        ScheduleAction::Keep => job.runs = Some(given),
        ScheduleAction::Wait => job.holds = None,
        _ => {}
    }
    let name = action.as_str_name().trim_start_matches("SCHEDULE_ACTION_");
    match (&job.holds, &job.runs) {
        (Some(_), Some(runs)) => println!(
            "  {}: {name} {} devices, {} samples/s, {} samples left",
            job.name,
            runs.devices_count,
            whole(runs.samples_per_second),
            whole(job.samples_left)
        ),
        _ => println!("  {}: {name}", job.name),
    }
}

/// What a short run on one node has shown of a job. The same request id again changes nothing.
async fn append(client: &Client, job: &Job) -> Outcome<()> {
    let content = ProfileContent {
        workload: Some(Workload {
            model_name: job.name.into(),
            parameter_bytes: Some(job.parameter_bytes),
            ..Default::default()
        }),
        network: Some(Network {
            link_bytes_per_second: Some(1.25e9),
            ..Default::default()
        }),
        phase_timings: Some(PhaseTimings {
            configurations: Some(ran_on(1, 1)?),
            download_seconds: vec![job.transfer_seconds],
            compute_seconds: vec![job.compute_seconds],
            upload_seconds: vec![job.transfer_seconds],
            update_seconds: vec![0.004],
            compute_variation: vec![0.06],
            ..Default::default()
        }),
        ..Default::default()
    };
    let (profile_id, request_id) = (job.profile_id(), "seed".into());
    client
        .append_profile(AppendProfileRequest {
            profile_id,
            request_id,
            content: Some(content),
            ..Default::default()
        })
        .await?;
    Ok(())
}

/// Watches profiles for as long as there are receivers.
async fn listen(client: Client, told: watch::Sender<Told>) {
    let mut events = client.watch_profiles(WatchProfilesRequest {
        name_prefix: PREFIX.into(),
        ..Default::default()
    });
    while let Some(Ok(event)) = events.next().await {
        told.send_modify(|told| {
            told.revisions
                .extend(event.profiles.into_iter().map(|profile| (profile.profile_id, profile.revision)));
            told.caught_up |= event.caught_up;
        });
    }
}

/// Asynchronous training on V100.
fn ran_on(nodes: i32, workers: i32) -> Result<Configurations, nodewise_client::Error> {
    Configurations::from_rows([ConfigurationRow {
        nodes: Some(nodes),
        workers: Some(workers),
        settings: ConfigurationSettings {
            device_name: "V100".into(),
            sync_mode: SyncMode::Async.into(),
            batch_per_worker_samples: Some(BATCH_SAMPLES),
            ..Default::default()
        },
        ..Default::default()
    }])
}

fn at(seconds: i64) -> Timestamp {
    Timestamp { seconds, nanos: 0 }
}

/// The nearest whole number, halves upwards.
fn whole(value: f64) -> i64 {
    (value + 0.5).floor() as i64
}

async fn run() -> Outcome<()> {
    let mut arguments = env::args().skip(1);
    let target = arguments.next().or_else(|| env::var("NODEWISE_SERVER").ok()).unwrap_or_default();
    let devices: i32 = arguments.next().map_or(Ok(8), |text| text.parse())?;
    let rounds: i64 = arguments.next().map_or(Ok(4), |text| text.parse())?;
    if devices < DEVICES_PER_NODE || devices % DEVICES_PER_NODE != 0 {
        return Err(format!("DEVICES is {devices}; nodes have {DEVICES_PER_NODE} each: give a multiple of that").into());
    }
    let client = Client::connect(target).await?;
    let mut jobs = [
        ("small", 25e6, 0.060, 0.020, 2e6),
        ("medium", 102e6, 0.210, 0.082, 4e6),
        ("large", 550e6, 0.480, 0.440, 3e6),
    ]
    .map(|(name, parameter_bytes, compute_seconds, transfer_seconds, samples_left)| Job {
        name,
        parameter_bytes,
        compute_seconds,
        transfer_seconds,
        samples_left,
        holds: None,
        runs: None,
    });
    for job in &jobs {
        append(&client, job).await?;
    }
    let (sender, told) = watch::channel(Told::default());
    let listening = tokio::spawn(listen(client.clone(), sender));
    let mut scheduler = Scheduler {
        client,
        devices,
        told,
        policy_state: Vec::new(),
        decisions: 0,
        observations: 0,
    };
    let ran = scheduler.run(&mut jobs, rounds).await;
    listening.abort();
    ran
}

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
