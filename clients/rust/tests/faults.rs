//! What the client does when servers fail: against one that answers as a test says, and counts.

use std::{
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::{
    Request, Response,
    body::{Bytes, Frame, Incoming},
    header::HeaderMap,
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use nodewise_client::{Client, Code, v1::*, v1beta1};
use prost::Message;

/// How a call is answered: messages, then a status with trailers beside it.
struct Answer {
    messages: Vec<Vec<u8>>,
    code: i32,
    trailers: Vec<(&'static str, String)>,
}

fn told(messages: Vec<Vec<u8>>) -> Answer {
    Answer {
        messages,
        code: 0,
        trailers: Vec::new(),
    }
}

fn failed(code: Code) -> Answer {
    Answer {
        messages: Vec::new(),
        code: code as i32,
        trailers: Vec::new(),
    }
}

/// A server, with the bodies that arrived there.
struct Fake {
    target: String,
    asked: Arc<Mutex<Vec<Bytes>>>,
}

impl Fake {
    async fn new(answer: impl Fn(usize) -> Answer + Send + Sync + 'static) -> Self {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let target = listener.local_addr().expect("an address").to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (seen, answer) = (asked.clone(), Arc::new(answer));
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let (seen, answer) = (seen.clone(), answer.clone());
                let service = service_fn(move |request: Request<Incoming>| {
                    let (seen, answer) = (seen.clone(), answer.clone());
                    async move {
                        let body = request.into_body().collect().await.expect("a request").to_bytes();
                        let attempt = {
                            let mut seen = seen.lock().expect("nobody panicked");
                            seen.push(body.slice(5..));
                            seen.len()
                        };
                        Ok::<_, Infallible>(response(answer(attempt)))
                    }
                });
                tokio::spawn(
                    hyper::server::conn::http2::Builder::new(TokioExecutor::new()).serve_connection(TokioIo::new(socket), service),
                );
            }
        });
        Self { target, asked }
    }

    async fn client(&self) -> Client {
        Client::connect(&self.target).await.expect("a client")
    }

    fn attempts(&self) -> usize {
        self.asked.lock().expect("nobody panicked").len()
    }
}

type Frames = Vec<Result<Frame<Bytes>, Infallible>>;
type Body = StreamBody<stream::Iter<<Frames as IntoIterator>::IntoIter>>;

fn response(answer: Answer) -> Response<Body> {
    let mut frames: Frames = Vec::new();
    for message in answer.messages {
        let mut framed = vec![0];
        framed.extend((message.len() as u32).to_be_bytes());
        framed.extend(message);
        frames.push(Ok(Frame::data(framed.into())));
    }
    let mut trailers = HeaderMap::new();
    trailers.insert("grpc-status", answer.code.into());
    for (name, value) in answer.trailers {
        trailers.insert(name, value.parse().expect("a header"));
    }
    frames.push(Ok(Frame::trailers(trailers)));
    let mut response = Response::new(StreamBody::new(stream::iter(frames)));
    response
        .headers_mut()
        .insert("content-type", "application/grpc".parse().expect("a header"));
    response
}

fn question() -> PredictRequest {
    PredictRequest {
        profile: Some(ProfileSource::stored("a")),
        ranges: vec![ConfigurationRange::over_nodes(1, 2)],
        ..Default::default()
    }
}

fn answer() -> Answer {
    let basis = Some(Basis {
        estimator: "fake".into(),
        ..Default::default()
    });
    told(vec![
        PredictResponse {
            basis,
            ..Default::default()
        }
        .encode_to_vec(),
    ])
}

#[tokio::test]
async fn what_may_pass_is_tried_again_and_four_times_at_most() {
    for code in [Code::Unavailable, Code::Cancelled] {
        let server = Fake::new(move |attempt| if attempt < 4 { failed(code) } else { answer() }).await;
        let reply = server.client().await.predict(question()).await.expect("an answer");
        assert_eq!((reply.basis.unwrap_or_default().estimator.as_str(), server.attempts()), ("fake", 4));
    }
    let server = Fake::new(|_| failed(Code::Unavailable)).await;
    let error = server.client().await.predict(question()).await.expect_err("it fails");
    assert_eq!((error.code(), server.attempts()), (Code::Unavailable, 4));
}

#[tokio::test]
async fn not_with_retries_off_and_not_what_is_overloaded() {
    let server = Fake::new(|_| failed(Code::Unavailable)).await;
    let client = Client::builder(&server.target).retry(false).connect().await.expect("a client");
    assert!(client.predict(question()).await.is_err());
    assert_eq!(server.attempts(), 1);
    let busy = Fake::new(|_| failed(Code::ResourceExhausted)).await;
    let error = busy.client().await.predict(question()).await.expect_err("it fails");
    assert_eq!((error.code(), busy.attempts()), (Code::ResourceExhausted, 1));
}

#[tokio::test]
async fn pushback_is_kept_and_a_negative_one_ends_it() {
    let pushed = |milliseconds: &str| Answer {
        trailers: vec![("grpc-retry-pushback-ms", milliseconds.into())],
        ..failed(Code::Unavailable)
    };
    let later = Fake::new(move |attempt| if attempt == 1 { pushed("300") } else { answer() }).await;
    let client = later.client().await;
    let begun = Instant::now();
    client.predict(question()).await.expect("an answer");
    assert!(begun.elapsed() >= Duration::from_millis(300));
    let never = Fake::new(move |_| pushed("-1")).await;
    assert!(never.client().await.predict(question()).await.is_err());
    assert_eq!(never.attempts(), 1);
}

#[tokio::test]
async fn a_request_id_is_chosen_once_for_all_attempts() {
    let server = Fake::new(|attempt| {
        if attempt < 3 {
            failed(Code::Unavailable)
        } else {
            told(vec![Vec::new()])
        }
    })
    .await;
    let request = AppendProfileRequest {
        profile_id: "a".into(),
        ..Default::default()
    };
    server.client().await.append_profile(request).await.expect("it was appended");
    let asked = server.asked.lock().expect("nobody panicked");
    let ids: Vec<String> = asked
        .iter()
        .map(|body| AppendProfileRequest::decode(body.clone()).expect("a request").request_id)
        .collect();
    assert_eq!(ids.len(), 3);
    assert!(!ids[0].is_empty() && ids.iter().all(|id| *id == ids[0]));
}

#[tokio::test]
async fn a_long_call_begins_again_after_a_cut() {
    let progress = || {
        let event = Some(v1beta1::simulate_response::Event::Progress(Default::default()));
        v1beta1::SimulateResponse { event }.encode_to_vec()
    };
    let result = || {
        let event = Some(v1beta1::simulate_response::Event::Result(Default::default()));
        v1beta1::SimulateResponse { event }.encode_to_vec()
    };
    let server = Fake::new(move |attempt| match attempt {
        1 | 2 => Answer {
            messages: vec![progress()],
            ..failed(Code::Unavailable)
        },
        _ => told(vec![progress(), result()]),
    })
    .await;
    server
        .client()
        .await
        .simulate(Default::default())
        .outcome()
        .await
        .expect("a result");
    assert_eq!(server.attempts(), 3);
}

#[tokio::test]
async fn a_watch_goes_on_after_a_cut() {
    let server = Fake::new(|attempt| {
        let profiles = vec![Profile {
            profile_id: format!("p{attempt}"),
            ..Default::default()
        }];
        let event = WatchProfilesResponse { profiles, caught_up: true };
        Answer {
            messages: vec![event.encode_to_vec()],
            ..failed(Code::Unavailable)
        }
    })
    .await;
    let mut watch = server.client().await.watch_profiles(Default::default());
    for number in 1..=3 {
        let event = watch.next().await.expect("it goes on").expect("an event");
        assert_eq!(event.profiles[0].profile_id, format!("p{number}"));
    }
}

#[tokio::test]
async fn an_ingested_batch_whose_acknowledgement_is_lost_is_sent_again_under_its_number() {
    let state = |number: i64| {
        let state = IngestState {
            durable_sequence_number: number,
            committed_sequence_number: number,
            revision: 1,
            ..Default::default()
        };
        told(vec![IngestBatchResponse { state: Some(state) }.encode_to_vec()])
    };
    let server = Fake::new(move |attempt| match attempt {
        1 => state(0),
        2 => failed(Code::Unavailable),
        _ => state(1),
    })
    .await;
    let writer = server.client().await.ingest("a").open().await.expect("a writer");
    writer
        .observations(Observations {
            steps_per_second: vec![1.0],
            ..Default::default()
        })
        .await
        .expect("it was taken");
    let committed = writer.commit().await.expect("it was committed");
    assert_eq!(committed.committed_sequence_number, 1);
    writer.close().await.expect("it was closed");
    let asked = server.asked.lock().expect("nobody panicked");
    let sent: Vec<ProfileBatch> = asked
        .iter()
        .filter_map(|body| IngestBatchRequest::decode(body.clone()).expect("a request").batch)
        .collect();
    assert!(sent.len() >= 2);
    assert!(sent.iter().all(|batch| batch.sequence_number == 1 && batch == &sent[0]));
}

#[tokio::test]
async fn what_is_absent_is_none() {
    let predictions = Predictions {
        rows_count: 2,
        nodes: vec![1, 2],
        samples_per_second: vec![3.0, 0.0],
        ..Default::default()
    };
    let reply = PredictResponse {
        predictions: Some(predictions),
        ..Default::default()
    };
    let rows: Vec<_> = reply
        .rows()
        .map(|row| (row.nodes(), row.samples_per_second(), row.memory_bytes()))
        .collect();
    assert_eq!(rows, [(Some(1), Some(3.0), None), (Some(2), None, None)]);
}

#[tokio::test]
async fn a_token_over_plain_text_stays_on_this_machine() {
    let error = Client::builder("example.org:50551")
        .token("secret")
        .connect()
        .await
        .expect_err("it is refused");
    assert_eq!(error.code(), Code::InvalidArgument);
    assert!(error.message().contains("plain text") && !error.message().contains("secret"));
    Client::builder("127.0.0.1:50551").token("secret").build().expect("loopback");
}
