//! One client for each distinct target with options.

use std::{collections::HashMap, fs, time::Duration};

use nodewise_client::{Client, Tls};
use serde_json::Value;

use crate::Failure;

/// The clients of this process, made when they are first asked for.
#[derive(Default)]
pub struct Clients(HashMap<String, Client>);

impl Clients {
    /// The client that a line asks for, with the deadline of its call.
    pub fn of(&mut self, line: &Value) -> Result<Client, Failure> {
        let mut options = line["options"].clone();
        let timeout = options.as_object_mut().and_then(|options| options.remove("timeout_seconds"));
        let target = line["target"].as_str().ok_or("a line without a target")?;
        let key = format!("{target} {options}");
        let client = match self.0.get(&key) {
            Some(client) => client,
            None => {
                let made = client(target, &options)?;
                self.0.entry(key).or_insert(made)
            }
        };
        let seconds = timeout.and_then(|timeout| timeout.as_f64());
        Ok(seconds.map_or_else(|| client.clone(), |seconds| client.with_timeout(Duration::from_secs_f64(seconds))))
    }
}

fn client(target: &str, options: &Value) -> Result<Client, Failure> {
    let mut builder = Client::builder(target);
    if let Some(retry) = options["retry"].as_bool() {
        builder = builder.retry(retry);
    }
    if let Some(token) = options["token"].as_str() {
        builder = builder.token(token);
    }
    if let Some(user_agent) = options["user_agent"].as_str() {
        builder = builder.user_agent(user_agent);
    }
    if let Some(bytes) = options["max_receive_bytes"].as_u64() {
        builder = builder.max_receive_bytes(usize::try_from(bytes)?);
    }
    if options["tls"].is_object() {
        builder = builder.tls(tls(&options["tls"])?);
    }
    Ok(builder.build()?)
}

fn tls(given: &Value) -> Result<Tls, Failure> {
    let tls = match given["ca"].as_str() {
        Some(path) => Tls::with_roots(fs::read(path)?),
        None => Tls::system(),
    };
    match (given["certificate"].as_str(), given["key"].as_str()) {
        (Some(certificate), Some(key)) => Ok(tls.identity(fs::read(certificate)?, fs::read(key)?)),
        _ => Ok(tls),
    }
}
