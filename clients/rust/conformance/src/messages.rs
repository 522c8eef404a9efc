//! Messages as proto JSON, by the descriptors of the contract.

use std::sync::LazyLock;

use nodewise_client::{Listing, Rpc};
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, Kind, MessageDescriptor, MethodDescriptor, SerializeOptions};
use serde_json::Value;

use crate::Failure;

static POOL: LazyLock<DescriptorPool> =
    LazyLock::new(|| DescriptorPool::decode(include_bytes!("../gen/descriptors.binpb").as_slice()).expect("the contract's descriptors"));

/// The request of an RPC that JSON describes.
pub fn request<R: Rpc>(given: &Value) -> Result<R, Failure> {
    Ok(DynamicMessage::deserialize(method::<R>()?.input(), given)?.transcode_to()?)
}

/// A reply of an RPC as JSON.
pub fn reply<R: Rpc>(message: &R::Response) -> Result<Value, Failure> {
    written(method::<R>()?.output(), message)
}

/// An item of a listing as JSON.
pub fn item<L: Listing>(message: &L::Item) -> Result<Value, Failure>
where
    L::Item: Message,
{
    let output = method::<L>()?.output();
    let items: Vec<_> = output.fields().filter(|field| matches!(field.kind(), Kind::Message(_))).collect();
    let found = items.iter().find(|field| field.is_list()).or_else(|| items.first());
    match found.ok_or("no items")?.kind() {
        Kind::Message(descriptor) => written(descriptor, message),
        _ => Err("items that are no messages".into()),
    }
}

/// Part of a request that JSON describes.
pub fn part<M: Message + Default>(full_name: &str, given: &Value) -> Result<M, Failure> {
    let descriptor = POOL.get_message_by_name(full_name).ok_or("no such message")?;
    Ok(DynamicMessage::deserialize(descriptor, given)?.transcode_to()?)
}

fn written(descriptor: MessageDescriptor, message: &impl Message) -> Result<Value, Failure> {
    let mut dynamic = DynamicMessage::new(descriptor);
    dynamic.transcode_from(message)?;
    let options = SerializeOptions::new().use_proto_field_name(true);
    Ok(dynamic.serialize_with_options(serde_json::value::Serializer, &options)?)
}

fn method<R: Rpc>() -> Result<MethodDescriptor, Failure> {
    let (service, method) = R::PATH.trim_start_matches('/').split_once('/').ok_or("no path")?;
    let service = POOL.get_service_by_name(service).ok_or("no such service")?;
    let found = service.methods().find(|each| each.name() == method);
    found.ok_or_else(|| "no such method".into())
}
