use nodewise_client::{Client, ConfigurationRow, Error, v1::*};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect(std::env::var("NODEWISE_SERVER").unwrap_or("127.0.0.1:50551".into())).await?;
    let settings = ConfigurationSettings {
        device_name: "V100".into(),
        sync_mode: SyncMode::Allreduce.into(),
        batch_per_worker_samples: Some(32.0),
        ..Default::default()
    };
    let ran = |n| ConfigurationRow {
        nodes: Some(n),
        workers: Some(n),
        settings: settings.clone(),
        ..Default::default()
    };
    let measured = Observations {
        configurations: Some(Configurations::from_rows([1, 2, 4].map(ran))?),
        steps_per_second: vec![9.1, 8.7, 7.8],
        ..Default::default()
    };
    let profile = Some(ProfileSource::inline(ProfileContent {
        observations: Some(measured),
        ..Default::default()
    }));
    let ranges = vec![ConfigurationRange::over_nodes(1, 16)];

    // Predict: one job.
    let request = PredictRequest {
        profile: profile.clone(),
        ranges: ranges.clone(),
        ..Default::default()
    };
    let answer = client.predict(request).await?;
    for row in answer.rows() {
        println!("{:?} nodes: {:?} samples/s", row.nodes(), row.samples_per_second());
    }
    println!("{}", answer.recommendation.unwrap_or_default().why);

    // BatchPredict: many jobs, each with rows or an error of its own.
    let asked = [profile.clone(), Some(ProfileSource::stored("nobody"))];
    let jobs = asked.map(|profile| BatchJob {
        profile,
        ..Default::default()
    });
    let request = BatchPredictRequest {
        jobs: jobs.into(),
        ranges,
        ..Default::default()
    };
    for job in client.batch_predict(request).await?.jobs() {
        println!("{:?}", job.rows().map(|rows| rows.len()));
    }

    // Schedule: all jobs of a cluster. Send the reply's policy_state with the next request.
    let pools = vec![NodePool::of_nodes("rack", "V100", 4, 4)];
    let first = ScheduleJob {
        job_id: "first".into(),
        profile,
        remaining_samples: 1e6,
        ..Default::default()
    };
    let request = ScheduleRequest {
        cluster: Some(Cluster { pools }),
        jobs: vec![first],
        ..Default::default()
    };
    for job in client.schedule(request).await?.allocations {
        println!("{}: {} devices, {}", job.job_id, job.devices_count, job.why);
    }
    Ok(())
}
