use nodewise_client::{Client, ConfigurationRow, Error, v1::*};

#[tokio::main]
async fn main() -> Result<(), Error> {
    let client = Client::connect(std::env::var("NODEWISE_SERVER").unwrap_or("127.0.0.1:50551".into())).await?;
    let sync_mode = SyncMode::Allreduce.into();
    let settings = ConfigurationSettings {
        device_name: "V100".into(),
        sync_mode,
        batch_per_worker_samples: Some(32.0),
        ..Default::default()
    };
    let ran = |n| ConfigurationRow {
        nodes: Some(n),
        workers: Some(n),
        settings: settings.clone(),
        ..Default::default()
    };
    let configurations = Some(Configurations::from_rows([1, 2, 4].map(ran))?);
    let measured = Observations {
        configurations,
        steps_per_second: vec![9.1, 8.7, 7.8],
        ..Default::default()
    };
    let profile = Some(ProfileSource::inline(ProfileContent {
        observations: Some(measured),
        ..Default::default()
    }));
    let ranges = vec![ConfigurationRange::over_nodes(1, 16)];
    let answer = client
        .predict(PredictRequest {
            profile,
            ranges,
            ..Default::default()
        })
        .await?;
    for row in answer.rows() {
        println!("{:?} nodes: {:?} samples/s", row.nodes(), row.samples_per_second());
    }
    println!("{}", answer.recommendation.unwrap_or_default().why);
    Ok(())
}
