//! The overhead of the client: `overhead KIND COUNT` repeats one action, while the benchmark measures the processor time.
//!
//! KIND: `unary_stub` and `unary_client` ask `$NODEWISE_SERVER` one Predict, by the generated stub alone and by the client, whose rows
//! are read; `rows_decode` and `rows_read` decode the BatchPredict reply in the file `$NODEWISE_REPLY`, and read its rows as well.

use std::{env, error::Error, fs};

use nodewise_client::{
    Client,
    v1::{BatchPredictResponse, ConfigurationRange, PredictRequest, ProfileSource, prediction_service_client::PredictionServiceClient},
};
use prost::Message;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    let mut words = env::args().skip(1);
    let (Some(kind), Some(count)) = (words.next(), words.next()) else {
        return Err("overhead KIND COUNT".into());
    };
    let count: usize = count.parse()?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let read = match kind.as_str() {
        "unary_stub" => runtime.block_on(by_stub(count))?,
        "unary_client" => runtime.block_on(by_client(count))?,
        "rows_decode" => decoded(count, |reply| reply.outcomes.len() as f64)?,
        "rows_read" => decoded(count, |reply| reply.jobs().filter_map(|job| job.rows().ok()).map(total).sum())?,
        _ => return Err(format!("KIND is {kind}").into()),
    };
    println!("{read}");
    Ok(())
}

fn request() -> PredictRequest {
    PredictRequest {
        profile: Some(ProfileSource::stored("a/b")),
        ranges: vec![ConfigurationRange::over_nodes(1, 16)],
        ..Default::default()
    }
}

async fn by_stub(count: usize) -> Result<f64, Failure> {
    let mut stub = PredictionServiceClient::connect(format!("http://{}", env::var("NODEWISE_SERVER")?)).await?;
    let (request, mut read) = (request(), 0.0);
    for _ in 0..count {
        let reply = stub.predict(request.clone()).await?.into_inner();
        read += reply.predictions.map_or(0.0, |found| found.step_seconds.iter().sum());
    }
    Ok(read)
}

async fn by_client(count: usize) -> Result<f64, Failure> {
    let client = Client::connect(env::var("NODEWISE_SERVER")?).await?;
    let (request, mut read) = (request(), 0.0);
    for _ in 0..count {
        read += total(client.predict(request.clone()).await?.rows());
    }
    Ok(read)
}

fn decoded(count: usize, read: impl Fn(&BatchPredictResponse) -> f64) -> Result<f64, Failure> {
    let bytes = fs::read(env::var("NODEWISE_REPLY")?)?;
    let mut sum = 0.0;
    for _ in 0..count {
        sum += read(&BatchPredictResponse::decode(bytes.as_slice())?);
    }
    Ok(sum)
}

/// What a scheduler reads of rows, through the row view.
fn total(rows: nodewise_client::Rows<'_>) -> f64 {
    let of = |figure: Option<f64>| figure.unwrap_or_default();
    rows.filter(nodewise_client::Prediction::is_answered)
        .map(|row| {
            of(row.step_seconds())
                + of(row.samples_per_second())
                + of(row.lower_samples_per_second())
                + of(row.upper_samples_per_second())
                + of(row.memory_bytes())
                + f64::from(row.nodes().unwrap_or_default() + row.workers().unwrap_or_default())
                + row.bottleneck().map_or(0.0, |name| name.len() as f64)
        })
        .sum()
}
