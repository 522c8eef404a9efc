//! Calls of the client by the faces of the protocol, and what they tell.

use futures_util::stream;
use nodewise_client::{Client, Listing, Prediction, Progress, Progressive, v1::*, v1beta1::*};
use prost::Message;
use serde_json::{Value, json};

use crate::{Failure, clients::Clients, messages};

/// What a call has told so far.
#[derive(Default)]
pub struct Told {
    pub replies: Option<Vec<Value>>,
    pub rows: Option<Vec<Value>>,
}

/// Makes the call of a line; what it tells is there also where it fails or is cancelled.
pub async fn call(clients: &mut Clients, line: &Value, told: &mut Told) -> Result<(), Failure> {
    let client = clients.of(line)?;
    let method = line["method"].as_str().and_then(|path| path.rsplit('/').next()).unwrap_or_default();
    let most = line["cancel_after_replies"]
        .as_u64()
        .and_then(|number| usize::try_from(number).ok());
    match line["face"].as_str().unwrap_or_default() {
        "call" => told.replies = Some(vec![unary(&client, method, &line["requests"][0]).await?]),
        "rows" => told.rows = Some(rows(&client, method, &line["requests"][0]).await?),
        "pages" => pages(&client, method, &line["requests"][0], told.replies.get_or_insert_default()).await?,
        "progress" => told.replies = Some(vec![progress(&client, method, &line["requests"][0]).await?]),
        "stream" => stream_predict(&client, &line["requests"], most, told.replies.get_or_insert_default()).await?,
        "watch" => watch(&client, &line["requests"][0], most, told.replies.get_or_insert_default()).await?,
        "ingest" => told.replies = Some(vec![ingest(&client, &line["ingest"]).await?]),
        face => return Err(format!("no such face: {face:?}").into()),
    }
    Ok(())
}

macro_rules! unary {
    ($client:ident, $method:ident, $given:ident: $($name:literal $request:ident $call:ident;)*) => {
        match $method {
            $($name => messages::reply::<$request>(&$client.$call(messages::request($given)?).await?),)*
            _ => Err(format!("no such call: {}", $method).into()),
        }
    };
}

async fn unary(client: &Client, method: &str, given: &Value) -> Result<Value, Failure> {
    unary! { client, method, given:
        "Predict" PredictRequest predict;
        "BatchPredict" BatchPredictRequest batch_predict;
        "SuggestMeasurements" SuggestMeasurementsRequest suggest_measurements;
        "ListEstimators" ListEstimatorsRequest list_estimators;
        "ListDevices" ListDevicesRequest list_devices;
        "ListPlugins" ListPluginsRequest list_plugins;
        "IngestBatch" IngestBatchRequest ingest_batch;
        "AppendProfile" AppendProfileRequest append_profile;
        "RetractEvidence" RetractEvidenceRequest retract_evidence;
        "GetProfile" GetProfileRequest get_profile;
        "ListProfiles" ListProfilesRequest list_profiles;
        "DeleteProfile" DeleteProfileRequest delete_profile;
        "UndeleteProfile" UndeleteProfileRequest undelete_profile;
        "ListUsage" ListUsageRequest list_usage;
        "Schedule" ScheduleRequest schedule;
        "ListPolicies" ListPoliciesRequest list_policies;
        "EstimateCompletion" EstimateCompletionRequest estimate_completion;
        "EstimateRun" EstimateRunRequest estimate_run;
        "PredictSharing" PredictSharingRequest predict_sharing;
        "ReportSteps" ReportStepsRequest report_steps;
        "ListGenerations" ListGenerationsRequest list_generations;
        "Reload" ReloadRequest reload;
        "SetCanary" SetCanaryRequest set_canary;
        "Promote" PromoteRequest promote;
        "Rollback" RollbackRequest rollback;
        "ListPluginStates" ListPluginStatesRequest list_plugin_states;
        "CreateToken" CreateTokenRequest create_token;
        "ListTokens" ListTokensRequest list_tokens;
        "RevokeToken" RevokeTokenRequest revoke_token;
        "ListPriors" ListPriorsRequest list_priors;
        "SetPrior" SetPriorRequest set_prior;
    }
}

async fn pages(client: &Client, method: &str, given: &Value, told: &mut Vec<Value>) -> Result<(), Failure> {
    match method {
        "ListEstimators" => all::<ListEstimatorsRequest>(client, given, told).await,
        "ListDevices" => all::<ListDevicesRequest>(client, given, told).await,
        "ListPlugins" => all::<ListPluginsRequest>(client, given, told).await,
        "GetProfile" => all::<GetProfileRequest>(client, given, told).await,
        "ListProfiles" => all::<ListProfilesRequest>(client, given, told).await,
        "ListUsage" => all::<ListUsageRequest>(client, given, told).await,
        "ListPolicies" => all::<ListPoliciesRequest>(client, given, told).await,
        "ListGenerations" => all::<ListGenerationsRequest>(client, given, told).await,
        "ListTokens" => all::<ListTokensRequest>(client, given, told).await,
        "ListPriors" => all::<ListPriorsRequest>(client, given, told).await,
        _ => Err(format!("no such listing: {method}").into()),
    }
}

async fn all<L: Listing>(client: &Client, given: &Value, told: &mut Vec<Value>) -> Result<(), Failure>
where
    L::Item: Message,
{
    let mut pages = client.pages(messages::request::<L>(given)?);
    while let Some(item) = pages.next().await {
        told.push(messages::item::<L>(&item?)?);
    }
    Ok(())
}

async fn progress(client: &Client, method: &str, given: &Value) -> Result<Value, Failure> {
    match method {
        "Simulate" => last(client.simulate(messages::request(given)?)).await,
        "Plan" => last(client.plan(messages::request(given)?)).await,
        "Replay" => last(client.replay(messages::request(given)?)).await,
        "Diagnose" => last(client.diagnose(messages::request(given)?)).await,
        "Backtest" => last(client.backtest(messages::request(given)?)).await,
        _ => Err(format!("no such long call: {method}").into()),
    }
}

async fn last<P: Progressive>(mut events: Progress<P>) -> Result<Value, Failure> {
    let mut last = Value::Null;
    while let Some(event) = events.next().await {
        last = messages::reply::<P>(&event?)?;
    }
    Ok(last)
}

async fn stream_predict(client: &Client, given: &Value, most: Option<usize>, told: &mut Vec<Value>) -> Result<(), Failure> {
    let questions = given.as_array().into_iter().flatten().map(messages::request);
    let questions = questions.collect::<Result<Vec<StreamPredictRequest>, Failure>>()?;
    let mut answers = client.stream_predict(stream::iter(questions));
    while let Some(answer) = answers.next().await {
        told.push(messages::reply::<StreamPredictRequest>(&answer?)?);
        if Some(told.len()) == most {
            break;
        }
    }
    Ok(())
}

async fn watch(client: &Client, given: &Value, most: Option<usize>, told: &mut Vec<Value>) -> Result<(), Failure> {
    let mut events = client.watch_profiles(messages::request(given)?);
    while let Some(event) = events.next().await {
        told.push(messages::reply::<WatchProfilesRequest>(&event?)?);
        if Some(told.len()) == most {
            break;
        }
    }
    Ok(())
}

async fn ingest(client: &Client, given: &Value) -> Result<Value, Failure> {
    let mut ingest = client.ingest(given["profile_id"].as_str().unwrap_or_default());
    if let Some(session_id) = given["session_id"].as_str() {
        ingest = ingest.session(session_id);
    }
    let writer = ingest.open().await?;
    for batch in given["batches"].as_array().into_iter().flatten() {
        writer.batch(messages::part("nodewise.v1.ProfileBatch", batch)?).await?;
        writer.flush().await?;
    }
    let state = if given["commit"] == true {
        writer.commit().await?
    } else {
        writer.flush().await?
    };
    Ok(json!({"durable": state.durable_sequence_number, "revision": state.revision}))
}

async fn rows(client: &Client, method: &str, given: &Value) -> Result<Vec<Value>, Failure> {
    match method {
        "Predict" => {
            let answer = client.predict(messages::request(given)?).await?;
            Ok(answer.rows().map(|each| row(&each)).collect())
        }
        "BatchPredict" => {
            let answer = client.batch_predict(messages::request(given)?).await?;
            if answer.jobs().len() == 0 {
                return Ok(answer.rows().map(|each| row(&each)).collect());
            }
            Ok(answer
                .jobs()
                .flat_map(|job| match job.rows() {
                    Ok(rows) => rows.map(|each| of_job(job.index(), row(&each))).collect(),
                    Err(error) => {
                        let error = json!({"reason": error.reason(), "message": error.message()});
                        vec![json!({"job": job.index(), "error": error})]
                    }
                })
                .collect())
        }
        _ => Err(format!("no rows of {method}").into()),
    }
}

fn of_job(job: usize, mut row: Value) -> Value {
    row["job"] = job.into();
    row
}

fn row(row: &Prediction<'_>) -> Value {
    let known = RowStatus::try_from(row.status_number());
    let refusal = row.refusal().and_then(|refusal| refusal.problem.as_ref());
    json!({
        "nodes": row.nodes(),
        "workers": row.workers(),
        "status": known.map_or_else(|_| row.status_number().into(), |status| Value::from(status.as_str_name())),
        "step_seconds": row.step_seconds(),
        "samples_per_second": row.samples_per_second(),
        "lower_samples_per_second": row.lower_samples_per_second(),
        "upper_samples_per_second": row.upper_samples_per_second(),
        "memory_bytes": row.memory_bytes(),
        "bottleneck": row.bottleneck(),
        "reason": refusal.map(|problem| &problem.reason),
    })
}
