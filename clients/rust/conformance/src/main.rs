//! The conformance executable of the Rust client: JSON lines in, JSON lines out, as clients/conformance/PROTOCOL.md has it.
//! What it does with a call goes through the public face of the client alone.

mod calls;
mod clients;
mod messages;

use std::{
    error::Error,
    io::{self, BufRead, Write},
    time::{Duration, Instant},
};

use nodewise_client::Error as ClientError;
use serde_json::{Map, Value, json};

use calls::Told;
use clients::Clients;

type Failure = Box<dyn Error>;

fn main() -> Result<(), Failure> {
    // Connections have a thread of their own: they go on while this one waits for the next line.
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let mut clients = Clients::default();
        for line in io::stdin().lock().lines() {
            let told = answer(&mut clients, &serde_json::from_str(&line?)?).await?;
            let mut out = io::stdout().lock();
            writeln!(out, "{told}")?;
            out.flush()?;
        }
        Ok(())
    })
}

/// What became of the call of one line.
async fn answer(clients: &mut Clients, line: &Value) -> Result<Value, Failure> {
    let mut told = Told::default();
    let begun = Instant::now();
    let call = calls::call(clients, line, &mut told);
    let ended = match line["cancel_after_seconds"].as_f64() {
        // A call is cancelled by dropping it.
        Some(seconds) => tokio::time::timeout(Duration::from_secs_f64(seconds), call).await.ok(),
        None => Some(call.await),
    };
    let mut said = Map::new();
    said.insert("id".into(), line["id"].clone());
    match ended {
        None => drop(said.insert("code".into(), "CANCELLED".into())),
        Some(Ok(())) => drop(said.insert("code".into(), "OK".into())),
        Some(Err(failure)) => match failure.downcast::<ClientError>() {
            Ok(error) => said.extend(explained(&error)),
            Err(failure) => return Err(failure),
        },
    }
    said.insert("elapsed_seconds".into(), begun.elapsed().as_secs_f64().into());
    if let Some(replies) = told.replies {
        said.insert("replies".into(), replies.into());
    }
    if let Some(rows) = told.rows {
        said.insert("rows".into(), rows.into());
    }
    Ok(said.into())
}

fn explained(error: &ClientError) -> Map<String, Value> {
    let violations = error.violations().iter();
    let told = json!({
        "code": error.code_name(),
        "reason": error.reason(),
        "message": error.message(),
        "metadata": error.metadata(),
        "violations": violations.map(|each| json!({"field": each.field, "description": each.description})).collect::<Vec<_>>(),
        "retry_delay_seconds": error.retry_delay().map(|delay| delay.as_secs_f64()),
    });
    match told {
        Value::Object(told) => told,
        _ => unreachable!("an object was written"),
    }
}
